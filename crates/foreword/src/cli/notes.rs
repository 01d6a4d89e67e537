//! `foreword notes`: lists, exports and imports notes.

use std::fs;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use foreword_core::files::{self, ReadError};
use foreword_core::notes::archive::Archive;
use foreword_core::notes::{Folder, Note};
use foreword_core::project::Place;
use foreword_core::text::{self, count, one_line};
use serde_json::{Value, json};

use super::JsonArgs;
use crate::service;
use crate::{home, show};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Option<NotesAction>,
    /// Only a sub-area of the project
    #[arg(long, global = true)]
    scope: Option<String>,
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Subcommand)]
enum NotesAction {
    /// Write all notes, the master and the archive to one file; `-` is standard output
    Export { file: PathBuf },
    /// Import a file that `export` wrote; `-` is standard input
    Import {
        file: PathBuf,
        /// Replace notes that differ; the old text goes to archive/
        #[arg(long)]
        overwrite: bool,
    },
}

/// The memory in files of a project, or of one of its scopes.
pub fn folder_of(place: &Place, scope: Option<&str>) -> anyhow::Result<Folder> {
    let root = place.root.as_deref();
    let root = root.context("not a project directory; go to one and run this there")?;
    Ok(Folder::at(root, scope)?)
}

/// The memory in files of the current project.
pub fn folder_here(scope: Option<&str>) -> anyhow::Result<Folder> {
    folder_of(&service::current_place().unwrap_or_default(), scope)
}

/// Asks on a terminal whether to write; none if there is no terminal.
pub fn may_write(question: &str, yes: bool, dry_run: bool) -> anyhow::Result<Option<bool>> {
    if dry_run {
        eprintln!("Nothing was written: this was a dry run.");
        return Ok(Some(false));
    }
    if yes {
        return Ok(Some(true));
    }
    let answer = confirm(question)?;
    if answer == Some(false) {
        println!("Nothing was written.");
    }
    Ok(answer)
}

/// Asks a yes-no question on a terminal; none if there is no terminal.
pub fn confirm(question: &str) -> anyhow::Result<Option<bool>> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Ok(None);
    }
    print!("{question} [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let answer = answer.trim().to_lowercase();
    Ok(Some(matches!(answer.as_str(), "y" | "yes")))
}

/// The largest draft or archive that is read.
const INPUT_MAX: u64 = 64 << 20;

/// The text of a file, or of standard input for `-`.
pub fn input(what: &str, file: &Path) -> anyhow::Result<String> {
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        let mut stdin = std::io::stdin().take(INPUT_MAX + 1);
        let read = stdin.read_to_end(&mut bytes).map_err(ReadError::from);
        read.and_then(|read| match read as u64 {
            0..=INPUT_MAX => Ok(bytes),
            _ => Err(ReadError::TooLarge(INPUT_MAX)),
        })
    } else {
        files::read(file, INPUT_MAX)
    };
    match bytes.and_then(files::text) {
        Ok(text) => Ok(text),
        Err(ReadError::NotText) => bail!("{what} is not UTF-8; nothing was written"),
        Err(ReadError::TooLarge(_)) => {
            let max = INPUT_MAX >> 20;
            bail!("{what} is larger than {max} MB; nothing was written")
        }
        Err(ReadError::NotRegular) => {
            let file = file.display();
            bail!("{file} is not a regular file; to read from a pipe, give `-` and standard input")
        }
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = folder_here(args.scope.as_deref())?;
    match &args.action {
        None => list(&folder, args.json.json()),
        Some(NotesAction::Export { file }) => export(&folder, file),
        Some(NotesAction::Import { file, overwrite }) => {
            // Paths in an archive begin at the memory's top.
            import(&Folder::at(&folder.root, None)?, file, *overwrite)
        }
    }
}

fn list(folder: &Folder, as_json: bool) -> anyhow::Result<()> {
    let folders = match folder.scope {
        Some(_) => vec![folder.clone()],
        None => Folder::all(&folder.root)?,
    };
    let mut rows = Vec::new();
    for folder in folders {
        let (notes, errors) = folder.notes();
        for file in notes {
            let (note, problems) = Note::read(&file.text);
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            let path = folder.name(&file.path);
            rows.push(json!({
                "session": file.session, "scope": folder.scope, "path": path.to_string_lossy(),
                "title": note.title, "first": note.first, "last": note.last, "problems": problems,
            }));
        }
        for error in errors {
            rows.push(json!({
                "session": null, "scope": folder.scope, "path": null, "title": null,
                "first": null, "last": null, "problems": [error.to_string()],
            }));
        }
    }
    let words = || {
        if rows.is_empty() {
            "no notes yet; `foreword summarize` writes one\n".to_owned()
        } else {
            rows.iter().map(row).collect()
        }
    };
    show::print_recalled(as_json, || json!(rows), words);
    Ok(())
}

/// A note in a line, and what is wrong with it below.
fn row(row: &Value) -> String {
    let word = |value: &Value| one_line(value.as_str().unwrap_or("-"));
    let mut out = String::new();
    if row["path"].is_string() {
        let [last, title, path] = ["last", "title", "path"].map(|name| word(&row[name]));
        out = format!("{last:10}  {title}  {path}\n");
    }
    for problem in row["problems"].as_array().into_iter().flatten() {
        out += &format!("            {}\n", word(problem));
    }
    out
}

fn export(folder: &Folder, file: &Path) -> anyhow::Result<()> {
    let date = text::date(home::now());
    let (archive, errors) = Archive::of(folder, env!("CARGO_PKG_VERSION"), &date);
    if archive.files.is_empty() && errors.is_empty() {
        bail!("there are no notes in {}", folder.path.display());
    }
    let text = serde_json::to_string_pretty(&archive)? + "\n";
    let text = text::visible_json(&text);
    if file == Path::new("-") {
        print!("{text}");
    } else {
        let written = fs::File::create_new(file).and_then(|mut it| it.write_all(text.as_bytes()));
        written.with_context(|| format!("could not write {}", file.display()))?;
    }
    let files = count(archive.files.len() as u64, "file", "files");
    let secrets = match archive.redacted {
        0 => String::new(),
        secrets => format!(", {} replaced", count(secrets.into(), "secret", "secrets")),
    };
    eprintln!("{files} exported{secrets}");
    for error in &errors {
        eprintln!("{}", one_line(&error.to_string()));
    }
    if !errors.is_empty() {
        let files = count(errors.len() as u64, "file was", "files were");
        bail!("{files} left out");
    }
    Ok(())
}

fn import(folder: &Folder, file: &Path, overwrite: bool) -> anyhow::Result<()> {
    let text = input("the archive", file)?;
    let imported = Archive::read(&text)?.import(folder, overwrite)?;
    let list = |mark: &str, paths: &[PathBuf]| {
        for path in paths {
            let path = folder.name(path).to_string_lossy();
            println!("{mark} {}", one_line(&path));
        }
    };
    list("new      ", &imported.new);
    let differ = if overwrite { "replaced " } else { "differs  " };
    list(differ, &imported.differ);
    let same = count(imported.same as u64, "file was", "files were");
    println!("{} new; {same} the same", imported.new.len());
    if !imported.differ.is_empty() && !overwrite {
        let files = count(imported.differ.len() as u64, "file differs", "files differ");
        bail!("{files}: left alone; --overwrite replaces, and keeps the old text in archive/");
    }
    Ok(())
}
