//! What an observation does not say itself: how its files are now.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Item, ItemBody, Store};
use crate::model::Freshness;
use crate::project::Place;
use crate::recall::freshness;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Beside {
    /// As bad as the worst of its files; none if nobody can tell.
    pub stale: Option<Freshness>,
    /// The files that are not as they were.
    pub stale_files: BTreeMap<String, Freshness>,
}

impl Store {
    /// The thing with this number and what is beside it, seen from `here`.
    pub fn item_from(&self, id: i64, here: &Place) -> rusqlite::Result<Option<Item>> {
        let Some(mut item) = self.item(id)? else {
            return Ok(None);
        };
        if matches!(item.body, ItemBody::Observation { .. }) {
            let root = self.root_of(id, here)?;
            let files = self.touched(id)?;
            let states = files
                .into_iter()
                .filter_map(|file| Some((freshness::look(root.as_deref(), &file)?, file.path)));
            let states: Vec<_> = states.collect();
            item.beside = Some(Beside {
                stale: states.iter().map(|(state, _)| *state).max(),
                stale_files: states
                    .into_iter()
                    .filter(|(state, _)| *state != Freshness::Fresh)
                    .map(|(state, path)| (path, state))
                    .collect(),
            });
        }
        Ok(Some(item))
    }
}
