//! The store's promises: turns are whole, numbers are stable, prompts are numbered by time.

use foreword_core::model::{
    Derived, Event, EventKind, FileRole, Observation, ObservationType, Origin, Payload,
    SessionDigest, Summary, TouchedFile,
};
use foreword_core::search::{Filter, Query, Sort, search};
use foreword_core::store::{Batch, DerivedTurn, ItemBody, Replaces, Store};

use crate::queue::event;

pub fn open(dir: &tempfile::TempDir) -> Store {
    Store::open(&dir.path().join("memory.db"), &dir.path().join("backups")).unwrap()
}

/// Opens the same file with SQLite alone.
pub fn outside(dir: &tempfile::TempDir) -> rusqlite::Connection {
    #[expect(clippy::disallowed_methods, reason = "tests look from outside")]
    rusqlite::Connection::open(dir.path().join("memory.db")).unwrap()
}

pub fn prompt(at: i64, id: &str, text: &str) -> Event {
    Event {
        prompt_id: Some(id.into()),
        payload: Payload {
            prompt: Some(text.into()),
            ..Payload::default()
        },
        ..event("s", at, EventKind::Prompt)
    }
}

fn tool(at: i64, prompt: &str) -> Event {
    Event {
        prompt_id: Some(prompt.into()),
        ..event("s", at, EventKind::ToolUse)
    }
}

pub fn observation(seed: &str, title: &str) -> Observation {
    Observation {
        title: title.into(),
        subtitle: "outcome".into(),
        facts: vec!["a fact".into()],
        narrative: "what happened".into(),
        concepts: vec!["auth".into()],
        files: vec![TouchedFile {
            path: "src/a.rs".into(),
            role: FileRole::Modified,
            size: Some(3),
            mtime: Some(1),
            hash: Some("h".into()),
        }],
        at: 5,
        ..Observation::blank(seed.into(), ObservationType::Bugfix, Origin::Agent)
    }
}

/// Stores these events, with the observations that `derive` returns for each turn.
pub fn store(
    store: &mut Store,
    events: &[Event],
    derive: impl Fn(usize) -> Vec<Observation>,
) -> Vec<(Option<String>, usize)> {
    let turns = store.turns(events).unwrap();
    let shape = turns
        .iter()
        .map(|turn| (turn.prompt_id.clone(), turn.events.len()))
        .collect();
    let turns: Vec<_> = turns
        .into_iter()
        .map(|turn| {
            let derived = Derived {
                observations: derive(turn.events.len()),
                summary: turn.prompt_id.is_some().then(Summary::default),
                ..Derived::default()
            };
            DerivedTurn::offline(turn, derived)
        })
        .collect();
    store
        .commit(&Batch {
            events,
            turns: &turns,
            replaces: Replaces::Turns,
            digest: None,
            provider: "offline",
            now: 100,
        })
        .unwrap();
    shape
}

fn turn(id: &str, events: usize) -> (Option<String>, usize) {
    (Some(id.to_owned()), events)
}

#[test]
fn a_turn_is_seen_whole_however_many_batches_it_comes_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    assert_eq!(
        store(
            &mut memory,
            &[prompt(1, "p1", "do it"), tool(2, "p1")],
            |_| vec![]
        ),
        [turn("p1", 2)]
    );
    assert_eq!(
        store(&mut memory, &[tool(3, "p1")], |_| vec![]),
        [turn("p1", 3)]
    );
}

#[test]
fn a_background_tasks_report_belongs_to_the_last_prompt_somebody_typed() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let notification = Event {
        prompt_id: Some("n1".into()),
        ..event("s", 3, EventKind::Notification)
    };
    let events = [prompt(1, "p1", "start a task"), notification, tool(4, "n1")];
    assert_eq!(store(&mut memory, &events, |_| vec![]), [turn("p1", 3)]);
    assert_eq!(
        store(&mut memory, &[tool(5, "n1")], |_| vec![]),
        [turn("p1", 4)]
    );
    assert_eq!(memory.totals().unwrap().prompts, 1);
}

