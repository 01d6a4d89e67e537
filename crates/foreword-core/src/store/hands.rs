//! What a person changes by hand: edits, pins, hides and relates observations, and takes it back.
//!
//! Each command is one transaction, and leaves in the `journal` what each item was before, so that
//! `undo` can restore it. An observation that was changed by hand is left as it is by the worker
//! (`observations::TOUCHED`). Forgetting is in `forget`, and is not undone.

use rusqlite::{Connection, Transaction, named_params};
use serde::{Deserialize, Serialize};

use super::observations::{set_concepts, set_files};
use super::{Store, json};
use crate::db::Rows as _;
use crate::fault;
use crate::model::{Action, Kind, Millis, ObservationType, Origin, TouchedFile, Verdict};

/// The most pinned observations of a project: more would fill the index.
pub const PINS_MAX: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum HandsError {
    #[error("there is no #{0}; find numbers with `foreword search WORDS`")]
    NoItem(i64),
    #[error(
        "#{0} is a {1}, and only observations can be edited, pinned, hidden or related; forget it, or remember it in your own words"
    )]
    OtherKind(i64, Kind),
    #[error(
        "{PINS_MAX} observations of this project are pinned already ({0}); unpin one with `foreword pin ID --off`"
    )]
    TooManyPins(String),
    #[error("#{0} and #{1} are of different projects")]
    OtherProject(i64, i64),
    #[error("these are the same item")]
    SameItem,
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// All of an observation that a person can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Editable {
    pub r#type: ObservationType,
    pub title: String,
    pub subtitle: String,
    pub facts: Vec<String>,
    pub narrative: String,
    pub concepts: Vec<String>,
    #[serde(default)]
    pub files: Vec<TouchedFile>,
    pub origin: Origin,
    pub pinned_at: Option<Millis>,
    pub hidden_at: Option<Millis>,
    pub edited_at: Option<Millis>,
    /// The last moment at which it holds.
    pub until: Option<Millis>,
    pub superseded_by: Option<i64>,
    /// The verdicts on it.
    #[serde(default)]
    pub judged: Vec<Judged>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    pub a: i64,
    pub b: i64,
    pub verdict: Verdict,
    pub at: Millis,
}

impl Judged {
    /// Stores the verdict, if both observations exist.
    fn write(&self, memory: &Connection) -> rusqlite::Result<()> {
        memory.run(
            "insert or replace into judged (a, b, verdict, at)
             select :a, :b, :verdict, :at
             where (select count(*) from observations where id in (:a, :b)) = 2",
            named_params! {":a": self.a, ":b": self.b, ":verdict": self.verdict, ":at": self.at},
        )?;
        Ok(())
    }
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub item_id: i64,
    pub action: Action,
    /// The item before the change; none if it did not exist.
    pub before: Option<Editable>,
    pub who: String,
    #[serde(serialize_with = "crate::text::serialize_time")]
    pub at: Millis,
}

impl Store {
    /// An observation as a person can change it.
    pub fn editable(&self, id: i64) -> Result<Editable, HandsError> {
        Editable::of(&self.connection, id)
    }

    /// Replaces the fields of observations, which are redacted already. From then on the words are the
    /// user's. Returns those that changed.
    pub fn edit(
        &mut self,
        wanted: &[(i64, Editable)],
        who: &str,
        now: Millis,
    ) -> Result<Vec<i64>, HandsError> {
        let ids: Vec<i64> = wanted.iter().map(|(id, _)| *id).collect();
        self.change_each(&ids, now, |tx, id, at| {
            let wanted = wanted.iter().find(|(it, _)| *it == id);
            wanted.map_or(Ok(false), |(_, wanted)| edit(tx, id, wanted, who, at))
        })
    }

    /// Pins observations, or unpins them. Returns those that changed.
    pub fn pin(
        &mut self,
        ids: &[i64],
        on: bool,
        who: &str,
        now: Millis,
    ) -> Result<Vec<i64>, HandsError> {
        self.change_each(ids, now, |tx, id, at| pin(tx, id, on, who, at))
    }

    /// Hides observations: no agent is shown them unasked, but a search finds them. Or shows them
    /// again. Returns those that changed.
    pub fn hide(
        &mut self,
        ids: &[i64],
        on: bool,
        who: &str,
        now: Millis,
    ) -> Result<Vec<i64>, HandsError> {
        self.change_each(ids, now, |tx, id, at| hide(tx, id, on, who, at))
    }

