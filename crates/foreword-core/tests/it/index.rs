//! The index at the start of a session, by the reason for the start.

use std::path::Path;

use foreword_core::model::{
    Derived, Event, EventKind, FileRole, Observation, ObservationType, Origin, Payload,
    SessionDigest, Summary, TouchedFile,
};
use foreword_core::recall::index::{IndexRequest, StartReason, index};
use foreword_core::store::{Batch, DerivedTurn, HostSession, Replaces, Store, ToRemember};

use crate::queue::event;
use crate::store::open;

const HOUR: i64 = 3_600_000;

/// A memory with sessions `s0` (oldest) to `sN`, an hour apart, each with one prompt.
fn memory(dir: &tempfile::TempDir, sessions: i64) -> Store {
    let mut store = open(dir);
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
        commit(&mut store, &[prompt], &format!("it {number} is finished"));
    }
    store
}

fn commit(store: &mut Store, events: &[Event], completed: &str) {
    let summary = Summary {
        completed: completed.into(),
        ..Summary::default()
    };
    let derived = Derived {
        observations: Vec::new(),
        summary: Some(summary),
        ..Derived::default()
    };
    commit_derived(store, events, &derived, None);
}

fn commit_derived(
    store: &mut Store,
    events: &[Event],
    derived: &Derived,
    digest: Option<&SessionDigest>,
) {
    let turns = store.turns(events).unwrap();
    let turns: Vec<_> = turns
        .into_iter()
        .map(|turn| DerivedTurn::offline(turn, derived.clone()))
        .collect();
    let batch = Batch {
        events,
        turns: &turns,
        replaces: Replaces::Turns,
        digest,
        provider: "offline",
        now: 1,
    };
    store.commit(&batch).unwrap();
}

/// A session of one prompt, with its observations and its digest.
fn session(store: &mut Store, number: i64, observations: Vec<Observation>, digest: &SessionDigest) {
    let session = format!("s{number}");
    let prompt = Event {
        host_session_id: session.clone(),
        key: format!("key of {session}"),
        id: uuid::Uuid::from_u128(u128::from(number.unsigned_abs()) + 1_000),
        prompt_id: Some(format!("p{number}")),
        payload: Payload {
            prompt: Some(format!("Do thing {number}")),
            ..Payload::default()
        },
        ..event("s", number * HOUR, EventKind::Prompt)
    };
    let derived = Derived {
        observations,
        summary: None,
        ..Derived::default()
    };
    commit_derived(store, &[prompt], &derived, Some(digest));
}

/// Remembers a decision on request.
fn remember(store: &mut Store, text: &str) {
    let session = HostSession {
        host: "claude-code".into(),
        id: "by-hand".into(),
    };
    let request = ToRemember::of(text, "/p", &session, "by hand".into(), 5);
    store.remember(&request).unwrap();
}

fn digest(title: &str, open: &[&str]) -> SessionDigest {
    SessionDigest {
        title: title.into(),
        open: open.iter().map(|&it| it.to_owned()).collect(),
        ..SessionDigest::default()
    }
}

fn observation(kind: ObservationType, origin: Origin, at: i64, title: &str) -> Observation {
    Observation {
        title: title.into(),
        at,
        ..Observation::blank(title.into(), kind, origin)
    }
}

fn told(store: &Store, session: &str, source: &str) -> Option<String> {
    told_at(store, session, source, None)
}

fn told_at(store: &Store, session: &str, source: &str, root: Option<&Path>) -> Option<String> {
    let request = IndexRequest {
        asks_agent: false,
        project: Some("/p"),
        host_session_id: session,
        start_reason: StartReason::parse(Some(source)),
        branch: None,
        root,
        now: 0,
        unopened_kept: None,
    };
    index(Some(store), &request).unwrap().map(|it| it.text)
}

/// The numbers of the listed items, in order.
fn things(text: &str) -> Vec<i64> {
    text.lines()
        .filter_map(|line| line.split("Do thing ").nth(1))
        .filter_map(|rest| rest.split(' ').next()?.parse().ok())
        .collect()
}

#[test]
fn a_start_lists_the_six_latest_sessions_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 30);
    for source in ["startup", "clear", "something new"] {
        let expected: Vec<i64> = (24..30).rev().collect();
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
fn a_compaction_lists_twelve_and_this_session_too() {
    let dir = tempfile::tempdir().unwrap();
    let store = memory(&dir, 30);
    let expected: Vec<i64> = (18..30).rev().collect();
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
            .contains("it 1 is finished")
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
            asks_agent: false,
            project,
            host_session_id: "x",
            start_reason: StartReason::Startup,
            branch: None,
            root: None,
            now: 0,
            unopened_kept: None,
        };
        assert_eq!(index(Some(&store), &request).unwrap(), None);
        assert_eq!(index(None, &request).unwrap(), None);
    }
}