#[test]
fn a_prompt_that_comes_late_gets_its_number_by_time_and_its_events_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    store(&mut memory, &[prompt(1, "p1", "first")], |_| vec![]);
    // The second prompt is still in the spool when its tool use is stored.
    assert_eq!(
        store(
            &mut memory,
            &[tool(12, "p2"), prompt(20, "p3", "third")],
            |_| vec![]
        ),
        [turn("p1", 2), turn("p3", 1)]
    );
    assert_eq!(
        store(&mut memory, &[prompt(10, "p2", "second")], |_| vec![]),
        [turn("p2", 2)]
    );
    assert_eq!(
        store(&mut memory, &[tool(13, "p2")], |_| vec![]),
        [turn("p2", 3)]
    );
    let mut numbers: Vec<_> = (1..20)
        .filter_map(|id| memory.item(id).unwrap())
        .filter_map(|item| match item.body {
            ItemBody::Prompt(it) => Some((item.prompt_number.unwrap(), it.text)),
            _ => None,
        })
        .collect();
    numbers.sort();
    assert_eq!(
        numbers,
        [
            (1, "first".into()),
            (2, "second".into()),
            (3, "third".into())
        ]
    );
}

#[test]
fn what_is_still_true_keeps_its_number_and_what_is_not_goes() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    store(&mut memory, &[prompt(1, "p1", "x")], |_| {
        vec![observation("a", "Alpha"), observation("b", "Beta")]
    });
    let hits = |memory: &Store, words: &str| {
        let filter = Filter {
            projects: Some(vec!["/p".to_owned()]),
            ..Filter::default()
        };
        let query = Query {
            words,
            filter,
            sort: Sort::Relevance,
            limit: 9,
        };
        let found = search(memory, &query).unwrap();
        found
            .hits
            .into_iter()
            .map(|hit| (hit.id, hit.title))
            .collect::<Vec<_>>()
    };
    let before = hits(&memory, "alpha");
    store(&mut memory, &[tool(2, "p1")], |_| {
        vec![observation("a", "Alpha again")]
    });
    assert_eq!(
        hits(&memory, "alpha"),
        [(before[0].0, "Alpha again".to_owned())]
    );
    assert_eq!(hits(&memory, "beta"), []);
    assert_eq!(memory.totals().unwrap().observations, 1);
}

#[test]
fn an_event_is_known_by_its_id_and_by_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let first = tool(1, "p1");
    assert!(!memory.knows(&first).unwrap());
    store(&mut memory, std::slice::from_ref(&first), |_| vec![]);
    assert!(memory.knows(&first).unwrap());
    let fired_again = Event {
        id: uuid::Uuid::from_u128(77),
        ..first
    };
    assert!(memory.knows(&fired_again).unwrap());
}

#[test]
fn a_silent_session_was_interrupted_and_a_resume_makes_it_active_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let day = 24 * 3_600_000;
    store(&mut memory, &[prompt(1, "p1", "x")], |_| vec![]);
    let state = || -> String {
        #[expect(clippy::disallowed_methods, reason = "tests look from outside")]
        let outside = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
        let state = outside.query_row(
            "select state from sessions where host_session_id = 's'",
            [],
            |row| row.get(0),
        );
        state.unwrap()
    };
    memory.keep_house(day, day, 30 * 24 * 3_600_000).unwrap();
    assert_eq!(state(), "active");
    memory
        .keep_house(day + 2, 7 * day, 30 * 24 * 3_600_000)
        .unwrap();
    assert_eq!(state(), "interrupted");
    store(
        &mut memory,
        &[event("s", day + 3, EventKind::SessionStart)],
        |_| vec![],
    );
    assert_eq!(state(), "active");
    store(
        &mut memory,
        &[event("s", day + 4, EventKind::SessionEnd)],
        |_| vec![],
    );
    assert_eq!(state(), "completed");
    store(
        &mut memory,
        &[
            event("s", day + 5, EventKind::StopFailure),
            event("s", day + 6, EventKind::SessionEnd),
        ],
        |_| vec![],
    );
    assert_eq!(state(), "failed");
}

#[test]
fn events_past_their_keeping_go_and_what_came_of_them_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    store(&mut memory, &[prompt(1, "p1", "x")], |_| {
        vec![observation("a", "Alpha")]
    });
    memory.keep_house(1_000, 50, 30 * 24 * 3_600_000).unwrap();
    assert_eq!(
        store(&mut memory, &[tool(900, "p1")], |_| vec![observation(
            "a", "Alpha"
        )]),
        [turn("p1", 1)]
    );
    assert_eq!(memory.totals().unwrap().observations, 1);
}

