//! `/recall`: a project's master, framed as data.
//!
//! The command and the MCP tool print the same. Above the frame stand the master's age, how many
//! notes are newer, and which scopes there are. Without a master the newest notes are listed.
//!
//! A host can also load the master in every session: three lines at the top of its instructions
//! (`with_autoload`) import the file.

use std::path::Path;

use foreword_core::model::Millis;
use foreword_core::notes::master::Master;
use foreword_core::notes::{FOLDER, Folder, Note, NoteFile};
use foreword_core::redact::thorough;
use foreword_core::text;

use crate::service::frame;

/// The first of the three lines in the host's instructions.
const AUTOLOAD_BEGIN: &str = "<!-- foreword: loads the project's memory; `foreword recall --auto off` removes these three lines -->\n";
/// The last of the three lines in the host's instructions.
const AUTOLOAD_END: &str = "<!-- foreword: end -->\n";

/// The most notes that are listed if there is no master.
const NAMED_MAX: usize = 10;

pub fn recall(root: &Path, scope: Option<&str>, now: Millis) -> anyhow::Result<String> {
    let folder = Folder::at(root, scope)?;
    let master = folder.read(&folder.master())?;
    // People edit the master by hand, and may paste a secret.
    let master = master.map(|it| thorough(&it).text.into_owned());
    let mut out = match &master {
        Some(master) => age(master, now),
        None => without_master(&folder),
    };
    let newer = folder.newer().len() as u64;
    if master.is_some() && newer > 0 {
        let notes = text::count(newer, "note is", "notes are");
        out += &format!("{notes} newer than it; /synthesize merges what is new.\n");
    }
    let scopes = Folder::at(root, None)?.scopes();
    if !scopes.is_empty() {
        out += &format!("Scopes: {}.\n", scopes.join(", "));
    }
    Ok(out + &master.map(|it| frame::master(&it)).unwrap_or_default())
}

fn age(master: &str, now: Millis) -> String {
    let last = Master::read(master).date;
    if last.is_empty() {
        return "This project's memory. It does not say when it was synthesised.\n".to_owned();
    }
    let day = |date: &str| date.parse::<jiff::civil::Date>().ok();
    let days = day(&last).zip(day(&text::date(now)));
    let ago = match days.map(|(then, today)| (today - then).get_days()) {
        Some(0) => " (today)".to_owned(),
        Some(days @ 1..) => {
            let days = text::count(days.unsigned_abs().into(), "day", "days");
            format!(" ({days} ago)")
        }
        _ => String::new(),
    };
    let last = text::one_line(&last);
    format!("This project's memory, synthesised on {last}{ago}.\n")
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
    let title = |it: &NoteFile| {
        let (note, _) = Note::read(&it.text);
        let title = text::without_tags(&text::one_line(&note.title));
        format!("{} {title}", note.last.unwrap_or_default())
    };
    let mut titles: Vec<_> = notes.iter().map(title).collect();
    titles.sort_by(|a, b| b.cmp(a));
    titles.truncate(NAMED_MAX);
    let titles = titles.join("\n");
    format!(
        "{name} has {count} and no master.md yet; /synthesize makes it. The newest:\n{titles}\n"
    )
}

/// The path of a scope's master below the project's root.
pub fn master_name(scope: Option<&str>) -> String {
    match scope {
        Some(scope) => format!("{FOLDER}/{scope}/master.md"),
        None => format!("{FOLDER}/master.md"),
    }
}

/// The host's instructions with our three lines at their top.
pub fn with_autoload(instructions: &str, scope: Option<&str>) -> String {
    let master = master_name(scope);
    format!("{AUTOLOAD_BEGIN}@{master}\n{AUTOLOAD_END}{instructions}")
}

/// The host's instructions without our three lines. None if their end is missing.
pub fn without_autoload(instructions: &str) -> Option<String> {
    let Some(begin) = instructions.find(AUTOLOAD_BEGIN) else {
        return Some(instructions.to_owned());
    };
    let end = begin + instructions[begin..].find(AUTOLOAD_END)? + AUTOLOAD_END.len();
    Some(format!(
        "{}{}",
        &instructions[..begin],
        &instructions[end..]
    ))
}
