//! `/recall`: a project's master, framed as data.
//!
//! The command prints to an agent what the MCP tool answers. At the top stand the master's age, how
//! many notes are newer, and which scopes there are. Without a master the newest notes are listed.
//!
//! A host can also load the master in every session: three lines at the top of its instructions
//! (`with_autoload`) import the file.

use std::path::Path;

use foreword_core::model::Millis;
use foreword_core::notes::master::Master;
use foreword_core::notes::{FOLDER, Folder, Note, NoteFile};
use foreword_core::redact::thorough;
use foreword_core::text;

use crate::output::{self, Part, SafeText};

/// The first of the three lines in the host's instructions.
const AUTOLOAD_BEGIN: &str = "<!-- foreword: loads the project's memory; `foreword recall --auto off` removes these three lines -->\n";
/// The last of the three lines in the host's instructions.
const AUTOLOAD_END: &str = "<!-- foreword: end -->\n";

/// The most notes that are listed if there is no master.
const NAMED_MAX: usize = 10;

/// A project's master with what is known about it, or a list of its notes.
pub struct Recalled {
    parts: Vec<Part>,
}

impl Recalled {
    /// For an agent.
    pub fn framed(&self) -> SafeText {
        output::framed_master(&self.parts)
    }

    /// For a person.
    pub fn page(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }
}

pub fn recall(root: &Path, scope: Option<&str>, now: Millis) -> anyhow::Result<Recalled> {
    let folder = Folder::at(root, scope)?;
    let master = folder.read(&folder.master())?;
    // People edit the master by hand, and may paste a secret.
    let master = master.map(|it| thorough(&it).text.into_owned());
    let mut about = match &master {
        Some(master) => age(master, now),
        None => without_master(&folder),
    };
    let newer = folder.newer().len() as u64;
    if master.is_some() && newer > 0 {
        let notes = text::count(newer, "note is", "notes are");
        about += &format!("{notes} newer than it; /synthesize merges what is new.\n");
    }
    let scopes = Folder::at(root, None)?.scopes();
    if !scopes.is_empty() {
        let scopes: Vec<String> = scopes.iter().map(|it| text::one_line(it)).collect();
        about += &format!("Scopes: {}.\n", scopes.join(", "));
    }
    let mut parts = vec![Part {
        name: "what is known about it".to_owned(),
        text: about,
    }];
    parts.extend(master.iter().flat_map(|it| output::master(it)));
    Ok(Recalled { parts })
}

/// When the master was made, if it has a date: any other text in its place is not shown.
fn age(master: &str, now: Millis) -> String {
    let day = |date: &str| date.parse::<jiff::civil::Date>().ok();
    let Some(last) = day(Master::read(master).date.trim()) else {
        return "This project's memory. It does not say when it was synthesised.\n".to_owned();
    };
    let days = day(&text::date(now)).map(|today| (today - last).get_days());
    let ago = match days {
        Some(0) => " (today)".to_owned(),
        Some(days @ 1..) => {
            let days = text::count(days.unsigned_abs().into(), "day", "days");
            format!(" ({days} ago)")
        }
        _ => String::new(),
    };
    format!("This project's memory, synthesised on {last}{ago}.\n")
}

fn without_master(folder: &Folder) -> String {
    let name = match &folder.scope {
        Some(scope) => format!("The scope {}", text::one_line(scope)),
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
        let last = note.last.unwrap_or_default();
        text::one_line(&format!("{last} {}", text::shorten(&note.title, 120)))
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
