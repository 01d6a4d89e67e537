//! `foreword synthesize`: makes the master of all notes, shows what changes, and asks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use foreword_core::notes::Folder;
use foreword_core::notes::evidence::{Evidence, Finding, unmarked};
use foreword_core::notes::master::{self, Master, labels, line, worded};
use foreword_core::notes::record::Record;
use foreword_core::notes::synthesis::reply::{self, Reply};
use foreword_core::notes::synthesis::{Section, Statement, Taken, fit, synthesise};
use foreword_core::redact::redact;
use foreword_core::text::{self, count};

use super::notes::{Here, input, may_write};
use crate::config::Config;
use crate::config::provider::{self, Name};
use crate::notes::synthesize::files::{self, Proposal, Waiting};
use crate::notes::synthesize::git::Git;
use crate::notes::synthesize::sources::Sources;
use crate::notes::synthesize::{Wanted, by_model, groups};
use crate::service;
use crate::{home, platform, show};

#[derive(clap::Args)]
pub struct Args {
    /// A part of the project with a memory of its own: _memory/SCOPE
    #[arg(long)]
    scope: Option<String>,
    /// Take in all notes again, as if it were the first time
    #[arg(long)]
    full: bool,
    /// Show what would change, and write nothing
    #[arg(long, visible_alias = "diff")]
    dry_run: bool,
    /// Write without asking
    #[arg(long)]
    yes: bool,
    /// Put the proposal in place that an earlier run left
    #[arg(long, conflicts_with_all = ["full", "dry_run", "sections", "sources", "draft"])]
    accept: bool,
    /// Other sections than the usual ones, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    sections: Vec<String>,
    /// Print what a master is made of, for an agent that writes it
    #[arg(long, conflicts_with = "draft")]
    sources: bool,
    /// Take this as the new master, written by an agent; - reads it from standard input
    #[arg(long, value_name = "FILE")]
    draft: Option<PathBuf>,
}

/// So much is printed for an agent at once: of a longer output its client shows it 2 KB.
const SOURCES_MAX: usize = 28_000;
/// Who worded a master, in the record.
const MODEL: &str = "model";
const OFFLINE: &str = "offline";

/// What a run begins with.
struct State<'a> {
    args: &'a Args,
    folder: &'a Folder,
    git: &'a Git<'a>,
    last: Record,
    sources: Sources,
    old: Option<String>,
    master: Master,
    /// The sections, and how each note is cited.
    names: Vec<String>,
    labels: BTreeMap<String, String>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let Here { place, folder } = Here::find(args.scope.as_deref())?;
    if !folder.path.is_dir() {
        bail!(
            "there is no {}/ yet; `/summarize` in a conversation or `foreword summarize SESSION` writes the first note",
            folder.name(&folder.path).display()
        );
    }
    let looks_only = args.dry_run || args.sources;
    let _lock = (!looks_only).then(|| files::lock(&folder)).transpose()?;
    let git = Git::new(&folder.root);
    let mut state = State::look(args, &folder, &git)?;
    let before = state.old.clone().unwrap_or_default();

    let waiting = Proposal::waiting(&folder, &state.sources, &before)?;
    if args.accept {
        let waiting = waiting.context("there is no proposal; `foreword synthesize` makes one")?;
        if !waiting.holds {
            bail!(
                "notes, documents or master.md changed since the proposal was made; run `foreword synthesize` again"
            );
        }
        let Waiting { proposal, .. } = waiting;
        proposal.kept.iter().for_each(|it| println!("{}", safe(it)));
        return write(&folder, &proposal, &state.last);
    }
    if state.sources.notes.is_empty() {
        bail!("there is no note to make a master of; `/summarize` in a conversation writes one");
    }
    let is_asked = args.full || !args.sections.is_empty() || args.draft.is_some() || args.sources;
    let is_new = is_asked
        || state.old.is_none()
        || state.lacks_a_section()
        || state.sources.has_news(&state.last);
    let made = waiting.filter(|it| it.holds && it.is_all && !is_asked);
    let proposal = if let Some(Waiting { proposal, .. }) = made {
        proposal
    } else {
        // What is asked and remembered is private, the project's memory is as public as the project.
        let project = place.project.as_deref();
        let fresh = match is_new {
            true => platform::keep_umask(|| state.fresh(project))?,
            false => None,
        };
        if args.sources {
            return Ok(());
        }
        state.propose(fresh)
    };
    if proposal.text == before {
        match &state.last.date {
            Some(since) if !is_new => println!("nothing new since {since}"),
            _ => println!("nothing changes"),
        }
        if is_new && !args.dry_run {
            proposal.write_record(&folder)?;
        }
        return Ok(());
    }
    let path = folder.master();
    let old = state.old.as_deref();
    let diff = show::diff(folder.name(&path), old, Some(&proposal.text));
    print!("{diff}");
    match may_write("Write master.md?", args.yes, args.dry_run)? {
        Some(true) => write(&folder, &proposal, &state.last)?,
        Some(false) => {}
        None => {
            proposal.leave(&folder, &before)?;
            let scope = folder.scope.as_ref().map(|it| format!(" --scope {it}"));
            let scope = scope.unwrap_or_default();
            let name = folder.name(&folder.path).join("proposal.md");
            let name = name.display();
            println!("Left as {name}; `foreword synthesize{scope} --accept` puts it in place.");
        }
    }
    Ok(())
}

