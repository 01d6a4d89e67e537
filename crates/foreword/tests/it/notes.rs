//! A project's memory in files: drafts that are saved, conversations
//! that are read from their transcripts, and notes that are moved.
//!
//! `bad` has broken folders and drafts, `moving` export, import and merging,
//! `model` notes that a model writes.

mod bad;
mod model;
mod moving;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use foreword_core::store::Store;

use crate::support::{Host, Sandbox, assert_same, feed, tree};
use crate::transcript::Transcript;

pub const DRAFT: &str = "\
# Retries in the client

## Context

The client gave up at the first 503.

## Tracking Points

- Decision: retry three times, because the gateway restarts within a second
- Status: `retry.rs` is done
";

/// A user who runs commands in a project.
pub struct Desk {
    pub sandbox: Sandbox,
    pub project: PathBuf,
}

impl Desk {
    pub fn new() -> Desk {
        let sandbox = Sandbox::new();
        let project = sandbox.project("app");
        fs::write(project.join("main.rs"), "fn main() {}\n").unwrap();
        Desk { sandbox, project }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.sandbox.command(arguments);
        command.current_dir(&self.project);
        command
    }

    /// Runs a command, which must succeed; returns its output.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        printed(&output)
    }

    /// Runs a command, which must fail; returns its output.
    #[track_caller]
    pub fn fail(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        printed(&output)
    }

    pub fn draft(&self, session: &str, draft: &str) -> Output {
        let mut command = self.command(&["summarize", session, "--draft", "-"]);
        command.stdin(std::process::Stdio::piped());
        feed(command, draft.as_bytes())
    }

    #[track_caller]
    pub fn save(&self, session: &str, draft: &str) -> String {
        let output = self.draft(session, draft);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        printed(&output)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.project.join("_memory").join(name)
    }

    pub fn note(&self, session: &str) -> String {
        fs::read_to_string(self.file(&format!("conversations/{session}.md"))).unwrap()
    }

    pub fn edit(&self, session: &str, from: &str, to: &str) {
        let edited = self.note(session).replacen(from, to, 1);
        fs::write(self.file(&format!("conversations/{session}.md")), edited).unwrap();
    }
}

/// Both outputs, with dates and paths replaced.
pub fn printed(output: &Output) -> String {
    let printed = [output.stdout.as_slice(), &output.stderr].concat();
    let today = foreword_core::text::date(
        i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap(),
    );
    let printed = String::from_utf8(printed).unwrap().replace(&today, "TODAY");
    let mut parts = printed.split("TODAYT");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |printed, it| {
        printed + "NOW" + &it["09:30:00Z".len()..]
    })
}

#[test]
fn a_draft_is_saved_and_a_hand_edit_survives_the_next_one() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.save("s1", DRAFT), @"
    --- /dev/null
    +++ _memory/conversations/s1.md
    @@ -0,0 +1,14 @@
    +# Retries in the client
    +
    +## Context
    +
    +The client gave up at the first 503.
    +
    +## Tracking Points
    +
    +- Decision: retry three times, because the gateway restarts within a second
    +- Status: `retry.rs` is done
    +
    +*Summarized: TODAY*
    +
    +<!-- foreword 1: NOW 330dc633 35541028 4282f238 fa0ff442 -->
    Saved _memory/conversations/s1.md
    ");
    assert_eq!(
        desk.save("s1", DRAFT),
        "_memory/conversations/s1.md says all of this already\n"
    );

    desk.edit("s1", "- Status:", "- Question: and the timeout?\n- Status:");
    desk.edit("s1", "gave up", "had given up");
    let next = DRAFT.replace("is done", "is tested");
    insta::assert_snapshot!(desk.save("s1", &next), @"
    --- _memory/conversations/s1.md
    +++ _memory/conversations/s1.md
    @@ -8,8 +8,8 @@
     
     - Decision: retry three times, because the gateway restarts within a second
     - Question: and the timeout?
    -- Status: `retry.rs` is done
    +- Status: `retry.rs` is tested
     
     *Summarized: TODAY*
     
    -<!-- foreword 1: NOW 330dc633 35541028 4282f238 fa0ff442 -->
    +<!-- foreword 1: NOW 1a5cf048:NOW 330dc633 35541028 4282f238 -->
    Saved _memory/conversations/s1.md; 2 parts edited by hand stayed
    ");
    let printed = desk.save("s1", &next);
    assert_eq!(
        printed,
        "_memory/conversations/s1.md says all of this already; 2 parts edited by hand stayed\n"
    );
}

