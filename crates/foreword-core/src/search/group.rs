//! Groups hits into lines: the prompt, the summary and the observations of a turn are one hit.
//!
//! If one session has many of the first hits, the session is what was looked for, and it is one hit
//! too. A group stands where its best item stood; its line is an observation if it has one.

use std::collections::{HashMap, HashSet};

use super::{Hit, list};
use crate::model::Kind;
use crate::store::Store;

/// What one hit of a search stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// A single item: if items of one kind or type are asked for.
    Items,
    Turns,
    Sessions,
}

/// A session becomes one hit if it has this many of the first turns.
const MANY: usize = 4;
/// The turns that are looked at to see whether a session has many of them.
const FIRST: usize = 10;
/// The least number of items that are searched, so that groups can be counted.
const REACH: u32 = 200;

impl Group {
    /// How many items to search for this many groups.
    pub fn reach(self, groups: u32) -> u32 {
        let items_each = match self {
            Group::Items => 1,
            Group::Turns => 10,
            Group::Sessions => 20,
        };
        groups.saturating_mul(items_each).max(REACH)
    }
}

/// The groups of these hits, in the order of their best items. Overtaken items come after what
/// overtook them.
pub fn grouped(hits: Vec<Hit>, group: Group) -> Vec<Hit> {
    let hits = overtaken_last(hits);
    match group {
        Group::Items => hits,
        Group::Sessions => merged(hits, |hit| Key::session(hit).unwrap_or(Key::item(hit))),
        Group::Turns => {
            let turns = merged(hits, |hit| hit.turn.map_or(Key::item(hit), Key::Turn));
            let whole = whole_sessions(&turns);
            merged(turns, |hit| {
                let session = Key::session(hit).filter(|_| whole.contains(&hit.session));
                session.unwrap_or(Key::item(hit))
            })
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Item(i64),
    Turn(i64),
    Session(String),
}

impl Key {
    fn item(hit: &Hit) -> Key {
        Key::Item(hit.id)
    }

    /// None for a note, which is about more than one session.
    fn session(hit: &Hit) -> Option<Key> {
        (hit.kind != Kind::Note).then(|| Key::Session(hit.session.clone()))
    }
}

/// The sessions that have many of the first turns, if other sessions were found too.
fn whole_sessions(turns: &[Hit]) -> HashSet<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for turn in turns.iter().take(FIRST).filter(|it| it.turn.is_some()) {
        *counts.entry(&turn.session).or_default() += 1;
    }
    let is_one = counts.len() == 1;
    let many = counts
        .into_iter()
        .filter(|(_, count)| *count >= MANY && !is_one);
    many.map(|(session, _)| session.to_owned()).collect()
}

/// One hit for each key.
fn merged(hits: Vec<Hit>, key: impl Fn(&Hit) -> Key) -> Vec<Hit> {
    let mut at: HashMap<Key, usize> = HashMap::new();
    let mut groups: Vec<Hit> = Vec::new();
    for hit in hits {
        match at.entry(key(&hit)) {
            std::collections::hash_map::Entry::Occupied(known) => {
                add(&mut groups[*known.get()], hit);
            }
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(groups.len());
                groups.push(hit);
            }
        }
    }
    groups
}

/// Adds a hit to a group that a better one began.
fn add(group: &mut Hit, mut hit: Hit) {
    let is_same_turn = group.turn.is_some() && group.turn == hit.turn;
    let turns = group.turns + if is_same_turn { 0 } else { hit.turns };
    let items = [group.items.as_slice(), &hit.items].concat();
    if line_rank(&hit) < line_rank(group) {
        (hit.score, hit.matched) = (group.score, group.matched);
        *group = hit;
    }
    (group.items, group.turns) = (items, turns);
}

/// The hit with the least rank is the line of its group.
fn line_rank(hit: &Hit) -> u8 {
    match hit.kind {
        Kind::Observation if !hit.is_overtaken() => 0,
        Kind::Observation => 1,
        Kind::Summary => 2,
        Kind::Prompt | Kind::Note => 3,
    }
}

/// Moves each hit behind the one that supersedes it, if that was found too.
fn overtaken_last(hits: Vec<Hit>) -> Vec<Hit> {
    let at: HashMap<i64, usize> = (0..).zip(&hits).map(|(at, hit)| (hit.id, at)).collect();
    let successor = |hit: &Hit| at.get(&hit.superseded_by?).copied();
    // A later decision may itself be superseded; eight steps are more than anybody takes.
    let place = |own: usize| {
        let chain = std::iter::successors(Some(own), |at| successor(&hits[*at]));
        let chain: Vec<usize> = chain.take(8).collect();
        (chain.iter().copied().max().unwrap_or(own), chain.len())
    };
    let places: Vec<_> = (0..hits.len()).map(place).collect();
    let mut placed: Vec<_> = places.into_iter().zip(hits).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, hit)| hit).collect()
}

