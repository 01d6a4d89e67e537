//! Copies the rows of a damaged or foreign database into one that our migrations made. Nothing of
//! its schema comes along: only ordinary tables are read, by our own lists of columns.
//!
//! Every b-tree of a table has the keys of its rows: the table itself, read from both ends, and
//! each index. Each such key is looked up; if its row cannot be read, the row is known to be lost.
//! Rows keep their ids, and a row of the damaged file replaces that of a backup, which is older.
//! A row whose parent is lost is kept: the project, session, prompt or item that it refers to is
//! created again as a placeholder with the same id.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, named_params, params_from_iter};
use uuid::Uuid;

use crate::db::foreign::{self, Source};
use crate::db::{self, Migration, OpenError};
use crate::store;

/// The result, in rows of all tables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Rows that were not in the backup, or older there.
    pub rows: u64,
    /// Rows whose key is in the damaged file, and that could be read neither there nor in the backup.
    pub lost: u64,
    /// Tables of which no b-tree could be read to its end, so that more rows may be lost.
    pub tables: u64,
}

/// Rows that are known to be lost, by table and key.
type LostRows = BTreeSet<(String, String)>;

struct Table {
    name: String,
    columns: Vec<String>,
    key: Vec<String>,
}

/// Copies all rows that can be read in a damaged database, in one transaction. A second run changes
/// nothing.
pub(crate) fn salvage(wreck: &Path, into: &mut Connection) -> Result<Salvaged, OpenError> {
    let wreck = match db::open_wreck(wreck) {
        Err(error) if error.is_damage() => {
            let tables = tables(into)?.len() as u64;
            return Ok(Salvaged {
                tables,
                ..Salvaged::default()
            });
        }
        wreck => wreck?,
    };
    let is_memory = tables(into)?.iter().any(|table| table.name == "items");
    // Locks the queue: a hook that still has it open waits 150 ms for the lock, then it writes to
    // the spool. Events that it wrote before are copied here.
    let fenced = !is_memory && wreck.execute_batch("begin immediate").is_ok();
    let salvaged = copy_rows(&wreck, into)?;
    if fenced {
        #[expect(
            clippy::disallowed_methods,
            reason = "until no hook waits for the lock any more"
        )]
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    Ok(salvaged)
}

/// Copies all rows that can be read in another database, in one transaction.
pub(crate) fn copy_rows(wreck: &Connection, into: &mut Connection) -> Result<Salvaged, OpenError> {
    let tx = into.transaction()?;
    let mut tables = tables(&tx)?;
    let mut salvaged = Salvaged::default();
    let is_memory = tables.iter().any(|table| table.name == "items");
    let mut lost = LostRows::new();
    tables.retain_mut(|table| {
        let theirs = foreign::ordinary_columns(wreck, &table.name);
        let theirs = theirs.filter(|theirs| table.key.iter().all(|it| theirs.contains(it)));
        salvaged.tables += u64::from(theirs.is_none());
        theirs.is_some_and(|theirs| {
            table.columns.retain(|it| theirs.contains(it));
            true
        })
    });
    for table in &tables {
        // An observation may refer to a later one that is not copied yet.
        let first = |column: &&String| *column != "superseded_by";
        let columns: Vec<_> = table.columns.iter().filter(first).cloned().collect();
        match carry(wreck, &tx, table, &columns, &mut lost)? {
            Some((rows, whole)) => {
                salvaged.rows += rows;
                salvaged.tables += u64::from(!whole);
            }
            None => salvaged.tables += 1,
        }
    }
    for table in tables.iter().filter(|table| table.name == "observations") {
        carry(wreck, &tx, table, &table.columns, &mut lost)?;
    }
    if is_memory {
        keep_promises(wreck, &tx)?;
    }
    tx.commit()?;
    // Marks of events are made again from the events, and vectors by the worker.
    lost.retain(|(table, _)| table != "processed_events" && table != "vectors");
    salvaged.lost = lost.len() as u64;
    Ok(salvaged)
}

/// Whether a database has all our tables, and each can be read to its end.
pub(crate) fn is_whole(source: &Source, migrations: &[Migration]) -> Result<bool, OpenError> {
    let ours = foreign::schema(migrations, source.schema)?;
    let is_whole = |table: &Table| {
        let theirs = foreign::ordinary_columns(&source.connection, &table.name);
        theirs.is_some_and(|theirs| table.columns.iter().all(|it| theirs.contains(it)))
            && foreign::is_sound(&source.connection, &table.name)
    };
    Ok(tables(&ours)?.iter().all(is_whole))
}

