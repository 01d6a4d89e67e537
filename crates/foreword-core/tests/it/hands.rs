//! What a person changes by hand stays so: whatever the worker derives again, restores or imports.

use foreword_core::export::{Export, ImportSource, Imported, Whose};
use foreword_core::model::{
    Derived, Event, EventKind, Observation, Origin, Payload, SessionDigest, Summary, Verdict,
};
use foreword_core::recall::index::{IndexRequest, StartReason, index};
use foreword_core::recall::reminder::{self, Occasion};
use foreword_core::safety::recover;
use foreword_core::search::{Filter, Query, Sort, ids, search};
use foreword_core::store::{
    Batch, DerivedTurn, HandsError, HostSession, ItemBody, PINS_MAX, Replaces, Store, ToRemember,
};

use crate::queue::event;
use crate::store::{observation, open, outside};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const WRONG: &str = "Rounding is done by banks";
const RIGHT: &str = "Rounding is half up";

/// The prompt and a tool use of a session's only turn.
fn turn(session: &str, at: i64) -> [Event; 2] {
    let prompt_id = Some(format!("prompt of {session}"));
    let prompt = Event {
        key: format!("prompt:{session}"),
        id: uuid::Uuid::from_u128(at.unsigned_abs().into()),
        prompt_id: prompt_id.clone(),
        payload: Payload {
            prompt: Some(format!("Look into {session}")),
            ..Payload::default()
        },
        ..event(session, at, EventKind::Prompt)
    };
    let tool = Event {
        key: format!("tool:{session}"),
        id: uuid::Uuid::from_u128(u128::from(at.unsigned_abs()) + 1),
        prompt_id,
        ..event(session, at + 1, EventKind::ToolUse)
    };
    [prompt, tool]
}

fn found(seed: &str, title: &str, events: &[Event]) -> Observation {
    Observation {
        narrative: String::new(),
        subtitle: String::new(),
        facts: Vec::new(),
        files: Vec::new(),
        events: events.iter().map(|it| it.id).collect(),
        at: events[0].at,
        ..observation(seed, title)
    }
}

/// Stores a turn with these observations, and the first of them as the session's title.
fn derive(
    store: &mut Store,
    events: &[Event],
    observations: Vec<Observation>,
    replaces: Replaces,
    provider: &str,
) {
    let digest = SessionDigest {
        title: observations[0].title.clone(),
        ..SessionDigest::default()
    };
    let turns = store.turns(events).unwrap().into_iter().map(|turn| {
        let derived = Derived {
            observations: observations.clone(),
            summary: Some(Summary {
                request: "Look".into(),
                completed: "Looked".into(),
                ..Summary::default()
            }),
            ..Derived::default()
        };
        let mut turn = DerivedTurn::offline(turn, derived);
        turn.provenance.provider = provider.to_owned();
        turn
    });
    let batch = Batch {
        events,
        turns: &turns.collect::<Vec<_>>(),
        replaces,
        digest: Some(&digest),
        provider,
        now: events[0].at,
    };
    store.commit(&batch).unwrap();
}

fn titles(store: &Store) -> Vec<String> {
    let all = Filter::default();
    let mut numbers = ids(store, &all).unwrap();
    numbers.sort_unstable();
    let titles = numbers
        .iter()
        .filter_map(|id| match store.item(*id).unwrap()?.body {
            ItemBody::Observation(it) => Some(it.title),
            _ => None,
        });
    titles.collect()
}

fn number(store: &Store, title: &str) -> i64 {
    let all = ids(store, &Filter::default()).unwrap().into_iter();
    let mut named = all.filter(|id| store.editable(*id).is_ok_and(|it| it.title == title));
    named.next().unwrap()
}

fn retitle(store: &mut Store, id: i64, title: &str, now: i64) {
    let mut wanted = store.editable(id).unwrap();
    wanted.title = title.to_owned();
    assert_eq!(store.edit(&[(id, wanted)], "shell", now).unwrap(), [id]);
}

fn shown(store: &Store, now: i64) -> String {
    let request = IndexRequest {
        project: Some("/p"),
        host_session_id: "new",
        start_reason: StartReason::Startup,
        branch: None,
        root: None,
        now,
        unopened_kept: None,
        asks_agent: false,
    };
    index(Some(store), &request)
        .unwrap()
        .map_or(String::new(), |it| it.text)
}

