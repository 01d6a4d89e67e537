//! Databases that somebody else may have written: a backup that a user names, or a file whose schema
//! was changed.
//!
//! A schema is a program: triggers, views, generated columns and checks run when the database is
//! used. So of a foreign database only rows are read, from tables that are ordinary, and never
//! through anything else that its schema defines (`open_source`). `difference` compares a schema with
//! the one that our migrations make.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, named_params};

use crate::text;

use super::{Migration, OpenError, connect_inspector, damaged, register_parts, step, user_version};

/// A foreign database, open for reading rows.
pub(crate) struct Source {
    pub connection: Connection,
    /// The number of one of our migrations.
    pub schema: i64,
}

/// Opens a database of which only rows are taken. It must have the schema number of one of these
/// migrations.
pub(crate) fn open_source(path: &Path, migrations: &[Migration]) -> Result<Source, OpenError> {
    // Opening a pipe would block.
    if !std::fs::metadata(path)?.is_file() {
        return Err(damaged("it is not a file"));
    }
    let mut connection = connect_inspector(path)?;
    read_rows_only(&mut connection)?;
    let schema = user_version(&connection)?;
    if !migrations.iter().any(|it| it.number == schema) {
        let known = migrations.last().map_or(0, |it| it.number);
        return Err(OpenError::OtherSchema {
            path: path.to_owned(),
            found: schema,
            known,
        });
    }
    Ok(Source { connection, schema })
}

/// From now on this connection reads tables and does nothing else: no view, function or recursive
/// query of a foreign schema runs.
pub(crate) fn read_rows_only(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.execute_batch(
        "pragma cell_size_check = on;
         pragma ignore_check_constraints = on;",
    )?;
    connection.authorizer(Some(only_reading))
}

fn only_reading(context: AuthContext<'_>) -> Authorization {
    let is_direct = context.accessor.is_none();
    let allowed = match context.action {
        AuthAction::Select | AuthAction::Transaction { .. } => true,
        AuthAction::Read { .. } => is_direct,
        AuthAction::Pragma { pragma_name, .. } => {
            ["user_version", "table_xinfo", "quick_check"].contains(&pragma_name)
        }
        _ => false,
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

/// The columns of a table; none if there is no such table, or if it is anything but a table that
/// holds its rows: a view, a virtual table, or one with computed columns.
pub(crate) fn ordinary_columns(source: &Connection, table: &str) -> Option<BTreeSet<String>> {
    let sql = source.query_row(
        "select sql from sqlite_schema where type = 'table' and name = :table",
        named_params! {":table": table},
        |row| row.get::<_, String>(0),
    );
    let is_table = |sql: &str| {
        let start = sql.get(..13).unwrap_or_default();
        start.eq_ignore_ascii_case("create table ")
    };
    sql.ok().filter(|sql| is_table(sql))?;
    let mut statement = source
        .prepare("select name, hidden from pragma_table_xinfo(:table)")
        .ok()?;
    let rows = statement.query_map(named_params! {":table": table}, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    });
    let columns: Vec<_> = rows.ok()?.collect::<Result<_, _>>().ok()?;
    let is_ordinary = !columns.is_empty() && columns.iter().all(|(_, hidden)| *hidden == 0);
    is_ordinary.then(|| columns.into_iter().map(|(name, _)| name).collect())
}

/// Whether the rows of a table can be read to the end.
pub(crate) fn is_sound(source: &Connection, table: &str) -> bool {
    let check = format!("pragma quick_check('{}')", table.replace('\'', "''"));
    source.query_row(&check, [], |row| row.get::<_, String>(0)) == Ok("ok".to_owned())
}

/// An empty database in memory, with our schema up to this number.
pub(crate) fn schema(migrations: &[Migration], number: i64) -> Result<Connection, OpenError> {
    #[expect(clippy::disallowed_methods, reason = "it holds no rows")]
    let ours = Connection::open_in_memory()?;
    register_parts(&ours)?;
    for migration in migrations.iter().filter(|it| it.number <= number) {
        step(&ours, migration)?;
    }
    Ok(ours)
}

/// A part of a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    kind: String,
    name: String,
    /// The statement without white space and quotes, which versions of SQLite may write differently.
    sql: String,
}

impl Part {
    fn words(&self) -> String {
        text::shorten(&text::one_line(&format!("{} {}", self.kind, self.name)), 80).into_owned()
    }
}

/// How a schema differs from the one that our migrations up to this number make.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Parts that are not ours, such as `trigger evil`. A changed part is among them.
    pub foreign: Vec<String>,
    /// Our parts that are not there.
    pub missing: Vec<String>,
}

impl Difference {
    /// One line about it; none if there is no difference.
    pub fn line(&self) -> Option<String> {
        let list = |parts: &[String]| match parts {
            [few @ .., last] if few.len() < 5 => {
                let few: String = few.iter().map(|it| format!("{it}, ")).collect();
                few + last
            }
            parts => format!("{} and {} more", parts[..4].join(", "), parts.len() - 4),
        };
        match (&self.foreign[..], &self.missing[..]) {
            ([], []) => None,
            ([], missing) => Some(format!("its schema lacks {}", list(missing))),
            (foreign, _) => Some(format!(
                "its schema has what is not Foreword's: {}",
                list(foreign)
            )),
        }
    }
}

/// Compares the schema of a database with our own.
pub(crate) fn difference(
    connection: &Connection,
    migrations: &[Migration],
    number: i64,
) -> Result<Difference, OpenError> {
    let (ours, theirs) = (parts(&schema(migrations, number)?)?, parts(connection)?);
    let words = |parts: BTreeSet<Part>| parts.iter().map(Part::words).collect();
    let foreign: BTreeSet<Part> = theirs.difference(&ours).cloned().collect();
    let changed = |part: &Part| foreign.iter().any(|it| it.words() == part.words());
    let missing = ours.difference(&theirs).filter(|it| !changed(it)).cloned();
    Ok(Difference {
        missing: words(missing.collect()),
        foreign: words(foreign),
    })
}

fn parts(connection: &Connection) -> rusqlite::Result<BTreeSet<Part>> {
    let mut statement = connection.prepare("select type, name, sql from sqlite_schema")?;
    let rows = statement.query_map([], |row| {
        let sql: Option<String> = row.get(2)?;
        let mut sql = sql.unwrap_or_default();
        sql.retain(|it| !it.is_whitespace() && it != '"');
        Ok(Part {
            kind: row.get(0)?,
            name: row.get(1)?,
            sql,
        })
    })?;
    rows.collect()
}
