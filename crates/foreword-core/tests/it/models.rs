//! Observations and summaries by models, the ledger, and claiming parts of a turn.

use std::collections::HashSet;

use foreword_core::ledger::{
    Answered, Entry, Exceeded, Failed, Limits, Reservation, Spent, Streak, TurnTrouble,
};
use foreword_core::model::{
    Derived, Event, EventKind, FailureKind, Observation, ObservationType, Origin, Payload,
    Provenance, Summary,
};
use foreword_core::queue::{Portion, Queue, Readiness};
use foreword_core::store::{Batch, DerivedTurn, HostSession, ItemBody, Replaces, Store};

use crate::queue::event;

fn open(dir: &tempfile::TempDir) -> Store {
    Store::open(&dir.path().join("memory.db"), &dir.path().join("backups")).unwrap()
}

fn of_turn(at: i64, prompt: &str, kind: EventKind) -> Event {
    Event {
        prompt_id: Some(prompt.into()),
        payload: Payload {
            prompt: (kind == EventKind::Prompt).then(|| format!("do {prompt}")),
            ..Payload::default()
        },
        ..event("s", at, kind)
    }
}

/// Stores one observation of all these events by a model, and a summary if `completed` is not empty.
fn by_model(store: &mut Store, events: &[Event], title: &str, completed: &str, replaces: Replaces) {
    let turn = store.turns(events).unwrap().pop().unwrap();
    let seed = format!("{}/0", events[0].id);
    let observation = Observation {
        title: title.into(),
        narrative: "x".repeat(400),
        events: events.iter().map(|it| it.id).collect(),
        at: events.last().unwrap().at,
        ..Observation::blank(seed, ObservationType::Feature, Origin::Agent)
    };
    let summary = (!completed.is_empty()).then(|| Summary {
        request: "Have it done".into(),
        completed: completed.into(),
        ..Summary::default()
    });
    let told = DerivedTurn {
        turn,
        derived: Derived {
            observations: vec![observation],
            summary,
            ..Derived::default()
        },
        provenance: Provenance {
            provider: "claude".into(),
            model: Some("tiny".into()),
            prompt_version: Some("1".into()),
        },
    };
    store
        .commit(&Batch {
            events,
            turns: &[told],
            replaces,
            digest: None,
            provider: "claude",
            now: 100,
        })
        .unwrap();
}

/// Numbers and titles of all observations.
fn titles(store: &Store) -> Vec<(i64, String)> {
    (1..20)
        .filter_map(|id| match store.item(id).unwrap()?.body {
            ItemBody::Observation(it) => Some((id, it.title)),
            _ => None,
        })
        .collect()
}

#[test]
fn parts_of_a_turn_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let first = [
        of_turn(1, "p1", EventKind::Prompt),
        of_turn(2, "p1", EventKind::ToolUse),
    ];
    by_model(&mut store, &first, "one", "", Replaces::Nothing);
    let digest = store.digest("claude-code", "s", i64::MAX).unwrap();
    assert_eq!(digest.task.as_deref(), Some("do p1"));
    let seen: Vec<_> = digest.observations.iter().map(|it| &it.title).collect();
    assert_eq!(seen, ["one"]);
    assert_eq!(digest.prompts[0].summed_up_at, None);

    let second = [
        of_turn(3, "p1", EventKind::ToolUse),
        of_turn(4, "p1", EventKind::Stop),
    ];
    by_model(
        &mut store,
        &second,
        "two",
        "It is done. Really.",
        Replaces::Nothing,
    );
    let seen: Vec<String> = titles(&store).into_iter().map(|(_, title)| title).collect();
    assert_eq!(seen, ["one", "two"]);
    let digest = store.digest("claude-code", "s", i64::MAX).unwrap();
    assert_eq!(digest.completed.as_deref(), Some("It is done. Really."));
    assert_eq!(digest.prompts[0].summed_up_at, Some(4));
    let known = store.known_turns("claude-code", "s").unwrap();
    let p1 = HashSet::from([Some("p1".to_owned())]);
    assert_eq!((&known.observed, &known.summed_up), (&p1, &p1));
    let ids: HashSet<_> = first.iter().chain(&second).map(|it| it.id).collect();
    assert_eq!(store.taken_in_by_models(&ids).unwrap(), ids);
    let item = store.item(titles(&store)[0].0).unwrap().unwrap();
    assert_eq!(item.session_title.as_deref(), Some("do p1"));
    // Before a time, only items that existed then.
    let before = store.digest("claude-code", "s", 3).unwrap();
    assert_eq!((before.observations.len(), before.completed), (1, None));
}