    /// Changes each of these observations in one transaction.
    fn change_each(
        &mut self,
        ids: &[i64],
        now: Millis,
        change: impl Fn(&Transaction<'_>, i64, Millis) -> Result<bool, HandsError>,
    ) -> Result<Vec<i64>, HandsError> {
        let tx = self.connection.transaction()?;
        let at = next_time(&tx, now)?;
        let mut changed = Vec::new();
        for &id in ids {
            if change(&tx, id, at)? {
                changed.push(id);
            }
        }
        fault::point("hands:before-commit");
        tx.commit()?;
        Ok(changed)
    }

    /// Stores a verdict on two observations, and marks them accordingly.
    pub fn relate(
        &mut self,
        a: i64,
        b: i64,
        verdict: Verdict,
        who: &str,
        now: Millis,
    ) -> Result<(), HandsError> {
        if a == b {
            return Err(HandsError::SameItem);
        }
        let tx = self.connection.transaction()?;
        let [before_a, before_b] = [Editable::of(&tx, a)?, Editable::of(&tx, b)?];
        let projects =
            "select count(distinct coalesce(project_id, 0)) from observations where id in (:a, :b)";
        if tx.one::<i64>(projects, named_params! {":a": a, ":b": b})? > 1 {
            return Err(HandsError::OtherProject(a, b));
        }
        let at = next_time(&tx, now)?;
        note(&tx, a, Action::Relate, Some(&before_a), who, at)?;
        note(&tx, b, Action::Relate, Some(&before_b), who, at)?;
        tx.run(
            "delete from judged where (a, b) in ((:a, :b), (:b, :a))",
            named_params! {":a": a, ":b": b},
        )?;
        tx.run(
            "insert into judged (a, b, verdict, at) values (:a, :b, :verdict, :at)",
            named_params! {":a": a, ":b": b, ":verdict": verdict, ":at": at},
        )?;
        match verdict {
            Verdict::Unrelated => {
                tx.run(
                    "update observations
                     set superseded_by = null
                     where id = :a and superseded_by = :b or id = :b and superseded_by = :a",
                    named_params! {":a": a, ":b": b},
                )?;
            }
            Verdict::Supersedes => {
                // What replaces another one holds, also if it was replaced by that one before,
                // directly or through others.
                tx.run(
                    "with recursive later (id) as (
                         select superseded_by from observations where id = :a
                         union
                         select o.superseded_by from later join observations o on o.id = later.id
                     )
                     update observations
                     set superseded_by = null
                     where id = :a and :b in later",
                    named_params! {":a": a, ":b": b},
                )?;
                tx.run(
                    "update observations set superseded_by = :a where id = :b",
                    named_params! {":a": a, ":b": b},
                )?;
            }
        }
        fault::point("hands:before-commit");
        tx.commit()?;
        Ok(())
    }

    /// The journal of an item, the latest change first.
    pub fn history(&self, id: i64) -> rusqlite::Result<Vec<Change>> {
        self.connection.all(
            "select item_id, action, nullif(before, '{}') as before, who, at
             from journal
             where item_id = :id
             order by id desc",
            named_params! {":id": id},
        )
    }

    /// The changes of the last commands, the latest first.
    pub fn last_changes(&self, commands: usize) -> rusqlite::Result<Vec<Change>> {
        last_changes(&self.connection, commands)
    }

    /// Takes back the last commands: every item is as it was before. Returns their changes, the latest
    /// first.
    pub fn undo(&mut self, commands: usize) -> rusqlite::Result<Vec<Change>> {
        let tx = self.connection.transaction()?;
        let changes = last_changes(&tx, commands)?;
        for change in &changes {
            match &change.before {
                Some(before) => before.restore(&tx, change.item_id)?,
                None => take_out(&tx, change.item_id)?,
            }
            fault::point("undo:after-item");
        }
        for change in &changes {
            let done = "delete from journal where at = :at";
            tx.run(done, named_params! {":at": change.at})?;
        }
        fault::point("undo:before-commit");
        tx.commit()?;
        fault::point("undo:after-commit");
        Ok(changes)
    }
}

