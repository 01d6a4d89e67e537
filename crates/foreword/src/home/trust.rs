//! Whether the data directory can be trusted: no other user owns it, can write to it, or can put
//! another one in its place.
//!
//! Its settings name programs that are run, so somebody who can write there can do everything that
//! its user can. Hooks check it each time, with one system call for each part of the path. Access
//! control lists are not looked at.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use foreword_core::text::shell_word;

use crate::platform;

/// The user that stands for those that a user namespace does not know.
const OVERFLOW_USER: u32 = 65_534;

const STICKY: u32 = 0o1000;

/// Why a directory cannot be trusted; none if it can, or if it does not exist and nobody else can make
/// another one where it would be.
pub fn distrust(dir: &Path) -> Option<String> {
    let us = platform::effective_user();
    let (shown, word) = (dir.display(), shell_word(dir));
    let elsewhere = "set FOREWORD_HOME to a directory of your own";
    if let Ok(found) = std::fs::metadata(dir) {
        if found.uid() != us {
            return Some(format!(
                "{shown} belongs to another user (uid {}), so nothing in it is used; {elsewhere}",
                found.uid()
            ));
        }
        if others_write(&found, us) {
            return Some(format!(
                "other users can write to {shown} (mode {:03o}), so nothing in it is used; look at what is \
                 in it, then run `chmod 700 {word}`",
                found.mode() & 0o777
            ));
        }
        // Others may enter it, so the modes of the files inside count, too.
        if found.mode() & 0o011 != 0
            && let Some((path, mode)) = writable_inside(dir, us)
        {
            return Some(format!(
                "other users can write to {} (mode {mode:03o}), so nothing in {shown} is used; look at what is \
                 in it, then run `chmod -R u+rwX,go= {word}`",
                path.display()
            ));
        }
    }
    let (above, is_linked) = unsafe_above(dir, us);
    let above = above.or_else(|| {
        let resolved = is_linked.then(|| dir.canonicalize().ok())??;
        unsafe_above(&resolved, us).0
    });
    above.map(|why| {
        format!("{why}, and could replace {shown}, so nothing in it is used; {elsewhere}")
    })
}

/// What another user could change on the way to a directory; and whether links lead there.
fn unsafe_above(dir: &Path, us: u32) -> (Option<String>, bool) {
    let mut is_linked = false;
    for part in dir.ancestors() {
        let Ok(mut found) = std::fs::symlink_metadata(part) else {
            continue;
        };
        let shown = part.display();
        if found.is_symlink() {
            is_linked = true;
            if !is_owner_safe(&found, us) {
                let why = format!("another user (uid {}) made the link {shown}", found.uid());
                return (Some(why), true);
            }
            match std::fs::metadata(part) {
                Ok(linked) => found = linked,
                Err(_) => continue,
            }
        }
        if part == dir {
            continue;
        }
        if !is_owner_safe(&found, us) {
            let why = format!("{shown} belongs to another user (uid {})", found.uid());
            return (Some(why), is_linked);
        }
        // In a sticky folder nobody but the owner of a file can rename or delete it.
        // Who is in the group of root is trusted as root is.
        let others = if found.gid() == 0 { 0o002 } else { 0o022 };
        let is_open = others_write(&found, us) && found.mode() & others != 0;
        if found.mode() & STICKY == 0 && is_open {
            let mode = found.mode() & 0o777;
            let why = format!("other users can write to {shown} (mode {mode:03o})");
            return (Some(why), is_linked);
        }
    }
    (None, is_linked)
}

/// A file or folder below `dir` that another user owns or can write.
fn writable_inside(dir: &Path, us: u32) -> Option<(PathBuf, u32)> {
    let mut wrong = wrong_modes(dir).into_iter();
    wrong.find(|(path, _)| {
        let found = std::fs::symlink_metadata(path);
        found.is_ok_and(|found| found.uid() != us || others_write(&found, us))
    })
}

fn is_owner_safe(found: &Metadata, us: u32) -> bool {
    let owner = found.uid();
    owner == us || owner == 0 || owner == OVERFLOW_USER && platform::is_in_user_namespace()
}

/// Whether others than the owner can write. The group that many systems give each user, with the
/// user's own number, has no other members.
fn others_write(found: &Metadata, us: u32) -> bool {
    let is_own_group = us != 0 && found.gid() == us;
    let others = if is_own_group { 0o002 } else { 0o022 };
    found.mode() & others != 0
}

/// Files that others may read, or that we ourselves may not.
pub fn wrong_modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    let mut wrong = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_symlink() {
            continue;
        }
        let mode = metadata.mode() & 0o777;
        let needed = if metadata.is_dir() { 0o700 } else { 0o600 };
        if mode & 0o077 != 0 || mode & needed != needed {
            wrong.push((path.clone(), mode));
        }
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        waiting.extend(entries.map(|entry| entry.path()));
    }
    wrong.sort();
    wrong
}