fn write(folder: &Folder, proposal: &Proposal, last: &Record) -> anyhow::Result<()> {
    proposal.write(folder, last)?;
    println!("Wrote {}", folder.name(&folder.master()).display());
    Ok(())
}

impl<'a> State<'a> {
    fn look(args: &'a Args, folder: &'a Folder, git: &'a Git<'a>) -> anyhow::Result<State<'a>> {
        let last = files::last(folder);
        let old = folder.read(&folder.master())?;
        let sources = Sources::gather(folder, git, &last, &text::date(home::now()));
        for problem in &sources.problems {
            eprintln!("left out: {}", text::one_line(problem));
        }
        let master = Master::read(old.as_deref().unwrap_or_default());
        let wanted = args.sections.iter().map(|it| text::one_line(it));
        let mut names: Vec<_> = wanted.filter(|it| !it.is_empty()).collect();
        if names.is_empty() {
            names = master.names(&last);
        }
        Ok(State {
            labels: labels(sources.notes.iter().map(|it| it.session.as_str())),
            args,
            folder,
            git,
            last,
            sources,
            old,
            master,
            names,
        })
    }

    /// A section of ours that neither the master nor the record knows: somebody gave it back.
    fn lacks_a_section(&self) -> bool {
        let known =
            |name: &String| self.master.part(name).is_some() || self.last.knows_section(name);
        !self.names.iter().all(known)
    }

    /// The sections as somebody makes them now, and what of it no longer fits. None if what they
    /// are made of was only to be printed.
    fn fresh(
        &mut self,
        project: Option<&str>,
    ) -> anyhow::Result<Option<(Vec<Section>, Vec<Statement>)>> {
        let home = service::home_to_look_at()?;
        let config = Config::load(&home)?;
        if let (Some(project), Ok(Some(store))) = (project, service::memory(&home)) {
            let _ = self.sources.remember(&store, project);
        }
        let args = self.args;
        let wanted = Wanted {
            names: &self.names,
            labels: &self.labels,
            max_tokens: config.notes.master_max_tokens,
        };
        let (base, mut notes) = self.basis();
        let mut left = Vec::new();
        if args.sources || args.draft.is_some() {
            let (material, shown) = printed(&wanted, &base, &notes, &self.sources);
            left = notes.split_off(shown);
            if !left.is_empty() {
                let left = count(left.len() as u64, "note is", "notes are");
                eprintln!("{left} left for the next run: there is no room for more at once");
            }
            if args.sources {
                print!("{material}");
                return Ok(None);
            }
        }
        let (reply, by) = match &args.draft {
            Some(file) => {
                let draft = input("the draft", file)?;
                let reply = reply::read(&draft, wanted.names, wanted.labels);
                let unusable = |why| anyhow!("the draft cannot be used: {why}");
                (reply.map_err(unusable)?, MODEL)
            }
            None => self.made(&config, &wanted, &base, &notes)?,
        };
        if reply.dropped > 0 {
            let what = count(reply.dropped as u64, "statement cites", "statements cite");
            eprintln!("left out: {what} no note that is there");
        }
        let mut sections = reply.sections;
        if by == MODEL {
            say_uncited(&sections, &notes, &self.labels);
        }
        let left: Vec<String> = left.iter().map(|it| it.session.clone()).collect();
        let secrets = finish(&mut sections, &self.sources);
        if secrets > 0 {
            let what = count(secrets.into(), "secret was", "secrets were");
            eprintln!("{what} left out");
        }
        let when = self.sources.notes.iter();
        let when = when.map(|it| (it.session.as_str(), &it.at)).collect();
        let archived = fit(&mut sections, &when, wanted.max_tokens);
        let record = &mut self.sources.record;
        record.by = Some(by.to_owned());
        for session in left {
            // As it was known, or not at all.
            match self.last.notes.get(&session) {
                Some(hash) => record.notes.insert(session, hash.clone()),
                None => record.notes.remove(&session),
            };
        }
        Ok(Some((sections, archived)))
    }

    /// By the model that was chosen, else offline.
    fn made(
        &self,
        config: &Config,
        wanted: &Wanted<'_>,
        base: &str,
        notes: &[&Taken],
    ) -> anyhow::Result<(Reply, &'static str)> {
        let name = provider::choose(config, &service::home_to_look_at()?).name;
        let number = count(notes.len() as u64, "note", "notes");
        if name != Name::Offline {
            eprintln!("asking {} about {number}", name.as_str());
            let reply = by_model(
                &service::home_to_write()?,
                config,
                wanted,
                base,
                notes,
                &self.sources,
            );
            let why = match reply {
                Ok(reply) => return Ok((reply, MODEL)),
                Err(why) => text::one_line(&format!("{why:#}")),
            };
            // What a model wrote is not given up for plainer words because of an outage.
            if self.old.is_some() {
                bail!(
                    "{why}; master.md stays as it is. Run it again later, or with FOREWORD_PROVIDER=offline"
                );
            }
            eprintln!("made offline: {why}");
        } else if self.old.is_some() && self.last.by.as_deref() == Some(MODEL) && !self.args.full {
            bail!(
                "master.md was worded by a model, and none is chosen here; nothing was changed. /synthesize has the \
                 agent word it (`foreword synthesize --sources`, then `--draft`); `--full` makes it offline, in plainer words"
            );
        } else {
            eprintln!("made offline, by the words of {number}: no model was chosen");
        }
        let reply = Reply {
            sections: synthesise(&self.sources.notes, &self.names),
            dropped: 0,
        };
        Ok((reply, OFFLINE))
    }

    /// Where a model would carry on: the memory so far and the notes that are new; or nothing and
    /// all notes, if what it rests on is no longer as it was.
    fn basis(&self) -> (String, Vec<&Taken>) {
        let now = &self.sources.record.notes;
        let news = self.last.news(now);
        let mut known = self.last.notes.keys();
        let carries_on = !self.args.full
            && self.args.sections.is_empty()
            && !self.last.notes.is_empty()
            && known.all(|it| now.contains_key(it) && !news.contains(it));
        let mut notes: Vec<&Taken> = self.sources.notes.iter().collect();
        notes.sort_by_key(|it| (&it.at, &it.session));
        if !carries_on || self.master.parts.is_empty() {
            return (String::new(), notes);
        }
        notes.retain(|it| news.contains(&it.session));
        let section = |(name, text): &(String, String)| format!("## {name}\n\n{text}\n\n");
        let base: String = self.master.parts.iter().map(section).collect();
        (unmarked(&base), notes)
    }

    /// The master as it would be, and says what is odd about it; without fresh sections only the marks
    /// are set anew.
    fn propose(&self, fresh: Option<(Vec<Section>, Vec<Statement>)>) -> Proposal {
        let (last, labels, sources) = (&self.last, &self.labels, &self.sources);
        let mut master = self.master.clone();
        let (mut parts, mut archived, mut record) = (Vec::new(), Vec::new(), last.clone());
        if let Some((sections, statements)) = fresh {
            record = sources.record.clone();
            let part = |it: &Section| (it.name.clone(), worded(it, labels));
            parts.extend(sections.iter().map(part));
            archived.extend(statements.iter().map(|it| line(it, labels)));
            let notes = count(sources.notes.len() as u64, "conversation", "conversations");
            let docs = count(sources.docs.len() as u64, "doc", "docs");
            master.source = format!("{notes}, {docs}");
        } else {
            parts.clone_from(&master.parts);
            parts.retain(|(name, text)| last.is_ours(name, text));
            // What a person edited or removed is known as it was last written.
            let is_ours = |name: &str| parts.iter().any(|it| it.0 == name);
            record.sections.retain(|it| !is_ours(&it.0));
        }
        let evidence = Evidence::new(&self.folder.root, self.git, &last.files);
        let (first, notes) = (&self.names[0], &sources.notes);
        let findings = master::mark(&mut parts, first, &evidence, notes, labels);
        record.files = evidence.named();
        let kept = master.renew(&parts, last, &mut record);
        report(self.folder, &kept, &findings, &archived);
        if master.head.is_empty() {
            let of = self.folder.scope.as_ref().map(|it| format!(": {it}"));
            master.head = format!("# Project memory{}", of.unwrap_or_default());
        }
        // A new date alone is no change.
        if master != self.master || master.date.is_empty() {
            master.date = sources.record.date.clone().unwrap_or_default();
        }
        let text = master.write(labels);
        Proposal {
            text,
            record,
            archived,
            kept,
        }
    }
}

