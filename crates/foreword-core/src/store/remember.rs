//! Remembers a text on a person's request, at once and not through the queue, so that the reply can
//! name its number.
//!
//! It becomes an observation like others, but with the user as its origin and derived from no event.

use rusqlite::named_params;

use super::Store;
use super::commit::DerivedTurn;
use super::hands::{self, HandsError};
use super::observations::keep_observation;
use super::sessions::{HostSession, SessionRow, upsert_project};
use crate::db::Rows as _;
use crate::model::{
    Action, Derived, FileRole, Millis, Observation, ObservationType, Origin, Provenance,
    TouchedFile, Turn,
};
use crate::text;

/// A text to be remembered unchanged; all of it is redacted already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToRemember<'a> {
    pub text: &'a str,
    /// If empty, the beginning of the text.
    pub title: &'a str,
    pub kind: ObservationType,
    pub facts: Vec<String>,
    pub concepts: Vec<String>,
    pub files: Vec<String>,
    pub pin: bool,
    /// The last moment at which it holds.
    pub until: Option<Millis>,
    /// Whose words it is: the user's, or the agent's, if the agent writes the memory.
    pub origin: Origin,
    /// The project's key.
    pub project: &'a str,
    pub session: &'a HostSession,
    /// Identifies the request, so that the same request twice is one observation.
    pub seed: String,
    /// Who asks: `shell`, `agent` or `viewer`.
    pub who: &'a str,
    pub now: Millis,
}

impl<'a> ToRemember<'a> {
    /// A decision that has nothing but its text.
    pub fn of(
        text: &'a str,
        project: &'a str,
        session: &'a HostSession,
        seed: String,
        now: Millis,
    ) -> ToRemember<'a> {
        ToRemember {
            text,
            title: "",
            kind: ObservationType::Decision,
            origin: Origin::User,
            facts: Vec::new(),
            concepts: Vec::new(),
            files: Vec::new(),
            pin: false,
            until: None,
            project,
            session,
            seed,
            who: "shell",
            now,
        }
    }
}

/// A remembered text by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    pub id: i64,
    /// False if an older observation has the same text.
    pub is_new: bool,
}

impl Store {
    /// Remembers a text; an older observation with the same text stands for it if there is one.
    pub fn remember(&mut self, request: &ToRemember<'_>) -> Result<Remembered, HandsError> {
        let tx = self.connection.transaction()?;
        let project = upsert_project(&tx, request.project, request.now)?;
        // The worker may not have stored anything of this session yet.
        let session: SessionRow = tx.one(
            "insert into sessions (host, host_session_id, project_id, state, started_at, last_event_at)
             values (:host, :session, :project, 'active', :now, :now)
             on conflict do update
             set project_id = coalesce(project_id, excluded.project_id)
             returning id, project_id",
            named_params! {
                ":host": request.session.host,
                ":session": request.session.id,
                ":project": project,
                ":now": request.now,
            },
        )?;
        // A request for a forgotten text brings it back.
        tx.execute(
            "delete from forgotten where session_id = :session and seed = :seed",
            named_params! {":session": session.id, ":seed": request.seed},
        )?;
        let derived = DerivedTurn {
            turn: Turn {
                prompt_id: None,
                events: Vec::new(),
            },
            derived: Derived::default(),
            provenance: Provenance {
                provider: request.origin.to_string(),
                model: None,
                prompt_version: None,
            },
        };
        let newest = "select coalesce(max(id), 0) from observations";
        let newest: i64 = tx.one(newest, [])?;
        let observation = observation(request);
        let id = keep_observation(&tx, &session, None, &observation, &derived)?;
        let is_new = id > newest;
        let at = hands::next_time(&tx, request.now)?;
        if is_new {
            hands::note(&tx, id, Action::Remember, None, request.who, at)?;
            hands::set_until(&tx, id, request.until)?;
        } else if request.until.is_some() {
            let before = hands::Editable::read(&tx, id)?;
            hands::note(&tx, id, Action::Edit, Some(&before), request.who, at)?;
            hands::set_until(&tx, id, request.until)?;
        }
        if request.pin {
            hands::pin(&tx, id, true, request.who, at)?;
        }
        tx.commit()?;
        Ok(Remembered { id, is_new })
    }
}

fn observation(request: &ToRemember<'_>) -> Observation {
    let file = |path: &String| TouchedFile {
        path: path.clone(),
        role: FileRole::Read,
        size: None,
        mtime: None,
        hash: None,
    };
    Observation {
        title: match request.title {
            "" => text::title(request.text),
            title => title.to_owned(),
        },
        narrative: request.text.to_owned(),
        facts: request.facts.clone(),
        concepts: request.concepts.clone(),
        files: request.files.iter().map(file).collect(),
        at: request.now,
        ..Observation::blank(request.seed.clone(), request.kind, request.origin)
    }
}