#[test]
fn only_the_memory_is_written_and_a_dry_run_writes_nothing() {
    let desk = Desk::new();
    let before = tree(&desk.project);
    let draft = desk.sandbox.user_home().join("draft.md");
    fs::write(&draft, DRAFT).unwrap();
    let draft = draft.to_str().unwrap();
    let dry = desk.run(&["summarize", "s1", "--draft", draft, "--dry-run"]);
    assert!(
        dry.ends_with("Nothing was written: this was a dry run.\n"),
        "{dry}"
    );
    assert_same(&before, &tree(&desk.project));

    desk.run(&["summarize", "s1", "--draft", draft, "--scope", "web"]);
    let mut after = tree(&desk.project);
    let of_memory = |path: &PathBuf| path.starts_with(desk.project.join("_memory"));
    let names: Vec<_> = after.keys().filter(|it| of_memory(it)).cloned().collect();
    let expected = [
        "",
        "README.md",
        "web",
        "web/conversations",
        "web/conversations/s1.md",
    ];
    assert_eq!(
        names,
        expected.map(|it| desk.file(it).components().collect::<PathBuf>())
    );
    after.retain(|path, _| !of_memory(path));
    assert_same(&before, &after);
    // Notes in files do not need the database.
    assert!(!desk.sandbox.home().exists());
}

#[test]
fn the_session_is_the_one_that_the_command_runs_in() {
    let mut desk = Desk::new();
    let draft = desk.sandbox.user_home().join("draft.md");
    fs::write(&draft, DRAFT).unwrap();
    let arguments = ["summarize", "--draft", draft.to_str().unwrap()];
    insta::assert_snapshot!(desk.fail(&arguments), @"foreword: which session? Write its id: `foreword summarize SESSION --draft FILE`");
    desk.sandbox
        .set("CLAUDE_CODE_SESSION_ID", "from-the-client");
    desk.run(&arguments);
    assert!(desk.note("from-the-client").contains("retry three times"));
}

/// A conversation with a decision, a fix, a subagent, a compaction and an open question.
fn converse(desk: &Desk, session: &str) -> (Host, Transcript) {
    let mut host = Host::new(session, &desk.project);
    let transcript = Transcript::of(&desk.sandbox, &mut host);
    transcript.prompt("Make the kumquat check pass. Let's use a limit of seven instead of six, because the crates hold seven.");
    transcript.tool(&host.bash_failed(
        "sh check.sh",
        "Exit code 3\nerror: the kumquat limit is 6, not 7",
    ));
    transcript.tool(&host.edit("limit.toml", "6", "7"));
    transcript.tool(&host.bash("sh check.sh", "ok"));
    let by_subagent = host.bash("cat subagent.txt", "the subagent's words");
    transcript.tool_but(&by_subagent, |line| line["agentId"] = "a1".into());
    transcript.line("user.string.compact_summary", |line| {
        line["message"]["content"] = "This session is being continued: the compacted words.".into();
    });
    transcript.reply(
        "The limit is 7 now; the cause was an old default.\n\nShould the label say seven, too?",
    );
    (host, transcript)
}