/// Adds to each turn its items that were not found, and puts an observation in its line if it has
/// one.
pub fn complete(store: &Store, hits: &mut [Hit]) -> rusqlite::Result<()> {
    let turns = |hit: &Hit| hit.turn.filter(|_| hit.turns == 1);
    let wanted: Vec<i64> = hits.iter().filter_map(turns).collect();
    let members = list::of_turns(store, &wanted)?;
    for hit in hits {
        let Some(turn) = turns(hit) else {
            continue;
        };
        let found = hit.items.clone();
        for member in members.iter().filter(|it| it.turn == Some(turn)) {
            if !found.contains(&member.id) {
                add(hit, member.clone());
            }
        }
        hit.items.sort_unstable();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Matched;

    fn hit(id: i64, kind: Kind, session: &str, turn: i64) -> Hit {
        Hit {
            id,
            items: vec![id],
            turn: Some(turn),
            turns: 1,
            kind,
            observation_type: None,
            title: String::new(),
            subtitle: String::new(),
            project: None,
            session: session.to_owned(),
            at: 0,
            superseded_by: None,
            retracted: None,
            origin: None,
            pinned: false,
            hidden: false,
            until: None,
            score: Some(100.0 - id as f64),
            matched: Some(Matched::AllWords),
            share: 1.0,
            freshness: None,
        }
    }

    /// The id of each line, and the ids that it stands for.
    fn lines(hits: Vec<Hit>, group: Group) -> Vec<(i64, Vec<i64>)> {
        let grouped = grouped(hits, group).into_iter();
        grouped.map(|hit| (hit.id, hit.items)).collect()
    }

    #[test]
    fn a_turn_is_one_hit_with_the_title_of_its_best_observation() {
        let hits = || {
            vec![
                hit(1, Kind::Prompt, "a", 1),
                hit(2, Kind::Summary, "a", 1),
                hit(3, Kind::Summary, "b", 9),
                hit(4, Kind::Observation, "a", 1),
                hit(5, Kind::Observation, "a", 1),
                hit(6, Kind::Prompt, "b", 9),
            ]
        };
        assert_eq!(
            lines(hits(), Group::Turns),
            [(4, vec![1, 2, 4, 5]), (3, vec![3, 6])]
        );
        let first = grouped(hits(), Group::Turns).swap_remove(0);
        assert_eq!(first.score, Some(99.0), "the score of its best item");
        assert_eq!(lines(hits(), Group::Items).len(), 6);
    }

    #[test]
    fn a_session_with_many_of_the_first_turns_is_one_hit_unless_there_is_no_other() {
        let many = |others: &[Hit]| {
            let many = (1..=4).map(|id| hit(id, Kind::Observation, "many", id));
            many.chain(others.iter().cloned()).collect::<Vec<_>>()
        };
        let other = [hit(5, Kind::Observation, "other", 5)];
        assert_eq!(
            lines(many(&other), Group::Turns),
            [(1, vec![1, 2, 3, 4]), (5, vec![5])]
        );
        assert_eq!(grouped(many(&other), Group::Turns)[0].turns, 4);
        assert_eq!(lines(many(&[]), Group::Turns).len(), 4);
        assert_eq!(lines(many(&[]), Group::Sessions).len(), 1);
    }

    #[test]
    fn what_was_overtaken_comes_after_what_overtook_it_and_is_no_line_if_there_is_another() {
        let mut hits: Vec<Hit> = (1..=4)
            .map(|id| hit(id, Kind::Observation, "a", id))
            .collect();
        hits[0].superseded_by = Some(3);
        hits[2].superseded_by = Some(4);
        let ids = |hits: Vec<Hit>| hits.iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids(grouped(hits, Group::Items)), [2, 4, 3, 1]);
        let mut retracted = hit(1, Kind::Observation, "a", 1);
        retracted.retracted = Some("the clock was wrong".into());
        let turn = vec![retracted, hit(2, Kind::Observation, "a", 1)];
        assert_eq!(lines(turn, Group::Turns), [(2, vec![1, 2])]);
    }
}
