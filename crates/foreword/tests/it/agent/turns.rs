//! Long turns, and turns in which the model is lost on the way.

use serde_json::json;

use super::world::{Agent, Provider};

const DENIED: &str =
    r#"{"then": {"error": {"status": 401, "type": "authentication_error", "message": "no"}}}"#;

#[test]
fn a_very_long_turn_is_summed_up_on_the_way() {
    let agent = Agent::new(Provider::Anthropic);
    agent.script(&json!({"then": "<nothing>only parts</nothing>"}));
    let host = agent.host("s1");
    agent.tell(&host.prompt("Look at everything"));
    for number in 0..130 {
        agent.tell(&host.bash(&format!("cat part{number}"), "x"));
    }
    agent.sandbox.drain();
    let sums_up: Vec<bool> = agent
        .questions()
        .iter()
        .map(|question| question.text().contains("<summary>"))
        .collect();
    assert_eq!(sums_up, [false, false, true, true]);
    agent.assert_all_is_stored();
}

#[test]
fn what_a_model_told_is_not_told_again_when_offline_goes_on() {
    let mut agent = Agent::new(Provider::Anthropic);
    let host = agent.host("s1");
    agent.tell(&host.prompt("Make the check pass"));
    agent.tell(&host.bash_failed("sh check.sh", "Exit code 3\nerror: the limit is 6, not 7"));
    agent.tell(&host.edit("limit.txt", "6", "7"));
    agent.tell(&host.bash("sh check.sh", "ok"));
    agent.sandbox.drain();
    agent.sandbox.set("FOREWORD_BUDGET_DAILY_USD", "0");
    agent.sandbox.run(&["worker", "stop"]);
    agent.tell(&host.stop("The limit is 7 now."));
    agent.sandbox.drain();
    agent.assert_all_is_stored();
    assert_eq!(
        agent.column("select provider from observations"),
        ["anthropic"]
    );
    assert_eq!(agent.column("select provider from summaries"), ["offline"]);
    let why = "select note from ledger where provider = 'offline'";
    assert_eq!(agent.column(why), ["the daily budget of $0.00 is used up"]);

    // The next turn is offline's own.
    agent.tell_turn(&agent.host("s2"));
    agent.sandbox.drain();
    assert_eq!(agent.questions().len(), 1);
    assert!(agent.count("observations where provider = 'offline'") > 0);
}

#[test]
fn a_provider_that_stays_away_is_stood_in_for() {
    let mut agent = Agent::new(Provider::Anthropic);
    agent
        .sandbox
        .set("FOREWORD_MODEL_OFFLINE_AFTER_MINUTES", "0");
    agent.script(&serde_json::from_str(DENIED).unwrap());
    agent.tell_turn(&agent.host("s1"));
    agent.sandbox.drain();
    agent.assert_all_is_stored();
    assert_eq!(agent.questions().len(), 1);
    assert!(agent.count("observations where provider = 'offline'") > 0);
    let why = agent.column("select note from ledger where provider = 'offline'");
    assert!(why[0].starts_with("anthropic is paused: "), "{why:?}");
    // It is asked again when its time comes, or when somebody asks for it.
    agent.script(&json!({"then": super::world::answer("Back again")}));
    agent.sandbox.keep_workers_away();
    agent.tell_turn(&agent.host("s2"));
    agent.sandbox.drain();
    assert_eq!(
        agent.column("select title from observations where provider = 'anthropic'"),
        ["Back again"]
    );
}

#[test]
fn a_worker_does_not_stay_for_what_only_a_person_can_mend() {
    let mut agent = Agent::new(Provider::Anthropic);
    agent.sandbox.set("FOREWORD_WORKER_IDLE_SECONDS", "0");
    agent.script(&serde_json::from_str(DENIED).unwrap());
    agent.tell_turn(&agent.host("s1"));
    let said = agent.sandbox.run(&["worker", "run"]);
    assert_eq!(said, "5 events wait; `foreword status` says why\n");
    // Nor does the next one ask, as long as the pause lasts.
    agent.sandbox.run(&["worker", "run"]);
    assert_eq!(agent.questions().len(), 1);
    agent.assert_nothing_is_missing();
}

#[test]
fn a_model_that_is_too_slow_for_a_turn_is_asked_about_half_of_it() {
    let mut agent = Agent::new(Provider::Anthropic);
    agent.sandbox.set("FOREWORD_MODEL_TIMEOUT_SECONDS", "1");
    let slow = json!({"name": "slow", "match": {"last_user_contains": "[4]"}, "then": {"hang_ms": 60_000}});
    agent.script(&json!({"lanes": [slow], "then": super::world::answer("In two parts")}));
    agent.tell_turn(&agent.host("s1"));
    agent.sandbox.drain();
    agent.assert_all_is_stored();
    let failures = "select coalesce(failure, 'none') from ledger";
    assert_eq!(agent.column(failures), ["timeout", "none", "none"]);
}

#[test]
fn what_a_model_summed_up_stays_when_a_background_task_reports() {
    let agent = Agent::new(Provider::Anthropic);
    let host = agent.host("s1");
    agent.tell_turn(&host);
    agent.sandbox.drain();
    assert_eq!(
        agent.column("select provider from summaries"),
        ["anthropic"]
    );
    let mut report = host.prompt("<task-notification>task 7 is done</task-notification>");
    report["prompt_id"] = "s1-task".into();
    agent.tell(&report);
    agent.sandbox.drain();
    agent.assert_all_is_stored();
    assert_eq!(
        agent.column("select provider from summaries"),
        ["anthropic"]
    );
}

#[test]
fn what_a_model_summed_up_stays_when_doing_it_again_fails_half_way() {
    let mut agent = Agent::new(Provider::Anthropic);
    agent.sandbox.set("FOREWORD_WORKER_BATCH_MAX", "2");
    agent.tell_turn(&agent.host("s1"));
    agent.sandbox.drain();
    agent.sandbox.run(&["worker", "stop"]);
    let before = agent.column("select provider || completed from summaries");
    agent.script(&json!({
        "turns": ["<nothing>only parts</nothing>"],
        "then": {"error": {"status": 500, "type": "api_error", "message": "no"}},
    }));
    let again = agent.sandbox.command(&["redo", "s1"]).output().unwrap();
    assert!(!again.status.success());
    assert_eq!(
        agent.column("select provider || completed from summaries"),
        before
    );
}
