//! How long a model is waited for, and what goes on without it. None of this depends on
//! which model it is.

use serde_json::{Value, json};

use super::world::{Agent, Events, LEDGER, Provider, answer};

fn error(status: u16) -> Value {
    json!({"error": {"status": status, "type": "api_error", "message": "no"}})
}

/// Has all calls so far be this much older; what is to be waited for stays.
fn let_pass(agent: &Agent, hours: i64) {
    let memory = agent.sandbox.database("memory.db");
    let older = "update ledger set at = at - ?1 * 3600000";
    memory.execute(older, [hours]).unwrap();
}

fn told() -> Agent {
    let agent = Agent::new(Provider::Anthropic);
    agent.tell_turn(&agent.host("s1"));
    agent
}

#[test]
fn an_outage_is_waited_for_longer_each_time_and_then_all_is_stored() {
    let agent = told();
    let good = answer("Kumquat limit raised to seven");
    agent.script(&json!({"turns": [error(529), error(500)], "then": good}));
    agent.sandbox.drain();
    agent.assert_all_is_stored();
    // The time that the call took is in it.
    let pauses = "select case when retry_at - at between 2000 and 3999 then 'two seconds' \
                              when retry_at - at between 4000 and 7999 then 'four' end \
                  from ledger where retry_at is not null";
    assert_eq!(agent.column(pauses), ["two seconds", "four"]);
    assert_eq!(agent.questions().len(), 3);
    assert_eq!(
        agent.column("select distinct provider from observations"),
        ["anthropic"]
    );
}

#[test]
fn what_only_a_person_can_mend_is_tried_again_when_a_person_asks() {
    let agent = told();
    agent.script(&json!({"then": error(401)}));
    let drain = |agent: &Agent| agent.sandbox.run(&["worker", "drain"]);
    assert!(drain(&agent).starts_with("5 events are left"));
    assert!(drain(&agent).starts_with("5 events are left"));
    agent.assert_nothing_is_missing();
    assert_eq!(agent.questions().len(), 2);
    agent.script(&json!({"then": answer("Kumquat limit raised to seven")}));
    agent.sandbox.drain();
    agent.assert_all_is_stored();
}

#[test]
fn after_an_hour_memory_goes_on_offline_and_says_so() {
    let agent = told();
    agent.script(&json!({"then": error(401)}));
    agent.sandbox.run(&["worker", "drain"]);
    agent.sandbox.run(&["worker", "stop"]);
    let_pass(&agent, 1);
    agent.sandbox.drain();
    agent.assert_all_is_stored();
    for table in ["observations", "summaries", "processed_events"] {
        let by = format!("select distinct provider from {table}");
        assert_eq!(agent.column(&by), ["offline"], "{table}");
    }
    let why = "select note from ledger where provider = 'offline'";
    let why = agent.column(why);
    assert!(why[0].starts_with("anthropic is paused: "), "{why:?}");
}

/// What the user of a new session is told.
fn notice(agent: &Agent, session: &str) -> Value {
    let start = agent.host(session).start("startup");
    let told = agent.sandbox.told("context", &agent.project, &start);
    let answer: Value = serde_json::from_str(&told).unwrap_or_default();
    answer["systemMessage"].clone()
}

