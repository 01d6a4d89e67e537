//! The last question about a session: when it is asked, and what its answer may change.

use foreword_core::model::{
    Derived, EventKind, Observation, ObservationType, Origin, Provenance, SessionDigest, Summary,
};
use foreword_core::store::{Batch, Closing, DerivedTurn, HostSession, ItemBody, Replaces, Store};

use crate::queue::event;
use crate::store::{observation, open, prompt};

const DAY: i64 = 24 * 3_600_000;

fn by_model() -> Provenance {
    Provenance {
        provider: "anthropic".into(),
        model: None,
        prompt_version: None,
    }
}

fn session(id: &str) -> HostSession {
    HostSession {
        host: "claude-code".into(),
        id: id.into(),
    }
}

/// Stores a turn of a session with these observations, which ends with it.
fn ended(store: &mut Store, id: &str, at: i64, observations: Vec<Observation>, by: Provenance) {
    let mut events = [
        prompt(at, &format!("{id}{at}"), "x"),
        event(id, at + 1, EventKind::SessionEnd),
    ];
    for event in &mut events {
        event.id = uuid::Uuid::from_u128((at as u128) << 64 | event.id.as_u128());
        event.key = event.id.to_string();
        event.host_session_id = id.into();
    }
    let turn = store.turns(&events).unwrap().pop().unwrap();
    let told = DerivedTurn {
        turn,
        derived: Derived {
            observations,
            summary: None,
            ..Derived::default()
        },
        provenance: by.clone(),
    };
    store
        .commit(&Batch {
            events: &events,
            turns: &[told],
            replaces: Replaces::Nothing,
            digest: Some(&SessionDigest {
                title: "By offline".into(),
                ..SessionDigest::default()
            }),
            provider: &by.provider,
            now: at + 1,
        })
        .unwrap();
}

fn of(seed: &str, title: &str) -> Observation {
    Observation {
        facts: vec![format!("a fact about {title}")],
        ..observation(seed, title)
    }
}

#[test]
fn a_session_is_asked_about_once_and_again_only_for_new_observations() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let due = |store: &Store, now| store.session_to_close("anthropic", now).unwrap();
    ended(
        &mut store,
        "s",
        1,
        vec![of("a", "Alpha")],
        Provenance::offline(),
    );
    assert_eq!(due(&store, 10), None);
    ended(&mut store, "s", 3, vec![of("b", "Beta")], by_model());
    assert_eq!(due(&store, 10), Some(session("s")));
    assert_eq!(due(&store, 10 + 2 * DAY), None);

    let whole = store
        .shown_session(&session("s"), "anthropic")
        .unwrap()
        .unwrap();
    let titles: Vec<&str> = whole.observations.iter().map(|it| &*it.title).collect();
    assert_eq!((titles, whole.turns.len()), (vec!["Alpha", "Beta"], 2));
    store.close_session(&whole, None).unwrap();
    assert_eq!(due(&store, 10), None);
    // Resumed and ended: first without, then with a new observation.
    ended(&mut store, "s", 5, Vec::new(), by_model());
    assert_eq!(due(&store, 10), None);
    ended(&mut store, "s", 7, vec![of("c", "Gamma")], by_model());
    assert_eq!(due(&store, 10), Some(session("s")));
}

#[test]
fn an_answer_changes_what_was_shown_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let elsewhere = Observation {
        files: Vec::new(),
        ..of("e", "Elsewhere")
    };
    ended(
        &mut store,
        "t",
        1,
        vec![of("o", "Older, same file"), elsewhere],
        by_model(),
    );
    let rule = Observation {
        origin: Origin::User,
        kind: ObservationType::Decision,
        ..of("r", "The user's rule")
    };
    let all = vec![of("a", "Alpha"), of("b", "Beta"), of("c", "Gamma"), rule];
    ended(&mut store, "s", 3, all, by_model());
    let numbers = |store: &Store| -> Vec<(String, i64)> {
        let items = (1..20).filter_map(|id| store.item(id).unwrap());
        let named = items.filter_map(|item| match item.body {
            ItemBody::Observation(it) => Some((it.title, item.id)),
            _ => None,
        });
        named.collect()
    };
    let all = numbers(&store);
    let id = |title: &str| all.iter().find(|it| it.0 == title).unwrap().1;
    let whole = store
        .shown_session(&session("s"), "anthropic")
        .unwrap()
        .unwrap();
    let older: Vec<i64> = whole.older.iter().map(|it| it.id).collect();
    assert_eq!(older, [id("Older, same file")]);

    let closing = Closing {
        digest: SessionDigest {
            title: "By the model".into(),
            subtitle: "outcome".into(),
            open: vec!["what is left".into()],
            given_up: Vec::new(),
        },
        summary: Some(Summary {
            request: "All of it".into(),
            ..Summary::default()
        }),
        retracted: vec![
            (id("Alpha"), "a run shows otherwise".into()),
            (id("Elsewhere"), "never shown".into()),
            (id("The user's rule"), "against the user".into()),
        ],
        superseded: vec![
            (id("Older, same file"), id("Beta")),
            (id("Beta"), id("Older, same file")),
            (id("The user's rule"), id("Beta")),
            (id("Elsewhere"), id("Beta")),
        ],
        merged: vec![(id("Gamma"), id("Beta"))],
    };
    store
        .close_session(&whole, Some((&closing, &by_model())))
        .unwrap();
    let mut seen = Vec::new();
    for (title, id) in &all {
        if let ItemBody::Observation(it) = store.item(*id).unwrap().unwrap().body {
            let facts = it.facts.len();
            seen.push((title.as_str(), it.retracted, it.superseded_by, facts));
        }
    }
    let beta = Some(id("Beta"));
    let expected = [
        ("Older, same file", None, beta, 1),
        ("Elsewhere", None, None, 1),
        ("Alpha", Some("a run shows otherwise".to_owned()), None, 1),
        ("Beta", None, None, 2),
        ("Gamma", None, beta, 1),
        ("The user's rule", None, None, 1),
    ];
    assert_eq!(seen, expected);
    let item = store.item(id("Beta")).unwrap().unwrap();
    assert_eq!(item.session_title.as_deref(), Some("By the model"));
    assert_eq!(store.totals().unwrap().summaries, 1);
}
