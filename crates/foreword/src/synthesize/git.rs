//! What git knows of the project's past. Run with a time limit, without locks or hooks of the
//! repository's; whatever goes wrong is simply unknown.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use foreword_core::git::Repository;
use foreword_core::notes::FOLDER;
use foreword_core::notes::evidence::{Fate, History};

/// All questions together take no longer; what is not known then stays so.
const PATIENCE: Duration = Duration::from_secs(10);
const OUTPUT_MAX: u64 = 16 << 20;

pub struct Git<'a> {
    root: &'a Path,
    until: Instant,
    is_there: bool,
    /// Paths that are no longer, and where they went.
    left: OnceCell<BTreeMap<String, Option<String>>>,
}

impl<'a> Git<'a> {
    pub fn new(root: &'a Path) -> Git<'a> {
        Git {
            root,
            until: Instant::now() + PATIENCE,
            is_there: Repository::find(root).is_some(),
            left: OnceCell::new(),
        }
    }

    pub fn head(&self) -> Option<String> {
        Repository::find(self.root)?.head().commit
    }

    /// What was done since a commit, apart from the memory itself; the newest first.
    pub fn subjects(&self, since: Option<&str>) -> Vec<String> {
        let without = format!(":(exclude){FOLDER}");
        let range = since.map_or_else(|| "HEAD".to_owned(), |it| format!("{it}..HEAD"));
        let log = |range| self.run(&["log", "-n200", "--format=%s", range, "--", ".", &without]);
        // A commit that is no longer there: then it is all of them.
        let log = log(&range).or_else(|| log("HEAD"));
        log.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn left(&self) -> BTreeMap<String, Option<String>> {
        let names = ["-M", "--diff-filter=DR", "--name-status", "--relative"];
        let plain = ["--no-ext-diff", "--no-textconv"];
        // `git diff` would refresh the index, which is the user's; this only reads it.
        let diff = [&["diff-index", "HEAD"][..], &names, &plain].concat();
        let log = [&["log", "--format="][..], &names, &plain].concat();
        let mut left = BTreeMap::new();
        for line in [diff, log].iter().filter_map(|it| self.run(it)) {
            for line in line.lines() {
                let mut fields = line.split('\t').skip(1).map(str::to_owned);
                let path = fields.next().unwrap_or_default();
                left.entry(path).or_insert(fields.next());
            }
        }
        left
    }

    fn run(&self, arguments: &[&str]) -> Option<String> {
        let left = self.until.checked_duration_since(Instant::now())?;
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(name);
            }
        }
        command
            .arg("-C")
            .arg(self.root)
            .args(["--no-optional-locks", "--no-pager"])
            .args(["-c", "core.quotePath=false", "-c", "core.fsmonitor=false"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok().filter(|_| self.is_there)?;
        let stdout = child.stdout.take()?;
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(OUTPUT_MAX).read_to_end(&mut bytes);
            tell.send(read.map(|_| bytes))
        });
        let bytes = told.recv_timeout(left);
        let _ = child.kill();
        let ended = child.wait().ok()?;
        let text = String::from_utf8_lossy(&bytes.ok()?.ok()?).into_owned();
        // Killed after its last word is as good as ended well.
        ended.code().is_none_or(|it| it == 0).then_some(text)
    }
}

impl History for Git<'_> {
    fn fate(&self, path: &str) -> Fate {
        if !self.is_there {
            return Fate::Unknown;
        }
        let left = self.left.get_or_init(|| self.left());
        let mut path = path;
        // Moved and moved again; a circle ends.
        for _ in 0..8 {
            match left.get(path) {
                Some(Some(to)) if self.root.join(to).exists() => return Fate::Moved(to.clone()),
                Some(Some(to)) => path = to,
                Some(None) => return Fate::Gone,
                None => break,
            }
        }
        let below = format!("{path}/");
        match left.range(below.clone()..).next() {
            Some((it, _)) if it.starts_with(&below) => Fate::Gone,
            _ => Fate::Never,
        }
    }

    fn had(&self, file: &str, word: &str) -> bool {
        let search = format!("-S{word}");
        let commits = self.run(&["log", "-n1", "--format=%h", &search, "--", file]);
        commits.is_some_and(|it| !it.trim().is_empty())
    }
}