#[test]
fn what_is_derived_again_replaces_what_was_there_and_keeps_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let events = [
        of_turn(1, "p1", EventKind::Prompt),
        of_turn(2, "p1", EventKind::Stop),
    ];
    let later = [
        of_turn(3, "p2", EventKind::Prompt),
        of_turn(4, "p2", EventKind::Stop),
    ];
    by_model(&mut store, &events, "wrong", "Wrong", Replaces::Nothing);
    by_model(&mut store, &later, "other", "Other", Replaces::Nothing);
    let before = titles(&store);
    by_model(&mut store, &events, "right", "Right", Replaces::Events);
    let expected: Vec<_> = before
        .iter()
        .map(|(id, title)| (*id, title.replace("wrong", "right")))
        .collect();
    assert_eq!(titles(&store), expected);
    let session = HostSession {
        host: "claude-code".to_owned(),
        id: "s".to_owned(),
    };
    let kept = store.whole_turns(&session, None).unwrap();
    assert_eq!((kept.turns, kept.events.len()), (2, 4));

    // Split differently, it is another observation, and the old one is deleted.
    by_model(&mut store, &events[1..], "anew", "Anew", Replaces::Events);
    let seen: Vec<String> = titles(&store).into_iter().map(|(_, title)| title).collect();
    assert_eq!(seen, ["other", "anew"]);
}

fn entry(at: i64, session: &'static str) -> Entry<'static> {
    Entry {
        at,
        provider: "openai",
        model: "tiny:1b",
        host_session_id: session,
        turn: Some("p1"),
        events: 3,
        raw_tokens: 1_000,
    }
}

fn answered(input: u64, cost_usd: Option<f64>) -> Answered {
    Answered {
        requests: 1,
        model: Some("tiny".into()),
        input_tokens: input,
        output_tokens: 10,
        cost_usd,
        ..Answered::default()
    }
}

/// Calls of which nothing is reserved.
const NONE: Reservation = Reservation {
    usd: None,
    tokens: 0,
    probable_usd: None,
    probable_input: 0,
    probable_output: 0,
    until: 0,
};

#[test]
fn a_call_takes_its_most_from_the_budgets_and_gives_back_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let other = open(&dir);
    let most = Reservation {
        usd: Some(0.4),
        tokens: 1_000,
        probable_usd: Some(0.05),
        probable_input: 200,
        probable_output: 40,
        until: 100,
    };
    let limits = Limits {
        day: 0,
        daily: (1.0, 2_000),
        session: Some((0.5, 1_500)),
    };
    let reserve = |store: &Store, at, session, most: &Reservation| {
        store.reserve(&entry(at, session), most, &limits).unwrap()
    };
    let usd = |now| store.spent(0, None, now).unwrap().usd;
    let first = reserve(&store, 1, "a", &most).unwrap();
    assert_eq!(
        reserve(&other, 2, "a", &most).err(),
        Some(Exceeded::Session)
    );
    let _ = reserve(&other, 3, "b", &most).unwrap();
    assert_eq!(reserve(&store, 4, "c", &most).err(), Some(Exceeded::Day));
    assert_eq!(usd(5), 0.8);
    // The answer came, and cost less.
    store.answered(first, &answered(100, Some(0.1))).unwrap();
    assert_eq!(usd(5), 0.5);
    let _ = reserve(&store, 6, "c", &most).unwrap();
    // Two calls were never answered: until their time is over they count as reserved, whoever closes
    // them, and then as estimated.
    store.close_abandoned_calls().unwrap();
    assert_eq!(usd(99), 0.9);
    assert_eq!(usd(100), 0.2);

    // Without a price, tokens count.
    let unpriced = Reservation {
        usd: None,
        probable_usd: None,
        until: 300,
        ..most
    };
    let _ = reserve(&store, 101, "d", &unpriced).unwrap();
    assert_eq!(store.spent(0, None, 200).unwrap().unpriced_tokens, 1_000);
    let more = Reservation {
        tokens: 1_001,
        ..unpriced
    };
    assert_eq!(reserve(&store, 102, "e", &more).err(), Some(Exceeded::Day));
    assert_eq!(
        reserve(&store, 102, "d", &unpriced).err(),
        Some(Exceeded::Session)
    );
    assert_eq!(store.spent(0, None, 300).unwrap().unpriced_tokens, 240);
    assert_eq!(usd(300), 0.2, "a call without a price costs no dollars");
}

