//! The memory as a file that can be carried away, and read in again: all items but notes, which are
//! files already, with their sessions and projects.
//!
//! Items are matched by their UUID. An export carries a proof, which only the data directory that
//! wrote it can make. Without the proof it is somebody else's text: everything in it gets the origin
//! `import`, nothing of it is pinned or a rule of the user, and none of its sessions says what is open.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Transaction, named_params};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::db::Rows as _;
use crate::model::{
    Action, FileRole, Kind, Millis, ObservationType, Origin, SessionState, TouchedFile,
};
use crate::redact::thorough;
use crate::store::observations::{set_concepts, set_files};
use crate::store::sessions::SessionRow;
use crate::store::{Item, ItemBody, Store, hands, json};
use crate::text;

/// The most bytes of text in an item that is read in.
const ITEM_MAX: usize = 256 * 1024;
/// The provider of items that were read in.
const IMPORTED: &str = "import";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The format of the file.
    pub foreword_export: u32,
    /// Shows that this data directory wrote the rest.
    pub proof: String,
    pub projects: Vec<ExportedProject>,
    pub sessions: Vec<ExportedSession>,
    pub items: Vec<ExportedItem>,
}

/// The format that this program writes and reads.
const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedProject {
    pub name: String,
    pub keys: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedSession {
    /// The host's id.
    pub session: String,
    pub host: String,
    /// A key of its project.
    pub project: Option<String>,
    pub state: SessionState,
    pub title: Option<String>,
    pub subtitle: Option<String>,
    pub open: Vec<String>,
    pub given_up: Vec<String>,
    pub digest_by: Option<String>,
    pub branch: Option<String>,
    pub started_at: String,
    pub last_event_at: String,
}

/// An item. A summary has its request as title, what was completed as subtitle, its other fields as
/// facts and its notes as narrative; a prompt has its text as narrative and the reply as its fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedItem {
    pub id: i64,
    pub uuid: String,
    pub kind: Kind,
    pub r#type: Option<ObservationType>,
    pub title: String,
    pub subtitle: String,
    pub facts: Vec<String>,
    pub narrative: String,
    pub concepts: Vec<String>,
    pub files_read: Vec<String>,
    pub files_modified: Vec<String>,
    /// The host's id.
    pub session: String,
    pub host: String,
    /// The number of its prompt in the session.
    pub prompt: Option<u32>,
    pub origin: Option<Origin>,
    pub author: Option<String>,
    pub created_at: String,
    pub pinned: bool,
    pub hidden: bool,
    pub until: Option<String>,
    /// The UUID of the observation that replaced it.
    pub superseded_by: Option<String>,
    pub imported_from: Option<String>,
}

/// The fields of a summary that stand among its facts.
const INVESTIGATED: &str = "Investigated: ";
const LEARNED: &str = "Learned: ";
const NEXT_STEPS: &str = "Next steps: ";

/// Why a file was not read in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("this is not an export of Foreword: {0}")]
    NotAnExport(serde_json::Error),
    #[error("this export has the format {0}, and this program reads {FORMAT}; update Foreword")]
    OtherFormat(u32),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// What came of an import, in items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    pub read: usize,
    pub new: usize,
    /// They were there already, and are unchanged.
    pub known: usize,
    /// They were not stored: they were forgotten, a part is missing, or they are too large.
    pub skipped: usize,
    /// Those of them that were forgotten, and stay so.
    pub forgotten: usize,
    /// They had the origin `user` or `agent`, or were pinned, and now are of origin `import`.
    pub lowered: usize,
    /// The names of the projects they belong to.
    pub projects: BTreeSet<String>,
}

/// Whose memory an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The user's own: origins and pins are kept.
    Mine,
    Others,
}