fn remember(store: &mut Store, text: &str, now: i64) -> i64 {
    let session = HostSession {
        host: "mcp".into(),
        id: "said in /p".into(),
    };
    let request = ToRemember::of(text, "/p", &session, format!("said:{text}"), now);
    store.remember(&request).unwrap().id
}

#[test]
fn an_edited_line_stays_whoever_derives_its_turn_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let events = turn("s", HOUR);
    let wrong = || found("turn:1", WRONG, &events);
    let other = || found("turn:2", "Cents are integers", &events);
    derive(
        &mut store,
        &events,
        vec![wrong(), other()],
        Replaces::Turns,
        "offline",
    );
    let id = number(&store, WRONG);
    retitle(&mut store, id, RIGHT, DAY);
    let edited = store.item(id).unwrap();
    assert!(shown(&store, DAY).contains(RIGHT));

    // One more event of the turn, then `redo`.
    let more = Event {
        id: uuid::Uuid::from_u128(77),
        key: "more".into(),
        ..events[1].clone()
    };
    derive(
        &mut store,
        &[more],
        vec![wrong(), other()],
        Replaces::Turns,
        "offline",
    );
    derive(
        &mut store,
        &events,
        vec![wrong(), other()],
        Replaces::Events,
        "offline",
    );
    // A model words everything anew, under other seeds.
    let reworded = vec![
        found("m/1", "Banks round", &events),
        found("m/2", "No floats", &events),
    ];
    derive(&mut store, &events, reworded, Replaces::Events, "claude");
    assert_eq!(titles(&store), [RIGHT, "Cents are integers"]);
    assert_eq!(store.item(id).unwrap(), edited);
    assert!(!shown(&store, DAY).contains(WRONG));
    let ItemBody::Observation(it) = edited.unwrap().body else {
        panic!()
    };
    assert_eq!((it.origin, it.edited_at), (Origin::User, Some(DAY)));
}

#[test]
fn a_forgotten_prompt_takes_its_turn_along_and_later_events_of_it_bring_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let [prompt, tool] = turn("s", HOUR);
    let events = [prompt, tool.clone()];
    let insight = found("turn:1", WRONG, &events);
    derive(
        &mut store,
        &events,
        vec![insight.clone()],
        Replaces::Turns,
        "offline",
    );
    let items = ids(&store, &Filter::default()).unwrap();
    let of_prompt: Vec<i64> = items
        .iter()
        .copied()
        .filter(|id| matches!(store.item(*id).unwrap().unwrap().body, ItemBody::Prompt(_)))
        .collect();
    assert_eq!(store.would_forget(&of_prompt).unwrap().len(), items.len());
    assert_eq!(store.forget(&of_prompt, DAY).unwrap().len(), items.len());
    let late = Event {
        id: uuid::Uuid::from_u128(77),
        key: "late".into(),
        at: 2 * HOUR,
        ..tool
    };
    derive(
        &mut store,
        &[late],
        vec![insight],
        Replaces::Turns,
        "offline",
    );
    assert!(ids(&store, &Filter::default()).unwrap().is_empty());
    let memory = outside(&dir);
    let left: String = memory
        .query_row(
            "select coalesce(group_concat(event), '') || (select coalesce(max(title), '') from sessions)
             from events",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert!(
        !left.contains("Look into") && !left.contains(WRONG),
        "{left}"
    );
}

#[test]
fn nothing_of_a_forgotten_observation_is_left_in_any_table() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let events = turn("s", HOUR);
    let secret = "Xylophones are kept in the vault";
    derive(
        &mut store,
        &events,
        vec![found("turn:1", secret, &events)],
        Replaces::Turns,
        "offline",
    );
    let id = number(&store, secret);
    retitle(&mut store, id, "Xylophones are kept in the cellar", DAY);
    store.pin(&[id], true, "shell", DAY).unwrap();
    assert_eq!(store.forget(&[id], DAY).unwrap(), [id]);
    drop(store);
    let memory = outside(&dir);
    let tables: Vec<String> = {
        let sql = "select name from sqlite_master where type = 'table' and name not like 'texts%'";
        let mut statement = memory.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    for table in tables {
        let mut statement = memory.prepare(&format!("select * from {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                let text = row.get_ref(column).unwrap().as_str().unwrap_or_default();
                assert!(!text.contains("ylophone"), "{table}: {text}");
            }
        }
    }
    let words = "select count(*) from texts where texts match 'xylophones'";
    let found: i64 = memory.query_row(words, [], |row| row.get(0)).unwrap();
    assert_eq!(found, 0);
    let file = std::fs::read_to_string(dir.path().join("memory.db.forgotten")).unwrap();
    assert!(!file.contains("ylophone"), "{file}");
}

