//! Formats the state of an item's files (changed or gone since), and related items.

use foreword_core::model::Freshness;
use foreword_core::search::Related;
use foreword_core::store::Item;
use foreword_core::text;

/// The remark after a title; empty if the files are unchanged or unknown.
pub fn mark(freshness: Option<Freshness>) -> &'static str {
    match freshness {
        Some(Freshness::Changed) => " (files changed since)",
        Some(Freshness::Gone) => " (files gone since)",
        Some(Freshness::Fresh) | None => "",
    }
}

/// The names of files, each with its state if it changed.
pub fn files(files: &[String], item: &Item) -> String {
    let stale = item.freshness.as_ref().map(|it| &it.stale_files);
    let files = files
        .iter()
        .map(|file| match stale.and_then(|it| it.get(file)) {
            Some(state) => format!("{file} ({state} since)"),
            None => file.clone(),
        });
    files.collect::<Vec<_>>().join(", ")
}

/// Related items, each with the reason: `#12 bugfix: Expiry is compared in UTC (same file src/token.rs)`
pub fn related(related: &[Related]) -> String {
    let mut page = super::TextPage::default();
    for (number, it) in related.iter().enumerate() {
        let title = text::one_line(&it.title);
        let title = text::shorten(&title, 80);
        let line = format!("#{} {}: {title} ({})", it.id, it.r#type, it.why);
        page.field(if number == 0 { "related" } else { "" }, &line);
    }
    page.out
}