/// Where an export comes from, and what to do with it.
#[derive(Debug, Clone, Copy)]
pub struct ImportSource<'a> {
    pub whose: Whose,
    /// The name of the file, which items of somebody else are marked with.
    pub from: &'a str,
    /// Who imports it: `shell`, `agent` or `viewer`.
    pub who: &'a str,
    /// Whether nothing is stored.
    pub dry_run: bool,
}

impl Export {
    /// Parses a file.
    pub fn read(json: &[u8]) -> Result<Export, ImportError> {
        #[derive(Deserialize)]
        struct Head {
            foreword_export: u32,
        }
        let head: Head = serde_json::from_slice(json).map_err(ImportError::NotAnExport)?;
        if head.foreword_export != FORMAT {
            return Err(ImportError::OtherFormat(head.foreword_export));
        }
        serde_json::from_slice(json).map_err(ImportError::NotAnExport)
    }

    /// Shows that whoever has this key wrote the export.
    #[must_use]
    pub fn proven(self, key: &[u8; 32]) -> Export {
        let proof = self.proof_by(key);
        Export { proof, ..self }
    }

    /// Whether it was written with this key, and not changed since.
    pub fn is_proven(&self, key: &[u8; 32]) -> bool {
        let proof = blake3::Hash::from_hex(&self.proof);
        // Hashes are compared in constant time.
        let expected = blake3::Hash::from_hex(self.proof_by(key));
        matches!((proof, expected), (Ok(proof), Ok(expected)) if proof == expected)
    }

    fn proof_by(&self, key: &[u8; 32]) -> String {
        let content = serde_json::to_vec(&(&self.projects, &self.sessions, &self.items));
        let hash = blake3::keyed_hash(key, &content.unwrap_or_default());
        hash.to_hex().to_string()
    }
}

