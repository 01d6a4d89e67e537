//! Asks git about the project's past: new commits, and files that were moved or removed.
//!
//! A repository's config, attributes and hooks can name programs that git runs: filters, textconv,
//! signature checks, a transport for objects that are missing. So git never runs in the repository. It
//! runs in a private git directory that has only a commit to begin at, a copy of the index and the
//! path of the repository's objects, with a config and an environment of our own. Where it fails, or
//! takes too long, the answer is "unknown".

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use foreword_core::files;
use foreword_core::git::Repository;
use foreword_core::notes::FOLDER;
use foreword_core::notes::evidence::{History, MentionFate};
use tempfile::TempDir;

use crate::platform;

/// The time limit for all questions of one synthesis together.
const PATIENCE: Duration = Duration::from_secs(10);

/// A larger index is not copied; then a file that was moved and not committed yet counts as gone.
const INDEX_MAX: u64 = 64 << 20;

/// The config of the private git directory, which is the only one that git reads.
const CONFIG: &str = "[core]\n\tbare = true\n\tquotePath = false\n\trepositoryFormatVersion = ";
const SHA1: &str = "0\n";
const SHA256: &str = "1\n[extensions]\n\tobjectFormat = sha256\n";

pub struct Git<'a> {
    root: &'a Path,
    until: Instant,
    head: Option<String>,
    private: Option<Private>,
    /// Paths that were removed (none) or moved, and where to.
    left: OnceCell<BTreeMap<String, Option<String>>>,
    /// The paths in the last commit.
    committed: OnceCell<BTreeSet<String>>,
}

/// A git directory of our own, with the objects of the repository.
struct Private {
    program: PathBuf,
    git_dir: TempDir,
    objects: PathBuf,
    /// The project's folder in the repository, with a slash at its end; empty for the top.
    prefix: String,
}

