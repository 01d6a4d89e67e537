//! The table `vectors`: one row an item, with the vectors of all its chunks (`chunks`).
//!
//! The worker embeds the items that have no row. There is no other state: a trigger deletes the
//! row of an item whose text changes, rows of another model and damaged ones are deleted, and the
//! worker then embeds these items like new ones.

use rusqlite::named_params;

use super::chunks;
use super::vectors::{Vector, Vectors};
use crate::db::Rows as _;
use crate::store::{ItemBody, Store};

/// An item that has no vectors yet, and the texts to embed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    pub id: i64,
    pub chunks: Vec<String>,
}

/// The vectors of a model in memory, as of the last `load_vectors`.
#[derive(Debug, Default)]
pub struct LoadedVectors {
    pub vectors: Vectors,
    /// Whether a row could not be read; `drop_useless_vectors` deletes it, so that it is made again.
    pub damaged: bool,
    /// How many percent of the items have vectors.
    pub percent: u64,
    /// The newest item and the newest row of vectors at the last load.
    state: Option<(Option<i64>, Option<i64>)>,
}

/// The ids of all items that can have vectors.
const ALL: &str = "select id from observations
                   union all select id from summaries
                   union all select id from prompts where kept
                   union all select id from notes";

/// The value of the column `model`: it includes how items are split, since vectors of differently
/// split items are as useless as those of another model.
fn stored_as(model: &str) -> String {
    format!("{model}/{}", chunks::VERSION)
}

impl Store {
    /// The newest items without vectors of this model, with about `chunks_max` chunks in all.
    pub fn unembedded(&self, model: &str, chunks_max: usize) -> rusqlite::Result<Vec<Unembedded>> {
        let sql = format!(
            "select id
             from ({ALL})
             where id not in (select item_id from vectors where model = :model)
             order by id desc
             limit :limit"
        );
        let model = stored_as(model);
        let parameters = named_params! {":model": model, ":limit": chunks_max as i64};
        let mut unembedded: Vec<Unembedded> = Vec::new();
        let mut count = 0;
        for id in self.connection.all(&sql, parameters)? {
            if count >= chunks_max {
                break;
            }
            // None if it was forgotten since.
            if let Some(body) = self.body(id)? {
                let chunks = chunks::split(&body);
                count += chunks.len();
                unembedded.push(Unembedded { id, chunks });
            }
        }
        Ok(unembedded)
    }

    fn body(&self, id: i64) -> rusqlite::Result<Option<ItemBody>> {
        Ok(self.item(id)?.map(|item| item.body))
    }

    /// Stores the vectors of these items, in one transaction. An item whose text has changed since
    /// is skipped, and will be returned by `unembedded` again.
    pub fn put_vectors(
        &mut self,
        model: &str,
        made: &[(Unembedded, Vec<Vector>)],
    ) -> rusqlite::Result<()> {
        let model = stored_as(model);
        let tx = self.connection.unchecked_transaction()?;
        for (item, vectors) in made {
            let unchanged = self
                .body(item.id)?
                .is_some_and(|body| chunks::split(&body) == item.chunks);
            if !unchanged || vectors.len() != item.chunks.len() {
                continue;
            }
            let mut page = Vectors::default();
            for vector in vectors {
                page.push(item.id, vector);
            }
            tx.run(
                "insert or replace into vectors (item_id, model, chunks)
                 values (:id, :model, :chunks)",
                named_params! {":id": item.id, ":model": model, ":chunks": page.to_page()},
            )?;
        }
        tx.commit()
    }

    /// How many items have vectors of this model, and how many items there are.
    pub fn embedded(&self, model: &str) -> rusqlite::Result<(u64, u64)> {
        let embedded = self.connection.one(
            "select count(*) from vectors where model = :model",
            named_params! {":model": stored_as(model)},
        )?;
        Ok((embedded, self.embeddable()?))
    }

    /// How many items can have vectors.
    pub fn embeddable(&self) -> rusqlite::Result<u64> {
        let sql = format!("select count(*) from ({ALL})");
        self.connection.one(&sql, [])
    }

    /// Adds the vectors that were made since the last load. Vectors of forgotten items stay: a
    /// search does not find the items themselves.
    pub fn load_vectors(&self, model: &str, loaded: &mut LoadedVectors) -> rusqlite::Result<()> {
        let state = "select (select max(id) from items), (select max(made) from vectors)";
        let state = self.connection.one(state, [])?;
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

    /// Deletes the vectors of other models and damaged ones. Returns how many rows.
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
