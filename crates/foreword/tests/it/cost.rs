//! The memory agent for its user: cost, budgets, the choice of a provider, and
//! deriving again. The model is scripted and counts its calls itself.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::client::model::Model;
use crate::support::{Host, Sandbox, feed};

const KEY: &str = "sk-test";

/// A home whose memory is written by a scripted model.
struct Desk {
    sandbox: Sandbox,
    model: Model,
    project: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Desk {
    fn new(turns: &Value) -> Desk {
        let sandbox = Sandbox::new();
        let model = Model::start(&sandbox.user_home().join("model"), turns);
        let project = sandbox.project("app");
        let environment = vec![
            ("FOREWORD_PROVIDER", "anthropic".to_owned()),
            (
                "FOREWORD_ANTHROPIC_BASE_URL",
                format!("http://127.0.0.1:{}", model.port()),
            ),
            ("FOREWORD_ANTHROPIC_MODEL", "claude-haiku-4-5".to_owned()),
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ];
        Desk {
            sandbox,
            model,
            project,
            environment,
        }
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = self.sandbox.command(arguments);
        command.envs(self.environment.clone()).output().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments)).unwrap()
    }

    /// The one line with which a command fails.
    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        assert_eq!(output.stdout, b"");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Sends a turn of three events; no worker processes them yet.
    fn turn(&self, session: &str, prompt: &str) {
        self.sandbox.keep_workers_away();
        let mut host = Host::new(session, &self.project);
        host.prompt = prompt.to_owned();
        let mut check = host.bash("sh check.sh", "the kumquat limit is 7");
        check["tool_use_id"] = format!("{session}-{prompt}").into();
        let run_hook =
            |hook: &str, input: &Value| self.sandbox.run_hook(hook, &self.project, input);
        run_hook("new", &host.prompt("Raise the kumquat limit"));
        run_hook("save", &check);
        run_hook("summary", &host.stop("The limit is 7 now."));
    }

    /// Number and title of all observations.
    fn observations(&self) -> Vec<(i64, String)> {
        let memory = self.sandbox.database("memory.db");
        let sql = "select id, title from observations order by id";
        let mut statement = memory.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    fn forget_events(&self, which: &str) {
        let memory = self.sandbox.database("memory.db");
        let sql = format!("delete from events where {which}");
        assert!(memory.execute(&sql, []).unwrap() > 0);
    }
}

/// An answer with these observations and a summary, and the tokens that it reports as used.
fn answer(titles: &[&str]) -> Value {
    let observations: String = titles
        .iter()
        .map(|title| {
            format!("<observation><type>discovery</type><title>{title}</title><subtitle>It holds.</subtitle><facts><fact>limit.txt holds 7</fact></facts><narrative>The check says so.</narrative></observation>\n")
        })
        .collect();
    let summary = "<summary><request>Raise the limit</request><completed>The limit is 7.</completed></summary>";
    json!({
        "text": format!("{observations}{summary}"),
        "usage": {"input_tokens": 1000, "cache_read_input_tokens": 500, "output_tokens": 200},
    })
}

fn prose() -> Value {
    json!({"text": "Sure, happy to help!", "usage": {"input_tokens": 900, "output_tokens": 10}})
}

fn no_login() -> Value {
    json!({"error": {"status": 401, "type": "authentication_error", "message": "invalid x-api-key"}})
}

