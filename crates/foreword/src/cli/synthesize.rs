//! `foreword synthesize`: makes the master of all notes, shows what changes, and asks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use foreword_core::notes::Folder;
use foreword_core::notes::evidence::{Evidence, Finding, unmarked};
use foreword_core::notes::master::{self, Kept, Master, labels, worded};
use foreword_core::notes::record::Record;
use foreword_core::notes::synthesis::{Section, Statement, Taken, fit, reply, synthesise};
use foreword_core::project::Place;
use foreword_core::redact::redact;
use foreword_core::text::{self, count};
use similar::TextDiff;

use crate::ask::NoAnswer;
use crate::config::Config;
use crate::home;
use crate::platform;
use crate::provider::{self, Name};
use crate::synthesize::files::{self, Proposal};
use crate::synthesize::git::Git;
use crate::synthesize::sources::Sources;
use crate::synthesize::{Wanted, by_model};

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
    draft: Option<String>,
}

/// Of the notes, so much is printed for an agent.
const SOURCES_TOKENS: usize = 24_000;
const DRAFT_MAX: u64 = 1 << 20;

/// What a run begins with.
struct State {
    folder: Folder,
    place: Place,
    last: Record,
    sources: Sources,
    old: Option<String>,
    master: Master,
    /// The sections, and how each note is cited.
    names: Vec<String>,
    labels: BTreeMap<String, String>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = folder(args)?;
    let looks_only = args.dry_run || args.sources;
    let _lock = (!looks_only).then(|| files::lock(&folder)).transpose()?;
    let git = Git::new(&folder.root);
    let mut state = State::look(args, &folder, &git)?;
    let before = state.old.clone().unwrap_or_default();

    let waiting = Proposal::waiting(&folder, &state.sources, &before)?;
    if args.accept {
        let (proposal, holds) =
            waiting.context("there is no proposal; `foreword synthesize` makes one")?;
        if !holds {
            bail!(
                "notes, documents or master.md changed since the proposal was made; run `foreword synthesize` again"
            );
        }
        return write(&folder, &proposal, &state.last);
    }
    if state.sources.notes.is_empty() {
        bail!("there is no note to make a master of; `/summarize` in a conversation writes one");
    }
    let is_asked = args.full || !args.sections.is_empty() || args.draft.is_some() || args.sources;
    let is_new = is_asked || state.old.is_none() || state.sources.has_news(&state.last);
    let head = &state.sources.record.head;
    let made = waiting.filter(|(it, holds)| *holds && !is_asked && it.record.head == *head);
    let proposal = if let Some((proposal, _)) = made {
        proposal
    } else {
        // What is asked and remembered is private, the project's memory is as public as the project.
        let fresh = match is_new {
            true => platform::keep_umask(|| state.fresh(args))?,
            false => None,
        };
        if args.sources {
            return Ok(());
        }
        let known = state.last.files.clone();
        let evidence = Evidence::new(&folder.root, &git, &known);
        state.propose(fresh, &evidence)
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
    print!("{}", safe(&diff(&before, &proposal.text)));
    settle(args, &folder, &proposal, &state.last, &before)
}

fn folder(args: &Args) -> anyhow::Result<Folder> {
    let here = std::env::current_dir().context("could not tell the current directory")?;
    let root = super::current_place()
        .and_then(|it| it.root)
        .unwrap_or(here);
    let folder = Folder::at(&root, args.scope.as_deref())?;
    if !folder.path.is_dir() {
        bail!(
            "there is no {}/ yet; `/summarize` in a conversation or `foreword summarize SESSION` writes the first note",
            below(&folder, &folder.path)
        );
    }
    Ok(folder)
}

fn below(folder: &Folder, path: &Path) -> String {
    path.strip_prefix(&folder.root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Writes it, asks first, or leaves it as a proposal.
fn settle(
    args: &Args,
    folder: &Folder,
    proposal: &Proposal,
    last: &Record,
    before: &str,
) -> anyhow::Result<()> {
    if args.dry_run {
        eprintln!("Nothing was written: this was a dry run.");
        return Ok(());
    }
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !args.yes && is_terminal {
        print!("Write master.md? [y/N] ");
        std::io::stdout().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        if !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            println!("Nothing was written.");
            return Ok(());
        }
    } else if !args.yes {
        proposal.leave(folder, before)?;
        let scope = folder.scope.as_ref().map(|it| format!(" --scope {it}"));
        println!(
            "Left as {}; `foreword synthesize{} --accept` puts it in place.",
            below(folder, &folder.path.join("proposal.md")),
            scope.unwrap_or_default()
        );
        return Ok(());
    }
    write(folder, proposal, last)
}

fn write(folder: &Folder, proposal: &Proposal, last: &Record) -> anyhow::Result<()> {
    proposal.write(folder, last)?;
    println!("Wrote {}", below(folder, &folder.master()));
    Ok(())
}

impl State {
    fn look(args: &Args, folder: &Folder, git: &Git<'_>) -> anyhow::Result<State> {
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
            folder: folder.clone(),
            place: super::current_place().unwrap_or_default(),
            last,
            sources,
            old,
            master,
            names,
        })
    }

