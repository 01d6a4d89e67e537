//! The index at the start of a session, by the reason for the start.

use foreword_core::model::{Derived, Event, EventKind, Payload, Summary};
use foreword_core::recall::index::{IndexRequest, StartReason, index};
use foreword_core::store::{Batch, DerivedTurn, Replaces, Store};

use crate::queue::event;

const HOUR: i64 = 3_600_000;

/// A memory with sessions `s0` (oldest) to `sN`, an hour apart, each with one prompt.
fn memory(dir: &tempfile::TempDir, sessions: i64) -> Store {
    let mut store =
        Store::open(&dir.path().join("memory.db"), &dir.path().join("backups")).unwrap();
    for number in 0..sessions {
        let prompt = Event {
            host_session_id: format!("s{number}"),
            key: format!("k{number}"),
            id: uuid::Uuid::from_u128(u128::from(number.unsigned_abs()) + 1),
            prompt_id: Some(format!("p{number}")),
            payload: Payload {
                prompt: Some(format!("Do thing {number}")),
                ..Payload::default()
            },
            ..event("s", number * HOUR, EventKind::Prompt)
        };
        commit(&mut store, &[prompt], &format!("did thing {number}"));
    }
    store
}

fn commit(store: &mut Store, events: &[Event], completed: &str) {
    let turns = store.turns(events).unwrap();
    let derived = Derived {
        observations: Vec::new(),
        summary: Some(Summary {
            completed: completed.into(),
            ..Summary::default()
        }),
    };
    let turns: Vec<_> = turns
        .into_iter()
        .map(|turn| DerivedTurn::offline(turn, derived.clone()))
        .collect();
    let batch = Batch {
        events,
        turns: &turns,
        replaces: Replaces::Turns,
        digest: None,
        provider: "offline",
        now: 1,
    };
    store.commit(&batch).unwrap();
}

fn told(store: &Store, session: &str, source: &str) -> Option<String> {
    let request = IndexRequest {
        project: Some("/p"),
        host_session_id: session,
        start_reason: StartReason::parse(Some(source)),
        branch: None,
        root: None,
        program: "foreword",
    };
    index(Some(store), &request).unwrap().map(|it| it.text)
}

/// The numbers of the listed items, in order.
fn things(text: &str) -> Vec<i64> {
    text.lines()
        .filter_map(|line| line.split("Do thing ").nth(1)?.parse().ok())
        .collect()
}

#[test]
fn a_start_lists_the_ten_latest_sessions_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 30);
    for source in ["startup", "clear", "something new"] {
        let expected: Vec<i64> = (20..30).rev().collect();
        assert_eq!(
            things(&told(&store, "fresh", source).unwrap()),
            expected,
            "{source}"
        );
    }
}

#[test]
fn a_resume_lists_this_session_only() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 5);
    assert_eq!(things(&told(&store, "s2", "resume").unwrap()), [2]);
    assert_eq!(told(&store, "unknown", "resume"), None);
}

#[test]
fn a_compaction_lists_twenty_and_this_session_too() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 30);
    let expected: Vec<i64> = (10..30).rev().collect();
    assert_eq!(things(&told(&store, "s29", "compact").unwrap()), expected);
}

#[test]
fn a_fork_is_told_its_id_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 3);
    assert_eq!(
        told(&store, "forked", "fork").as_deref(),
        Some("Foreword session id: forked")
    );
}

#[test]
fn a_session_does_not_read_about_itself_at_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 3);
    assert_eq!(things(&told(&store, "s2", "startup").unwrap()), [1, 0]);
}

#[test]
fn a_session_without_a_prompt_is_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = memory(&dir, 2);
    let start = Event {
        host_session_id: "silent".into(),
        ..event("s", 9 * HOUR, EventKind::SessionStart)
    };
    commit(&mut store, &[start], "");
    assert_eq!(things(&told(&store, "fresh", "startup").unwrap()), [1, 0]);
}

#[test]
fn a_session_in_which_nothing_happened_takes_no_line() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = memory(&dir, 2);
    let hello = Event {
        host_session_id: "chat".into(),
        prompt_id: Some("p".into()),
        payload: Payload {
            prompt: Some("Do thing 77".into()),
            ..Payload::default()
        },
        ..event("s", 9 * HOUR, EventKind::Prompt)
    };
    commit(&mut store, &[hello], "");
    assert_eq!(things(&told(&store, "fresh", "startup").unwrap()), [1, 0]);
}

#[test]
fn a_trivial_turn_does_not_hide_what_the_session_did() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = memory(&dir, 2);
    let thanks = Event {
        host_session_id: "s1".into(),
        prompt_id: Some("thanks".into()),
        payload: Payload {
            prompt: Some("Thanks!".into()),
            ..Payload::default()
        },
        ..event("s", 9 * HOUR, EventKind::Prompt)
    };
    commit(&mut store, &[thanks], "");
    assert!(
        told(&store, "fresh", "startup")
            .unwrap()
            .contains("did thing 1")
    );
}

#[test]
fn all_but_the_last_line_is_the_same_from_session_to_session() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 3);
    let one = told(&store, "fresh-one", "startup").unwrap();
    let two = told(&store, "fresh-two", "startup").unwrap();
    let split = |text: &str| {
        text.rsplit_once('\n')
            .map(|(head, tail)| (head.to_owned(), tail.to_owned()))
            .unwrap()
    };
    assert_eq!(split(&one).0, split(&two).0);
    assert_eq!(split(&two).1, "Foreword session id: fresh-two");
}

#[test]
fn another_project_or_none_is_told_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 3);
    for project in [Some("/other/p"), None] {
        let request = IndexRequest {
            project,
            host_session_id: "x",
            start_reason: StartReason::Startup,
            branch: None,
            root: None,
            program: "foreword",
        };
        assert_eq!(index(Some(&store), &request).unwrap(), None);
        assert_eq!(index(None, &request).unwrap(), None);
    }
}
