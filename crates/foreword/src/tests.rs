//! Malformed input for every reader of outside data.
//!
//! One test for each reader: it never panics, and keeps its own invariant. `mutator` makes
//! the inputs. The program as a whole is tested in `tests/it/fuzz.rs`. Queries have a property test
//! in core's `search.rs`, replies in `agent/reply/tests`.

#[path = "../tests/support/host.rs"]
#[expect(dead_code, reason = "only the integration tests use all of it")]
pub mod host;
mod mutator;

use std::path::Path;

use foreword_core::capture::{self, CaptureContext, Captured, Hook};
use foreword_core::db::OpenError;
use foreword_core::host::HOSTS;
use foreword_core::model::{Event, Turn};
use foreword_core::notes::record::SynthesisRecord;
use foreword_core::notes::{Folder, Note};
use foreword_core::project::{self, Rules};
use foreword_core::queue::{Portion, Queue, Readiness};
use foreword_core::safety::recover::{self, Recovered};
use foreword_core::search::{self, Filter, Query, Sort};
use foreword_core::store::{Batch, DerivedTurn, Replaces, Store};
use foreword_core::{redact, spool};
use uuid::Uuid;

use crate::agent::{repair, reply};
use crate::config::Config;
use crate::host::CLIENTS;
use crate::install::InstallRecord;
use crate::install::{self, Connection};
use crate::offline;
use crate::service::embed_client::{self, EmbedQuestion, EmbedReply, NoMeaning};
use mutator::{files, folder, fuzz};

/// A time later than that of any event.
const NOW: i64 = 4_000_000_000_000;

fn recorded() -> Vec<Vec<u8>> {
    files(&folder().join("../claude-code/hooks"))
}

/// The recorded hook inputs as events of one turn, in order of time.
fn recorded_turn() -> Turn {
    let inputs = recorded();
    let events = inputs.iter().filter_map(|input| {
        let (hook, _) = (HOSTS[0].read)(input)?.event?;
        match captured(hook, input) {
            Captured::Event(event) => Some(*event),
            Captured::Dropped(_) => None,
        }
    });
    let events = (1..).zip(events).map(|(number, event)| Event {
        id: Uuid::from_u128(number),
        key: format!("event:{number}"),
        host_session_id: "s1".to_owned(),
        prompt_id: Some("p1".to_owned()),
        ..event
    });
    Turn {
        prompt_id: Some("p1".to_owned()),
        events: events.collect(),
    }
}

fn captured(hook: Hook, input: &[u8]) -> Captured {
    let context = CaptureContext {
        host: &HOSTS[0],
        now: NOW,
        event_id: Uuid::from_u128(1),
        project_dir: None,
        rules: Rules {
            not_projects: Vec::new(),
            separate_worktrees: false,
        },
    };
    capture::capture(hook, input, &context, &capture::CaptureSettings::default())
}

#[test]
fn hooks() {
    fuzz("hooks", recorded(), 800, |input| {
        for &hook in Hook::ALL {
            let Captured::Event(event) = captured(hook, input) else {
                continue;
            };
            assert!(!event.host_session_id.is_empty());
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), *event);
            let payload = serde_json::to_string(&event.payload).unwrap();
            let most = capture::Limits::default().payload_max;
            assert!(payload.len() <= most, "{} bytes", payload.len());
        }
        let text = String::from_utf8_lossy(input);
        let once = redact::fast(&text).text;
        assert_eq!(
            redact::fast(&once).text,
            once,
            "a second redaction changes nothing"
        );
    });
}

#[test]
fn redaction() {
    let corpus = std::fs::read_to_string(folder().join("../secrets/secrets.jsonl")).unwrap();
    let corpus = corpus.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["text"].as_str().unwrap().as_bytes().to_vec()
    });
    fuzz("redaction", corpus.collect(), 800, |input| {
        let text = String::from_utf8_lossy(input);
        let whole = redact::thorough(&text);
        assert!(whole.count > 0 || whole.text == text);
        // A token at the end is found whatever stands before it.
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let ended = redact::thorough(&format!("{text}\n{token}"))
            .text
            .into_owned();
        assert!(!ended.contains(&token));
        // The lines of a text stay as many.
        let mut lines: serde_json::Value = text.lines().collect();
        let count = lines.as_array().unwrap().len();
        redact::ValueRedactor::new(redact::Stage::Thorough).value(&mut lines);
        assert_eq!(lines.as_array().unwrap().len(), count);
    });
}