#[test]
fn the_ledger_counts_every_call_and_knows_what_it_does_not_know() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    assert_eq!(store.cost(0).unwrap().usd, Some(0.0));
    let calls = [
        (1, "a", 100, Some(0.25)),
        (2, "a", 200, None),
        (3, "b", 300, Some(0.5)),
    ];
    for (at, session, input, cost) in calls {
        let open = store.ask(&entry(at, session), &NONE).unwrap();
        store.answered(open, &answered(input, cost)).unwrap();
    }
    let _ = store.ask(&entry(4, "b"), &NONE).unwrap();
    let cost = store.cost(0).unwrap();
    // A call whose answer has not come is no failure.
    assert_eq!((cost.calls, cost.failed), (4, 0));
    assert_eq!((cost.input_tokens, cost.output_tokens), (600, 30));
    assert_eq!(
        (cost.usd, cost.unpriced, cost.raw_tokens),
        (Some(0.75), 1, 3_000)
    );
    let spent = |since, session| store.spent(since, session, 9).unwrap();
    let of_a = Spent {
        usd: 0.25,
        unpriced_tokens: 210,
    };
    assert_eq!(spent(0, Some("a")), of_a);
    assert_eq!(spent(3, None).usd, 0.5);
}

#[test]
fn a_streak_of_failures_outlives_the_worker_and_ends_with_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let failed = |retry_at| Failed {
        kind: FailureKind::Outage,
        note: "down".into(),
        retry_at,
    };
    for at in [10, 20] {
        let open = store.ask(&entry(at, "a"), &NONE).unwrap();
        let failure = Some(failed(Some(at + 5)));
        let outcome = Answered {
            requests: 1,
            failure,
            ..Answered::default()
        };
        store.answered(open, &outcome).unwrap();
    }
    drop(store);
    let store = open(&dir);
    let two = Streak {
        failures: 2,
        pauses: 2,
        since: Some(10),
        last: Some(failed(Some(25))),
    };
    assert_eq!(store.streak("openai").unwrap(), two);
    assert_eq!(store.streak("claude").unwrap(), Streak::default());

    // A call that a dead worker left open counts as a failure, but does not end a pause.
    let _ = store.ask(&entry(30, "a"), &NONE).unwrap();
    store.close_abandoned_calls().unwrap();
    let streak = store.streak("openai").unwrap();
    assert_eq!((streak.failures, streak.last), (3, Some(failed(Some(25)))));

    store.forgive("openai", 40).unwrap();
    assert_eq!(store.streak("openai").unwrap(), Streak::default());
    assert_eq!(store.cost(0).unwrap().calls, 3);
}

#[test]
fn a_turn_knows_its_failed_calls_and_a_model_its_own_answers() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let outcome = |entry: &Entry<'_>, kind, retry_at, requests| {
        let failure = Failed {
            kind,
            note: String::new(),
            retry_at,
        };
        let open = store.ask(entry, &NONE).unwrap();
        let outcome = Answered {
            requests,
            failure: Some(failure),
            ..Answered::default()
        };
        store.answered(open, &outcome).unwrap();
    };
    let first = entry(1, "a");
    let other = Entry {
        turn: Some("p2"),
        model: "large:70b",
        ..first
    };
    outcome(&first, FailureKind::Prose, None, 1);
    outcome(&first, FailureKind::Timeout, Some(9), 1);
    // An outage, and a question that was not sent.
    outcome(&first, FailureKind::Outage, Some(9), 1);
    outcome(&first, FailureKind::Request, None, 0);
    outcome(&other, FailureKind::Prose, None, 1);
    // A worker that was killed leaves its call open; the next one counts it.
    let _ = store.ask(&first, &NONE).unwrap();
    drop(store);
    store = open(&dir);
    store.close_abandoned_calls().unwrap();
    let trouble = |turn| store.turn_trouble("openai", "a", turn).unwrap();
    let expected = |failed, stood_in| TurnTrouble { failed, stood_in };
    assert_eq!(trouble("p1"), expected(3, false));
    assert_eq!(trouble("p2"), expected(1, false));
    assert_eq!(trouble("p3"), TurnTrouble::default());
    store.stood_in(&other, "no").unwrap();
    assert_eq!(trouble("p2"), expected(1, true));

    let judged = |model| store.judged("openai", model).unwrap().judged;
    assert_eq!(
        [judged("tiny:1b"), judged("large:70b"), judged("")],
        [2, 1, 0]
    );
}

