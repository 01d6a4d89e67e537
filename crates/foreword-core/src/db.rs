//! Opens SQLite databases; nothing else in Foreword does (a lint forbids it).
//!
//! Durability and hook latency depend on a handful of settings, which are set here. A
//! database is opened as a guest (a hook: never migrates, never checkpoints) or as the
//! owner (worker and CLI: migrates, with a backup before each step).

pub(crate) mod foreign;
pub(crate) mod place;
mod rows;

use std::ffi::OsStr;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use uuid::Uuid;

use crate::{fault, files, text};
pub(crate) use rows::Rows;

// SQLite before 3.51.3 can corrupt a WAL that is reset while another process reads it.
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003);

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no database at {0}")]
    Missing(PathBuf),
    #[error("{path} has schema {found}, this program knows {known}: {}", what_to_do(*found, *known))]
    OtherSchema {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("{0} was written before the first release; the next worker sets it aside")]
    Unreleased(PathBuf),
    #[error("could not back up {path} before a migration: {source}")]
    Backup {
        path: PathBuf,
        source: rusqlite::Error,
    },
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error("the copy of {path} is damaged: {damage}")]
    Copy { path: PathBuf, damage: String },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

fn what_to_do(found: i64, known: i64) -> &'static str {
    if found > known {
        "a newer Foreword wrote it; update this one"
    } else {
        "the next worker brings it up to date"
    }
}

impl OpenError {
    /// Whether the file itself is damaged, rather than locked, newer, or on a full disk.
    pub fn is_damage(&self) -> bool {
        match self {
            OpenError::Sqlite(error) | OpenError::Backup { source: error, .. } => is_damage(error),
            _ => false,
        }
    }
}

/// Whether SQLite reports that the file itself is damaged.
pub fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

/// A numbered step of a schema. Once released it is never edited.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    pub number: i64,
    pub sql: &'static str,
}

/// How a guest may use a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest {
    Reads,
    Writes,
}

