//! Replies as models write them, and the blocks that are found in them.
//!
//! `corpus/` holds one reply per file, with the expected blocks beside it. `properties` generates
//! replies at random.

mod properties;

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::agent::repair::TAGS;

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
            settings.bind(|| insta::assert_snapshot!(name, shown(&read(&reply, TAGS))));
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} replies");
}

/// The non-empty fields of a reply, as text.
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
        line("  type", &it.short(&["type"]));
        line("  title", &it.short(&["title"]));
        line("  subtitle", &it.short(&["subtitle"]));
        let facts = it.list(&["facts"], "fact");
        facts.iter().for_each(|fact| line("  fact", fact));
        line("  narrative", &it.verbatim(&["narrative"]));
        let concepts = it.list(&["concepts"], "concept");
        line("  concepts", &concepts.join(" | "));
        line(
            "  files read",
            &it.list(&["files_read"], "file").join(" | "),
        );
        let modified = it.list(&["files_modified", "files_edited"], "file");
        line("  files modified", &modified.join(" | "));
        line("  files", &it.list(&["files"], "file").join(" | "));
        let events = numbers(&it.verbatim(&["events"]));
        events
            .iter()
            .for_each(|it| line("  event", &it.to_string()));
        line("  text", &it.verbatim(&["text"]));
    }
    if let Some(it) = &reply.summary {
        line("summary", "(begins)");
        line("  request", &it.short(&["request"]));
        line("  investigated", &it.short(&["investigated"]));
        line("  learned", &it.short(&["learned"]));
        line("  completed", &it.short(&["completed"]));
        line("  next steps", &it.short(&["next_steps"]));
        line(
            "  files read",
            &it.list(&["files_read"], "file").join(" | "),
        );
        let edited = it.list(&["files_edited", "files_modified"], "file");
        line("  files edited", &edited.join(" | "));
        line("  notes", &it.short(&["notes"]));
    }
    if let Some(why) = &reply.nothing {
        line("nothing", &format!("\"{why}\""));
    }
    if reply.open_end {
        line("open end", "yes");
    }
    if out.is_empty() {
        "(no block)".to_owned()
    } else {
        out
    }
}

/// This takes seconds in a debug build; if anything were quadratic it would take hours.
#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn a_megabyte_of_tags_is_read_in_linear_time() {
    let tags = [
        "<observation>",
        "<observation><title>",
        "<observation>\n<narrative>\n",
        "<title>",
        "<title>\n",
        "<title>x</title>y\n",
        "</narrative></observation>",
        "<facts><fact>",
        "<nothing>",
        "<title a=",
        "<type><title><subtitle><facts><narrative><concepts><files><events><text></observation>",
        "<",
        "&",
        "\n",
        " ",
    ];
    for tag in tags {
        let reply = " ".repeat(500_000) + &tag.repeat(500_000 / tag.len());
        assert_eq!(read(&reply, TAGS).observations, [], "{tag}");
        let quoted = format!("<observation>\n<narrative>{reply}</narrative>\n</observation>");
        assert!(read(&quoted, TAGS).observations.len() <= 1, "{tag}");
    }
    let facts = "<fact>".repeat(100_000);
    let nested = format!("<observation><facts>{facts}</facts></observation>");
    let read = &read(&nested, TAGS).observations[0];
    assert_eq!(read.list(&["facts"], "fact").len(), 1);
}

#[test]
fn numbers_of_events_are_read_however_they_are_written() {
    assert_eq!(numbers("1, 3"), [1, 3]);
    assert_eq!(numbers("<event>1</event><event>12</event>"), [1, 12]);
    assert_eq!(numbers("#2-4 and #9"), [2, 3, 4, 9]);
    assert_eq!(numbers("1-4000000000"), [1, 4_000_000_000]);
    assert_eq!(numbers("99999999999999 none"), [0; 0]);
}

#[test]
fn every_tag_of_the_prompts_is_known() {
    let prompts = [
        include_str!("../prompts/init.md"),
        include_str!("../prompts/summary.md"),
    ];
    for line in prompts.iter().flat_map(|prompt| prompt.lines()) {
        let tag = line.strip_prefix('<').and_then(|it| it.split_once('>'));
        let name = tag.map_or("observation", |(name, _)| name.trim_start_matches('/'));
        let known = format!("{TAGS} fact concept file");
        assert!(known.split(' ').any(|it| it == name), "{name}");
    }
}
