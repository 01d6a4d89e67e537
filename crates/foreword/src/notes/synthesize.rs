//! How a project's notes become its master: what they are read with, and who words it.
//!
//! A model is asked one question, or several if the notes are many: each then carries on the
//! memory that the one before gave, just as a later synthesis carries on an earlier one. Its answer is
//! untrusted, and read by core (`notes::synthesis::reply`); without one the words are compared
//! offline. `git` asks for the project's past, `sources` reads what lies beside the notes, `files` writes, `auto` is for the worker.

pub mod auto;
pub mod files;
pub mod git;
pub mod sources;

use std::collections::BTreeMap;

use foreword_core::notes::master::worded;
use foreword_core::notes::synthesis::reply::{self, Reply};
use foreword_core::notes::synthesis::{Section, Taken};
use foreword_core::text;

use crate::agent::ask::ask;
use crate::config::Config;
use crate::home::Home;
use sources::Sources;

const NOTE_MAX: usize = 6_000;
/// What stands around a note.
const FENCE_TOKENS: usize = 25;
const LINES_MAX: usize = 120;
const LINE_MAX: usize = 240;
const DOCS_TOKENS: usize = 3_000;

/// What is asked for: these sections, by notes with these labels.
pub struct Wanted<'a> {
    pub names: &'a [String],
    pub labels: &'a BTreeMap<String, String>,
    pub max_tokens: usize,
}

impl Wanted<'_> {
    pub fn form(&self) -> String {
        let sections: Vec<_> = self.names.iter().map(|it| format!("## {it}")).collect();
        // Three quarters of a token are a word, and links need room.
        let words = (self.max_tokens / 2).to_string();
        include_str!("synthesize/prompt.md")
            .replace("{{words}}", &words)
            .replace("{{sections}}", &sections.join("\n"))
    }

    /// All that is given, between fences that nothing in it can close.
    pub fn material(&self, base: &str, notes: &[&Taken], sources: Option<&Sources>) -> String {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let fence = &id[24..];
        let mut out = String::new();
        let mut add = |what: &str, text: &str| {
            let text = text.trim();
            if !text.is_empty() {
                out += &format!("{what}:\n<data {fence}>\n{text}\n</data {fence}>\n\n");
            }
        };
        add("The memory so far", base);
        for taken in notes {
            let label = &self.labels[&taken.session];
            let date = taken.at.get(..10).unwrap_or_default();
            let note = taken.note.to_string();
            let note = text::shorten(&note, NOTE_MAX);
            add(&format!("Note [{label}] of {date}"), &note);
        }
        if let Some(sources) = sources {
            let lines = |all: &[String]| {
                let lines = all.iter().take(LINES_MAX).map(|it| text::one_line(it));
                let lines = lines.map(|it| text::shorten(&it, LINE_MAX).into_owned());
                lines.collect::<Vec<_>>().join("\n")
            };
            let mut docs = String::new();
            for (path, outline) in &sources.docs {
                if text::tokens(&docs) + text::tokens(outline) < DOCS_TOKENS {
                    docs += &format!("{path}\n{outline}\n\n");
                }
            }
            add("Documents, their headings", &docs);
            let commits = lines(&sources.commits);
            add("Commits since the last time, the newest first", &commits);
            let code = [&sources.languages[..], &sources.folders].concat();
            add("Code", &lines(&code));
            let remembered = lines(&sources.remembered);
            add("What was remembered of sessions", &remembered);
        }
        out
    }
}

/// What a model makes of it; the error says why there is nothing.
pub fn by_model(
    home: &Home,
    config: &Config,
    wanted: &Wanted<'_>,
    base: &str,
    notes: &[&Taken],
    sources: &Sources,
) -> anyhow::Result<Reply> {
    let groups = groups(notes, config.model.batch_max_tokens as usize);
    let mut base = base.to_owned();
    let mut reply = Err("there is nothing to ask about".to_owned());
    for (at, group) in groups.iter().enumerate() {
        let is_last = at + 1 == groups.len();
        if groups.len() > 1 {
            eprintln!("asking the model: {} of {}", at + 1, groups.len());
        }
        let text = wanted.material(&base, group, is_last.then_some(sources));
        let mut again = String::new();
        for _ in 0..2 {
            let question = format!("{text}{again}Write the memory now.");
            let answer = ask(home, config, "synthesize", &wanted.form(), &question)?;
            reply = reply::read(&answer, wanted.names, wanted.labels);
            let Err(why) = &reply else { break };
            again = format!("Your last answer could not be used: {why}. Keep to the form. ");
        }
        let Ok(reply) = &reply else { break };
        let section = |it: &Section| format!("## {}\n\n{}\n\n", it.name, worded(it, wanted.labels));
        base = reply.sections.iter().map(section).collect();
    }
    reply.map_err(|why| anyhow::anyhow!("its answer could not be used: {why}"))
}

/// In the order of time, as many at once as a question may hold. Always at least one group.
pub fn groups<'a>(notes: &[&'a Taken], max_tokens: usize) -> Vec<Vec<&'a Taken>> {
    let mut groups = vec![Vec::new()];
    let mut tokens = 0;
    for taken in notes {
        let cost = text::tokens(&taken.note.to_string()).min(NOTE_MAX / 4) + FENCE_TOKENS;
        if tokens + cost > max_tokens && tokens > 0 {
            groups.push(Vec::new());
            tokens = 0;
        }
        tokens += cost;
        if let Some(group) = groups.last_mut() {
            group.push(*taken);
        }
    }
    groups
}