/// Opens an existing database for a short-lived process: a hook lives about a millisecond.
pub fn open_guest(path: &Path, guest: Guest, schema: i64) -> Result<Connection, OpenError> {
    let access = match guest {
        Guest::Reads => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Guest::Writes => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let mut connection = connect(path, access)?;
    // Closing the last WAL connection checkpoints and fsyncs: 4-500 ms against
    // 0.2 ms when the worker holds one open. The worker checkpoints instead.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_handler(Some(wait_briefly))?;
    if guest == Guest::Writes {
        // If no worker ever empties the queue, it stops growing at 192 MB; with its log that is
        // about a gigabyte.
        connection.execute_batch(
            "pragma synchronous = normal;
             pragma wal_autocheckpoint = 0;
             pragma max_page_count = 49152;",
        )?;
    }
    let found = user_version(&connection)?;
    check_schema(path, &connection, found, schema)?;
    Ok(connection)
}

/// None if there is no database.
pub(crate) fn if_there(
    opened: Result<Connection, OpenError>,
) -> Result<Option<Connection>, OpenError> {
    match opened {
        Err(OpenError::Missing(_)) => Ok(None),
        opened => opened.map(Some),
    }
}

fn check_schema(
    path: &Path,
    connection: &Connection,
    found: i64,
    known: i64,
) -> Result<(), OpenError> {
    let path = path.to_owned();
    // A file without a schema was just created by a worker, which is about to fill it.
    if found == 0 {
        return Err(OpenError::Missing(path));
    }
    if is_unreleased(connection, found)? {
        return Err(OpenError::Unreleased(path));
    }
    if found != known {
        return Err(OpenError::OtherSchema { path, found, known });
    }
    Ok(())
}

/// The lowest schema number of a release; lower ones were used before the first release.
const FIRST_SCHEMA: i64 = 100;

/// Whether a program from before the first release wrote this database. The schema number could
/// be overwritten by damage, so a column that only those programs used is checked too.
fn is_unreleased(connection: &Connection, found: i64) -> rusqlite::Result<bool> {
    if !(1..FIRST_SCHEMA).contains(&found) {
        return Ok(false);
    }
    let old = "select exists (select 1 from pragma_table_info('events') where name = 'payload')";
    connection.one(old, [])
}

/// Opens a database for reading without changing any file. A plain reader would create files
/// beside the database and write to them.
pub fn open_inspector(path: &Path, schema: i64) -> Result<Connection, OpenError> {
    let inspector = connect_inspector(path)?;
    match user_version(&inspector) {
        // The log's index (`-shm`) is lost; only a connection that may rebuild it can read.
        Err(rusqlite::Error::SqliteFailure(error, _)) if needs_index(error) => {
            open_guest(path, Guest::Reads, schema)
        }
        found => check_schema(path, &inspector, found?, schema).map(|()| inspector),
    }
}

fn connect_inspector(path: &Path) -> Result<Connection, OpenError> {
    let log = beside(path, "-wal");
    let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    if !path.exists() {
        return Err(OpenError::Missing(path.to_owned()));
    }
    // Without a log the file is complete, and only a worker's checkpoint changes it.
    let mode = if has_log {
        "mode=ro&readonly_shm=1"
    } else {
        "mode=ro&immutable=1"
    };
    let uri = format!("file:{}?{mode}", percent_encoded(path));
    #[expect(clippy::disallowed_methods, reason = "this module opens the databases")]
    let inspector = Connection::open_with_flags(
        uri,
        OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    inspector.busy_timeout(Duration::from_secs(2))?;
    distrust(&inspector)?;
    Ok(inspector)
}

/// Our own schema needs no more than this. One that somebody else changed can then call no function
/// with side effects.
fn distrust(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    Ok(())
}

fn needs_index(error: rusqlite::ffi::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
    matches!(error.code, CannotOpen | ReadOnly)
}

fn percent_encoded(path: &Path) -> String {
    let mut encoded = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    encoded
}

/// The damage that SQLite finds in a database; none if it is sound.
pub(crate) fn damage(connection: &Connection) -> Option<String> {
    let check = connection.query_row("pragma quick_check(1)", [], |row| row.get::<_, String>(0));
    match check {
        Ok(answer) => (answer != "ok").then_some(answer),
        Err(error) => Some(error.to_string()),
    }
}

/// Fails as a damaged file does if the schema is not the one that our migrations make.
pub(crate) fn check_own_schema(
    connection: &Connection,
    migrations: &[Migration],
) -> Result<(), OpenError> {
    let known = migrations.last().map_or(0, |it| it.number);
    let line = foreign::difference(connection, migrations, known)?.line();
    line.map_or(Ok(()), |line| Err(damaged(&line)))
}

/// What is wrong with a database of ours: damage, or a schema that is not ours. None if it is sound.
pub(crate) fn defect(
    connection: &Connection,
    migrations: &[Migration],
) -> Result<Option<String>, OpenError> {
    let known = migrations.last().map_or(0, |it| it.number);
    match damage(connection) {
        Some(damage) => Ok(Some(damage)),
        None => Ok(foreign::difference(connection, migrations, known)?.line()),
    }
}

/// A value as a column of JSON.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Opens or creates a database and brings its schema up to date.
///
/// A database that is not new is copied into `backups` before each migration. A schema newer
/// than this program's is an error.
pub fn open_owner(
    path: &Path,
    migrations: &[Migration],
    backups: &Path,
) -> Result<Connection, OpenError> {
    check_length(path, backups)?;
    // The header is read only after an error: closing any file handle drops all locks that this
    // process has on the file, also those of SQLite, and another process could then remove the log
    // that another connection of this process uses.
    connect_owner(path, migrations, backups)
        .map_err(|error| check_header(path).err().unwrap_or(error))
}

fn connect_owner(
    path: &Path,
    migrations: &[Migration],
    backups: &Path,
) -> Result<Connection, OpenError> {
    let mut connection = connect(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    )?;
    // More statements than are in one transaction of the worker, so that none is prepared twice.
    connection.set_prepared_statement_cache_capacity(64);
    // A transaction that began by reading could fail when it writes.
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.execute_batch(
        "pragma journal_mode = wal;
         pragma synchronous = normal;
         pragma foreign_keys = on;
         pragma journal_size_limit = 4194304;",
    )?;
    register_parts(&connection)?;
    migrate(path, &connection, migrations, backups)?;
    // SQLite opens a file as read-only if its header names an unknown format version.
    if connection.is_readonly("main")? {
        check_header(path)?;
    }
    Ok(connection)
}

/// Registers the SQL function `parts(text)`, which the triggers of the full-text index call.
fn register_parts(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function(c"parts", 1, flags, |context| {
        let text = context.get_raw(0).as_str_or_null()?;
        Ok(text::parts(text.unwrap_or_default()))
    })
}

/// The length of the header of a SQLite file.
pub(crate) const HEADER: usize = 100;

/// Whether a header is as SQLite writes it. For a broken header SQLite itself may report that the
/// file is read-only or of another format, and not that it is damaged.
pub(crate) fn is_header(bytes: &[u8; HEADER]) -> bool {
    bytes.starts_with(b"SQLite format 3\0")
        && bytes[18..20]
            .iter()
            .all(|version| (1..=2).contains(version))
        && bytes[44..47] == [0; 3]
        && bytes[47] <= 4
}

fn check_header(path: &Path) -> Result<(), OpenError> {
    let mut bytes = [0; HEADER];
    let Ok((file, _)) = files::open(path) else {
        return Ok(());
    };
    let sound = match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => is_header(&bytes),
        Err(error) => error.kind() != std::io::ErrorKind::UnexpectedEof,
    };
    if sound {
        Ok(())
    } else {
        Err(damaged("its header is overwritten"))
    }
}

/// Reports an empty file that has backups as damaged; SQLite would take it for a new database.
fn check_length(path: &Path, backups: &Path) -> Result<(), OpenError> {
    let is_empty = std::fs::metadata(path).is_ok_and(|it| it.len() == 0);
    let stem = path.file_stem().unwrap_or_default().as_encoded_bytes();
    let is_backup_of_this = |name: &OsStr| name.as_encoded_bytes().starts_with(stem);
    let entries = || std::fs::read_dir(backups).into_iter().flatten().flatten();
    if is_empty && entries().any(|entry| is_backup_of_this(&entry.file_name())) {
        return Err(damaged("it is empty, but has backups"));
    }
    Ok(())
}

fn damaged(damage: &str) -> OpenError {
    let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(corrupt, Some(damage.to_owned())).into()
}

/// An error of a migration step whose tables or columns already exist means that the schema
/// number was overwritten.
fn misnumbered(error: rusqlite::Error) -> OpenError {
    let text = error.to_string();
    if text.contains(" already exists") || text.contains("duplicate column name") {
        return damaged("its schema number is wrong");
    }
    error.into()
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, OpenError> {
    #[expect(clippy::disallowed_methods, reason = "this module opens the databases")]
    let opened = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection = opened.map_err(|error| {
        if path.exists() {
            OpenError::Sqlite(error)
        } else {
            OpenError::Missing(path.to_owned())
        }
    })?;
    distrust(&connection)?;
    Ok(connection)
}

/// Sleeps 0.2 ms, a little longer at each attempt, for about 150 ms in all; then the hook
/// spools its event. SQLite's own handler starts at 1 ms and goes up to 100 ms.
fn wait_briefly(attempt: i32) -> bool {
    if attempt >= 40 {
        return false;
    }
    let micros = 200 * u64::from(attempt.unsigned_abs() + 1);
    #[expect(
        clippy::disallowed_methods,
        reason = "a busy handler waits for a lock by sleeping"
    )]
    std::thread::sleep(Duration::from_micros(micros));
    true
}

