//! Short runs of the benches. Those that kill processes report no fault, unless a defect is planted.

use std::io::Write as _;
use std::process::{Command, Stdio};

use foreword_bench::host;
use foreword_bench::sandbox::BenchSandbox;
use foreword_core::fault::POINTS;
use serde_json::{Value, json};

use crate::program;

/// Enough rounds to visit each failure point several times.
const ROUNDS: u64 = 200;

/// Rounds after which a planted defect must have been found: each point once.
const PLANTED_ROUNDS: u64 = POINTS.len() as u64;

/// Runs a bench; returns its report, and whether it succeeded.
fn bench(arguments: &[&str]) -> (Value, bool) {
    program();
    let mut command = Command::new(env!("CARGO_BIN_EXE_foreword-bench"));
    command.args(arguments).arg("--json");
    // Shows that a bench needs nothing of the user's environment.
    let command = command.env_clear().env("HOME", "/nowhere");
    let output = command.current_dir("/").output().unwrap();
    let Ok(report) = serde_json::from_slice(&output.stdout) else {
        panic!("{output:?}");
    };
    (report, output.status.success())
}

fn crash(rounds: u64, arguments: &[&str]) -> (Value, bool) {
    let rounds = rounds.to_string();
    bench(&[&["crash", "--rounds", &rounds], arguments].concat())
}

fn assert_nothing_is_wrong(audit: &Value) {
    let found = ["lost", "doubled", "stuck", "damaged", "seen"].map(|it| audit[it].clone());
    let nothing = [json!(0), json!(0), json!(0), json!(0), json!([])];
    assert_eq!(found, nothing);
}

#[test]
fn two_hundred_rounds_of_kills_at_every_point_and_at_random_moments_lose_and_double_nothing() {
    let (report, succeeded) = crash(ROUNDS, &[]);
    assert_nothing_is_wrong(&report);
    assert!(succeeded);
    assert_eq!(report["rounds"], ROUNDS);
    // A bench cannot make a database of an older schema; the test in foreword_core::db does.
    let unvisited = |point: &&&str| report["points"][**point].as_u64().unwrap() == 0;
    let unvisited: Vec<_> = POINTS.iter().filter(unvisited).collect();
    assert_eq!(unvisited, [&"migration:after-backup"]);
    assert!(report["stored"].as_u64().unwrap() > ROUNDS);
    assert!(report["kills"].as_u64().unwrap() > ROUNDS);
}

#[test]
fn two_hundred_kills_of_forget_and_undo_leave_each_change_made_or_not_made() {
    let (report, succeeded) = bench(&["hands", "--kills", "200"]);
    assert!(succeeded, "{report}");
    assert_eq!(
        (&report["rounds"], &report["halves"]),
        (&json!(200), &json!(0))
    );
    let [killed, made, not_made] =
        ["killed", "made", "not_made"].map(|it| report[it].as_u64().unwrap());
    assert!(killed >= 100 && made >= 20 && not_made >= 20, "{report}");
}

#[test]
fn an_event_that_is_taken_in_again_is_found_doubled() {
    let (report, succeeded) = crash(PLANTED_ROUNDS, &["--plant", "processed-events-off"]);
    assert!(
        report["doubled"].as_u64().unwrap() > 0 && !succeeded,
        "{report}"
    );
    assert_eq!(report["lost"], json!(0), "{report}");
}

#[test]
fn an_event_that_leaves_the_queue_before_it_is_stored_is_found_lost() {
    let (report, succeeded) = crash(PLANTED_ROUNDS, &["--plant", "ack-before-commit"]);
    assert!(
        report["lost"].as_u64().unwrap() > 0 && !succeeded,
        "{report}"
    );
    assert_eq!(
        (&report["doubled"], &report["stuck"]),
        (&json!(0), &json!(0)),
        "{report}"
    );
}

