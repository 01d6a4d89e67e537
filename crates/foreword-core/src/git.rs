//! Reads the root, branch, commit and remote of a git repository from its own files.
//!
//! A hook never runs git, since starting a process costs more than the whole hook; the few
//! small files that are needed are read directly. If a file is missing or has an unexpected
//! format, the value counts as unknown.
//!
//! `.git` may be a link to a repository elsewhere: a linked working tree, a submodule. Anybody can
//! make such a link to a repository of yours, so it counts only if that repository knows the
//! working tree. Otherwise the folder is a repository of its own, without a branch and a remote.

use std::path::{Path, PathBuf};

use crate::files::{self, PATH_MAX};

/// A repository as found from a directory inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top of the working tree.
    pub root: PathBuf,
    /// This working tree's own git directory (HEAD is here).
    pub git_dir: PathBuf,
    /// The git directory that all working trees share (config, refs and objects are here).
    pub common_dir: PathBuf,
}

/// The branch and commit of HEAD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    pub branch: Option<String>,
    pub commit: Option<String>,
}

/// A `config` or `packed-refs` file larger than this is not read.
const LIST_MAX: u64 = 4 << 20;
/// The largest file that holds one path or one reference.
const LINE_MAX: u64 = PATH_MAX as u64 + 64;

impl Repository {
    /// Finds the repository that contains `dir`, from `dir` upwards. The path has no links.
    pub fn find(dir: &Path) -> Option<Repository> {
        dir.ancestors().find_map(Repository::at)
    }

    fn at(root: &Path) -> Option<Repository> {
        let dot_git = root.join(".git");
        let kind = std::fs::symlink_metadata(&dot_git).ok()?.file_type();
        let git_dir = if kind.is_dir() {
            // An empty `.git` folder is not a repository; git itself goes on looking.
            std::fs::symlink_metadata(dot_git.join("HEAD")).ok()?;
            Some(dot_git.clone())
        } else if kind.is_symlink() {
            dot_git.canonicalize().ok().filter(|it| it.is_dir())
        } else {
            // A linked working tree or a submodule: one line, `gitdir: PATH`.
            let link = line(root, &dot_git)?;
            root.join(link.strip_prefix("gitdir:")?.trim())
                .canonicalize()
                .ok()
        };
        let linked = git_dir.and_then(|git_dir| {
            let common_dir = match line(&git_dir, &git_dir.join("commondir")) {
                Some(relative) => git_dir.join(relative).canonicalize().ok()?,
                None => git_dir.clone(),
            };
            Some(Repository {
                root: root.to_owned(),
                git_dir,
                common_dir,
            })
        });
        Some(
            linked
                .filter(Repository::knows_its_root)
                .unwrap_or(Repository {
                    root: root.to_owned(),
                    git_dir: dot_git.clone(),
                    common_dir: dot_git,
                }),
        )
    }

    /// Whether the git directory is inside the working tree, or names the working tree itself.
    fn knows_its_root(&self) -> bool {
        let Repository {
            root,
            git_dir,
            common_dir,
        } = self;
        // The `.git` of another folder below belongs to that folder.
        let is_own = |dir: &Path| {
            dir.starts_with(root) && (dir.parent() == Some(root) || !dir.ends_with(".git"))
        };
        if is_own(git_dir) && is_own(common_dir) {
            return true;
        }
        let same = |path: &Path| path.canonicalize().is_ok_and(|it| it == *root);
        if git_dir != common_dir {
            let back = line(git_dir, &git_dir.join("gitdir")).map(|it| git_dir.join(it));
            return git_dir.parent() == Some(&common_dir.join("worktrees"))
                && back.is_some_and(|it| it.ends_with(".git") && it.parent().is_some_and(same));
        }
        let configs = ["config.worktree", "config"].map(|name| text(git_dir, name));
        let named = configs.iter().flatten().find_map(|config| {
            let mut entries = entries(config);
            entries.find(|it| it.section.eq_ignore_ascii_case("core") && it.has("worktree"))
        });
        named.is_some_and(|it| same(&git_dir.join(it.value)))
    }