#[test]
fn transcripts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("it.jsonl");
    // Every recorded line, one to a line.
    let whole: Vec<_> = files(&folder().join("../transcript"))
        .iter()
        .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok())
        .map(|line| format!("{line}\n"))
        .collect();
    let session = "687d8424-9948-4ccb-a944-74dd0307c406";
    let mut understood = 0;
    fuzz("transcripts", vec![whole.concat().into()], 150, |input| {
        std::fs::write(&path, input).unwrap();
        let read = HOSTS[0].replay(&path, session, |replayed| {
            understood += 1;
            match captured(replayed.hook, replayed.input.as_bytes()) {
                Captured::Event(event) if event.host_session_id == session => Ok(()),
                Captured::Dropped(drop) if drop.is_intended() => Ok(()),
                other => Err(format!("{other:?} of {replayed:?}")),
            }
        });
        assert_eq!(read, Ok(()));
    });
    assert!(understood > 100, "{understood}");
}

#[test]
fn spooled_events_are_taken_in_or_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let (spool, unreadable) = (
        dir.path().join("spool"),
        dir.path().join("spool/unreadable"),
    );
    std::fs::create_dir_all(&unreadable).unwrap();
    let mut queue = Queue::open(&dir.path().join("queue.db"), &dir.path().join("backups")).unwrap();
    let sample = serde_json::to_vec(&recorded_turn().events[0]).unwrap();
    fuzz("spool", vec![sample], 800, |input| {
        std::fs::write(spool.join("it.json"), input).unwrap();
        assert_eq!(spool::take_in(&spool, &queue).unwrap(), 1);
        let aside = std::fs::remove_file(unreadable.join("it.json")).is_ok();
        let patient = Readiness {
            drain: false,
            batch_max: 9,
            batch_wait: 3000,
        };
        let due = queue.next_due(NOW, patient).unwrap();
        assert_eq!(due.is_some(), !aside, "a queued event has a due time");
        assert_eq!(queue.counts().unwrap().pending, u64::from(!aside));
        let ready = queue.claim(NOW, patient, |_| Portion::ALL).unwrap();
        let now = Readiness {
            drain: true,
            ..patient
        };
        let claim = match ready {
            None => queue.claim(NOW, now, |_| Portion::ALL).unwrap(),
            ready => ready,
        };
        assert_eq!(claim.is_some(), !aside, "it is claimed or was set aside");
        if let Some(claim) = claim {
            let event: Event = serde_json::from_slice(input).unwrap();
            assert_eq!(claim.events, [event]);
            queue.finish(claim).unwrap();
        }
    });
}

/// Files of a `.git` folder, each input in the place of each of them.
#[test]
fn git_files() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let names = [
        ".git",
        ".git/HEAD",
        ".git/config",
        ".git/commondir",
        ".git/packed-refs",
    ];
    let roots = names.map(|name| (top.join(name.replace('/', "-")), name));
    for (root, name) in &roots {
        std::fs::create_dir(root).unwrap();
        if *name != ".git" {
            std::fs::create_dir(root.join(".git")).unwrap();
            std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/feat/x\n").unwrap();
        }
    }
    fuzz("git", Vec::new(), 500, |input| {
        for (root, name) in &roots {
            std::fs::write(root.join(name), input).unwrap();
            let place = project::resolve(root, &Rules::default());
            assert_eq!(place.root.as_ref(), Some(root), "a link leads nowhere");
            assert!(place.project.is_some_and(|it| !it.is_empty()));
            let is_id = |it: String| it.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(place.head.commit.is_none_or(is_id));
        }
    });
}

