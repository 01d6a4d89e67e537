//! How it is said that something no longer fits its files, and what is related to it.

use foreword_core::model::Freshness;
use foreword_core::search::Related;
use foreword_core::store::Item;
use foreword_core::text;

/// Said after a title; nothing where all is as it was, or nobody knows.
pub fn mark(freshness: Option<Freshness>) -> &'static str {
    match freshness {
        Some(Freshness::Changed) => " (files changed since)",
        Some(Freshness::Gone) => " (files gone since)",
        Some(Freshness::Fresh) | None => "",
    }
}

/// Files by name, each with what became of it.
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

/// Each with why: `#12 bugfix: Expiry is compared in UTC (same file src/token.rs)`
pub fn related(related: &[Related]) -> String {
    let mut page = super::Page::default();
    for (number, it) in related.iter().enumerate() {
        let title = text::one_line(&it.title);
        let title = text::shorten(&title, 80);
        let line = format!("#{} {}: {title} ({})", it.id, it.kind, it.why);
        page.field(if number == 0 { "related" } else { "" }, &line);
    }
    page.out
}
