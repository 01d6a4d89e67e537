//! Knows an insight again, and what has overtaken what. `crate::store::kin::judge` judges two of them;
//! this finds whom to judge, and writes down what follows.
//!
//! The same insight told again is a row of `repeats`, not an observation. Such a row stands
//! for the observation that it would have been: it goes when its turn is derived again
//! without it, and if the first teller takes the insight back, the next one who told it has
//! it. A decision that a newer one supersedes is marked. Called by `commit` and `remember`
//! within their transactions, so that deriving again comes to the same.

pub mod judge;
pub mod words;

use std::collections::{BTreeSet, HashMap};

use rusqlite::{OptionalExtension as _, Params, Row, Transaction, named_params};

use super::commit::DerivedTurn;
use super::items::next_item;
use super::observations::upsert_observation;
use super::sessions::SessionRow;
use super::{json, list};
use crate::model::{Kind, Millis, Observation, Origin};
use crate::text::words::{Word, words};
use judge::{Insight, Kinship, kinship};

/// Titles are looked for by so many of their rarest words,
const TERMS_MAX: usize = 4;
/// which are counted up to here.
const COUNTED_MAX: usize = 64;
/// Only so many of the newest numbers are looked through, a year of heavy use, so that it takes
/// little longer as the memory grows: FTS5 has to find where they begin.
const LOOKED_THROUGH_MAX: i64 = 20_000;
/// So many of the newest are compared.
const COMPARED_MAX: usize = 30;

/// Whom the observations of a batch may be kin to. They are looked up before anything is
/// written: after each write, a full-text query has FTS5 put on disk what it holds back,
/// which takes longer than all the rest.
#[derive(Default)]
pub(super) struct Candidates {
    by_title: HashMap<String, Vec<i64>>,
    /// What the batch itself brought, with the words of its titles.
    stored: Vec<(BTreeSet<String>, i64)>,
}

impl Candidates {
    pub fn of(tx: &Transaction<'_>, turns: &[DerivedTurn]) -> rusqlite::Result<Candidates> {
        let mut candidates = Candidates::default();
        for derived in turns {
            for observation in &derived.derived.observations {
                candidates.look_up(tx, title(observation, derived))?;
            }
        }
        Ok(candidates)
    }

    pub fn look_up(&mut self, tx: &Transaction<'_>, title: &str) -> rusqlite::Result<()> {
        let mut newest = tx.prepare_cached("select ifnull(max(id), 0) from items")?;
        let after = newest.query_row([], |row| row.get::<_, i64>(0))? - LOOKED_THROUGH_MAX;
        let Some(expression) = rarest_words(tx, title, after)? else {
            return Ok(());
        };
        let mut statement = tx.prepare_cached(
            "select rowid from texts where texts match :expression and rowid > :after
             order by rowid desc limit :max",
        )?;
        let parameters =
            named_params! {":expression": expression, ":after": after, ":max": COMPARED_MAX};
        let rows = statement.query_map(parameters, |row| row.get(0))?;
        let ids = rows.collect::<rusqlite::Result<_>>()?;
        self.by_title.insert(title.to_owned(), ids);
        Ok(())
    }

    /// Two titles that are kin have two words in common.
    fn of_title(&self, title: &str) -> BTreeSet<i64> {
        let terms = terms(title);
        let stored = self.stored.iter();
        let stored = stored.filter(|(others, _)| terms.intersection(others).nth(1).is_some());
        let known = self.by_title.get(title).into_iter().flatten();
        known.chain(stored.map(|(_, id)| id)).copied().collect()
    }
}

/// What was said outright has no title of its own: all of it must be the same.
fn title<'a>(observation: &'a Observation, derived: &DerivedTurn) -> &'a str {
    match derived.provenance.provider == Origin::User.as_str() {
        true => &observation.narrative,
        false => &observation.title,
    }
}

