//! The same insight again is counted, and an observation that the user superseded is marked.

use foreword_core::model::{Derived, Event, EventKind, Observation, ObservationType, Payload};
use foreword_core::recall::index::{IndexRequest, StartReason, index};
use foreword_core::search::{Filter, Query, Sort, search};
use foreword_core::store::{
    Batch, DerivedTurn, HostSession, ItemBody, Replaces, Store, ToRemember,
};

use crate::queue::event;
use crate::store::{observation, open};

const SEEN: &str = "Tokens expire in the time zone of the server";
const SECONDS_30: &str = "The lease of a claim is 30 seconds";

fn found(seed: &str, title: &str, events: &[Event]) -> Observation {
    Observation {
        kind: ObservationType::Discovery,
        events: events.iter().map(|it| it.id).collect(),
        at: events.last().unwrap().at,
        ..observation(seed, title)
    }
}

fn decided(seed: &str, title: &str, events: &[Event]) -> Observation {
    Observation {
        kind: ObservationType::Decision,
        ..found(seed, title, events)
    }
}

/// One turn of a session: a prompt and a tool use.
fn turn(session: &str, at: i64) -> Vec<Event> {
    let prompt = Event {
        prompt_id: Some(format!("{session}{at}")),
        payload: Payload {
            prompt: Some("look at it".into()),
            ..Payload::default()
        },
        ..event(session, at, EventKind::Prompt)
    };
    vec![prompt, more(session, at, 1)]
}

/// A later event of the turn that began at a time.
fn more(session: &str, at: i64, after: i64) -> Event {
    Event {
        prompt_id: Some(format!("{session}{at}")),
        ..event(session, at + after, EventKind::ToolUse)
    }
}

fn tell(store: &mut Store, events: &[Event], observations: &[Observation], replaces: Replaces) {
    let turn = store.turns(events).unwrap().pop().unwrap();
    let derived = Derived {
        observations: observations.to_vec(),
        summary: None,
        ..Derived::default()
    };
    let batch = Batch {
        events,
        turns: &[DerivedTurn::offline(turn, derived)],
        replaces,
        digest: None,
        provider: "offline",
        now: 1_000,
    };
    store.commit(&batch).unwrap();
}

/// A session of one turn with this observation.
fn session_finds(store: &mut Store, session: &str, at: i64, title: &str) -> Vec<Event> {
    let events = turn(session, at);
    tell(
        store,
        &events,
        &[found("f", title, &events)],
        Replaces::Turns,
    );
    events
}

fn session_decides(store: &mut Store, session: &str, at: i64, title: &str) -> Vec<Event> {
    let events = turn(session, at);
    tell(
        store,
        &events,
        &[decided("d", title, &events)],
        Replaces::Turns,
    );
    events
}

/// Number, session, superseding observation and count of every observation.
fn state(store: &Store) -> Vec<(i64, String, Option<i64>, u32)> {
    (1..40)
        .filter_map(|id| {
            let item = store.item(id).unwrap()?;
            match item.body {
                ItemBody::Observation(it) => Some((id, item.session, it.superseded_by, it.times)),
                _ => None,
            }
        })
        .collect()
}

fn row(
    id: i64,
    session: &str,
    superseded_by: Option<i64>,
    times: u32,
) -> (i64, String, Option<i64>, u32) {
    (id, session.to_owned(), superseded_by, times)
}

#[test]
fn told_twice_is_one_observation_with_a_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    session_finds(&mut memory, "a", 10, SEEN);
    let again = session_finds(
        &mut memory,
        "b",
        20,
        "Tokens expire in the **time zone** of the `server`.",
    );
    assert_eq!(state(&memory), [row(2, "a", None, 2)]);
    // More of the turn comes: it is derived again, whole.
    let repeated = found("f", SEEN, &again);
    tell(
        &mut memory,
        &[more("b", 20, 3)],
        std::slice::from_ref(&repeated),
        Replaces::Turns,
    );
    assert_eq!(state(&memory), [row(2, "a", None, 2)]);
    // `redo` twice changes nothing.
    for _ in 0..2 {
        tell(
            &mut memory,
            &again,
            std::slice::from_ref(&repeated),
            Replaces::Events,
        );
        assert_eq!(state(&memory), [row(2, "a", None, 2)]);
    }
    session_finds(&mut memory, "c", 30, SEEN);
    assert_eq!(state(&memory), [row(2, "a", None, 3)]);
}