/// Sleeps long enough for a waiting hook to take the write lock.
pub fn let_others_write() {
    #[expect(clippy::disallowed_methods, reason = "a hook polls for the lock")]
    std::thread::sleep(Duration::from_micros(300));
}

fn user_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("pragma user_version", [], |row| row.get(0))
}

/// Creates a database with our schema up to this number, in place of what an earlier try left there.
pub(crate) fn create(
    path: &Path,
    migrations: &[Migration],
    number: i64,
) -> Result<Connection, OpenError> {
    for suffix in ["", "-wal", "-shm"] {
        crate::text::if_there(std::fs::remove_file(beside(path, suffix)))?;
    }
    let known = migrations.iter().filter(|it| it.number <= number);
    let known: Vec<_> = known.copied().collect();
    connect_owner(path, &known, path.parent().unwrap_or(path))
}

/// Brings a database that `create` made up to date.
pub(crate) fn complete(connection: &Connection, migrations: &[Migration]) -> Result<(), OpenError> {
    let found = user_version(connection)?;
    let mut further = migrations.iter().filter(|it| it.number > found);
    further.try_for_each(|migration| step(connection, migration))
}

fn migrate(
    path: &Path,
    connection: &Connection,
    migrations: &[Migration],
    backups: &Path,
) -> Result<(), OpenError> {
    let known = migrations.last().map_or(0, |migration| migration.number);
    let found = user_version(connection)?;
    if found > known {
        return Err(OpenError::OtherSchema {
            path: path.to_owned(),
            found,
            known,
        });
    }
    if is_unreleased(connection, found)? {
        return Err(OpenError::Unreleased(path.to_owned()));
    }
    let tables = "select count(*) from sqlite_schema";
    if found <= 0 && connection.query_row(tables, [], |row| row.get::<_, u64>(0))? > 0 {
        return Err(damaged("its schema number is missing"));
    }
    for migration in migrations.iter().filter(|step| step.number > found) {
        let mut copy = None;
        if found > 0 {
            copy = Some(backup(path, connection, migration.number, backups)?);
            fault::point("migration:after-backup");
        }
        step(connection, migration).inspect_err(|error| {
            // A copy of a damaged database is not a backup.
            if let Some(copy) = copy.filter(|_| error.is_damage()) {
                let _ = std::fs::remove_file(copy);
            }
        })?;
    }
    Ok(())
}

