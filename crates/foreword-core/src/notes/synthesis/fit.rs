//! Keeps the master small: what is oldest and rests on the fewest notes falls out first, but
//! every section keeps its share.

use std::collections::{BTreeMap, BTreeSet};

use super::{Section, Statement, themes};
use crate::notes::master::{DECISIONS, EVOLUTION, QUESTIONS};
use crate::text;

/// Of more notes that say the same, the first and the last are cited.
const CITED_MAX: usize = 12;
/// What the link to a note costs at the end of the file.
const LINK: usize = 18;

/// What a section says that nothing is left of.
const ARCHIVED: &str = "What was here is in `archive/`.";

/// Takes statements out until the rest fits, and groups that; gives them. `when` tells how new a note is.
pub fn fit(
    sections: &mut [Section],
    when: &BTreeMap<&str, &String>,
    max_tokens: usize,
) -> Vec<Statement> {
    let mut tokens = 60;
    let mut order = Vec::new();
    let mut links: BTreeMap<String, usize> = BTreeMap::new();
    for (number, section) in sections.iter_mut().enumerate() {
        tokens += text::tokens(&section.name) + text::tokens(section.lead.as_deref().unwrap_or(""));
        let weight = match section.name.as_str() {
            EVOLUTION => 0,
            DECISIONS | QUESTIONS => 2,
            _ => 1,
        };
        for (at, statement) in section.statements.iter_mut().enumerate() {
            let more = statement.sessions.len().saturating_sub(CITED_MAX);
            statement.sessions.drain(1..=more);
            let newest = statement
                .sessions
                .iter()
                .filter_map(|it| when.get(it.as_str()))
                .max();
            let cited = statement.sessions.len().min(4);
            order.push((weight + cited, newest.copied(), number, at));
            tokens += cost(statement);
            for session in &statement.sessions {
                *links.entry(session.clone()).or_default() += 1;
            }
        }
    }
    order.sort();
    let costs = |it: &Section| it.statements.iter().map(cost).sum();
    let mut left: Vec<usize> = sections.iter().map(costs).collect();
    // A quarter of it is shared out evenly; only when that is not enough, nobody is spared.
    let share = max_tokens / 4 / sections.len().max(1);
    let mut out = BTreeSet::new();
    let twice = [share, 0].into_iter();
    for (share, (_, _, number, at)) in twice.flat_map(|it| order.iter().map(move |o| (it, o))) {
        if tokens + links.len() * LINK <= max_tokens {
            break;
        }
        let statement = &sections[*number].statements[*at];
        let cost = cost(statement);
        if left[*number] < share + cost || !out.insert((*number, *at)) {
            continue;
        }
        left[*number] -= cost;
        tokens -= cost;
        for session in &statement.sessions {
            match links.get_mut(session) {
                Some(uses) if *uses > 1 => *uses -= 1,
                _ => drop(links.remove(session)),
            }
        }
    }
    let mut left_out = Vec::new();
    for (number, section) in sections.iter_mut().enumerate() {
        let (mut at, had) = (0, !section.statements.is_empty());
        section.statements.retain(|statement| {
            let falls = out.contains(&(number, at));
            at += 1;
            if falls {
                left_out.push(statement.clone());
            }
            !falls
        });
        if had && section.statements.is_empty() {
            let lead = section.lead.take().map(|it| it + "\n\n");
            section.lead = Some(lead.unwrap_or_default() + ARCHIVED);
        }
        if section.statements.iter().all(|it| it.theme.is_none()) {
            themes::group(&mut section.statements);
        }
    }
    left_out
}

fn cost(statement: &Statement) -> usize {
    text::tokens(&statement.text) + 3 * statement.sessions.len() + 2
}
