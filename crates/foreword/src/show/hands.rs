//! Formats what a person does to items by hand: what would change, what did, and what was before.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use foreword_core::export::{Export, ExportedItem, Imported};
use foreword_core::model::{Action, Kind};
use foreword_core::store::{Change, Editable, Item, ItemBody, Store};
use foreword_core::text::{self, count, one_line};
use serde_json::{Value, json};

use crate::service::Reader;
use crate::service::hands::RememberedText;

/// What a command does to items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Edit,
    Pin,
    Unpin,
    Hide,
    Unhide,
    Supersede,
    Unrelate,
    Forget,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Verb::Edit => "edit",
            Verb::Pin => "pin",
            Verb::Unpin => "unpin",
            Verb::Hide => "hide",
            Verb::Unhide => "show again",
            Verb::Supersede | Verb::Unrelate => "relate",
            Verb::Forget => "forget",
        }
    }

    /// What was done, before the numbers; and what that means, behind them.
    fn done(self) -> (&'static str, &'static str) {
        match self {
            Verb::Edit => (
                "Edited",
                "The words are yours now, and no model changes them; ",
            ),
            Verb::Pin => ("Pinned", "Every session in this project starts with it; "),
            Verb::Unpin => ("No longer pinned", ""),
            Verb::Hide => (
                "Hidden",
                "No session is shown it unasked, and search finds it; ",
            ),
            Verb::Unhide => ("Shown again", ""),
            Verb::Supersede => ("The first supersedes the second", ""),
            Verb::Unrelate => ("Neither supersedes the other", ""),
            Verb::Forget => ("Forgotten for good", ""),
        }
    }
}

/// A command on some items: before and after it was done.
pub struct HandsReport {
    verb: Verb,
    items: Vec<Item>,
    /// The numbers that changed; none before it was done.
    changed: Option<Vec<i64>>,
    /// Other items of the same turns, which may say the same.
    same_turn: Vec<String>,
    /// How many secrets and private parts were taken out.
    pub redacted: u32,
    /// How many events are not processed yet.
    pub waiting: u64,
}

/// The most items that are listed.
const LISTED_MAX: usize = 20;

impl HandsReport {
    /// A command on these items; an error if one does not exist.
    pub fn of(
        verb: Verb,
        reader: &Reader,
        store: &Store,
        ids: &[i64],
    ) -> anyhow::Result<HandsReport> {
        let items = ids.iter().map(|id| reader.item(store, *id));
        Ok(HandsReport {
            verb,
            items: items.collect::<anyhow::Result<_>>()?,
            changed: None,
            same_turn: Vec::new(),
            redacted: 0,
            waiting: 0,
        })
    }

    /// Replaces the items by all that are forgotten with them, and names the others of their turns.
    pub fn extend(&mut self, reader: &Reader, store: &Store, ids: &[i64]) -> anyhow::Result<()> {
        let notes = self.items.iter().filter(|it| it.body.kind() == Kind::Note);
        if let Some(note) = notes.into_iter().next()
            && let ItemBody::Note(body) = &note.body
        {
            anyhow::bail!(
                "#{} is a note, which is a file of the project; delete {}",
                note.id,
                body.path
            );
        }
        let items = ids.iter().map(|id| reader.item(store, *id));
        self.items = items.collect::<anyhow::Result<_>>()?;
        for item in self.items.iter().take(LISTED_MAX) {
            for other in foreword_core::search::same_turn(store, item.id)? {
                let line = format!("#{} {}", other.id, super::kind(&other));
                if !ids.contains(&other.id) && !self.same_turn.contains(&line) {
                    self.same_turn.push(line);
                }
            }
        }
        Ok(())
    }

    pub fn done(&mut self, changed: Vec<i64>) {
        self.changed = Some(changed);
    }

    /// `Forget 12 items for good?`
    pub fn question(&self) -> String {
        let items = count(self.items.len() as u64, "item", "items");
        let verb = text::capitalised(self.verb.name());
        match self.verb {
            Verb::Forget => format!("{verb} {items} for good?"),
            _ => format!("{verb} {items}?"),
        }
    }

    /// The items by number, type, title and project.
    pub fn list(&self) -> String {
        let mut out = String::new();
        for item in self.items.iter().take(LISTED_MAX) {
            let project = one_line(item.project.as_deref().unwrap_or("no project"));
            let title = text::shorten(&super::item_title(item), 100).into_owned();
            let _ = writeln!(out, "{title} [{project}]");
        }
        let more = self.items.len().saturating_sub(LISTED_MAX);
        if more > 0 {
            let _ = writeln!(out, "… and {more} more");
        }
        out
    }

