//! Resolves a directory to its project. Writing and reading use the same resolver.
//!
//! The name of a folder is not enough: two repositories called `app` would share a
//! memory. A project's key is the repository's remote in a normalised spelling, so clones
//! and working trees share one project; without a remote it is the canonical path. The home
//! and temporary directories themselves are never a project, but a folder below them is.

use std::path::{Path, PathBuf};

use crate::files::PATH_MAX;
use crate::git::{Head, Repository};
use crate::redact;

/// The settings of the resolver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Directories that are never a project: home and temporary ones.
    pub not_projects: Vec<PathBuf>,
    /// Whether each working tree of a repository is a project of its own.
    pub separate_worktrees: bool,
}

impl Rules {
    fn is_no_project(&self, dir: &Path) -> bool {
        dir.parent().is_none()
            || self
                .not_projects
                .iter()
                .any(|it| it == dir || canonical(it) == dir)
    }
}

/// The project, root and git HEAD of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The project's key; none for a directory that is not a project.
    pub project: Option<String>,
    /// The top of the working tree, or the folder itself outside of a repository.
    pub root: Option<PathBuf>,
    pub head: Head,
}

impl Place {
    /// The name of a file in the memory: its path relative to the root. None for the root itself.
    pub fn name_of(&self, file: &str) -> Option<String> {
        let root = self.root.as_deref();
        let below = root.and_then(|root| Path::new(file).strip_prefix(root).ok());
        let name = below.map_or(file, |it| it.to_str().unwrap_or(file));
        (!matches!(name, "" | "." | "./")).then(|| name.to_owned())
    }
}

/// Resolves the project that `dir` belongs to.
pub fn resolve(dir: &Path, rules: &Rules) -> Place {
    if dir.as_os_str().len() > PATH_MAX {
        return Place::default();
    }
    let dir = canonical(dir);
    // A directory that was deleted still belongs to the repository it was in.
    let existing = dir.ancestors().find(|it| it.exists()).unwrap_or(&dir);
    // A repository in the home directory (dotfiles) does not include the folders below it.
    let repository = Repository::find(existing).filter(|it| !rules.is_no_project(&it.root));
    let Some(repository) = repository else {
        let project = (!rules.is_no_project(&dir)).then(|| path_key(&dir));
        return Place {
            root: project.is_some().then_some(dir),
            project,
            head: Head::default(),
        };
    };
    let mut project = repository
        .remote()
        .and_then(|url| normalise_remote(&url))
        .unwrap_or_else(|| path_key(repository.folder()));
    if rules.separate_worktrees
        && let Some(name) = repository.worktree_name()
    {
        project = format!("{project}#{}", redact::identifier(name));
    }
    Place {
        project: Some(project),
        head: repository.head(),
        root: Some(repository.root),
    }
}

/// A short name to show to people: the last part of a key.
pub fn name(key: &str) -> &str {
    key.trim_end_matches('/').rsplit('/').next().unwrap_or(key)
}

/// Normalises a remote's URL to `github.com/org/repo`; none for a local path.
///
/// Two spellings have one key only if they lead to the same repository. Host names ignore case,
/// paths do not. A port is left out if it is the usual one of its scheme. `h:x` is `x` in the login's
/// home directory on the host, `h~/x` here, and `ssh://h/x` is `/x`. Forges are an exception: they ignore
/// the case of paths, and all their spellings lead to the same repository.
pub fn normalise_remote(url: &str) -> Option<String> {
    let url = url.trim();
    let (scheme, authority, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((scheme, rest)) => {
            let rest = rest.split(['?', '#']).next()?;
            let (authority, path) = rest.split_once('/')?;
            (scheme.to_lowercase(), authority, path)
        }
        // `git@host:org/repo`, the form without a scheme.
        None => {
            let (authority, path) = url.split_once(':')?;
            if authority.contains('/') || authority.len() < 2 {
                return None;
            }
            (String::new(), authority, path)
        }
    };
    let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => (host, port),
        _ => (host, ""),
    };
    let host = host.to_lowercase();
    let is_forge = host.split('.').any(|it| FORGES.contains(&it));
    let by_ssh = scheme.contains("ssh");
    let usual = matches!(
        (scheme.as_str(), port),
        (_, "") | ("https", "443") | ("http", "80") | ("git", "9418")
    );
    let port = if usual || (by_ssh && (is_forge || port == "22")) {
        String::new()
    } else {
        format!(":{port}")
    };
    // The login `git` is what forges use, also those that are not known by their name.
    let in_home = scheme.is_empty() && !path.starts_with('/') && !is_forge && login != "git";
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    if host.is_empty() || path.is_empty() {
        return None;
    }
    let path = redact::identifier(path.to_owned());
    let path = if is_forge { path.to_lowercase() } else { path };
    let home = if in_home { "~" } else { "" };
    Some(format!("{host}{port}{home}/{path}"))
}

