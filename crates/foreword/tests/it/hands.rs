//! A person corrects, keeps, hides, takes back and carries away what is remembered, from the shell.

use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Host, Sandbox};

/// A sandbox with a project in which commands run.
struct Desk {
    sandbox: Sandbox,
    project: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let sandbox = Sandbox::new();
        let project = sandbox.project("shop");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        std::fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        Desk { sandbox, project }
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = self.sandbox.command(arguments);
        command.current_dir(&self.project).output().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments)).unwrap()
    }

    /// The error of a command that fails with this exit code.
    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        String::from_utf8(output.stderr).unwrap()
    }

    /// A session in which a line of a file is changed.
    fn session(&self, name: &str, request: &str, commit: &str) {
        let host = Host::new(name, &self.project);
        let hook = |hook, input: &Value| self.sandbox.run_hook(hook, &self.project, input);
        hook("context", &host.start("startup"));
        hook("new", &host.prompt(request));
        let new = format!("let total = round_half_up(sum, {name});");
        hook(
            "save",
            &host.edit("src/money.rs", "let total = sum.floor();", &new),
        );
        let committed = format!("[main {name}a2b3c4] {commit}\n 1 file changed");
        hook(
            "save",
            &host.bash(&format!("git commit -am '{commit}'"), &committed),
        );
        let reply = format!("{commit}. Session {name} made the change in src/money.rs.");
        hook("summary", &host.stop(&reply));
        hook("cleanup", &host.end());
    }

    fn number(&self, words: &str) -> String {
        let hits = self.json(&["search", words, "--kind", "observation", "--format", "json"]);
        hits[0]["id"].to_string()
    }

    fn index(&self) -> String {
        let preview = self.run(&["context", "--preview"]);
        preview.split("Why each line").next().unwrap().to_owned()
    }

    fn items(&self) -> Vec<Value> {
        let mut export = self.json(&["export"]);
        let mut items = export["items"].as_array_mut().unwrap().clone();
        for item in &mut items {
            item["id"] = json!(0);
        }
        items.sort_by_key(|it| it["uuid"].to_string());
        items
    }
}

#[test]
fn what_was_corrected_and_forgotten_never_comes_back() {
    let mut desk = Desk::new();
    desk.sandbox.keep_workers_away();
    desk.run(&["remember", "We never use an ORM here.", "--pin"]);
    desk.session(
        "s1",
        "round the totals of the invoice",
        "Round totals down as the tax office wants",
    );
    desk.session(
        "s2",
        "Make the vault open with a new code",
        "Open the vault with the code kumquat",
    );
    desk.sandbox.drain();
    let backup = desk.run(&["backup"]);
    let backup = backup
        .split_whitespace()
        .find(|it| it.ends_with(".db"))
        .unwrap();
    let old = desk.sandbox.home().join("old.json");
    std::fs::write(&old, desk.run(&["export"])).unwrap();

    let [wrong, secret] = ["round totals", "kumquat"].map(|it| desk.number(it));
    desk.run(&[
        "edit",
        &wrong,
        "--title",
        "Totals are rounded half up",
        "--text",
        "",
        "--fact",
        "By law",
    ]);
    let turn = desk.json(&["show", &secret, "--format", "json"])["same_turn"].clone();
    let turn: Vec<String> = turn
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    let turn: Vec<&str> = turn.iter().map(String::as_str).collect();
    desk.run(&[&["forget", &secret, "--yes"], turn.as_slice()].concat());

    let check = |desk: &Desk, after: &str| {
        let index = desk.index();
        assert!(
            index.contains("half up") && !index.contains("tax office"),
            "{after}: {index}"
        );
        assert!(!index.contains("kumquat"), "{after}: {index}");
        let found = desk.run(&["search", "kumquat vault"]);
        assert!(found.contains("nothing about"), "{after}: {found}");
        let titles = desk.run(&["search", "--type", "feature", "--all-projects"]);
        assert!(!titles.contains("tax office"), "{after}: {titles}");
        assert_eq!(desk.number("totals half up"), wrong, "{after}");
    };
    check(&desk, "at once");
    desk.run(&["redo", "s1"]);
    check(&desk, "after redo");
    desk.sandbox.keep_workers_away();
    // Another event of each turn, and a worker that is killed before it has stored it.
    for (session, call) in [("s1", "late-1"), ("s2", "late-2")] {
        let host = Host::new(session, &desk.project);
        let mut late = host.edit("src/late.rs", "a", "b");
        late["tool_use_id"] = call.into();
        desk.sandbox.run_hook("save", &desk.project, &late);
    }
    desk.sandbox.set("FOREWORD_FAULT", "store:before-commit");
    assert_eq!(desk.output(&["worker", "drain"]).status.code(), None);
    desk.sandbox.unset("FOREWORD_FAULT");
    desk.sandbox.drain();
    check(&desk, "after a killed worker");
    let imported = desk.run(&["import", "file", old.to_str().unwrap()]);
    assert!(imported.contains("0 items new"), "{imported}");
    check(&desk, "after re-import");
    let restored = desk.output(&["restore", backup, "--yes"]);
    if !restored.status.success() {
        // `restore` does not ask.
        desk.run(&["restore", backup]);
    }
    check(&desk, "after restore");
    desk.run(&["redo", "s1"]);
    check(&desk, "after restore and redo");
}

