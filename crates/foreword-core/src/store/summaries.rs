//! Reads and writes rows of the table `summaries`; no other file knows all its columns.

use rusqlite::{OptionalExtension as _, Transaction, named_params};

use super::items::next_item;
use super::sessions::SessionRow;
use super::{ItemBody, Store, json, list};
use crate::model::{Kind, Millis, Provenance, Summary};

/// Writes the summary of a prompt over an earlier one, unless it was forgotten.
pub(super) fn upsert_summary(
    tx: &Transaction<'_>,
    session: &SessionRow,
    prompt: i64,
    summary: &Summary,
    provenance: &Provenance,
    at: Millis,
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
    let known: Option<i64> = tx
        .prepare_cached("select id from summaries where prompt_id = :prompt")?
        .query_row(named_params! {":prompt": prompt}, |row| row.get(0))
        .optional()?;
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

impl Store {
    pub(super) fn summary(&self, id: i64) -> rusqlite::Result<ItemBody> {
        self.connection
            .prepare_cached("select * from summaries where id = :id")?
            .query_row(named_params! {":id": id}, |row| {
                Ok(ItemBody::Summary {
                    request: row.get("request")?,
                    investigated: row.get("investigated")?,
                    learned: row.get("learned")?,
                    completed: row.get("completed")?,
                    next_steps: row.get("next_steps")?,
                    files_read: list(row, "files_read")?,
                    files_edited: list(row, "files_edited")?,
                    notes: row.get("notes")?,
                    provider: row.get("provider")?,
                    model: row.get("model")?,
                    prompt_version: row.get("prompt_version")?,
                })
            })
    }
}