fn step(connection: &Connection, migration: &Migration) -> Result<(), OpenError> {
    let tx = connection.unchecked_transaction()?;
    // Another process may have migrated while we waited for the lock.
    if user_version(&tx)? < migration.number {
        tx.execute_batch(migration.sql).map_err(misnumbered)?;
        tx.pragma_update(None, "user_version", migration.number)?;
        fault::point("migration:before-commit");
    }
    Ok(tx.commit()?)
}

/// Copies the database before migration `number`, completely or not at all; returns the path of
/// the copy.
fn backup(
    path: &Path,
    connection: &Connection,
    number: i64,
    backups: &Path,
) -> Result<PathBuf, OpenError> {
    std::fs::create_dir_all(backups)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let target = backups.join(format!("{stem}.before-{number}.db"));
    copy_to(connection, &target).map_err(|error| match error {
        OpenError::Sqlite(source) => OpenError::Backup {
            path: path.to_owned(),
            source,
        },
        other => other,
    })?;
    Ok(target)
}

/// Copies a database into a new file. The file appears only when the copy is complete, checked
/// and flushed to disk.
pub(crate) fn copy_to(connection: &Connection, target: &Path) -> Result<(), OpenError> {
    // A random name, since two processes may make the same copy at once; the last one wins.
    let partial = beside(target, &format!(".{}.partial", Uuid::new_v4()));
    let copied = connection.execute("vacuum into ?1", [partial.to_string_lossy()]);
    copied.inspect_err(|_| {
        for suffix in ["", "-journal"] {
            let _ = std::fs::remove_file(beside(&partial, suffix));
        }
    })?;
    if let Some(damage) = damage(&connect(&partial, OpenFlags::SQLITE_OPEN_READ_ONLY)?) {
        let path = target.to_owned();
        return Err(OpenError::Copy { path, damage });
    }
    std::fs::File::open(&partial)?.sync_all()?;
    fault::point("backup:before-rename");
    std::fs::rename(partial, target)?;
    fault::point("backup:after-rename");
    Ok(())
}

/// Moves a database's write-ahead log into the file, so that the file alone is complete.
pub(crate) fn empty_log(path: &Path) -> Result<(), OpenError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
    Ok(())
}

/// Replaces the content of a database with another's, in one transaction: other connections see
/// the old content or the new.
pub(crate) fn copy_over(from: &Connection, into: &mut Connection) -> Result<(), OpenError> {
    let copying = rusqlite::backup::Backup::new(from, into)?;
    copying.run_to_completion(i32::MAX, Duration::ZERO, None)?;
    Ok(())
}

/// Opens a damaged database to read the rows that are still readable.
pub(crate) fn open_wreck(path: &Path) -> Result<Connection, OpenError> {
    let mut wreck = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    wreck.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    wreck.busy_timeout(Duration::from_secs(2))?;
    // Without this, SQLite refuses a file that is shorter than its header states.
    wreck.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
    wreck.execute_batch("pragma writable_schema = on")?;
    foreign::read_rows_only(&mut wreck)?;
    Ok(wreck)
}

