//! Damages real files in many ways, recovers them, and compares with a copy from before.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foreword_core::model::{Event, EventKind, Payload};
use foreword_core::queue::Queue;
use foreword_core::safety::backup::{self, BackupRetention};
use foreword_core::safety::recover::{self, Recovered};
use foreword_core::store::Store;
use rusqlite::Connection;

use crate::queue::event;
use crate::store::{observation, prompt, store};

const DAY: i64 = 24 * 3_600_000;

/// A data directory, with a copy of memory.db as it was before the damage.
struct Scene(tempfile::TempDir);

impl Scene {
    /// A memory with this many turns in a backup, and this many after it.
    fn new(before: i64, after: i64) -> Scene {
        let scene = Scene(tempfile::tempdir().unwrap());
        let mut memory = scene.open();
        turns(&mut memory, 0..before);
        if before > 0 {
            memory.back_up(&scene.backups(), DAY).unwrap();
        }
        turns(&mut memory, before..before + after);
        drop(memory);
        std::fs::copy(scene.memory(), scene.path("truth.db")).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn memory(&self) -> PathBuf {
        self.path("memory.db")
    }

    fn backups(&self) -> PathBuf {
        self.path("backups")
    }

    fn open(&self) -> Store {
        Store::open(&self.memory(), &self.backups()).unwrap()
    }

    /// Replaces the memory's file by these bytes, and recovers it.
    fn recover(&self, damaged: &[u8]) -> Option<Recovered> {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(self.path(&format!("memory.db{suffix}")));
        }
        std::fs::write(self.memory(), damaged).unwrap();
        let recovered = recover::memory(&self.memory(), &self.backups(), 2 * DAY).unwrap();
        assert_eq!(self.open().check().unwrap(), []);
        recovered
    }

    fn truth(&self) -> Vec<u8> {
        std::fs::read(self.path("truth.db")).unwrap()
    }

    /// Rows of the original that are not in the recovered memory.
    fn missing(&self) -> u64 {
        let now = rows(&self.memory());
        let missing = rows(&self.path("truth.db"));
        missing.difference(&now).count() as u64
    }
}

/// Turns with a prompt, some tool uses with output, an observation and a summary.
fn turns(memory: &mut Store, numbers: std::ops::Range<i64>) {
    for number in numbers {
        let (at, id) = (number * 100, format!("p{number}"));
        let mut events = vec![prompt(at, &id, &format!("please do {number}"))];
        events.extend((1..6).map(|minute| Event {
            prompt_id: Some(id.clone()),
            payload: Payload {
                error: Some(format!("{number}-{minute} ").repeat(100)),
                ..Payload::default()
            },
            ..event("s", at + minute, EventKind::ToolUse)
        }));
        let title = format!("insight {number} of its own");
        store(memory, &events, |_| vec![observation(&id, &title)]);
    }
}

fn connect(path: &Path) -> Connection {
    #[expect(clippy::disallowed_methods, reason = "tests look from outside")]
    Connection::open(path).unwrap()
}

