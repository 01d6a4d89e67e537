//! Reads rows into values: a struct by the names of its fields, a tuple column by column, and any
//! other type from the first column. A list or a struct inside of these is a column of JSON.

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Params, Row};
use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Queries whose statements stay prepared while the connection is open.
pub(crate) trait Rows {
    fn all<T: DeserializeOwned>(&self, sql: &str, with: impl Params) -> rusqlite::Result<Vec<T>>;

    /// The row of a query that always has one.
    fn one<T: DeserializeOwned>(&self, sql: &str, with: impl Params) -> rusqlite::Result<T>;

    /// The first row; none if there is none.
    fn first<T: DeserializeOwned>(
        &self,
        sql: &str,
        with: impl Params,
    ) -> rusqlite::Result<Option<T>> {
        self.one(sql, with).optional()
    }

    /// Runs a statement that returns no rows. Returns how many rows it changed.
    fn run(&self, sql: &str, with: impl Params) -> rusqlite::Result<usize>;
}

impl Rows for Connection {
    fn all<T: DeserializeOwned>(&self, sql: &str, with: impl Params) -> rusqlite::Result<Vec<T>> {
        self.prepare_cached(sql)?.query_map(with, read)?.collect()
    }

    fn one<T: DeserializeOwned>(&self, sql: &str, with: impl Params) -> rusqlite::Result<T> {
        self.prepare_cached(sql)?.query_row(with, read)
    }

    fn run(&self, sql: &str, with: impl Params) -> rusqlite::Result<usize> {
        self.prepare_cached(sql)?.execute(with)
    }
}

/// Reads one row.
pub(crate) fn read<T: DeserializeOwned>(row: &Row<'_>) -> rusqlite::Result<T> {
    let columns = (0..row.as_ref().column_count()).map(|at| {
        let value = Content::Column(row.get_ref(at)?);
        Ok((row.as_ref().column_name(at)?, value))
    });
    let content = Content::Row(columns.collect::<rusqlite::Result<_>>()?);
    let failed =
        |error: Error| rusqlite::Error::FromSqlConversionFailure(0, Type::Null, Box::new(error));
    T::deserialize(content).map_err(failed)
}

#[derive(Clone)]
enum Content<'de> {
    Row(Vec<(&'de str, Content<'de>)>),
    Column(ValueRef<'de>),
}

impl<'de> Content<'de> {
    fn column(&self) -> ValueRef<'de> {
        match self {
            Content::Row(columns) => columns.first().map_or(ValueRef::Null, |it| it.1.column()),
            Content::Column(value) => *value,
        }
    }

    fn text(&self) -> Result<&'de str, Error> {
        self.column().as_str().map_err(Error::custom)
    }

    fn json<V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Error> {
        let mut json = serde_json::Deserializer::from_str(self.text()?);
        json.deserialize_any(visitor).map_err(Error::custom)
    }
}

impl<'de> IntoDeserializer<'de, Error> for Content<'de> {
    type Deserializer = Content<'de>;

    fn into_deserializer(self) -> Content<'de> {
        self
    }
}

impl<'de> Deserializer<'de> for Content<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.column() {
            ValueRef::Null => visitor.visit_unit(),
            ValueRef::Integer(number) => visitor.visit_i64(number),
            ValueRef::Real(number) => visitor.visit_f64(number),
            ValueRef::Text(_) => visitor.visit_borrowed_str(self.text()?),
            ValueRef::Blob(bytes) => visitor.visit_borrowed_bytes(bytes),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let number = self.column().as_i64().map_err(Error::custom)?;
        visitor.visit_bool(number != 0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.column() {
            ValueRef::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = self.text()?.into_deserializer();
        Deserializer::deserialize_enum(text, name, variants, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Content::Row(columns) => visitor.visit_map(MapDeserializer::new(columns.into_iter())),
            Content::Column(_) => self.json(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        match self {
            Content::Row(columns) => {
                let values = columns.into_iter().map(|it| it.1);
                visitor.visit_seq(SeqDeserializer::new(values))
            }
            Content::Column(_) => self.json(visitor),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.json(visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FileRole, TouchedFile};

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Card {
        role: FileRole,
        parent: Option<u64>,
        is_open: bool,
        tags: Vec<String>,
        share: f64,
    }

    #[test]
    fn a_row_becomes_a_struct_a_tuple_or_a_value() {
        #[expect(clippy::disallowed_methods, reason = "a database without a file")]
        let connection = Connection::open_in_memory().unwrap();
        let sql =
            r#"select '["a"]' as tags, 'read' as role, null as parent, 1 as is_open, 2 as share"#;
        let card = Card {
            role: FileRole::Read,
            parent: None,
            is_open: true,
            tags: vec!["a".to_owned()],
            share: 2.0,
        };
        assert_eq!(connection.all::<Card>(sql, []).unwrap(), [card]);
        let pair: (Vec<String>, FileRole) = connection.one("select '[]', 'modified'", []).unwrap();
        assert_eq!(pair, (vec![], FileRole::Modified));
        let number = |sql| connection.first::<Option<i64>>(sql, []).unwrap();
        assert_eq!(number("select 7"), Some(Some(7)));
        assert_eq!(number("select null"), Some(None));
        assert_eq!(number("select 7 where false"), None);
        let file = connection.one::<(Option<TouchedFile>,)>("select null", []);
        assert_eq!(file.unwrap(), (None,));
        assert!(connection.one::<FileRole>("select 'other'", []).is_err());
    }
}