/// Files of a project's `_memory`, each input in the place of each of them.
#[test]
fn notes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::at(dir.path(), None).unwrap();
    std::fs::create_dir_all(folder.conversations()).unwrap();
    fuzz("notes", Vec::new(), 300, |input| {
        let note = folder.note("s0").unwrap();
        for path in [note, folder.master(), folder.record()] {
            std::fs::write(path, input).unwrap();
        }
        let (notes, errors) = folder.notes();
        assert_eq!(notes.len() + errors.len(), 1);
        assert!(folder.newer().len() <= 1);
        for file in notes {
            let (note, _) = Note::read(&file.text);
            assert!(note.title.lines().count() <= 1);
            let record = SynthesisRecord::read(&file.text);
            let again = SynthesisRecord::read(&record.to_string());
            assert_eq!(again.notes, record.notes);
        }
    });
}

#[test]
fn replies() {
    let events: Vec<Event> = recorded()
        .iter()
        .filter_map(|input| match captured(Hook::Save, input) {
            Captured::Event(event) => Some(*event),
            Captured::Dropped(_) => None,
        })
        .collect();
    let events: Vec<&Event> = events.iter().collect();
    fuzz("replies", Vec::new(), 500, |input| {
        let read = reply::read(&String::from_utf8_lossy(input), repair::TAGS);
        for found in &read.observations {
            let Some(made) = repair::observation(found, &events, "seed".into()) else {
                continue;
            };
            assert!(
                !made.title.is_empty() && made.title.chars().count() <= 80,
                "{}",
                made.title
            );
            assert!(
                made.facts.len() <= 7 && made.concepts.len() <= 5,
                "{made:?}"
            );
            assert!(
                made.events
                    .iter()
                    .all(|id| events.iter().any(|event| event.id == *id))
            );
        }
        if let Some(found) = &read.summary {
            repair::summary(found, &events);
        }
    });
}

#[test]
fn settings_of_foreword() {
    let defaults = include_bytes!("default.toml").to_vec();
    fuzz("config", vec![defaults], 500, |input| {
        let text = String::from_utf8_lossy(input);
        let nothing = Vec::new();
        let (tolerant, mistake) = Config::tolerant_from(&text, &nothing);
        match Config::from(&text, &nothing) {
            Ok(config) => assert_eq!((tolerant, mistake), (config, None)),
            Err(error) => {
                let error = format!("{error:#}");
                assert!(mistake.is_some(), "only one of them saw: {error}");
                let names_line = error.contains("at line ");
                let names_key = error.contains("there is no setting ")
                    || error.contains(" is of type ")
                    || error.contains(" is a section")
                    || error.contains("have to be")
                    || error.contains("a setting has the wrong type")
                    || error.contains("provider = ");
                assert!(names_line || names_key, "{error}");
            }
        }
    });
}

#[test]
fn settings_of_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let backup = dir.path().join("backup");
    let program = Path::new("/opt/foreword");
    let mut before_last = String::new();
    fuzz("settings", Vec::new(), 500, |input| {
        let Ok(settings) = std::str::from_utf8(input) else {
            return;
        };
        let Ok(clean) = install::without_us(&CLIENTS[0], settings, None) else {
            assert!(install::connect(&CLIENTS[0], settings, settings, program).is_err());
            return;
        };
        let clean = clean.unwrap();
        let Ok(written) = install::connect(&CLIENTS[0], settings, &clean, program) else {
            return;
        };
        let connection = install::connection(&CLIENTS[0], &written, program).unwrap();
        assert!(matches!(
            connection,
            Connection::Connected | Connection::Partly(_) | Connection::Unread(_)
        ));
        assert_eq!(
            install::connect(&CLIENTS[0], &written, &clean, program).unwrap(),
            written,
            "a second time changes nothing"
        );
        std::fs::write(&backup, &clean).unwrap();
        let record = |written: &str| InstallRecord {
            settings: "/settings.json".into(),
            written: written.to_owned(),
            backup: Some(backup.clone()),
            folders: Vec::new(),
            rules: Vec::new(),
            refused: false,
        };
        let undone = install::without_us(&CLIENTS[0], &written, Some(&record(&written))).unwrap();
        assert_eq!(
            undone.as_ref(),
            Some(&clean),
            "uninstall gives the bytes back"
        );

        // The settings were replaced since: by those of the last round.
        if let Ok(Some(undone)) =
            install::without_us(&CLIENTS[0], &before_last, Some(&record(&written)))
        {
            let left = install::connection(&CLIENTS[0], &undone, program).unwrap();
            assert_eq!(left, Connection::None, "{undone}");
        }
        before_last = written;
    });
}