#[test]
fn a_restored_backup_brings_back_neither_what_was_edited_nor_what_was_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    for (at, session, title) in [(1, "a", WRONG), (2, "b", "Forget me"), (3, "c", "Pin me")] {
        let events = turn(session, at * HOUR);
        derive(
            &mut store,
            &events,
            vec![found("turn:1", title, &events)],
            Replaces::Turns,
            "offline",
        );
    }
    let backups = dir.path().join("backups");
    let backup = store.back_up(&backups, DAY).unwrap();
    let [wrong, gone, pinned] = [WRONG, "Forget me", "Pin me"].map(|it| number(&store, it));
    retitle(&mut store, wrong, RIGHT, 2 * DAY);
    store.forget(&[gone], 2 * DAY).unwrap();
    store.pin(&[pinned], true, "shell", 2 * DAY).unwrap();
    let index = shown(&store, 2 * DAY);
    drop(store);
    recover::restore(
        &dir.path().join("memory.db"),
        &backup.path,
        &backups,
        3 * DAY,
    )
    .unwrap();
    let mut store = open(&dir);
    assert_eq!(shown(&store, 2 * DAY), index);
    assert_eq!(titles(&store), [RIGHT, "Pin me"]);
    // What was done since can still be undone.
    store.undo(2).unwrap();
    assert_eq!(titles(&store), [WRONG, "Pin me"]);
}

#[test]
fn a_pin_is_first_and_a_hidden_line_is_nowhere_however_many_sessions_follow() {
    for later in [12, 500] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(&dir);
        let with_file = |mut it: Observation| {
            it.files = observation("", "").files;
            it
        };
        for (at, session, title) in [
            (1, "pinned", "No ORM here"),
            (2, "hidden", "The vault code"),
        ] {
            let events = turn(session, at * HOUR);
            let insight = with_file(found("turn:1", title, &events));
            derive(
                &mut store,
                &events,
                vec![insight],
                Replaces::Turns,
                "offline",
            );
        }
        let [pinned, hidden] = ["No ORM here", "The vault code"].map(|it| number(&store, it));
        store.pin(&[pinned], true, "shell", 3 * HOUR).unwrap();
        store.hide(&[hidden], true, "shell", 3 * HOUR).unwrap();
        for at in 4..4 + later {
            let session = format!("s{at}");
            let events = turn(&session, at * HOUR);
            let title = format!("Typo {at} in the readme");
            derive(
                &mut store,
                &events,
                vec![found("turn:1", &title, &events)],
                Replaces::Turns,
                "offline",
            );
        }
        let text = shown(&store, 1_000 * HOUR);
        let third = text.lines().nth(3).unwrap_or_default();
        assert!(third.contains(&format!("#{pinned} ")), "{text}");
        assert!(!text.contains("vault"), "{text}");
        let occasion = Occasion {
            project: "/p",
            host_session_id: "new",
            root: None,
            now: 1_000 * HOUR,
        };
        let about_file = reminder::for_file(&store, &occasion, "src/a.rs").unwrap();
        let reminder = about_file.remind(
            foreword_core::model::Shown::File,
            &reminder::ShownBefore::default(),
        );
        let reminder = reminder.unwrap().text;
        assert!(
            reminder.contains("No ORM") && !reminder.contains("vault"),
            "{reminder}"
        );
        let about = reminder::for_prompt(&store, &occasion, "what was the vault code again?");
        assert!(about.unwrap().is_empty());
        let query = Query {
            words: "vault code",
            filter: Filter::default(),
            sort: Sort::Relevance,
            limit: 10,
        };
        let hits = search(&store, &query).unwrap().hits;
        assert_eq!((hits[0].id, hits[0].hidden), (hidden, true));
    }
}