#[test]
fn what_is_not_told_any_more_is_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    session_finds(&mut memory, "a", 10, SEEN);
    let again = session_finds(&mut memory, "b", 20, SEEN);
    let other = found("f", "Cookies are not sent to other hosts", &again);
    tell(&mut memory, &[more("b", 20, 3)], &[other], Replaces::Turns);
    assert_eq!(state(&memory), [row(2, "a", None, 1), row(4, "b", None, 1)]);
    tell(&mut memory, &again, &[], Replaces::Events);
    assert_eq!(state(&memory), [row(2, "a", None, 1)]);
}

#[test]
fn an_insight_that_its_teller_takes_back_goes_to_who_told_it_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let first = session_finds(&mut memory, "a", 10, SEEN);
    session_finds(&mut memory, "b", 20, SEEN);
    tell(&mut memory, &[more("a", 10, 3)], &[], Replaces::Turns);
    assert_eq!(state(&memory), [row(2, "b", None, 1)]);
    // Another provider derives the same observation in other words.
    let reworded = found("x/0", SEEN, &first);
    tell(&mut memory, &first, &[reworded], Replaces::Events);
    assert_eq!(state(&memory), [row(2, "b", None, 2)]);
    // Now the second provider no longer derives it either.
    tell(&mut memory, &[more("b", 20, 3)], &[], Replaces::Turns);
    assert_eq!(state(&memory), [row(2, "a", None, 1)]);
}

#[test]
fn work_that_was_done_again_is_news_unless_it_was_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    for (session, at, title, fact) in [
        ("a", 10, "Changed src/a.rs", "src/a.rs: defines `one`"),
        ("b", 20, "Changed src/a.rs", "src/a.rs: defines `two`"),
        (
            "c",
            30,
            "Sort the orders by date (src/a.rs)",
            "src/a.rs: defines `by_date`",
        ),
        (
            "d",
            40,
            "Sort the orders by date (src/a.rs)",
            "src/a.rs: defines `by_day`",
        ),
        (
            "e",
            50,
            "Sort the orders by date (src/a.rs)",
            "src/a.rs: defines `by_day`",
        ),
    ] {
        let events = turn(session, at);
        let work = Observation {
            kind: ObservationType::Feature,
            facts: vec![fact.to_owned()],
            ..found("edits", title, &events)
        };
        tell(&mut memory, &events, &[work], Replaces::Turns);
    }
    let times: Vec<_> = state(&memory).iter().map(|it| it.3).collect();
    assert_eq!(times, [1, 1, 1, 2]);
}

#[test]
fn what_is_forgotten_no_session_that_told_it_brings_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let first = session_finds(&mut memory, "a", 10, SEEN);
    let second = session_finds(&mut memory, "b", 20, SEEN);
    assert_eq!(memory.forget(&[2], 500).unwrap(), [2]);
    for events in [first, second] {
        tell(
            &mut memory,
            &events,
            &[found("f", SEEN, &events)],
            Replaces::Events,
        );
        assert_eq!(state(&memory), []);
    }
}

/// The user has this remembered, at a time.
fn remember(memory: &mut Store, project: &str, text: &str, now: i64) -> i64 {
    let session = HostSession {
        host: "claude-code".into(),
        id: format!("said in {project}"),
    };
    let said = ToRemember::of(text, project, &session, format!("said:{text}"), now);
    memory.remember(&said).unwrap().id
}

