//! Every command and hook agrees on the project of a folder: in many layouts of folders and
//! repositories, a canary is stored in one folder and looked for in another.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Host, Sandbox};

/// A sandbox in which folders and repositories are made.
struct Layouts {
    sandbox: Sandbox,
    canaries: std::cell::Cell<u32>,
}

impl Layouts {
    fn new() -> Layouts {
        Layouts {
            sandbox: Sandbox::new(),
            canaries: std::cell::Cell::new(100),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.sandbox.user_home().join(name)
    }

    fn folder(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// A repository with one commit and, if given, a remote.
    fn repository(&self, name: &str, remote: Option<&str>) -> PathBuf {
        let path = self.folder(name);
        git(&path, &["init", "-q", "-b", "main"]);
        std::fs::write(path.join("a.txt"), name).unwrap();
        git(&path, &["add", "a.txt"]);
        git(&path, &["commit", "-q", "-m", "first"]);
        if let Some(remote) = remote {
            git(&path, &["remote", "add", "origin", remote]);
        }
        path
    }

    /// A session in `dir` that leaves a canary in its memory.
    fn send(&self, dir: &Path, canary: &str) {
        let host = Host::new(&format!("session-{canary}"), dir);
        self.sandbox
            .run_hook("context", dir, &host.start("startup"));
        self.sandbox
            .run_hook("new", dir, &host.prompt("Commit what is staged"));
        let subject = "fix: check tokens before the card is charged";
        let body =
            format!("`charge` refuses {canary} tokens before it asks the bank for the money.");
        self.sandbox.run_hook(
            "save",
            dir,
            &host.bash(
                &format!("git commit -m '{subject}' -m '{body}'"),
                &format!("[main 3f9c2ab] {subject}\n 1 file changed, 1 insertion(+)"),
            ),
        );
        self.sandbox
            .run_hook("summary", dir, &host.stop("Committed."));
        self.sandbox.drain();
    }

    /// Whether a session that starts in `dir` is shown the canary; a search there must agree.
    fn finds(&self, dir: &Path, canary: &str) -> bool {
        let host = Host::new("listener", dir);
        let context = self
            .sandbox
            .run_hook("context", dir, &host.start("startup"));
        let in_context = context.contains(canary);
        // A command can only run in a folder that exists.
        if dir.is_dir() {
            let found = self
                .sandbox
                .command(&["search", canary])
                .current_dir(dir)
                .output()
                .unwrap();
            let in_search = String::from_utf8(found.stdout)
                .unwrap()
                .contains("before it asks the bank");
            assert_eq!(
                in_search,
                in_context,
                "the search and the session disagree in {}",
                dir.display()
            );
        }
        in_context
    }

    #[track_caller]
    fn check(&self, sent_in: &Path, searched_in: &Path, expected: bool) {
        self.canaries.set(self.canaries.get() + 1);
        let canary = format!("canary{}", self.canaries.get());
        self.send(sent_in, &canary);
        assert_eq!(
            self.finds(searched_in, &canary),
            expected,
            "sent in {}, searched in {}",
            sent_in.display(),
            searched_in.display()
        );
    }
}

fn git(at: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

#[test]
fn two_repositories_of_one_name_are_apart() {
    let layouts = Layouts::new();
    let (a, b) = (
        layouts.repository("a/app", None),
        layouts.repository("b/app", None),
    );
    layouts.check(&a, &a, true);
    layouts.check(&a, &b, false);
}

#[test]
fn two_clones_of_one_remote_are_one_however_it_is_spelled() {
    let layouts = Layouts::new();
    let a = layouts.repository("a", Some("https://github.com/Acme/Pay.git"));
    for (number, spelling) in [
        "git@github.com:acme/pay.git",
        "ssh://git@github.com:22/acme/pay",
        "https://me:pw@github.com/acme/pay/",
    ]
    .iter()
    .enumerate()
    {
        layouts.check(
            &a,
            &layouts.repository(&format!("clone{number}"), Some(spelling)),
            true,
        );
    }
    layouts.check(
        &a,
        &layouts.repository("fork", Some("https://github.com/other/pay.git")),
        false,
    );
    layouts.check(
        &a,
        &layouts.repository("elsewhere", Some("https://example.org/acme/pay.git")),
        false,
    );
}

#[test]
fn credentials_in_a_remote_are_not_part_of_the_project() {
    let layouts = Layouts::new();
    let a = layouts.repository("a", Some("https://me:hunter2@example.com/acme/pay.git"));
    layouts.check(&a, &a, true);
    let projects = layouts.sandbox.run(&["projects"]);
    assert!(
        projects.contains("example.com/acme/pay") && !projects.contains("hunter2"),
        "{projects}"
    );
}

#[test]
fn a_folder_of_a_repository_is_the_repository() {
    let layouts = Layouts::new();
    let root = layouts.repository("mono", None);
    let package = layouts.folder("mono/packages/web");
    layouts.check(&root, &package, true);
    layouts.check(&package, &root, true);
}

#[test]
fn working_trees_share_unless_a_setting_separates_them() {
    let layouts = Layouts::new();
    let main = layouts.repository("main", None);
    git(&main, &["worktree", "add", "-q", "../side", "-b", "side"]);
    let side = layouts.path("side");
    layouts.check(&main, &side, true);
    layouts.check(&side, &main, true);

    std::fs::create_dir_all(layouts.sandbox.home()).unwrap();
    std::fs::write(
        layouts.sandbox.home().join("config.toml"),
        "[project]\nseparate_worktrees = true\n",
    )
    .unwrap();
    layouts.check(&side, &main, false);
    layouts.check(&side, &side, true);
}

#[test]
fn a_working_tree_that_is_removed_leaves_its_memory_with_the_repository() {
    let layouts = Layouts::new();
    let main = layouts.repository("main", None);
    git(&main, &["worktree", "add", "-q", "../side", "-b", "side"]);
    let side = layouts.path("side");
    layouts.send(&side, "canaryone");
    // The session goes on for a moment after its folder was removed.
    git(&main, &["worktree", "remove", "--force", "../side"]);
    layouts.send(&side, "canaryone");
    assert!(layouts.finds(&main, "canaryone"));
    assert!(!layouts.finds(&side, "canaryone"));
}

#[test]
fn a_submodule_is_a_project_of_its_own() {
    let layouts = Layouts::new();
    let library = layouts.repository("library", None);
    let app = layouts.repository("app", None);
    git(
        &app,
        &[
            "submodule",
            "add",
            "-q",
            library.to_str().unwrap(),
            "vendor/library",
        ],
    );
    let inside = layouts.path("app/vendor/library");
    layouts.check(&app, &inside, false);
    layouts.check(&inside, &app, false);
    layouts.check(&inside, &inside, true);
}

#[test]
fn a_link_leads_to_the_project_behind_it() {
    let layouts = Layouts::new();
    let real = layouts.repository("real", None);
    let link = layouts.path("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    layouts.check(&link, &real, true);
}

#[test]
fn a_plain_folder_is_a_project_and_its_neighbours_are_others() {
    let layouts = Layouts::new();
    let (notes, other) = (layouts.folder("notes"), layouts.folder("other"));
    layouts.check(&notes, &notes, true);
    layouts.check(&notes, &other, false);
    layouts.check(&notes, &layouts.folder("notes/deeper"), false);
}

#[test]
fn home_and_temporary_directories_belong_to_nobody() {
    let layouts = Layouts::new();
    let home = layouts.sandbox.user_home();
    let below = layouts.folder("below");
    for nowhere in [home.as_path(), Path::new("/tmp"), Path::new("/")] {
        layouts.check(nowhere, nowhere, false);
        layouts.check(nowhere, &below, false);
    }
    // An event without a project is stored, under no project.
    assert!(
        layouts.sandbox.count(
            "memory.db",
            "select count(*) from sessions where project_id is null"
        ) >= 3
    );
    let found = layouts
        .sandbox
        .run(&["search", "bank", "--all-projects", "--format", "json"]);
    assert!(found.contains("\"project\": null"), "{found}");
}

#[test]
fn a_repository_at_home_does_not_swallow_what_is_below() {
    let layouts = Layouts::new();
    git(&layouts.sandbox.user_home(), &["init", "-q"]);
    let (a, b) = (layouts.folder("a"), layouts.folder("b"));
    layouts.check(&a, &b, false);
    layouts.check(&a, &a, true);
}

#[test]
fn a_folder_that_was_deleted_still_belongs_to_its_repository() {
    let layouts = Layouts::new();
    let root = layouts.repository("app", None);
    let gone = layouts.folder("app/build/tmp");
    std::fs::remove_dir_all(layouts.path("app/build")).unwrap();
    layouts.check(&gone, &root, true);
}

#[test]
fn a_moved_repository_is_found_again_when_told() {
    let layouts = Layouts::new();
    let before = layouts.repository("old/place", None);
    layouts.send(&before, "canarymoved");
    std::fs::create_dir_all(layouts.path("new")).unwrap();
    let after = layouts.path("new/place");
    std::fs::rename(&before, &after).unwrap();
    assert!(!layouts.finds(&after, "canarymoved"));
    let printed = layouts
        .sandbox
        .run(&["projects", "move", "place", after.to_str().unwrap()]);
    assert!(printed.contains("is found at"), "{printed}");
    assert!(layouts.finds(&after, "canarymoved"));
}

#[test]
fn merged_projects_share_and_renamed_ones_are_known_by_their_name() {
    let layouts = Layouts::new();
    let (a, b) = (layouts.folder("a"), layouts.folder("b"));
    layouts.send(&a, "canaryfirst");
    layouts.send(&b, "canarysecond");
    layouts
        .sandbox
        .run(&["projects", "merge", "a", b.to_str().unwrap()]);
    for dir in [&a, &b] {
        assert!(layouts.finds(dir, "canaryfirst") && layouts.finds(dir, "canarysecond"));
    }
    layouts.sandbox.run(&["projects", "rename", "b", "both"]);
    let listed: serde_json::Value =
        serde_json::from_str(&layouts.sandbox.run(&["projects", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["name"], "both");
    assert_eq!(listed[0]["sessions"], 2);
    // Later events are stored under the merged project too.
    layouts.send(&a, "canarythird");
    assert!(layouts.finds(&b, "canarythird"));
}

#[test]
fn hits_of_several_projects_name_theirs_and_a_slip_of_the_hand_is_said() {
    let layouts = Layouts::new();
    for name in ["a", "b"] {
        layouts.send(&layouts.folder(name), &format!("canary{name}"));
    }
    let ask = |arguments: &[&str]| {
        let mut command = layouts.sandbox.command(arguments);
        let output = command.current_dir(layouts.path("a")).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(printed).unwrap())
    };
    for format in ["index", "sessions"] {
        for scope in [
            &["--all-projects"][..],
            &["--project", "a", "--project", "b"],
        ] {
            let (_, printed) = ask(&[&["search", "bank", "--format", format], scope].concat());
            assert!(
                printed.contains("[a] ") && printed.contains("[b] "),
                "{printed}"
            );
        }
        let (_, printed) = ask(&["search", "bank", "--format", format]);
        assert!(
            !printed.contains("[a] ") && !printed.is_empty(),
            "{printed}"
        );
    }
    for command in ["search", "sessions", "timeline"] {
        let arguments = match command {
            "sessions" => vec![command, "--project", "bb"],
            _ => vec![command, "bank", "--project", "bb"],
        };
        let (code, printed) = ask(&arguments);
        assert_eq!(code, Some(1));
        assert!(printed.contains("no project is called 'bb'"), "{printed}");
    }
    let (_, listed) = ask(&["search", "--project", "b"]);
    assert!(listed.contains("canaryb"), "{listed}");
    let (_, beyond) = ask(&["search", "bank", "--offset", "50"]);
    assert_eq!(beyond, "there are no hits after the first 50\n");
    let (_, wordless) = ask(&["search", "🦀"]);
    assert!(
        wordless.contains("no searchable words; showing the newest"),
        "{wordless}"
    );
}

#[test]
fn two_projects_of_one_name_are_told_apart_by_their_keys() {
    let layouts = Layouts::new();
    let (a, b) = (layouts.folder("a/app"), layouts.folder("b/app"));
    layouts.send(&a, "canarya");
    layouts.send(&b, "canaryb");
    let refused = layouts
        .sandbox
        .command(&["projects", "rename", "app", "x"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(
        error.contains("several projects are called app") && error.contains("b/app"),
        "{error}"
    );
    layouts.sandbox.run(&[
        "projects",
        "rename",
        std::fs::canonicalize(&b).unwrap().to_str().unwrap(),
        "second",
    ]);
}

#[test]
fn nothing_in_a_project_changes_the_settings() {
    let layouts = Layouts::new();
    let project = layouts.repository("app", None);
    let setting = "[capture]\nexclude_projects = [\"*\"]\nboring_tools = [\"Bash\"]\n";
    for name in [
        "config.toml",
        "foreword.toml",
        ".foreword/config.toml",
        ".foreword.toml",
        ".claude/foreword.toml",
    ] {
        let path = project.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, setting).unwrap();
    }
    std::fs::write(
        project.join(".env"),
        "FOREWORD_OFF=1\nFOREWORD_HOME=/elsewhere\n",
    )
    .unwrap();
    std::fs::write(project.join("off"), "everywhere\n").unwrap();
    layouts.check(&project, &project, true);
}
