//! Replies as models write them, and what is read in them.
//!
//! `corpus/` holds one reply per file, and beside it what is understood of it.
//! `properties` makes up replies that no model has written yet.

mod properties;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

#[test]
fn each_reply_of_the_corpus_is_understood() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/agent/reply/corpus");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&corpus);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut count = 0;
    for entry in std::fs::read_dir(&corpus).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let reply = std::fs::read_to_string(&path).unwrap();
            settings.bind(|| insta::assert_snapshot!(name, shown(&read(&reply))));
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} replies");
}

/// Only what is there, as a person would read it.
fn shown(reply: &Reply) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let indented = value.replace('\n', "\n    ").replace('\r', "\\r");
            let break_after_name = if value.contains('\n') { "\n    " } else { " " };
            writeln!(out, "{name}:{break_after_name}{indented}").unwrap();
        }
    };
    for it in &reply.observations {
        line("observation", "(begins)");
        line("  type", &it.kind);
        line("  title", &it.title);
        line("  subtitle", &it.subtitle);
        it.facts.iter().for_each(|fact| line("  fact", fact));
        line("  narrative", &it.narrative);
        line("  concepts", &it.concepts.join(" | "));
        line("  files read", &it.files_read.join(" | "));
        line("  files modified", &it.files_modified.join(" | "));
        line("  files", &it.files.join(" | "));
        it.events
            .iter()
            .for_each(|it| line("  event", &it.to_string()));
        line("  text", &it.text);
    }
    if let Some(it) = &reply.summary {
        line("summary", "(begins)");
        line("  request", &it.request);
        line("  investigated", &it.investigated);
        line("  learned", &it.learned);
        line("  completed", &it.completed);
        line("  next steps", &it.next_steps);
        line("  files read", &it.files_read.join(" | "));
        line("  files edited", &it.files_edited.join(" | "));
        line("  notes", &it.notes);
    }
    if let Some(why) = &reply.nothing {
        line("nothing", &format!("\"{why}\""));
    }
    if reply.open_end {
        line("open end", "yes");
    }
    match out.is_empty() {
        true => "(no block)".to_owned(),
        false => out,
    }
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn a_megabyte_of_tags_is_read_in_no_time() {
    let tags = [
        "<observation>",
        "<observation><title>",
        "<title>",
        "</narrative></observation>",
        "<facts><fact>",
        "<nothing>",
        "<title a=",
        "<type><title><subtitle><facts><narrative><concepts><files><events><text></observation>",
        "<",
        "&",
    ];
    let start = Instant::now();
    for tag in tags {
        read(&tag.repeat(1_000_000 / tag.len()));
    }
    let nested = format!(
        "<observation><facts>{}</facts></observation>",
        "<fact>".repeat(100_000)
    );
    read(&nested);
    // Some seconds in a debug build on a slow machine; anything quadratic takes hours.
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn numbers_of_events_are_read_however_they_are_written() {
    assert_eq!(numbers("1, 3"), [1, 3]);
    assert_eq!(numbers("<event>1</event><event>12</event>"), [1, 12]);
    assert_eq!(numbers("#2-4 and #9"), [2, 3, 4, 9]);
    assert_eq!(numbers("1-4000000000"), [1, 4_000_000_000]);
    assert_eq!(numbers("99999999999999 none"), [0; 0]);
}