#[test]
fn an_agent_gets_the_conversation_as_data_and_hands_in_the_note() {
    let desk = Desk::new();
    converse(&desk, "5e5510a1-limits");
    let sources = desk.run(&["summarize", "5e5510a1", "--sources"]);
    assert!(
        sources
            .starts_with("The conversation of session 5e5510a1-limits, step by step. It is data"),
        "{sources}"
    );
    for part in ["<data ", "Make the kumquat check pass", "limit.toml"] {
        assert!(sources.contains(part), "{part}: {sources}");
    }
    assert!(!desk.file("").exists(), "nothing is written");
    let draft = "# Limits\n\n## Context\n\nSeven.\n\n## Tracking Points\n\n- Decision: Seven\n";
    let file = desk.project.join("draft.md");
    std::fs::write(&file, draft).unwrap();
    let file = file.to_str().unwrap();
    desk.run(&["summarize", "5e5510a1-limits", "--draft", file, "--dry-run"]);
    assert!(!desk.file("").exists(), "nobody said yes");
    desk.run(&["summarize", "5e5510a1-limits", "--draft", file]);
    let sources = desk.run(&["summarize", "5e5510a1", "--sources"]);
    assert!(sources.contains("\nThe note so far (_memory/conversations/5e5510a1-limits.md):\n"));
}

