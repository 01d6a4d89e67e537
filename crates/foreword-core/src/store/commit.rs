//! Stores what was derived from a batch, and which events it came from, at once.
//!
//! One transaction: either all of it is there, with the events' ids and keys in
//! `processed_events`, or nothing is and the events are still in the queue. A
//! turn that was derived from before is replaced in place: what is still true
//! keeps its number.

use rusqlite::{Connection, Transaction, named_params};
use uuid::{ClockSequence, Uuid};

use super::kin::{self, keep_observation};
use super::taken::{keep_events, mark_again, mark_processed};
use super::turns::prompt_identity;
use super::{SILENCE, Store};
use crate::fault;
use crate::model::{
    Derived, Event, EventKind, Kind, Millis, Observation, Outcome, Provenance, SessionState,
    Summary, Turn,
};
use crate::project;
use crate::text;

/// Events of one session and what came of the turns they belong to.
#[derive(Debug)]
pub struct Batch<'a> {
    /// In order of time, at least one.
    pub events: &'a [Event],
    pub told: &'a [Told],
    pub replaces: Replaces,
    /// Who took the events in.
    pub provider: &'a str,
    pub now: Millis,
}

/// What was derived from a turn, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub turn: Turn,
    pub derived: Derived,
    pub provenance: Provenance,
}

impl Told {
    #[must_use]
    pub fn offline(turn: Turn, derived: Derived) -> Told {
        Told {
            turn,
            derived,
            provenance: Provenance::offline(),
        }
    }
}

/// What gives way to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// Whatever the same provider told of these turns before: it looks at them whole.
    Turns,
    /// Nothing: this is a further part of its turn.
    Nothing,
    /// Whatever anyone derived from these events, which were taken in before.
    Events,
}

impl Store {
    pub fn commit(&mut self, batch: &Batch<'_>) -> rusqlite::Result<()> {
        let Some(first) = batch.events.first() else {
            return Ok(());
        };
        let before = self.session_id(&first.host, &first.host_session_id)?;
        let marks = self.prompt_marks(before, batch.events)?;
        let tx = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;

        let session = upsert_session(&tx, batch, first)?;
        let mut outcome = Outcome::Nothing;
        for event in batch
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Prompt)
        {
            insert_prompt(&tx, session.id, event)?;
            outcome = Outcome::Stored;
        }
        number_prompts(&tx, session.id)?;
        withdraw(&tx, &session, batch)?;
        for told in batch.told {
            let turn = &told.turn;
            let prompt = prompt_row(&tx, session.id, turn.prompt_id.as_deref())?;
            set_reply(&tx, prompt, turn)?;
            for observation in &told.derived.observations {
                if is_forgotten(&tx, &session, observation)? {
                    continue;
                }
                keep_observation(&tx, &session, prompt, observation, told)?;
                outcome = Outcome::Stored;
            }
            if let (Some(prompt), Some(summary)) = (prompt, &told.derived.summary) {
                upsert_summary(&tx, &session, prompt, summary, told, batch.now)?;
                outcome = Outcome::Stored;
            }
            // Triggers have put all of it into the full text, too.
            fault::point("store:after-index");
        }
        name_session(&tx, session.id)?;
        if batch.replaces == Replaces::Events {
            mark_again(&tx, batch, outcome)?;
        } else {
            keep_events(&tx, session.id, batch.events, &marks)?;
            mark_processed(&tx, batch, outcome)?;
        }
        fault::point("store:before-commit");
        tx.commit()?;
        fault::point("store:after-commit");
        Ok(())
    }
}

pub(super) struct SessionRow {
    pub id: i64,
    pub project_id: Option<i64>,
}

