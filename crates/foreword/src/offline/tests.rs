//! What is derived from small sessions. `testdata/quality` and `tests/it/quality.rs` have whole
//! ones; the tests of `tools`, `prose` and `title` have the parts.

use std::path::Path;

use foreword_core::capture::{CaptureContext, CaptureSettings, Captured, capture};
use foreword_core::host::{HOSTS, Hook};
use foreword_core::model::{EventKind, Observation, ObservationType, Origin, Turn};
use foreword_core::project::Rules;
use serde_json::{Value, json};
use uuid::Uuid;

use super::cues::Cue;
use super::{DerivedSession, derive, turn};
use crate::tests::host::Host;

/// A session whose hooks are captured as turns.
struct Session {
    host: Host,
    turns: Vec<Turn>,
    count: i64,
    _project: tempfile::TempDir,
}

impl Session {
    fn new() -> Session {
        let project = tempfile::tempdir().unwrap();
        Session {
            host: Host::new("s1", project.path()),
            turns: Vec::new(),
            count: 0,
            _project: project,
        }
    }

    fn hook(&mut self, hook: Hook, input: &Value) {
        self.count += 1;
        let context = CaptureContext {
            host: &HOSTS[0],
            now: self.count * 1_000,
            event_id: Uuid::from_u128(self.count.unsigned_abs().into()),
            project_dir: Some(self.host.project.clone()),
            rules: Rules::default(),
        };
        let settings = CaptureSettings::default();
        let captured = capture(hook, input.to_string().as_bytes(), &context, &settings);
        let Captured::Event(event) = captured else {
            return;
        };
        if event.kind == EventKind::Prompt {
            self.turns.push(Turn {
                prompt_id: Some(format!("p{}", self.turns.len() + 1)),
                events: Vec::new(),
            });
        }
        self.turns.last_mut().unwrap().events.push(*event);
    }

    fn prompt(&mut self, text: &str) -> &mut Session {
        self.hook(Hook::New, &self.host.prompt(text));
        self
    }

    fn edit(&mut self, path: &str, old: &str, new: &str) -> &mut Session {
        self.hook(Hook::Save, &self.host.edit(path, old, new));
        self
    }

    fn bash(&mut self, command: &str, printed: &str) -> &mut Session {
        self.hook(Hook::Save, &self.host.bash(command, printed));
        self
    }

    fn fails(&mut self, command: &str, error: &str) -> &mut Session {
        self.hook(Hook::Save, &self.host.bash_failed(command, error));
        self
    }

    fn commit(&mut self, hash: &str, subject: &str, body: &str) -> &mut Session {
        let command = format!("git commit -q -m '{subject}' -m '{body}' && git log --oneline -1");
        self.bash(&command, &format!("{hash} {subject}\n"))
    }

    fn tool(&mut self, tool: &str, input: Value, response: Value) -> &mut Session {
        self.hook(Hook::Save, &self.host.tool(tool, input, response));
        self
    }

    fn reply(&mut self, text: &str) -> &mut Session {
        self.hook(Hook::Summary, &self.host.stop(text));
        self
    }

    fn derive(&self) -> DerivedSession {
        derive(&self.turns)
    }

    fn observations(&self) -> Vec<Observation> {
        let turns = self.derive().turns.into_iter();
        turns.flat_map(|it| it.observations).collect()
    }

    /// Type, title and facts (the subtitle first) of each observation that holds.
    fn told(&self) -> String {
        let mut told = String::new();
        for it in self.observations() {
            if it.retracted.is_none() {
                told += &format!("{}: {}\n", it.kind, it.title);
                let facts = std::iter::once(&it.subtitle).chain(&it.facts);
                for fact in facts.filter(|it| !it.is_empty()) {
                    told += &format!("  {fact}\n");
                }
            }
        }
        told
    }
}

const RED: &str = "Exit code 101\n\
    thread 'expiry' panicked at src/token.rs:9:5:\n\
    assertion failed: now <= expires\n\
    test result: FAILED. 7 passed; 1 failed; 0 ignored";

const GREEN: &str = "running 8 tests\n\n\
    test result: ok. 8 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";