#[test]
fn what_was_written_bit_by_bit_is_put_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    for number in 0..3 {
        store(
            &mut memory,
            &[prompt(number, &number.to_string(), "Alpha")],
            |_| vec![],
        );
    }
    let parts = || -> i64 {
        #[expect(clippy::disallowed_methods, reason = "tests look from outside")]
        let outside = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
        let parts = "select count(distinct segid) from texts_idx";
        outside.query_row(parts, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(parts(), 3);
    memory
        .keep_house(1_000, 1_000, 30 * 24 * 3_600_000)
        .unwrap();
    assert_eq!(parts(), 1);
    assert_eq!(memory.damage(), None);
}

#[test]
fn a_session_is_its_new_turns_and_the_whole_ones_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let first = [prompt(1, "p1", "one"), tool(2, "p1")];
    store(&mut memory, &first, |_| vec![]);
    let second = [prompt(3, "p2", "two"), tool(4, "p2")];
    let shape = |memory: &Store| -> Vec<(Option<String>, usize)> {
        let turns = memory.recent_turns(&second).unwrap().turns;
        let shapes = turns.into_iter().map(|it| (it.prompt_id, it.events.len()));
        shapes.collect()
    };
    assert_eq!(shape(&memory), [turn("p1", 2), turn("p2", 2)]);
    // A part of a turn would give other results.
    outside(&dir)
        .execute("delete from events where kind = 'prompt'", [])
        .unwrap();
    assert_eq!(shape(&memory), [turn("p2", 2)]);
}

#[test]
fn an_insight_that_a_later_turn_takes_over_keeps_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let numbers = || -> Vec<(i64, i64)> {
        let sql = "select o.id, p.number from observations o join prompts p on p.id = o.prompt_id";
        let outside = outside(&dir);
        let mut statement = outside.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    };
    let mut number = None;
    for events in [
        [prompt(1, "p1", "one"), tool(2, "p1")],
        [prompt(3, "p2", "two"), tool(4, "p2")],
    ] {
        let turns = memory.recent_turns(&events).unwrap().turns;
        let last = turns.len() - 1;
        let turns: Vec<_> = turns
            .into_iter()
            .enumerate()
            .map(|(at, turn)| {
                let told = at == last;
                let observations = told.then(|| observation("same", "x")).into_iter().collect();
                let derived = Derived {
                    observations,
                    summary: Some(Summary::default()),
                    ..Derived::default()
                };
                DerivedTurn::offline(turn, derived)
            })
            .collect();
        memory
            .commit(&Batch {
                events: &events,
                turns: &turns,
                replaces: Replaces::Turns,
                digest: None,
                provider: "offline",
                now: 100,
            })
            .unwrap();
        let told = numbers();
        assert_eq!(told.len(), 1);
        let (id, prompt) = told[0];
        assert_eq!(prompt, i64::try_from(last).unwrap() + 1);
        assert_eq!(*number.get_or_insert(id), id);
    }
}

/// Numbers of the kept prompts, and how many summaries there are.
fn kept(dir: &tempfile::TempDir) -> (String, i64) {
    let sql = "select coalesce((select group_concat(number order by number) from prompts where kept), ''),
                      (select count(*) from summaries)";
    let row = outside(dir).query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
    row.unwrap()
}

/// Stores these events with one observation, a summary, or nothing, as the offline provider does.
fn derive(memory: &mut Store, events: &[Event], observation: Option<Observation>) {
    let turn = memory.turns(events).unwrap().pop().unwrap();
    let derived = Derived {
        summary: observation.is_some().then(Summary::default),
        observations: observation.into_iter().collect(),
        ..Derived::default()
    };
    memory
        .commit(&Batch {
            events,
            turns: &[DerivedTurn::offline(turn, derived)],
            replaces: Replaces::Turns,
            digest: None,
            provider: "offline",
            now: 100,
        })
        .unwrap();
}