/// Every row of every table, as text, without tables that are derived from others.
fn rows(path: &Path) -> BTreeSet<String> {
    let database = connect(path);
    let mut rows = BTreeSet::new();
    for table in [
        "projects",
        "project_keys",
        "items",
        "sessions",
        "prompts",
        "observations",
        "observation_files",
        "observation_concepts",
        "summaries",
        "events",
    ] {
        let mut statement = database.prepare(&format!("select * from {table}")).unwrap();
        let columns = statement.column_count();
        let mut found = statement.query([]).unwrap();
        while let Some(row) = found.next().unwrap() {
            // A placeholder item has another UUID.
            let values = (0..columns).filter(|&it| (table, it) != ("items", 1));
            let values = values.map(|it| format!("{:?}", row.get_ref(it).unwrap()));
            rows.insert(format!("{table} {}", values.collect::<Vec<_>>().join(" ")));
        }
    }
    rows
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn a_memory_with_any_one_page_overwritten_loses_what_was_on_it_and_counts_that() {
    let scene = Scene::new(0, 30);
    let truth = scene.truth();
    let pages = truth.len() / 4096;
    assert!(pages > 40, "{pages}");
    let (mut damaged, mut most_lost) = (0, 0);
    for page in 1..pages {
        let mut bytes = truth.clone();
        bytes[page * 4096..][..4096].fill(0xa5);
        let Some(recovered) = scene.recover(&bytes) else {
            // An unused page.
            assert_eq!(scene.missing(), 0, "page {page}");
            continue;
        };
        damaged += 1;
        if recovered.salvaged.tables > 0 {
            // A page of the schema: the rows of its tables cannot be counted.
            continue;
        }
        let lost = recovered.salvaged.lost;
        assert_eq!(lost, scene.missing(), "page {page}: {recovered:?}");
        most_lost = most_lost.max(scene.missing());
    }
    assert!(damaged > pages / 2, "{damaged} of {pages}");
    // The root page of the events, of which each turn has six.
    assert_eq!(most_lost, 180);
}

#[test]
fn a_backup_and_what_can_be_read_make_up_for_any_one_page_but_the_newest_rows() {
    let scene = Scene::new(25, 5);
    let truth = scene.truth();
    for page in (1..truth.len() / 4096).step_by(3) {
        let mut bytes = truth.clone();
        bytes[page * 4096..][..4096].fill(0xa5);
        if let Some(recovered) = scene.recover(&bytes) {
            assert!(recovered.backup.is_some());
            // Some rows have their state at the time of the backup.
            let salvaged = recovered.salvaged;
            let missing = scene.missing();
            assert!(salvaged.lost <= missing, "page {page}: {recovered:?}");
            let most = if salvaged.tables > 0 { 110 } else { 40 };
            assert!(missing < most, "page {page}: {missing} {recovered:?}");
        }
    }
}

#[test]
fn a_truncated_memory_keeps_what_the_rest_and_the_backup_hold() {
    let scene = Scene::new(20, 10);
    let truth = scene.truth();
    for part in [3, 2] {
        let recovered = scene
            .recover(&truth[..truth.len() * (part - 1) / part])
            .unwrap();
        let salvaged = recovered.salvaged;
        // Rows of a table that cannot be read at all are not counted.
        assert!(salvaged.lost > 0 || salvaged.tables > 0, "{salvaged:?}");
        let totals = scene.open().totals().unwrap();
        assert!((20..=30).contains(&totals.observations), "{totals:?}");
    }
    // Less than one page is left.
    let recovered = scene.recover(&truth[..2000]).unwrap();
    assert_eq!(recovered.salvaged.rows, 0);
    assert_eq!(scene.open().totals().unwrap().observations, 20);
    // An empty file: for SQLite that is a new database.
    scene.recover(b"").unwrap();
    assert_eq!(scene.open().totals().unwrap().observations, 20);
}

#[test]
fn one_byte_of_the_header_that_sqlite_does_not_call_damage_costs_nothing() {
    let scene = Scene::new(0, 10);
    // Written by a later SQLite, of another format, and the number of its schema.
    for (at, byte) in [
        (18, 9),
        (19, 9),
        (47, 9),
        (60, 0x80),
        (63, 0),
        (63, 1),
        (63, 4),
    ] {
        let mut bytes = scene.truth();
        bytes[at] = byte;
        let recovered = scene.recover(&bytes).unwrap();
        assert_eq!((recovered.salvaged.lost, scene.missing()), (0, 0), "{at}");
    }
}

#[test]
fn a_garbage_header_costs_nothing_and_a_file_of_garbage_all_since_the_backup() {
    let scene = Scene::new(20, 10);
    let mut bytes = scene.truth();
    bytes[..100].fill(0x5a);
    let recovered = scene.recover(&bytes).unwrap();
    assert_eq!(recovered.salvaged.lost, 0);
    assert_eq!(scene.missing(), 0);

    let recovered = scene.recover(&[0x5a; 8192]).unwrap();
    assert!(recovered.salvaged.tables > 0);
    let name = recovered.backup.unwrap().name();
    assert_eq!(name, "memory.1970-01-02T000000Z.db");
    assert_eq!(scene.open().totals().unwrap().observations, 20);
}

#[test]
fn a_damaged_memory_brings_nothing_back_that_was_forgotten_and_gives_no_number_twice() {
    let scene = Scene::new(3, 0);
    let mut memory = scene.open();
    let forgotten: i64 = connect(&scene.memory())
        .query_row("select max(id) from observations", [], |row| row.get(0))
        .unwrap();
    assert_eq!(memory.forget(&[forgotten], 2 * DAY).unwrap(), [forgotten]);
    drop(memory);
    let mut bytes = std::fs::read(scene.memory()).unwrap();
    bytes[..100].fill(0x5a);
    scene.recover(&bytes).unwrap();
    let mut memory = scene.open();
    assert!(memory.item(forgotten).unwrap().is_none());
    assert_eq!(memory.totals().unwrap().observations, 2);
    let last = "select max(id) from items";
    let before: i64 = connect(&scene.memory())
        .query_row(last, [], |row| row.get(0))
        .unwrap();
    turns(&mut memory, 3..4);
    let after: i64 = connect(&scene.memory())
        .query_row(last, [], |row| row.get(0))
        .unwrap();
    assert!(after > before);
    drop(memory);

    // Also if nothing of the memory can be read and the backup still has the item.
    let recovered = scene.recover(&[0x5a; 8192]).unwrap();
    assert!(recovered.backup.is_some());
    let memory = scene.open();
    assert_eq!(memory.totals().unwrap().observations, 2);
    assert!(memory.item(forgotten).unwrap().is_none());
}

#[test]
fn a_restored_backup_says_what_came_back_and_what_is_gone() {
    let scene = Scene::new(3, 2);
    let backup = backup::newest_good(&scene.backups(), DAY).unwrap().unwrap();
    let restore = |backup: &Path, now| {
        let restored = recover::restore(&scene.memory(), backup, &scene.backups(), now).unwrap();
        assert_eq!(scene.open().check().unwrap(), []);
        restored
    };
    let restored = restore(&backup.path, 2 * DAY);
    // A prompt, an observation and a summary each.
    assert_eq!((restored.came_back, restored.gone), (0, 6));
    assert_eq!(scene.open().totals().unwrap().observations, 3);
    let again = restore(&restored.aside, 3 * DAY);
    assert_eq!((again.came_back, again.gone), (6, 0));
    assert_eq!(scene.missing(), 0);
}

#[test]
fn every_event_that_can_be_read_in_a_damaged_queue_is_in_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let (path, backups) = (dir.path().join("queue.db"), dir.path().join("backups"));
    let queue = Queue::open(&path, &backups).unwrap();
    for at in 0..40 {
        let mut event = event("s", at, EventKind::ToolUse);
        event.payload.error = Some("x".repeat(900));
        queue.push(&event).unwrap();
    }
    queue.vacuum().unwrap();
    drop(queue);
    let truth = std::fs::read(&path).unwrap();
    let pages = truth.len() / 4096;
    for page in [2, pages / 2, pages - 1] {
        let mut bytes = truth.clone();
        bytes[page * 4096..][..4096].fill(0xa5);
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(dir.path().join(format!("queue.db{suffix}")));
        }
        std::fs::write(&path, bytes).unwrap();
        let recovered = recover::queue(&path, &backups, DAY).unwrap().unwrap();
        let salvaged = recovered.salvaged;
        let queue = Queue::open(&path, &backups).unwrap();
        let pending = queue.counts().unwrap().pending;
        assert_eq!(
            (pending, pending + salvaged.lost),
            (salvaged.rows, 40),
            "page {page}"
        );
        assert_eq!(queue.check(false).unwrap(), []);
    }
}