#[test]
fn what_the_user_says_supersedes_an_observation_is_still_found_below_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let first = session_decides(&mut memory, "a", 10, SECONDS_30);
    let text = "The lease of a claim is 90 seconds (supersedes #2)";
    assert_eq!(remember(&mut memory, "/p", text, 20), 3);
    let marked = [row(2, "a", Some(3), 1), row(3, "said in /p", None, 1)];
    assert_eq!(state(&memory), marked);
    // It stays so when the older one is derived again, in other words too.
    for title in [SECONDS_30, "Claims are leased for 30 seconds"] {
        tell(
            &mut memory,
            &first,
            &[decided("d", title, &first)],
            Replaces::Events,
        );
        assert_eq!(state(&memory), marked);
    }
    // A commit message that names a pull request supersedes nothing, and projects do not mix.
    session_decides(&mut memory, "b", 30, "Supersedes #3");
    remember(
        &mut memory,
        "/q",
        "Claims have no lease (supersedes #3)",
        40,
    );
    assert_eq!(state(&memory)[1], row(3, "said in /p", None, 1));

    let query = Query {
        words: "leased 30 seconds",
        filter: Filter::default(),
        sort: Sort::Relevance,
        limit: 1,
    };
    let any = Query {
        words: "seconds claim",
        ..query.clone()
    };
    let hits = |query: &Query<'_>| {
        let hits = search(&memory, query).unwrap().hits.into_iter();
        hits.map(|hit| (hit.id, hit.superseded_by))
            .collect::<Vec<_>>()
    };
    assert_eq!(hits(&any), [(3, None)]);
    assert_eq!(hits(&query), [(2, Some(3))], "it alone has all the words");

    let request = IndexRequest {
        asks_agent: false,
        project: Some("/p"),
        host_session_id: "new",
        start_reason: StartReason::Startup,
        branch: None,
        root: None,
        now: 0,
        unopened_kept: None,
    };
    let text = index(Some(&memory), &request).unwrap().unwrap().text;
    assert!(text.contains("- #3 ") && !text.contains("#2 "), "{text}");

    // An observation that is forgotten supersedes nothing.
    memory.forget(&[3], 500).unwrap();
    assert_eq!(state(&memory)[0], row(2, "a", None, 1));
}

#[test]
fn who_comes_back_to_a_decision_that_was_superseded_decides_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    session_decides(&mut memory, "a", 10, SECONDS_30);
    remember(&mut memory, "/p", "90 seconds, supersedes #2", 20);
    session_decides(&mut memory, "c", 30, SECONDS_30);
    let before = [
        row(2, "a", Some(3), 1),
        row(3, "said in /p", None, 1),
        row(5, "c", None, 1),
    ];
    assert_eq!(state(&memory), before);
    remember(&mut memory, "/p", "30 seconds after all, supersedes #3", 40);
    assert_eq!(state(&memory)[1], row(3, "said in /p", Some(6), 1));
}

#[test]
fn what_is_said_again_keeps_its_number_and_projects_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let mut say = |session: &str, project, text| {
        let session = HostSession {
            host: "claude-code".into(),
            id: session.into(),
        };
        let said = ToRemember::of(text, project, &session, format!("said:{text}"), 5);
        memory.remember(&said).unwrap().id
    };
    let text = "Releases are cut on Mondays. The team in Lisbon tests them first.";
    let longer = "Releases are cut on Mondays. Never before a public holiday, as happened in May.";
    assert_eq!(say("a", "/p", text), 1);
    assert_eq!(say("b", "/p", text), 1);
    assert_eq!(say("b", "/p", longer), 2, "it says more");
    assert_eq!(say("c", "/q", text), 3);
    session_finds(&mut memory, "d", 10, SEEN);
    let mut elsewhere = turn("e", 20);
    for event in &mut elsewhere {
        event.project = Some("/q".into());
    }
    tell(
        &mut memory,
        &elsewhere,
        &[found("f", SEEN, &elsewhere)],
        Replaces::Turns,
    );
    let times: Vec<_> = state(&memory).iter().map(|it| it.3).collect();
    assert_eq!(times, [2, 1, 1, 1, 1]);
}

#[test]
fn a_repeated_observation_is_listed_under_its_latest_session() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    session_finds(&mut memory, "a", 10, SEEN);
    for (number, session) in ["b", "c", "d", "e", "f", "g", "h", "i", "j"]
        .iter()
        .enumerate()
    {
        session_finds(
            &mut memory,
            session,
            100 + number as i64 * 10,
            &format!("Topic{number} matters"),
        );
    }
    session_finds(&mut memory, "k", 900, SEEN);
    let request = IndexRequest {
        asks_agent: false,
        project: Some("/p"),
        host_session_id: "new",
        start_reason: StartReason::Startup,
        branch: None,
        root: None,
        now: 0,
        unopened_kept: None,
    };
    let index = index(Some(&memory), &request).unwrap().unwrap();
    let line = index.weighed.iter().find(|it| it.id == 2).unwrap();
    assert_eq!(
        line.reasons,
        [("a discovery", 24), ("recorded more than once", 4)]
    );
    assert_eq!(index.text.matches(SEEN).count(), 1);
}
