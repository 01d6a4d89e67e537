//! `foreword synthesize`: makes the master of all notes, shows what changes, and asks.
//!
//! What it rests on, and what it wrote, is recorded; the order of writing (both records'
//! sections, the master, the record) leaves every crash with a master that is known as ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{IsTerminal as _, Read as _, Write as _};

use anyhow::{Context as _, bail};
use foreword_core::fault;
use foreword_core::notes::evidence::{Evidence, Finding};
use foreword_core::notes::master::{self, Kept, Master, labels, worded};
use foreword_core::notes::record::{Record, hash};
use foreword_core::notes::synthesis::{Section, Statement, Taken, fit, reply, synthesise};
use foreword_core::notes::{FOLDER, Folder};
use foreword_core::redact::redact;
use foreword_core::text::{self, count};
use similar::TextDiff;

use crate::ask::NoAnswer;
use crate::config::Config;
use crate::home;
use crate::provider::{self, Name};
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
/// Between a proposal and the record that it would leave.
const BEFORE_RECORD: &str = "\n<!-- what this rests on, for `foreword synthesize --accept`\n";

/// A master that could be written.
struct Proposal {
    text: String,
    record: Record,
    archived: Vec<String>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let here = std::env::current_dir().context("could not tell the current directory")?;
    let place = super::current_place().unwrap_or_default();
    let folder = Folder::at(
        place.root.as_deref().unwrap_or(&here),
        args.scope.as_deref(),
    )?;
    if !folder.path.is_dir() {
        let name = folder
            .path
            .strip_prefix(&folder.root)
            .unwrap_or(&folder.path);
        bail!(
            "there is no {}/ yet; `/summarize` in a conversation or `foreword summarize SESSION` writes the first note",
            name.display()
        );
    }
    let _lock = if args.dry_run || args.sources {
        None
    } else {
        Some(lock(&folder)?)
    };
    let last = Record::read(&lossy(&folder, "synthesis"));
    let old = folder.read(&folder.master())?;
    let git = Git::new(&folder.root);
    let today = text::date(home::now());
    let mut sources = Sources::gather(&folder, &git, &last, &today);
    for problem in &sources.problems {
        eprintln!("left out: {}", text::one_line(problem));
    }
    if args.accept {
        return accept(&folder, &sources, &last, old.as_deref());
    }
    if sources.notes.is_empty() {
        bail!("there is no note to make a master of; `/summarize` in a conversation writes one");
    }
    let mut master = Master::read(old.as_deref().unwrap_or_default());
    let wanted = args.sections.iter().map(|it| text::one_line(it));
    let wanted: Vec<_> = wanted.filter(|it| !it.is_empty()).collect();
    let names = if wanted.is_empty() {
        master.names(&last)
    } else {
        wanted
    };
    let labels = labels(sources.notes.iter().map(|it| it.session.as_str()));
    let evidence = Evidence::new(&folder.root, &git);
    let is_new = args.full || !args.sections.is_empty() || old.is_none() || sources.has_news(&last);

    let fresh = if args.sources || args.draft.is_some() || is_new {
        let home = super::home_to_look_at()?;
        let config = Config::load(&home)?;
        let max_tokens = config.notes.master_max_tokens;
        let wanted = Wanted {
            names: &names,
            labels: &labels,
            max_tokens,
        };
        if let (Some(project), Ok(Some(store))) = (&place.project, super::memory(&home)) {
            let _ = sources.remember(&store, project);
        }
        let (base, notes) = basis(args, &master, &last, &sources);
        if args.sources {
            print!(
                "{}\n\n{}",
                wanted.form(),
                printed(&wanted, &base, &notes, &sources)
            );
            return Ok(());
        }
        let mut sections = match &args.draft {
            Some(file) => drafted(file, &wanted)?,
            None => made(&config, &wanted, &base, &notes, &sources)?,
        };
        let secrets = finish(&mut sections, &sources);
        if secrets > 0 {
            eprintln!(
                "{} left out",
                count(secrets.into(), "secret was", "secrets were")
            );
        }
        let when = sources
            .notes
            .iter()
            .map(|it| (it.session.as_str(), &it.at))
            .collect();
        let archived = fit(&mut sections, &when, max_tokens);
        Some((sections, archived))
    } else {
        None
    };