/// A model may pass a note over; whoever wrote it should know.
fn say_uncited(sections: &[Section], notes: &[&Taken], labels: &BTreeMap<String, String>) {
    let statements = sections.iter().flat_map(|it| &it.statements);
    let cited: BTreeSet<_> = statements.flat_map(|it| &it.sessions).collect();
    let uncited = notes.iter().filter(|it| !cited.contains(&it.session));
    let uncited: Vec<_> = uncited.map(|it| labels[&it.session].as_str()).collect();
    if !uncited.is_empty() {
        let uncited = uncited.join(", ");
        eprintln!("no statement cites {uncited}; `--full` asks anew");
    }
}

/// All that a master is made of, with the oldest notes as far as they fit, at least one; and how
/// many that are.
fn printed(
    wanted: &Wanted<'_>,
    base: &str,
    notes: &[&Taken],
    sources: &Sources,
) -> (String, usize) {
    let worded = |notes: &[&Taken]| {
        let material = wanted.material(base, notes, Some(sources));
        safe(&redact(&format!("{}\n\n{material}", wanted.form())).text)
    };
    let room = SOURCES_MAX.saturating_sub(worded(&[]).len());
    let shown = groups(notes, room / 4)[0].len();
    (worded(&notes[..shown]), shown)
}

/// Adds what needs no note, and takes out secrets.
fn finish(sections: &mut [Section], sources: &Sources) -> u32 {
    let mut secrets = 0;
    let mut clean = |text: &mut String| {
        let redacted = redact(text);
        secrets += redacted.count;
        *text = text::without_tags(&redacted.text);
    };
    for statement in sections.iter_mut().flat_map(|it| &mut it.statements) {
        clean(&mut statement.text);
    }
    if let Some(first) = sections.first_mut() {
        first.lead = sources.lead();
        first.lead.as_mut().map(clean);
    }
    secrets
}

fn report(folder: &Folder, kept: &[String], findings: &BTreeSet<Finding>, archived: &[String]) {
    let mut out = String::new();
    for Finding { what, says } in findings {
        out += &format!("no longer as notes say: {what} ({says})\n");
    }
    for line in kept {
        out += &format!("{line}\n");
    }
    if !archived.is_empty() {
        let what = count(archived.len() as u64, "statement", "statements");
        let archive = folder.archive();
        let to = folder.name(&archive).display();
        out += &format!("no longer fits, goes to {to}/: {what}\n");
        for line in archived.iter().take(10) {
            out += &format!("  {line}\n");
        }
        if archived.len() > 10 {
            out += &format!("  and {} more\n", archived.len() - 10);
        }
    }
    print!("{}", safe(&out));
}

/// Line by line, without what would steer a terminal.
fn safe(text: &str) -> String {
    let is_fine = |it: &char| *it == '\n' || *it == '\t' || !text::is_unsafe(*it);
    text.chars().filter(is_fine).collect()
}