#[test]
fn the_last_of_each_day_and_of_each_week_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let backups = dir.path().join("backups");
    let memory = Store::open(&dir.path().join("memory.db"), &backups).unwrap();
    // 1970-02-02 was a Monday.
    let monday = 32 * DAY;
    let retention = BackupRetention {
        daily: 3,
        weekly: 2,
    };
    for hours in (0..20 * 24).step_by(12) {
        memory
            .back_up(&backups, monday + hours * 3_600_000)
            .unwrap();
        backup::rotate(&backups, retention, monday + hours * 3_600_000).unwrap();
    }
    let names = |now| -> Vec<String> {
        let all = backup::all(&backups, now).unwrap();
        all.iter().map(backup::Backup::name).collect()
    };
    assert_eq!(
        names(monday + 20 * DAY),
        [
            "memory.1970-02-21T120000Z.db",
            "memory.1970-02-20T120000Z.db",
            "memory.1970-02-19T120000Z.db",
            "memory.1970-02-15T120000Z.db",
        ]
    );
    // A backup with a time in the future was made with a wrong clock.
    assert_eq!(
        names(monday + 18 * DAY + DAY / 2)[0],
        "memory.1970-02-20T120000Z.db"
    );
}

/// Things that somebody may put into the schema of a backup. Each would do harm if it came along, or
/// if it were used while rows are read.
const FOREIGN: &[(&str, &str)] = &[
    (
        "trigger evil",
        "create trigger evil after insert on events begin delete from observations; delete from prompts; end",
    ),
    (
        "view told",
        "create view told as select load_extension('/tmp/evil.so') as x",
    ),
    (
        "view endless",
        "create view endless as with recursive n(i) as (select 1 union all select i from n) select i from n",
    ),
    ("table mine", "create table mine (a, b generated always as (zeroblob(a)))"),
    ("index slow", "create index slow on events (length(zeroblob(at)) desc)"),
    ("table files", "create virtual table files using fts5 (a)"),
    // Our own parts, changed.
    (
        "trigger observations_text_insert",
        "drop trigger observations_text_insert;
         create trigger observations_text_insert after insert on observations begin delete from items; end",
    ),
    (
        "view item_texts",
        "drop view item_texts;
         create view item_texts as select 1 as id, load_extension('x') as title, '' as body, '' as tags",
    ),
];