    let (proposal, kept, findings) = propose(
        &folder,
        &mut master,
        &names,
        fresh,
        &last,
        &sources,
        &labels,
        &evidence,
    );
    report(&folder, &kept, &findings, &proposal.archived);
    let before = old.as_deref().unwrap_or_default();
    if proposal.text == before {
        let since = last.date.as_deref().filter(|_| !is_new);
        println!(
            "{}",
            since.map_or_else(
                || "nothing changes".into(),
                |it| format!("nothing new since {it}")
            )
        );
        if is_new && !args.dry_run {
            write_record(&folder, &proposal.record)?;
        }
        return Ok(());
    }
    print!("{}", safe(&diff(before, &proposal.text)));
    settle(args, &folder, &proposal, &last, before)
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
        let record = Record {
            master: Some(hash(before)),
            ..proposal.record.clone()
        };
        let archived: String = proposal
            .archived
            .iter()
            .map(|it| format!("archive {it}\n"))
            .collect();
        let text = format!("{}{BEFORE_RECORD}{record}{archived}-->\n", proposal.text);
        folder.write(&folder.path.join("proposal.md"), &text)?;
        let scope = folder.scope.as_ref().map(|it| format!(" --scope {it}"));
        let scope = scope.unwrap_or_default();
        println!(
            "Left as {FOLDER}/proposal.md; `foreword synthesize{scope} --accept` puts it in place."
        );
        return Ok(());
    }
    put(folder, proposal, last)
}

/// Where a model would carry on: the memory so far and the notes that are new, or nothing and all
/// notes, if what it rests on is no longer as it was.
fn basis<'a>(
    args: &Args,
    master: &Master,
    last: &Record,
    sources: &'a Sources,
) -> (String, Vec<&'a Taken>) {
    let news = last.news(&sources.record.notes);
    let known =
        |session: &String| sources.record.notes.contains_key(session) && !news.contains(session);
    let carries_on = !args.full && args.sections.is_empty() && last.notes.keys().all(known);
    let section = |(name, text): &(String, String)| format!("## {name}\n\n{text}\n\n");
    let base: String = master.parts.iter().map(section).collect();
    let mut notes: Vec<&Taken> = sources.notes.iter().collect();
    notes.sort_by_key(|it| (&it.at, &it.session));
    if !carries_on || last.notes.is_empty() || base.is_empty() {
        return (String::new(), notes);
    }
    notes.retain(|it| news.contains(&it.session));
    (foreword_core::notes::evidence::unmarked(&base), notes)
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

/// The master as it would be; without fresh sections only the marks are set anew.
fn propose(
    folder: &Folder,
    master: &mut Master,
    names: &[String],
    fresh: Option<(Vec<Section>, Vec<Statement>)>,
    last: &Record,
    sources: &Sources,
    labels: &BTreeMap<String, String>,
    evidence: &Evidence<'_>,
) -> (Proposal, Vec<Kept>, BTreeSet<Finding>) {
    let is_fresh = fresh.is_some();
    let (mut parts, archived) = match fresh {
        Some((sections, out)) => {
            let parts = sections
                .iter()
                .map(|it| (it.name.clone(), worded(it, labels)))
                .collect();
            let section = Section {
                statements: out,
                ..Section::default()
            };
            let lines = worded(&section, labels);
            let lines = lines.lines().filter(|it| it.starts_with("- "));
            (parts, lines.map(str::to_owned).collect())
        }
        None => {
            let ours = master
                .parts
                .iter()
                .filter(|(name, text)| last.is_ours(name, text));
            (ours.cloned().collect::<Vec<_>>(), Vec::new())
        }
    };
    let findings = master::mark(&mut parts, &names[0], evidence, &sources.notes, labels);
    let mut record = if is_fresh {
        sources.record.clone()
    } else {
        last.clone()
    };
    record.sections.clear();
    let before = master.clone();
    let mut kept = master.renew(&parts, last, &mut record);
    if is_fresh {
        kept.retain(|it| !it.new.is_empty());
    } else {
        // Those that a person edited are as they were; nothing new was made for them.
        let theirs = last
            .sections
            .iter()
            .filter(|it| !parts.iter().any(|part| part.0 == it.0));
        record.sections.extend(theirs.cloned());
        kept.clear();
    }
    if master.head.is_empty() {
        let of = folder.scope.as_ref().map(|it| format!(": {it}"));
        master.head = format!("# Project memory{}", of.unwrap_or_default());
    }
    let notes = count(sources.notes.len() as u64, "conversation", "conversations");
    let docs = count(sources.docs.len() as u64, "doc", "docs");
    if is_fresh {
        master.source = format!("{notes}, {docs}");
    }
    // A new date alone is no change.
    let changed = before != *master || before.date.is_empty();
    if changed {
        master.date = sources.record.date.clone().unwrap_or_default();
    }
    let text = master.write(labels);
    (
        Proposal {
            text,
            record,
            archived,
        },
        kept,
        findings,
    )
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
    } in kept
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
        let to = folder.archive();
        let to = to.strip_prefix(&folder.root).unwrap_or(&to).display();
        out += &format!("no longer fits, goes to {to}/: {what}\n");
        let shown = archived.iter().take(10);
        shown.for_each(|it| out += &format!("  {it}\n"));
    }
    print!("{}", safe(&out));
}

