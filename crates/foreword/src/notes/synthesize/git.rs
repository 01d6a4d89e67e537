//! Asks git about the project's past: new commits, and files that were moved or removed. git runs
//! with a time limit, without locks and without the repository's hooks. Where it fails, the answer is
//! "unknown".

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use foreword_core::git::Repository;
use foreword_core::notes::FOLDER;
use foreword_core::notes::evidence::{History, MentionFate};

use crate::platform;

/// The time limit for all questions of one synthesis together.
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Git<'a> {
    root: &'a Path,
    until: Instant,
    is_there: bool,
    /// Paths that were removed (none) or moved, and where to.
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

    /// Subjects of the commits since a commit, the newest first; commits to the memory itself are left out.
    pub fn subjects(&self, since: Option<&str>) -> Vec<String> {
        let without = format!(":(exclude){FOLDER}");
        let range = since.map_or_else(|| "HEAD".to_owned(), |it| format!("{it}..HEAD"));
        let log = |range| self.run(&["log", "-n200", "--format=%s", range, "--", ".", &without]);
        // If that commit no longer exists, all commits are listed.
        let log = log(&range).or_else(|| log("HEAD"));
        log.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn left(&self) -> BTreeMap<String, Option<String>> {
        let names = ["-M", "--diff-filter=DR", "--name-status", "--relative"];
        let plain = ["--no-ext-diff", "--no-textconv"];
        // `git diff` would write the user's index; `git diff-index` only reads it.
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
        if !self.is_there {
            return None;
        }
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
            .args(arguments);
        let (text, ended) = platform::output_within(&mut command, "", left)?;
        // Its output was read to the end, so being killed then is no failure.
        ended.code().is_none_or(|it| it == 0).then_some(text)
    }
}

impl History for Git<'_> {
    fn fate(&self, path: &str) -> MentionFate {
        if !self.is_there {
            return MentionFate::Unknown;
        }
        let left = self.left.get_or_init(|| self.left());
        let mut path = path;
        // A file may have been moved several times; the limit ends a circle.
        for _ in 0..8 {
            match left.get(path) {
                Some(Some(to)) if self.root.join(to).exists() => {
                    return MentionFate::Moved(to.clone());
                }
                Some(Some(to)) => path = to,
                Some(None) => return MentionFate::Gone,
                None => break,
            }
        }
        let below = format!("{path}/");
        match left.range(below.clone()..).next() {
            Some((it, _)) if it.starts_with(&below) => MentionFate::Gone,
            _ => MentionFate::Never,
        }
    }
}