#[test]
fn a_backup_gives_its_rows_and_nothing_of_its_schema() {
    for (part, sql) in FOREIGN {
        let scene = Scene::new(3, 2);
        let backup = backup::newest_good(&scene.backups(), DAY).unwrap().unwrap();
        let hostile = connect(&backup.path);
        hostile
            .execute_batch(sql)
            .unwrap_or_else(|error| panic!("{part}: {error}"));
        drop(hostile);
        assert!(backup::is_good(&backup.path), "{part}");
        let restored =
            recover::restore(&scene.memory(), &backup.path, &scene.backups(), 2 * DAY).unwrap();
        assert!(
            restored.left_out.iter().any(|it| it == part),
            "{restored:?}"
        );
        assert_eq!((restored.came_back, restored.gone), (0, 6), "{part}");
        let mut memory = scene.open();
        assert_eq!(memory.check().unwrap(), [], "{part}");
        turns(&mut memory, 7..8);
        assert_eq!(memory.totals().unwrap().observations, 4, "{part}");
        assert_eq!(memory.totals().unwrap().prompts, 4, "{part}");

        // The same for the backup that a recovery begins with.
        drop(memory);
        scene.recover(&[0x5a; 8192]).unwrap();
        assert_eq!(scene.open().totals().unwrap().observations, 3, "{part}");
    }
}

#[test]
fn a_backup_whose_tables_are_something_else_is_refused_and_nothing_changes() {
    for sql in [
        "drop table conversations; create view conversations as select 1 as id",
        "drop table receipts",
        "drop table receipts; create virtual table receipts using fts5 (session_id)",
        "alter table receipts add column more blob generated always as (zeroblob(1000000000))",
        "pragma user_version = 9999",
    ] {
        let scene = Scene::new(3, 2);
        let backup = backup::newest_good(&scene.backups(), DAY).unwrap().unwrap();
        connect(&backup.path).execute_batch(sql).unwrap();
        assert!(!backup::is_good(&backup.path), "{sql}");
        assert_eq!(scene.open().totals().unwrap().observations, 5, "{sql}");
    }
}