#[test]
fn the_hosts_list_of_servers() {
    fuzz("settings", Vec::new(), 500, |input| {
        let Ok(list) = std::str::from_utf8(input) else {
            return;
        };
        let Ok(written) = (CLIENTS[0].insert_server)(list, Path::new("/opt/foreword")) else {
            return;
        };
        let again = (CLIENTS[0].insert_server)(&written, Path::new("/opt/foreword")).unwrap();
        assert_eq!(again, written, "a second time changes nothing");
        install::unlisted(&CLIENTS[0], &written, None).unwrap();
    });
}

/// Damages bytes by a recipe of five-byte steps: three bytes for the place, one for the kind of
/// damage, one for the value.
fn damaged(sound: &[u8], recipe: &[u8]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for step in recipe.chunks_exact(5) {
        let at = u32::from_be_bytes([0, step[0], step[1], step[2]]) as usize % sound.len();
        let Some(rest) = bytes.get_mut(at..).filter(|it| !it.is_empty()) else {
            continue;
        };
        match step[3] % 8 {
            0 => bytes.truncate(at),
            1 => rest.iter_mut().take(4096).for_each(|byte| *byte = step[4]),
            2 => rest.iter_mut().take(64).for_each(|byte| *byte = step[4]),
            3 => rest[0] = step[4],
            _ => rest[0] ^= 1 << (step[4] % 8),
        }
    }
    bytes
}

/// A database of one turn, which a test damages again and again.
struct Database {
    dir: tempfile::TempDir,
    name: &'static str,
    /// The file before any damage.
    sound: Vec<u8>,
    tables: Vec<String>,
    /// Rows of all tables before any damage.
    rows: u64,
}

impl Database {
    fn memory() -> Database {
        Database::new("memory.db", |path, backups| {
            let turn = recorded_turn();
            let events = turn.events.clone();
            let derived = offline::derive(std::slice::from_ref(&turn)).turns.remove(0);
            let mut store = Store::open(path, backups).unwrap();
            store
                .commit(&Batch {
                    events: &events,
                    turns: &[DerivedTurn::offline(turn, derived)],
                    replaces: Replaces::Turns,
                    digest: None,
                    provider: "offline",
                    now: NOW,
                })
                .unwrap();
            store.vacuum().unwrap();
        })
    }

    fn queue() -> Database {
        Database::new("queue.db", |path, backups| {
            let queue = Queue::open(path, backups).unwrap();
            for event in recorded_turn().events {
                assert!(queue.push(&event).unwrap());
            }
            queue.vacuum().unwrap();
        })
    }

    fn new(name: &'static str, make: fn(&Path, &Path)) -> Database {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        make(&path, &dir.path().join("backups"));
        let database = connect(&path);
        let mut tables = database
            .prepare("select name from sqlite_schema where type = 'table' and name not like 'texts%' and name not like 'sqlite%'")
            .unwrap();
        let tables: Vec<String> = tables
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let rows = count(&database, &tables).unwrap();
        assert!(rows > 20, "{rows}");
        let sound = std::fs::read(&path).unwrap();
        Database {
            dir,
            name,
            sound,
            tables,
            rows,
        }
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join(self.name)
    }