impl Store {
    /// These items, with their sessions and projects. Notes are left out.
    pub fn export(&self, ids: &[i64]) -> rusqlite::Result<Export> {
        let mut export = Export {
            foreword_export: FORMAT,
            ..Export::default()
        };
        for &id in ids {
            let item = self.item(id)?;
            let item = item.filter(|it| it.body.kind() != Kind::Note);
            if let Some(item) = item {
                export.items.push(self.exported(item)?);
            }
        }
        let sessions: BTreeSet<_> = export
            .items
            .iter()
            .map(|it| (&it.host, &it.session))
            .collect();
        for (host, session) in sessions {
            export.sessions.push(self.connection.one(
                "select host_session_id as session, host, state, title, subtitle, open, given_up,
                        digest_by, branch,
                        (select min(key) from project_keys k where k.project_id = s.project_id) as project,
                        strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000, 'unixepoch') as started_at,
                        strftime('%Y-%m-%dT%H:%M:%SZ', last_event_at / 1000, 'unixepoch') as last_event_at
                 from sessions s
                 where host = :host and host_session_id = :session",
                named_params! {":host": host, ":session": session},
            )?);
        }
        let keys: BTreeSet<_> = export
            .sessions
            .iter()
            .filter_map(|it| it.project.as_deref())
            .collect();
        export.projects = self.connection.all(
            "select p.name,
                    (select json_group_array(key order by key) from project_keys k where k.project_id = p.id) as keys
             from projects p
             where p.id in (
                 select project_id from project_keys where key in (select value from json_each(:keys)))
             order by p.id",
            named_params! {":keys": json(&keys)?},
        )?;
        Ok(export)
    }

    fn exported(&self, item: Item) -> rusqlite::Result<ExportedItem> {
        let (host, superseded_by): (String, Option<String>) = self.connection.one(
            "select coalesce(
                        (select host from sessions where id = coalesce(
                            (select session_id from observations where id = :id),
                            (select session_id from prompts where id = :id),
                            (select session_id from summaries where id = :id))),
                        ''),
                    (select uuid from items where id = (select superseded_by from observations where id = :id))",
            named_params! {":id": item.id},
        )?;
        let mut out = ExportedItem {
            id: item.id,
            uuid: item.uuid,
            kind: item.body.kind(),
            r#type: None,
            title: String::new(),
            subtitle: String::new(),
            facts: Vec::new(),
            narrative: String::new(),
            concepts: Vec::new(),
            files_read: Vec::new(),
            files_modified: Vec::new(),
            session: item.session,
            host,
            prompt: item.prompt_number,
            origin: None,
            author: None,
            created_at: text::rfc3339(item.at),
            pinned: false,
            hidden: false,
            until: None,
            superseded_by,
            imported_from: None,
        };
        match item.body {
            ItemBody::Observation(it) => {
                out.r#type = Some(it.r#type);
                out.title = it.title;
                out.subtitle = it.subtitle;
                out.facts = it.facts;
                out.narrative = it.narrative;
                out.concepts = it.concepts;
                out.files_read = it.files_read;
                out.files_modified = it.files_modified;
                out.origin = Some(it.origin);
                out.pinned = it.pinned_at.is_some();
                out.hidden = it.hidden_at.is_some();
                out.until = it.until.map(text::rfc3339);
                out.imported_from = it.imported_from;
            }
            ItemBody::Summary(it) => {
                out.title = it.request;
                out.subtitle = it.completed;
                let facts = [
                    (INVESTIGATED, it.investigated),
                    (LEARNED, it.learned),
                    (NEXT_STEPS, it.next_steps),
                ];
                let facts = facts.iter().filter(|(_, text)| !text.is_empty());
                out.facts = facts
                    .map(|(label, text)| format!("{label}{text}"))
                    .collect();
                out.narrative = it.notes;
                out.files_read = it.files_read;
                out.files_modified = it.files_edited;
            }
            ItemBody::Prompt(it) => {
                out.title = text::title(&it.text);
                out.narrative = it.text;
                out.facts = it.reply.into_iter().collect();
            }
            ItemBody::Note(_) => {}
        }
        Ok(out)
    }

    /// Stores the items that are neither known nor forgotten, in one transaction.
    pub fn import(
        &mut self,
        export: &Export,
        source: &ImportSource<'_>,
        now: Millis,
    ) -> rusqlite::Result<Imported> {
        let tx = self.connection.transaction()?;
        let mut import = Import {
            at: hands::next_time(&tx, now)?,
            tx: &tx,
            source,
            now,
            sessions: BTreeMap::new(),
            export,
            imported: Imported::default(),
        };
        // A summary and an observation refer to their prompt.
        for kind in [Kind::Prompt, Kind::Observation, Kind::Summary, Kind::Note] {
            for item in export.items.iter().filter(|it| it.kind == kind) {
                import.item(item)?;
            }
        }
        import.supersede()?;
        let imported = import.imported;
        if !source.dry_run {
            tx.commit()?;
        }
        Ok(imported)
    }
}

/// An import under way.
struct Import<'a> {
    tx: &'a Transaction<'a>,
    export: &'a Export,
    source: &'a ImportSource<'a>,
    now: Millis,
    /// The time of the import in the journal.
    at: Millis,
    /// The rows of the sessions that were needed so far, by host and the host's id; none if the export
    /// lacks the session.
    sessions: BTreeMap<(String, String), Option<SessionRow>>,
    imported: Imported,
}

/// What happens to one item.
enum Fate {
    New(i64),
    Known,
    Forgotten,
    Skipped,
}