    /// The folder that contains `.git`; for a submodule, its git directory.
    pub fn folder(&self) -> &Path {
        match self.common_dir.parent() {
            Some(parent) if self.common_dir.ends_with(".git") => parent,
            _ => &self.common_dir,
        }
    }

    /// The name of a linked working tree; none for the main one.
    pub fn worktree_name(&self) -> Option<String> {
        let linked = self.git_dir != self.common_dir;
        linked.then(|| {
            self.git_dir
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
        })?
    }

    pub fn head(&self) -> Head {
        let Some(head) = line(&self.git_dir, &self.git_dir.join("HEAD")) else {
            return Head::default();
        };
        let Some(reference) = head.strip_prefix("ref:").map(str::trim) else {
            return Head {
                branch: None,
                commit: commit_id(&head),
            };
        };
        Head {
            branch: reference.strip_prefix("refs/heads/").map(str::to_owned),
            commit: self.loose(reference).or_else(|| self.packed(reference)),
        }
    }

    fn loose(&self, reference: &str) -> Option<String> {
        commit_id(&line(&self.common_dir, &self.common_dir.join(reference))?)
    }

    fn packed(&self, reference: &str) -> Option<String> {
        let text = text(&self.common_dir, "packed-refs")?;
        text.lines().find_map(|line| {
            let (id, name) = line.split_once(' ')?;
            (name == reference).then(|| commit_id(id))?
        })
    }

    /// The URL of `origin`, else of the first remote in the config.
    pub fn remote(&self) -> Option<String> {
        let config = text(&self.common_dir, "config")?;
        let mut first = None;
        for entry in entries(&config).filter(|it| it.has("url")) {
            let name = entry.section.strip_prefix("remote \"");
            match name.and_then(|rest| rest.split('"').next()) {
                Some("origin") => return Some(entry.value.to_owned()),
                Some(_) => drop(first.get_or_insert(entry.value)),
                None => {}
            }
        }
        first.map(str::to_owned)
    }

    /// The commits at which a shallow clone ends: the file `shallow`, if there is one.
    pub fn shallow(&self) -> Option<String> {
        text(&self.common_dir, "shallow")
    }
}

/// One line of a git config, and the section that it is in: `remote "origin"`, `url`, the value.
struct Entry<'a> {
    section: &'a str,
    key: &'a str,
    value: &'a str,
}

impl Entry<'_> {
    fn has(&self, key: &str) -> bool {
        self.key.eq_ignore_ascii_case(key)
    }
}

fn entries(config: &str) -> impl Iterator<Item = Entry<'_>> {
    let mut section = "";
    config.lines().map(str::trim).filter_map(move |line| {
        if let Some(rest) = line.strip_prefix('[') {
            section = rest.trim_end_matches(']').trim();
            return None;
        }
        let (key, value) = line.split_once('=')?;
        Some(Entry {
            section,
            key: key.trim(),
            value: value.trim().trim_matches('"'),
        })
    })
}

/// A file of a git directory that holds one line.
fn line(folder: &Path, path: &Path) -> Option<String> {
    let text = files::read_in(folder, path, LINE_MAX).and_then(files::text);
    Some(text.ok()?.trim().to_owned())
}

fn text(git_dir: &Path, name: &str) -> Option<String> {
    let text = files::read_in(git_dir, &git_dir.join(name), LIST_MAX);
    text.and_then(files::text).ok()
}