/// Ordinary content: a decision of the agent and two other observations, of words that no other
/// session has.
fn ordinary(number: i64) -> Vec<Observation> {
    use ObservationType::{Bugfix, Decision, Feature};
    let at = number * HOUR;
    let kinds = [
        (Decision, "keeps its state in"),
        (Bugfix, "no longer waits for"),
        (Feature, "can be called by"),
    ];
    kinds
        .into_iter()
        .enumerate()
        .map(|(place, (kind, verb))| {
            let title = format!("Module{number}x{place} {verb} part{number}y{place}");
            let fact =
                format!("The reason was measured as r{number}, s{number} and t{place}{number}");
            Observation {
                facts: vec![fact],
                ..observation(kind, Origin::Agent, at, &title)
            }
        })
        .collect()
}

#[test]
fn what_the_user_laid_down_stays_however_many_sessions_follow() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let rule = "Amounts are integers of cents, never floats";
    let rules = vec![observation(
        ObservationType::Decision,
        Origin::User,
        1,
        rule,
    )];
    session(&mut store, 0, rules, &digest("Amounts of invoices", &[]));
    let remembered = "Deploy on Tuesdays only";
    remember(&mut store, remembered);
    let mut later = 0;
    for sessions in [0, 9, 10, 12, 50, 500] {
        while later < sessions {
            later += 1;
            session(
                &mut store,
                later,
                ordinary(later),
                &digest(&format!("Work {later}"), &[]),
            );
        }
        let text = told(&store, "fresh", "startup").unwrap();
        for kept in [rule, remembered] {
            assert!(text.contains(kept), "after {sessions}: {text}");
        }
        assert_eq!(told(&store, "fresh", "startup").unwrap(), text);
    }
    // A decision of the agent in the 494th session, before the latest ones, is there too.
    let text = told(&store, "fresh", "startup").unwrap();
    let (_, older) = text.split_once("Older:\n").unwrap();
    assert!(older.contains("decision: Module494x0"), "{text}");
}

#[test]
fn what_is_superseded_or_retracted_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    use ObservationType::{Decision, Discovery};
    let observations = vec![
        observation(Decision, Origin::User, 1, "Cents are kept as integers"),
        observation(Decision, Origin::User, 2, "Deploys happen on Fridays"),
        Observation {
            retracted: Some("the user said so".into()),
            ..observation(Discovery, Origin::Agent, 3, "The parser cannot read dates")
        },
        observation(Discovery, Origin::Agent, 4, "The lexer splits at spaces"),
    ];
    session(&mut store, 0, observations, &digest("Rules", &[]));
    remember(&mut store, "Releases wait for Mondays, supersedes #3");
    for source in ["startup", "resume", "compact"] {
        let session = if source == "startup" { "fresh" } else { "s0" };
        let text = told(&store, session, source).unwrap();
        assert!(
            text.contains("Cents are") && text.contains("The lexer"),
            "{text}"
        );
        assert!(
            !text.contains("Deploys") && !text.contains("The parser"),
            "{text}"
        );
    }
}

#[test]
fn only_the_latest_session_leaves_something_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let content = || ordinary(7);
    session(
        &mut store,
        0,
        content(),
        &digest("Earlier", &["tell the bank"]),
    );
    let text = told(&store, "fresh", "startup").unwrap();
    assert!(
        text.contains("Open since 1970-01-01: tell the bank\n"),
        "{text}"
    );
    session(&mut store, 1, ordinary(8), &digest("Later", &[]));
    let text = told(&store, "fresh", "startup").unwrap();
    assert!(!text.contains("Open since"), "{text}");
}

#[test]
fn a_file_that_was_renamed_marks_what_is_known_about_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let (before, after) = (dir.path().join("a.rs"), dir.path().join("b.rs"));
    std::fs::write(&before, "one").unwrap();
    let about_it = Observation {
        files: vec![TouchedFile {
            path: "a.rs".into(),
            role: FileRole::Modified,
            size: Some(3),
            mtime: None,
            hash: Some(blake3::hash(b"one").to_hex().to_string()),
        }],
        ..observation(
            ObservationType::Bugfix,
            Origin::Agent,
            1,
            "The lexer splits at spaces",
        )
    };
    session(&mut store, 0, vec![about_it], &digest("Lexer", &[]));
    let line = || {
        let text = told_at(&store, "fresh", "startup", Some(dir.path())).unwrap();
        text.lines()
            .find(|it| it.contains("The lexer"))
            .map(str::to_owned)
    };
    let text = |mark| {
        Some(format!(
            "- #2 bugfix: The lexer splits at spaces (~7 tokens{mark})"
        ))
    };
    assert_eq!(line(), text(""));
    std::fs::rename(&before, &after).unwrap();
    assert_eq!(line(), text(", files gone since"));
}