fn upsert_session(
    tx: &Transaction<'_>,
    batch: &Batch<'_>,
    first: &Event,
) -> rusqlite::Result<SessionRow> {
    let project_key = batch
        .events
        .iter()
        .find_map(|event| event.project.as_deref());
    let project_id = project_key
        .map(|key| upsert_project(tx, key, batch.now))
        .transpose()?;
    let last = |field: fn(&Event) -> Option<&str>| batch.events.iter().rev().find_map(field);
    // None as well if a clock ran ahead when it was heard of.
    let heard_until: Option<Millis> = tx.query_row(
        "select max(last_event_at)
         from sessions
         where host = :host and host_session_id = :session and last_event_at <= :now",
        named_params! {":host": first.host, ":session": first.host_session_id, ":now": batch.now},
        |row| row.get(0),
    )?;
    tx.execute(
        "insert into sessions
             (host, host_session_id, project_id, state, branch, root, transcript_path, started_at, last_event_at)
         values
             (:host, :session, :project, 'active', :branch, :root, :transcript, :first_at, :last_at)
         on conflict do update
         set project_id = coalesce(project_id, excluded.project_id),
             branch = coalesce(excluded.branch, branch),
             root = coalesce(excluded.root, root),
             transcript_path = coalesce(excluded.transcript_path, transcript_path),
             started_at = min(started_at, excluded.started_at),
             last_event_at = max(last_event_at, excluded.last_event_at)",
        named_params! {
            ":host": first.host,
            ":session": first.host_session_id,
            ":project": project_id,
            ":branch": last(|event| event.branch.as_deref()),
            ":root": last(|event| event.root.as_deref()),
            ":transcript": last(|event| event.transcript_path.as_deref()),
            ":first_at": first.at,
            ":last_at": batch.events.iter().map(|event| event.at).max(),
        },
    )?;
    let (id, project_id, mut state) = tx.query_row(
        "select id, project_id, state
         from sessions
         where host = :host and host_session_id = :session",
        named_params! {":host": first.host, ":session": first.host_session_id},
        |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, SessionState>(2)?)),
    )?;
    // Looking at old events again does not bring a session back to life.
    if batch.replaces != Replaces::Events {
        // Nor does what comes late say how a session stands.
        let late = |event: &&Event| heard_until.is_some_and(|it| event.at < it);
        for event in batch.events.iter().filter(|event| !late(event)) {
            state = next_state(state, event, batch.now);
        }
    }
    tx.execute(
        "update sessions set state = :state where id = :id",
        named_params! {":state": state, ":id": id},
    )?;
    Ok(SessionRow { id, project_id })
}

pub(super) fn upsert_project(
    tx: &Transaction<'_>,
    key: &str,
    now: Millis,
) -> rusqlite::Result<i64> {
    let known = {
        let mut statement =
            tx.prepare_cached("select project_id from project_keys where key = :key")?;
        let mut rows = statement.query(named_params! {":key": key})?;
        rows.next()?.map(|row| row.get(0)).transpose()?
    };
    if let Some(known) = known {
        return Ok(known);
    }
    let id = tx.query_row(
        "insert into projects (name, created_at) values (:name, :now) returning id",
        named_params! {":name": project::name(key), ":now": now},
        |row| row.get(0),
    )?;
    tx.execute(
        "insert into project_keys (key, project_id) values (:key, :id)",
        named_params! {":key": key, ":id": id},
    )?;
    Ok(id)
}

fn next_state(state: SessionState, event: &Event, now: Millis) -> SessionState {
    match event.kind {
        EventKind::StopFailure => SessionState::Failed,
        EventKind::SessionEnd if state == SessionState::Failed => SessionState::Failed,
        EventKind::SessionEnd => SessionState::Completed,
        EventKind::Receipt => state,
        _ if event.at < now - SILENCE => SessionState::Interrupted,
        _ => SessionState::Active,
    }
}

pub(super) fn next_item(connection: &Connection, kind: Kind, at: Millis) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("insert into items (uuid, kind) values (:uuid, :kind) returning id")?
        .query_row(
            named_params! {":uuid": uuid_at(at, uuid::NoContext).to_string(), ":kind": kind},
            |row| row.get(0),
        )
}