#[test]
fn a_test_that_was_red_and_is_green_makes_a_bugfix_with_the_failing_line() {
    let mut session = Session::new();
    session
        .prompt("Tokens expire a second early, please look into it")
        .fails("cargo test", RED)
        .edit("src/token.rs", "now < expires", "now <= expires")
        .bash("cargo test", GREEN)
        .reply("`Token::is_valid` compared with `<`, so a token was invalid in its last second. It now uses `<=`.");
    insta::assert_snapshot!(session.told(), @"
    bugfix: `Token::is_valid` compared with `<`, so a token was invalid in its last second
      `cargo test` failed (“assertion failed: now <= expires”) and passes now
    ");
}

#[test]
fn a_commit_gives_its_subject_as_title_and_its_body_as_facts() {
    let mut session = Session::new();
    session
        .prompt("do what we discussed")
        .edit("src/retry.rs", "attempts: 1", "attempts: 3")
        .commit(
            "3f9c2ab",
            "feat: retry uploads three times",
            "The gateway restarts within a second, so the third attempt always got through in the load test.",
        )
        .reply("Done.");
    insta::assert_snapshot!(session.told(), @"
    feature: Retry uploads three times
      The gateway restarts within a second, so the third attempt always got through in the load test.
      Committed as 3f9c2ab
    ");
}

#[test]
fn a_rule_of_the_user_is_an_item_of_its_own() {
    let mut session = Session::new();
    session
        .prompt("Rename `amount` to `euros` in the ledger. From now on never commit to main directly.")
        .edit("src/ledger.rs", "let amount = 1;", "let euros = 1;")
        .reply("`Ledger::amount` is called `Ledger::euros` now, and the three callers in `report.rs` follow.");
    let observations = session.observations();
    let rule = &observations[0];
    assert_eq!(
        (rule.kind, rule.origin),
        (ObservationType::Decision, Origin::User)
    );
    insta::assert_snapshot!(session.told(), @"
    decision: From now on never commit to main directly
      The user: “From now on never commit to main directly.”
    feature: `Ledger::amount` is called `Ledger::euros` now, and the three callers in `report.rs` follow
    ");
}

#[test]
fn an_answered_question_keeps_the_options_that_were_refused() {
    let mut session = Session::new();
    let question = "Where should sessions be stored?";
    let options = json!([
        {"label": "Redis", "description": "one more service"},
        {"label": "Postgres", "description": "there already"},
        {"label": "Signed cookies", "description": "no store"},
    ]);
    let questions = json!([{"question": question, "header": "Store", "options": options}]);
    session
        .prompt("Add sessions to the web server")
        .tool(
            "AskUserQuestion",
            json!({"questions": questions}),
            json!({"questions": questions, "answers": {question: "Postgres"}}),
        )
        .reply("I will store them in Postgres.");
    insta::assert_snapshot!(session.told(), @"
    decision: Where should sessions be stored → Postgres
      The user: “Postgres” to “Where should sessions be stored?” (not: Redis; Signed cookies)
    ");
}

#[test]
fn an_answer_about_how_to_go_on_is_no_decision() {
    let mut session = Session::new();
    let question = "This is a todo. What would you like to do with it?";
    let answers = json!({question: "Work on it now"});
    let options =
        json!([{"label": "Work on it now"}, {"label": "Put it back"}, {"label": "Drop it"}]);
    let questions = json!([{"question": question, "options": options}]);
    let asked = json!({"questions": questions});
    let answered = json!({"questions": questions, "answers": answers});
    session
        .prompt("next todo")
        .tool("AskUserQuestion", asked, answered);
    session.edit("src/export.rs", "let bom = false;", "let utf8_bom = true;");
    session.reply("`export.rs` writes `utf8_bom` before the header, so that Excel reads umlauts.");
    let kinds: Vec<_> = session.observations().iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [ObservationType::Feature], "{}", session.told());
}

#[test]
fn what_was_removed_and_put_back_is_not_told() {
    let mut session = Session::new();
    session.prompt("address the review");
    session.edit(
        "e2e_test.go",
        "\tt.Parallel()\n\trunLogin(t)",
        "\trunLogin(t)",
    );
    session.edit("flags.go", "defaultAgent()", "agentFromFlag()");
    session.reply(
        "- Removed `t.Parallel()` from all E2E tests in `e2e_test.go`, because of rate limits\n\
         - `flags.go` reads the agent with `agentFromFlag()` instead of `defaultAgent()`",
    );
    let before = session.told();
    assert!(before.contains("Removed `t.Parallel"), "{before}");
    session.prompt("put the parallel calls back");
    session.edit(
        "e2e_test.go",
        "\trunLogin(t)",
        "\tt.Parallel()\n\trunLogin(t)",
    );
    session.reply("Done.");
    let after = session.told();
    assert!(
        after.contains("agentFromFlag") && !after.contains("t.Parallel"),
        "{after}"
    );
}

#[test]
fn what_a_later_turn_took_out_again_is_not_told() {
    let mut session = Session::new();
    session
        .prompt("resolve the agent of each session")
        .edit(
            "restore.go",
            "return load(id)",
            "return load(id, agentOf(id))\nif missing { warn(); return outer fallback agent }",
        )
        .reply(
            "- `restore.go` loads each session with `agentOf`\n\
             - If it is missing, the outer agent is the fallback in `restore.go`",
        );
    let before = session.told();
    assert!(before.contains("is the fallback"), "{before}");
    session
        .prompt("fail if it is missing")
        .edit(
            "restore.go",
            "if missing { warn(); return outer fallback agent }",
            "if missing { return errMissing }",
        )
        .reply("Done.");
    let after = session.told();
    assert!(
        after.contains("agentOf") && !after.contains("fallback"),
        "{after}"
    );
}

#[test]
fn a_finding_is_told_with_a_later_repair_only_if_it_is_about_the_same() {
    let repair = |finding: &str| {
        let mut session = Session::new();
        session
            .prompt("what does the token do?")
            .bash("cat deploy.yml", "token: read")
            .reply(finding)
            .prompt("and where do the dashboards come from?")
            .bash("ls grafana", "main.json")
            .reply("`main.json` in `grafana` has the dashboards, `provision.yml` loads them.")
            .prompt("the healthcheck fails, fix it")
            .edit(
                "compose.yml",
                "pg_isready -U app",
                "pg_isready -U app -d app",
            )
            .reply("`pg_isready` in `compose.yml` failed without `-d`; it now names the database.");
        session.told()
    };
    let about = "The `pg_isready` of `compose.yml` cannot see the database, but `psql` can.";
    assert!(repair(about).contains("Found before the change: The `pg_isready`"));
    let apart = "The token in `deploy.yml` is read-only, but `compose.yml` would need to write.";
    assert!(!repair(apart).contains("read-only"));
}

#[test]
fn a_report_of_the_client_that_a_call_failed_is_no_reply() {
    let mut session = Session::new();
    session.prompt("what does `src/export.rs` write first?");
    session.reply("API Error: 401 OAuth token has expired, `src/export.rs` was not read at all");
    let stop = session.turns[0].events.last().unwrap();
    assert_eq!((stop.kind, &stop.payload.reply), (EventKind::Stop, &None));
}

#[test]
fn a_correction_takes_back_what_it_contradicts() {
    let mut session = Session::new();
    session
        .prompt("How long does the session cache keep an entry?")
        .bash("grep -rn ttl src", "src/cache.rs:4: ttl: 3600")
        .reply("`SessionCache` keeps an entry for 3600 seconds. `Cache::sweep` in `src/cache.rs` drops older ones once a minute.")
        .prompt("No, that is wrong: 3600 is the ttl of the page cache, sessions stay for 900 seconds.")
        .bash("grep -n session src/cache.rs", "9: session_ttl: 900")
        .reply("You are right. `session_ttl` in `src/cache.rs` is 900 seconds, and `Cache::sweep` uses it for sessions.");
    insta::assert_snapshot!(session.told(), @"
    discovery: `session_ttl` in `cache.rs` is 900 seconds, and `Cache::sweep` uses it for sessions
      The user: “No, that is wrong: 3600 is the ttl of the page cache, sessions stay for 900 seconds.”
    ");
}

#[test]
fn an_attempt_that_was_given_up_is_told_with_its_reason() {
    let mut session = Session::new();
    session
        .prompt("Imports of big files run out of memory")
        .edit(
            "src/import.py",
            "rows = load(path)",
            "rows = mapped_buffer(path, window=PAGE_WINDOW)",
        )
        .reply("`src/import.py` maps the file with `mapped_buffer` in windows of `PAGE_WINDOW` bytes instead of loading it.")
        .prompt("No, the share is on NFS and mapping does not work there. Read it in chunks instead.")
        .edit(
            "src/import.py",
            "rows = mapped_buffer(path, window=PAGE_WINDOW)",
            "rows = chunked_reader(path, CHUNK_ROWS)",
        )
        .reply("`src/import.py` reads the file with `chunked_reader`, `CHUNK_ROWS` rows at a time, so memory stays below 200 MB.");
    insta::assert_snapshot!(session.told(), @"
    feature: `import.py` reads the file with `chunked_reader`, `CHUNK_ROWS` rows at a time
      The user: “No, the share is on NFS and mapping does not work there.”
      `src/import.py` reads the file with `chunked_reader`, `CHUNK_ROWS` rows at a time, so memory stays below 200 MB.
      Given up: `import.py` maps the file with `mapped_buffer` in windows of `PAGE_WINDOW` bytes instead (then the user: “No, the share is on NFS and mapping does not work there.”)
    ");
    assert_eq!(session.derive().digest.given_up.len(), 1);
}

#[test]
fn a_turn_in_which_nothing_happened_leaves_nothing() {
    for (prompt, command, reply) in [
        ("yes", "", "Great, then we are done."),
        ("thanks!", "", "You are welcome!"),
        ("git status", "git status", "The working tree is clean."),
        ("hi", "", "Hello! What shall we work on?"),
    ] {
        let mut session = Session::new();
        session.prompt(prompt);
        if !command.is_empty() {
            session.bash(command, "nothing to commit, working tree clean");
        }
        session.reply(reply);
        let derived = session.derive();
        assert_eq!(derived.turns, [Default::default()], "{prompt}");
    }
}

#[test]
fn a_claim_of_success_against_a_red_run_is_stored_with_the_contradiction() {
    let mut session = Session::new();
    session
        .prompt("Tokens need a grace period of a minute")
        .edit("src/token.rs", "now <= expires", "now <= expires + GRACE")
        .bash(
            "cargo test 2>&1 | tail -5",
            "assertion failed: now <= expires\ntest result: FAILED. 7 passed; 1 failed; 0 ignored",
        )
        .reply("`Token::is_valid` in `src/token.rs` adds `GRACE` to the expiry. All tests pass.");
    insta::assert_snapshot!(session.told(), @"
    feature: `Token::is_valid` in `token.rs` adds `GRACE` to the expiry
      `cargo test` failed in its last run: “assertion failed: now <= expires”
      The agent said: “All tests pass.”; the run shows: “assertion failed: now <= expires”
    ");
}

#[test]
fn several_commits_of_a_turn_give_several_observations_and_eight_at_most() {
    let of_commits = |count: usize| {
        let mut session = Session::new();
        session.prompt("Carry out the list in TODO.md, one commit each");
        let parts = [
            "parser", "lexer", "printer", "linker", "loader", "packer", "signer", "mailer",
            "sender",
        ];
        for (number, part) in parts.iter().take(count).enumerate() {
            session
                .edit(
                    &format!("src/{part}.rs"),
                    "old",
                    &format!("fn {part}_limit() -> usize {{ {number} }}"),
                )
                .commit(
                    &format!("3f9c2a{number}"),
                    &format!("feat: give the {part} a limit of its own"),
                    &format!("The {part} took whatever it was given and could fill the disk of the build machine."),
                );
        }
        session.reply("All of the list is done.");
        let observations = session.observations();
        observations
            .into_iter()
            .map(|it| it.title)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of_commits(2),
        [
            "Give the parser a limit of its own",
            "Give the lexer a limit of its own"
        ]
    );
    assert_eq!(of_commits(9).len(), 8);
}

#[test]
fn the_same_events_give_the_same_observations() {
    let mut session = Session::new();
    session
        .prompt("Tokens expire a second early. Always use UTC in tests.")
        .fails("cargo test", RED)
        .edit("src/token.rs", "now < expires", "now <= expires")
        .bash("cargo test", GREEN)
        .reply("`Token::is_valid` compared with `<`, so a token was invalid in its last second.");
    assert_eq!(session.derive(), session.derive());
}

/// Prompts of `testdata/cues` whose kind is recognised (of 36), and those that lay nothing down
/// and are left alone (of 24). The author of the cue words did not write them. English was used
/// for development; the prompts are parallel, so no figure is independent of the others.
#[test]
fn cue_words_of_a_language_have_a_figure() {
    for (language, recognised, left_alone) in [
        ("en", 25, 24),
        ("de", 13, 23),
        ("es", 15, 23),
        ("fr", 19, 23),
        ("pt", 19, 22),
        ("ja", 23, 24),
        ("zh", 19, 22),
    ] {
        let path = format!("../../testdata/cues/{language}.jsonl");
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
        let (mut right, mut quiet, mut wrong) = (0, 0, Vec::new());
        for line in text.unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let prompt = line["prompt"].as_str().unwrap();
            let found = match turn::laid_down_by(prompt) {
                Some(Cue::Rule) => "rule",
                Some(Cue::Choice) => "choice",
                Some(Cue::Correction) => "correction",
                Some(Cue::Supposed) | None => "none",
            };
            if line["kind"] != found {
                wrong.push(format!("{} → {found}: {prompt:?}", line["kind"]));
            } else if found == "none" {
                quiet += 1;
            } else {
                right += 1;
            }
        }
        assert!(
            right >= recognised && quiet >= left_alone,
            "{language}: {right} recognised, {quiet} left alone\n{}",
            wrong.join("\n")
        );
    }
}

#[test]
fn a_check_that_passes_as_part_of_a_wider_one_is_not_red_any_more() {
    for (check, later, again) in [
        ("pytest -q tests/test_a.py", "pytest -q", true),
        (
            "python3 -m unittest tests.test_a",
            "python3 -m unittest",
            true,
        ),
        ("cargo test", "cargo test", true),
        ("make test", "make", false),
        ("pytest tests/test_a.py", "pytest tests/test_b.py", false),
        ("npm run lint", "npm run build", false),
    ] {
        assert_eq!(turn::runs_again(check, later), again, "{check}, {later}");
    }
}
