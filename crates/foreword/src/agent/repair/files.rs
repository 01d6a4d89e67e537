//! Matches the files that a reply names with those of the events.
//!
//! A model writes paths as it likes: absolute, in backticks, with a line number. They
//! are brought into the form in which the offline provider stores them, relative to
//! the working tree's top, so that both kinds of memory use the same name for a file. Size,
//! time and hash of a file, as a hook measured them, are copied from its event.

use std::path::Path;

use foreword_core::model::{Event, FileRole, TouchedFile};
use foreword_core::text::is_unsafe;

use super::{is_placeholder, once};
use crate::agent::reply;

pub fn of_observation(found: &reply::ReplyBlock, events: &[&Event]) -> Vec<TouchedFile> {
    let known = Known::of(events);
    // In this order, so that a file that is named in both lists is a modified one.
    let lists = [
        (
            found.list(&["files_modified", "files_edited"], "file"),
            Some(FileRole::Modified),
        ),
        (found.list(&["files"], "file"), None),
        (found.list(&["files_read"], "file"), Some(FileRole::Read)),
    ];
    let mut files: Vec<TouchedFile> = Vec::new();
    for (written, role) in lists {
        for path in written.iter().filter_map(|written| known.path(written)) {
            if files.iter().all(|file| file.path != path) {
                files.push(known.file(path, role));
            }
        }
    }
    files
}

pub fn of_summary(found: &[String], events: &[&Event]) -> Vec<String> {
    let known = Known::of(events);
    once(found.iter().filter_map(|written| known.path(written)))
}

/// The files that the events touched, and the working trees in which they were.
struct Known {
    roots: Vec<String>,
    /// With relative paths, in order of time.
    files: Vec<TouchedFile>,
}

impl Known {
    fn of(events: &[&Event]) -> Known {
        let mut roots: Vec<String> = events.iter().filter_map(|it| it.root.clone()).collect();
        // The innermost first: one working tree may lie in another.
        roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
        roots.dedup();
        let files = events.iter().flat_map(|event| {
            event.files.iter().map(|file| TouchedFile {
                path: relative(&file.path, event.root.as_deref()),
                ..file.clone()
            })
        });
        Known {
            files: files.collect(),
            roots,
        }
    }

    /// The path for a text that the model wrote; none if it is no path.
    fn path(&self, written: &str) -> Option<String> {
        let bare = bare(written)?;
        let below = |root: &String| Some(relative(&bare, Some(root))).filter(|it| *it != bare);
        let path = self.roots.iter().find_map(below);
        let path = path.unwrap_or_else(|| bare.clone());
        let path = path.trim_start_matches("./").trim_end_matches('/');
        if path.is_empty() || path == "." {
            return None;
        }
        let is_known = self.files.iter().any(|file| file.path == path);
        let whole = self.only_one_ending_in(path).filter(|_| !is_known);
        let path = whole.unwrap_or(path);
        // "no files were changed" is no path, unless an event has a file of that name.
        let is_path = is_known || whole.is_some() || !path.contains(char::is_whitespace);
        is_path.then(|| path.to_owned())
    }

    /// `store.rs` is `src/store.rs` if no other `store.rs` was touched.
    fn only_one_ending_in(&self, path: &str) -> Option<&str> {
        let ending = format!("/{path}");
        let mut whole = self
            .files
            .iter()
            .map(|file| file.path.as_str())
            .filter(|known| known.ends_with(&ending));
        let first = whole.next()?;
        whole.all(|other| other == first).then_some(first)
    }

    /// The file as the last event measured it. Without a given role, the events decide it.
    fn file(&self, path: String, role: Option<FileRole>) -> TouchedFile {
        let mut of_path = self.files.iter().rev().filter(|file| file.path == path);
        let last = of_path.clone().next();
        let modified = of_path.clone().find(|file| file.role == FileRole::Modified);
        let role = role.unwrap_or(modified.map_or(FileRole::Read, |file| file.role));
        let known = of_path.find(|file| file.role == role).or(last);
        TouchedFile {
            role,
            size: known.and_then(|file| file.size),
            mtime: known.and_then(|file| file.mtime),
            hash: known.and_then(|file| file.hash.clone()),
            path,
        }
    }
}

/// A path relative to the project.
pub fn relative(path: &str, root: Option<&str>) -> String {
    let inside = root.and_then(|root| Path::new(path).strip_prefix(root).ok());
    inside.map_or_else(
        || path.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// A path without quotes, bullets, remarks and line numbers; none if it cannot be a path.
fn bare(written: &str) -> Option<String> {
    const LONGEST: usize = 400;
    let path = reply::without_bullet(written);
    // `src/a.rs` (new), src/a.rs - the parser
    let path = match path.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        Some((quoted, _)) => quoted,
        None => path.split(" (").next().unwrap_or(path),
    };
    let path = path.split(" - ").next().unwrap_or(path);
    let path = path.trim_matches(|c: char| c.is_whitespace() || "`\"',;*".contains(c));
    let path = without_line_number(path);
    let is_path = !is_placeholder(path)
        && path.len() <= LONGEST
        && !path.contains("://")
        && !path
            .chars()
            .any(|c| is_unsafe(c) || matches!(c, '<' | '>' | '|'));
    if !is_path {
        return None;
    }
    Some(if path.contains('/') {
        path.to_owned()
    } else {
        path.replace('\\', "/")
    })
}

/// `:12`, `:12:5`, `:12-40`, `#L12`, `#L12-L40`.
fn without_line_number(path: &str) -> &str {
    let numbers = |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | 'L');
    let head = path.trim_end_matches(numbers);
    let tail = &path[head.len()..];
    match tail.find(':') {
        Some(at) if tail[at + 1..].starts_with(|c: char| c.is_ascii_digit() || c == 'L') => {
            &path[..head.len() + at]
        }
        _ if tail.starts_with('L') && head.ends_with('#') => &head[..head.len() - 1],
        _ => path,
    }
}