    /// The sections as somebody makes them now, and what of it no longer fits. None if what they
    /// are made of was only to be printed.
    fn fresh(&mut self, args: &Args) -> anyhow::Result<Option<(Vec<Section>, Vec<Statement>)>> {
        let home = super::home_to_look_at()?;
        let config = Config::load(&home)?;
        if let (Some(project), Ok(Some(store))) = (&self.place.project, super::memory(&home)) {
            let _ = self.sources.remember(&store, project);
        }
        let wanted = Wanted {
            names: &self.names,
            labels: &self.labels,
            max_tokens: config.notes.master_max_tokens,
        };
        let sources = &self.sources;
        let (base, notes) = self.basis(args);
        if args.sources {
            let material = printed(&wanted, &base, &notes, sources);
            print!("{}\n\n{material}", wanted.form());
            return Ok(None);
        }
        let mut sections = match &args.draft {
            Some(file) => drafted(file, &wanted)?,
            None => made(&config, &wanted, &base, &notes, sources)?,
        };
        let secrets = finish(&mut sections, sources);
        if secrets > 0 {
            let what = count(secrets.into(), "secret was", "secrets were");
            eprintln!("{what} left out");
        }
        let when = sources.notes.iter().map(|it| (it.session.as_str(), &it.at));
        let archived = fit(&mut sections, &when.collect(), wanted.max_tokens);
        Ok(Some((sections, archived)))
    }

    /// Where a model would carry on: the memory so far and the notes that are new; or nothing and
    /// all notes, if what it rests on is no longer as it was.
    fn basis(&self, args: &Args) -> (String, Vec<&Taken>) {
        let now = &self.sources.record.notes;
        let news = self.last.news(now);
        let mut known = self.last.notes.keys();
        let carries_on = !args.full
            && args.sections.is_empty()
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
    fn propose(
        &self,
        fresh: Option<(Vec<Section>, Vec<Statement>)>,
        evidence: &Evidence<'_>,
    ) -> Proposal {
        let (last, labels, sources) = (&self.last, &self.labels, &self.sources);
        let is_fresh = fresh.is_some();
        let mut master = self.master.clone();
        let mut record = if is_fresh { &sources.record } else { last }.clone();
        let (mut parts, archived): (Vec<_>, Vec<_>) = if let Some((sections, statements)) = fresh {
            let parts = sections
                .iter()
                .map(|it| (it.name.clone(), worded(it, labels)));
            let out = Section {
                statements,
                ..Section::default()
            };
            let out = worded(&out, labels);
            let lines = out.lines().filter(|it| it.starts_with("- "));
            (parts.collect(), lines.map(str::to_owned).collect())
        } else {
            let ours = master.parts.iter();
            let ours = ours.filter(|(name, text)| last.is_ours(name, text));
            let ours: Vec<_> = ours.cloned().collect();
            // What a person edited or removed is known as it was last written.
            let is_ours = |name: &str| ours.iter().any(|it| it.0 == name);
            record.sections.retain(|it| !is_ours(&it.0));
            (ours, Vec::new())
        };
        if is_fresh {
            record.sections.clear();
        }
        let findings = master::mark(&mut parts, &self.names[0], evidence, &sources.notes, labels);
        record.files = evidence.named();
        let kept = master.renew(&parts, last, &mut record);
        report(&self.folder, &kept, &findings, &archived);
        if master.head.is_empty() {
            let of = self.folder.scope.as_ref().map(|it| format!(": {it}"));
            master.head = format!("# Project memory{}", of.unwrap_or_default());
        }
        if is_fresh {
            let notes = count(sources.notes.len() as u64, "conversation", "conversations");
            let docs = count(sources.docs.len() as u64, "doc", "docs");
            master.source = format!("{notes}, {docs}");
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
        }
    }
}

/// The newest notes as far as they fit.
fn printed(wanted: &Wanted<'_>, base: &str, notes: &[&Taken], sources: &Sources) -> String {
    let mut room = SOURCES_TOKENS;
    let fitting = notes.iter().rev().take_while(|it| {
        let cost = text::tokens(&it.note.to_string());
        let fits = cost <= room;
        room = room.saturating_sub(cost);
        fits
    });
    let mut fitting: Vec<_> = fitting.copied().collect();
    fitting.reverse();
    if fitting.len() < notes.len() {
        eprintln!(
            "{} of {} notes are shown, the newest",
            fitting.len(),
            notes.len()
        );
    }
    let material = wanted.material(base, &fitting, Some(sources));
    safe(&redact(&material).text)
}

fn drafted(file: &str, wanted: &Wanted<'_>) -> anyhow::Result<Vec<Section>> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().take(DRAFT_MAX).read_to_string(&mut text),
        _ => File::open(file).and_then(|it| it.take(DRAFT_MAX).read_to_string(&mut text)),
    };
    read.with_context(|| format!("could not read the draft {file}"))?;
    let reply = reply::read(&text, wanted.names, wanted.labels);
    let reply = reply.map_err(|why| anyhow::anyhow!("the draft cannot be used: {why}"))?;
    say_dropped(reply.dropped);
    Ok(reply.sections)
}

