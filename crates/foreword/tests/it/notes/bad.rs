//! Broken notes: the folder, an existing file, the draft, two writers at once.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use foreword_core::notes::Note;

use super::{DRAFT, Desk, printed};
use crate::support::{assert_same, tree};

#[test]
fn a_draft_that_is_no_note_is_refused_with_every_reason() {
    let desk = Desk::new();
    let before = tree(&desk.project);
    let draft = "Sure, here it is:\n\n# A title\n\n## Context\n\n## Tracking Points\n\n- no label\n\n## Notes\n\u{1b}[31mred\n";
    let output = desk.draft("s1", draft);
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(printed(&output), @"
    line 1: text before the first section
    line 9: a point is `- Label: text`, this is `- no label`
    line 11: `## Notes` is not one of the sections (Context, Tracking Points, Related Files/Artifacts)
    line 12: `## Context` is missing or empty: one or two sentences
    foreword: the draft has 4 problems; nothing was written
    ");
    assert_same(&before, &tree(&desk.project));
    let fails = desk.fail(&["summarize", "s1", "--draft", "/nowhere/draft.md"]);
    assert_eq!(fails, "foreword: /nowhere/draft.md: it does not exist\n");
    fs::write(desk.sandbox.user_home().join("bytes"), b"# \xff\xfe").unwrap();
    let bytes = desk.sandbox.user_home().join("bytes");
    let fails = desk.fail(&["summarize", "s1", "--draft", bytes.to_str().unwrap()]);
    assert!(
        fails.contains("the draft is not UTF-8; nothing was written"),
        "{fails}"
    );
    assert_same(&before, &tree(&desk.project));
}

#[test]
fn what_would_leave_the_folder_is_refused() {
    let desk = Desk::new();
    let before = tree(&desk.sandbox.user_home());
    for session in ["../../main", "a/b", ".hidden", "a b", "a\u{1b}[31m", ""] {
        let output = desk.draft(session, DRAFT);
        assert_eq!(output.status.code(), Some(1), "{session}");
        assert!(
            printed(&output).contains("is not a session id: use letters, digits"),
            "{output:?}"
        );
        let fails = desk.fail(&["summarize", session, "--yes", "--transcript", "/nowhere"]);
        assert!(fails.contains("is not a session id"), "{fails}");
    }
    for scope in ["archive", "conversations", "Master", "../up", ""] {
        for arguments in [
            &["summarize", "s1", "--scope", scope][..],
            &["notes", "--scope", scope],
        ] {
            let fails = desk.fail(arguments);
            assert!(fails.contains("cannot be a scope: "), "{fails}");
        }
    }
    assert_same(&before, &tree(&desk.sandbox.user_home()));
}

#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let desk = Desk::new();
    let outside = desk.sandbox.project("outside");
    let refused = |desk: &Desk| {
        let before = tree(&desk.sandbox.user_home());
        let output = desk.draft("s1", DRAFT);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            printed(&output).contains("leads out of the project; Foreword writes nothing there")
        );
        assert_same(&before, &tree(&desk.sandbox.user_home()));
    };
    symlink(&outside, desk.project.join("_memory")).unwrap();
    refused(&desk);
    fs::remove_file(desk.project.join("_memory")).unwrap();
    fs::create_dir(desk.file("")).unwrap();
    symlink(&outside, desk.file("conversations")).unwrap();
    refused(&desk);
    fs::remove_file(desk.file("conversations")).unwrap();
    fs::create_dir(desk.file("conversations")).unwrap();
    fs::write(outside.join("s1.md"), "theirs").unwrap();
    symlink(outside.join("s1.md"), desk.file("conversations/s1.md")).unwrap();
    refused(&desk);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let desk = Desk::new();
    desk.save("s1", DRAFT);
    let before = tree(&desk.project);
    let folder = desk.file("conversations");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    fs::write(
        desk.sandbox.user_home().join("draft.md"),
        DRAFT.replace("done", "tested"),
    )
    .unwrap();
    let draft = desk.sandbox.user_home().join("draft.md");
    let mut command =
        desk.sandbox
            .as_anyone(&["summarize", "s1", "--draft", draft.to_str().unwrap()]);
    let output = command.current_dir(&desk.project).output().unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = printed(&output);
    assert!(
        printed.ends_with("conversations/s1.md: Permission denied (os error 13)\n"),
        "{printed}"
    );
    assert_same(&before, &tree(&desk.project));
}