/// Stores an observation and gives its number: that of an older one if it says the same.
pub(super) fn keep_observation(
    tx: &Transaction<'_>,
    candidates: &mut Candidates,
    session: &SessionRow,
    prompt: Option<i64>,
    observation: &Observation,
    derived: &DerivedTurn,
) -> rusqlite::Result<i64> {
    let known = known(tx, session, observation)?;
    if let Some((id, true)) = known {
        // Its links are as they should be.
        upsert_observation(tx, id, session, prompt, observation, derived)?;
        return Ok(id);
    }
    let id = known.map(|(id, _)| id);
    let relatives = relatives(tx, candidates, session, id, observation, derived)?;
    let twin = relatives
        .iter()
        .find(|it| it.is_twin_of(observation, derived));
    if let (None, Some(twin)) = (id, twin) {
        tx.prepare_cached(
            "insert into repeats (session_id, prompt_id, seed, observation_id, provider, events, at)
             values (:session, :prompt, :seed, :twin, :provider, :events, :at)
             on conflict do update
             set prompt_id = excluded.prompt_id, observation_id = excluded.observation_id,
                 provider = excluded.provider, events = excluded.events, at = excluded.at",
        )?
        .execute(named_params! {
            ":session": session.id,
            ":prompt": prompt,
            ":seed": observation.seed,
            ":twin": twin.id,
            ":provider": derived.provenance.provider,
            ":events": json(&observation.events)?,
            ":at": observation.at,
        })?;
        return Ok(twin.id);
    }
    tx.prepare_cached("delete from repeats where session_id = :session and seed = :seed")?
        .execute(named_params! {":session": session.id, ":seed": observation.seed})?;
    let id = match id {
        Some(id) => id,
        None => next_item(tx, Kind::Observation, observation.at)?,
    };
    upsert_observation(tx, id, session, prompt, observation, derived)?;
    link(tx, id, observation, &relatives)?;
    let title = title(observation, derived);
    candidates.stored.push((terms(title), id));
    Ok(id)
}

/// The observation that is stored under the same session and seed, and whether it reads the same.
fn known(
    tx: &Transaction<'_>,
    session: &SessionRow,
    observation: &Observation,
) -> rusqlite::Result<Option<(i64, bool)>> {
    let mut statement = tx.prepare_cached(
        "select id, type = :type and title = :title
         from observations
         where session_id = :session and seed = :seed",
    )?;
    let parameters = named_params! {
        ":session": session.id,
        ":seed": observation.seed,
        ":type": observation.kind,
        ":title": observation.title,
    };
    let known = statement.query_row(parameters, |row| Ok((row.get(0)?, row.get(1)?)));
    known.optional()
}

/// Another observation of the project that is kin to the one to be stored.
struct Relative {
    id: i64,
    kinship: Kinship,
    /// Which of the two was told first.
    is_older: bool,
    has_same_facts: bool,
    origin: Origin,
    at: Millis,
    /// When it was superseded.
    superseded_at: Option<Millis>,
}

impl Relative {
    fn stood_at(&self, at: Millis) -> bool {
        self.superseded_at.is_none_or(|since| since > at)
    }

    fn is_twin_of(&self, observation: &Observation, derived: &DerivedTurn) -> bool {
        // What the extractor tells of work is what was done: done otherwise it is news.
        let is_news = derived.provenance.provider == "offline"
            && observation.kind.is_work()
            && !self.has_same_facts;
        // Who comes back to a decision that was overtaken decides anew.
        let stood = self.stood_at(observation.at);
        // The user's word is not lost in somebody else's.
        let weighs_less = observation.origin == Origin::User && self.origin != Origin::User;
        self.kinship == Kinship::Duplicate && stood && !weighs_less && !is_news
    }
}

/// Those that are kin to an observation, the oldest number first.
fn relatives(
    tx: &Transaction<'_>,
    candidates: &Candidates,
    session: &SessionRow,
    id: Option<i64>,
    observation: &Observation,
    derived: &DerivedTurn,
) -> rusqlite::Result<Vec<Relative>> {
    let title = title(observation, derived);
    let paths: Vec<String> = observation.files.iter().map(|it| it.path.clone()).collect();
    let this = Insight {
        kind: observation.kind,
        title,
        subtitle: &observation.subtitle,
        facts: &observation.facts,
        narrative: &observation.narrative,
        concepts: &observation.concepts,
        files: &paths,
    };
    let mut statement = tx.prepare_cached(
        "select o.id, iif(o.provider = 'user', o.narrative, o.title) as title,
                o.subtitle, o.facts, o.narrative, o.concepts,
                (select json_group_array(distinct path) from observation_files where observation_id = o.id) as files,
                o.origin, o.at, successor.at as superseded_at
         from json_each(:ids) as candidate
         cross join observations o on o.id = candidate.value
         left join observations successor on successor.id = o.superseded_by
         where o.project_id = :project and o.type = :type and o.id is not :id
         order by o.id",
    )?;
    let parameters = named_params! {
        ":ids": json(&candidates.of_title(title))?,
        ":project": session.project_id,
        ":type": observation.kind,
        ":id": id,
    };
    let relative = |row: &Row<'_>| {
        let text = |column| row.get::<_, String>(column);
        let (title, subtitle, narrative) = (text("title")?, text("subtitle")?, text("narrative")?);
        let facts = list(row, "facts")?;
        let (concepts, files) = (list(row, "concepts")?, list(row, "files")?);
        let that = Insight {
            kind: observation.kind,
            title: &title,
            subtitle: &subtitle,
            facts: &facts,
            narrative: &narrative,
            concepts: &concepts,
            files: &files,
        };
        let order = (row.get("at")?, row.get("id")?);
        let is_older = order < (observation.at, id.unwrap_or(i64::MAX));
        let kinship = match is_older {
            true => kinship(&that, &this),
            false => kinship(&this, &that),
        };
        Ok(Relative {
            id: order.1,
            kinship,
            is_older,
            has_same_facts: facts == observation.facts
                && (!facts.is_empty() || text("title")? == observation.title),
            origin: row.get("origin")?,
            at: order.0,
            superseded_at: row.get("superseded_at")?,
        })
    };
    let rows = statement.query_map(parameters, relative)?;
    let mut relatives = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    relatives.retain(|it| it.kinship != Kinship::Unrelated);
    Ok(relatives)
}