impl Import<'_> {
    fn item(&mut self, item: &ExportedItem) -> rusqlite::Result<()> {
        self.imported.read += 1;
        match self.store(item)? {
            Fate::New(id) => {
                self.imported.new += 1;
                let trusted = matches!(item.origin, Some(Origin::User | Origin::Agent));
                let lowered = self.source.whose == Whose::Others && (trusted || item.pinned);
                self.imported.lowered += usize::from(lowered);
                hands::note(self.tx, id, Action::Import, None, self.source.who, self.at)?;
            }
            Fate::Known => self.imported.known += 1,
            Fate::Forgotten => {
                self.imported.forgotten += 1;
                self.imported.skipped += 1;
            }
            Fate::Skipped => self.imported.skipped += 1,
        }
        Ok(())
    }

    fn store(&mut self, item: &ExportedItem) -> rusqlite::Result<Fate> {
        let (Ok(uuid), Some(at)) = (Uuid::parse_str(&item.uuid), text::millis(&item.created_at))
        else {
            return Ok(Fate::Skipped);
        };
        let uuid = uuid.to_string();
        let (known, forgotten): (bool, bool) = self.tx.one(
            "select exists (
                        select 1
                        from items i
                        where uuid = :uuid
                          and (exists (select 1 from observations where id = i.id)
                               or exists (select 1 from summaries where id = i.id)
                               or exists (select 1 from prompts where id = i.id)
                               or exists (select 1 from notes where id = i.id))),
                    exists (select 1 from forgotten where uuid = :uuid)",
            named_params! {":uuid": uuid},
        )?;
        if forgotten {
            return Ok(Fate::Forgotten);
        }
        if known {
            return Ok(Fate::Known);
        }
        let is_usable = json(item)?.len() <= ITEM_MAX
            && !item.session.is_empty()
            && match item.kind {
                Kind::Observation => item.r#type.is_some() && !item.title.trim().is_empty(),
                Kind::Summary | Kind::Prompt => item.prompt.is_some(),
                Kind::Note => false,
            };
        let session = match is_usable {
            true => self.session(&item.host, &item.session)?,
            false => None,
        };
        let Some(session) = session else {
            return Ok(Fate::Skipped);
        };
        let prompt: Option<i64> = self.tx.first(
            "select id from prompts where session_id = :session and number = :number",
            named_params! {":session": session.id, ":number": item.prompt},
        )?;
        // A prompt has at most one summary.
        let is_taken = item.kind == Kind::Summary
            && prompt.is_none_or(|prompt| {
                let taken = "select 1 from summaries where prompt_id = :prompt";
                let taken: rusqlite::Result<Option<i64>> =
                    self.tx.first(taken, named_params! {":prompt": prompt});
                !matches!(taken, Ok(None))
            });
        if is_taken {
            return Ok(Fate::Skipped);
        }
        // A number without an item is left by one that the worker withdrew.
        let id: i64 = self.tx.one(
            "insert into items (uuid, kind) values (:uuid, :kind)
             on conflict (uuid) do update set kind = excluded.kind
             returning id",
            named_params! {":uuid": uuid, ":kind": item.kind},
        )?;
        let at = at.min(self.now);
        match item.kind {
            Kind::Observation => self.observation(id, item, &session, prompt, at)?,
            Kind::Summary => self.summary(id, item, &session, prompt, at)?,
            Kind::Prompt | Kind::Note => self.prompt(id, item, &session, at)?,
        }
        Ok(Fate::New(id))
    }

    fn observation(
        &self,
        id: i64,
        item: &ExportedItem,
        session: &SessionRow,
        prompt: Option<i64>,
        at: Millis,
    ) -> rusqlite::Result<()> {
        let mine = self.source.whose == Whose::Mine;
        let origin = item.origin.filter(|_| mine).unwrap_or(Origin::Import);
        // A text that was remembered on request belongs to no prompt.
        let on_request = origin == Origin::User && item.prompt.is_none();
        let from = item.imported_from.as_deref();
        let from = if mine { from } else { Some(self.source.from) };
        let pinned = mine && item.pinned;
        let concepts = cleared_all(&item.concepts);
        self.tx.run(
            "insert into observations
                 (id, session_id, project_id, prompt_id, seed, type, title, subtitle, facts, narrative,
                  concepts, origin, provider, events, at, pinned_at, hidden_at, until, imported_from)
             values
                 (:id, :session, :project, :prompt, :seed, :type, :title, :subtitle, :facts, :narrative,
                  :concepts, :origin, :provider, '[]', :at, iif(:pinned, :now, null),
                  iif(:hidden, :now, null), :until, :from)",
            named_params! {
                ":id": id,
                ":session": session.id,
                ":project": session.project_id,
                ":prompt": prompt,
                ":seed": format!("import:{}", item.uuid),
                ":type": item.r#type,
                ":title": cleared(&item.title),
                ":subtitle": cleared(&item.subtitle),
                ":facts": json(&cleared_all(&item.facts))?,
                ":narrative": cleared(&item.narrative),
                ":concepts": json(&concepts)?,
                ":origin": origin,
                ":provider": if on_request { Origin::User.as_str() } else { IMPORTED },
                ":at": at,
                ":now": self.at,
                ":pinned": pinned,
                ":hidden": item.hidden,
                ":until": item.until.as_deref().and_then(text::millis),
                ":from": from,
            },
        )?;
        let file = |role| {
            move |path: &String| TouchedFile {
                path: cleared(path),
                role,
                size: None,
                mtime: None,
                hash: None,
            }
        };
        let read = item.files_read.iter().map(file(FileRole::Read));
        let modified = item.files_modified.iter().map(file(FileRole::Modified));
        set_files(self.tx, id, &read.chain(modified).collect::<Vec<_>>())?;
        set_concepts(self.tx, id, &concepts)
    }

    fn summary(
        &self,
        id: i64,
        item: &ExportedItem,
        session: &SessionRow,
        prompt: Option<i64>,
        at: Millis,
    ) -> rusqlite::Result<()> {
        let fact = |label: &str| {
            let fact = item.facts.iter().find_map(|it| it.strip_prefix(label));
            cleared(fact.unwrap_or_default())
        };
        self.tx.run(
            "insert into summaries
                 (id, session_id, project_id, prompt_id, request, investigated, learned, completed,
                  next_steps, files_read, files_edited, notes, provider, at)
             values
                 (:id, :session, :project, :prompt, :request, :investigated, :learned, :completed,
                  :next_steps, :files_read, :files_edited, :notes, :provider, :at)",
            named_params! {
                ":id": id,
                ":session": session.id,
                ":project": session.project_id,
                ":prompt": prompt,
                ":request": cleared(&item.title),
                ":investigated": fact(INVESTIGATED),
                ":learned": fact(LEARNED),
                ":completed": cleared(&item.subtitle),
                ":next_steps": fact(NEXT_STEPS),
                ":files_read": json(&cleared_all(&item.files_read))?,
                ":files_edited": json(&cleared_all(&item.files_modified))?,
                ":notes": cleared(&item.narrative),
                ":provider": IMPORTED,
                ":at": at,
            },
        )?;
        Ok(())
    }

    fn prompt(
        &self,
        id: i64,
        item: &ExportedItem,
        session: &SessionRow,
        at: Millis,
    ) -> rusqlite::Result<()> {
        self.tx.run(
            "insert into prompts (id, session_id, number, text, reply, at)
             values (:id, :session, :number, :text, :reply, :at)",
            named_params! {
                ":id": id,
                ":session": session.id,
                ":number": item.prompt,
                ":text": cleared(&item.narrative),
                ":reply": item.facts.first().map(|it| cleared(it)),
                ":at": at,
            },
        )?;
        Ok(())
    }

    /// The row of a session, which is made if this memory has none; none if the export lacks it.
    fn session(&mut self, host: &str, session: &str) -> rusqlite::Result<Option<SessionRow>> {
        let name = (host.to_owned(), session.to_owned());
        if let Some(known) = self.sessions.get(&name) {
            return Ok(*known);
        }
        let exported = self.export.sessions.iter();
        let exported = exported
            .into_iter()
            .find(|it| it.host == host && it.session == session);
        let row = match exported {
            Some(exported) => Some(self.make_session(exported)?),
            None => None,
        };
        self.sessions.insert(name, row);
        Ok(row)
    }

    fn make_session(&mut self, session: &ExportedSession) -> rusqlite::Result<SessionRow> {
        let project = match &session.project {
            Some(key) => Some(self.project(key)?),
            None => None,
        };
        let mine = self.source.whose == Whose::Mine;
        let time = |time: &str| text::millis(time).unwrap_or(self.now).min(self.now);
        // What somebody else's session left open is not shown as open here.
        let list = |lines: &[String]| json(&cleared_all(if mine { lines } else { &[] }));
        self.tx.one(
            "insert into sessions
                 (host, host_session_id, project_id, state, title, subtitle, open, given_up, digest_by,
                  branch, started_at, last_event_at)
             values
                 (:host, :session, :project, :state, :title, :subtitle, :open, :given_up, :digest_by,
                  :branch, :started_at, :last_event_at)
             on conflict do update set project_id = coalesce(project_id, excluded.project_id)
             returning id, project_id",
            named_params! {
                ":host": session.host,
                ":session": session.session,
                ":project": project,
                ":state": session.state,
                ":title": session.title.as_deref().map(cleared),
                ":subtitle": session.subtitle.as_deref().map(cleared),
                ":open": list(&session.open)?,
                ":given_up": list(&session.given_up)?,
                ":digest_by": session.digest_by,
                ":branch": session.branch,
                ":started_at": time(&session.started_at),
                ":last_event_at": time(&session.last_event_at),
            },
        )
    }

    /// The project that has one of the keys of an exported project; it is made if there is none.
    fn project(&mut self, key: &str) -> rusqlite::Result<i64> {
        let exported = self
            .export
            .projects
            .iter()
            .find(|it| it.keys.iter().any(|it| it == key));
        let keys: Vec<&str> = match exported {
            Some(project) => project.keys.iter().map(String::as_str).collect(),
            None => vec![key],
        };
        let known = "select project_id
             from project_keys
             where key in (select value from json_each(:keys))
             limit 1";
        let id = match self
            .tx
            .first(known, named_params! {":keys": json(&keys)?})?
        {
            Some(id) => id,
            None => {
                let id = crate::store::upsert_project(self.tx, key, self.now)?;
                let name = exported.map_or(key, |it| &it.name);
                let rename = "update projects set name = :name where id = :id";
                self.tx
                    .run(rename, named_params! {":name": cleared(name), ":id": id})?;
                id
            }
        };
        // Somebody else's export does not decide which folders are one project.
        for key in keys.iter().filter(|_| self.source.whose == Whose::Mine) {
            self.tx.run(
                "insert or ignore into project_keys (key, project_id) values (:key, :id)",
                named_params! {":key": key, ":id": id},
            )?;
        }
        let name = "select name from projects where id = :id";
        let name = self.tx.one(name, named_params! {":id": id})?;
        self.imported.projects.insert(name);
        Ok(id)
    }

    /// Marks the new observations that others replaced.
    fn supersede(&self) -> rusqlite::Result<()> {
        for item in self
            .export
            .items
            .iter()
            .filter(|it| it.superseded_by.is_some())
        {
            self.tx.run(
                "update observations
                 set superseded_by = (
                     select o.id from items i join observations o on o.id = i.id
                     where i.uuid = :by and o.id <> observations.id)
                 where id = (select id from items where uuid = :uuid)
                   and id in (select item_id from journal where at = :at and action = 'import')",
                named_params! {":by": item.superseded_by, ":uuid": item.uuid, ":at": self.at},
            )?;
        }
        Ok(())
    }
}

/// A text without secrets.
fn cleared(text: &str) -> String {
    thorough(text).text.into_owned()
}

fn cleared_all(texts: &[String]) -> Vec<String> {
    texts.iter().map(|it| cleared(it)).collect()
}