pub(crate) fn uuid_at(at: Millis, order: impl ClockSequence<Output = impl Into<u128>>) -> Uuid {
    let seconds = u64::try_from(at.div_euclid(1000)).unwrap_or_default();
    let nanos = u32::try_from(at.rem_euclid(1000)).unwrap_or_default() * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(order, seconds, nanos))
}

fn insert_prompt(tx: &Transaction<'_>, session: i64, event: &Event) -> rusqlite::Result<()> {
    let identity = prompt_identity(event);
    if prompt_row(tx, session, Some(&identity))?.is_some() {
        return Ok(());
    }
    let text = event.payload.prompt.as_deref().unwrap_or_default();
    tx.execute(
        "insert into prompts (id, session_id, number, host_prompt_id, text, at)
         values (:id, :session, 0, :host_prompt_id, :text, :at)",
        named_params! {
            ":id": next_item(tx, Kind::Prompt, event.at)?,
            ":session": session,
            ":host_prompt_id": identity,
            ":text": text,
            ":at": event.at,
        },
    )?;
    Ok(())
}

/// Prompts are numbered by time, also when one came late by way of the spool.
fn number_prompts(tx: &Transaction<'_>, session: i64) -> rusqlite::Result<()> {
    tx.execute(
        "update prompts
         set number = ranked.number
         from (
             select id, row_number() over (order by at, id) as number
             from prompts
             where session_id = :session
         ) as ranked
         where prompts.id = ranked.id and prompts.number <> ranked.number",
        named_params! {":session": session},
    )?;
    Ok(())
}

/// What a session is called: the request and the outcome that a model's first summary
/// gives, else the first prompt.
fn name_session(tx: &Transaction<'_>, session: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "select p.text, s.request, s.completed, s.learned
         from prompts p
         left join summaries s on s.prompt_id = p.id and s.provider <> 'offline'
         where p.session_id = :session
         order by s.id is null, p.number
         limit 1",
    )?;
    let mut rows = statement.query(named_params! {":session": session})?;
    let Some(row) = rows.next()? else {
        return Ok(());
    };
    let prompt: String = row.get(0)?;
    let [request, completed, learned] =
        [1, 2, 3].map(|column| row.get::<_, Option<String>>(column));
    let request = request?.filter(|it| !it.is_empty());
    let outcome = completed?.filter(|it| !it.is_empty()).or(learned?);
    let outcome = outcome
        .map(|it| text::shorten(text::first_sentence(&text::one_line(&it)), 160).into_owned());
    tx.execute(
        "update sessions set title = :title, subtitle = :subtitle where id = :session",
        named_params! {
            ":title": text::title(request.as_deref().unwrap_or(&prompt)),
            ":subtitle": outcome.filter(|it| !it.is_empty()),
            ":session": session,
        },
    )?;
    Ok(())
}