/// Puts a proposal in place, if everything that it rests on is as it was.
fn accept(
    folder: &Folder,
    sources: &Sources,
    last: &Record,
    old: Option<&str>,
) -> anyhow::Result<()> {
    let path = folder.path.join("proposal.md");
    let text = folder
        .read(&path)?
        .context("there is no proposal; `foreword synthesize` makes one")?;
    let parted = text.rsplit_once(BEFORE_RECORD);
    let (text, rest) = parted.context(
        "the proposal's last lines are missing; make a new one with `foreword synthesize`",
    )?;
    let record = Record::read(rest);
    let is_same = record.notes == sources.record.notes
        && record.docs == sources.record.docs
        && record.master.as_deref() == Some(&hash(old.unwrap_or_default()));
    if !is_same {
        bail!(
            "notes, documents or master.md changed since the proposal was made; run `foreword synthesize` again"
        );
    }
    let archived = rest.lines().filter_map(|it| it.strip_prefix("archive "));
    let proposal = Proposal {
        text: text.to_owned(),
        archived: archived.map(str::to_owned).collect(),
        record: Record {
            master: None,
            ..record
        },
    };
    put(folder, &proposal, last)
}

fn put(folder: &Folder, proposal: &Proposal, last: &Record) -> anyhow::Result<()> {
    archive(folder, proposal)?;
    let mut both = last.clone();
    both.sections
        .extend(proposal.record.sections.iter().cloned());
    write_record(folder, &both)?;
    fault::point("synthesis:before-master");
    folder.write(&folder.master(), &proposal.text)?;
    fault::point("synthesis:after-master");
    write_record(folder, &proposal.record)?;
    let _ = std::fs::remove_file(folder.path.join("proposal.md"));
    let path = folder.master();
    println!(
        "Wrote {}",
        path.strip_prefix(&folder.root).unwrap_or(&path).display()
    );
    Ok(())
}

/// Adds what fell out to the month's file, each line once.
fn archive(folder: &Folder, proposal: &Proposal) -> anyhow::Result<()> {
    let month = proposal
        .record
        .date
        .as_deref()
        .and_then(|it| it.get(..7))
        .unwrap_or("undated");
    let path = folder.archive().join(format!("{month}.md"));
    let there = folder.read(&path)?;
    let mut text = there
        .clone()
        .unwrap_or_else(|| format!("# No longer in the master: {month}\n\n"));
    for line in &proposal.archived {
        if !text.lines().any(|it| it == line) {
            text += &format!("{line}\n");
        }
    }
    if !proposal.archived.is_empty() && there.as_ref() != Some(&text) {
        folder.write(&path, &text)?;
    }
    Ok(())
}

fn write_record(folder: &Folder, record: &Record) -> anyhow::Result<()> {
    Ok(folder.write(&folder.path.join("synthesis"), &record.to_string())?)
}

/// Held by the folder itself, so that nothing is left behind; the kernel drops it with us.
fn lock(folder: &Folder) -> anyhow::Result<File> {
    let path = &folder.path;
    let file = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            bail!(
                "another synthesis is at work in {}; wait for its end",
                path.display()
            )
        }
        // Some file systems know no locks; renames keep the files whole there as well.
        Err(std::fs::TryLockError::Error(_)) => Ok(file),
    }
}

/// A file of the memory, whatever is in it.
fn lossy(folder: &Folder, name: &str) -> String {
    let bytes = std::fs::read(folder.path.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
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