fn last_changes(memory: &Connection, commands: usize) -> rusqlite::Result<Vec<Change>> {
    memory.all(
        "select item_id, action, nullif(before, '{}') as before, who, at
         from journal
         where at in (select distinct at from journal order by at desc limit :commands)
         order by id desc",
        named_params! {":commands": commands},
    )
}

/// The time of a command: later than that of every earlier one, so that it names the command.
pub(crate) fn next_time(tx: &Transaction<'_>, now: Millis) -> rusqlite::Result<Millis> {
    let last = "select coalesce(max(at) + 1, 0) from journal";
    Ok(tx.one::<Millis>(last, [])?.max(now))
}

/// Writes to the journal what an item was before a change; none if it did not exist.
pub(crate) fn note(
    tx: &Transaction<'_>,
    id: i64,
    action: Action,
    before: Option<&Editable>,
    who: &str,
    at: Millis,
) -> rusqlite::Result<()> {
    let before = before.map_or_else(|| Ok("{}".to_owned()), json)?;
    tx.run(
        "insert into journal (item_id, action, before, who, at)
         values (:id, :action, :before, :who, :at)",
        named_params! {":id": id, ":action": action, ":before": before, ":who": who, ":at": at},
    )?;
    Ok(())
}

/// Deletes an item that was remembered or imported, as if it had never been; with its session and
/// project if they have nothing else.
fn take_out(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    let session: Option<(i64, Option<i64>)> = tx.first(
        "select id, project_id
         from sessions
         where id in (select session_id from observations where id = :id
                      union select session_id from summaries where id = :id
                      union select session_id from prompts where id = :id)",
        named_params! {":id": id},
    )?;
    for delete in [
        "delete from observations where id = :id",
        "delete from summaries where id = :id",
        "delete from prompts where id = :id",
        // Receipts, vectors and the journal go with it.
        "delete from items where id = :id",
    ] {
        tx.run(delete, named_params! {":id": id})?;
    }
    if let Some((session, project)) = session {
        take_out_if_empty(tx, session, project)?;
    }
    Ok(())
}

fn take_out_if_empty(tx: &Connection, session: i64, project: Option<i64>) -> rusqlite::Result<()> {
    let parts = [
        "prompts",
        "observations",
        "summaries",
        "events",
        "forgotten",
        "receipts",
    ];
    let parts = parts
        .map(|table| format!("not exists (select 1 from {table} where session_id = :session)"));
    let sql = format!(
        "delete from sessions where id = :session and {}",
        parts.join(" and ")
    );
    tx.run(&sql, named_params! {":session": session})?;
    tx.run(
        "delete from projects
         where id = :project
           and not exists (select 1 from sessions where project_id = :project)
           and not exists (select 1 from notes where project_id = :project)",
        named_params! {":project": project},
    )?;
    Ok(())
}

/// Replaces the fields of an observation. True if something changed.
fn edit(
    tx: &Transaction<'_>,
    id: i64,
    wanted: &Editable,
    who: &str,
    at: Millis,
) -> Result<bool, HandsError> {
    let before = Editable::of(tx, id)?;
    if before.has_fields_of(wanted) {
        return Ok(false);
    }
    note(tx, id, Action::Edit, Some(&before), who, at)?;
    // A time limit alone leaves the words as they are.
    let only_until = before.has_fields_of(&Editable {
        until: before.until,
        ..wanted.clone()
    });
    let after = Editable {
        origin: if only_until {
            before.origin
        } else {
            Origin::User
        },
        edited_at: if only_until {
            before.edited_at
        } else {
            Some(at)
        },
        pinned_at: before.pinned_at,
        hidden_at: before.hidden_at,
        superseded_by: before.superseded_by,
        judged: before.judged.clone(),
        ..wanted.clone()
    };
    after.write(tx, id, &before.title)?;
    Ok(true)
}

