//! `foreword install` and `foreword uninstall`

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;

use super::consent;
use crate::config::provider;
use crate::home::{self, Home};
use crate::host::claude_code::agent_files;
use crate::host::{
    self, CLIENTS, Client, InstallScope, Permission, READING_TOOLS, REMEMBER, SettingsPlace,
};
use crate::install::skills::{self, Task};
use crate::install::{self, InstallRecord, SettingsFile};
use crate::service;
use crate::show;
use crate::start;

#[derive(clap::Args)]
pub struct InstallArgs {
    #[command(flatten)]
    which: Which,
    /// Who writes the memory: your claude CLI, a model over HTTP, or no model at all
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(provider::names()))]
    provider: Option<String>,
    /// Let the agent read the memory without asking you each time: search, get_observations, timeline
    /// and recall
    #[arg(long, overrides_with = "no_allow_tools")]
    allow_tools: bool,
    /// Have the coding agent ask before each of these
    #[arg(long, overrides_with = "allow_tools")]
    no_allow_tools: bool,
}

impl InstallArgs {
    /// The user's answer to whether the tools that only read are allowed; none if there is none.
    fn allow_tools(&self, settings: &Target) -> anyhow::Result<Option<bool>> {
        if self.allow_tools || self.no_allow_tools {
            return Ok(Some(self.allow_tools));
        }
        let was_asked = settings.record.as_ref().is_some_and(|it| it.refused);
        if self.which.dry_run || was_asked || settings.tool_permission()? == Permission::Allowed {
            return Ok(None);
        }
        consent::ask_about_tools(settings.place.client)
    }
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
    /// The coding agent
    #[arg(long, value_name = "NAME", value_parser = client, hide = CLIENTS.len() == 1)]
    host: Option<&'static Client>,
}

fn client(name: &str) -> Result<&'static Client, String> {
    let names = CLIENTS.iter().map(|it| it.host.name).collect::<Vec<_>>();
    host::named(name).ok_or_else(|| format!("one of: {}", names.join(", ")))
}

impl Which {
    fn place(&self) -> anyhow::Result<SettingsPlace> {
        let client = self.host.unwrap_or_else(host::default_client);
        if self.project {
            install::project_place(client)
        } else {
            client.user_place()
        }
    }
}

pub fn install(args: &InstallArgs) -> anyhow::Result<()> {
    let (place, dry_run) = (args.which.place()?, args.which.dry_run);
    let program = install::program()?;
    // Read both files before changing the first, so that an error leaves both as they are.
    let list = Target::read(install::servers(&place)?)?;
    let insert = place.client.insert_server;
    let listed = list.plan(|text| Ok(Some(insert(text.unwrap_or_default(), &program)?)))?;
    let settings = Target::read(place.clone())?;
    let wanted = args.provider.as_deref().and_then(provider::Name::parse);
    let chosen = if dry_run {
        wanted
    } else {
        consent::choose_provider(&service::home_to_look_at()?, wanted)?
    };
    let allow_tools = args.allow_tools(&settings)?;
    let rule = |tool: &str| (place.client.rule)(tool, false);
    let reading = READING_TOOLS.iter().map(|tool| (rule(tool), allow_tools));
    // The agent that writes the memory calls `remember` in many turns.
    let remember = chosen.map(|name| name == provider::Name::Agent && !args.no_allow_tools);
    let decisions: Vec<_> = reading.chain([(rule(REMEMBER), remember)]).collect();
    connect(&settings, &program, &decisions, allow_tools, dry_run)?;
    relist(&list, listed, dry_run)?;
    let task = Task::Write { program: &program };
    skills::settle(&place, task, dry_run)?;
    if dry_run && allow_tools.is_none() {
        settings.say_whether_tools_are_allowed()?;
    }
    if !dry_run {
        consent::settle(&service::home_to_write()?, wanted, chosen)?;
        super::model::offer(&service::home_to_write()?);
    }
    Ok(())
}

/// A file of the host's that will be changed.
struct Target {
    place: SettingsPlace,
    file: SettingsFile,
    record: Option<InstallRecord>,
}

impl Target {
    fn read(place: SettingsPlace) -> anyhow::Result<Target> {
        Ok(Target {
            file: SettingsFile::read(&place.settings, place.scope)?,
            record: InstallRecord::load(&service::home_to_look_at()?, &place),
            place,
        })
    }

