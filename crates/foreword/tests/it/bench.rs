//! The benches that kill processes and that last: they find nothing, unless something is planted.

use foreword_core::fault::POINTS;
use serde_json::{Value, json};

use crate::support::Sandbox;

/// One round for each point, and two more.
const ROUNDS: usize = POINTS.len() + 2;

/// What a bench reports, and whether it was content.
fn bench(arguments: &[&str]) -> (Value, bool) {
    let mut command = Sandbox::new().command(&["bench"]);
    command.args(arguments).arg("--json");
    // The sandbox is gone: a bench touches nothing of the user's, and needs nothing either.
    let output = command.current_dir("/").output().unwrap();
    let Ok(report) = serde_json::from_slice(&output.stdout) else {
        panic!("{output:?}");
    };
    (report, output.status.success())
}

fn crash(arguments: &[&str]) -> (Value, bool) {
    let rounds = ROUNDS.to_string();
    bench(&[&["crash", "--rounds", &rounds], arguments].concat())
}

fn assert_nothing_is_wrong(audit: &Value) {
    let found = ["lost", "doubled", "stuck", "damaged", "seen"].map(|it| audit[it].clone());
    let nothing = [json!(0), json!(0), json!(0), json!(0), json!([])];
    assert_eq!(found, nothing);
}

#[test]
fn kills_at_every_point_and_at_random_moments_lose_double_and_leave_nothing() {
    let (report, content) = crash(&[]);
    assert_nothing_is_wrong(&report);
    assert!(content);
    assert_eq!(report["rounds"], ROUNDS);
    // There is no second migration; the tests in foreword_core::db have one of their own.
    let unvisited = |point: &&&str| report["points"][**point].as_u64().unwrap() == 0;
    let unvisited: Vec<_> = POINTS.iter().filter(unvisited).collect();
    assert_eq!(unvisited, [&"migration:after-backup"]);
    assert!(report["stored"].as_u64().unwrap() > ROUNDS as u64);
    assert!(report["kills"].as_u64().unwrap() > ROUNDS as u64);
}

#[test]
fn an_event_that_is_taken_in_again_is_found_doubled() {
    let (report, content) = crash(&["--plant", "processed-events-off"]);
    assert!(
        report["doubled"].as_u64().unwrap() > 0 && !content,
        "{report}"
    );
    assert_eq!(
        (&report["lost"], &report["stuck"]),
        (&json!(0), &json!(0)),
        "{report}"
    );
}

#[test]
fn an_event_that_leaves_the_queue_before_it_is_stored_is_found_lost() {
    let (report, content) = crash(&["--plant", "ack-before-commit"]);
    assert!(report["lost"].as_u64().unwrap() > 0 && !content, "{report}");
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
    let (report, content) = bench(&[
        "load",
        "--minutes",
        "0.05",
        "--sessions",
        "4",
        "--plot",
        path,
    ]);
    assert_nothing_is_wrong(&report["audit"]);
    assert!(content);
    assert!(report["sent"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["audit"]["stored"], report["sent"]);
    assert_eq!(report["hook_ms"]["count"], report["sent"]);
    assert!(report["reference_ms"]["p50"].as_f64().unwrap() > 0.0);
    assert!(std::fs::read_to_string(path).unwrap().ends_with("</svg>\n"));
}

#[test]
fn a_soak_leaves_no_process_and_loses_nothing() {
    let (report, content) = bench(&["soak", "--minutes", "0.1", "--sessions", "6", "--seed", "7"]);
    assert_nothing_is_wrong(&report["audit"]);
    assert!(content);
    assert_eq!(report["processes_left"], 0);
    let stored = report["audit"]["stored"].as_u64().unwrap();
    assert!(stored > 0 && stored >= report["accepted"].as_u64().unwrap());
    let samples = &report["series"]["worker: MB of memory"]["points"];
    assert!(!samples.as_array().unwrap().is_empty(), "{report}");
}

#[test]
fn vectors_are_found_as_by_an_exact_comparison() {
    let (report, content) = bench(&["vectors", "--count", "3000", "--queries", "5"]);
    assert!(content);
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