/// Pins an observation or unpins it; a pinned one is not hidden. True if it changed.
pub(super) fn pin(
    tx: &Transaction<'_>,
    id: i64,
    on: bool,
    who: &str,
    at: Millis,
) -> Result<bool, HandsError> {
    let before = Editable::of(tx, id)?;
    if before.pinned_at.is_some() == on {
        return Ok(false);
    }
    if on {
        let pinned: Vec<i64> = tx.all(
            "select id
             from observations
             where pinned_at is not null
               and project_id is (select project_id from observations where id = :id)
             order by id",
            named_params! {":id": id},
        )?;
        if pinned.len() >= PINS_MAX {
            let pinned: Vec<_> = pinned.iter().map(|id| format!("#{id}")).collect();
            return Err(HandsError::TooManyPins(pinned.join(", ")));
        }
    }
    note(tx, id, Action::Pin, Some(&before), who, at)?;
    tx.run(
        "update observations
         set pinned_at = iif(:on, :at, null), hidden_at = iif(:on, null, hidden_at)
         where id = :id",
        named_params! {":id": id, ":on": on, ":at": at},
    )?;
    Ok(true)
}

/// Hides an observation or shows it again; a hidden one is not pinned. True if it changed.
fn hide(
    tx: &Transaction<'_>,
    id: i64,
    on: bool,
    who: &str,
    at: Millis,
) -> Result<bool, HandsError> {
    let before = Editable::of(tx, id)?;
    if before.hidden_at.is_some() == on {
        return Ok(false);
    }
    note(tx, id, Action::Hide, Some(&before), who, at)?;
    tx.run(
        "update observations
         set hidden_at = iif(:on, :at, null), pinned_at = iif(:on, null, pinned_at)
         where id = :id",
        named_params! {":id": id, ":on": on, ":at": at},
    )?;
    Ok(true)
}

pub(super) fn set_until(
    tx: &Transaction<'_>,
    id: i64,
    until: Option<Millis>,
) -> rusqlite::Result<()> {
    tx.run(
        "update observations set until = :until where id = :id and until is not :until",
        named_params! {":id": id, ":until": until},
    )?;
    Ok(())
}

impl Editable {
    /// An observation as it is; an error for another kind of item.
    fn of(memory: &Connection, id: i64) -> Result<Editable, HandsError> {
        let kind = "select kind from items where id = :id";
        match memory.first(kind, named_params! {":id": id})? {
            Some(Kind::Observation) => {}
            Some(kind) => return Err(HandsError::OtherKind(id, kind)),
            None => return Err(HandsError::NoItem(id)),
        }
        match Editable::read(memory, id) {
            Err(rusqlite::Error::QueryReturnedNoRows) => Err(HandsError::NoItem(id)),
            read => Ok(read?),
        }
    }

    pub(super) fn read(memory: &Connection, id: i64) -> rusqlite::Result<Editable> {
        memory.one(
            "select type, title, subtitle, facts, narrative, concepts, origin, pinned_at, hidden_at,
                    edited_at, until, superseded_by,
                    (select json_group_array(json_object('path', path, 'role', role, 'size', size,
                                                         'mtime', mtime, 'hash', hash))
                     from observation_files
                     where observation_id = o.id) as files,
                    (select json_group_array(json_object('a', a, 'b', b, 'verdict', verdict, 'at', at))
                     from judged
                     where o.id in (a, b)) as judged
             from observations o
             where id = :id",
            named_params! {":id": id},
        )
    }

    /// Whether the fields that `edit` changes are the same.
    fn has_fields_of(&self, other: &Editable) -> bool {
        let fields = |it: &Editable| Editable {
            origin: Origin::User,
            pinned_at: None,
            hidden_at: None,
            edited_at: None,
            superseded_by: None,
            judged: Vec::new(),
            ..it.clone()
        };
        fields(self) == fields(other)
    }

