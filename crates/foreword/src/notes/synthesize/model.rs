//! The question to a model: which form the master has, and everything that it is made of.
//!
//! Many notes are asked about in several questions: each carries on the memory that the answer before
//! gave, as a later synthesis carries on an earlier one. An agent that writes the master itself is
//! given the same text. Answers are untrusted, and checked by core (`notes::synthesis::read_reply`).

use foreword_core::notes::master::{SECTIONS, worded};
use foreword_core::notes::synthesis::{MasterReply, Section, Taken, read_reply};
use foreword_core::redact::thorough;
use foreword_core::text::{self, flat, shorten};

use super::Synthesis;
use crate::agent::ask::{WhilePaused, ask};
use crate::output::{self, SafeText};
use crate::service;

/// The longest text of one note, in bytes.
const NOTE_MAX: usize = 6_000;
/// The tokens that the lines around one note take.
const FENCE_TOKENS: usize = 25;
/// The most commits that are listed.
const COMMITS_MAX: usize = 120;
/// The longest subject of a commit, in bytes.
const COMMIT_MAX: usize = 240;
/// The tokens that the outlines of all documents may take.
const DOCS_TOKENS: usize = 3_000;
/// The most that is printed for an agent, in bytes. Of a longer output an agent may be shown only a
/// part, with Claude Code 2 KB.
const SOURCES_MAX: usize = 28_000;

impl Synthesis<'_> {
    /// Asks the configured model. The error says why there is no usable answer.
    pub(super) fn ask_model(&self, base: &str, notes: &[&Taken]) -> anyhow::Result<MasterReply> {
        let home = service::home_to_write()?;
        let groups = groups(notes, self.config.model.batch_max_tokens as usize);
        let mut base = base.to_owned();
        let mut reply = Err("there is nothing to ask about".to_owned());
        for (number, group) in (1..).zip(&groups) {
            if groups.len() > 1 {
                (self.say)(&format!("asking the model: {number} of {}", groups.len()));
            }
            let material = self.material(&base, group, number == groups.len());
            let mut again = String::new();
            for _ in 0..2 {
                let question = format!("{material}{again}Write the memory now.");
                let form = self.form();
                let answer = ask(
                    &home,
                    self.config,
                    "synthesize",
                    WhilePaused::Fail,
                    form.as_str(),
                    &question,
                    None,
                )?;
                reply = read_reply(&answer, &self.names, &self.labels);
                let Err(why) = &reply else { break };
                again = format!("Your last answer could not be used: {why}. Keep to the form. ");
            }
            let Ok(reply) = &reply else { break };
            let section =
                |it: &Section| format!("## {}\n\n{}\n\n", it.name, worded(it, &self.labels));
            base = reply.sections.iter().map(section).collect();
        }
        reply.map_err(|why| anyhow::anyhow!("its answer could not be used: {why}"))
    }

    /// The text for an agent that writes the master: the oldest notes as far as they fit, at least
    /// one. Also returns how many notes that are.
    /// A person gets all notes, without a frame.
    pub(super) fn for_agent(&self, base: &str, notes: &[&Taken]) -> (SafeText, usize) {
        let by_agent = self.options.by_agent;
        let text = |notes: &[&Taken]| {
            let mut text = self.form();
            text.push(&SafeText::own("\n\n", &[]));
            let data = self.material(base, notes, true);
            text.push(&if by_agent {
                output::framed_data(&data)
            } else {
                data
            });
            text
        };
        if !by_agent {
            return (text(notes), notes.len());
        }
        let room = SOURCES_MAX.saturating_sub(text(&[]).as_str().len());
        let shown = groups(notes, room / 4)[0].len();
        (text(&notes[..shown]), shown)
    }

    /// What the writer of a master is asked for. Names of sections that a file in the project gave are
    /// no words of ours: they stand with the data.
    fn form(&self) -> SafeText {
        // A word takes about 1.3 tokens, and links need room.
        let words = self.config.notes.master_max_tokens / 2;
        let sections = match self.has_own_sections() {
            true => "(those that “Sections” lists in the data)".to_owned(),
            false => self.headings(),
        };
        SafeText::own(
            include_str!("prompt.md"),
            &[("words", &words.to_string()), ("sections", &sections)],
        )
    }

    fn headings(&self) -> String {
        let sections = self.names.iter().map(|it| format!("## {it}"));
        sections.collect::<Vec<_>>().join("\n")
    }

    /// Whether the sections are others than the usual ones, and not named by the command.
    fn has_own_sections(&self) -> bool {
        let is_usual = |it: &String| SECTIONS.contains(&it.as_str());
        self.options.sections.is_empty() && !self.names.iter().all(is_usual)
    }

    /// The memory so far, these notes and the state of the project, between fences that no text
    /// inside can close.
    fn material(&self, base: &str, notes: &[&Taken], with_project: bool) -> SafeText {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let fence = &id[24..];
        let mut out = SafeText::default();
        let mut add = |what: &str, text: &str| {
            let text = thorough(text).text;
            if !text.trim().is_empty() {
                out.push(&SafeText::data(what, fence, &text));
            }
        };
        if self.has_own_sections() {
            add("Sections", &self.headings());
        }
        add("The memory so far", base);
        for taken in notes {
            let label = &self.labels[&taken.session];
            let date = taken.at.get(..10).unwrap_or_default();
            let note = taken.note.to_string();
            add(
                &format!("Note [{label}] of {date}"),
                &shorten(&note, NOTE_MAX),
            );
        }
        if with_project {
            let sources = &self.sources;
            let mut docs = String::new();
            for (path, outline) in &sources.docs {
                if text::tokens(&docs) + text::tokens(outline) < DOCS_TOKENS {
                    docs += &format!("{path}\n{outline}\n\n");
                }
            }
            add("Documents, their headings", &docs);
            let commits = sources.commits.iter().take(COMMITS_MAX);
            let commits = commits.map(|it| shorten(&flat(it), COMMIT_MAX).into_owned());
            let commits = commits.collect::<Vec<_>>().join("\n");
            add("Commits since the last time, the newest first", &commits);
            let code = [&sources.languages[..], &sources.folders].concat();
            add("Code", &code.join("\n"));
        }
        out
    }
}

/// Splits the notes, in their order, into groups of at most so many tokens. There is always a
/// first group.
fn groups<'a>(notes: &[&'a Taken], max_tokens: usize) -> Vec<Vec<&'a Taken>> {
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
