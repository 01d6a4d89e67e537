//! What `/recall` loads: a project's master, framed as data, with how old it is.
//!
//! The command and the MCP tool say the same. Above the frame stands what the reader should
//! know about it: its age, how many notes are newer, which scopes there are. Without a
//! master it says what there is instead.

use std::fmt::Write as _;
use std::path::Path;

use foreword_core::model::Millis;
use foreword_core::notes::{Folder, Note};
use foreword_core::redact::redact;
use foreword_core::text;

use crate::mcp::answer;

/// So many notes are named where there is no master.
const NAMED_MAX: usize = 10;

pub fn recall(root: &Path, scope: Option<&str>, now: Millis) -> anyhow::Result<String> {
    let folder = Folder::at(root, scope)?;
    let master = folder.read(&folder.master())?;
    // People write there, too, and may not know what they paste.
    let master = master.map(|it| redact(&it).text.into_owned());
    let mut out = match &master {
        Some(master) => age(master, now),
        None => without_master(&folder),
    };
    let newer = folder.newer().len() as u64;
    if master.is_some() && newer > 0 {
        let notes = text::count(newer, "note is", "notes are");
        let _ = writeln!(
            out,
            "{notes} newer than it; /synthesize merges what is new."
        );
    }
    let scopes = Folder::at(root, None)?.scopes();
    if !scopes.is_empty() {
        let _ = writeln!(out, "Scopes: {}.", scopes.join(", "));
    }
    Ok(out + &master.map(|it| answer::master(&it)).unwrap_or_default())
}

fn age(master: &str, now: Millis) -> String {
    let last = master.lines().rev().find_map(|line| {
        let date = line.trim().strip_prefix("*Last synthesized: ")?;
        date.strip_suffix('*')
    });
    let Some(last) = last else {
        return "This project's memory. It does not say when it was synthesised.\n".to_owned();
    };
    let day = |date: &str| date.parse::<jiff::civil::Date>().ok();
    let days = day(last).zip(day(&text::date(now)));
    let ago = days.and_then(|(then, today)| Some((today - then).get_days()).filter(|it| *it >= 0));
    let ago = match ago {
        Some(0) => " (today)".to_owned(),
        Some(days) => format!(
            " ({} ago)",
            text::count(days.unsigned_abs().into(), "day", "days")
        ),
        None => String::new(),
    };
    format!(
        "This project's memory, synthesised on {}{ago}.\n",
        text::one_line(last)
    )
}

fn without_master(folder: &Folder) -> String {
    let name = match &folder.scope {
        Some(scope) => format!("The scope {scope}"),
        None => "This project".to_owned(),
    };
    let (notes, _) = folder.notes();
    if notes.is_empty() {
        return format!(
            "{name} has no notes and no master.md yet. /summarize writes a note, /synthesize the master.\n"
        );
    }
    let count = text::count(notes.len() as u64, "note", "notes");
    let mut titles: Vec<_> = notes
        .iter()
        .map(|it| {
            let (note, _) = Note::read(&it.text);
            let title = text::without_tags(&text::one_line(&note.title));
            format!("{} {title}", note.last.unwrap_or_default())
        })
        .collect();
    titles.sort_by(|a, b| b.cmp(a));
    titles.truncate(NAMED_MAX);
    format!(
        "{name} has {count} and no master.md yet; /synthesize makes it. The newest:\n{}\n",
        titles.join("\n")
    )
}
