//! Everything that bears on how an item is treated: by the index, a search, reminders.

use foreword_core::model::Freshness;
use foreword_core::recall::index::Weighed;
use foreword_core::search::Found;
use foreword_core::store::ShownItem;

/// Everything that bears on how an item is treated.
pub struct Why<'a> {
    pub id: i64,
    pub title: String,
    /// None if the index here does not weigh it.
    pub weighed: Option<Weighed>,
    pub files: Vec<(Option<Freshness>, String)>,
    pub ranked: Option<(&'a str, Found)>,
    pub receipts: Vec<ShownItem>,
}
