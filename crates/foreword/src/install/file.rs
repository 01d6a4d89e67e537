//! A settings file, which is read as a whole and replaced atomically, or not touched at all.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use foreword_core::files::{self, SMALL_MAX};
use foreword_core::text::shell_word;

use crate::host::InstallScope;

/// A settings file and its text when it was read.
#[derive(Debug)]
pub struct SettingsFile {
    pub path: PathBuf,
    /// The file that a link at `path` leads to; `path` itself if there is no link.
    pub target: PathBuf,
    pub text: Option<String>,
    /// The permissions of a new file: a project's can be read by everybody, the user's own cannot.
    mode: u32,
}

impl SettingsFile {
    pub fn read(path: &Path, scope: InstallScope) -> anyhow::Result<SettingsFile> {
        let path = path.to_owned();
        let target = target(&path)?;
        let text = files::if_there(files::read_text(&target, SMALL_MAX))
            .with_context(|| format!("could not read {}; nothing was changed", path.display()))?;
        let mode = match scope {
            InstallScope::User => 0o600,
            InstallScope::Project => 0o644,
        };
        Ok(SettingsFile {
            path,
            target,
            text,
            mode,
        })
    }

    pub fn is_link(&self) -> bool {
        self.path != self.target
    }

    /// An error if the file is read-only. Renaming another file over it would succeed even then.
    pub fn require_writable(&self) -> anyhow::Result<()> {
        let Ok(metadata) = std::fs::metadata(&self.target) else {
            return Ok(());
        };
        let open = || std::fs::OpenOptions::new().append(true).open(&self.target);
        if metadata.permissions().readonly() || open().is_err() {
            let path = self.target.display();
            bail!(
                "{path} is read-only; nothing was changed. To allow it: `chmod u+w {}`",
                shell_word(&self.target)
            );
        }
        Ok(())
    }

    /// Writes the new text, and returns the folders that were created for it, the innermost first.
    pub fn replace(&self, text: &str) -> anyhow::Result<Vec<PathBuf>> {
        self.require_writable()?;
        let folders = self.missing_folders();
        self.write(text, &folders).with_context(|| {
            for folder in &folders {
                let _ = std::fs::remove_dir(folder);
            }
            let path = self.target.display();
            format!("could not write {path}; nothing was changed")
        })?;
        Ok(folders)
    }

    fn write(&self, text: &str, missing_folders: &[PathBuf]) -> anyhow::Result<()> {
        let folder = self
            .target
            .parent()
            .context("the settings file is in no folder")?;
        std::fs::create_dir_all(folder)?;
        // Everybody who may read the file may also enter its folder.
        let folder_mode = self.mode | ((self.mode & 0o444) >> 2);
        for folder in missing_folders {
            std::fs::set_permissions(folder, Permissions::from_mode(folder_mode))?;
        }
        let mode = std::fs::metadata(&self.target).map_or(self.mode, |it| it.permissions().mode());
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file()
            .set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        self.require_unchanged()?;
        file.persist(&self.target)?;
        Ok(())
    }

    /// Removes a file that an install created, and its folders.
    pub fn remove(&self, folders: &[PathBuf]) -> anyhow::Result<()> {
        self.require_writable()?;
        self.require_unchanged()?;
        std::fs::remove_file(&self.target).with_context(|| {
            format!(
                "could not remove {}; nothing was changed",
                self.target.display()
            )
        })?;
        for folder in folders {
            // This fails if there are other files in it, and the folder stays.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }

    /// An error if the file changed since it was read, because the host writes it, too.
    fn require_unchanged(&self) -> anyhow::Result<()> {
        if files::read_text(&self.target, SMALL_MAX).ok() != self.text {
            bail!("the file was changed by another program meanwhile; try again");
        }
        Ok(())
    }

    fn missing_folders(&self) -> Vec<PathBuf> {
        let folders = self.target.ancestors().skip(1);
        folders
            .take_while(|folder| !folder.exists())
            .map(Path::to_owned)
            .collect()
    }
}

/// The file that a link leads to, or the path itself; an error for a broken link.
fn target(path: &Path) -> anyhow::Result<PathBuf> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Ok(path.to_owned());
    };
    if metadata.is_symlink() {
        return std::fs::canonicalize(path).with_context(|| {
            let link = std::fs::read_link(path).unwrap_or_default();
            format!(
                "{} is a link to {}, which cannot be followed; nothing was changed",
                path.display(),
                link.display()
            )
        });
    }
    Ok(path.to_owned())
}