fn prompt_row(
    tx: &Transaction<'_>,
    session: i64,
    prompt_id: Option<&str>,
) -> rusqlite::Result<Option<i64>> {
    let mut statement = tx.prepare_cached(
        "select id from prompts where session_id = :session and host_prompt_id = :prompt",
    )?;
    let mut rows = statement.query(named_params! {":session": session, ":prompt": prompt_id})?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

fn set_reply(tx: &Transaction<'_>, prompt: Option<i64>, turn: &Turn) -> rusqlite::Result<()> {
    let reply = turn
        .events
        .iter()
        .rev()
        .find_map(|event| event.payload.reply.as_deref());
    if reply.is_some() {
        tx.execute(
            "update prompts set reply = :reply where id = :id",
            named_params! {":reply": reply, ":id": prompt},
        )?;
    }
    Ok(())
}

/// Takes back what was derived before, and is not any more. An insight that another turn
/// of the batch tells now keeps its number.
fn withdraw(tx: &Transaction<'_>, session: &SessionRow, batch: &Batch<'_>) -> rusqlite::Result<()> {
    let told = batch.told.iter().flat_map(|it| &it.derived.observations);
    let seeds: Vec<&str> = told.map(|it| it.seed.as_str()).collect();
    let seeds = json(&seeds)?;
    match batch.replaces {
        Replaces::Turns => {
            for told in batch.told {
                let prompt = prompt_row(tx, session.id, told.turn.prompt_id.as_deref())?;
                let outdated = "session_id = :session
                    and prompt_id is :prompt
                    and provider = :provider
                    and seed not in (select value from json_each(:seeds))";
                let parameters = named_params! {
                    ":session": session.id,
                    ":prompt": prompt,
                    ":provider": told.provenance.provider,
                    ":seeds": seeds,
                };
                kin::withdraw(tx, outdated, parameters)?;
            }
            Ok(())
        }
        Replaces::Nothing => Ok(()),
        Replaces::Events => {
            let events: Vec<String> = batch.events.iter().map(|it| it.id.to_string()).collect();
            let outdated = "session_id = :session
                and seed not in (select value from json_each(:seeds))
                and exists (
                    select 1
                    from json_each(events) as derived
                    join json_each(:events) as event on event.value = derived.value
                )";
            let parameters = named_params! {
                ":session": session.id,
                ":seeds": seeds,
                ":events": json(&events)?,
            };
            kin::withdraw(tx, outdated, parameters)
        }
    }
}

/// Whether somebody had this forgotten. Another model, or the same one asked again, words
/// and numbers its insights otherwise; so one that rests on nothing but the events of what
/// was forgotten is taken for it.
fn is_forgotten(
    tx: &Transaction<'_>,
    session: &SessionRow,
    observation: &Observation,
) -> rusqlite::Result<bool> {
    let mut statement = tx.prepare_cached(
        "select exists (
             select 1
             from forgotten
             where session_id = :session
               and (
                   seed = :seed
                   or json_array_length(:events) > 0
                   and not exists (
                       select 1
                       from json_each(:events) as event
                       where event.value not in (select value from json_each(forgotten.events))
                   )
               )
         )",
    )?;
    statement.query_row(
        named_params! {
            ":session": session.id,
            ":seed": observation.seed,
            ":events": json(&observation.events)?,
        },
        |row| row.get(0),
    )
}

/// Writes an observation down under its number.
pub(super) fn upsert_observation(
    tx: &Transaction<'_>,
    id: i64,
    session: &SessionRow,
    prompt: Option<i64>,
    observation: &Observation,
    told: &Told,
) -> rusqlite::Result<()> {
    let last = told
        .turn
        .events
        .iter()
        .rev()
        .find(|event| observation.events.contains(&event.id));
    tx.prepare_cached(
        r#"insert into observations
               (id, session_id, project_id, prompt_id, seed, type, title, subtitle, facts, narrative, concepts,
                origin, agent_id, branch, "commit", provider, model, prompt_version, events, at)
           values
               (:id, :session, :project, :prompt, :seed, :type, :title, :subtitle, :facts, :narrative, :concepts,
                :origin, :agent_id, :branch, :commit, :provider, :model, :prompt_version, :events, :at)
           on conflict (id) do update
           set prompt_id = excluded.prompt_id, type = excluded.type, title = excluded.title,
               subtitle = excluded.subtitle, facts = excluded.facts, narrative = excluded.narrative,
               concepts = excluded.concepts, origin = excluded.origin, agent_id = excluded.agent_id,
               branch = excluded.branch, "commit" = excluded."commit", provider = excluded.provider,
               model = excluded.model, prompt_version = excluded.prompt_version, events = excluded.events,
               at = excluded.at"#,
    )?
    .execute(named_params! {
        ":id": id,
        ":session": session.id,
        ":project": session.project_id,
        ":prompt": prompt,
        ":seed": observation.seed,
        ":type": observation.kind,
        ":title": observation.title,
        ":subtitle": observation.subtitle,
        ":facts": json(&observation.facts)?,
        ":narrative": observation.narrative,
        ":concepts": json(&observation.concepts)?,
        ":origin": observation.origin,
        ":agent_id": observation.agent_id,
        ":branch": last.and_then(|event| event.branch.as_deref()),
        ":commit": last.and_then(|event| event.commit.as_deref()),
        ":provider": told.provenance.provider,
        ":model": told.provenance.model,
        ":prompt_version": told.provenance.prompt_version,
        ":events": json(&observation.events)?,
        ":at": observation.at,
    })?;
    replace_files_and_concepts(tx, id, observation)
}

