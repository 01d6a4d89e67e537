//! `/synthesize`: makes a project's master of all its notes.
//!
//! A run reads the notes and the state of the project (`sources`, `git`) and compares both with the
//! record of the last run. If something is new, the sections are made again: from the draft that an
//! agent wrote, by the configured model (`model`), or offline. Sections and marks together are a
//! proposal (`files`); nothing is written before the caller says so. `auto` is the worker's run.

pub mod auto;
mod files;
mod git;
mod model;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use anyhow::{Context as _, anyhow, bail};
use foreword_core::notes::Folder;
use foreword_core::notes::evidence::{Evidence, EvidenceFinding, unmarked};
use foreword_core::notes::master::{self, Master, labels, line, worded};
use foreword_core::notes::record::{SynthesisRecord, hash};
use foreword_core::notes::synthesis::{MasterReply, Section, Taken, fit, read_reply, synthesise};
use foreword_core::redact::thorough;
use foreword_core::text::{self, count, one_line};

use crate::config::Config;
use crate::config::policy::ProjectPolicy;
use crate::config::provider;
use crate::home::{self, Home};
use crate::output::SafeText;
use crate::platform;
use crate::service;
pub use files::Proposal;
use git::Git;
use sources::Sources;

/// The most archived statements that are listed in a run's output.
const ARCHIVED_SHOWN: usize = 10;

#[derive(Default)]
pub struct Options {
    /// Write nothing, and take no lock.
    pub only_look: bool,
    /// An agent runs the command: sources are framed and limited.
    pub by_agent: bool,
    /// Read all notes again, as if there were no master yet.
    pub full: bool,
    /// Sections other than those that the master has.
    pub sections: Vec<String>,
    /// The master as an agent wrote it.
    pub draft: Option<String>,
}

/// One run, with everything that it read.
pub struct Synthesis<'a> {
    home: &'a Home,
    config: &'a Config,
    folder: &'a Folder,
    options: Options,
    /// Shows a line about the progress, or about something left out.
    say: &'a dyn Fn(&str),
    git: Git<'a>,
    last: SynthesisRecord,
    sources: Sources,
    /// The text of master.md.
    pub old: Option<String>,
    master: Master,
    /// Names of the sections.
    names: Vec<String>,
    /// How each session's note is cited.
    labels: BTreeMap<String, String>,
    _lock: Option<File>,
}

