//! What a person does to the memory by hand: remember, edit, pin, hide, relate, forget, undo, export
//! and import. The commands, the MCP server and the viewer call these; the store does the work.
//!
//! Every text is redacted here before it is stored.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use anyhow::{Context as _, ensure};
use foreword_core::export::{Export, ImportSource, Imported, Whose};
use foreword_core::files::{self, SMALL_MAX};
use foreword_core::model::{Millis, ObservationType, Origin, Verdict};
use foreword_core::redact::thorough;
use foreword_core::store::{Change, Editable, HostSession, Store, ToRemember};

use super::{Reader, embed_client, home_to_write, memory_to_write};
use crate::home::Home;
use crate::host::claude_code::agent_files;
use crate::start;

/// Who changes the memory, as the journal names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Shell,
    Agent,
}

impl Who {
    fn as_str(self) -> &'static str {
        match self {
            Who::Shell => "shell",
            Who::Agent => "agent",
        }
    }
}

/// The longest text to remember, in characters. A document belongs in the repository.
const TEXT_MAX: usize = 4_000;
/// The longest title, in characters.
const TITLE_MAX: usize = 200;
/// The most facts, files or concepts of one observation.
const LIST_MAX: usize = 30;

/// A text to remember, as it was typed.
pub struct RememberRequest {
    pub text: String,
    pub title: Option<String>,
    pub kind: ObservationType,
    /// Whose words it is.
    pub origin: Origin,
    pub facts: Vec<String>,
    pub concepts: Vec<String>,
    pub files: Vec<String>,
    pub pin: bool,
    pub until: Option<Millis>,
}

/// What was remembered.
pub struct RememberedText {
    pub id: i64,
    /// False if an older observation has the same text.
    pub is_new: bool,
    /// How many secrets and private parts were taken out.
    pub redacted: u32,
}

/// Takes the secrets out of texts and counts them.
#[derive(Default)]
struct Redaction {
    count: u32,
}

impl Redaction {
    fn text(&mut self, text: &str) -> String {
        let redacted = thorough(text);
        self.count += redacted.count;
        redacted.text.into_owned()
    }

    fn list(&mut self, texts: &[String]) -> Vec<String> {
        let texts = texts.iter().map(|it| it.trim()).filter(|it| !it.is_empty());
        texts.map(|it| self.text(it)).collect()
    }
}

/// Opens the memory for writing. Creates the data directory, and refuses one where SQLite is not safe.
fn store_to_write() -> anyhow::Result<(Home, Store)> {
    let home = home_to_write()?;
    let store = memory_to_write(&home)?;
    Ok((home, store))
}

/// The worker indexes by meaning what is new.
fn wake_embedder(reader: &Reader) {
    if embed_client::is_installed(&reader.home) {
        start::wake_worker(&reader.home);
    }
}

/// Remembers a text in the reader's project. With `dry_run` only checks it.
pub fn remember(
    reader: &Reader,
    request: &RememberRequest,
    who: Who,
    dry_run: bool,
) -> anyhow::Result<RememberedText> {
    let length = request.text.chars().count();
    ensure!(!request.text.trim().is_empty(), "text is empty");
    ensure!(
        length <= TEXT_MAX,
        "text has {length} characters, more than {TEXT_MAX}; shorten it"
    );
    let project = reader.project();
    let project = project.context("not a project directory, so there is nowhere to remember it")?;
    ensure!(
        !reader.is_excluded(),
        "the user's settings exclude this project; nothing is written here"
    );
    let mut redaction = Redaction::default();
    let text = redaction.text(&request.text);
    ensure!(
        !text.replace("[private]", "").trim().is_empty(),
        "all of it is private, so nothing was kept"
    );
    let title = redaction.text(request.title.as_deref().unwrap_or_default().trim());
    check_title(&title)?;
    let files = request.files.iter();
    let files: Vec<String> = files.filter_map(|it| reader.place.name_of(it)).collect();
    let (facts, concepts) = (&request.facts, &request.concepts);
    for list in [facts, concepts, &files] {
        check_list(list)?;
    }
    let (facts, concepts) = (redaction.list(facts), redaction.list(concepts));
    let redacted = redaction.count;
    if dry_run {
        return Ok(RememberedText {
            id: 0,
            is_new: true,
            redacted,
        });
    }
    // Without a session of the host, each project has one session for all that is remembered.
    let session = match &reader.session {
        Some(session) => session.clone(),
        None => HostSession {
            host: "mcp".to_owned(),
            id: format!("said in {project}"),
        },
    };
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let seed = format!("said:{}", &hash[..16]);
    let (_, mut store) = store_to_write()?;
    let remembered = store.remember(&ToRemember {
        title: &title,
        kind: request.kind,
        origin: request.origin,
        facts,
        concepts,
        files,
        pin: request.pin,
        until: request.until,
        who: who.as_str(),
        ..ToRemember::of(&text, project, &session, seed, reader.now)
    })?;
    wake_embedder(reader);
    Ok(RememberedText {
        id: remembered.id,
        is_new: remembered.is_new,
        redacted,
    })
}

fn check_title(title: &str) -> anyhow::Result<()> {
    let length = title.chars().count();
    ensure!(
        length <= TITLE_MAX,
        "the title has {length} characters, more than {TITLE_MAX}; shorten it"
    );
    Ok(())
}

fn check_list(list: &[String]) -> anyhow::Result<()> {
    let length = list.len();
    ensure!(
        length <= LIST_MAX,
        "at most {LIST_MAX} facts, files or concepts each, not {length}"
    );
    Ok(())
}