fn replace_files_and_concepts(
    tx: &Transaction<'_>,
    id: i64,
    observation: &Observation,
) -> rusqlite::Result<()> {
    for table in ["observation_files", "observation_concepts"] {
        tx.prepare_cached(&format!("delete from {table} where observation_id = :id"))?
            .execute(named_params! {":id": id})?;
    }
    for file in &observation.files {
        tx.prepare_cached(
            "insert into observation_files (observation_id, path, role, size, mtime, hash)
             values (:id, :path, :role, :size, :mtime, :hash)
             on conflict do nothing",
        )?
        .execute(named_params! {
            ":id": id,
            ":path": file.path,
            ":role": file.role,
            ":size": file.size.and_then(|size| i64::try_from(size).ok()),
            ":mtime": file.mtime,
            ":hash": file.hash,
        })?;
    }
    for concept in &observation.concepts {
        tx.prepare_cached(
            "insert into observation_concepts (observation_id, concept)
             values (:id, :concept)
             on conflict do nothing",
        )?
        .execute(named_params! {":id": id, ":concept": concept})?;
    }
    Ok(())
}

fn upsert_summary(
    tx: &Transaction<'_>,
    session: &SessionRow,
    prompt: i64,
    summary: &Summary,
    told: &Told,
    now: Millis,
) -> rusqlite::Result<()> {
    let forgotten: bool = tx.query_row(
        "select exists (
             select 1 from forgotten where session_id = :session and seed = 'summary:' || :prompt
         )",
        named_params! {":session": session.id, ":prompt": prompt},
        |row| row.get(0),
    )?;
    if forgotten {
        return Ok(());
    }
    let known: Option<i64> = {
        let mut statement =
            tx.prepare_cached("select id from summaries where prompt_id = :prompt")?;
        let mut rows = statement.query(named_params! {":prompt": prompt})?;
        rows.next()?.map(|row| row.get(0)).transpose()?
    };
    let at = told.turn.events.last().map_or(now, |event| event.at);
    let id = match known {
        Some(id) => id,
        None => next_item(tx, Kind::Summary, at)?,
    };
    tx.execute(
        "insert into summaries
             (id, session_id, project_id, prompt_id, request, investigated, learned, completed, next_steps,
              files_read, files_edited, notes, provider, model, prompt_version, at)
         values
             (:id, :session, :project, :prompt, :request, :investigated, :learned, :completed, :next_steps,
              :files_read, :files_edited, :notes, :provider, :model, :prompt_version, :at)
         on conflict (id) do update
         set request = excluded.request, investigated = excluded.investigated, learned = excluded.learned,
             completed = excluded.completed, next_steps = excluded.next_steps, files_read = excluded.files_read,
             files_edited = excluded.files_edited, notes = excluded.notes, provider = excluded.provider,
             model = excluded.model, prompt_version = excluded.prompt_version, at = excluded.at",
        named_params! {
            ":id": id,
            ":session": session.id,
            ":project": session.project_id,
            ":prompt": prompt,
            ":request": summary.request,
            ":investigated": summary.investigated,
            ":learned": summary.learned,
            ":completed": summary.completed,
            ":next_steps": summary.next_steps,
            ":files_read": json(&summary.files_read)?,
            ":files_edited": json(&summary.files_edited)?,
            ":notes": summary.notes,
            ":provider": told.provenance.provider,
            ":model": told.provenance.model,
            ":prompt_version": told.provenance.prompt_version,
            ":at": at,
        },
    )?;
    Ok(())
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}
