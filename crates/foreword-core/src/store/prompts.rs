//! The user's prompts, the prompt that each event belongs to, and the summary of each prompt's turn.

use rusqlite::{Transaction, named_params};
use serde::Deserialize;

use super::commit::{DerivedTurn, OFFLINE, Replaces};
use super::sessions::SessionRow;
use super::{PromptItem, Store, SummaryItem, json, next_item};
use crate::db::Rows as _;
use crate::model::{Event, EventKind, Kind, Millis, Provenance, Summary, Turn};

/// The id and time of a prompt, which decide the events that belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct PromptMark {
    pub host_prompt_id: String,
    pub at: Millis,
}

impl Store {
    /// The session's prompts, stored and new, in order of time. The forgotten ones come last: an event
    /// belongs to one of them only if it names it.
    pub(super) fn prompt_marks(
        &self,
        session: Option<i64>,
        new: &[Event],
    ) -> rusqlite::Result<Vec<PromptMark>> {
        let mut marks: Vec<PromptMark> = self.connection.all(
            "select host_prompt_id, at
             from prompts
             where session_id = :session and host_prompt_id is not null
             union all
             select substr(seed, length('prompt:') + 1), 9223372036854775807
             from forgotten
             where session_id = :session and seed glob 'prompt:*'
             order by at",
            named_params! {":session": session},
        )?;
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

    pub(super) fn prompt(&self, id: i64) -> rusqlite::Result<PromptItem> {
        let prompt = "select text, reply from prompts where id = :id";
        self.connection.one(prompt, named_params! {":id": id})
    }

    pub(super) fn summary(&self, id: i64) -> rusqlite::Result<SummaryItem> {
        let summary = "select * from summaries where id = :id";
        self.connection.one(summary, named_params! {":id": id})
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
        tx.run(
            "delete from summaries
             where prompt_id = :id
               and (provider = 'offline' or :all_providers)
               and not exists (select 1 from observations where prompt_id = :id)
               and not exists (select 1 from repeats where prompt_id = :id)",
            named_params! {":id": prompt, ":all_providers": replaces == Replaces::Events},
        )?;
    }
    tx.run(
        "update prompts
         set kept = not kept
         where id = :id
           and kept <> (
               exists (select 1 from summaries where prompt_id = :id)
               or exists (select 1 from observations where prompt_id = :id)
               or exists (select 1 from repeats where prompt_id = :id)
           )",
        named_params! {":id": prompt},
    )?;
    Ok(())
}

/// The id of a prompt's row, by the host's id.
pub(super) fn prompt_row(
    tx: &Transaction<'_>,
    session: i64,
    prompt_id: Option<&str>,
) -> rusqlite::Result<Option<i64>> {
    tx.first(
        "select id from prompts where session_id = :session and host_prompt_id = :prompt",
        named_params! {":session": session, ":prompt": prompt_id},
    )
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

/// Writes the summary of a prompt over an earlier one, unless it was forgotten.
pub(super) fn upsert_summary(
    tx: &Transaction<'_>,
    session: &SessionRow,
    prompt: i64,
    summary: &Summary,
    provenance: &Provenance,
    at: Millis,
) -> rusqlite::Result<()> {
    let forgotten: bool = tx.one(
        "select exists (
             select 1 from forgotten where session_id = :session and seed = 'summary:' || :prompt
         )",
        named_params! {":session": session.id, ":prompt": prompt},
    )?;
    if forgotten {
        return Ok(());
    }
    let known = "select id from summaries where prompt_id = :prompt";
    let id = match tx.first(known, named_params! {":prompt": prompt})? {
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
             model = excluded.model, prompt_version = excluded.prompt_version, at = excluded.at
         where (summaries.request, summaries.investigated, summaries.learned, summaries.completed,
                summaries.next_steps, summaries.files_read, summaries.files_edited, summaries.notes,
                summaries.provider, summaries.model, summaries.prompt_version, summaries.at)
            is not (excluded.request, excluded.investigated, excluded.learned, excluded.completed,
                    excluded.next_steps, excluded.files_read, excluded.files_edited, excluded.notes,
                    excluded.provider, excluded.model, excluded.prompt_version, excluded.at)",
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
            ":provider": provenance.provider,
            ":model": provenance.model,
            ":prompt_version": provenance.prompt_version,
            ":at": at,
        },
    )?;
    Ok(())
}
