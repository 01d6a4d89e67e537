//! `foreword install` and `foreword uninstall`

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::home;
use crate::install;

#[derive(clap::Args)]
pub struct InstallArgs {}

#[derive(clap::Args)]
pub struct UninstallArgs {}

pub fn install(_args: &InstallArgs) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("could not find out where this program is")?;
    let path = install::settings_path()?;
    let before = read(&path)?;
    let after = install::connect(before.as_deref().unwrap_or_default(), &program)?;
    if before.as_deref() == Some(after.as_str()) {
        println!("Claude Code is connected already ({}).", path.display());
        return Ok(());
    }
    let backup = replace(&path, before.as_deref(), &after)?;
    println!("Claude Code is connected: {}", path.display());
    println!("  hooks run {}", program.display());
    if let Some(backup) = backup {
        println!("  the file as it was: {}", backup.display());
    }
    println!("Start a new session; `foreword status` shows what was captured.");
    Ok(())
}

pub fn uninstall(_args: &UninstallArgs) -> anyhow::Result<()> {
    let path = install::settings_path()?;
    let Some(before) = read(&path)? else {
        println!(
            "Claude Code was not connected: there is no {}.",
            path.display()
        );
        return Ok(());
    };
    let after = install::disconnect(&before)?;
    if before == after {
        println!("Claude Code was not connected.");
        return Ok(());
    }
    replace(&path, Some(&before), &after)?;
    println!("Claude Code is disconnected: {}", path.display());
    let home = super::home()?;
    println!(
        "The memory stays in {}; remove that folder to forget everything.",
        home.dir().display()
    );
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error)
            .with_context(|| format!("could not read {}; nothing was changed", path.display())),
    }
}

/// Writes the file whole or not at all, after a copy of the old one went to the backups.
fn replace(path: &Path, before: Option<&str>, after: &str) -> anyhow::Result<Option<PathBuf>> {
    let home = super::home()?;
    let backup = before
        .map(|before| {
            let name = format!("claude-settings.{}.json", home::now());
            let backup = home.backups().join(name);
            std::fs::create_dir_all(home.backups())?;
            std::fs::write(&backup, before)?;
            Ok::<_, std::io::Error>(backup)
        })
        .transpose()
        .context("could not keep a copy of settings.json; nothing was changed")?;
    // A linked settings file stays a link: its target is replaced.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    write_whole(&target, after)
        .with_context(|| format!("could not write {}; nothing was changed", target.display()))?;
    Ok(backup)
}

fn write_whole(target: &Path, text: &str) -> anyhow::Result<()> {
    let folder = target.parent().context("it has no folder")?;
    std::fs::create_dir_all(folder)?;
    let mode = match std::fs::metadata(target) {
        Ok(metadata) => {
            // Renaming over a file that its owner made read-only would go through; ask it first.
            std::fs::OpenOptions::new().append(true).open(target)?;
            metadata.permissions().mode()
        }
        Err(_) => 0o600,
    };
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(target)?;
    Ok(())
}