/// Replaces the fields of observations. Returns the numbers of those that changed, and how many
/// secrets and private parts were taken out. With `dry_run` only checks them.
pub fn edit(
    reader: &Reader,
    wanted: Vec<(i64, Editable)>,
    who: Who,
    dry_run: bool,
) -> anyhow::Result<(Vec<i64>, u32)> {
    let mut redaction = Redaction::default();
    let mut cleared = Vec::new();
    for (id, it) in wanted {
        let title = redaction.text(it.title.trim());
        ensure!(!title.is_empty(), "#{id}: the title is empty");
        check_title(&title)?;
        for list in [&it.facts, &it.concepts] {
            check_list(list)?;
        }
        let narrative = redaction.text(it.narrative.trim());
        let length = narrative.chars().count();
        ensure!(
            length <= TEXT_MAX,
            "the text has {length} characters, more than {TEXT_MAX}; shorten it"
        );
        let edited = Editable {
            title,
            subtitle: redaction.text(it.subtitle.trim()),
            facts: redaction.list(&it.facts),
            narrative,
            concepts: redaction.list(&it.concepts),
            ..it
        };
        cleared.push((id, edited));
    }
    if dry_run {
        let ids = cleared.iter().map(|(id, _)| *id).collect();
        return Ok((ids, redaction.count));
    }
    let (_, mut store) = store_to_write()?;
    let changed = store.edit(&cleared, who.as_str(), reader.now)?;
    wake_embedder(reader);
    Ok((changed, redaction.count))
}

/// Pins observations or unpins them. Returns those that changed.
pub fn pin(reader: &Reader, ids: &[i64], on: bool, who: Who) -> anyhow::Result<Vec<i64>> {
    Ok(store_to_write()?.1.pin(ids, on, who.as_str(), reader.now)?)
}

/// Hides observations or shows them again. Returns those that changed.
pub fn hide(reader: &Reader, ids: &[i64], on: bool, who: Who) -> anyhow::Result<Vec<i64>> {
    Ok(store_to_write()?
        .1
        .hide(ids, on, who.as_str(), reader.now)?)
}

/// Stores what a person says about two observations.
pub fn relate(reader: &Reader, a: i64, b: i64, verdict: Verdict, who: Who) -> anyhow::Result<()> {
    Ok(store_to_write()?
        .1
        .relate(a, b, verdict, who.as_str(), reader.now)?)
}

/// Forgets items for good. Returns the numbers of those that existed.
pub fn forget(reader: &Reader, ids: &[i64]) -> anyhow::Result<Vec<i64>> {
    let (home, mut store) = store_to_write()?;
    let gone = store.forget(ids, reader.now)?;
    // The memory agent's conversations may repeat it; the store has deleted its own part of them.
    agent_files::sweep(&home, &[]);
    Ok(gone)
}

/// Forgets a project with all its items.
pub fn forget_project(reader: &Reader, project: i64) -> anyhow::Result<Vec<i64>> {
    let (home, mut store) = store_to_write()?;
    let gone = store.forget_project(project, reader.now)?;
    agent_files::sweep(&home, &[]);
    Ok(gone)
}

/// Takes back the last commands.
pub fn undo(reader: &Reader, commands: usize) -> anyhow::Result<Vec<Change>> {
    let undone = store_to_write()?.1.undo(commands)?;
    wake_embedder(reader);
    Ok(undone)
}

/// These items as an export that this data directory recognises as its own.
pub fn export(store: &Store, ids: &[i64]) -> anyhow::Result<Export> {
    let home = home_to_write()?;
    Ok(store.export(ids)?.proven(&export_key(&home)?))
}

/// Reads in an export. Its origins are kept if this data directory wrote it, or if the user says that
/// it is their own. With `dry_run` nothing is stored.
pub fn import(
    reader: &Reader,
    export: &Export,
    from: &str,
    mine: bool,
    dry_run: bool,
) -> anyhow::Result<Imported> {
    let (home, mut store) = store_to_write()?;
    let whose = match mine || export.is_proven(&export_key(&home)?) {
        true => Whose::Mine,
        false => Whose::Others,
    };
    let source = ImportSource {
        whose,
        from,
        who: Who::Shell.as_str(),
        dry_run,
    };
    let imported = store.import(export, &source, reader.now)?;
    wake_embedder(reader);
    Ok(imported)
}

/// The key by which this data directory recognises its own exports; made when it is first needed.
fn export_key(home: &Home) -> anyhow::Result<[u8; 32]> {
    let path = home.export_key();
    let read =
        || files::if_there(files::read(&path, SMALL_MAX)).context("could not read export.key");
    if let Some(key) = read()? {
        return key
            .try_into()
            .ok()
            .context("export.key is damaged; delete it, and a new one is made");
    }
    let random = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
    let key: [u8; 32] = *blake3::hash(random.map(uuid::Uuid::into_bytes).as_flattened()).as_bytes();
    let mut options = std::fs::OpenOptions::new();
    // Another process may have made it meanwhile.
    let made = options.write(true).create_new(true).mode(0o600).open(&path);
    match made {
        Ok(mut file) => {
            file.write_all(&key).context("could not write export.key")?;
            Ok(key)
        }
        Err(_) => {
            let key = read()?.and_then(|key| key.try_into().ok());
            key.context("could not write export.key in the data directory")
        }
    }
}
