//! The benches that kill processes: they find nothing, unless something is planted.

use foreword_core::fault::POINTS;
use serde_json::{Value, json};

use crate::support::Sandbox;

/// One round for each point, and two more.
const ROUNDS: usize = POINTS.len() + 2;

/// What the bench reports, and whether it was content.
fn crash(arguments: &[&str]) -> (Value, bool) {
    let rounds = ROUNDS.to_string();
    let mut command = Sandbox::new().command(&["bench", "crash", "--json", "--rounds", &rounds]);
    // The sandbox is gone: a bench touches nothing of the user's, and needs nothing either.
    let output = command.args(arguments).current_dir("/").output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (
        report.expect(&format!("{output:?}")),
        output.status.success(),
    )
}

#[test]
fn kills_at_every_point_and_at_random_moments_lose_double_and_leave_nothing() {
    let (report, content) = crash(&[]);
    let found = ["lost", "doubled", "stuck", "damaged", "seen"].map(|it| report[it].clone());
    let nothing = [json!(0), json!(0), json!(0), json!(0), json!([])];
    assert_eq!((found, content), (nothing, true), "{report}");
    assert_eq!(report["rounds"], ROUNDS);
    // There is no second migration yet; the test in foreword_core::db has one of its own.
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