#[test]
fn an_expired_line_leaves_the_index_and_is_still_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let id = remember(&mut store, "The freeze ends on friday", HOUR);
    let mut wanted = store.editable(id).unwrap();
    wanted.until = Some(DAY);
    store.edit(&[(id, wanted)], "shell", 2 * HOUR).unwrap();
    assert!(shown(&store, DAY).contains("freeze"));
    assert_eq!(shown(&store, DAY + 1), "");
    let query = Query {
        words: "freeze",
        filter: Filter::default(),
        sort: Sort::Relevance,
        limit: 10,
    };
    assert_eq!(search(&store, &query).unwrap().hits[0].until, Some(DAY));
}

#[test]
fn an_older_line_that_nobody_opened_leaves_the_index_if_the_settings_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let events = turn("s", HOUR);
    let lines = vec![
        found("turn:1", "Old news", &events),
        found("turn:2", "Opened news", &events),
    ];
    derive(&mut store, &events, lines, Replaces::Turns, "offline");
    let opened = number(&store, "Opened news");
    outside(&dir)
        .execute(
            "insert into receipts (session_id, item_id, shown, because, at)
             select session_id, id, 'opened', '', 90 * 86400000 from observations where id = ?1",
            [opened],
        )
        .unwrap();
    let request = |unopened_kept| IndexRequest {
        project: Some("/p"),
        host_session_id: "new",
        start_reason: StartReason::Startup,
        branch: None,
        root: None,
        now: 100 * DAY,
        unopened_kept,
        asks_agent: false,
    };
    let ids = |unopened_kept| -> Vec<i64> {
        let index = index(Some(&store), &request(unopened_kept))
            .unwrap()
            .unwrap();
        index.weighed.iter().map(|it| it.id).collect()
    };
    assert_eq!(ids(None).len(), 2);
    assert_eq!(ids(Some(30 * DAY)), [opened]);
}

#[test]
fn undo_takes_back_every_change_command_by_command() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let events = turn("s", HOUR);
    let both = vec![
        found("turn:1", WRONG, &events),
        found("turn:2", "Cents", &events),
    ];
    derive(&mut store, &events, both, Replaces::Turns, "offline");
    let [a, b] = [WRONG, "Cents"].map(|it| number(&store, it));
    let state = |store: &Store| [a, b].map(|id| store.item(id).unwrap().unwrap());
    let mut before = vec![(state(&store), shown(&store, DAY))];
    let mut done = |store: &Store| before.push((state(store), shown(store, DAY)));
    retitle(&mut store, a, RIGHT, DAY);
    done(&store);
    store.pin(&[a, b], true, "shell", DAY).unwrap();
    done(&store);
    store.hide(&[b], true, "shell", DAY).unwrap();
    done(&store);
    store
        .relate(a, b, Verdict::Supersedes, "shell", DAY)
        .unwrap();
    done(&store);
    store
        .relate(b, a, Verdict::Supersedes, "shell", DAY)
        .unwrap();
    done(&store);
    let said = remember(&mut store, "No floats", DAY);
    assert_eq!(store.history(a).unwrap().len(), 4);

    for expected in before.iter().rev() {
        store.undo(1).unwrap();
        assert_eq!((state(&store), shown(&store, DAY)), *expected);
        assert!(store.item(said).unwrap().is_none());
    }
    assert_eq!(store.undo(1).unwrap(), []);
    assert_eq!(titles(&store), [WRONG, "Cents"]);
}

#[test]
fn ten_lines_are_pinned_and_only_observations() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let events = turn("s", HOUR);
    derive(
        &mut store,
        &events,
        vec![found("turn:1", WRONG, &events)],
        Replaces::Turns,
        "offline",
    );
    let others: Vec<i64> = ids(&store, &Filter::default()).unwrap();
    let prompt = others.iter().find(|id| store.editable(**id).is_err());
    let refused = store
        .pin(&[*prompt.unwrap()], true, "shell", DAY)
        .unwrap_err();
    assert!(matches!(refused, HandsError::OtherKind(..)), "{refused}");
    let refused = store.pin(&[999], true, "shell", DAY).unwrap_err();
    assert!(matches!(refused, HandsError::NoItem(999)), "{refused}");
    let mut pins: Vec<i64> = Vec::new();
    for number in 0..=PINS_MAX {
        pins.push(remember(
            &mut store,
            &format!("Rule {number} of this house"),
            DAY,
        ));
    }
    // All of them or none.
    let refused = store.pin(&pins, true, "shell", DAY).unwrap_err();
    assert!(matches!(refused, HandsError::TooManyPins(_)), "{refused}");
    assert_eq!(store.editable(pins[0]).unwrap().pinned_at, None);
    assert_eq!(
        store.pin(&pins[1..], true, "shell", DAY).unwrap().len(),
        PINS_MAX
    );
    let text = shown(&store, DAY);
    let lines = text.lines().filter(|line| line.starts_with("- #"));
    assert!(lines.count() >= PINS_MAX, "{text}");
}

