//! `foreword install` and `foreword uninstall`

use std::path::PathBuf;

use anyhow::Context as _;

use super::consent;
use crate::home::{self, Home};
use crate::install::record::{self, Place, Record, Scope};
use crate::install::skills::{self, Task};
use crate::install::{self, SettingsFile, server};
use crate::provider;
use crate::show;

#[derive(clap::Args)]
pub struct InstallArgs {
    #[command(flatten)]
    which: Which,
    /// Who writes the memory: your claude CLI, a model over HTTP, or no model at all
    #[arg(long, value_name = "NAME", value_parser = consent::NAMES)]
    provider: Option<String>,
}

#[derive(clap::Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(clap::Args)]
struct Which {
    /// In this project's settings instead of the user's
    #[arg(long)]
    project: bool,
    /// Show what would change in the file, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Which {
    fn place(&self) -> anyhow::Result<Place> {
        if self.project {
            install::project_place()
        } else {
            install::user_place()
        }
    }
}

pub fn install(args: &InstallArgs) -> anyhow::Result<()> {
    // Whatever is wrong with either file is said before the first is touched.
    let list = Listing::read(&args.which)?;
    let after = list.with_us()?;
    connect(&args.which)?;
    list.replace(after, args.which.dry_run)?;
    let task = Task::Write {
        program: &install::program()?,
    };
    skills::settle(&args.which.place()?, task, args.which.dry_run)?;
    if !args.which.dry_run {
        let wanted = args.provider.as_deref().and_then(provider::Name::parse);
        consent::settle(&super::home()?, wanted)?;
        super::model::offer(&super::home()?);
    }
    Ok(())
}

fn connect(which: &Which) -> anyhow::Result<()> {
    let place = which.place()?;
    let program = install::program()?;
    let file = SettingsFile::read(&place)?;
    let earlier = Record::load(&super::home_to_look_at()?, &place);
    let plan = || {
        let before = file.text.as_deref().unwrap_or_default();
        let clean = match &file.text {
            Some(text) => install::without_us(text, earlier.as_ref())?,
            None => None,
        };
        let after = install::connect(before, clean.as_deref().unwrap_or_default(), &program)?;
        Ok::<_, anyhow::Error>((clean, after))
    };
    let (clean, after) = plan().with_context(|| file.path.display().to_string())?;
    let unchanged = file.text.as_deref() == Some(after.as_str());
    if unchanged && earlier.as_ref().is_some_and(|it| it.written == after) {
        println!(
            "Claude Code is connected already ({}).",
            file.path.display()
        );
        return Ok(());
    }
    if !unchanged {
        file.require_writable()?;
    }
    if which.dry_run {
        return dry_run(&file, Some(&after));
    }

    let home = super::home()?;
    let earlier_original = earlier.as_ref().and_then(Record::original);
    let backup = match (&clean, &earlier) {
        (None, _) => None,
        (Some(_), Some(earlier)) if earlier_original.as_ref() == Some(&clean) => {
            earlier.backup.clone()
        }
        (Some(clean), _) => Some(back_up(&home, clean)?),
    };
    let made = if unchanged {
        Vec::new()
    } else {
        file.replace(&after)?
    };
    let record = Record {
        settings: file.path.clone(),
        written: after,
        folders: match earlier {
            Some(earlier) if made.is_empty() => earlier.folders,
            _ => made,
        },
        backup,
    };
    record.save(&home, &place)?;
    println!("Claude Code is connected: {}", file.path.display());
    if file.is_link() {
        println!("  a link; written to {}", file.target.display());
    }
    println!("  hooks run {}", program.display());
    if let Some(backup) = &record.backup {
        println!("  the file as it was: {}", backup.display());
    }
    if place.scope == Scope::Project {
        println!("  in this project only, on this machine: others have the program elsewhere");
    }
    println!("Start a new session; `foreword status` shows what was captured.");
    Ok(())
}

/// The host's list of MCP servers, before our change of it.
struct Listing {
    place: Place,
    file: SettingsFile,
    record: Option<Record>,
}

impl Listing {
    fn read(which: &Which) -> anyhow::Result<Listing> {
        let place = server::place(&which.place()?)?;
        Ok(Listing {
            file: SettingsFile::read(&place)?,
            record: Record::load(&super::home_to_look_at()?, &place),
            place,
        })
    }

    fn with_us(&self) -> anyhow::Result<Option<String>> {
        let before = self.file.text.as_deref().unwrap_or_default();
        let after = server::connect(before, &install::program()?);
        let after = after.with_context(|| self.file.path.display().to_string())?;
        self.checked(Some(after))
    }

    fn without_us(&self) -> anyhow::Result<Option<String>> {
        let Some(text) = &self.file.text else {
            return Ok(None);
        };
        let after = server::without_us(text, self.record.as_ref());
        self.checked(after.with_context(|| self.file.path.display().to_string())?)
    }