    /// The new text of the file; none if it is to be removed.
    fn plan(
        &self,
        plan: impl FnOnce(Option<&str>) -> anyhow::Result<Option<String>>,
    ) -> anyhow::Result<Option<String>> {
        let after = plan(self.file.text.as_deref());
        let after = after.with_context(|| self.file.path.display().to_string())?;
        if after != self.file.text {
            self.file.require_writable()?;
        }
        Ok(after)
    }

    /// Writes the file. Returns the folders that were created for it.
    fn write(&self, after: Option<&str>) -> anyhow::Result<Vec<PathBuf>> {
        match after {
            Some(after) => self.file.replace(after),
            None => {
                let folders = self.record.as_ref().map(|it| it.folders.as_slice());
                self.file.remove(folders.unwrap_or_default())?;
                Ok(Vec::new())
            }
        }
    }

    /// Whether the agent may call the tools that only read, where these settings hold.
    fn tool_permission(&self) -> anyhow::Result<Permission> {
        let root = match self.place.scope {
            InstallScope::User => None,
            InstallScope::Project => Some(install::project_root()?),
        };
        let client = self.place.client;
        Ok(client.tool_permission(root.as_deref(), READING_TOOLS, false))
    }

    fn show(&self, after: Option<&str>) {
        let before = self.file.text.as_deref();
        print!("{}", show::diff(&self.file.target, before, after));
    }

    fn say_whether_tools_are_allowed(&self) -> anyhow::Result<()> {
        let permission = self.tool_permission()?;
        println!("  {}", show::permission(permission, self.place.client));
        Ok(())
    }

    fn say_what_was_written(&self, what: &str) {
        let title = self.place.client.host.title;
        println!("{title} is {what}: {}", self.file.path.display());
        self.say_where_a_link_leads();
    }

    fn say_where_a_link_leads(&self) {
        if self.file.is_link() {
            println!("  a link; written to {}", self.file.target.display());
        }
    }
}

fn connect(
    settings: &Target,
    program: &Path,
    decisions: &[(String, Option<bool>)],
    allow_tools: Option<bool>,
    dry_run: bool,
) -> anyhow::Result<()> {
    let Target {
        place,
        file,
        record: earlier,
    } = settings;
    let (mut clean, mut rules) = (None, Vec::new());
    let after = settings.plan(|text| {
        if let Some(text) = text {
            clean = install::without_us(place.client, text, earlier.as_ref())?;
        }
        let before = text.unwrap_or_default();
        let clean = clean.as_deref().unwrap_or_default();
        let after = install::connect(place.client, before, clean, program)?;
        let (after, ours) =
            install::permit(place.client, before, &after, decisions, earlier.as_ref())?;
        rules = ours;
        Ok(Some(after))
    })?;
    let written = after.clone().unwrap_or_default();
    let unchanged = after == file.text;
    let refused = allow_tools.map_or_else(
        || earlier.as_ref().is_some_and(|it| it.refused),
        |allow| !allow,
    );
    let is_recorded = |record: &InstallRecord| {
        record.written == written && record.rules == rules && record.refused == refused
    };
    if unchanged && earlier.as_ref().is_some_and(is_recorded) {
        match (place.client.unread)(&written) {
            None => {
                let (title, path) = (place.client.host.title, file.path.display());
                println!("{title} is connected already ({path}).");
            }
            Some(why) => println!("{}", show::unread(place, &why)),
        }
        if !dry_run {
            settings.say_whether_tools_are_allowed()?;
        }
        return Ok(());
    }
    if dry_run {
        settings.show(after.as_deref());
        eprintln!("{DRY_RUN}");
        return Ok(());
    }

    let home = service::home_to_write()?;
    let earlier_original = earlier.as_ref().and_then(InstallRecord::original);
    let backup = match (&clean, earlier) {
        (None, _) => None,
        (Some(_), Some(earlier)) if earlier_original.as_ref() == Some(&clean) => {
            earlier.backup.clone()
        }
        (Some(clean), _) => Some(back_up(&home, place, clean)?),
    };
    let made = if unchanged {
        Vec::new()
    } else {
        settings.write(after.as_deref())?
    };
    let record = InstallRecord {
        settings: file.path.clone(),
        written,
        folders: match earlier {
            Some(earlier) if made.is_empty() => earlier.folders.clone(),
            _ => made,
        },
        backup,
        rules,
        refused,
    };
    record.save(&home, place)?;
    match (place.client.unread)(&record.written) {
        None => settings.say_what_was_written("connected"),
        Some(why) => {
            println!("{}", show::unread(place, &why));
            settings.say_where_a_link_leads();
        }
    }
    println!("  hooks run {}", program.display());
    if let Some(backup) = &record.backup {
        println!("  the file as it was: {}", backup.display());
    }
    if place.scope == InstallScope::Project {
        println!("  in this project only, on this machine: others have the program elsewhere");
    }
    settings.say_whether_tools_are_allowed()?;
    println!("Start a new session; `foreword status` shows what was captured.");
    Ok(())
}