#[test]
fn a_home_without_a_memory_has_cost_nothing() {
    let sandbox = Sandbox::new();
    let cost: Value = serde_json::from_str(&sandbox.run(&["cost", "--json"])).unwrap();
    let expected = json!({
        "since": null, "calls": 0, "failed": 0, "input_tokens": 0, "output_tokens": 0,
        "cache_read_tokens": 0, "cache_write_tokens": 0, "cost_usd": 0.0, "unpriced_calls": 0,
        "raw_tokens": 0, "memory_tokens": 0, "today": {"calls": 0, "cost_usd": 0.0},
        "budget": {"daily_usd": 1.0, "session_usd": 0.5}, "models": [], "stand_ins": [],
    });
    assert_eq!(cost, expected);
    assert!(!sandbox.home().exists());
    insta::assert_snapshot!(sandbox.run(&["cost"]), @r"
    calls       0 (in all)
    tokens      0 in (0 from the cache, 0 written to it), 0 out
    cost        $0.00 (list prices of 2026-11; the claude CLI counts its own)
    budget      $0.00 of $1.00 today, 0 calls
    ");
    let wrong = sandbox.command(&["cost", "--since", "yesterday"]).output();
    assert_eq!(wrong.unwrap().status.code(), Some(64));
}

#[test]
fn the_ledger_equals_the_models_own_count_also_after_failures() {
    let desk = Desk::new(&json!([
        no_login(),
        prose(),
        answer(&["Kumquat limit is seven"])
    ]));
    desk.turn("s1", "p1");
    assert!(desk.run(&["worker", "drain"]).contains("events are left"));
    let status = desk.json(&["status", "--json"]);
    assert_eq!(status["pending"], 3);
    assert_eq!(status["paused"]["kind"], "auth");
    assert_eq!(status["calls_today"], 1);
    assert_eq!(status["budget_usd"], 1.0);
    let text = desk.run(&["status"]);
    for words in [
        "waiting for the provider",
        "(auth): ",
        "$0.00 of $1.00 today, 1 call\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }

    let retried = desk.run(&["retry"]);
    assert!(retried.starts_with("anthropic was paused ("), "{retried}");
    assert!(retried.ends_with("everything is processed\n"), "{retried}");
    let status = desk.json(&["status", "--json"]);
    assert_eq!(
        (&status["pending"], &status["paused"]),
        (&json!(0), &Value::Null)
    );

    let cost = desk.json(&["cost", "--json"]);
    let (input, output) = desk.model.usage();
    assert_eq!(cost["calls"], desk.model.requests().len());
    assert_eq!(cost["calls"], 3);
    assert_eq!(cost["failed"], 2);
    assert_eq!(cost["input_tokens"], input);
    assert_eq!(cost["output_tokens"], output);
    assert_eq!(cost["cache_read_tokens"], 500);
    assert!(cost["cost_usd"].as_f64().unwrap() > 0.0, "{cost}");
    assert_eq!(cost["cost_usd"], status["cost_today_usd"]);
    assert_eq!(cost["unpriced_calls"], 0);
    assert!(cost["raw_tokens"].as_u64().unwrap() > 0, "{cost}");
    assert!(cost["memory_tokens"].as_u64().unwrap() > 0, "{cost}");
    assert_eq!(desk.json(&["cost", "--json", "--since", "1h"])["calls"], 3);
    assert_eq!(
        desk.json(&["cost", "--json", "--since", "2100-01-01"])["calls"],
        0
    );
    insta::assert_snapshot!(desk.run(&["cost"]), @r"
    calls       3, 2 failed (in all)
    tokens      2400 in (500 from the cache, 0 written to it), 210 out
    cost        $0.0030 (list prices of 2026-11; the claude CLI counts its own)
    budget      $0.0030 of $1.00 today, 3 calls
    memory      23 tokens of tool output became 25 tokens of memory

    anthropic   claude-haiku-4-5              2 calls     1 failed      2400 in      210 out  $0.0030
    anthropic   (no answer)                   1 calls     1 failed         0 in        0 out
    ");

    assert_eq!(
        desk.run(&["retry"]),
        "nothing to retry: no event was skipped, and nothing waits\n"
    );
    assert_eq!(desk.model.requests().len(), 3);
}

#[test]
fn retry_takes_up_what_was_skipped() {
    let desk = Desk::new(&json!([
        answer(&["First thing"]),
        answer(&["Second thing"])
    ]));
    desk.turn("s1", "p1");
    desk.run(&["worker", "drain"]);
    desk.turn("s1", "p2");
    let queue = desk.sandbox.database("queue.db");
    let fail = "update events set attempts = 1, last_error = 'too odd'";
    assert_eq!(queue.execute(fail, []).unwrap(), 3);
    let text = desk.run(&["status"]);
    assert!(
        text.contains(", to be tried again after: too odd\n"),
        "{text}"
    );
    let skip = "update events set state = 'skipped', attempts = 3";
    assert_eq!(queue.execute(skip, []).unwrap(), 3);
    drop(queue);
    assert_eq!(
        desk.run(&["retry"]),
        "3 skipped events are tried again\neverything is processed\n"
    );
    assert_eq!(desk.observations().len(), 2);
}

#[test]
fn redo_replaces_what_was_made_and_keeps_its_numbers() {
    let desk = Desk::new(&json!([
        answer(&["Kumquat limit is six"]),
        answer(&["Kumquat limit is seven"]),
        answer(&["Kumquat limit is seven", "Check reads the limit"]),
    ]));
    desk.turn("5e55-one", "p1");
    desk.run(&["worker", "drain"]);
    let [(id, title)] = &desk.observations()[..] else {
        panic!("not one observation");
    };
    assert_eq!(title, "Kumquat limit is six");

    let plan = desk.run(&["redo", "5e55", "--dry-run"]);
    assert!(
        plan.starts_with(
            "session 5e55-one: 1 turn, 3 events\n  anthropic would be asked 1 time, about "
        ),
        "{plan}"
    );
    assert!(
        plan.contains(&format!("would be replaced: #{id}, #"))
            || plan.contains(&format!(", #{id}\n")),
        "{plan}"
    );
    assert_eq!(desk.model.requests().len(), 1);

    let printed = desk.run(&["redo", "5e55"]);
    assert!(printed.starts_with("session 5e55-one: 1 turn was processed again, by anthropic: 3 events in 1 batch\n  replaced: "), "{printed}");
    assert_eq!(
        desk.observations(),
        [(*id, "Kumquat limit is seven".to_owned())]
    );

    let printed = desk.run(&["redo", &format!("#{id}")]);
    assert!(printed.contains("\n  added: #"), "{printed}");
    let made = desk.observations();
    assert_eq!((made.len(), made[0].0), (2, *id));
    assert_eq!(desk.json(&["cost", "--json"])["calls"], 3);
    assert_eq!(desk.model.requests().len(), 3);

    let why = desk.refuses(&["redo", "#999"]);
    assert!(why.contains("#999 came from no session"), "{why}");
    let why = desk.refuses(&["redo", "nobody"]);
    assert!(why.contains("there is no session 'nobody'"), "{why}");
    desk.forget_events("true");
    let why = desk.refuses(&["redo", "5e55"]);
    assert!(
        why.contains("are gone: they are kept for 7 days (retention.events_days)"),
        "{why}"
    );
    assert_eq!(desk.observations(), made);
}

#[test]
fn redo_leaves_a_turn_alone_of_which_only_half_is_kept() {
    let desk = Desk::new(&json!([
        answer(&["First thing learned"]),
        answer(&["Second thing learned"]),
        answer(&["Second thing learned better"]),
    ]));
    for prompt in ["p1", "p2"] {
        desk.turn("s1", prompt);
        desk.run(&["worker", "drain"]);
    }
    let before = desk.observations();
    desk.forget_events("turn = 'p1' and kind = 'prompt'");
    let printed = desk.run(&["redo", "s1"]);
    assert!(
        printed.contains("s1: 1 turn was processed again"),
        "{printed}"
    );
    assert!(
        printed.ends_with("  1 turn stays as it is: its events are gone\n"),
        "{printed}"
    );
    let after = desk.observations();
    assert_eq!(after[0], before[0]);
    assert_eq!(
        after[1],
        (before[1].0, "Second thing learned better".to_owned())
    );
    let why = desk.refuses(&["redo", &format!("#{}", before[0].0)]);
    assert!(why.contains("are gone"), "{why}");
}

#[test]
fn redo_waits_for_nobody_ends_the_worker_and_needs_a_budget() {
    let mut desk = Desk::new(&json!([answer(&["Kumquat limit is seven"])]));
    desk.turn("s1", "p1");
    desk.run(&["worker", "drain"]);
    let before = desk.observations();
    desk.run(&["worker", "start"]);
    let variable = ("FOREWORD_BUDGET_DAILY_USD", "0".to_owned());
    desk.environment.push(variable);
    let why = desk.refuses(&["redo", "s1"]);
    assert!(
        why.contains("the daily budget of $0.00 is used up; 0 of 1 batches"),
        "{why}"
    );
    assert_eq!(desk.observations(), before);
    assert_eq!(desk.sandbox.worker_pid(), None);

    desk.turn("s2", "p1");
    desk.run(&["worker", "drain"]);
    let why = desk.refuses(&["redo", "s"]);
    assert!(why.contains("several sessions begin with 's'"), "{why}");
}

#[test]
fn without_a_budget_memory_goes_on_offline_and_says_so() {
    let mut desk = Desk::new(&json!([]));
    let variable = ("FOREWORD_BUDGET_DAILY_USD", "0".to_owned());
    desk.environment.push(variable);
    desk.turn("s1", "p1");
    assert_eq!(desk.run(&["worker", "drain"]), "everything is processed\n");
    assert_eq!(desk.model.requests().len(), 0);
    let status = desk.json(&["status", "--json"]);
    assert_eq!(status["stand_ins"], 1);
    let why = "the daily budget of $0.00 is used up";
    assert_eq!(status["stand_ins_reason"], why);
    assert!(
        desk.run(&["status"])
            .contains(&format!("1 batch went offline: {why}"))
    );
    assert!(
        desk.run(&["cost"])
            .contains(&format!("1 batch went offline: {why}"))
    );
    assert_eq!(desk.json(&["cost", "--json"])["calls"], 0);
}

#[test]
fn install_keeps_the_word_of_consent_and_uninstall_takes_it_back() {
    let sandbox = Sandbox::new();
    let chosen = sandbox.home().join("provider");
    sandbox.run(&["install", "--dry-run", "--provider", "claude"]);
    assert!(!chosen.exists());
    let printed = sandbox.run(&["install"]);
    assert!(
        printed
            .contains("written offline, without a model; `foreword install --provider claude` has"),
        "{printed}"
    );
    assert!(!chosen.exists());

    for (name, needs) in [
        (
            "anthropic",
            "ANTHROPIC_API_KEY is not set here; it is needed by whatever starts Claude Code",
        ),
        ("openai", "set base_url and model under [openai] in "),
        ("offline", "written offline, without a model.\n"),
    ] {
        let printed = sandbox.run(&["install", "--provider", name]);
        assert!(
            printed.starts_with("Claude Code is connected already"),
            "{printed}"
        );
        assert!(printed.contains(needs), "{printed}");
        assert_eq!(
            std::fs::read_to_string(&chosen).unwrap(),
            format!("{name}\n")
        );
        let mode = std::fs::metadata(&chosen).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let status = sandbox.status();
        assert_eq!(status["provider"], name);
        assert_eq!(status["provider_reason"], "chosen at install");
    }
    let wrong = sandbox
        .command(&["install", "--provider", "gemini"])
        .output();
    assert_eq!(wrong.unwrap().status.code(), Some(64));

    sandbox.run(&["uninstall", "--dry-run"]);
    assert!(chosen.exists());
    sandbox.run(&["uninstall"]);
    assert!(!chosen.exists());
}

/// Runs a command on a terminal of its own, with this typed into it.
fn on_a_terminal(sandbox: &Sandbox, arguments: &[&str], typed: &str) -> String {
    let spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new("python3");
    sandbox.isolate(&mut command);
    command
        .args(["-c", spawn, env!("CARGO_BIN_EXE_foreword")])
        .args(arguments)
        .env("FOREWORD_CLAUDE_COMMAND", "sh")
        .stdin(Stdio::piped());
    let output = feed(command, typed.as_bytes());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn on_a_terminal_consent_is_asked_for_once_with_no_answer_preselected() {
    const QUESTION: &str = "claude, agent or offline? ";
    const ABOUT_TOOLS: &str = "yes or no? ";
    for (typed, asked, kept) in [
        ("claude\nyes\n", 1, Some("claude\n")),
        ("\nwhat\n\n Offline \nno\n", 4, Some("offline\n")),
        ("\ny\n\u{4}\u{4}", 3, None),
    ] {
        let sandbox = Sandbox::new();
        let chosen = sandbox.home().join("provider");
        let printed = on_a_terminal(&sandbox, &["install", "--dry-run"], typed);
        assert!(!printed.contains(QUESTION) && !chosen.exists(), "{printed}");
        assert!(!printed.contains(ABOUT_TOOLS), "{printed}");
        let printed = on_a_terminal(&sandbox, &["install"], typed);
        assert_eq!(printed.matches(QUESTION).count(), asked, "{printed}");
        for words in [
            "with its login",
            "came to $0.01 at list prices",
            "$1.00\r\n         a day",
        ] {
            assert!(printed.contains(words), "{words}: {printed}");
        }
        assert_eq!(std::fs::read_to_string(&chosen).ok().as_deref(), kept);
        if kept.is_some() {
            let printed = on_a_terminal(&sandbox, &["install"], "claude\n");
            assert!(!printed.contains(QUESTION), "{printed}");
            assert!(!printed.contains(ABOUT_TOOLS), "{printed}");
            assert_eq!(sandbox.status()["tools_allowed"], typed.ends_with("yes\n"));
            assert_eq!(std::fs::read_to_string(&chosen).ok().as_deref(), kept);
        }
    }
}

#[test]
fn processes_that_ask_at_the_same_time_stay_within_the_budget_together() {
    // An answer costs 2.1 cents, and a call may cost 2.3 cents at most: there is room for two.
    let mut dear = answer(&["Kumquat limit is seven"]);
    dear["usage"] = json!({"input_tokens": 1000, "output_tokens": 4000});
    dear["delay_ms"] = json!(300);
    let mut desk = Desk::new(&json!([
        dear, dear, dear, dear, dear, dear, dear, dear, dear
    ]));
    let budget = ("FOREWORD_BUDGET_DAILY_USD", "0.06".to_owned());
    desk.environment.push(budget);
    desk.turn("s1", "p1");
    let spawn = |arguments: &[&str]| {
        let mut command = desk.sandbox.command(arguments);
        command.envs(desk.environment.clone()).spawn().unwrap()
    };
    let worker = spawn(&["worker", "drain"]);
    let asking: Vec<_> = (0..8).map(|_| spawn(&["doctor", "--ask"])).collect();
    let mut refused = 0;
    for asking in asking {
        let output = asking.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        let by_budget = "the daily budget of $0.06 ";
        assert!(
            output.status.success() || error.contains(by_budget),
            "{error}"
        );
        refused += u32::from(!output.status.success());
    }
    assert!(worker.wait_with_output().unwrap().status.success());
    let cost = desk.json(&["cost", "--json"]);
    assert_eq!(desk.model.requests().len(), 2, "{cost}");
    assert!((6..=8).contains(&refused), "{refused}");
    let usd = cost["cost_usd"].as_f64().unwrap();
    assert!(usd > 0.04 && usd <= 0.06, "{cost}");
    // Nothing is installed here, so the exit code is 1.
    let reason = String::from_utf8(desk.output(&["doctor", "--json"]).stdout).unwrap();
    assert!(reason.contains("budget-used-up"), "{reason}");
}