/// Parts of host names by which a forge is recognised that ignores the case of repository names.
const FORGES: [&str; 3] = ["github", "gitlab", "bitbucket"];

fn path_key(path: &Path) -> String {
    redact::identifier(path.to_string_lossy().into_owned())
}

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_remote_has_one_key_however_it_is_spelled() {
        for url in [
            "https://github.com/Acme/Pay.git",
            "https://user:secret@github.com/acme/pay",
            "git@github.com:acme/pay.git",
            "ssh://git@github.com:22/acme/pay/",
        ] {
            assert_eq!(
                normalise_remote(url).as_deref(),
                Some("github.com/acme/pay"),
                "{url}"
            );
        }
        for url in [
            "/srv/git/pay.git",
            "../pay",
            "file:///srv/pay",
            "",
            "c:/pay",
        ] {
            assert_eq!(normalise_remote(url), None, "{url}");
        }
    }

    #[test]
    fn remotes_that_may_be_two_repositories_have_two_keys() {
        for (url, key) in [
            ("https://localhost:3000/acme/pay", "localhost:3000/acme/pay"),
            ("https://localhost:4000/acme/pay", "localhost:4000/acme/pay"),
            ("https://LOCALHOST:443/acme/pay", "localhost/acme/pay"),
            ("http://[::1]:8080/acme/pay", "[::1]:8080/acme/pay"),
            ("https://h.example/Team/App.git", "h.example/Team/App"),
            ("https://h.example/team/app?token=x", "h.example/team/app"),
            ("ssh://hub/srv/x", "hub/srv/x"),
            ("hub:/srv/x", "hub/srv/x"),
            ("hub:srv/x", "hub~/srv/x"),
            ("git@hub:srv/x", "hub/srv/x"),
            ("ssh://git@hub:2222/srv/x", "hub:2222/srv/x"),
            ("ssh://git@gitlab.h:2222/Srv/x", "gitlab.h/srv/x"),
            ("https://gitlab.h/srv/X", "gitlab.h/srv/x"),
        ] {
            assert_eq!(normalise_remote(url).as_deref(), Some(key), "{url}");
        }
    }

    #[test]
    fn a_path_that_cannot_exist_is_no_project() {
        let long = format!("/{}", "a/".repeat(100_000));
        assert_eq!(
            resolve(Path::new(&long), &Rules::default()),
            Place::default()
        );
    }

    #[test]
    fn two_folders_of_one_name_are_two_projects() {
        let dir = tempfile::tempdir().unwrap();
        let rules = Rules::default();
        let keys = ["a/app", "b/app"].map(|name| {
            let root = dir.path().join(name);
            fs::create_dir_all(root.join(".git")).unwrap();
            fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::create_dir_all(root.join("src")).unwrap();
            let project = resolve(&root.join("src"), &rules).project.unwrap();
            assert_eq!(Some(project.clone()), resolve(&root, &rules).project);
            project
        });
        assert_ne!(keys[0], keys[1]);
        assert_eq!(name(&keys[0]), "app");
    }

    #[test]
    fn home_itself_is_no_project_and_a_folder_below_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir_all(home.join(".git")).unwrap();
        fs::write(home.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::create_dir_all(home.join("work")).unwrap();
        let rules = Rules {
            not_projects: vec![home.clone()],
            ..Rules::default()
        };
        assert_eq!(resolve(&home, &rules), Place::default());
        let below = resolve(&home.join("work"), &rules);
        assert_eq!(below.root, Some(canonical(&home.join("work"))));
    }

    #[test]
    fn a_linked_working_tree_shares_its_repositorys_project() {
        let dir = tempfile::tempdir().unwrap();
        let git = |at: &Path, args: &[&str]| {
            let done = std::process::Command::new("git")
                .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
                .args(args)
                .current_dir(at)
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        let main = dir.path().join("main");
        fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q", "-b", "main"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&main, &["worktree", "add", "-q", "../side", "-b", "side"]);
        let rules = Rules::default();
        let main_place = resolve(&main, &rules);
        let side_place = resolve(&dir.path().join("side"), &rules);
        assert_eq!(main_place.project, side_place.project);
        assert_eq!(side_place.head.branch.as_deref(), Some("side"));
        assert_eq!(side_place.head.commit, main_place.head.commit);
        assert!(side_place.head.commit.is_some());
    }
}