#[test]
fn without_a_model_a_note_says_what_the_conversation_proves() {
    let desk = Desk::new();
    converse(&desk, "s1");
    let asked = desk.run(&["summarize", "s1"]);
    assert!(!desk.file("").exists(), "nobody printed yes");
    insta::assert_snapshot!(asked, @"
    --- /dev/null
    +++ _memory/conversations/s1.md
    @@ -0,0 +1,19 @@
    +# The limit is 7 now; the cause was an old default
    +
    +## Context
    +
    +Asked: “Make the kumquat check pass. Let's use a limit of seven instead of six, because the crates hold seven.”
    +
    +## Tracking Points
    +
    +- Decision: Use a limit of seven instead of six, because the crates hold seven
    +- Discovery: The limit is 7 now; the cause was an old default (`sh check.sh` failed (“error: the kumquat limit is 6, not 7”) and passes now)
    +- Open: The agent asked last: “Should the label say seven, too?”
    +
    +## Related Files/Artifacts
    +
    +- limit.toml
    +
    +*Summarized: TODAY*
    +
    +<!-- foreword 1: NOW 467a307a 8005410c 9cfa988b bf66d1ae c43d308d cfbd23cd -->
    Nothing was written; --yes writes it.
    ");
    desk.run(&["summarize", "s1", "--yes"]);
    let note = desk.note("s1");
    for other in ["subagent", "compacted"] {
        assert!(!note.contains(other), "{note}");
    }
    // A draft of the same conversation goes into the same file.
    desk.edit("s1", "- Open:", "- Question: mine\n- Open:");
    let printed = desk.save("s1", DRAFT);
    assert!(
        printed.ends_with("Saved _memory/conversations/s1.md; 1 part edited by hand stayed\n"),
        "{printed}"
    );
    let again = desk.run(&["summarize", "s1", "--yes"]);
    let gone = ["\n-#", "\n-- "].iter().any(|it| again.contains(it));
    assert!(!gone, "it only adds: {again}");
    assert_eq!(desk.note("s1").matches("- Question: mine\n").count(), 1);
}

#[test]
fn the_last_conversation_of_the_project_is_meant_if_none_is_named() {
    let desk = Desk::new();
    let fails = desk.fail(&["summarize"]);
    assert!(
        fails.contains("there is no transcript of this project in "),
        "{fails}"
    );
    let slug = desk.project.to_str().unwrap().replace(['/', '.', '_'], "-");
    let folder = desk.sandbox.user_home().join(".claude/projects").join(slug);
    fs::create_dir_all(&folder).unwrap();
    for (session, age) in [("old", 60), ("new", 30)] {
        let (_, transcript) = converse(&desk, session);
        let path = folder.join(format!("{session}.jsonl"));
        fs::rename(transcript.path, &path).unwrap();
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::open(path).unwrap().set_modified(time).unwrap();
    }
    // A newer one of another project.
    let other = Desk {
        project: desk.sandbox.project("other"),
        sandbox: Sandbox::new(),
    };
    let mut host = Host::new("elsewhere", &other.project);
    let transcript = Transcript::of(&desk.sandbox, &mut host);
    transcript.prompt("Something else");
    desk.run(&["summarize", "--yes"]);
    assert!(desk.file("conversations/new.md").exists());
    let fails = desk.fail(&["summarize", "elsewhere", "--yes"]);
    assert!(fails.contains("session elsewhere belongs to "), "{fails}");
    assert!(!desk.file("conversations/elsewhere.md").exists());
    // Unless the path of the transcript is given.
    let path = transcript.path.to_str().unwrap();
    desk.run(&["summarize", "--transcript", path, "--yes"]);
    assert!(desk.note("elsewhere").contains("Something else"));
}

#[test]
fn a_note_of_a_bug_hunt_that_a_person_would_keep() {
    let desk = Desk::new();
    let mut host = Host::new("hunt", &desk.project);
    let transcript = Transcript::of(&desk.sandbox, &mut host);
    transcript.prompt(
        "The March invoice is 270 short. I suspect the rounding. Find the cause and fix it.",
    );
    transcript.tool(&host.bash_failed(
        "python3 -m unittest",
        "Exit code 1\nAssertionError: 360 != 630",
    ));
    transcript.tool(&host.edit("tally/report.py", "return round(x, 2)", "return x"));
    transcript.tool(&host.bash_failed(
        "python3 -m unittest",
        "Exit code 1\nAssertionError: 360 != 630",
    ));
    transcript.tool(&host.edit("tally/report.py", "return x", "return round(x, 2)"));
    transcript.tool(&host.edit("tally/months.py", "utc(at)", "local(at, offset)"));
    transcript.tool(&host.bash("python3 -m unittest", "OK"));
    transcript.reply(
        "It is not the rounding: I tried dropping the `round`, but the total stayed 270 short.\n\n\
         The cause is in `month_of`: it reads the timestamp in UTC, so three hours land in the wrong month.",
    );
    desk.run(&["summarize", "hunt", "--yes"]);
    insta::assert_snapshot!(desk.note("hunt").split("\n*Summ").next().unwrap(), @"
    # The March invoice is 270 short

    ## Context

    Asked: “The March invoice is 270 short. I suspect the rounding. Find the cause and fix it.”

    ## Tracking Points

    - Discovery: The March invoice is 270 short (It is not the rounding: I tried dropping the `round`, but the total stayed 270 short; The cause is in `month_of`: it reads the timestamp in UTC, so three hours land in the wrong month; `python3 -m unittest` failed (“AssertionError: 360 != 630”) and passes now)

    ## Related Files/Artifacts

    - tally/report.py
    - tally/months.py
    ");
}

#[test]
fn what_foreword_may_not_know_it_does_not_learn_from_a_transcript() {
    let mut desk = Desk::new();
    desk.run(&["off"]);
    let (_, transcript) = converse(&desk, "s1");
    let draft = desk.sandbox.user_home().join("draft.md");
    fs::write(&draft, "").unwrap();
    let refused = |desk: &Desk, why: &str| {
        for arguments in [
            &["summarize", "s1", "--yes"][..],
            &["summarize", "s1", "--draft", draft.to_str().unwrap()],
        ] {
            let printed = desk.fail(arguments);
            assert!(printed.contains(why), "{arguments:?}: {printed}");
        }
        assert!(!desk.file("").exists());
    };
    refused(
        &desk,
        "Foreword is off here; `foreword on` switches it on again",
    );
    desk.run(&["on"]);
    let printed = desk.fail(&["summarize", "s1", "--yes"]);
    assert!(
        printed.contains("nothing in ") && printed.contains("that may be used"),
        "{printed}"
    );
    // The messages since the last summary.
    transcript.prompt("Raise the pomelo limit");
    desk.run(&["summarize", "s1", "--yes"]);
    let note = desk.note("s1");
    assert!(
        note.starts_with("# Raise the pomelo limit\n") && !note.contains("kumquat"),
        "{note}"
    );
    fs::remove_dir_all(desk.file("")).unwrap();

    desk.sandbox.set("FOREWORD_OFF", "1");
    refused(&desk, "Foreword is off here");
    desk.sandbox.unset("FOREWORD_OFF");
    desk.sandbox.set(
        "FOREWORD_CAPTURE_EXCLUDE_PROJECTS",
        desk.project.to_str().unwrap().to_owned(),
    );
    refused(&desk, "this project is excluded");
}

#[test]
fn private_words_and_secrets_stay_out_of_a_note() {
    let desk = Desk::new();
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let mut host = Host::new("s1", &desk.project);
    let transcript = Transcript::of(&desk.sandbox, &mut host);
    transcript.prompt(&format!(
        "Use the token {token} here. <private>Nobody knows of the plum.</private>"
    ));
    transcript.reply(&format!("I used {token}."));
    desk.run(&["summarize", "s1", "--yes"]);
    let printed = desk.save(
        "s2",
        &DRAFT.replace("three times", &format!("with {token}")),
    );
    assert!(printed.ends_with("1 secret replaced\n"), "{printed}");
    for session in ["s1", "s2"] {
        let note = desk.note(session);
        assert!(
            note.contains("[redacted:") && !note.contains(&token) && !note.contains("plum"),
            "{note}"
        );
    }
}

#[test]
fn what_was_forgotten_does_not_come_back() {
    let desk = Desk::new();
    desk.sandbox.keep_workers_away();
    let (host, transcript) = converse(&desk, "s1");
    let line = fs::read_to_string(&transcript.path).unwrap();
    let prompt: serde_json::Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    let input = host.prompt(prompt["message"]["content"].as_str().unwrap());
    desk.sandbox.run_hook("new", &desk.project, &input);
    desk.sandbox.drain();
    let memory = desk.sandbox.home();
    let mut store = Store::open(&memory.join("memory.db"), &memory.join("backups")).unwrap();
    let decision = "select id from observations where type = 'decision'";
    let id = desk.sandbox.count("memory.db", decision);
    assert_eq!(store.forget(&[id], 1).unwrap(), [id]);
    drop(store);
    desk.sandbox.keep_workers_away();
    transcript.prompt("Raise the pomelo limit");
    desk.run(&["summarize", "s1", "--yes"]);
    let note = desk.note("s1");
    assert!(
        note.contains("limit.toml") && !note.contains("crates hold seven"),
        "{note}"
    );
}

/// The files of a folder, without the memory's record of versions.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn on_a_terminal_it_is_asked_before_anything_is_written() {
    let desk = Desk::new();
    converse(&desk, "s1");
    let ask = |answer: &[u8]| {
        let line = "exec script -qec \"$0 summarize s1\" /dev/null";
        let mut command = desk.sandbox.shell(line, &[]);
        command.current_dir(&desk.project);
        command.stdin(std::process::Stdio::piped());
        printed(&feed(command, answer))
    };
    let no = ask(b"n\n");
    assert!(
        no.contains("+# The limit is 7 now") && no.contains("Save? [y/N] "),
        "{no}"
    );
    assert!(!desk.file("").exists());
    let yes = ask(b"y\n");
    assert!(
        yes.ends_with("Saved _memory/conversations/s1.md\r\n"),
        "{yes}"
    );
    assert!(
        desk.note("s1")
            .starts_with("# The limit is 7 now; the cause was an old default\n")
    );
}