#[test]
fn the_worker_respects_a_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let a = remember(&mut store, "Kept for 30 days", HOUR);
    let b = remember(&mut store, "Kept for 90 days", 2 * HOUR);
    store
        .relate(b, a, Verdict::Unrelated, "shell", DAY)
        .unwrap();
    let events = turn("s", 3 * HOUR);
    let turns = store.turns(&events).unwrap().into_iter().map(|turn| {
        let derived = Derived {
            observations: vec![found("turn:1", "Kept for a year", &events)],
            marks: vec![
                foreword_core::model::Mark::SupersededBy(a, "turn:1".into()),
                foreword_core::model::Mark::Retracted(b, "it is wrong".into()),
            ],
            ..Derived::default()
        };
        DerivedTurn::offline(turn, derived)
    });
    let batch = Batch {
        events: &events,
        turns: &turns.collect::<Vec<_>>(),
        replaces: Replaces::Turns,
        digest: None,
        provider: "claude",
        now: DAY,
    };
    store.commit(&batch).unwrap();
    for id in [a, b] {
        let ItemBody::Observation(it) = store.item(id).unwrap().unwrap().body else {
            panic!()
        };
        assert_eq!((it.superseded_by, it.retracted), (None, None));
    }
    let far = HostSession {
        host: "mcp".into(),
        id: "elsewhere".into(),
    };
    let request = ToRemember::of("Elsewhere", "/q", &far, "said".into(), DAY);
    let elsewhere = store.remember(&request).unwrap().id;
    let refused = store.relate(a, elsewhere, Verdict::Supersedes, "shell", DAY);
    assert!(matches!(refused, Err(HandsError::OtherProject(..))));
}

const KEY: [u8; 32] = [7; 32];

/// A memory with every kind of item, a pin, a hidden line, a limit and a superseded one.
fn varied(store: &mut Store) -> Export {
    for (at, session) in [(1, "a"), (2, "b")] {
        let events = turn(session, at * HOUR);
        let insight = Observation {
            facts: vec!["One".into(), "Two".into()],
            files: observation("", "").files,
            ..found("turn:1", &format!("Found in {session}"), &events)
        };
        derive(store, &events, vec![insight], Replaces::Turns, "offline");
    }
    let rule = remember(store, "No ORM in this house", 3 * HOUR);
    let [a, b] = ["Found in a", "Found in b"].map(|it| number(store, it));
    store.pin(&[rule], true, "shell", DAY).unwrap();
    store.hide(&[a], true, "shell", DAY).unwrap();
    store
        .relate(b, a, Verdict::Supersedes, "shell", DAY)
        .unwrap();
    let mut wanted = store.editable(rule).unwrap();
    wanted.until = Some(30 * DAY);
    store.edit(&[(rule, wanted)], "shell", DAY).unwrap();
    let all = ids(store, &Filter::default()).unwrap();
    let export = store.export(&all).unwrap().proven(&KEY);
    let json = serde_json::to_vec(&export).unwrap();
    Export::read(&json).unwrap()
}

fn import(store: &mut Store, export: &Export, whose: Whose) -> Imported {
    let source = ImportSource {
        whose,
        from: "memory.json",
        who: "shell",
        dry_run: false,
    };
    store.import(export, &source, 40 * DAY).unwrap()
}

