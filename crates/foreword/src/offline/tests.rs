//! Turns and what the offline provider makes of them, as a person would read it.

use std::fmt::Write as _;

use foreword_core::model::{
    Derived, Event, EventKind, FileRole, Origin, Payload, TouchedFile, Turn,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::derive;

#[derive(Default)]
struct Script {
    events: Vec<Event>,
}

impl Script {
    fn push(
        mut self,
        kind: EventKind,
        tool: &str,
        file: Option<(&str, FileRole)>,
        payload: Payload,
    ) -> Script {
        let at = i64::try_from(self.events.len()).unwrap() + 1;
        self.events.push(Event {
            id: Uuid::from_u128(u128::from(at.unsigned_abs())),
            key: at.to_string(),
            kind,
            host: "claude-code".into(),
            host_session_id: "s".into(),
            prompt_id: Some("p".into()),
            agent_id: None,
            tool_name: (!tool.is_empty()).then(|| tool.to_owned()),
            tool_use_id: None,
            cwd: None,
            project_dir: None,
            project: Some("/p".into()),
            root: Some("/p".into()),
            transcript_path: None,
            branch: None,
            commit: None,
            files: file
                .map(|(path, role)| TouchedFile {
                    path: format!("/p/{path}"),
                    role,
                    size: Some(1),
                    mtime: None,
                    hash: None,
                })
                .into_iter()
                .collect(),
            payload,
            at,
        });
        self
    }

    fn asked(self, prompt: &str) -> Script {
        let payload = Payload {
            prompt: Some(prompt.into()),
            ..Payload::default()
        };
        self.push(EventKind::Prompt, "", None, payload)
    }

    fn tool(
        self,
        tool: &str,
        file: Option<(&str, FileRole)>,
        input: Value,
        response: Value,
    ) -> Script {
        let payload = Payload {
            input: Some(input),
            response: Some(response),
            ..Payload::default()
        };
        self.push(EventKind::ToolUse, tool, file, payload)
    }

    fn read(self, path: &str) -> Script {
        self.tool("Read", Some((path, FileRole::Read)), json!({}), json!({}))
    }

    fn edit(self, path: &str, old: &str, new: &str) -> Script {
        let lines: Vec<String> = [("-", old), ("+", new)]
            .iter()
            .flat_map(|(mark, text)| text.lines().map(move |line| format!("{mark}{line}")))
            .collect();
        self.tool(
            "Edit",
            Some((path, FileRole::Modified)),
            json!({}),
            json!({"structuredPatch": [{"lines": lines}]}),
        )
    }

    fn create(self, path: &str, content: &str) -> Script {
        self.tool(
            "Write",
            Some((path, FileRole::Modified)),
            json!({"content": content}),
            json!({"type": "create", "structuredPatch": []}),
        )
    }

    fn ran(self, command: &str, stdout: &str) -> Script {
        self.tool(
            "Bash",
            None,
            json!({"command": command}),
            json!({"stdout": stdout, "stderr": ""}),
        )
    }

    fn failed(self, command: &str, error: &str) -> Script {
        let payload = Payload {
            input: Some(json!({"command": command})),
            error: Some(error.into()),
            ..Payload::default()
        };
        self.push(EventKind::ToolFailure, "Bash", None, payload)
    }

    fn replied(self, reply: &str) -> Script {
        let payload = Payload {
            reply: Some(reply.into()),
            ..Payload::default()
        };
        self.push(EventKind::Stop, "", None, payload)
    }

    fn by_subagent(mut self, agent: &str) -> Script {
        self.events.last_mut().unwrap().agent_id = Some(agent.into());
        self
    }

    fn turn(self) -> Turn {
        Turn {
            prompt_id: Some("p".into()),
            events: self.events,
        }
    }

    /// Everything that was derived, in the order and words that a reader sees.
    fn told(self) -> String {
        let derived = one(self.turn());
        let mut out = String::new();
        for it in &derived.observations {
            let _ = writeln!(out, "[{}] {}\n  {}", it.kind, it.title, it.subtitle);
            for fact in &it.facts {
                let _ = writeln!(out, "  - {fact}");
            }
            let _ = writeln!(out, "  {}", it.narrative);
            let files: Vec<_> = it
                .files
                .iter()
                .map(|file| format!("{} {}", file.role, file.path))
                .collect();
            let _ = writeln!(out, "  {} | {}", it.concepts.join(", "), files.join(", "));
        }
        if let Some(summary) = derived.summary {
            for (name, text) in [
                ("request", &summary.request),
                ("investigated", &summary.investigated),
                ("learned", &summary.learned),
                ("completed", &summary.completed),
                ("next steps", &summary.next_steps),
                ("notes", &summary.notes),
            ] {
                if !text.is_empty() {
                    let _ = writeln!(out, "{name}: {text}");
                }
            }
        }
        out
    }

    fn titles(self) -> Vec<String> {
        let derived = one(self.turn());
        derived
            .observations
            .into_iter()
            .map(|it| format!("{}: {}", it.kind, it.title))
            .collect()
    }
}

fn one(turn: Turn) -> Derived {
    derive(&[turn]).turns.remove(0)
}

/// A session of several prompts.
fn session(scripts: impl IntoIterator<Item = Script>) -> Vec<Turn> {
    let turns = scripts.into_iter().enumerate();
    turns
        .map(|(number, script)| {
            let mut turn = script.turn();
            let shift = 1000 * i64::try_from(number).unwrap();
            turn.prompt_id = Some(format!("p{number}"));
            for event in &mut turn.events {
                event.at += shift;
                event.id = Uuid::from_u128(u128::from(event.at.unsigned_abs()));
                event.prompt_id = turn.prompt_id.clone();
            }
            turn
        })
        .collect()
}

fn titles(derived: &Derived) -> Vec<&str> {
    derived
        .observations
        .iter()
        .map(|it| it.title.as_str())
        .collect()
}

const PANIC: &str = "Exit code 101\nrunning 1 test\nthread 'expiry' panicked at src/a.rs:1:2:\nexpiry is inclusive\nnote: run with";

#[test]
fn a_failure_that_passes_after_an_edit_is_a_bugfix() {
    let script = Script::default()
        .asked("The expiry test fails, please fix it.")
        .read("src/token.rs")
        .failed("cargo test expiry", PANIC)
        .edit("src/token.rs", "now < end", "now <= end")
        .ran("cargo test expiry", "test result: ok")
        .replied("Fixed: the bound is inclusive.\n\nNext steps:\n- document it");
    insta::assert_snapshot!(script.told());
}

#[test]
fn a_failure_that_passes_without_a_change_proves_nothing() {
    let script = Script::default()
        .asked("run it")
        .failed("npm test", "Exit code 1\nECONNRESET")
        .ran("npm test", "ok");
    assert_eq!(script.titles(), [""; 0]);
}

#[test]
fn a_narrower_run_does_not_prove_a_repair() {
    let script = Script::default()
        .asked("Fix the tests")
        .failed("cargo test", PANIC)
        .edit("src/a.rs", "1", "2")
        .ran("cargo test one_of_many", "ok");
    insta::assert_snapshot!(script.titles().join("\n"));
}

#[test]
fn a_failure_hidden_by_a_pipe_is_seen_in_the_output() {
    let script = Script::default()
        .asked("Fix the tests")
        .ran(
            "cargo test 2>&1 | tail -20",
            "error[E0308]: mismatched types\nerror: could not compile `x`",
        )
        .edit("src/a.rs", "1", "2")
        .ran("cargo test 2>&1 | tail -20", "test result: ok. 3 passed");
    insta::assert_snapshot!(script.titles().join("\n"));
}

#[test]
fn a_commit_gives_its_subject_and_takes_the_repair_in() {
    let script = Script::default()
        .asked("Fix refunds")
        .failed("pytest", "Exit code 1\nE   AssertionError: refund twice")
        .edit("pay/refund.py", "pay()", "pay_once()")
        .ran("pytest", "2 passed")
        .ran(
            "git commit -am 'fix(refund): refund once'",
            "[main 1a2b3c4] fix(refund): refund once\n 1 file changed",
        )
        .replied("Done.");
    insta::assert_snapshot!(script.told());
}

#[test]
fn a_quiet_commit_is_known_by_its_message() {
    let script = Script::default()
        .asked("x")
        .edit("src/a.rs", "1", "2")
        .ran("git commit -q -m \"refactor: split the parser\"", "");
    assert_eq!(script.titles(), ["refactor: Split the parser"]);
}

#[test]
fn edits_of_a_prompt_are_one_observation() {
    let script = Script::default()
        .asked("Add a health endpoint. Keep it small.")
        .create("src/health.rs", "one\ntwo\n")
        .edit("src/routes.rs", "", "get(health)\nget(ready)")
        .edit("src/routes.rs", "get(ready)", "get(readiness)");
    insta::assert_snapshot!(script.told());
}

#[test]
fn reads_and_looking_around_are_not_memory() {
    let script = Script::default()
        .asked("How does login work?")
        .read("src/login.rs")
        .failed("grep -r secret .", "Exit code 1")
        .ran("ls", "src")
        .replied("Login checks the password, then issues a token.");
    insta::assert_snapshot!(script.told());
}

#[test]
fn a_failure_that_stays_is_a_discovery() {
    let script = Script::default()
        .asked("Deploy to staging")
        .failed(
            "./deploy.sh staging",
            "Exit code 1\nconnecting\nerror: database refuses connections",
        )
        .failed(
            "./deploy.sh staging",
            "Exit code 1\nconnecting\nerror: database refuses connections",
        );
    insta::assert_snapshot!(script.told());
}

#[test]
fn what_only_a_subagent_did_is_marked_as_its_own() {
    let turn = Script::default()
        .asked("x")
        .edit("a.rs", "1", "2")
        .by_subagent("agent-7")
        .turn();
    assert_eq!(
        one(turn).observations[0].agent_id.as_deref(),
        Some("agent-7")
    );
    let turn = Script::default()
        .asked("x")
        .edit("a.rs", "1", "2")
        .by_subagent("agent-7")
        .edit("a.rs", "2", "3")
        .turn();
    assert_eq!(one(turn).observations[0].agent_id, None);
}

#[test]
fn the_same_turn_gives_the_same_words_and_seeds() {
    let script = || {
        Script::default()
            .asked("x")
            .failed("make", "Exit code 2\nboom")
            .edit("a.c", "1", "2")
            .ran("make", "")
    };
    assert_eq!(one(script().turn()), one(script().turn()));
    // More of the same turn: the repair keeps its seed, so it keeps its number.
    let longer = script().ran("make install", "").replied("ok");
    assert_eq!(
        one(script().turn()).observations[0].seed,
        one(longer.turn()).observations[0].seed
    );
}

#[test]
fn a_failure_that_passes_for_a_later_prompt_is_one_bugfix_with_one_number() {
    let turns = session([
        Script::default()
            .asked("Run the tests")
            .failed("make test", "Exit code 2\nboom"),
        Script::default()
            .asked("Fix that")
            .edit("a.c", "1", "2")
            .ran("make test", ""),
    ]);
    let before = derive(&turns[..1]).turns;
    assert_eq!(titles(&before[0]), ["`make test` fails: boom"]);
    let after = derive(&turns).turns;
    assert_eq!(titles(&after[0]), [""; 0]);
    assert_eq!(titles(&after[1]), ["Fixed “boom” in a.c"]);
    assert_eq!(
        before[0].observations[0].seed,
        after[1].observations[0].seed
    );
}

#[test]
fn what_goes_on_failing_keeps_its_number() {
    let script = || {
        Script::default()
            .asked("x")
            .failed("make", "Exit code 2\nboom")
    };
    let longer = script()
        .edit("a.c", "1", "2")
        .failed("make", "Exit code 2\nbang");
    let seed = |script: Script| one(script.turn()).observations.pop().unwrap().seed;
    assert_eq!(seed(script()), seed(longer));
}

#[test]
fn what_was_tried_and_undone_is_rejected_and_changes_nothing() {
    let script = Script::default()
        .asked("Make the parser faster")
        .edit("parser.py", "parse(line)", "cached_parse(line)")
        .failed("pytest", "Exit code 1\nE   AssertionError: stale line")
        .ran("git checkout -- parser.py", "")
        .edit("reader.py", "read(1)", "read(4096)")
        .replied(
            "Reads are buffered now. I first tried a cache around parse, but it gave stale lines.",
        );
    insta::assert_snapshot!(script.told());
}

#[test]
fn a_later_prompt_can_undo_what_an_earlier_one_did() {
    let turns = session([
        Script::default()
            .asked("Add a retry")
            .edit("a.py", "send()", "retry(send)")
            .edit("b.py", "1", "2"),
        Script::default()
            .asked("Undo the retry, the server counts every call.")
            .edit("a.py", "retry(send)", "send()"),
    ]);
    let derived = derive(&turns).turns;
    assert_eq!(titles(&derived[0]), ["Add a retry (b.py)"]);
    assert_eq!(titles(&derived[1]), ["Rejected: `retry(send)` (a.py)"]);
    assert_eq!(derived[1].observations[0].origin, Origin::User);
}

#[test]
fn scaffolding_that_was_taken_away_is_not_told() {
    let script = Script::default()
        .asked("Why is it slow?")
        .edit("a.py", "run()", "print(clock()); run()")
        .failed("pytest", "Exit code 1\nE   AssertionError: slow")
        .edit("a.py", "print(clock()); run()", "run()")
        .create("scratch.py", "x\n")
        .ran("rm scratch.py", "");
    assert_eq!(
        script.titles(),
        ["discovery: `pytest` fails: AssertionError: slow"]
    );
}

#[test]
fn what_is_stashed_and_taken_up_again_is_a_change() {
    let script = Script::default()
        .asked("Add a limit")
        .edit("a.py", "1", "2")
        .ran("git stash", "")
        .ran("git stash pop", "");
    assert_eq!(script.titles(), ["feature: Add a limit (a.py)"]);
}

#[test]
fn a_commit_that_was_reverted_was_an_attempt() {
    let script = Script::default()
        .asked("Add a limit")
        .edit("a.py", "run()", "run(limit=3)")
        .ran("git commit -am 'Add a limit'", "[main 1a2b3c4] Add a limit")
        .ran("git revert --no-edit HEAD", "[main 2b3c4d5] Revert")
        .replied("I reverted the limit: three is too few.");
    assert_eq!(script.titles(), ["decision: Rejected: the limit (a.py)"]);
}

#[test]
fn a_test_that_was_written_first_is_part_of_the_feature() {
    let script = Script::default()
        .asked("Add a limit")
        .create("test_a.py", "def test_limit():\n")
        .failed("pytest", "Exit code 1\nE   NameError: limit")
        .edit("a.py", "run()", "run(limit=3)")
        .ran("pytest", "1 passed");
    assert_eq!(script.titles(), ["feature: Add a limit (a.py, test_a.py)"]);
}

#[test]
fn next_steps_that_the_user_asked_for_since_are_done_with() {
    let turns = session([
        Script::default()
            .asked("Add a limit")
            .replied("Done.\n\nNext steps:\n- document the limit\n- ask the customers"),
        Script::default().asked("Document the limit in the README."),
    ]);
    let next = |derived: &Derived| derived.summary.as_ref().unwrap().next_steps.clone();
    assert_eq!(next(&derive(&turns).turns[0]), "ask the customers");
}

#[test]
fn no_words_and_no_output_make_it_panic() {
    let text = "Ja… I tried “Ümläute” – but: `ß.é` `\n\n- I chose ÄÖ because 日本。\n1. don't use é\n\nNext: ✓\nFAIL: x (é)\nerror: é";
    for (at, _) in text.char_indices() {
        for part in [&text[..at], &text[at..]] {
            let turn = Script::default()
                .asked(part)
                .edit("é.py", part, "ß")
                .failed("pytest é", part)
                .edit("é.py", "ß", part)
                .ran(part, part)
                .replied(part)
                .turn();
            derive(&[turn]);
        }
    }
}

#[test]
fn what_is_committed_and_then_edited_back_was_done_twice() {
    let script = Script::default()
        .asked("Add a limit")
        .edit("a.py", "run()", "run(limit=3)")
        .ran("git commit -am 'Add a limit'", "[main 1a2b3c4] Add a limit")
        .edit("a.py", "run(limit=3)", "run()")
        .replied("I took out the limit again: three is too few.");
    assert_eq!(
        script.titles(),
        [
            "feature: Add a limit",
            "refactor: a.py: `run(limit=3)` became `run()`"
        ]
    );
}

#[test]
fn a_turn_has_at_most_three_decisions() {
    let script = Script::default()
        .asked("Don't use Redis. Never use tabs.")
        .replied("I chose a list. I decided against a set. We decided to use spaces.");
    assert_eq!(
        script.titles(),
        [
            "decision: Don't use Redis",
            "decision: Never use tabs",
            "decision: Chose a list"
        ]
    );
}

#[test]
fn what_still_fails_was_not_fixed() {
    let failing = || {
        Script::default()
            .asked("fix the login bug")
            .failed("pytest -x", "Exit code 1\nE   AssertionError: 401 != 200")
            .edit("src/unrelated.md", "a", "b")
    };
    let trouble = "discovery: `pytest -x` fails: AssertionError: 401 != 200";
    let could_not = failing().replied("I could not fix the login bug.");
    let again = failing().failed("pytest -x", "Exit code 1\nE   AssertionError: 401 != 200");
    for script in [could_not, again] {
        let mut titles = script.titles();
        titles.sort();
        assert_eq!(
            titles,
            [
                "discovery: Tried to fix the login bug, not fixed (src/unrelated.md)",
                trouble
            ]
        );
    }
    // Nobody ran it again, so nobody knows.
    assert!(failing().titles().contains(
        &"discovery: Tried to fix the login bug, not seen to pass (src/unrelated.md)".to_owned()
    ));
    let seed = |script: Script| {
        let derived = one(script.turn());
        let edits = |it: &&foreword_core::model::Observation| it.seed.starts_with("edits:");
        derived
            .observations
            .iter()
            .find(edits)
            .unwrap()
            .seed
            .clone()
    };
    let unproved = Script::default().asked("fix it").edit("a", "1", "2");
    assert_eq!(seed(failing()), seed(unproved));
}

#[test]
fn a_commit_that_was_reset_is_gone() {
    let script = |reset: &str| {
        Script::default()
            .asked("Add a limit")
            .edit("a.py", "run()", "run(limit=3)")
            .ran("git commit -am 'Add a limit'", "[main 1a2b3c4] Add a limit")
            .ran(reset, "HEAD is now at 7777777 Before")
    };
    let hard = script("git reset --hard HEAD~1");
    assert_eq!(hard.titles(), ["decision: Rejected: `run(limit=3)` (a.py)"]);
    let completed = |script: Script| one(script.turn()).summary.unwrap().completed;
    assert_eq!(
        completed(script("git reset --hard HEAD~1")),
        "Tried and undone: `run(limit=3)`."
    );
    for reset in ["git reset --soft HEAD~1", "git reset HEAD^"] {
        assert_eq!(
            script(reset).titles(),
            ["feature: Add a limit (a.py)"],
            "{reset}"
        );
        assert_eq!(completed(script(reset)), "Changed a.py.");
    }
    let amended = script("git commit --amend --no-edit")
        .edit("b.py", "1", "2")
        .ran("git commit -am 'Add b'", "[main 2b3c4d5] Add b")
        .ran("git reset --hard HEAD~2", "");
    assert_eq!(
        amended.titles(),
        ["decision: Rejected: `run(limit=3)` (a.py, b.py)"]
    );
    let squashed = script("git reset --soft HEAD~1 && git commit -m 'Limit runs'");
    assert_eq!(squashed.titles(), ["feature: Limit runs"]);
}

#[test]
fn a_commit_of_unseen_changes_claims_no_files() {
    let turn = Script::default()
        .asked("commit it")
        .ran("git commit -m 'Add orders'", "[main 7777777] Add orders")
        .turn();
    assert_eq!(
        one(turn).observations[0].subtitle,
        "Committed as 7777777: which files is not known"
    );
}

#[test]
fn a_command_that_changes_files_can_be_the_repair() {
    let script = |between: &str| {
        Script::default()
            .asked("the linter is red, fix it")
            .failed("npm run lint", "Exit code 1\nerror: no-unused-vars")
            .ran(between, "")
            .ran("npm run lint", "0 errors")
    };
    assert_eq!(
        script("sed -i 's/x/y/' src/a.js").titles(),
        ["bugfix: Fixed “error: no-unused-vars”, changed by `sed -i 's/x/y/' src/a.js`"]
    );
    assert_eq!(script("sed -n 1p src/a.js").titles(), [""; 0]);
    let undone = Script::default()
        .asked("the linter is red, fix it")
        .failed("npm run lint", "Exit code 1\nerror: no-unused-vars")
        .ran("sed -i 's/x/y/' src/a.js", "")
        .ran("git checkout .", "")
        .ran("npm run lint", "0 errors");
    assert_eq!(undone.titles(), [""; 0]);
}

#[test]
fn a_pass_in_another_folder_repairs_nothing() {
    let script = Script::default()
        .asked("Look at the crash")
        .failed("python app.py", "Exit code 1\nKeyError: 'x'")
        .edit("app.py", "d[x]", "d.get(x)")
        .ran("cd /other && python app.py", "ok");
    let titles = script.titles();
    assert!(
        titles.contains(&"discovery: `python app.py` fails: KeyError: 'x'".to_owned()),
        "{titles:?}"
    );
}

#[test]
fn titles_say_what_and_not_why() {
    let script = Script::default()
        .asked("Add a limit")
        .edit("a.py", "run()", "run(limit=3)")
        .ran("git commit -am 'Add a limit'", "[main 1a2b3c4] Add a limit")
        .ran("git revert --no-edit HEAD", "[main 2b3c4d5] Revert")
        .replied("I reverted the commit because the limit is too low.");
    assert_eq!(script.titles(), ["decision: Rejected: the commit (a.py)"]);
    let script = Script::default()
        .asked("x")
        .edit("src/a.rs", "1", "2")
        .ran("git commit -am wip", "[main 1a2b3c4] wip");
    assert_eq!(script.titles(), ["feature: Wip (src/a.rs)"]);
}

#[test]
fn what_a_reply_quotes_from_a_file_is_no_finding_of_the_agent() {
    let script = Script::default()
        .asked("Summarise the README")
        .tool(
            "Read",
            Some(("README.md", FileRole::Read)),
            json!({}),
            json!({"file": {"content": "I decided to drop `winapi` for good."}}),
        )
        .replied("The README says:\n\n> I decided to drop `winapi` for good.");
    assert_eq!(script.titles(), [""; 0]);
}

#[test]
fn a_repair_is_told_with_the_first_commit_after_it_alone() {
    let turn = Script::default()
        .asked("the linter is red, fix it")
        .failed("npm run lint", "Exit code 1\nerror: no-unused-vars")
        .ran("sed -i 's/x/y/' src/a.js", "")
        .ran("npm run lint", "0 errors")
        .ran("git commit -am 'Fix lint'", "[main 1a2b3c4] Fix lint")
        .edit("b.js", "1", "2")
        .ran("git commit -am 'Add b'", "[main 2b3c4d5] Add b")
        .turn();
    let told: Vec<bool> = one(turn)
        .observations
        .iter()
        .map(|it| it.facts.concat().contains("no-unused-vars"))
        .collect();
    assert_eq!(told, [true, false]);
}

#[test]
fn all_runs_that_one_pass_settles_are_one_repair() {
    let turn = Script::default()
        .asked("Fix the tests")
        .failed("cargo test a", "Exit code 101\nerror: one")
        .edit("a.rs", "1", "2")
        .failed("cargo test b", "Exit code 101\nerror: two")
        .ran("cargo test", "ok")
        .turn();
    assert_eq!(
        one(turn).observations[0].facts,
        [
            "`cargo test a` failed with exit code 101: error: one",
            "Then, after changes to a.rs: error: two",
            "`cargo test` passes after 2 failing runs",
            "a.rs: `1` became `2`",
        ]
    );
}
