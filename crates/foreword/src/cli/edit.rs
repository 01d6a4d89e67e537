//! `foreword edit ID`: changes an observation in an editor, as a small document, or by options.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use foreword_core::model::{FileRole, Millis, ObservationType, TouchedFile};
use foreword_core::store::Editable;
use foreword_core::text::rfc3339;

use super::show::number;
use super::targets::ChangeFlags;
use crate::service::hands::{self, Who};
use crate::service::search::named;
use crate::service::when;
use crate::service::{Reader, home_to_write};
use crate::show::{HandsReport, Verb};

#[derive(clap::Args)]
pub struct Args {
    /// Numbers, as in #12; an editor opens one, and options change several
    #[arg(required = true, value_name = "ID", value_parser = number)]
    ids: Vec<i64>,
    #[command(flatten)]
    fields: FieldFlags,
    #[command(flatten)]
    change: ChangeFlags,
}

/// The new values of fields. Without any, an editor opens.
#[derive(clap::Args)]
struct FieldFlags {
    /// Its title
    #[arg(long)]
    title: Option<String>,
    /// The line below the title
    #[arg(long)]
    subtitle: Option<String>,
    /// Its text
    #[arg(long)]
    text: Option<String>,
    /// Its type: decision, bugfix, feature, refactor or discovery
    #[arg(long = "type", value_name = "TYPE", value_parser = named::<ObservationType>)]
    kind: Option<ObservationType>,
    /// A fact; all that are given replace the present ones
    #[arg(long)]
    fact: Vec<String>,
    /// A concept; all that are given replace the present ones
    #[arg(long)]
    concept: Vec<String>,
    /// A file; all that are given replace the present ones
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// The last day or time at which it holds: 2026-12-01, 7d, friday, or `never` for no limit
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let reader = Reader::here()?;
    let store = reader.memory()?;
    let mut ids = args.ids.clone();
    ids.sort_unstable();
    ids.dedup();
    let mut report = HandsReport::of(Verb::Edit, &reader, &store, &ids)?;
    let mut wanted = Vec::new();
    for &id in &ids {
        let mut fields = store.editable(id)?;
        args.fields.apply(&mut fields, &reader)?;
        wanted.push((id, fields));
    }
    if args.fields.is_empty() {
        let [(id, fields)] = wanted.as_mut_slice() else {
            bail!(
                "an editor opens one observation; for several name the fields, such as --type decision"
            );
        };
        let document = Document::write(*id, fields);
        match edited(&document)? {
            Some(text) => Document::read(&text, fields, reader.now)?,
            None => {
                println!("#{id} is unchanged.");
                return Ok(());
            }
        }
    }
    drop(store);
    let (changed, redacted) = hands::edit(&reader, wanted, Who::Shell, args.change.dry_run)?;
    report.redacted = redacted;
    if !args.change.dry_run {
        report.done(changed);
    }
    args.change.print(&report);
    Ok(())
}

impl FieldFlags {
    fn is_empty(&self) -> bool {
        self.title.is_none()
            && self.subtitle.is_none()
            && self.text.is_none()
            && self.kind.is_none()
            && self.fact.is_empty()
            && self.concept.is_empty()
            && self.file.is_empty()
            && self.until.is_none()
    }

    fn apply(&self, fields: &mut Editable, reader: &Reader) -> anyhow::Result<()> {
        let set = |field: &mut String, value: &Option<String>| {
            if let Some(value) = value {
                field.clone_from(value);
            }
        };
        set(&mut fields.title, &self.title);
        set(&mut fields.subtitle, &self.subtitle);
        set(&mut fields.narrative, &self.text);
        fields.r#type = self.kind.unwrap_or(fields.r#type);
        if !self.fact.is_empty() {
            fields.facts.clone_from(&self.fact);
        }
        if !self.concept.is_empty() {
            fields.concepts.clone_from(&self.concept);
        }
        if let Some(until) = &self.until {
            fields.until = limit(until, fields.until, reader.now)?;
        }
        if !self.file.is_empty() {
            let files = self.file.iter();
            set_files(
                fields,
                files.filter_map(|it| reader.place.name_of(it)).collect(),
            );
        }
        Ok(())
    }
}

/// A time limit as it was written; none for `never`.
fn limit(text: &str, present: Option<Millis>, now: Millis) -> anyhow::Result<Option<Millis>> {
    // The present limit may be over already.
    if present.map(rfc3339).as_deref() == Some(text) {
        return Ok(present);
    }
    match text {
        "" | "never" => Ok(None),
        text => Ok(Some(when::until(text, now).map_err(anyhow::Error::msg)?)),
    }
}

/// Opens an editor with a text; none if it was not changed.
fn edited(text: &str) -> anyhow::Result<Option<String>> {
    let set = |name| std::env::var(name).ok().filter(|it| !it.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR"));
    let editor = editor.context(
        "no editor is set: set EDITOR, or name the fields, such as `foreword edit 12 --title TITLE`",
    )?;
    // In the data directory, which nobody else can read.
    let home = home_to_write()?;
    let mut file = tempfile::Builder::new()
        .prefix("edit-")
        .suffix(".md")
        .tempfile_in(home.dir())
        .context("could not write the document")?;
    file.write_all(text.as_bytes())?;
    let path = file.into_temp_path();
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$0\""))
        .arg(&path)
        .status()
        .with_context(|| format!("could not start the editor {editor}"))?;
    ensure!(
        status.success(),
        "the editor {editor} failed, so nothing was changed"
    );
    let after = std::fs::read_to_string(&path).context("could not read the document")?;
    Ok((after != text).then_some(after))
}