/// The path with a suffix appended: a database's log, or a copy of it.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Migration = Migration {
        number: 1,
        sql: "create table cards (title text not null) strict;
              insert into cards values ('one'), ('two');",
    };
    const SECOND: Migration = Migration {
        number: 2,
        sql: "alter table cards add column colour text not null default 'white';
              insert into cards values ('three', 'red');",
    };
    const BROKEN: Migration = Migration {
        number: 2,
        sql: "insert into cards values ('three');
              insert into nowhere values (1);",
    };

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Folder {
            Folder(tempfile::tempdir().unwrap())
        }

        fn database(&self) -> PathBuf {
            self.0.path().join("cards.db")
        }

        fn backups(&self) -> PathBuf {
            self.0.path().join("backups")
        }

        fn open(&self, migrations: &[Migration]) -> Result<Connection, OpenError> {
            open_owner(&self.database(), migrations, &self.backups())
        }

        fn backup_names(&self) -> Vec<String> {
            let Ok(entries) = std::fs::read_dir(self.backups()) else {
                return Vec::new();
            };
            let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
            let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
            names.sort();
            names
        }
    }

    /// Schema, rows and columns of a database.
    fn shape(connection: &Connection) -> (i64, i64, i64) {
        let count = |sql| connection.query_row(sql, [], |row| row.get(0)).unwrap();
        (
            user_version(connection).unwrap(),
            count("select count(*) from cards"),
            count("select count(*) from pragma_table_info('cards')"),
        )
    }

    #[test]
    fn a_new_database_needs_no_backup_and_an_old_one_has_one_before_each_step() {
        let folder = Folder::new();
        assert_eq!(shape(&folder.open(&[FIRST]).unwrap()), (1, 2, 1));
        assert_eq!(folder.backup_names(), [""; 0]);

        assert_eq!(shape(&folder.open(&[FIRST, SECOND]).unwrap()), (2, 3, 2));
        assert_eq!(folder.backup_names(), ["cards.before-2.db"]);
        let backup = folder.backups().join("cards.before-2.db");
        let backup = open_guest(&backup, Guest::Reads, 1).unwrap();
        assert_eq!(shape(&backup), (1, 2, 1));

        assert_eq!(shape(&folder.open(&[FIRST, SECOND]).unwrap()), (2, 3, 2));
    }

    #[test]
    fn a_step_that_fails_leaves_the_database_as_it_was() {
        let folder = Folder::new();
        folder.open(&[FIRST]).unwrap();
        assert!(matches!(
            folder.open(&[FIRST, BROKEN]),
            Err(OpenError::Sqlite(_))
        ));
        assert_eq!(shape(&folder.open(&[FIRST]).unwrap()), (1, 2, 1));
        assert_eq!(folder.backup_names(), ["cards.before-2.db"]);
    }

    #[test]
    fn a_database_of_a_newer_program_is_refused_and_left_alone() {
        let folder = Folder::new();
        folder.open(&[FIRST, SECOND]).unwrap();
        let refused = folder.open(&[FIRST]);
        assert!(matches!(
            refused,
            Err(OpenError::OtherSchema {
                found: 2,
                known: 1,
                ..
            })
        ));
        assert_eq!(shape(&folder.open(&[FIRST, SECOND]).unwrap()), (2, 3, 2));
    }

    #[test]
    fn a_kill_during_a_migration_leaves_the_old_schema_or_the_new_and_a_backup() {
        #[expect(
            clippy::disallowed_methods,
            reason = "how this test passes arguments to its child process"
        )]
        let argument = |name| std::env::var(name).ok();
        // This same test runs in a child process, which is killed.
        if let (Some(path), Some(point)) = (argument("MIGRATE"), argument("POINT")) {
            let path = PathBuf::from(path);
            fault::arm(&point);
            let _ = open_owner(&path, &[FIRST, SECOND], &path.with_file_name("backups"));
            return;
        }
        for point in ["migration:after-backup", "migration:before-commit"] {
            let folder = Folder::new();
            folder.open(&[FIRST]).unwrap();
            let killed = std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "db::tests::a_kill_during_a_migration_leaves_the_old_schema_or_the_new_and_a_backup",
                ])
                .env("MIGRATE", folder.database())
                .env("POINT", point)
                .output()
                .unwrap();
            let signal = std::os::unix::process::ExitStatusExt::signal(&killed.status);
            assert_eq!(signal, Some(9), "{point}: {killed:?}");
            assert_eq!(folder.backup_names(), ["cards.before-2.db"], "{point}");
            assert_eq!(shape(&folder.open(&[FIRST]).unwrap()), (1, 2, 1), "{point}");

            let mended = folder.open(&[FIRST, SECOND]).unwrap();
            assert_eq!(shape(&mended), (2, 3, 2), "{point}");
            let check: String = mended
                .query_row("pragma integrity_check", [], |row| row.get(0))
                .unwrap();
            assert_eq!(check, "ok");
        }
    }
}
