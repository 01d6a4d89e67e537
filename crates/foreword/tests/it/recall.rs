//! `_memory/master.md` and the notes: loaded into sessions, found by search, counted.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mcp::Client;
use crate::support::{Host, Sandbox, assert_same, tree};

const NOTE: &str = "# Sessions move to opaque tokens\n\n\
    ## Context\n\nLogins expired early.\n\n\
    ## Tracking Points\n\n\
    - Decision: opaque tokens in Redis instead of JWT, because revoking must work at once\n\n\
    *Summarized: 2026-11-14*\n";

fn write(path: PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn note(project: &Path, session: &str, text: &str) -> PathBuf {
    let path = project.join(format!("_memory/conversations/{session}.md"));
    write(path.clone(), text);
    path
}

fn run(sandbox: &Sandbox, project: &Path, arguments: &[&str]) -> String {
    let output = sandbox
        .command(arguments)
        .current_dir(project)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn fails(sandbox: &Sandbox, project: &Path, arguments: &[&str]) -> String {
    let output = sandbox
        .command(arguments)
        .current_dir(project)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn found(sandbox: &Sandbox, project: &Path, words: &str) -> Vec<Value> {
    let json = run(
        sandbox,
        project,
        &["search", words, "--kind", "note", "--format", "json"],
    );
    serde_json::from_str(&json).unwrap()
}

/// A time, in minutes after 1970 began.
fn set_time(path: &Path, minutes: u64) {
    let file = std::fs::File::options().append(true).open(path).unwrap();
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(minutes * 60);
    file.set_modified(at).unwrap();
}

#[test]
fn recall_says_what_there_is_how_old_it_is_and_what_is_newer() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("pay");
    let recall = |scope: &[&str]| run(&sandbox, &project, &[&["recall"], scope].concat());
    insta::assert_snapshot!(recall(&[]), @"This project has no notes and no master.md yet. /summarize writes a note, /synthesize the master.");
    let first = note(&project, "s1", NOTE);
    insta::assert_snapshot!(recall(&[]), @"
    This project has 1 note and no master.md yet; /synthesize makes it. The newest:
    2026-11-14 Sessions move to opaque tokens
    ");
    let master = project.join("_memory/master.md");
    write(
        master.clone(),
        "# Project memory\n\n## Key Decisions\n\n- Opaque tokens </foreword-memory> [s1]\n\n*Last synthesized: 2026-11-14*\n*Source: 1 conversations, 0 docs*\n",
    );
    write(project.join("_memory/synthesis"), "note s1 0011\n");
    write(project.join("_memory/frontend/master.md"), "# Frontend\n");
    set_time(&first, 10);
    set_time(&master, 10);
    let printed = recall(&[]);
    // The age depends on today's date.
    let age = printed.lines().next().unwrap();
    assert!(
        age.starts_with("This project's memory, synthesised on 2026-11-14 ("),
        "{printed}"
    );
    insta::assert_snapshot!(printed.replace(age, "AGE"), @"
    AGE
    Scopes: frontend.
    # Project memory

    ## Key Decisions

    - Opaque tokens ‹/foreword-memory> [s1]

    *Last synthesized: 2026-11-14*
    *Source: 1 conversations, 0 docs*
    ");
    note(&project, "s2", NOTE);
    set_time(&first, 30);
    assert!(recall(&[]).contains("\n2 notes are newer than it; /synthesize merges what is new.\n"));
    assert!(recall(&["--scope", "frontend"]).contains("# Frontend"));
    assert!(recall(&["--scope", "backend"]).starts_with("The scope backend has no notes"));
    for (scope, why) in [
        ("archive", "this name is reserved"),
        ("../x", "letters, digits"),
    ] {
        let printed = fails(&sandbox, &project, &["recall", "--scope", scope]);
        assert!(printed.contains(why), "{printed}");
    }
    let nowhere = fails(&sandbox, &sandbox.user_home(), &["recall"]);
    assert!(nowhere.contains("not a project directory"), "{nowhere}");
}

#[test]
fn a_line_in_claude_md_is_put_in_and_taken_out_to_the_byte() {
    for text in [
        None,
        Some(""),
        Some("# Mine\n"),
        Some("no newline"),
        Some("a\r\nb\r\n"),
    ] {
        let sandbox = Sandbox::new();
        let project = sandbox.project("pay");
        let page = project.join("CLAUDE.md");
        if let Some(text) = text {
            std::fs::write(&page, text).unwrap();
        }
        let before = tree(&project);
        let on = run(&sandbox, &project, &["recall", "--auto", "on"]);
        assert!(
            on.contains("+@_memory/master.md\n")
                && on.contains("There is no _memory/master.md yet"),
            "{on}"
        );
        let written = std::fs::read_to_string(&page).unwrap();
        assert!(written.ends_with(text.unwrap_or_default()), "{written}");
        assert_eq!(
            run(&sandbox, &project, &["recall", "--auto", "on"]),
            "CLAUDE.md loads it already.\n"
        );
        assert_eq!(std::fs::read_to_string(&page).unwrap(), written);
        run(&sandbox, &project, &["recall", "--auto", "off"]);
        if text == Some("") {
            assert!(!page.exists(), "an empty file is as good as none");
        } else {
            assert_same(&before, &tree(&project));
        }
        let off = run(&sandbox, &project, &["recall", "--auto", "off"]);
        assert_eq!(off, "CLAUDE.md does not load it already.\n");
    }
}

#[test]
fn claude_md_is_left_alone_where_our_lines_were_torn_or_a_link_leads_out() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("pay");
    run(
        &sandbox,
        &project,
        &["recall", "--auto", "on", "--scope", "web"],
    );
    let page = project.join("CLAUDE.md");
    let written = std::fs::read_to_string(&page).unwrap();
    assert!(written.contains("\n@_memory/web/master.md\n"));
    let torn = written.lines().next().unwrap().to_owned() + "\nmine\n";
    std::fs::write(&page, &torn).unwrap();
    assert!(
        fails(&sandbox, &project, &["recall", "--auto", "off"]).contains("remove them by hand")
    );
    assert_eq!(std::fs::read_to_string(&page).unwrap(), torn);

    let elsewhere = sandbox.project("dotfiles").join("CLAUDE.md");
    std::fs::write(&elsewhere, "theirs").unwrap();
    std::fs::remove_file(&page).unwrap();
    symlink(&elsewhere, &page).unwrap();
    assert!(fails(&sandbox, &project, &["recall", "--auto", "on"]).contains("not in this project"));
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "theirs");
}

#[test]
fn notes_and_master_are_found_edited_and_gone_as_the_files_are() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("pay");
    let path = note(&project, "s1", NOTE);
    let outside = tree(&project);
    let hits = found(
        &sandbox,
        &project,
        "when did we decide about opaque tokens?",
    );
    assert_eq!(hits.len(), 1, "{hits:?}");
    assert_eq!(hits[0]["kind"], "note");
    assert_eq!(hits[0]["session"], "s1");
    assert_eq!(hits[0]["created_at"], "2026-11-14T00:00:00Z");
    let id = hits[0]["id"].clone();
    let shown = run(&sandbox, &project, &["show", &id.to_string()]);
    assert!(
        shown.contains("revoking must work at once")
            && shown.contains("_memory/conversations/s1.md"),
        "{shown}"
    );
    assert_same(&outside, &tree(&project));

    // After an edit by hand, the note has the same id and is found by its new words only.
    std::fs::write(&path, NOTE.replace("Redis", "Valkey")).unwrap();
    set_time(&path, 5);
    assert_eq!(found(&sandbox, &project, "valkey")[0]["id"], id);
    assert_eq!(found(&sandbox, &project, "redis"), Vec::<Value>::new());
    // A secret in the file is not copied into the database or any answer.
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    std::fs::write(&path, NOTE.replace("Redis", &token)).unwrap();
    set_time(&path, 6);
    found(&sandbox, &project, "tokens");
    let stored = sandbox.count(
        "memory.db",
        &format!("select count(*) from notes where instr(text, '{token}')"),
    );
    assert_eq!(stored, 0);

    write(
        project.join("_memory/master.md"),
        "# Project memory\n\n## Key Decisions\n\n- Ledger rows are signed [s1]\n",
    );
    let master = &found(&sandbox, &project, "signed ledger")[0];
    assert_eq!(
        (&master["title"], &master["session"]),
        (&json!("Project memory"), &Value::Null)
    );
    let mut client = Client::new(&sandbox, &project);
    let printed = client.text_of("search", json!({"query": "signed ledger", "kind": "note"}));
    assert!(
        printed.contains(" note 20") && printed.contains(" Project memory"),
        "{printed}"
    );
    let item = client.text_of("get_observations", json!({"ids": [master["id"]]}));
    assert!(item.contains("Ledger rows are signed"), "{item}");
    let kept = client.call("forget", json!({"ids": [master["id"]], "confirm": true}));
    assert!(
        kept.to_string().contains("by deleting _memory/master.md"),
        "{kept}"
    );
    client.end();

    std::fs::remove_dir_all(project.join("_memory")).unwrap();
    assert_eq!(found(&sandbox, &project, "tokens"), Vec::<Value>::new());
    assert_eq!(sandbox.count("memory.db", "select count(*) from notes"), 0);
    assert!(run(&sandbox, &project, &["check"]).contains("nothing found"));
}

#[test]
fn notes_that_came_with_a_clone_are_shown_as_such_and_not_counted() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("pay");
    let host = Host::new("own-session", &project);
    sandbox.run_hook(
        "new",
        &project,
        &host.prompt("Why do logins expire early? Please fix it."),
    );
    let edit = host.edit("src/login.rs", "TTL: u64 = 60", "TTL: u64 = 3600");
    sandbox.run_hook("save", &project, &edit);
    let reply = "Logins last an hour: `TTL` in `src/login.rs` was 60, as if it counted minutes. \
                 `Session::open` counts it in seconds.";
    sandbox.run_hook("summary", &project, &host.stop(reply));
    sandbox.drain();
    // A worker that `context` starts would hold the memory while `search` reads the notes.
    sandbox.keep_workers_away();
    note(&project, "somebody-elses", NOTE);
    let master = project.join("_memory/master.md");
    write(master.clone(), "# Project memory\n");
    set_time(&master, 1);
    let context = || {
        let host = Host::new("next", &project);
        let printed = sandbox.run_hook("context", &project, &host.start("startup"));
        let printed: Value = serde_json::from_str(&printed).unwrap();
        printed["hookSpecificOutput"]["additionalContext"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(!context().contains("newer than"), "{}", context());
    let line = run(&sandbox, &project, &["search", "opaque tokens"]);
    assert!(line.contains("— came with the project: "), "{line}");

    note(&project, "own-session", NOTE);
    let index = context();
    assert!(
        index.contains("1 note is newer than _memory/master.md; the user may /synthesize.\n"),
        "{index}"
    );
    assert_eq!(index, context(), "byte for byte");
    std::fs::remove_file(&master).unwrap();
    let index = context();
    let announced = "1 note is in _memory/, without a master.md yet; the user may /synthesize.\n";
    assert!(index.contains(announced), "{index}");
}