    pub fn text(&self) -> String {
        let mut out = match &self.changed {
            None => {
                let items = count(self.items.len() as u64, "item", "items");
                format!("{}Would {} {items}.\n", self.list(), self.verb.name())
            }
            Some(changed) if changed.is_empty() => {
                "Nothing changed: it was so already.\n".to_owned()
            }
            Some(changed) => {
                let numbers = changed.iter().take(LISTED_MAX).map(|id| format!("#{id}"));
                let mut numbers = numbers.collect::<Vec<_>>().join(", ");
                if changed.len() > LISTED_MAX {
                    let _ = write!(numbers, " and {} more", changed.len() - LISTED_MAX);
                }
                let (done, meaning) = self.verb.done();
                let undo = match self.verb {
                    Verb::Forget => String::new(),
                    _ => format!(" {meaning}`foreword undo` takes it back."),
                };
                format!("{done}: {numbers}.{undo}\n")
            }
        };
        if self.redacted > 0 {
            let parts = count(
                u64::from(self.redacted),
                "secret or private part was",
                "secret or private parts were",
            );
            let _ = writeln!(out, "{parts} left out.");
        }
        if !self.same_turn.is_empty() {
            let others = self.same_turn.join(", ");
            let _ = writeln!(
                out,
                "Of the same turn, and perhaps with the same words: {others}."
            );
        }
        if self.waiting > 0 {
            let events = count(self.waiting, "event waits", "events wait");
            let _ = writeln!(
                out,
                "{events} to be processed; what comes of that is new (`foreword worker drain`)."
            );
        }
        out
    }

    pub fn json(&self, dry_run: bool) -> Value {
        let items: Vec<Value> = self.items.iter().map(brief).collect();
        json!({
            "action": self.verb.name(),
            "dry_run": dry_run,
            "count": self.items.len(),
            "changed": self.changed.clone().unwrap_or_default(),
            "items": items,
            "redacted": self.redacted,
        })
    }
}

fn brief(item: &Item) -> Value {
    let full = json!(item);
    json!({
        "id": item.id,
        "kind": item.body.kind(),
        "type": full["type"],
        "title": title_of(item),
        "project": item.project,
    })
}

fn title_of(item: &Item) -> String {
    match &item.body {
        ItemBody::Observation(it) => it.title.clone(),
        ItemBody::Summary(it) => text::title(&it.request),
        ItemBody::Prompt(it) => text::title(&it.text),
        ItemBody::Note(it) => it.title.clone(),
    }
}

pub fn remembered(done: &RememberedText, dry_run: bool) -> String {
    let mut out = match (dry_run, done.is_new) {
        (true, _) => "Would be remembered; nothing was stored: this was a dry run".to_owned(),
        (false, true) => format!("Remembered as #{}", done.id),
        (false, false) => format!("Already remembered as #{}", done.id),
    };
    if done.redacted > 0 {
        let parts = count(
            u64::from(done.redacted),
            "secret or private part",
            "secret or private parts",
        );
        let _ = write!(out, ", without {parts}");
    }
    out + ".\n"
}

/// The lines of changes: `#12 pin: The limit is seven`.
pub fn changes(store: &Store, changes: &[Change]) -> rusqlite::Result<Vec<String>> {
    let line = |change: &Change| {
        let item = store.item(change.item_id)?;
        let title = item.as_ref().map(title_of).unwrap_or_default();
        let title = text::shorten(&one_line(&title), 90).into_owned();
        Ok(format!("#{} {}: {title}", change.item_id, change.action))
    };
    changes.iter().map(line).collect()
}

pub fn undone(titles: &[String], dry_run: bool) -> String {
    if titles.is_empty() {
        return "There is nothing to undo. What was forgotten stays forgotten.\n".to_owned();
    }
    let head = if dry_run {
        "Would be taken back"
    } else {
        "Taken back"
    };
    let mut out = format!("{head}:\n");
    for line in titles.iter().take(LISTED_MAX) {
        let _ = writeln!(out, "{line}");
    }
    let more = titles.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        let _ = writeln!(out, "… and {more} more");
    }
    out
}

