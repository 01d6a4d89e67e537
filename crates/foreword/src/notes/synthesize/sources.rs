//! The sources of a synthesis: notes, documents, commits and the layout of the code, all bounded in
//! size.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use foreword_core::files;
use foreword_core::model::Millis;
use foreword_core::notes::evidence::Evidence;
use foreword_core::notes::record::{SynthesisRecord, hash};
use foreword_core::notes::synthesis::Taken;
use foreword_core::notes::{Folder, Note, NotesError};
use foreword_core::text::{self, count, flat};

use super::git::Git;

const DOCS_MAX: usize = 200;
const DOC_MAX: u64 = 1 << 20;
const DEPTH_MAX: usize = 4;
const DOCUMENTS: [&str; 4] = ["md", "txt", "rst", "adoc"];

pub struct Sources {
    pub notes: Vec<Taken>,
    /// Messages about notes that could not be read or have no points.
    pub problems: Vec<String>,
    /// Path, and headings with first lines.
    pub docs: Vec<(String, String)>,
    pub commits: Vec<String>,
    /// `Rust (Cargo.toml)`; empty where there is no code.
    pub languages: Vec<String>,
    pub folders: Vec<String>,
    /// Hashes of everything that was read, for the next run.
    pub record: SynthesisRecord,
    pub since: Option<String>,
}

impl Sources {
    pub fn gather(folder: &Folder, git: &Git<'_>, last: &SynthesisRecord, today: &str) -> Sources {
        let (files, errors) = folder.notes();
        let mut problems: Vec<_> = errors.iter().map(NotesError::to_string).collect();
        let mut record = SynthesisRecord {
            date: Some(today.to_owned()),
            head: git.head(),
            ..SynthesisRecord::default()
        };
        let mut notes = Vec::new();
        for file in files {
            let (note, _) = Note::read(&file.text);
            record.notes.insert(file.session.clone(), hash(&file.text));
            if note.points.is_empty() && note.others.is_empty() {
                let path = folder.name(&file.path).display();
                problems.push(format!("{path} has no points (`- Label: text`)"));
            }
            let at = note.times.get("").or(note.last.as_ref()).cloned();
            notes.push(Taken {
                session: file.session,
                at: at.unwrap_or_else(|| text::rfc3339(modified(&file.path).unwrap_or(0))),
                related: Evidence::related(&note.related),
                note,
            });
        }
        let mut docs = Vec::new();
        for (path, text) in documents(&folder.root) {
            record.docs.insert(path.clone(), hash(&text));
            docs.push((path, outline(&text)));
        }
        let (languages, folders) = layout(&folder.root);
        Sources {
            notes,
            problems,
            docs,
            commits: git.subjects(last.head.as_deref()),
            languages,
            folders,
            since: last.date.clone().filter(|_| last.head.is_some()),
            record,
        }
    }

    /// Whether a note, a document or a commit is new since the last synthesis.
    pub fn has_news(&self, last: &SynthesisRecord) -> bool {
        let moved = last.head != self.record.head && !self.commits.is_empty();
        last.notes != self.record.notes || last.docs != self.record.docs || moved
    }

    /// One line about the project: languages, folders and the last commit.
    pub fn lead(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.languages.is_empty() {
            parts.push(self.languages.join(", "));
            if !self.folders.is_empty() {
                parts[0] += &format!(", in {}", self.folders.join(", "));
            }
        }
        if let Some(last) = self.commits.first() {
            let last = text::shorten(last, 80);
            let number = count(self.commits.len() as u64, "commit", "commits");
            parts.push(match &self.since {
                Some(since) => format!("{number} since {since}, the last “{last}”"),
                None => format!("the last commit is “{last}”"),
            });
        }
        let line = text::capitalised(&parts.join("; "));
        (!line.is_empty()).then(|| format!("{}.", flat(&line)))
    }
}

fn modified(path: &Path) -> Option<Millis> {
    text::modified_at(&std::fs::metadata(path).ok()?)
}

/// `_docs/`, else `docs/`, and the README: path and text.
fn documents(root: &Path) -> BTreeMap<String, String> {
    let mut folders = ["_docs", "docs"].iter().map(|it| root.join(it));
    let folder = folders.find(|it| it.is_dir());
    let mut paths = folder.map_or_else(Vec::new, |it| below(&it, DEPTH_MAX));
    paths.retain(|path| {
        let ending = path.extension().unwrap_or_default();
        DOCUMENTS.iter().any(|it| *it == ending)
    });
    let readme = entries(root).into_iter().filter(|(path, is_dir)| {
        let name = path.file_stem().unwrap_or_default();
        !is_dir && name.eq_ignore_ascii_case("readme")
    });
    paths.extend(readme.map(|it| it.0));
    paths.sort();
    paths.truncate(DOCS_MAX);
    let read = |path: PathBuf| {
        let text = files::read_in(root, &path, DOC_MAX).and_then(files::text);
        let text = text.ok()?;
        let name = path.strip_prefix(root).ok()?.to_str()?.to_owned();
        Some((name, text))
    };
    paths.into_iter().filter_map(read).collect()
}