#[test]
fn a_turn_in_which_nothing_happened_leaves_nothing_to_be_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let found = |memory: &Store| {
        let query = Query {
            words: "kumquat",
            filter: Filter::default(),
            sort: Sort::Relevance,
            limit: 9,
        };
        search(memory, &query).unwrap().hits.len()
    };
    derive(&mut memory, &[prompt(1, "p1", "yes, kumquat")], None);
    assert_eq!((kept(&dir), found(&memory)), ((String::new(), 0), 0));
    assert_eq!(memory.totals().unwrap().prompts, 1);

    let of_it = |event: &Event| Observation {
        events: vec![event.id],
        ..observation("a", "Alpha")
    };
    let edit = tool(2, "p1");
    derive(&mut memory, std::slice::from_ref(&edit), Some(of_it(&edit)));
    assert_eq!((kept(&dir), found(&memory)), (("1".to_owned(), 1), 1));

    // The next event shows that it was taken back.
    derive(&mut memory, &[tool(3, "p1")], None);
    assert_eq!((kept(&dir), found(&memory)), ((String::new(), 0), 0));
    assert_eq!(memory.damage(), None);
}

#[test]
fn of_a_long_turn_only_the_newest_events_are_read_and_what_was_derived_before_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    derive(
        &mut memory,
        &[prompt(1, "p1", "begin"), tool(2, "p1")],
        None,
    );
    let mut long = vec![prompt(10, "p2", "go on")];
    long.extend((11..1_011).map(|at| tool(at, "p2")));
    let first = Observation {
        events: vec![long[1].id],
        ..observation("first", "Of the first tool use")
    };
    derive(&mut memory, &long, Some(first));

    let read = |memory: &Store, at: i64| {
        let turns = memory.recent_turns(&[tool(at, "p2")]).unwrap().turns;
        let counts = turns.iter().map(|turn| turn.events.len());
        counts.collect::<Vec<_>>()
    };
    // The prompt, the last piece of 200 tool uses and the new event; the first turn is read whole.
    assert_eq!(read(&memory, 2_000), [2, 202]);
    let more: Vec<Event> = (1_011..1_200).map(|at| tool(at, "p2")).collect();
    let second = Observation {
        events: vec![more[0].id],
        facts: vec!["another fact".into()],
        ..observation("second", "Of a later tool use")
    };
    derive(&mut memory, &more, Some(second));
    assert_eq!(read(&memory, 2_000), [2, 391]);
    let titles = "select group_concat(title, '; ' order by id) from observations";
    let titles = outside(&dir).query_row(titles, [], |row| row.get::<_, String>(0));
    assert_eq!(
        titles.unwrap(),
        "Of the first tool use; Of a later tool use"
    );

    // From the next turn on, only the prompt of the long one is read along.
    let next = [prompt(3_000, "p3", "next")];
    let recent = memory.recent_turns(&next).unwrap();
    let counts: Vec<usize> = recent.turns.iter().map(|turn| turn.events.len()).collect();
    assert_eq!(counts, [2, 1, 1]);
    assert_eq!(Vec::from_iter(recent.outlines), [Some("p2".to_owned())]);
}

#[test]
fn the_offline_provider_does_not_overwrite_what_a_model_said_of_a_session() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let digest = |title: &str| SessionDigest {
        title: title.into(),
        subtitle: "outcome".into(),
        open: vec!["what is left".into()],
        given_up: Vec::new(),
    };
    let written = || -> (String, String, String) {
        let sql = "select title, open, digest_by from sessions";
        let row =
            outside(&dir).query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        row.unwrap()
    };
    let mut commit = |event: Event, title: &str| {
        memory
            .commit(&Batch {
                events: &[event],
                turns: &[],
                replaces: Replaces::Nothing,
                digest: Some(&digest(title)),
                provider: "anthropic",
                now: 100,
            })
            .unwrap();
    };
    commit(prompt(1, "p1", "x"), "By offline");
    let open = r#"["what is left"]"#.to_owned();
    let offline = ("By offline".to_owned(), open.clone(), "offline".to_owned());
    assert_eq!(written(), offline);
    outside(&dir)
        .execute(
            "update sessions set title = 'By a model', digest_by = 'anthropic'",
            [],
        )
        .unwrap();
    commit(tool(2, "p1"), "By offline again");
    assert_eq!(
        written(),
        ("By a model".to_owned(), open, "anthropic".to_owned())
    );
}