impl<'a> Synthesis<'a> {
    pub fn begin(
        home: &'a Home,
        config: &'a Config,
        folder: &'a Folder,
        options: Options,
        say: &'a dyn Fn(&str),
    ) -> anyhow::Result<Synthesis<'a>> {
        if !folder.path.is_dir() {
            bail!(
                "there is no {}/ yet; `/summarize` in a conversation or `foreword summarize SESSION` writes the first note",
                folder.name(&folder.path).display()
            );
        }
        let lock = (!options.only_look).then(|| files::lock(folder));
        let lock = lock.transpose()?;
        let git = Git::new(&folder.root);
        let last = files::last(folder);
        let old = folder.read(&folder.master())?;
        let sources = Sources::gather(folder, &git, &last, &text::date(home::now()));
        for problem in &sources.problems {
            say(&format!("left out: {}", one_line(problem)));
        }
        if sources.notes.is_empty() {
            bail!(
                "there is no note to make a master of; `/summarize` in a conversation writes one"
            );
        }
        let master = Master::read(old.as_deref().unwrap_or_default());
        let wanted = options.sections.iter().map(|it| text::flat(it));
        let mut names: Vec<_> = wanted.filter(|it| !it.is_empty()).collect();
        if names.is_empty() {
            names = master.names(&last);
        }
        Ok(Synthesis {
            labels: labels(sources.notes.iter().map(|it| it.session.as_str())),
            home,
            config,
            folder,
            options,
            say,
            git,
            last,
            sources,
            old,
            master,
            names,
            _lock: lock,
        })
    }

    /// The text that an agent writes the master from; none if the master or the waiting proposal
    /// has everything already.
    pub fn sources(&self) -> anyhow::Result<Option<SafeText>> {
        if self.waiting()?.is_some() || !self.is_new() {
            return Ok(None);
        }
        let (base, notes) = self.basis();
        let (text, shown) = self.for_agent(&base, &notes);
        self.say_left(notes.len() - shown);
        Ok(Some(text))
    }

    /// The master as it would be. Without anything new only the marks are set again.
    pub fn propose(&self) -> anyhow::Result<Proposal> {
        match self.waiting()? {
            Some(waiting) => Ok(waiting),
            None if self.is_new() => self.fresh(),
            None => Ok(self.marked_again()),
        }
    }

    /// The proposal that an earlier run left, if all that it was made of is still the same.
    pub fn accepted(&self) -> anyhow::Result<Proposal> {
        let waiting = Proposal::waiting(self.folder)?;
        let waiting = waiting.context("there is no proposal; `foreword synthesize` makes one")?;
        if !waiting.holds(&self.sources.record, self.before()) {
            bail!(
                "notes, documents or master.md changed since the proposal was made; run `foreword synthesize` again"
            );
        }
        Ok(waiting)
    }

    /// If the master is already as proposed: records the sources, and returns a line about it.
    pub fn unchanged(&self, proposal: &Proposal) -> anyhow::Result<Option<String>> {
        if proposal.text != self.before() {
            return Ok(None);
        }
        if self.is_new() && !self.options.only_look {
            proposal.write_record(self.folder)?;
        }
        Ok(Some(match &self.last.date {
            Some(since) if !self.is_new() => format!("nothing new since {since}"),
            _ => "nothing changes".to_owned(),
        }))
    }

    fn before(&self) -> &str {
        self.old.as_deref().unwrap_or_default()
    }

    /// Whether the user asked for new sections, whatever the record says.
    fn is_asked(&self) -> bool {
        let options = &self.options;
        options.full || !options.sections.is_empty() || options.draft.is_some()
    }

    fn is_new(&self) -> bool {
        // A section that neither the master nor the record has was given back by its owner.
        let known =
            |name: &String| self.master.part(name).is_some() || self.last.knows_section(name);
        self.is_asked()
            || self.old.is_none()
            || !self.names.iter().all(known)
            || self.sources.has_news(&self.last)
    }

    /// The proposal that an earlier run left, if it has everything that this run would read.
    fn waiting(&self) -> anyhow::Result<Option<Proposal>> {
        let now = &self.sources.record;
        let has_all = |it: &Proposal| it.holds(now, self.before()) && it.has_all(now);
        let waiting = Proposal::waiting(self.folder)?.filter(has_all);
        Ok(waiting.filter(|_| !self.is_asked()))
    }

    /// A proposal with new sections.
    fn fresh(&self) -> anyhow::Result<Proposal> {
        let (base, mut notes) = self.basis();
        let mut record = self.sources.record.clone();
        let reply = if let Some(draft) = &self.options.draft {
            let (_, shown) = self.for_agent(&base, &notes);
            let left = notes.split_off(shown);
            self.say_left(left.len());
            for Taken { session, .. } in left {
                // It stays as new to the next run as it is to this one.
                match self.last.notes.get(session) {
                    Some(hash) => record.notes.insert(session.clone(), hash.clone()),
                    None => record.notes.remove(session),
                };
            }
            let reply = read_reply(draft, &self.names, &self.labels);
            Some(reply.map_err(|why| anyhow!("the draft cannot be used: {why}"))?)
        } else {
            self.by_model(&base, &notes)?
        };
        let by = if reply.is_some() { "model" } else { "offline" };
        record.by = Some(by.to_owned());
        let mut sections = match reply {
            Some(reply) => {
                self.say_omissions(&reply, &notes);
                reply.sections
            }
            None => synthesise(&self.sources.notes, &self.names),
        };
        self.finish(&mut sections);
        let times = self.sources.notes.iter();
        let times = times.map(|it| (it.session.as_str(), &it.at)).collect();
        let archived = fit(&mut sections, &times, self.config.notes.master_max_tokens);
        let archived = archived.iter().map(|it| line(it, &self.labels)).collect();
        let part = |it: &Section| (it.name.clone(), worded(it, &self.labels));
        let parts = sections.iter().map(part).collect();
        let notes = self.sources.notes.len() as u64;
        let notes = count(notes, "conversation", "conversations");
        let docs = count(self.sources.docs.len() as u64, "doc", "docs");
        let mut master = self.master.clone();
        master.source = format!("{notes}, {docs}");
        Ok(self.proposal(master, parts, record, archived))
    }

    /// The answer of the configured model; none if the master is to be made offline.
    fn by_model(&self, base: &str, notes: &[&Taken]) -> anyhow::Result<Option<MasterReply>> {
        let name = provider::choose(self.config, self.home).name;
        let number = count(notes.len() as u64, "note", "notes");
        let root = &self.folder.root;
        let project = service::project_of(root);
        let policy = ProjectPolicy::of(Some(root), project.as_deref(), &self.config.projects);
        if policy.forbids_models() && name.has_model() {
            (self.say)(&format!(
                "made offline from {number}: {} is not asked, because of the project's policy",
                name.as_str()
            ));
            return Ok(None);
        }
        if !name.has_model() {
            let was_model = self.old.is_some() && self.last.by.as_deref() == Some("model");
            if was_model && !self.options.full {
                bail!(
                    "master.md was written by a model, and none is configured here; nothing was changed. /synthesize has the \
                     agent write it (`foreword synthesize --sources`, then `--draft`); `--full` makes it offline, in plainer words"
                );
            }
            (self.say)(&format!(
                "made offline from {number}: no model is configured"
            ));
            return Ok(None);
        }
        (self.say)(&format!("asking {} about {number}", name.as_str()));
        // The data directory is private, but the project's files are as public as the project.
        let why = match platform::keep_umask(|| self.ask_model(base, notes)) {
            Ok(reply) => return Ok(Some(reply)),
            Err(why) => one_line(&format!("{why:#}")),
        };
        // A short outage must not replace a model's words by plainer ones.
        if self.old.is_some() {
            bail!(
                "{why}; master.md stays as it is. Run it again later, or with FOREWORD_PROVIDER=offline"
            );
        }
        (self.say)(&format!("made offline: {why}"));
        Ok(None)
    }

    /// The memory so far and the notes that are new to it, oldest first. If a note that it rests on
    /// was changed or removed: no memory, and all notes.
    fn basis(&self) -> (String, Vec<&Taken>) {
        let now = &self.sources.record.notes;
        let news = self.last.news(now);
        let mut known = self.last.notes.keys();
        let carries_on = !self.options.full
            && self.options.sections.is_empty()
            && !self.last.notes.is_empty()
            && !self.master.parts.is_empty()
            && known.all(|it| now.contains_key(it) && !news.contains(it));
        let mut notes: Vec<&Taken> = self.sources.notes.iter().collect();
        notes.sort_by_key(|it| (&it.at, &it.session));
        if !carries_on {
            return (String::new(), notes);
        }
        notes.retain(|it| news.contains(&it.session));
        let section = |(name, text): &(String, String)| format!("## {name}\n\n{text}\n\n");
        let base: String = self.master.parts.iter().map(section).collect();
        (unmarked(&base), notes)
    }

    fn say_left(&self, left: usize) {
        if left > 0 {
            let left = count(left as u64, "note is", "notes are");
            (self.say)(&format!(
                "{left} left for the next run: there is no room for more at once"
            ));
        }
    }

    /// A model may cite notes that do not exist, and pass over notes that do.
    fn say_omissions(&self, reply: &MasterReply, notes: &[&Taken]) {
        if reply.dropped > 0 {
            let what = count(reply.dropped as u64, "statement cites", "statements cite");
            (self.say)(&format!("left out: {what} no note that is there"));
        }
        let statements = reply.sections.iter().flat_map(|it| &it.statements);
        let cited: BTreeSet<_> = statements.flat_map(|it| &it.sessions).collect();
        let uncited = notes.iter().filter(|it| !cited.contains(&it.session));
        let uncited: Vec<_> = uncited
            .map(|it| self.labels[&it.session].as_str())
            .collect();
        if !uncited.is_empty() {
            let uncited = uncited.join(", ");
            (self.say)(&format!("no statement cites {uncited}; `--full` asks anew"));
        }
    }

    /// Adds the line about the project itself, and replaces secrets.
    fn finish(&self, sections: &mut [Section]) {
        let mut secrets = 0;
        let mut clean = |text: &mut String| {
            let redacted = thorough(text);
            secrets += redacted.count;
            *text = text::without_tags(&redacted.text);
        };
        for statement in sections.iter_mut().flat_map(|it| &mut it.statements) {
            clean(&mut statement.text);
        }
        if let Some(first) = sections.first_mut() {
            first.lead = self.sources.lead();
            first.lead.as_mut().map(clean);
        }
        if secrets > 0 {
            let what = count(secrets.into(), "secret was", "secrets were");
            (self.say)(&format!("{what} left out"));
        }
    }

    /// A proposal with the sections that are ours as they are.
    fn marked_again(&self) -> Proposal {
        let (mut parts, mut record) = (self.master.parts.clone(), self.last.clone());
        parts.retain(|(name, text)| self.last.is_ours(name, text));
        // The record keeps the hashes of sections that a person edited or removed.
        let is_ours = |name: &str| parts.iter().any(|it| it.0 == name);
        record.sections.retain(|it| !is_ours(&it.0));
        self.proposal(self.master.clone(), parts, record, Vec::new())
    }

    /// Marks what is gone or moved in `parts`, our sections, and puts them into the master.
    fn proposal(
        &self,
        mut master: Master,
        mut parts: Vec<(String, String)>,
        mut record: SynthesisRecord,
        archived: Vec<String>,
    ) -> Proposal {
        let (last, labels, sources) = (&self.last, &self.labels, &self.sources);
        let evidence = Evidence::new(&self.folder.root, &self.git, &last.files);
        let (first, notes) = (&self.names[0], &sources.notes);
        let findings = master::mark(&mut parts, first, &evidence, notes, labels);
        record.files = evidence.named();
        let kept = master.renew(&parts, last, &mut record);
        if master.head.is_empty() {
            let scope = self.folder.scope.as_ref().map(|it| format!(": {it}"));
            master.head = format!("# Project memory{}", scope.unwrap_or_default());
        }
        // If only the date would change, nothing changes.
        if master != self.master || master.date.is_empty() {
            master.date = sources.record.date.clone().unwrap_or_default();
        }
        record.master = Some(hash(self.before()));
        Proposal {
            text: master.write(labels),
            record,
            remarks: self.remarks(&findings, kept, &archived),
            archived,
        }
    }

    /// Lines for the user: which files are gone, what was new in sections of their own, what was archived.
    fn remarks(
        &self,
        findings: &BTreeSet<EvidenceFinding>,
        kept: Vec<String>,
        archived: &[String],
    ) -> Vec<String> {
        let finding = |EvidenceFinding { what, says }: &EvidenceFinding| {
            format!("out of date: {what} ({says})")
        };
        let mut remarks: Vec<_> = findings.iter().map(finding).collect();
        remarks.extend(kept);
        if !archived.is_empty() {
            let what = count(archived.len() as u64, "statement", "statements");
            let archive = self.folder.archive();
            let to = self.folder.name(&archive).display();
            remarks.push(format!("master.md is full; to {to}/: {what}"));
            let shown = archived.iter().take(ARCHIVED_SHOWN);
            remarks.extend(shown.map(|it| format!("  {it}")));
            if let Some(more @ 1..) = archived.len().checked_sub(ARCHIVED_SHOWN) {
                remarks.push(format!("  and {more} more"));
            }
        }
        remarks
    }
}