#[test]
fn an_export_read_in_elsewhere_is_the_same_memory() {
    let dir = tempfile::tempdir().unwrap();
    let export = varied(&mut open(&dir));
    assert!(export.is_proven(&KEY) && !export.is_proven(&[8; 32]));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut store = open(&elsewhere);
    let imported = import(&mut store, &export, Whose::Mine);
    assert_eq!((imported.new, imported.lowered), (export.items.len(), 0));
    let all = ids(&store, &Filter::default()).unwrap();
    let again = store.export(&all).unwrap();
    let by_uuid = |export: &Export| {
        let mut items = export.items.clone();
        items.iter_mut().for_each(|it| it.id = 0);
        items.sort_by(|a, b| a.uuid.cmp(&b.uuid));
        items
    };
    assert_eq!(by_uuid(&again), by_uuid(&export));
    assert_eq!(
        (again.sessions, again.projects),
        (export.sessions.clone(), export.projects.clone())
    );
    assert!(shown(&store, 20 * DAY).contains("Pinned by the user:\n- #"));

    assert_eq!(
        import(&mut store, &export, Whose::Mine).known,
        export.items.len()
    );
    store.undo(1).unwrap();
    assert_eq!(store.totals().unwrap(), Default::default());
}

#[test]
fn somebody_elses_export_has_no_authority_and_what_was_forgotten_stays_so() {
    let dir = tempfile::tempdir().unwrap();
    let export = varied(&mut open(&dir));
    let mut changed = export.clone();
    changed.items[0].title.push('!');
    assert!(!changed.is_proven(&KEY));

    let elsewhere = tempfile::tempdir().unwrap();
    let mut store = open(&elsewhere);
    let imported = import(&mut store, &export, Whose::Others);
    let observations = titles(&store).len();
    assert_eq!((observations, imported.lowered), (3, 3));
    let text = shown(&store, 20 * DAY);
    assert!(
        !text.contains("Pinned") && !text.contains("Laid down"),
        "{text}"
    );
    let rule = number(&store, "No ORM in this house");
    let ItemBody::Observation(it) = store.item(rule).unwrap().unwrap().body else {
        panic!()
    };
    assert_eq!((it.origin, it.pinned_at), (Origin::Import, None));
    assert_eq!(it.imported_from.as_deref(), Some("memory.json"));

    store.forget(&[rule], 41 * DAY).unwrap();
    let again = import(&mut store, &export, Whose::Mine);
    assert_eq!((again.forgotten, again.new), (1, 0));
    assert!(!titles(&store).contains(&"No ORM in this house".to_owned()));
}

#[test]
fn an_import_takes_out_secrets_and_leaves_out_what_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let export = varied(&mut open(&dir));
    let mut hostile = export.clone();
    let observations = hostile.items.iter_mut().filter(|it| it.r#type.is_some());
    for (number, item) in observations.enumerate() {
        match number {
            0 => item.narrative = ["ghp_abcdefghij", "klmnopqrstuvwxyz0123456789"].concat(),
            1 => item.uuid = "../../etc/passwd".into(),
            _ => item.created_at = "9000-01-01T00:00:00Z".into(),
        }
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let mut store = open(&elsewhere);
    let imported = import(&mut store, &hostile, Whose::Others);
    assert_eq!(imported.skipped, 1);
    let memory = outside(&elsewhere);
    let (newest, text): (i64, String) = memory
        .query_row(
            "select max(at), group_concat(narrative) from observations",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert!(
        newest <= 40 * DAY && !text.contains("ghp_"),
        "{newest} {text}"
    );
    for wrong in [
        "",
        "[]",
        "{}",
        r#"{"foreword_export": 2}"#,
        r#"{"foreword_export": 1}"#,
    ] {
        assert!(Export::read(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn a_forgotten_project_leaves_no_name_and_stays_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let export = varied(&mut store);
    let project = store.projects().unwrap()[0].id;
    let all = store.items_of_project(project).unwrap().len();
    assert_eq!(store.forget_project(project, 2 * DAY).unwrap().len(), all);
    assert_eq!(store.projects().unwrap(), []);
    assert_eq!(import(&mut store, &export, Whose::Mine).forgotten, all);
    let memory = outside(&dir);
    let left: i64 = memory
        .query_row(
            "select (select count(*) from sessions where root is not null or title is not null)
                  + (select count(*) from project_keys) + (select count(*) from events)
                  + (select count(*) from texts) + (select count(*) from journal)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, 0);
}