/// Changes the host's list of MCP servers, if there is anything to change.
fn relist(list: &Target, after: Option<String>, dry_run: bool) -> anyhow::Result<()> {
    if after == list.file.text {
        return Ok(());
    }
    if dry_run {
        list.show(after.as_deref());
        return Ok(());
    }
    let folders = list.write(after.as_deref())?;
    // If the file is new, record that, so that `uninstall` can remove it.
    if let Some(written) = after.filter(|_| list.file.text.is_none()) {
        let record = InstallRecord {
            settings: list.file.path.clone(),
            written,
            backup: None,
            folders,
            rules: Vec::new(),
            refused: false,
        };
        record.save(&service::home_to_write()?, &list.place)?;
    }
    let path = list.file.path.display();
    println!("The list of MCP servers was changed: {path}");
    Ok(())
}

pub fn uninstall(args: &UninstallArgs) -> anyhow::Result<()> {
    let (place, dry_run) = (args.which.place()?, args.which.dry_run);
    let list = Target::read(install::servers(&place)?)?;
    let without = |list: &Target, us: WithoutUs| {
        let (client, record) = (list.place.client, list.record.as_ref());
        list.plan(|text| text.map_or(Ok(None), |text| us(client, text, record)))
    };
    let listed = without(&list, install::unlisted)?;
    let settings = Target::read(place)?;
    let after = without(&settings, install::without_us)?;
    // Both files were read and planned, so that an error has left both as they are.
    relist(&list, listed, dry_run)?;
    skills::settle(&settings.place, Task::Remove, dry_run)?;
    if !dry_run {
        let home = service::home_to_look_at()?;
        install::forget(&home, &list.place)?;
        if agent_files::has_transcripts(&home) {
            // A running worker could write to them again.
            start::alone(&home, || {
                agent_files::sweep(&home, &[]);
                Ok(())
            })?;
        }
    }
    disconnect(&settings, after, dry_run)
}

type WithoutUs = fn(&Client, &str, Option<&InstallRecord>) -> anyhow::Result<Option<String>>;

fn disconnect(settings: &Target, after: Option<String>, dry_run: bool) -> anyhow::Result<()> {
    let Target {
        place,
        file,
        record,
    } = settings;
    let home = service::home_to_look_at()?;
    if after == file.text {
        if !dry_run {
            forget(&home, place)?;
        }
        let (title, path) = (place.client.host.title, file.path.display());
        println!("{title} was not connected ({path}).");
        return Ok(());
    }
    if dry_run {
        settings.show(after.as_deref());
        eprintln!("{DRY_RUN}");
        return Ok(());
    }

    let original = record.as_ref().and_then(InstallRecord::original);
    let restored = original.as_ref() == Some(&after);
    // The current file is copied first, unless removing our hooks gives exactly the original file.
    let backup = match &file.text {
        Some(text) if !restored => Some(back_up(&service::home_to_write()?, place, text)?),
        _ => None,
    };
    settings.write(after.as_deref())?;
    forget(&home, place)?;
    let copy = record.as_ref().and_then(|record| record.backup.as_ref());
    if let Some(copy) = copy.filter(|_| restored) {
        let _ = std::fs::remove_file(copy);
    }
    settings.say_what_was_written("disconnected");
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

const DRY_RUN: &str = "Nothing was changed: this was a dry run.";

/// Removes the record of an install. For the user's settings this includes the chosen provider.
fn forget(home: &Home, place: &SettingsPlace) -> anyhow::Result<()> {
    if place.scope == InstallScope::User {
        consent::withdraw(home)?;
    }
    install::forget(home, place)
}

/// Keeps a copy in the data directory.
fn back_up(home: &Home, place: &SettingsPlace, text: &str) -> anyhow::Result<PathBuf> {
    let write = || {
        std::fs::create_dir_all(home.backups())?;
        let path = (home::now()..)
            .map(|now| format!("{}-settings.{now}.json", place.client.command))
            .map(|name| home.backups().join(name))
            .find(|path| !path.exists())
            .context("the backups are full")?;
        std::fs::write(&path, text)?;
        Ok::<_, anyhow::Error>(path)
    };
    write().context("could not keep a copy of the settings; nothing was changed")
}
