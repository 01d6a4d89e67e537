//! Notes: reading, checking drafts, and keeping a person's edits.

use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

const DRAFT: &str = "\
# Retries in the client

## Context

The client gave up at the first 503.

## Tracking Points

- Decision: retry three times, because the gateway restarts within a second
- Status: `retry.rs` is done

## Related Files/Artifacts

- src/retry.rs
";

fn draft(text: &str) -> Note {
    let (note, problems) = Note::read(text);
    assert_eq!(problems, [], "{text}");
    note
}

/// The note of a draft, written on the 16th.
fn written() -> String {
    keep(&draft(DRAFT), None, "2026-11-16").text
}

/// The same draft again, two days later, in a note that somebody has edited.
fn again(there: &str) -> MergedNote {
    keep(&draft(DRAFT), Some(there), "2026-11-18")
}

#[test]
fn a_new_note_is_the_draft_with_its_date_and_its_record() {
    insta::assert_snapshot!(written(), @"
    # Retries in the client

    ## Context

    The client gave up at the first 503.

    ## Tracking Points

    - Decision: retry three times, because the gateway restarts within a second
    - Status: `retry.rs` is done

    ## Related Files/Artifacts

    - src/retry.rs

    *Summarized: 2026-11-16*

    <!-- foreword 1: 2026-11-16 330dc633 35541028 4282f238 697de889 fa0ff442 -->
    ");
}

#[test]
fn the_same_draft_again_changes_nothing_whatever_was_edited() {
    let written = written();
    let edits = [
        ("", ""),
        ("- Status:", "- Status: a person's line\n- Status:"),
        ("- Status: `retry.rs` is done\n", ""),
        ("## Tracking Points\n\n", "## Tracking Points\n"),
        ("- Decision: retry", "* **Decision**: retry"),
        (" because the", "\n  because the"),
        ("# Retries in the client", "# Retries"),
        ("gave up", "had given up"),
        ("\n## Related", "\n## Mine\nstays as it is\n\n\n## Related"),
        ("<!-- foreword", "a last word\n\n<!-- foreword"),
        (
            "## Context\n\nThe client gave up at the first 503.\n\n",
            "## Context\n\n\n\nAnother.\n",
        ),
    ];
    for (from, to) in edits {
        let edited = written.replacen(from, to, 1);
        assert_eq!(again(&edited).text, edited, "{from:?} became {to:?}");
    }
}

#[test]
fn a_line_of_a_persons_stays_below_the_line_that_it_followed() {
    let edited = written().replace(
        "- Status:",
        "- Question: and the timeout?\n  ask the gateway's people\n- Status:",
    );
    let draft = draft(&DRAFT.replace(
        "- Status: `retry.rs` is done",
        "- Discovery: 503 comes with Retry-After\n- Status: `retry.rs` is tested",
    ));
    let kept = keep(&draft, Some(&edited), "2026-11-18");
    insta::assert_snapshot!(kept.text, @"
    # Retries in the client

    ## Context

    The client gave up at the first 503.

    ## Tracking Points

    - Decision: retry three times, because the gateway restarts within a second
    - Question: and the timeout?
      ask the gateway's people
    - Discovery: 503 comes with Retry-After
    - Status: `retry.rs` is tested

    ## Related Files/Artifacts

    - src/retry.rs

    *Summarized: 2026-11-16, updated: 2026-11-18*

    <!-- foreword 1: 2026-11-16 03690e01:2026-11-18 1a5cf048:2026-11-18 330dc633 35541028 4282f238 697de889 -->
    ");
    assert_eq!((kept.theirs, kept.left_out.len()), (1, 0));
}

#[test]
fn what_a_person_removed_does_not_come_back_in_the_same_words() {
    let gone = "- Status: `retry.rs` is done";
    let edited = written().replace(&format!("{gone}\n"), "");
    assert_eq!(again(&edited).left_out, [gone]);
    // Nor after another draft, and not even then.
    let other = draft(&DRAFT.replace(gone, "- Status: released"));
    let later = keep(&other, Some(&edited), "2026-11-17").text;
    assert!(later.contains("- Status: released"), "{later}");
    let last = again(&later).text;
    assert!(!last.contains(gone) && !last.contains("released"), "{last}");
    // What only the draft has dropped may come back.
    assert!(
        again(&keep(&other, Some(&written()), "2026-11-17").text)
            .text
            .contains(gone)
    );
}

#[test]
fn a_line_that_a_person_moved_is_not_written_a_second_time() {
    let line = "- Status: `retry.rs` is done\n";
    let moved = written()
        .replace(line, "")
        .replace("\n*Summ", &format!("\n## Done\n\n{line}\n*Summ"));
    assert_eq!(again(&moved).text, moved);
}

#[test]
fn title_and_context_are_written_again_unless_a_person_wrote_them() {
    let other = draft(
        &DRAFT
            .replace("Retries in the client", "Retries")
            .replace("gave up at", "retries after"),
    );
    let text = keep(&other, Some(&written()), "2026-11-18").text;
    assert!(
        text.starts_with("# Retries\n\n## Context\n\nThe client retries after"),
        "{text}"
    );
    assert!(
        text.contains("\n*Summarized: 2026-11-16, updated: 2026-11-18*\n"),
        "{text}"
    );

    let edited = written()
        .replace("# Retries in the client", "# My title")
        .replace("503.", "503!");
    let kept = keep(&other, Some(&edited), "2026-11-18");
    assert_eq!((kept.text, kept.theirs), (edited, 2));
}

#[test]
fn a_related_section_that_nothing_is_left_in_goes() {
    let (without, _) = DRAFT.split_once("\n## Related").unwrap();
    let text = keep(&draft(without), Some(&written()), "2026-11-18").text;
    assert!(!text.contains("Related"), "{text}");
    let back = again(&text).text;
    assert!(
        back.contains("\n## Related Files/Artifacts\n\n- src/retry.rs\n\n*Summ"),
        "{back}"
    );
}

#[test]
fn a_note_without_a_record_is_a_persons_and_is_added_to() {
    let theirs = "Loose words\n\n# Mine\n## Tracking points\n- no label here\n\ntext below\n## Context\nwords\n```\n# no title\n```\n";
    insta::assert_snapshot!(again(theirs).text, @"
    Loose words

    # Mine

    ## Tracking points
    - no label here

    text below
    - Decision: retry three times, because the gateway restarts within a second
    - Status: `retry.rs` is done

    ## Related Files/Artifacts

    - src/retry.rs

    ## Context
    words
    ```
    # no title
    ```

    *Summarized: 2026-11-18*

    <!-- foreword 1: 2026-11-18 35541028 697de889 fa0ff442 -->
    ");
}

#[test]
fn two_records_that_a_merge_left_are_one() {
    let one = written();
    let two = keep(
        &draft(&DRAFT.replace("- Status: `retry.rs` is done", "- Status: released")),
        None,
        "2026-11-15",
    );
    let ends = |text: &str| text[text.find("*Summarized").unwrap()..].to_owned();
    let both = one.replace("- Status: `", "- Status: released\n- Status: `") + &ends(&two.text);
    let text = again(&both).text;
    assert!(!text.contains("released"), "{text}");
    assert!(
        text.contains("*Summarized: 2026-11-15, updated: 2026-11-18*"),
        "{text}"
    );
    assert_eq!(text.matches("<!-- foreword").count(), 1);
}

#[test]
fn a_record_of_before_there_were_times_is_read_and_gets_them() {
    let old = written().replace("foreword 1: 2026-11-16 ", "foreword 1: ");
    assert_eq!(again(&old).text, old);
    let released = draft(&DRAFT.replace("`retry.rs` is done", "released"));
    let text = keep(&released, Some(&old), "2026-11-18T09:30:00Z").text;
    let record = text.lines().last().unwrap();
    assert!(record.contains(" 1: 2026-11-16 330dc633 "), "{record}");
    assert!(record.contains(":2026-11-18T09:30:00Z "), "{record}");
    let note = Note::read(&text).0;
    let added: Vec<_> = note.points.iter().map(|it| note.added(it)).collect();
    assert_eq!(added, [None, Some(&"2026-11-18T09:30:00Z".to_owned())]);
}

fn problems(text: &str) -> String {
    let (_, problems) = Note::read(text);
    problems.iter().map(|it| format!("{it}\n")).collect()
}

#[test]
fn everything_that_is_wrong_with_a_draft_is_said_by_line() {
    insta::assert_snapshot!(problems(""), @"
    line 0: there is no `# title`
    line 0: `## Context` is missing or empty: one or two sentences
    line 0: `## Tracking Points` is missing or empty: lines `- Label: text`
    ");
    let all = "early words\n# A title\n# Another\n## Context\n## Notes\n## Tracking Points\n- no label\nno item\n\
               ## Related Files/Artifacts\nsrc/a.rs\n";
    insta::assert_snapshot!(problems(all), @"
    line 1: text before the first section
    line 3: a second title
    line 5: `## Notes` is none of the sections (Context, Tracking Points, Related Files/Artifacts)
    line 7: a point is `- Label: text`, this is `- no label`
    line 8: a point begins with `- Label: `
    line 10: each related file is a line `- path`
    line 10: `## Context` is missing or empty: one or two sentences
    ");
    let long = DRAFT
        .replace("Retries in the client", &"t".repeat(121))
        .replace("The client", &"c".repeat(800))
        .replace("- Status:", &("- Status: x\n".repeat(59) + "- Status:"));
    insta::assert_snapshot!(problems(&long), @"
    line 73: the title is longer than 120 characters
    line 73: `## Context` is longer than 800 characters: one or two sentences
    line 73: more than 60 points
    ");
}

#[test]
fn a_note_reads_the_same_in_many_hands() {
    let edited = DRAFT
        .replace("- Decision:", "* **Decision:**")
        .replace("- Status:", "- **Status**:")
        .replace(" because the", "\n  because the")
        .replace("## Tracking Points", "## tracking points");
    assert_eq!(draft(&edited), draft(DRAFT));
    let dated = |date: &str| Note::read(&format!("{DRAFT}\n*Summarized: {date}*\n")).0;
    assert_eq!(
        dated("2026-11-16, updated: 2026-11-18").last.unwrap(),
        "2026-11-18"
    );
    assert_eq!(dated("by hand").first, None);
}

proptest! {
    #[test]
    fn reading_never_fails_and_what_is_shown_reads_back_the_same(text in page()) {
        for text in [format!("{DRAFT}{text}"), text] {
            let (note, problems) = Note::read(&text);
            if problems.is_empty() {
                prop_assert_eq!(Note::read(&note.to_string()), (note, Vec::new()));
            }
        }
    }

    /// Whatever the page is: no line of a person's is lost, and a second run changes nothing.
    #[test]
    fn nothing_is_lost(text in page(), other in page()) {
        let text = keep(&draft(DRAFT), Some(&text), "2026-11-16").text;
        let edited = format!("{text}\n{other}");
        let drafted = draft(&DRAFT.replace("is done", "is tested"));
        let once = keep(&drafted, Some(&edited), "2026-11-17").text;
        prop_assert_eq!(&keep(&drafted, Some(&once), "2026-11-18").text, &once);
        let ours: Vec<_> = DRAFT.lines().map(str::trim).collect();
        for line in edited.lines().map(str::trim) {
            let of_record = line.starts_with("<!-- foreword") || line.starts_with("*Summarized");
            if !ours.contains(&line) && !of_record {
                prop_assert!(once.lines().any(|it| it.trim() == line), "{line:?} is lost of {edited}\nin\n{once}");
            }
        }
    }
}

/// Pages that are nearly notes.
fn page() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("# A title"),
        Just("## Context"),
        Just("## Tracking Points"),
        Just("## Related Files/Artifacts"),
        Just("## Mine"),
        Just("- Decision: retry three times"),
        Just("* **Status** : x: y"),
        Just("  and more"),
        Just("- src/retry.rs"),
        Just("  ```"),
        Just("*Summarized: 2026-11-01*"),
        Just("<!-- foreword 1: 12345678 -->"),
        Just(""),
        Just("words"),
    ];
    let line = prop_oneof![4 => line.prop_map(str::to_owned), 1 => ".{0,20}"];
    proptest::collection::vec(line, 0..14).prop_map(|lines| lines.join("\n"))
}

#[test]
fn the_folder_refuses_what_is_not_safe_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("app");
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    let said = |result: Result<_, NotesError>| {
        let said = result.map(|_: PathBuf| ()).unwrap_err().to_string();
        said.replace(
            &dir.path().canonicalize().unwrap().display().to_string(),
            "…",
        )
    };
    let scope = |it: &str| said(Folder::at(&root, Some(it)).map(|it| it.path));
    let note = |it: &str| said(Folder::at(&root, None).unwrap().note(it));
    let mut seen = String::new();
    for name in ["Archive", "synthesis", "../up", "", ".hidden"] {
        seen += &format!("{}\n", scope(name));
    }
    for id in [
        "",
        "../../etc/passwd",
        "a/b",
        ".hidden",
        "a b",
        "a\nb",
        &"x".repeat(129),
    ] {
        seen += &format!("{}\n", note(id).escape_debug());
    }
    insta::assert_snapshot!(seen.replace(&"x".repeat(129), "xxx…"), @r"
    `Archive` cannot be a scope: the name is one of the memory's own
    `synthesis` cannot be a scope: the name is one of the memory's own
    `../up` cannot be a scope: use letters, digits, `-` and `_`
    `` cannot be a scope: use letters, digits, `-` and `_`
    `.hidden` cannot be a scope: use letters, digits, `-` and `_`
    `` is no session id: letters, digits, `-`, `_` and `.` only
    `../../etc/passwd` is no session id: letters, digits, `-`, `_` and `.` only
    `a/b` is no session id: letters, digits, `-`, `_` and `.` only
    `.hidden` is no session id: letters, digits, `-`, `_` and `.` only
    `a b` is no session id: letters, digits, `-`, `_` and `.` only
    `a\nb` is no session id: letters, digits, `-`, `_` and `.` only
    `xxx…` is no session id: letters, digits, `-`, `_` and `.` only
    ");

    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let at = |scope| said(Folder::at(&root, scope).map(|it| it.path));
    for target in [
        &elsewhere,
        &root.join(".git/hooks"),
        &dir.path().join("nowhere"),
    ] {
        symlink(target, root.join(FOLDER)).unwrap();
        assert!(
            at(None).ends_with("_memory leads out of the project; Foreword writes nothing there")
        );
        fs::remove_file(root.join(FOLDER)).unwrap();
    }
    fs::create_dir(root.join(FOLDER)).unwrap();
    for (name, scope) in [
        ("conversations", None),
        ("archive", None),
        ("web", Some("web")),
    ] {
        // Also to another place in the project.
        symlink(&root, root.join(FOLDER).join(name)).unwrap();
        assert!(
            at(scope).contains(&format!("_memory/{name} leads out")),
            "{name}"
        );
        fs::remove_file(root.join(FOLDER).join(name)).unwrap();
    }
}

#[test]
fn a_file_that_is_no_note_is_left_alone_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path(), None).unwrap();
    assert_eq!(folder.notes().0, []);
    folder.write(&folder.note("good").unwrap(), DRAFT).unwrap();
    let put =
        |name: &str, bytes: &[u8]| fs::write(folder.conversations().join(name), bytes).unwrap();
    put("bytes.md", b"\xff\xfe");
    put(
        "conflict.md",
        b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n",
    );
    put("crlf.md", "\u{feff}# A\r\n".as_bytes());
    put("long.md", &vec![b'x'; (1 << 20) + 1]);
    put("other.txt", b"");
    fs::create_dir(folder.conversations().join("folder.md")).unwrap();
    symlink("/etc/hostname", folder.conversations().join("link.md")).unwrap();
    let (notes, errors) = folder.notes();
    let texts: Vec<_> = notes
        .iter()
        .map(|it| (it.session.as_str(), it.text.as_str()))
        .collect();
    assert_eq!(texts, [("crlf", "# A\n"), ("good", DRAFT)]);
    let root = folder.root.display().to_string();
    let errors: Vec<_> = errors
        .iter()
        .map(|it| it.to_string().replace(&root, "…"))
        .collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    …/_memory/conversations/bytes.md is not UTF-8; mend or move it, it was left alone
    …/_memory/conversations/conflict.md holds conflict markers of a merge; resolve them first, it was left alone
    …/_memory/conversations/folder.md: this is no file
    …/_memory/conversations/link.md leads out of the project; Foreword writes nothing there
    …/_memory/conversations/long.md is longer than 1 MB; it was left alone
    ");
    assert!(folder.path.join("README.md").exists());
}

#[test]
fn a_readme_of_a_persons_stays_and_scopes_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path(), None).unwrap();
    let web = Folder::at(dir.path(), Some("web")).unwrap();
    fs::create_dir(&folder.path).unwrap();
    fs::write(folder.path.join("README.md"), "mine").unwrap();
    web.write(&web.note("s").unwrap(), DRAFT).unwrap();
    folder.write(&folder.archive().join("x.md"), "old").unwrap();
    assert_eq!(
        fs::read_to_string(folder.path.join("README.md")).unwrap(),
        "mine"
    );
    assert_eq!(folder.scopes(), ["web"]);
    let names: Vec<_> = entries(&web.conversations()).collect();
    assert_eq!(names, [web.note("s").unwrap()], "nothing is left beside it");
}