impl Private {
    fn make(root: &Path, repository: &Repository, head: &str) -> Option<Private> {
        let git_dir = tempfile::Builder::new()
            .prefix("foreword-git-")
            .tempdir()
            .ok()?;
        let write = |name: &str, text: &[u8]| fs::write(git_dir.path().join(name), text).ok();
        write("HEAD", head.as_bytes())?;
        let format = if head.len() == 64 { SHA256 } else { SHA1 };
        write("config", format!("{CONFIG}{format}").as_bytes())?;
        fs::create_dir(git_dir.path().join("refs")).ok()?;
        if let Some(shallow) = repository.shallow() {
            write("shallow", shallow.as_bytes())?;
        }
        let index = repository.git_dir.join("index");
        if let Ok(index) = files::read_in(&repository.git_dir, &index, INDEX_MAX) {
            write("index", &index)?;
        }
        let prefix = root.strip_prefix(&repository.root).ok()?.to_str()?;
        Some(Private {
            program: program(&repository.root)?,
            git_dir,
            objects: repository.common_dir.join("objects"),
            prefix: Path::new(prefix).join("").to_str()?.to_owned(),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .current_dir(self.git_dir.path())
            // Nothing of the user's is read here, and git starts programs of its own by PATH.
            .env("HOME", self.git_dir.path())
            .env("PATH", self.program.parent().unwrap_or(Path::new("/")))
            .env("GIT_DIR", self.git_dir.path())
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "")
            .env("GIT_TERMINAL_PROMPT", "0")
            .args(["--no-optional-locks", "--no-pager"]);
        command
    }
}

/// The first git on the PATH that is not inside the repository: any file there may be called git.
fn program(repository: &Path) -> Option<PathBuf> {
    let is_outside = |it: &PathBuf| {
        let real = it.canonicalize();
        it.is_absolute() && real.is_ok_and(|it| !it.starts_with(repository))
    };
    platform::on_path("git").into_iter().find(is_outside)
}

impl<'a> Git<'a> {
    pub fn new(root: &'a Path) -> Git<'a> {
        let repository = Repository::find(root);
        let head = repository.as_ref().and_then(|it| it.head().commit);
        let private = repository
            .as_ref()
            .zip(head.as_deref())
            .and_then(|(repository, head)| Private::make(root, repository, head));
        Git {
            root,
            until: Instant::now() + PATIENCE,
            head,
            private,
            left: OnceCell::new(),
            committed: OnceCell::new(),
        }
    }

    pub fn head(&self) -> Option<String> {
        self.head.clone()
    }

    /// Subjects of the commits since a commit, the newest first; commits to the memory itself are left out.
    pub fn subjects(&self, since: Option<&str>) -> Vec<String> {
        let Some(private) = &self.private else {
            return Vec::new();
        };
        let within = format!(":(literal){}", private.prefix);
        let without = format!(":(exclude,literal){}{FOLDER}", private.prefix);
        let mut paths = vec!["--", without.as_str()];
        if !private.prefix.is_empty() {
            paths.push(&within);
        }
        let log = |range: &str| {
            let log = ["log", "-n200", "--no-show-signature", "--format=%s", range];
            self.run(&[&log[..], &paths].concat())
        };
        let is_id = |it: &&str| it.bytes().all(|byte| byte.is_ascii_hexdigit());
        let range = since.filter(is_id).map(|it| format!("{it}..HEAD"));
        // If that commit no longer exists, all commits are listed.
        let log = range.and_then(|it| log(&it)).or_else(|| log("HEAD"));
        log.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn left(&self) -> BTreeMap<String, Option<String>> {
        let names = [
            "--diff-filter=DR",
            "--name-status",
            "--no-ext-diff",
            "--no-textconv",
        ];
        let diff = |renames| {
            let diff = ["diff-index", "--cached", renames, "HEAD"];
            self.run(&[&diff[..], &names].concat())
        };
        let log = |renames| {
            let log = ["log", "--no-show-signature", "--format=", renames];
            self.run(&[&log[..], &names].concat())
        };
        // If contents are missing, as in a partial clone, only files that moved unchanged are found.
        let parts = [
            diff("-M").or_else(|| diff("-M100%")),
            log("-M").or_else(|| log("-M100%")),
        ];
        let mut left = BTreeMap::new();
        for line in parts.iter().flatten().flat_map(|it| it.lines()) {
            let mut paths = line.split('\t').skip(1).map(|it| self.below_root(it));
            if let Some(Some(path)) = paths.next() {
                left.entry(path).or_insert(paths.next().flatten());
            }
        }
        left
    }

    fn committed(&self) -> BTreeSet<String> {
        let tree = self.run(&["ls-tree", "-r", "--name-only", "--full-tree", "HEAD"]);
        let paths = tree.unwrap_or_default();
        paths.lines().filter_map(|it| self.below_root(it)).collect()
    }

    /// A path of the repository, relative to the project's folder.
    fn below_root(&self, path: &str) -> Option<String> {
        let prefix = &self.private.as_ref()?.prefix;
        path.strip_prefix(prefix.as_str()).map(str::to_owned)
    }

    fn run(&self, arguments: &[&str]) -> Option<String> {
        let left = self.until.checked_duration_since(Instant::now())?;
        let mut command = self.private.as_ref()?.command();
        let (text, ended) = platform::output_within(command.args(arguments), "", left)?;
        // Its output was read to the end, so being killed then is no failure.
        ended.code().is_none_or(|it| it == 0).then_some(text)
    }
}

impl History for Git<'_> {
    fn fate(&self, path: &str) -> MentionFate {
        if self.private.is_none() {
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
        // It is in the last commit, but no longer in the working tree.
        let committed = self.committed.get_or_init(|| self.committed());
        let below = format!("{path}/");
        let was_folder = |first: Option<&String>| first.is_some_and(|it| it.starts_with(&below));
        let is_gone = committed.contains(path)
            || was_folder(committed.range(below.clone()..).next())
            || was_folder(left.range(below.clone()..).next().map(|it| it.0));
        if is_gone {
            MentionFate::Gone
        } else {
            MentionFate::Never
        }
    }
}