#[test]
fn twelve_sessions_later_the_pin_is_first_and_what_is_hidden_is_not_there() {
    let desk = Desk::new();
    desk.sandbox.keep_workers_away();
    let id =
        desk.json(&["remember", "We never use an ORM here.", "--pin", "--json"])["id"].to_string();
    desk.session(
        "s0",
        "Make the vault open with a new code",
        "Open the vault with the code kumquat",
    );
    desk.sandbox.drain();
    let hidden = desk.number("kumquat");
    desk.run(&["hide", &hidden]);
    for number in 1..=12 {
        desk.session(
            &format!("s{number}"),
            "correct a typo in the readme",
            &format!("Correct typo {number} in the readme"),
        );
    }
    desk.sandbox.drain();
    let host = Host::new("new", &desk.project);
    let shown = desk
        .sandbox
        .run_hook("context", &desk.project, &host.start("startup"));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let shown = shown["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .unwrap();
    let first = shown.lines().find(|it| it.starts_with("- #")).unwrap();
    assert!(first.starts_with(&format!("- #{id} ")), "{shown}");
    assert!(!shown.contains("kumquat"), "{shown}");
    // Search finds it, and says so.
    let found = desk.run(&["search", "kumquat", "--type", "feature"]);
    assert!(found.contains("(hidden)"), "{found}");
    let file = desk.project.join("src/money.rs");
    let about = host.before("Read", json!({"file_path": file}));
    let about = desk.sandbox.run_hook("file-context", &desk.project, &about);
    assert!(!about.contains("kumquat"), "{about}");
}

#[test]
fn an_export_read_in_at_a_fresh_home_is_equal_and_somebody_elses_is_marked() {
    let desk = Desk::new();
    desk.sandbox.keep_workers_away();
    desk.run(&[
        "remember",
        "We never use an ORM here.",
        "--pin",
        "--until",
        "2099-01-01",
    ]);
    desk.session(
        "s1",
        "round the totals of the invoice",
        "Totals are rounded half up",
    );
    desk.sandbox.drain();
    let file = desk.sandbox.user_home().join("memory.json");
    std::fs::write(&file, desk.run(&["export", "--format", "json"])).unwrap();
    let path = file.to_str().unwrap();
    let expected = desk.items();
    assert_eq!(
        desk.json(&["import", "file", path, "--json"])["known"],
        expected.len()
    );

    let fresh = Desk::new();
    let counted = fresh.json(&["import", "file", path, "--mine", "--json"]);
    assert_eq!(
        (&counted["new"], &counted["lowered"]),
        (&json!(expected.len()), &json!(0))
    );
    assert_eq!(fresh.items(), expected);

    let other = Desk::new();
    let dry = other.json(&["import", "file", path, "--dry-run", "--json"]);
    assert_eq!(dry["new"], expected.len());
    let said = other.run(&["import", "file", path]);
    assert!(
        said.contains("marked as imported, and no rule of yours"),
        "{said}"
    );
    for item in other
        .items()
        .iter()
        .filter(|it| it["kind"] == "observation")
    {
        assert_eq!(
            (&item["origin"], &item["pinned"]),
            (&json!("import"), &json!(false))
        );
    }
    other.run(&["undo"]);
    assert!(other.items().is_empty());
}

#[test]
fn every_change_can_be_seen_before_it_is_made_and_taken_back_after() {
    let mut desk = Desk::new();
    desk.sandbox.keep_workers_away();
    let keys = ["ghp_abcdefghij", "klmnopqrstuvwxyz0123456789"].concat();
    let said = desk.run(&[
        "remember",
        &format!("The token is {keys}"),
        "--title",
        "Token",
    ]);
    assert!(said.contains("without 1 secret"), "{said}");
    desk.run(&[
        "remember",
        "The limit is 60 requests a minute",
        "--type",
        "discovery",
    ]);
    let before = desk.items();
    for arguments in [
        &["edit", "1", "--title", "Another"][..],
        &["edit", "1", "2", "--type", "bugfix"],
        &["pin", "1", "2"],
        &["hide", "--since", "1d"],
        &["relate", "1", "2", "--supersedes"],
        &["remember", "One more"],
    ] {
        let dry = [arguments, &["--dry-run"]].concat();
        desk.json(&[dry.as_slice(), &["--json"]].concat());
        assert_eq!(desk.items(), before, "{dry:?}");
        let yes = if arguments[0] == "remember" {
            &[][..]
        } else {
            &["--yes"]
        };
        desk.run(&[arguments, yes].concat());
        assert_ne!(desk.items(), before, "{arguments:?}");
        let undone = desk.run(&["undo"]);
        assert!(undone.contains(&format!("{}: ", arguments[0])), "{undone}");
        assert_eq!(desk.items(), before, "{arguments:?}");
    }
    // In an editor: a program that changes the document.
    desk.sandbox.set("EDITOR", "sed -i s/60/90/");
    desk.run(&["edit", "2"]);
    let item = desk.json(&["show", "2", "--history", "--format", "json"]);
    assert_eq!(item["title"], "The limit is 90 requests a minute");
    assert_eq!(
        item["history"][0]["before"]["title"],
        "The limit is 60 requests a minute"
    );
    desk.sandbox.set("EDITOR", "sed -i s/type:/typo:/");
    assert!(desk.refused(1, &["edit", "2"]).contains("no field 'typo'"));
    desk.sandbox.set("EDITOR", "false");
    assert!(desk.refused(1, &["edit", "2"]).contains("failed"));
    desk.sandbox.unset("EDITOR");
    assert!(desk.refused(1, &["edit", "2"]).contains("set EDITOR"));

    let dry = desk.json(&["forget", "--since", "1d", "--dry-run", "--json"]);
    assert_eq!(dry["count"], 2);
    let asked = desk.refused(1, &["forget", "--since", "1d"]);
    assert!(
        asked.contains("Forget 2 items for good?") && asked.contains("--yes"),
        "{asked}"
    );
    desk.run(&["forget", "--since", "1d", "--yes"]);
    assert!(desk.items().is_empty());
    assert!(desk.run(&["undo"]).contains("nothing to undo"));
    for file in desk
        .sandbox
        .files()
        .iter()
        .filter(|it| !it.0.ends_with("hook.log"))
    {
        let text = String::from_utf8_lossy(&file.1);
        assert!(!text.contains(&keys), "{}", file.0.display());
    }
}

#[test]
fn wrong_usage_and_missing_items_are_refused_with_what_to_do() {
    let desk = Desk::new();
    desk.sandbox.keep_workers_away();
    desk.run(&["remember", "One rule"]);
    for (arguments, code, hint) in [
        (&["pin"][..], 1, "name items by their numbers"),
        (&["pin", "9"], 1, "there is no #9"),
        (&["pin", "x"], 64, "is not a number"),
        (
            &["hide", "1", "--since", "1d"],
            1,
            "either numbers or filters",
        ),
        (
            &["forget", "--session", "nowhere", "--yes"],
            1,
            "there is no session",
        ),
        (
            &["forget", "--project", "nowhere", "--yes"],
            1,
            "no project is called",
        ),
        (&["remember"], 64, "required"),
        (&["remember", " "], 1, "text is empty"),
        (
            &["remember", "x", "--until", "yesterday"],
            1,
            "not a time limit",
        ),
        (
            &["remember", "x", "--until", "2001-01-01"],
            1,
            "over already",
        ),
        (&["relate", "1", "1", "--unrelated"], 1, "the same item"),
        (&["relate", "1", "2"], 64, "--supersedes|--unrelated"),
        (&["edit", "1", "--title", " "], 1, "the title is empty"),
        (&["undo", "0"], 64, "0"),
        (&["import", "file", "/nowhere.json"], 1, "could not read"),
        (
            &["projects", "forget", "nowhere", "--yes"],
            1,
            "there is no project",
        ),
        (&["projects", "forget", "shop"], 1, "--yes"),
    ] {
        let refused = desk.refused(code, arguments);
        assert!(refused.contains(hint), "{arguments:?}: {refused}");
    }
    assert_eq!(desk.items().len(), 1);
    desk.run(&["projects", "forget", "shop", "--yes"]);
    assert!(desk.items().is_empty());
    assert!(desk.run(&["projects"]).contains("no project"));
}