#[test]
fn a_file_that_cannot_be_read_as_a_note_is_left_alone() {
    let desk = Desk::new();
    fs::create_dir_all(desk.file("conversations")).unwrap();
    let conflict: &[u8] = b"# A\n<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> theirs\n";
    for (bytes, why) in [
        (
            conflict,
            "holds conflict markers of a merge; resolve them first",
        ),
        (b"# \xff\xfe\n", "is not UTF-8; fix or move it"),
    ] {
        let path = desk.file("conversations/s1.md");
        fs::write(&path, bytes).unwrap();
        let output = desk.draft("s1", DRAFT);
        assert_eq!(output.status.code(), Some(1));
        assert!(printed(&output).contains(why), "{output:?}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
        let list = desk.run(&["notes"]);
        assert!(list.contains(why), "{list}");
    }
}

#[test]
fn a_note_of_another_form_keeps_all_that_stands_in_it() {
    let desk = Desk::new();
    fs::create_dir_all(desk.file("conversations")).unwrap();
    let theirs = "no title\n\n- a list\n\n### deep\n## Tracking Points\nfree words\n\n## End\n\n```\nunclosed\n";
    fs::write(desk.file("conversations/s1.md"), theirs).unwrap();
    desk.save("s1", DRAFT);
    let note = desk.note("s1");
    for line in theirs
        .lines()
        .chain(["# Retries in the client", "- Status: `retry.rs` is done"])
    {
        assert!(note.lines().any(|it| it == line), "{line} is lost:\n{note}");
    }
}

#[test]
fn a_directory_that_is_no_project_is_told_so() {
    let desk = Desk::new();
    for arguments in [
        &["notes"][..],
        &["summarize", "s1"],
        &["notes", "export", "-"],
    ] {
        let mut command = desk.sandbox.command(arguments);
        let output = command
            .current_dir(desk.sandbox.user_home())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let printed = printed(&output);
        assert_eq!(
            printed,
            "foreword: not a project directory; go to one and run this there\n"
        );
    }
}

#[test]
fn killed_before_the_end_the_old_note_is_whole() {
    let mut desk = Desk::new();
    desk.save("s1", DRAFT);
    let before = desk.note("s1");
    desk.sandbox.set("FOREWORD_FAULT", "notes:before-rename");
    let next = DRAFT.replace("is done", "is tested");
    let output = desk.draft("s1", &next);
    assert_eq!(output.status.code(), None, "it was killed: {output:?}");
    assert_eq!(desk.note("s1"), before);
    desk.sandbox.unset("FOREWORD_FAULT");
    let list = desk.run(&["notes"]);
    assert_eq!(list.lines().count(), 1, "what is left is no note: {list}");
    desk.save("s1", &next);
    assert!(desk.note("s1").contains("is tested"));
}

#[test]
fn two_at_once_leave_one_whole_note() {
    let desk = Desk::new();
    let drafts: Vec<String> = (0..8)
        .map(|number| {
            DRAFT.replace(
                "is done",
                &format!("is at {number} {}", "word ".repeat(400)),
            )
        })
        .collect();
    std::thread::scope(|scope| {
        for draft in &drafts {
            scope.spawn(|| {
                let output = desk.draft("s1", draft);
                let lost = printed(&output).contains("was changed by somebody else meanwhile");
                assert!(output.status.success() || lost, "{output:?}");
            });
        }
    });
    let (note, problems) = Note::read(&desk.note("s1"));
    assert_eq!(problems, []);
    assert!(drafts.iter().any(|it| {
        note.points
            .iter()
            .any(|point| it.contains(&point.text) && point.label == "Status")
    }));
    let names = fs::read_dir(desk.file("conversations")).unwrap().count();
    assert_eq!(names, 1, "nothing is left beside it");
    assert!(Path::new(&desk.file("README.md")).exists());
}