/// The journal of an item, the latest change first, each with what it changed.
pub fn history(now: Option<&Editable>, changes: &[Change]) -> String {
    let mut page = super::TextPage::default();
    page.gap();
    if changes.is_empty() {
        page.field(
            "history",
            "nobody changed it by hand in the time that the journal is kept",
        );
    }
    let mut after = now.cloned();
    for change in changes {
        let by = match change.who.as_str() {
            "shell" => "in the shell",
            "agent" => "by the coding agent",
            _ => "in the viewer",
        };
        let head = format!("{} {}, {by}", text::rfc3339(change.at), change.action);
        page.field("history", &head);
        match (&change.before, &after) {
            (Some(before), Some(after)) => {
                for line in differences(before, after) {
                    page.field("", &line);
                }
            }
            _ if change.action == Action::Remember => page.field("", "it did not exist before"),
            _ => {}
        }
        after.clone_from(&change.before);
    }
    page.out
}

/// The fields that differ: `title was: The limit is six`.
fn differences(before: &Editable, after: &Editable) -> Vec<String> {
    let [before, after] = [before, after].map(|it| json!(it));
    let fields = before.as_object().into_iter().flatten();
    let changed = fields.filter(|(name, value)| after.get(name) != Some(value));
    let shown = changed.map(|(name, value)| {
        let value = match value {
            Value::Null => "nothing".to_owned(),
            Value::String(text) if text.is_empty() => "empty".to_owned(),
            Value::String(text) => text.clone(),
            Value::Number(at) if name.ends_with("_at") || name == "until" => {
                text::rfc3339(at.as_i64().unwrap_or_default())
            }
            other => other.to_string(),
        };
        format!("{} was: {value}", name.replace('_', " "))
    });
    shown.collect()
}

pub fn imported(imported: &Imported, dry_run: bool) -> String {
    let would = if dry_run {
        "Would be read in"
    } else {
        "Read in"
    };
    let mut out = format!(
        "{would}: {} new, {} known already",
        count(imported.new as u64, "item", "items"),
        imported.known
    );
    if imported.forgotten > 0 {
        let _ = write!(
            out,
            ", {} forgotten before and left out",
            imported.forgotten
        );
    }
    let broken = imported.skipped - imported.forgotten;
    if broken > 0 {
        let _ = write!(out, ", {broken} left out because they are not complete");
    }
    out.push_str(".\n");
    if imported.lowered > 0 {
        let items = count(imported.lowered as u64, "item is", "items are");
        let _ = writeln!(
            out,
            "{items} marked as imported, and no rule of yours: another data directory wrote this file. \
             If it is your own, `foreword undo` and read it in with --mine."
        );
    }
    if imported.new > 0 && !dry_run {
        out.push_str("`foreword undo` takes it back.\n");
    }
    out
}

/// An export to read: by project and session, the oldest first.
pub fn export_markdown(export: &Export) -> String {
    let mut out = String::new();
    let project_of = |key: Option<&str>| {
        let mut projects = export.projects.iter();
        let project = projects.find(|it| key.is_some_and(|key| it.keys.iter().any(|it| it == key)));
        project.map_or("no project", |it| it.name.as_str())
    };
    let mut by_project: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for session in &export.sessions {
        let project = project_of(session.project.as_deref());
        by_project.entry(project).or_default().push(session);
    }
    for (project, mut sessions) in by_project {
        let _ = writeln!(out, "# {}\n", one_line(project));
        sessions.sort_by(|a, b| a.started_at.cmp(&b.started_at));
        for session in sessions {
            let date = session.started_at.get(..10).unwrap_or_default();
            let title = session.title.as_deref().unwrap_or("remembered on request");
            let _ = writeln!(out, "## {date} {}\n", one_line(title));
            let of_session =
                |it: &&ExportedItem| it.session == session.session && it.host == session.host;
            for item in export.items.iter().filter(of_session) {
                let kind = item.r#type.map_or(item.kind.as_str(), |it| it.as_str());
                let marks = [(item.pinned, ", pinned"), (item.hidden, ", hidden")];
                let marks: String = marks.iter().filter(|it| it.0).map(|it| it.1).collect();
                let _ = writeln!(
                    out,
                    "### #{} {kind}: {}{marks}\n",
                    item.id,
                    one_line(&item.title)
                );
                let lines = [&item.subtitle, &item.narrative];
                for text in lines.iter().filter(|it| !it.trim().is_empty()) {
                    for line in text.lines() {
                        let _ = writeln!(out, "{}", one_line(line));
                    }
                    out.push('\n');
                }
                for fact in &item.facts {
                    let _ = writeln!(out, "- {}", one_line(fact));
                }
                if !item.facts.is_empty() {
                    out.push('\n');
                }
            }
        }
    }
    out
}