    /// Writes all columns. A session that is called like the observation is renamed with it. Facts that
    /// changed have the origin of the observation, which is the default.
    fn write(&self, tx: &Connection, id: i64, title_before: &str) -> rusqlite::Result<()> {
        tx.run(
            "update observations
             set type = :type, title = :title, subtitle = :subtitle,
                 fact_origins = iif(facts = :facts, fact_origins, '[]'), facts = :facts,
                 narrative = :narrative, concepts = :concepts, origin = :origin,
                 pinned_at = :pinned_at, hidden_at = :hidden_at, edited_at = :edited_at,
                 until = :until,
                 superseded_by = (select id from observations where id = :superseded_by)
             where id = :id",
            named_params! {
                ":id": id,
                ":type": self.r#type,
                ":title": self.title,
                ":subtitle": self.subtitle,
                ":facts": json(&self.facts)?,
                ":narrative": self.narrative,
                ":concepts": json(&self.concepts)?,
                ":origin": self.origin,
                ":pinned_at": self.pinned_at,
                ":hidden_at": self.hidden_at,
                ":edited_at": self.edited_at,
                ":until": self.until,
                ":superseded_by": self.superseded_by,
            },
        )?;
        set_files(tx, id, &self.files)?;
        set_concepts(tx, id, &self.concepts)?;
        tx.run(
            "update sessions
             set title = iif(title = :before, :after, title),
                 subtitle = iif(subtitle = :before, :after, subtitle)
             where id = (select session_id from observations where id = :id)
               and :before in (title, subtitle) and :before <> :after",
            named_params! {":id": id, ":before": title_before, ":after": self.title},
        )?;
        Ok(())
    }

    /// Restores an observation to this state.
    fn restore(&self, tx: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
        let now = Editable::read(tx, id)?;
        self.write(tx, id, &now.title)?;
        if now.judged == self.judged {
            return Ok(());
        }
        tx.run(
            "delete from judged where :id in (a, b)",
            named_params! {":id": id},
        )?;
        self.judged.iter().try_for_each(|it| it.write(tx))
    }
}

/// Carries over what a person did by hand since a backup was made, from the memory that it replaces to
/// the same items in the one that takes its place. Of the replaced one only rows are read.
pub(crate) fn keep_changes_by_hand(
    replaced: &Connection,
    memory: &Connection,
) -> rusqlite::Result<()> {
    memory.execute_batch(
        "update observations
         set pinned_at = null, hidden_at = null, until = null
         where pinned_at is not null or hidden_at is not null or until is not null;
         delete from judged;
         delete from journal;",
    )?;
    let touched: Vec<(i64, String)> = replaced.all(
        "select i.id, i.uuid
         from items i
         join observations o on o.id = i.id
         where o.pinned_at is not null or o.hidden_at is not null or o.edited_at is not null
            or o.until is not null",
        [],
    )?;
    for (id, uuid) in touched {
        let same = "select 1 from items i join observations o on o.id = i.id where i.id = :id and uuid = :uuid";
        let same: Option<i64> = memory.first(same, named_params! {":id": id, ":uuid": uuid})?;
        if same.is_some() {
            keep_change(replaced, memory, id)?;
        }
    }
    let judged: Vec<Judged> = replaced.all("select a, b, verdict, at from judged", [])?;
    for it in judged {
        it.write(memory)?;
        memory.run(
            "update observations
             set superseded_by = :a
             where id = :b and :verdict = 'supersedes' and exists (select 1 from observations where id = :a)",
            named_params! {":a": it.a, ":b": it.b, ":verdict": it.verdict},
        )?;
    }
    let journal: Vec<(i64, Action, String, String, Millis)> = replaced.all(
        "select item_id, action, before, who, at from journal order by id",
        [],
    )?;
    for (id, action, before, who, at) in journal {
        memory.run(
            "insert into journal (item_id, action, before, who, at)
             select id, :action, :before, :who, :at from items where id = :id",
            named_params! {
                ":id": id, ":action": action, ":before": before, ":who": who, ":at": at,
            },
        )?;
    }
    Ok(())
}

/// Carries over the changes to one observation: its text only if that was edited since.
fn keep_change(replaced: &Connection, memory: &Connection, id: i64) -> rusqlite::Result<()> {
    let now = Editable::read(memory, id)?;
    let mut wanted: Editable = replaced.one(
        "select type, title, subtitle, facts, narrative, concepts, origin, pinned_at, hidden_at,
                edited_at, until, superseded_by
         from observations
         where id = :id",
        named_params! {":id": id},
    )?;
    wanted.files = replaced.all(
        "select path, role, size, mtime, hash from observation_files where observation_id = :id",
        named_params! {":id": id},
    )?;
    wanted.superseded_by = now.superseded_by;
    if wanted.edited_at.is_none() || wanted.edited_at == now.edited_at {
        wanted = Editable {
            pinned_at: wanted.pinned_at,
            hidden_at: wanted.hidden_at,
            until: wanted.until,
            ..now.clone()
        };
    }
    wanted.write(memory, id, &now.title)
}