    fn checked(&self, after: Option<String>) -> anyhow::Result<Option<String>> {
        if after != self.file.text {
            self.file.require_writable()?;
        }
        Ok(after)
    }

    fn replace(self, after: Option<String>, only_show: bool) -> anyhow::Result<()> {
        if after == self.file.text {
            return Ok(());
        }
        if only_show {
            print!(
                "{}",
                show::diff(
                    &self.file.target,
                    self.file.text.as_deref(),
                    after.as_deref()
                )
            );
            return Ok(());
        }
        let path = self.file.path.display();
        match after {
            Some(after) => {
                let folders = self.file.replace(&after)?;
                if self.file.text.is_none() {
                    let record = Record {
                        settings: self.file.path.clone(),
                        written: after,
                        backup: None,
                        folders,
                    };
                    record.save(&super::home()?, &self.place)?;
                }
            }
            None => self
                .file
                .remove(self.record.as_ref().map_or(&[], |it| it.folders.as_slice()))?,
        }
        println!("The list of MCP servers was changed: {path}");
        Ok(())
    }
}

pub fn uninstall(args: &UninstallArgs) -> anyhow::Result<()> {
    let list = Listing::read(&args.which)?;
    let after = list.without_us()?;
    let listed = list.place.clone();
    disconnect(&args.which, || {
        list.replace(after, args.which.dry_run)?;
        skills::settle(&args.which.place()?, Task::Remove, args.which.dry_run)?;
        if args.which.dry_run {
            return Ok(());
        }
        record::forget(&super::home_to_look_at()?, &listed)
    })
}

/// Takes the hooks out; `first` is done when nothing stands against it any more.
fn disconnect(which: &Which, first: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let place = which.place()?;
    let file = SettingsFile::read(&place)?;
    let home = super::home_to_look_at()?;
    let record = Record::load(&home, &place);
    let after = match &file.text {
        Some(text) => install::without_us(text, record.as_ref())
            .with_context(|| file.path.display().to_string())?,
        None => None,
    };
    if after != file.text {
        file.require_writable()?;
    }
    first()?;
    if after == file.text {
        if !which.dry_run {
            forget(&home, &place)?;
        }
        println!("Claude Code was not connected ({}).", file.path.display());
        return Ok(());
    }
    if which.dry_run {
        return dry_run(&file, after.as_deref());
    }

    let original = record.as_ref().and_then(Record::original);
    let restored = original.as_ref() == Some(&after);
    // What can be had again needs no copy: neither ours of the file as it was, now that it is
    // so again, nor the file with nothing but our hooks more.
    let backup = match &file.text {
        Some(text) if !restored => Some(back_up(&super::home()?, text)?),
        _ => None,
    };
    match &after {
        Some(after) => drop(file.replace(after)?),
        None => file.remove(record.as_ref().map_or(&[], |it| it.folders.as_slice()))?,
    }
    forget(&home, &place)?;
    if restored && let Some(copy) = record.and_then(|record| record.backup) {
        let _ = std::fs::remove_file(copy);
    }
    println!("Claude Code is disconnected: {}", file.path.display());
    if file.is_link() {
        println!("  a link; written to {}", file.target.display());
    }
    match (&after, backup) {
        (None, _) => println!("  the file is gone: there was none before"),
        (_, None) => println!("  the file is as it was before"),
        (_, Some(backup)) => {
            println!("  what was changed in it since stays");
            println!("  the file with the hooks: {}", backup.display());
        }
    }
    println!(
        "The memory stays in {}; remove that folder to forget everything.",
        home.dir().display()
    );
    Ok(())
}

/// What was written down about an install; the user's is also the word of consent.
fn forget(home: &Home, place: &Place) -> anyhow::Result<()> {
    if place.scope == Scope::User {
        consent::withdraw(home)?;
    }
    record::forget(home, place)
}

fn dry_run(file: &SettingsFile, after: Option<&str>) -> anyhow::Result<()> {
    print!("{}", show::diff(&file.target, file.text.as_deref(), after));
    eprintln!("Nothing was changed: this was a dry run.");
    Ok(())
}

/// Keeps a copy in the data directory.
fn back_up(home: &Home, text: &str) -> anyhow::Result<PathBuf> {
    let write = || {
        std::fs::create_dir_all(home.backups())?;
        let path = (home::now()..)
            .map(|now| home.backups().join(format!("claude-settings.{now}.json")))
            .find(|path| !path.exists())
            .context("the backups are full")?;
        std::fs::write(&path, text)?;
        Ok::<_, anyhow::Error>(path)
    };
    write().context("could not keep a copy of settings.json; nothing was changed")
}