fn say_dropped(dropped: usize) {
    if dropped > 0 {
        let what = count(dropped as u64, "statement cites", "statements cite");
        eprintln!("left out: {what} no note that is there");
    }
}

/// By the model that was chosen, else offline.
fn made(
    config: &Config,
    wanted: &Wanted<'_>,
    base: &str,
    notes: &[&Taken],
    sources: &Sources,
) -> anyhow::Result<Vec<Section>> {
    let looked_at = super::home_to_look_at()?;
    let name = provider::choose(config, &looked_at).name;
    if name != Name::Offline {
        let home = super::home()?;
        eprintln!(
            "asking {} about {}",
            name.as_str(),
            count(notes.len() as u64, "note", "notes")
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        match runtime.block_on(by_model(&home, config, wanted, base, notes, sources)) {
            Ok(reply) => {
                say_dropped(reply.dropped);
                return Ok(reply.sections);
            }
            Err(NoAnswer::NoModel) => {}
            Err(why) => eprintln!("made offline: {}", text::one_line(&why.to_string())),
        }
    } else if notes.len() > 200 {
        eprintln!("comparing what {} notes say", notes.len());
    }
    Ok(synthesise(&sources.notes, wanted.names))
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

fn report(folder: &Folder, kept: &[Kept], findings: &BTreeSet<Finding>, archived: &[String]) {
    let mut out = String::new();
    for Finding { what, says } in findings {
        out += &format!("no longer as notes say: {what} ({says})\n");
    }
    for Kept {
        name,
        is_removed,
        new,
    } in kept.iter().filter(|it| !it.new.is_empty())
    {
        let why = if *is_removed {
            "left out, as you removed it:"
        } else {
            "kept your"
        };
        out += &format!("{why} `## {name}`; new there:\n  {}\n", new.join("\n  "));
    }
    if !archived.is_empty() {
        let what = count(archived.len() as u64, "statement", "statements");
        let to = below(folder, &folder.archive());
        out += &format!("no longer fits, goes to {to}/: {what}\n");
        let shown = archived.iter().take(10);
        shown.for_each(|it| out += &format!("  {it}\n"));
    }
    print!("{}", safe(&out));
}

fn diff(before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff()
        .context_radius(2)
        .header("master.md", "master.md, new")
        .to_string()
}

/// Line by line, without what would steer a terminal.
fn safe(text: &str) -> String {
    let is_fine = |it: &char| *it == '\n' || *it == '\t' || !text::is_unsafe(*it);
    text.chars().filter(is_fine).collect()
}
