//! The user's prompts, and the prompt that each event belongs to.

use rusqlite::{OptionalExtension as _, Transaction, named_params};

use super::commit::{DerivedTurn, OFFLINE, Replaces};
use super::items::next_item;
use super::{ItemBody, Store};
use crate::model::{Event, EventKind, Kind, Millis, Turn};

/// The id and time of a prompt, which decide the events that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PromptMark {
    pub host_prompt_id: String,
    pub at: Millis,
}

impl Store {
    /// The session's prompts, stored and new, in order of time.
    pub(super) fn prompt_marks(
        &self,
        session: Option<i64>,
        new: &[Event],
    ) -> rusqlite::Result<Vec<PromptMark>> {
        let mut statement = self.connection.prepare_cached(
            "select host_prompt_id, at
             from prompts
             where session_id = :session and host_prompt_id is not null
             order by at",
        )?;
        let rows = statement.query_map(named_params! {":session": session}, |row| {
            Ok(PromptMark {
                host_prompt_id: row.get(0)?,
                at: row.get(1)?,
            })
        })?;
        let mut marks = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        for event in new.iter().filter(|event| event.kind == EventKind::Prompt) {
            let host_prompt_id = prompt_identity(event);
            if !marks
                .iter()
                .any(|mark| mark.host_prompt_id == host_prompt_id)
            {
                marks.push(PromptMark {
                    host_prompt_id,
                    at: event.at,
                });
            }
        }
        marks.sort_by_key(|mark| mark.at);
        Ok(marks)
    }

    pub(super) fn prompt(&self, id: i64) -> rusqlite::Result<ItemBody> {
        self.connection
            .prepare_cached("select text, reply from prompts where id = :id")?
            .query_row(named_params! {":id": id}, |row| {
                Ok(ItemBody::Prompt {
                    text: row.get("text")?,
                    reply: row.get("reply")?,
                })
            })
    }
}

/// The host's id of an event's prompt; the event's own id if an older host sends none.
pub(super) fn prompt_identity(event: &Event) -> String {
    event
        .prompt_id
        .clone()
        .unwrap_or_else(|| event.id.to_string())
}

/// The prompt that an event belongs to: the one it names, or the last one before it.
pub(super) fn owner<'a>(marks: &'a [PromptMark], event: &Event) -> Option<&'a PromptMark> {
    let identity = prompt_identity(event);
    marks
        .iter()
        .find(|mark| mark.host_prompt_id == identity)
        .or_else(|| marks.iter().rev().find(|mark| mark.at <= event.at))
}

pub(super) fn insert_prompt(
    tx: &Transaction<'_>,
    session: i64,
    event: &Event,
) -> rusqlite::Result<()> {
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

/// Numbers the prompts of a session by time, also if one came late from the spool.
pub(super) fn number_prompts(tx: &Transaction<'_>, session: i64) -> rusqlite::Result<()> {
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

/// Deletes the summary of a turn from which nothing is derived any more, and marks whether
/// anything came of its prompt.
pub(super) fn settle_prompt(
    tx: &Transaction<'_>,
    prompt: i64,
    derived: &DerivedTurn,
    replaces: Replaces,
) -> rusqlite::Result<()> {
    if derived.derived.summary.is_none() && derived.provenance.provider == OFFLINE {
        tx.prepare_cached(
            "delete from summaries
             where prompt_id = :id
               and (provider = 'offline' or :all_providers)
               and not exists (select 1 from observations where prompt_id = :id)
               and not exists (select 1 from repeats where prompt_id = :id)",
        )?
        .execute(named_params! {
            ":id": prompt,
            ":all_providers": replaces == Replaces::Events,
        })?;
    }
    tx.prepare_cached(
        "update prompts
         set kept = not kept
         where id = :id
           and kept <> (
               exists (select 1 from summaries where prompt_id = :id)
               or exists (select 1 from observations where prompt_id = :id)
               or exists (select 1 from repeats where prompt_id = :id)
           )",
    )?
    .execute(named_params! {":id": prompt})?;
    Ok(())
}

/// The id of a prompt's row, by the host's id.
pub(super) fn prompt_row(
    tx: &Transaction<'_>,
    session: i64,
    prompt_id: Option<&str>,
) -> rusqlite::Result<Option<i64>> {
    let mut statement = tx.prepare_cached(
        "select id from prompts where session_id = :session and host_prompt_id = :prompt",
    )?;
    let parameters = named_params! {":session": session, ":prompt": prompt_id};
    statement.query_row(parameters, |row| row.get(0)).optional()
}

/// Stores the agent's last reply of a turn with its prompt.
pub(super) fn set_reply(
    tx: &Transaction<'_>,
    prompt: Option<i64>,
    turn: &Turn,
) -> rusqlite::Result<()> {
    let reply = turn
        .events
        .iter()
        .rev()
        .find_map(|event| event.payload.reply.as_deref());
    if reply.is_some() {
        tx.execute(
            "update prompts set reply = :reply where id = :id and reply is not :reply",
            named_params! {":reply": reply, ":id": prompt},
        )?;
    }
    Ok(())
}