fn commit_id(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_branch_is_read_from_loose_then_packed_references() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(&root.join(".git/HEAD"), "ref: refs/heads/feat/x\n");
        write(
            &root.join(".git/packed-refs"),
            &format!("# pack-refs\n{ID} refs/heads/feat/x\n"),
        );
        let repository = Repository::find(&root.join("src")).unwrap();
        let expected = Head {
            branch: Some("feat/x".into()),
            commit: Some(ID.into()),
        };
        assert_eq!(repository.head(), expected);

        let loose = ID.replace('0', "f");
        write(&root.join(".git/refs/heads/feat/x"), &loose);
        assert_eq!(repository.head().commit, Some(loose));
    }

    #[test]
    fn a_detached_head_has_a_commit_and_no_branch() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join(".git/HEAD"), ID);
        let head = Repository::find(dir.path()).unwrap().head();
        assert_eq!((head.branch, head.commit), (None, Some(ID.into())));
    }

    #[test]
    fn origin_is_preferred_to_the_first_remote() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join(".git/HEAD"), "ref: refs/heads/main\n");
        write(
            &dir.path().join(".git/config"),
            "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = a\n[remote \"origin\"]\n\turl = b\n[branch \"x\"]\n\turl = c\n",
        );
        assert_eq!(
            Repository::find(dir.path()).unwrap().remote(),
            Some("b".into())
        );
    }

    #[test]
    fn an_empty_git_folder_is_not_a_repository() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        let found = Repository::find(dir.path());
        assert_ne!(found.map(|it| it.root), Some(dir.path().to_owned()));
    }

    fn git(at: &Path, args: &[&str]) {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(["-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(at)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    #[test]
    fn a_repository_elsewhere_counts_only_if_it_knows_this_working_tree() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let at = |name: &str| top.join(name);
        fs::create_dir(at("mine")).unwrap();
        git(&at("mine"), &["init", "-q", "-b", "main"]);
        git(&at("mine"), &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(
            &at("mine"),
            &["worktree", "add", "-q", "../side", "-b", "side"],
        );
        git(
            &at("mine"),
            &["submodule", "--quiet", "add", "../mine", "part"],
        );
        git(
            &top,
            &[
                "init",
                "-q",
                "-b",
                "apart",
                "--separate-git-dir",
                "data",
                "apart",
            ],
        );

        git(&at("data"), &["config", "core.worktree", "../apart"]);

        let mine = at("mine/.git");
        let link = |name: &str, target: &Path| {
            write(
                &at(name).join(".git"),
                &format!("gitdir: {}\n", target.display()),
            );
        };
        link("thief", &mine);
        link("thief-of-side", &mine.join("worktrees/side"));
        link("thief-of-part", &mine.join("modules/part"));
        link("thief-of-own-dir", &at("thief-of-own-dir/data"));
        write(&at("thief-of-own-dir/data/HEAD"), "ref: refs/heads/main\n");
        write(
            &at("thief-of-own-dir/data/commondir"),
            mine.to_str().unwrap(),
        );
        let back = at("thief-of-own-dir/.git");
        write(&at("thief-of-own-dir/data/gitdir"), back.to_str().unwrap());
        write(
            &at("thief-by-commondir/.git/HEAD"),
            "ref: refs/heads/main\n",
        );
        write(
            &at("thief-by-commondir/.git/commondir"),
            mine.to_str().unwrap(),
        );
        fs::create_dir(at("thief-by-link")).unwrap();
        std::os::unix::fs::symlink(&mine, at("thief-by-link/.git")).unwrap();
        write(&at("thief-by-config/.git/HEAD"), "ref: refs/heads/main\n");
        let config = mine.join("config");
        std::os::unix::fs::symlink(config, at("thief-by-config/.git/config")).unwrap();
        // A folder around the repository.
        link("", &mine);

        git(
            &at("mine"),
            &["remote", "add", "origin", "https://example.com/mine"],
        );
        let found = |name: &str| {
            let repository = Repository::find(&at(name)).unwrap();
            assert_eq!(repository.root, at(name).components().collect::<PathBuf>());
            (repository.folder().to_owned(), repository.remote())
        };
        let remote = Some("https://example.com/mine".to_owned());
        assert_eq!(found("mine"), (at("mine"), remote.clone()));
        assert_eq!(found("side"), (at("mine"), remote.clone()));
        assert_eq!(found("mine/part").0, mine.join("modules/part"));
        assert_eq!(found("apart").0, at("data"));
        for thief in [
            "thief",
            "thief-of-side",
            "thief-of-part",
            "thief-of-own-dir",
            "thief-by-commondir",
            "thief-by-link",
            "thief-by-config",
        ] {
            assert_eq!(found(thief), (at(thief), None), "{thief}");
        }
        assert_eq!(found(""), (top.clone(), None));
    }
}