#[test]
fn under_load_everything_that_is_sent_is_stored() {
    let plot = tempfile::NamedTempFile::new().unwrap();
    let path = plot.path().to_str().unwrap();
    let (report, succeeded) = bench(&[
        "load",
        "--minutes",
        "0.05",
        "--sessions",
        "4",
        "--plot",
        path,
    ]);
    assert_nothing_is_wrong(&report["audit"]);
    assert!(succeeded);
    assert!(report["sent"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["audit"]["stored"], report["sent"]);
    assert_eq!(report["hook_ms"]["count"], report["sent"]);
    assert!(report["reference_ms"]["p50"].as_f64().unwrap() > 0.0);
    assert!(std::fs::read_to_string(path).unwrap().ends_with("</svg>\n"));
}

#[test]
fn a_soak_leaves_no_process_and_loses_nothing() {
    let (report, succeeded) =
        bench(&["soak", "--minutes", "0.1", "--sessions", "6", "--seed", "7"]);
    assert_nothing_is_wrong(&report["audit"]);
    assert!(succeeded);
    assert_eq!(report["processes_left"], 0);
    let stored = report["audit"]["stored"].as_u64().unwrap();
    assert!(stored > 0 && stored >= report["accepted"].as_u64().unwrap());
    let samples = &report["series"]["worker: MB of memory"]["points"];
    assert!(!samples.as_array().unwrap().is_empty(), "{report}");
}

#[test]
fn vectors_are_found_as_by_an_exact_comparison() {
    let (report, succeeded) = bench(&["vectors", "--count", "3000", "--queries", "5"]);
    assert!(succeeded);
    assert_eq!(report["embedding"], Value::Null);
    let index = &report["index"];
    assert_eq!(
        (&index["vectors"], &index["of"]),
        (&json!(3000), &json!("chance"))
    );
    assert!(index["recall_at_20"].as_f64().unwrap() >= 0.95, "{index}");
    for time in ["load_ms", "search_ms_p50", "search_ms_p95"] {
        assert!(index[time].as_f64().unwrap() > 0.0, "{index}");
    }
}

#[test]
fn mine_searches_for_the_sessions_that_prompts_went_back_to_and_refuses_where_there_are_too_few() {
    let sandbox = BenchSandbox::new(&program()).unwrap();
    let session = |number: usize| {
        let run_hook = |hook: &str, event: &'static str, own: Value| {
            let (session, turn) = (format!("s{number}"), format!("s{number}-prompt"));
            let input = host::input(&sandbox.host.project, &session, &turn, (event, own));
            let mut command = sandbox.command(&sandbox.program, &[hook]);
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(input.as_bytes())
                .unwrap();
            assert!(child.wait().unwrap().success());
        };
        let prompt = json!({"prompt": "Make the token check stricter"});
        run_hook("new", "UserPromptSubmit", prompt);
        let file = sandbox.host.project.join("src/token.rs");
        let (old, new) = (
            format!("limit = {number}"),
            format!("limit = {}", number + 1),
        );
        let patch = json!({"lines": [format!("-{old}"), format!("+{new}")]});
        let edit = json!({"file_path": file, "old_string": old, "new_string": new});
        let call = json!({
            "tool_name": "Edit",
            "tool_use_id": format!("call-{number}"),
            "tool_input": edit,
            "tool_response": {"filePath": file, "structuredPatch": [patch]},
        });
        run_hook("save", "PostToolUse", call);
        let reply = format!(
            "The limit in `src/token.rs` is {} now, so that the token check is stricter than before.",
            number + 1
        );
        run_hook("summary", "Stop", json!({"last_assistant_message": reply}));
    };
    let mine = || {
        let bench = env!("CARGO_BIN_EXE_foreword-bench");
        let mut command = sandbox.command(bench.as_ref(), &["mine", "--json"]);
        command.output().unwrap()
    };
    (0..5).for_each(session);
    sandbox.run(&["worker", "drain"]).unwrap();
    let refused = mine();
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(
        error.contains("too little to measure: 4 of your prompts"),
        "{error}"
    );

    (5..22).for_each(session);
    sandbox.run(&["worker", "drain"]).unwrap();
    let report: Value = serde_json::from_slice(&mine().stdout).unwrap();
    let found = (&report["n"], &report["recall_any@5"]);
    assert_eq!(found, (&json!(21), &json!(1.0)), "{report}");
}