    fn put(&self, bytes: &[u8]) {
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                std::fs::remove_file(path).unwrap();
            }
        }
        std::fs::write(self.path(), bytes).unwrap();
    }

    /// Expects that missing rows were reported as lost. (Core's `recover.rs` tests the exact number.)
    fn assert_nothing_went_silently(&self, recovered: Option<&Recovered>) {
        let there = count(&connect(&self.path()), &self.tables).unwrap();
        let salvaged = recovered.map(|it| it.salvaged).unwrap_or_default();
        let reported = salvaged.lost > 0 || salvaged.tables > 0;
        assert!(
            there >= self.rows || reported,
            "{there} of {}: {recovered:?}",
            self.rows
        );
    }
}

fn connect(path: &Path) -> rusqlite::Connection {
    #[expect(clippy::disallowed_methods, reason = "tests look from outside")]
    rusqlite::Connection::open(path).unwrap()
}

fn count(database: &rusqlite::Connection, tables: &[String]) -> rusqlite::Result<u64> {
    let one = |table: &String| {
        database.query_row(
            &format!("select count(*) from {table} not indexed"),
            [],
            |row| row.get::<_, u64>(0),
        )
    };
    tables.iter().map(one).sum()
}

#[test]
fn a_damaged_memory() {
    let database = Database::memory();
    let backups = database.dir.path().join("backups");
    fuzz("databases", Vec::new(), 80, |recipe| {
        let bytes = damaged(&database.sound, recipe);
        if bytes.is_empty() {
            return; // An empty file counts as no database.
        }
        database.put(&bytes);
        let path = database.path();
        // Readers must not panic on the damage either.
        if let Ok(Some(store)) = Store::look(&path) {
            let _ = (store.totals(), store.check());
            let _ = search::search(&store, &query("kumquat limit"));
        }
        let recovered = match recover::memory(&path, &backups, 1) {
            Ok(recovered) => recovered,
            Err(error @ OpenError::OtherSchema { .. }) => {
                assert!(error.to_string().contains("newer"), "{error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let store = Store::open(&path, &backups).unwrap();
        if recovered.is_some() {
            assert_eq!(store.check().unwrap(), []);
        }
        database.assert_nothing_went_silently(recovered.as_ref());
    });
}

#[test]
fn a_damaged_queue() {
    let database = Database::queue();
    let backups = database.dir.path().join("backups");
    fuzz("databases", Vec::new(), 15, |recipe| {
        let bytes = damaged(&database.sound, recipe);
        if bytes.is_empty() {
            return; // An empty file counts as no database.
        }
        database.put(&bytes);
        let path = database.path();
        if let Ok(Some(queue)) = Queue::look(&path) {
            let _ = (queue.counts(), queue.check(false));
        }
        match recover::queue(&path, &backups, 1) {
            Ok(recovered) => database.assert_nothing_went_silently(recovered.as_ref()),
            Err(error @ OpenError::OtherSchema { .. }) => {
                assert!(error.to_string().contains("newer"), "{error}");
                return;
            }
            Err(error) => panic!("{error}"),
        }
        Queue::open(&path, &backups).unwrap();
    });
}

fn query(words: &str) -> Query<'_> {
    Query {
        words,
        filter: Filter::default(),
        sort: Sort::default(),
        limit: 10,
    }
}

#[test]
fn queries() {
    let database = Database::memory();
    let store = Store::look(&database.path()).unwrap().unwrap();
    fuzz("queries", Vec::new(), 250, |input| {
        let words = String::from_utf8_lossy(input);
        let found = search::search(&store, &query(&words)).unwrap();
        assert!(found.hits.len() <= 10);
    });
}

#[test]
fn questions_and_answers_of_the_embed_socket() {
    let samples = vec![
        embed_client::line(&EmbedQuestion::Related(7)),
        br#"{"v":2,"it":{"search":{"words":"login expiry","filter":{"kind":"note"},"limit":10,"offset":0}}}
"#
        .to_vec(),
        embed_client::line(&EmbedReply::Refused(NoMeaning::Loading)),
        embed_client::line(&EmbedReply::Related(Vec::new())),
    ];
    fuzz("embed", samples, 2000, |input| {
        let _ = embed_client::read_question(input);
        let _ = embed_client::read_answer(input);
    });
}
