//! Reads the root, branch, commit and remote of a git repository from its own files.
//!
//! A hook never runs git, since starting a process costs more than the whole hook; the few
//! small files that are needed are read directly. If a file is missing or has an unexpected
//! format, the value counts as unknown.

use std::path::{Path, PathBuf};

/// A repository as found from a directory inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top of the working tree.
    pub root: PathBuf,
    /// This working tree's own git directory (HEAD is here).
    pub git_dir: PathBuf,
    /// The git directory that all working trees share (config and refs are here).
    pub common_dir: PathBuf,
}

/// The branch and commit of HEAD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    pub branch: Option<String>,
    pub commit: Option<String>,
}

/// A `packed-refs` file larger than this is not read.
const PACKED_REFS_MAX: u64 = 4 << 20;

impl Repository {
    /// Finds the repository that contains `dir`, from `dir` upwards.
    pub fn find(dir: &Path) -> Option<Repository> {
        dir.ancestors().find_map(Repository::at)
    }

    fn at(root: &Path) -> Option<Repository> {
        let dot_git = root.join(".git");
        let kind = std::fs::metadata(&dot_git).ok()?;
        let git_dir = if kind.is_dir() {
            // An empty `.git` folder is not a repository; git itself goes on looking.
            std::fs::metadata(dot_git.join("HEAD")).ok()?;
            dot_git
        } else {
            // A linked working tree or a submodule: one line, `gitdir: PATH`.
            let link = std::fs::read_to_string(&dot_git).ok()?;
            root.join(link.strip_prefix("gitdir:")?.trim())
        };
        let common_dir = match std::fs::read_to_string(git_dir.join("commondir")) {
            Ok(relative) => git_dir.join(relative.trim()),
            Err(_) => git_dir.clone(),
        };
        Some(Repository {
            root: root.to_owned(),
            git_dir,
            common_dir,
        })
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
        let Ok(head) = std::fs::read_to_string(self.git_dir.join("HEAD")) else {
            return Head::default();
        };
        let head = head.trim();
        let Some(reference) = head.strip_prefix("ref:").map(str::trim) else {
            return Head {
                branch: None,
                commit: commit_id(head),
            };
        };
        Head {
            branch: reference.strip_prefix("refs/heads/").map(str::to_owned),
            commit: self.loose(reference).or_else(|| self.packed(reference)),
        }
    }

    fn loose(&self, reference: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.common_dir.join(reference)).ok()?;
        commit_id(text.trim())
    }

    fn packed(&self, reference: &str) -> Option<String> {
        let path = self.common_dir.join("packed-refs");
        if std::fs::metadata(&path).ok()?.len() > PACKED_REFS_MAX {
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        text.lines().find_map(|line| {
            let (id, name) = line.split_once(' ')?;
            (name == reference).then(|| commit_id(id))?
        })
    }

    /// The URL of `origin`, else of the first remote in the config.
    pub fn remote(&self) -> Option<String> {
        let config = std::fs::read_to_string(self.common_dir.join("config")).ok()?;
        let mut first = None;
        let mut remote = None;
        for line in config.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                remote = section
                    .strip_prefix("remote \"")
                    .and_then(|rest| rest.split('"').next());
            } else if let Some(name) = remote
                && let Some((key, url)) = line.split_once('=')
                && key.trim().eq_ignore_ascii_case("url")
            {
                let url = url.trim().trim_matches('"');
                if name == "origin" {
                    return Some(url.to_owned());
                }
                first.get_or_insert_with(|| url.to_owned());
            }
        }
        first
    }
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
}
