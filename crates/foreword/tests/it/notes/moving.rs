//! Notes are listed, exported, imported and merged by git.

use std::fs;

use serde_json::{Value, json};

use super::{DRAFT, Desk, git, printed};
use crate::support::{assert_same, tree};

#[test]
fn notes_are_listed_with_their_problems() {
    let desk = Desk::new();
    assert_eq!(
        desk.run(&["notes"]),
        "no notes yet; `foreword summarize` writes one\n"
    );
    desk.save("s1", DRAFT);
    fs::create_dir_all(desk.file("web/conversations")).unwrap();
    fs::write(
        desk.file("web/conversations/s2.md"),
        "# \u{1b}[31mMine\nwords\n",
    )
    .unwrap();
    fs::write(desk.file("conversations/s0.md"), b"\xff").unwrap();
    let list = desk.run(&["notes"]);
    let list = list.replace(desk.project.to_str().unwrap(), "PROJECT");
    insta::assert_snapshot!(list, @"
    TODAY  Retries in the client  _memory/conversations/s1.md
                PROJECT/_memory/conversations/s0.md is not UTF-8; fix or move it, it was left alone
    -           ␛[31mMine  _memory/web/conversations/s2.md
                line 2: text before the first section
                line 2: `## Context` is missing or empty: one or two sentences
                line 2: `## Tracking Points` is missing or empty: lines `- Label: text`
    ");
    let rows: Value =
        serde_json::from_str(&desk.run(&["notes", "--json", "--scope", "web"])).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!(rows[0]["session"], "s2");
    assert_eq!(rows[0]["problems"].as_array().unwrap().len(), 3);
}

#[test]
fn what_is_exported_comes_in_elsewhere_byte_by_byte() {
    let (here, there) = (Desk::new(), Desk::new());
    here.save("s1", DRAFT);
    fs::write(here.file("master.md"), "# Master\n").unwrap();
    fs::create_dir_all(here.file("web/conversations")).unwrap();
    fs::write(here.file("web/conversations/s2.md"), DRAFT).unwrap();
    let archive = here.sandbox.user_home().join("notes.json");
    let archive = archive.to_str().unwrap();
    assert_eq!(
        here.run(&["notes", "export", archive]),
        "3 files exported\n"
    );
    // An archive is not overwritten either.
    assert!(
        here.fail(&["notes", "export", archive])
            .contains("File exists")
    );
    insta::assert_snapshot!(there.run(&["notes", "import", archive]), @"
    new       _memory/conversations/s1.md
    new       _memory/master.md
    new       _memory/web/conversations/s2.md
    3 new; 0 files were the same
    ");
    let below = |desk: &Desk| {
        let tree = tree(&desk.project.join("_memory")).into_iter();
        let root = desk.project.clone();
        tree.map(move |(path, it)| (path.strip_prefix(&root).unwrap().to_owned(), it))
            .collect()
    };
    assert_same(&below(&here), &below(&there));
    let again = there.run(&["notes", "import", archive]);
    assert_eq!(again, "0 new; 3 files were the same\n");
    let web: Value = serde_json::from_str(&stdout_of(
        &here,
        &["notes", "export", "-", "--scope", "web"],
    ))
    .unwrap();
    let paths: Vec<_> = web["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["path"])
        .collect();
    assert_eq!(paths, ["web/conversations/s2.md"]);
}

/// Standard output alone.
fn stdout_of(desk: &Desk, arguments: &[&str]) -> String {
    String::from_utf8(desk.command(arguments).output().unwrap().stdout).unwrap()
}

#[test]
fn an_import_leaves_what_differs_unless_told_and_then_keeps_the_old_text() {
    let (here, there) = (Desk::new(), Desk::new());
    here.save("s1", DRAFT);
    here.save("s2", DRAFT);
    let archive = here.sandbox.user_home().join("notes.json");
    let archive = archive.to_str().unwrap();
    here.run(&["notes", "export", archive]);
    there.save("s1", &DRAFT.replace("done", "mine"));
    let mine = there.note("s1");
    insta::assert_snapshot!(there.fail(&["notes", "import", archive]), @"
    new       _memory/conversations/s2.md
    differs   _memory/conversations/s1.md
    1 new; 0 files were the same
    foreword: 1 file differs: left alone; --overwrite replaces, and keeps the old text in archive/
    ");
    assert_eq!(there.note("s1"), mine);
    assert_eq!(there.note("s2"), here.note("s2"));
    insta::assert_snapshot!(there.run(&["notes", "import", archive, "--overwrite"]), @"
    replaced  _memory/conversations/s1.md
    0 new; 1 file was the same
    ");
    assert_eq!(there.note("s1"), here.note("s1"));
    let kept = fs::read_dir(there.file("archive"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    assert_eq!(fs::read_to_string(kept).unwrap(), mine);
}

#[test]
fn an_archive_is_checked_whole_before_anything_is_written() {
    let (here, there) = (Desk::new(), Desk::new());
    here.save("s1", DRAFT);
    here.save("s2", DRAFT);
    let good: Value = serde_json::from_str(&stdout_of(&here, &["notes", "export", "-"])).unwrap();
    let before = tree(&there.sandbox.user_home());
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut bad = good.clone();
        change(&mut bad);
        let archive = here.sandbox.user_home().join("bad.json");
        fs::write(&archive, bad.to_string()).unwrap();
        let fails = there.fail(&["notes", "import", archive.to_str().unwrap(), "--overwrite"]);
        assert_same(&before, &tree(&there.sandbox.user_home()));
        fails
    };
    let mut seen = String::new();
    for path in [
        "../../main.rs",
        "/etc/x.md",
        "conversations/../../../x.md",
        ".git/x.md",
        "conversations/.x.md",
        "conversations\\x.md",
        "hook.sh",
        "",
        "conversations/S1.md",
    ] {
        seen += &refused(&|it| it["files"][1]["path"] = path.into());
    }
    seen += &refused(&|it| {
        let text = it["files"][1]["text"]
            .as_str()
            .unwrap()
            .replace("done", "gone");
        it["files"][1]["text"] = text.into();
    });
    seen += &refused(&|it| it["files"][1]["size"] = 3.into());
    seen += &refused(&|it| it["foreword_notes"] = 2.into());
    seen += &refused(&|it| *it = json!({"notes": []}));
    insta::assert_snapshot!(seen, @r"
    foreword: `../../main.rs` is not a path in a project's memory; nothing was written
    foreword: `/etc/x.md` is not a path in a project's memory; nothing was written
    foreword: `conversations/../../../x.md` is not a path in a project's memory; nothing was written
    foreword: `.git/x.md` is not a path in a project's memory; nothing was written
    foreword: `conversations/.x.md` is not a path in a project's memory; nothing was written
    foreword: `conversations\x.md` is not a path in a project's memory; nothing was written
    foreword: `hook.sh` is not a path in a project's memory; nothing was written
    foreword: `` is not a path in a project's memory; nothing was written
    foreword: `conversations/S1.md` is not a path in a project's memory; nothing was written
    foreword: `conversations/s2.md` does not have the size and hash in the archive; nothing was written
    foreword: `conversations/s2.md` does not have the size and hash in the archive; nothing was written
    foreword: this archive has format 2, and this program reads only format 1; update Foreword
    foreword: this is not an archive of notes: missing field `foreword_notes` at line 1 column 12
    ");
}

#[test]
fn an_export_replaces_secrets_and_says_what_it_left_out() {
    let desk = Desk::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    desk.save("s1", DRAFT);
    desk.edit("s1", "three times", &token);
    fs::write(desk.file("conversations/bad.md"), b"\xff").unwrap();
    let archive = desk.sandbox.user_home().join("notes.json");
    let printed = desk.fail(&["notes", "export", archive.to_str().unwrap()]);
    let printed = printed.replace(desk.project.to_str().unwrap(), "PROJECT");
    insta::assert_snapshot!(printed, @"
    1 file exported, 1 secret replaced
    PROJECT/_memory/conversations/bad.md is not UTF-8; fix or move it, it was left alone
    foreword: 1 file was left out
    ");
    assert!(!fs::read_to_string(archive).unwrap().contains(&token));
}

#[test]
fn two_thousand_notes_are_listed_and_exported() {
    let here = Desk::new();
    fs::create_dir_all(here.file("conversations")).unwrap();
    for number in 0..2000 {
        fs::write(here.file(&format!("conversations/s{number:04}.md")), DRAFT).unwrap();
    }
    assert_eq!(here.run(&["notes"]).lines().count(), 2000);
    let archive = here.sandbox.user_home().join("notes.json");
    let archive = archive.to_str().unwrap();
    assert_eq!(
        here.run(&["notes", "export", archive]),
        "2000 files exported\n"
    );
}

#[test]
fn notes_of_two_people_merge_without_a_conflict() {
    let desk = Desk::new();
    let git = |arguments: &[&str]| git(&desk.project, arguments);
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    for (branch, session) in [("one", "s1"), ("two", "s2")] {
        git(&["switch", "-qc", branch, "main"]);
        desk.save(session, DRAFT);
        git(&["add", "."]);
        git(&["commit", "-qm", session]);
    }
    git(&["merge", "-q", "--no-edit", "one"]);
    assert_eq!(git(&["status", "--porcelain"]), "");
    let list = desk.run(&["notes"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    assert_eq!(
        printed(&desk.draft("s1", DRAFT)),
        "_memory/conversations/s1.md says all of this already\n"
    );
}