const DRAIN: Readiness = Readiness {
    drain: true,
    batch_max: 10,
    batch_wait: 0,
};
const PATIENT: Readiness = Readiness {
    drain: false,
    batch_max: 3,
    batch_wait: 1_000,
};

fn portion(events: u32) -> Portion {
    Portion {
        events,
        one_turn: true,
        ..Portion::ALL
    }
}

/// The times of the claimed events, and whether their turn is over.
fn claim(queue: &mut Queue, now: i64, readiness: Readiness, events: u32) -> (Vec<i64>, bool) {
    let claim = queue
        .claim(now, readiness, |_| portion(events))
        .unwrap()
        .unwrap();
    (
        claim.events.iter().map(|it| it.at).collect(),
        claim.turn_over,
    )
}

fn queue_with(dir: &tempfile::TempDir, events: &[Event]) -> Queue {
    let queue = Queue::open(&dir.path().join("queue.db"), &dir.path().join("backups")).unwrap();
    for event in events {
        queue.push(event).unwrap();
    }
    queue
}

#[test]
fn a_batch_for_a_model_ends_with_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let events = [
        event("s", 1, EventKind::SessionStart),
        of_turn(2, "p1", EventKind::Prompt),
        of_turn(3, "p1", EventKind::ToolUse),
        of_turn(4, "p2", EventKind::Prompt),
        of_turn(5, "p2", EventKind::ToolUse),
        of_turn(6, "p2", EventKind::ToolUse),
        event("s", 7, EventKind::SessionEnd),
    ];
    let mut queue = queue_with(&dir, &events);
    // Without a stop event, the next prompt ends the turn.
    assert_eq!(claim(&mut queue, 10, PATIENT, 10), (vec![1, 2, 3], true));
    // A full batch does not end the turn while more of its events are waiting.
    assert_eq!(claim(&mut queue, 10, PATIENT, 2), (vec![4, 5], false));
    assert_eq!(claim(&mut queue, 10, PATIENT, 1), (vec![6], true));
}

#[test]
fn a_silent_turn_is_over_as_far_as_one_can_tell() {
    let dir = tempfile::tempdir().unwrap();
    let events = [
        of_turn(1, "p1", EventKind::Prompt),
        of_turn(500, "p1", EventKind::ToolUse),
    ];
    let mut queue = queue_with(&dir, &events);
    assert_eq!(queue.next_due(600, PATIENT).unwrap(), Some(1_500));
    assert_eq!(queue.claim(1_400, PATIENT, |_| portion(9)).unwrap(), None);
    assert_eq!(claim(&mut queue, 1_500, PATIENT, 9), (vec![1, 500], true));
    queue.take_back_claims().unwrap();
    assert_eq!(claim(&mut queue, 600, DRAIN, 9), (vec![1, 500], true));
}

#[test]
fn a_batch_is_no_larger_than_a_question_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let large = |at| Event {
        payload: Payload {
            reply: Some("x".repeat(10_000)),
            ..Payload::default()
        },
        ..of_turn(at, "p1", EventKind::ToolUse)
    };
    let mut queue = queue_with(&dir, &[large(1), large(2), large(3)]);
    let claimed = |queue: &mut Queue, event_bytes| {
        let portion = Portion {
            bytes: 5_000,
            event_bytes,
            ..portion(9)
        };
        let claim = queue.claim(10, DRAIN, |_| portion).unwrap().unwrap();
        let count = claim.events.len();
        queue.give_back(claim).unwrap();
        count
    };
    assert_eq!(claimed(&mut queue, 2_000), 2);
    assert_eq!(claimed(&mut queue, 20_000), 1, "one is always taken");
}
