//! Which items have vectors: one row an item, with the vectors of all its chunks (`chunks`).
//!
//! The worker embeds the items that have none. That is the only state: an item whose text changes
//! loses its vectors by a trigger, vectors of another model and damaged ones are dropped, and all
//! of them are then made like those of a new item.

use rusqlite::{TransactionBehavior, named_params};

use super::chunks;
use super::vectors::{Vector, Vectors};
use crate::store::{ItemBody, Store};

/// An item that has no vectors yet, and the texts that they are to be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    pub id: i64,
    pub chunks: Vec<String>,
}

/// All vectors of a model, as far as they were made when they were last looked for.
#[derive(Debug, Default)]
pub struct Loaded {
    pub vectors: Vectors,
    /// A row could not be read: `drop_useless_vectors` has it made again.
    pub damaged: bool,
    /// How much of the memory they are of.
    pub percent: u64,
    /// The newest item, and the last vectors that were made, when they were looked for.
    state: Option<(Option<i64>, Option<i64>)>,
}

/// Everything that can be found.
const ALL: &str = "select id from observations
                   union all select id from summaries
                   union all select id from prompts
                   union all select id from notes";

/// The model's name in the table. It has the version of `chunks` in it: vectors of items that were
/// cut otherwise are as useless as another model's.
fn stored_as(model: &str) -> String {
    format!("{model}/{}", chunks::VERSION)
}

impl Store {
    /// The newest items without vectors of this model, as many as have about this many chunks together.
    pub fn unembedded(&self, model: &str, chunks_max: usize) -> rusqlite::Result<Vec<Unembedded>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "select id
             from ({ALL})
             where id not in (select item_id from vectors where model = :model)
             order by id desc
             limit :limit"
        ))?;
        let model = stored_as(model);
        let ids = statement.query_map(
            named_params! {":model": model, ":limit": chunks_max as i64},
            |row| row.get(0),
        )?;
        let mut unembedded: Vec<Unembedded> = Vec::new();
        let mut count = 0;
        for id in ids.collect::<rusqlite::Result<Vec<i64>>>()? {
            if count >= chunks_max {
                break;
            }
            // None if it was forgotten just now.
            if let Some(body) = self.body(id)? {
                let chunks = chunks::chunks(&body);
                count += chunks.len();
                unembedded.push(Unembedded { id, chunks });
            }
        }
        Ok(unembedded)
    }

    fn body(&self, id: i64) -> rusqlite::Result<Option<ItemBody>> {
        Ok(self.item(id)?.map(|item| item.body))
    }

    /// Keeps the vectors of these items, in one transaction. One whose text has changed since gets
    /// none, and comes up again.
    pub fn put_vectors(
        &mut self,
        model: &str,
        made: &[(Unembedded, Vec<Vector>)],
    ) -> rusqlite::Result<()> {
        let model = stored_as(model);
        let tx =
            rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        for (item, vectors) in made {
            let unchanged = self
                .body(item.id)?
                .is_some_and(|it| chunks::chunks(&it) == item.chunks);
            if !unchanged || vectors.len() != item.chunks.len() {
                continue;
            }
            let mut page = Vectors::default();
            for vector in vectors {
                page.push(item.id, vector);
            }
            tx.prepare_cached(
                "insert or replace into vectors (item_id, model, chunks)
                 values (:id, :model, :chunks)",
            )?
            .execute(named_params! {
                ":id": item.id,
                ":model": model,
                ":chunks": page.to_page(),
            })?;
        }
        tx.commit()
    }

    /// How many items have vectors of this model, and how many there are.
    pub fn embedded(&self, model: &str) -> rusqlite::Result<(u64, u64)> {
        let embedded = self.connection.query_row(
            "select count(*) from vectors where model = :model",
            named_params! {":model": stored_as(model)},
            |row| row.get(0),
        )?;
        Ok((embedded, self.embeddable()?))
    }

    /// How many items there are that can have vectors.
    pub fn embeddable(&self) -> rusqlite::Result<u64> {
        let sql = format!("select count(*) from ({ALL})");
        self.connection
            .prepare_cached(&sql)?
            .query_row([], |row| row.get(0))
    }

    /// Adds what was made since. What was forgotten since stays: it is not among what can be found.
    pub fn load_vectors(&self, model: &str, loaded: &mut Loaded) -> rusqlite::Result<()> {
        let state = "select (select max(id) from items), (select max(made) from vectors)";
        let state = self
            .connection
            .query_row(state, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if loaded.state == Some(state) {
            return Ok(());
        }
        let (embedded, items) = self.embedded(model)?;
        loaded.percent = (embedded * 100).checked_div(items).unwrap_or(100);
        if loaded.vectors.is_empty() {
            loaded.vectors.reserve(embedded as usize);
        }
        let mut statement = self.connection.prepare_cached(
            "select item_id, chunks
             from vectors
             where made > coalesce(:last, 0) and +model = :model",
        )?;
        let last = loaded.state.and_then(|it| it.1);
        let query = named_params! {":last": last, ":model": stored_as(model)};
        let mut rows = statement.query(query)?;
        while let Some(row) = rows.next()? {
            loaded.vectors.remove(row.get(0)?);
            let page = row.get_ref(1)?.as_blob()?;
            loaded.damaged |= loaded.vectors.add_page(page).is_err();
        }
        loaded.state = Some(state);
        Ok(())
    }

    /// Drops what is of no use: of another model, or damaged. Says how many.
    pub fn drop_useless_vectors(&self, model: &str) -> rusqlite::Result<usize> {
        let model = stored_as(model);
        let others = "delete from vectors where model <> :model";
        let mut dropped = self
            .connection
            .execute(others, named_params! {":model": model})?;
        let mut statement = self
            .connection
            .prepare_cached("select item_id, chunks from vectors")?;
        let mut rows = statement.query([])?;
        let mut damaged: Vec<i64> = Vec::new();
        while let Some(row) = rows.next()? {
            let mut page = Vectors::default();
            if page.add_page(row.get_ref(1)?.as_blob()?).is_err() {
                damaged.push(row.get(0)?);
            }
        }
        for id in damaged {
            let delete = "delete from vectors where item_id = :id";
            dropped += self.connection.execute(delete, named_params! {":id": id})?;
        }
        Ok(dropped)
    }
}