/// What a title is looked for by.
fn terms(title: &str) -> BTreeSet<String> {
    let words = words(title);
    let words = words.iter().filter(|word| !word.is_stop_word());
    words.flat_map(Word::terms).map(str::to_owned).collect()
}

/// What to ask FTS5 for; none if no two words of a title are known.
fn rarest_words(tx: &Transaction<'_>, title: &str, after: i64) -> rusqlite::Result<Option<String>> {
    // Wherever they stand: to look at titles alone would take longer for a common word.
    let mut statement = tx.prepare_cached(
        "select count(*)
         from (select 1 from texts where texts match :term and rowid > :after limit :max)",
    )?;
    let mut counted: Vec<(usize, String)> = Vec::new();
    for term in terms(title).iter().map(|term| format!("\"{term}\"")) {
        let parameters = named_params! {":term": term, ":after": after, ":max": COUNTED_MAX};
        counted.push((statement.query_row(parameters, |row| row.get(0))?, term));
    }
    counted.retain(|(rows, _)| *rows > 0);
    counted.sort();
    counted.truncate(TERMS_MAX);
    let terms: Vec<&str> = counted.iter().map(|(_, term)| term.as_str()).collect();
    let pairs = (1..terms.len()).map(|at| {
        let rarer = terms[..at].join(" OR ");
        format!("({} AND ({rarer}))", terms[at])
    });
    let pairs: Vec<String> = pairs.collect();
    Ok((!pairs.is_empty()).then(|| format!("{{title parts}} : ({})", pairs.join(" OR "))))
}

/// Marks what an observation supersedes, and what supersedes it if it was told late.
fn link(
    tx: &Transaction<'_>,
    id: i64,
    observation: &Observation,
    relatives: &[Relative],
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "update observations set superseded_by = null where superseded_by = :id or id = :id",
    )?
    .execute(named_params! {":id": id})?;
    let mut mark =
        tx.prepare_cached("update observations set superseded_by = :by where id = :id")?;
    // What was merely read does not overtake what the user said.
    let weighs = |older: Origin, newer: Origin| older != Origin::User || newer <= Origin::Agent;
    let supersede = |it: &&Relative| it.kinship == Kinship::Supersedes;
    for it in relatives.iter().filter(supersede) {
        if it.is_older && it.stood_at(observation.at) && weighs(it.origin, observation.origin) {
            mark.execute(named_params! {":id": it.id, ":by": id})?;
        }
    }
    let newer = relatives.iter().filter(supersede);
    let newer = newer.filter(|it| !it.is_older && weighs(observation.origin, it.origin));
    if let Some(newer) = newer.min_by_key(|it| (it.at, it.id)) {
        mark.execute(named_params! {":id": id, ":by": newer.id})?;
    }
    Ok(())
}

/// Takes back what a condition names, in `repeats` and in `observations`. An insight that
/// somebody else told too goes over to who told it next, and keeps its number.
pub(super) fn withdraw<P: Params + Copy>(
    tx: &Transaction<'_>,
    outdated: &str,
    parameters: P,
) -> rusqlite::Result<()> {
    tx.execute(&format!("delete from repeats where {outdated}"), parameters)?;
    let handed_over = tx.execute(
        &format!(
            "update observations
             set (session_id, prompt_id, seed, provider, events, at) = (
                 select session_id, prompt_id, seed, provider, events, at
                 from repeats
                 where observation_id = observations.id
                 order by at, session_id, seed
                 limit 1
             )
             where {outdated} and exists (select 1 from repeats where observation_id = observations.id)"
        ),
        parameters,
    )?;
    if handed_over > 0 {
        tx.execute(
            "delete from repeats
             where exists (
                 select 1
                 from observations o
                 where o.session_id = repeats.session_id and o.seed = repeats.seed
             )",
            [],
        )?;
    }
    tx.execute(
        &format!("delete from observations where {outdated}"),
        parameters,
    )?;
    Ok(())
}