#[test]
fn a_week_without_a_model_is_told_once_and_over_when_it_answers() {
    let agent = told();
    // Long enough that a drain does not wait for it.
    let mut overloaded = error(529);
    overloaded["error"]["headers"] = json!({"retry-after": "120"});
    agent.script(&json!({"then": overloaded}));
    let drain = || {
        agent.sandbox.run(&["worker", "drain"]);
        agent.sandbox.run(&["worker", "stop"]);
        agent.sandbox.keep_workers_away();
    };
    drain();
    assert_eq!(agent.events().waiting, 5);
    assert_eq!(notice(&agent, "first hour"), Value::Null);
    let mut notices = Vec::new();
    for day in 1..=7 {
        let_pass(&agent, 24);
        agent.tell_turn(&agent.host(&format!("day {day}")));
        drain();
        assert_eq!(agent.sandbox.status()["pending"], 0, "day {day}");
        notices.push(notice(&agent, &format!("morning {day}")));
    }
    assert_eq!(agent.events().skipped, 0);
    assert_eq!(
        notices[0],
        "Foreword: anthropic has not answered for long, so memory is made without it for now; \
         `foreword status` says more"
    );
    assert_eq!(notices[1..], [const { Value::Null }; 6]);
    let in_order = "select group_concat(host_session_id) from \
                    (select host_session_id from sessions join summaries s on s.session_id = sessions.id order by s.id)";
    let in_order = agent.column(in_order);
    assert!(
        in_order[0].starts_with("s1,day 1,day 2,day 3"),
        "{in_order:?}"
    );

    agent.script(&json!({"then": answer("Kumquat limit raised to seven")}));
    agent.tell_turn(&agent.host("afterwards"));
    drain();
    assert_eq!(agent.sandbox.status()["pending"], 0);
    let by = "select distinct provider from observations where session_id = \
              (select id from sessions where host_session_id = 'afterwards')";
    assert_eq!(agent.column(by), ["anthropic"]);
    // The next one is told of again.
    agent.script(&json!({"then": error(401)}));
    agent.tell_turn(&agent.host("later"));
    drain();
    assert_eq!(
        notice(&agent, "login lost"),
        "Foreword: anthropic cannot be asked (auth), and only you can mend that; \
         `foreword status` says more"
    );
    agent.script(&json!({"then": answer("Kumquat limit raised to eight")}));
    drain();
    let notices = agent.sandbox.home().join("notices");
    assert_eq!(std::fs::read_dir(notices).unwrap().count(), 0);
}

#[test]
fn an_answer_that_was_no_use_hours_ago_does_not_make_an_outage_older() {
    let agent = Agent::new(Provider::Anthropic);
    agent.script(&json!({"then": "Sure, happy to help!"}));
    let host = agent.host("s1");
    agent.tell(&host.prompt("Make the check pass"));
    agent.tell(&host.edit("limit.txt", "6", "7"));
    agent.sandbox.run(&["worker", "drain"]);
    agent.sandbox.run(&["worker", "stop"]);
    let_pass(&agent, 2);
    let before = agent.events();

    agent.script(&json!({"then": error(401)}));
    agent.sandbox.keep_workers_away();
    agent.tell_turn(&agent.host("s2"));
    agent.sandbox.run(&["worker", "drain"]);
    let all_wait = Events {
        waiting: 5,
        ..before
    };
    assert_eq!(agent.events(), all_wait, "{:?}", agent.column(LEDGER));
    agent.assert_nothing_is_missing();
}

#[test]
fn when_the_budget_is_used_up_nobody_is_asked() {
    let mut agent = told();
    agent.sandbox.set("FOREWORD_BUDGET_DAILY_USD", "0");
    agent.sandbox.drain();
    agent.assert_all_is_stored();
    assert_eq!(agent.questions().len(), 0);
    assert_eq!(
        agent.column("select distinct provider from observations"),
        ["offline"]
    );
    assert_eq!(
        agent.column("select note from ledger"),
        ["the daily budget of $0.00 is used up"]
    );
}

#[test]
fn a_key_that_is_there_now_is_used_by_retry_also_beside_a_worker_that_has_none() {
    let mut agent = Agent::new(Provider::Anthropic);
    let key = agent.sandbox.set("ANTHROPIC_API_KEY", "").unwrap();
    agent.tell_turn(&agent.host("s1"));
    let mut worker = agent.worker();
    crate::support::wait_until("the worker has found no key", || {
        agent
            .sandbox
            .log("worker.log")
            .contains("events wait: auth")
    });
    agent.sandbox.set("ANTHROPIC_API_KEY", key);
    agent.sandbox.run(&["retry"]);
    worker.wait().unwrap();
    agent.assert_all_is_stored();
}