#[test]
fn a_memory_or_queue_with_a_foreign_schema_is_found_and_made_anew_with_all_its_rows() {
    for (part, sql) in FOREIGN {
        let scene = Scene::new(3, 2);
        connect(&scene.memory()).execute_batch(sql).unwrap();
        let wrong = scene.open().check().unwrap();
        let schema = wrong.iter().find(|it| it.id == "memory-schema").unwrap();
        assert!(schema.what.contains(part), "{wrong:?}");
        assert!(
            scene.open().check_schema().unwrap_err().is_damage(),
            "{part}"
        );
        let recovered = recover::memory(&scene.memory(), &scene.backups(), 2 * DAY).unwrap();
        assert_eq!(recovered.unwrap().salvaged.lost, 0, "{part}");
        assert_eq!(scene.open().check().unwrap(), [], "{part}");
        assert_eq!(scene.missing(), 0, "{part}");
    }

    let dir = tempfile::tempdir().unwrap();
    let (path, backups) = (dir.path().join("queue.db"), dir.path().join("backups"));
    let queue = Queue::open(&path, &backups).unwrap();
    queue.push(&event("s", 1, EventKind::ToolUse)).unwrap();
    let evil = "create trigger evil after insert on events begin delete from events; end";
    connect(&path).execute_batch(evil).unwrap();
    assert_eq!(queue.check(true).unwrap()[0].id, "queue-schema");
    drop(queue);
    let recovered = recover::queue(&path, &backups, DAY).unwrap().unwrap();
    assert_eq!((recovered.salvaged.rows, recovered.salvaged.lost), (1, 0));
    let queue = Queue::open(&path, &backups).unwrap();
    assert_eq!(queue.check(false).unwrap(), []);
    queue.push(&event("s", 2, EventKind::ToolUse)).unwrap();
    assert_eq!(queue.counts().unwrap().pending, 2);
}

#[test]
fn rows_that_our_schema_does_not_allow_are_left_out_and_counted() {
    let scene = Scene::new(3, 0);
    let backup = backup::newest_good(&scene.backups(), DAY).unwrap().unwrap();
    let hostile = connect(&backup.path);
    hostile
        .execute_batch(
            "pragma ignore_check_constraints = on;
             drop trigger observations_text_update;
             drop trigger observations_vectors_update;
             update observations set type = 'order' where id = (select min(id) from observations);
             insert into items (id, uuid, kind) values (9223372036854775807, 'u', 'note');",
        )
        .unwrap();
    drop(hostile);
    let restored =
        recover::restore(&scene.memory(), &backup.path, &scene.backups(), 2 * DAY).unwrap();
    // The observation with its file and its concept, and the item whose number leaves no next one.
    assert_eq!(restored.refused, 4, "{restored:?}");
    let mut memory = scene.open();
    assert_eq!(memory.check().unwrap(), []);
    turns(&mut memory, 7..8);
    assert_eq!(memory.totals().unwrap().observations, 3);
}

#[test]
fn a_backup_of_an_older_schema_is_brought_up_to_date() {
    let scene = Scene::new(3, 0);
    let backup = backup::newest_good(&scene.backups(), DAY).unwrap().unwrap();
    let older = connect(&backup.path);
    older
        .execute_batch(
            "alter table ledger drop column turn; alter table ledger drop column asked_model;
             alter table ledger drop column reserved_usd; alter table ledger drop column reserved_tokens;
             alter table ledger drop column reserved_until; drop table conversations;
             drop trigger observations_journal_delete; drop table journal; drop table judged;
             drop index observations_pinned; drop index observations_by_time;
             alter table observations drop column pinned_at; alter table observations drop column hidden_at;
             alter table observations drop column edited_at; alter table observations drop column until;
             alter table observations drop column imported_from;
             alter table observations drop column fact_origins;
             drop index forgotten_by_uuid; drop index forgotten_by_time;
             alter table forgotten drop column uuid;
             drop trigger observations_text_update;
             pragma user_version = 102",
        )
        .unwrap();
    let first = include_str!("../../src/store/0001_memory.sql");
    let trigger = first
        .find("create trigger observations_text_update")
        .unwrap();
    let trigger = first[trigger..].split_inclusive("end;").next().unwrap();
    older.execute_batch(trigger).unwrap();
    drop(older);
    assert!(backup::is_good(&backup.path));
    let restored =
        recover::restore(&scene.memory(), &backup.path, &scene.backups(), 2 * DAY).unwrap();
    assert_eq!(restored.left_out, Vec::<String>::new());
    assert_eq!(scene.open().check().unwrap(), []);
    assert_eq!(scene.missing(), 0);
}