/// An observation as a small document.
struct Document;

impl Document {
    fn write(id: i64, fields: &Editable) -> String {
        let files = fields.files.iter().map(|it| it.path.as_str());
        // A file that was read and modified is named once.
        let mut files: Vec<&str> = files.collect();
        files.dedup();
        let list = |items: &[String]| -> String {
            let lines = items
                .iter()
                .map(|it| format!("- {}\n", it.replace('\n', " ")));
            lines.collect()
        };
        format!(
            "# Observation #{id}. Change it, save, and close. Lines that begin with # are left out.\n\
             type: {}\n\
             title: {}\n\
             subtitle: {}\n\
             concepts: {}\n\
             files: {}\n\
             until: {}\n\
             \n\
             facts:\n{}\n\
             text:\n{}\n",
            fields.r#type,
            fields.title,
            fields.subtitle,
            fields.concepts.join(", "),
            files.join(", "),
            fields.until.map_or("never".to_owned(), rfc3339),
            list(&fields.facts),
            fields.narrative
        )
    }

    /// Changes the fields to what the document says.
    fn read(text: &str, fields: &mut Editable, now: Millis) -> anyhow::Result<()> {
        let (head, narrative) = text.split_once("\ntext:").unwrap_or((text, ""));
        let mut facts = None;
        for (number, line) in (1..).zip(head.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(facts) = &mut facts {
                let fact = line.strip_prefix("- ").unwrap_or(line);
                Vec::push(facts, fact.to_owned());
                continue;
            }
            let (name, value) = line.split_once(':').with_context(|| {
                format!("line {number} is not `name: value`: {line}; nothing was changed")
            })?;
            let value = value.trim();
            let items = || {
                let items = value.split(',').map(str::trim).filter(|it| !it.is_empty());
                items.map(str::to_owned).collect::<Vec<_>>()
            };
            match name.trim() {
                "type" => {
                    fields.r#type = ObservationType::parse(value).with_context(|| {
                        format!("line {number}: '{value}' is not a type: decision, bugfix, feature, refactor or discovery; nothing was changed")
                    })?;
                }
                "title" => value.clone_into(&mut fields.title),
                "subtitle" => value.clone_into(&mut fields.subtitle),
                "concepts" => fields.concepts = items(),
                "files" => set_files(fields, items()),
                "until" => fields.until = limit(value, fields.until, now)?,
                "facts" => facts = Some(Vec::new()),
                other => bail!("line {number}: there is no field '{other}'; nothing was changed"),
            }
        }
        fields.facts = facts.unwrap_or_default();
        let is_text = |line: &&str| !line.starts_with('#');
        let lines: Vec<&str> = narrative.lines().filter(is_text).collect();
        fields.narrative = lines.join("\n").trim().to_owned();
        Ok(())
    }
}

/// Files that were there keep their state; a new one has none.
fn set_files(fields: &mut Editable, paths: Vec<String>) {
    let present = std::mem::take(&mut fields.files);
    for path in paths {
        if fields.files.iter().any(|it| it.path == path) {
            continue;
        }
        let same = present.iter().filter(|it| it.path == path);
        let before = fields.files.len();
        fields.files.extend(same.cloned());
        if fields.files.len() == before {
            fields.files.push(TouchedFile {
                path,
                role: FileRole::Read,
                size: None,
                mtime: None,
                hash: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreword_core::model::Origin;

    #[test]
    fn a_document_that_was_only_saved_changes_nothing() {
        let file = |path: &str, role| TouchedFile {
            path: path.to_owned(),
            role,
            size: Some(1),
            mtime: None,
            hash: Some("h".to_owned()),
        };
        let fields = Editable {
            r#type: ObservationType::Bugfix,
            title: "Expiry: compared in UTC".to_owned(),
            subtitle: String::new(),
            facts: vec!["one".to_owned(), "two: three".to_owned()],
            narrative: "First line.\n\nfacts: are no heading here".to_owned(),
            concepts: vec!["time".to_owned()],
            files: vec![
                file("a.rs", FileRole::Read),
                file("a.rs", FileRole::Modified),
            ],
            origin: Origin::Agent,
            pinned_at: None,
            hidden_at: None,
            edited_at: None,
            // Over already, which is no mistake as long as it is not changed.
            until: Some(1_000),
            superseded_by: None,
            judged: Vec::new(),
        };
        let mut read = fields.clone();
        let document = Document::write(12, &fields);
        Document::read(&document, &mut read, 9_000_000).unwrap();
        assert_eq!(read, fields);
        for (from, to, error) in [
            ("type: bugfix", "type: bug", "'bug' is not a type"),
            ("title:", "titel:", "no field 'titel'"),
            ("subtitle:", "subtitle", "line 4 is not"),
            ("until: ", "until: x", "not a time limit"),
        ] {
            let wrong = document.replacen(&format!("\n{from}"), &format!("\n{to}"), 1);
            let refused = Document::read(&wrong, &mut read.clone(), 9_000_000);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(error), "{refused}");
        }
    }
}