/// The tables of a database in the order of their creation, so that parents come first.
fn tables(into: &Connection) -> rusqlite::Result<Vec<Table>> {
    let texts = |sql: &str, name: &str| -> rusqlite::Result<Vec<String>> {
        let mut statement = into.prepare(sql)?;
        let rows = statement.query_map(named_params! {":name": name}, |row| row.get(0))?;
        rows.collect()
    };
    let names = texts(
        "select s.name
         from sqlite_schema s
         join pragma_table_list t on t.schema = 'main' and t.name = s.name and t.type = 'table'
         where s.type = 'table' and s.name not like 'sqlite!_%' escape '!' and :name = ''
         order by s.rowid",
        "",
    )?;
    let table = |name: String| {
        Ok(Table {
            columns: texts("select name from pragma_table_info(:name)", &name)?,
            key: texts(
                "select name from pragma_table_info(:name) where pk > 0 order by pk",
                &name,
            )?,
            name,
        })
    };
    names.into_iter().map(table).collect()
}

/// Copies the rows of a table. Returns how many, and whether all keys could be read; none if the
/// table cannot be read at all.
fn carry(
    wreck: &Connection,
    into: &Connection,
    table: &Table,
    columns: &[String],
    lost: &mut LostRows,
) -> Result<Option<(u64, bool)>, OpenError> {
    let list = |columns: &[String], prefix: &str| {
        let quoted = columns.iter().map(|it| format!("{prefix}\"{it}\""));
        quoted.collect::<Vec<_>>().join(", ")
    };
    let numbered: Vec<_> = (1..=columns.len()).map(|it| format!("?{it}")).collect();
    let (name, key) = (&table.name, list(&table.key, ""));
    let by_key: Vec<_> = table.key.iter().map(|it| format!("\"{it}\" = ?")).collect();
    let read = format!(
        "select {} from {name} not indexed where {}",
        list(columns, ""),
        by_key.join(" and ")
    );
    let Ok(mut read) = wreck.prepare(&read) else {
        return Ok(None);
    };
    let mut write = into.prepare(&format!(
        "insert into {name} ({columns})
         values ({values})
         on conflict ({key}) do update
         set ({columns}) = ({newer})
         where ({older}) is not ({newer})",
        columns = list(columns, ""),
        values = numbered.join(", "),
        newer = list(columns, "excluded."),
        older = list(columns, &format!("{name}.")),
    ))?;
    let present = format!("select 1 from {name} where {}", by_key.join(" and "));
    let mut present = into.prepare(&present)?;
    let mut rows = 0;
    let (keys, whole) = keys(wreck, into, table, &key);
    for (label, key) in keys {
        let row = read.query_row(params_from_iter(&key), |row| {
            (0..columns.len())
                .map(|column| row.get(column))
                .collect::<Result<Vec<Value>, _>>()
        });
        let is_item = |key: &[Value]| matches!(key, [Value::Integer(id)] if *id <= ITEM_MAX);
        let row = row.ok().filter(|_| name != "items" || is_item(&key));
        let Some(row) = row else {
            if !present.exists(params_from_iter(&key))? {
                lost.insert((name.clone(), label));
            }
            continue;
        };
        let mut written = write.execute(params_from_iter(&row));
        if is_refused(&written) {
            rows += make_parents(into, table, columns, &row, lost)?;
            written = write.execute(params_from_iter(&row));
        }
        match written {
            Ok(changed) => rows += changed as u64,
            Err(_) if is_refused(&written) => drop(lost.insert((name.clone(), label))),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some((rows, whole)))
}

/// Every key in a b-tree of the table, as far as they can be read; and whether one b-tree could be
/// read to its end.
fn keys(
    wreck: &Connection,
    into: &Connection,
    table: &Table,
    key: &str,
) -> (BTreeMap<String, Vec<Value>>, bool) {
    let name = &table.name;
    let backwards = key.replace("\", \"", "\" desc, \"");
    let mut trees = vec![
        format!("select {key} from {name} not indexed order by {key}"),
        format!("select {key} from {name} not indexed order by {backwards} desc"),
    ];
    // Our own indexes: one that somebody else made may compute something.
    if let Ok(mut indexes) = into.prepare("select name from pragma_index_list(?)")
        && let Ok(rows) = indexes.query_map([name], |row| row.get::<_, String>(0))
    {
        let tree = |index| format!("select {key} from {name} indexed by \"{index}\"");
        trees.extend(rows.map_while(Result::ok).map(tree));
    }
    let (mut keys, mut whole) = (BTreeMap::new(), false);
    for tree in trees {
        // A partial index cannot be scanned without its condition, and is not needed.
        let Ok(mut statement) = wreck.prepare(&tree) else {
            continue;
        };
        let columns = table.key.len();
        let rows = statement.query_map([], |row| {
            (0..columns)
                .map(|column| row.get(column))
                .collect::<Result<Vec<Value>, _>>()
        });
        let Ok(rows) = rows else {
            continue;
        };
        let mut ended = true;
        let rows = rows.map_while(|row| row.inspect_err(|_| ended = false).ok());
        keys.extend(rows.map(|key| (label(&key), key)));
        whole |= ended;
    }
    (keys, whole)
}

fn is_refused(written: &rusqlite::Result<usize>) -> bool {
    let code = written
        .as_ref()
        .err()
        .and_then(rusqlite::Error::sqlite_error_code);
    code == Some(ErrorCode::ConstraintViolation)
}

fn label(key: &[Value]) -> String {
    format!("{key:?}")
}

/// Creates the lost rows that a row refers to, as placeholders with the same ids. Returns how many
/// of them are as they were.
fn make_parents(
    into: &Connection,
    table: &Table,
    columns: &[String],
    row: &[Value],
    lost: &mut LostRows,
) -> rusqlite::Result<u64> {
    let value = |column: &str| {
        let position = columns.iter().position(|it| it == column)?;
        row.get(position).filter(|it| **it != Value::Null)
    };
    let mut as_before = 0;
    let kind = table
        .name
        .trim_end_matches('s')
        .replace("summarie", "summary");
    let items = [("id", kind.as_str()), ("prompt_id", "prompt")];
    for (id, kind) in items.map(|(column, kind)| (value(column), kind)) {
        let Some(id) = id.filter(|_| ITEMS.contains(&table.name.as_str())) else {
            continue;
        };
        let hash = blake3::hash(format!("{kind} {id:?}").as_bytes());
        let uuid = Uuid::from_slice(&hash.as_bytes()[..16]).unwrap_or_default();
        as_before += into.execute(
            "insert or ignore into items (id, uuid, kind) values (:id, :uuid, :kind)",
            named_params! {":id": id, ":uuid": uuid.to_string(), ":kind": kind},
        )? as u64;
        lost.remove(&("items".to_owned(), label(std::slice::from_ref(id))));
    }
    for (parent, column, make) in [
        (
            "projects",
            "project_id",
            "insert or ignore into projects (id, name, created_at)
             values (?1, 'lost-' || ?1, coalesce(?3, 0))",
        ),
        (
            "sessions",
            "session_id",
            "insert or ignore into sessions (id, host, host_session_id, state, started_at, last_event_at)
             values (?1, 'unknown', 'lost-' || ?1, 'interrupted', coalesce(?3, 0), coalesce(?3, 0))",
        ),
        (
            "prompts",
            "prompt_id",
            "insert or ignore into prompts (id, session_id, number, text, at)
             values (?1, ?2, 0, '(this prompt was lost)', coalesce(?3, 0))",
        ),
    ] {
        // In `events` a prompt's id is the host's, and refers to nothing.
        let Some(id) = value(column).filter(|id| matches!(id, Value::Integer(_))) else {
            continue;
        };
        if into.execute(make, (id, value("session_id"), value("at")))? > 0 {
            lost.insert((parent.to_owned(), label(std::slice::from_ref(id))));
        }
    }
    Ok(as_before)
}

/// The largest number of an item that is taken over. After the largest number that SQLite knows, no
/// item could be stored any more.
const ITEM_MAX: i64 = 1 << 53;

/// Tables whose rows are items.
const ITEMS: [&str; 4] = ["observations", "summaries", "prompts", "notes"];

/// Items that were forgotten since the backup stay forgotten, and no event is processed twice.
fn keep_promises(wreck: &Connection, into: &Connection) -> rusqlite::Result<()> {
    store::stay_forgotten(into)?;
    mark_kept_events(into)?;
    keep_sequence(wreck, into)
}

/// No item number is ever reused.
pub(crate) fn keep_sequence(wreck: &Connection, into: &Connection) -> rusqlite::Result<()> {
    let last = wreck.query_row(
        "select seq from sqlite_sequence where name = 'items'",
        [],
        |row| row.get::<_, i64>(0),
    );
    if let Ok(last) = last.map(|it| it.min(ITEM_MAX)) {
        into.execute(
            "update sqlite_sequence set seq = max(seq, :last) where name = 'items'",
            named_params! {":last": last},
        )?;
    }
    Ok(())
}

/// Marks every kept event as processed.
pub(crate) fn mark_kept_events(memory: &Connection) -> rusqlite::Result<()> {
    memory.execute_batch(
        "insert or ignore into processed_events (event_id, key, outcome, at)
         select id, key, 'stored', at from events",
    )
}