/// All files in a folder, and in its folders down to a depth.
fn below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let of = |(path, is_dir): (PathBuf, bool)| match (is_dir, depth) {
        (false, _) => vec![path],
        (true, 0) => Vec::new(),
        (true, _) => below(&path, depth - 1),
    };
    entries(folder).into_iter().flat_map(of).collect()
}

/// Files and folders, links not followed, hidden ones left out; by name.
fn entries(folder: &Path) -> Vec<(PathBuf, bool)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        match entry.file_type() {
            Ok(it) if !is_hidden && (it.is_dir() || it.is_file()) => {
                all.push((entry.path(), it.is_dir()));
            }
            _ => {}
        }
    }
    all.sort();
    all
}

/// Headings, each with the first line under it.
fn outline(doc: &str) -> String {
    let mut lines = Vec::new();
    let mut wanted = true;
    for line in doc.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let is_heading = line.starts_with('#');
        if is_heading || wanted {
            lines.push(text::shorten(&flat(line), 160).into_owned());
        }
        wanted = is_heading;
    }
    lines.truncate(30);
    lines.join("\n")
}

const MANIFESTS: &str = "Cargo.toml=Rust tsconfig.json=TypeScript package.json=JavaScript pyproject.toml=Python \
    requirements.txt=Python go.mod=Go pom.xml=Java build.gradle=Java build.gradle.kts=Kotlin Gemfile=Ruby \
    composer.json=PHP mix.exs=Elixir CMakeLists.txt=C/C++";
#[rustfmt::skip] // A list is read in a line.
const NOT_OURS: [&str; 7] = ["node_modules", "target", "dist", "build", "vendor", "_memory", "venv"];

const TSCONFIG: &str = "tsconfig.json";
const PACKAGE: &str = "package.json";
/// The most bytes of a package.json that are read.
const PACKAGE_MAX: u64 = 256 << 10;

/// Whether a project without a tsconfig.json is written in TypeScript: its package depends on the
/// compiler, or has such files at its top or in src/.
fn uses_typescript(root: &Path) -> bool {
    let package = files::read(&root.join(PACKAGE), PACKAGE_MAX).unwrap_or_default();
    let depends = String::from_utf8_lossy(&package).contains("\"typescript\"");
    let is_source = |(path, _): &(PathBuf, bool)| {
        let extension = path.extension().and_then(|it| it.to_str());
        matches!(extension, Some("ts" | "tsx" | "mts" | "cts"))
    };
    let folders = [root.to_owned(), root.join("src")];
    depends || folders.iter().any(|it| entries(it).iter().any(is_source))
}

fn layout(root: &Path) -> (Vec<String>, Vec<String>) {
    let manifests = MANIFESTS.split(' ').filter_map(|it| it.split_once('='));
    let there = manifests.filter(|it| root.join(it.0).is_file());
    let has_tsconfig = root.join(TSCONFIG).is_file();
    let is_typescript = has_tsconfig || uses_typescript(root);
    let languages = there.filter_map(|(file, name)| match file {
        PACKAGE if has_tsconfig => None,
        PACKAGE if is_typescript => Some(format!("TypeScript (`{file}`)")),
        _ => Some(format!("{name} (`{file}`)")),
    });
    let is_ours = |(path, is_dir): &(PathBuf, bool)| {
        let name = path.file_name().unwrap_or_default();
        *is_dir && !NOT_OURS.iter().any(|it| *it == name)
    };
    let folders = entries(root).into_iter().filter(is_ours).take(6);
    let name = |path: PathBuf| Some(format!("`{}/`", path.file_name()?.to_str()?));
    let folders = folders.filter_map(|it| name(it.0));
    (languages.collect(), folders.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typescript_project_is_called_so_with_or_without_its_settings() {
        let languages = |files: &[(&str, &str)]| {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = dir.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            layout(dir.path()).0.join(", ")
        };
        let package = ("package.json", "{}");
        assert_eq!(languages(&[package]), "JavaScript (`package.json`)");
        let settings = [package, ("tsconfig.json", "{}")];
        assert_eq!(languages(&settings), "TypeScript (`tsconfig.json`)");
        let depends = r#"{"devDependencies": {"typescript": "^5"}}"#;
        for typescript in [
            &[("package.json", depends)][..],
            &[package, ("src/cart.ts", "")],
            &[package, ("index.tsx", "")],
        ] {
            assert_eq!(languages(typescript), "TypeScript (`package.json`)");
        }
    }
}
