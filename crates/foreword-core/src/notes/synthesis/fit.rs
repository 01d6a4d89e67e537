//! Keeps the master small: what is newest and rests on the most notes stays, and every section
//! keeps its share.

use std::cmp::Reverse;
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

/// Leaves the statements that fit, and groups them; gives the others. `when` tells how new a note is.
pub fn fit(
    sections: &mut [Section],
    when: &BTreeMap<&str, &String>,
    max_tokens: usize,
) -> Vec<Statement> {
    let mut used = 60;
    let mut order = Vec::new();
    for (number, section) in sections.iter_mut().enumerate() {
        used += text::tokens(&section.name) + text::tokens(section.lead.as_deref().unwrap_or(""));
        let weight = match section.name.as_str() {
            EVOLUTION => 0,
            DECISIONS | QUESTIONS => 2,
            _ => 1,
        };
        for (at, statement) in section.statements.iter_mut().enumerate() {
            let more = statement.sessions.len().saturating_sub(CITED_MAX);
            statement.sessions.drain(1..=more);
            let sessions = statement.sessions.iter();
            let newest = sessions.filter_map(|it| when.get(it.as_str())).max();
            let worth = weight + statement.sessions.len().min(4);
            order.push((Reverse((worth, newest)), number, at));
        }
    }
    order.sort();
    // A quarter of it is shared out evenly, the rest goes to what is worth most.
    let share = max_tokens / 4 / sections.len().max(1);
    let (mut stays, mut linked) = (BTreeSet::new(), BTreeSet::new());
    for max in [share, max_tokens] {
        let mut of_section = vec![0; sections.len()];
        for (_, number, at) in &order {
            let statement = &sections[*number].statements[*at];
            of_section[*number] += cost(statement);
            let links = statement.sessions.iter().filter(|it| !linked.contains(*it));
            let cost = cost(statement) + links.count() * LINK;
            if of_section[*number] > max || stays.contains(&(*number, *at)) {
                continue;
            }
            if used + cost > max_tokens {
                break;
            }
            used += cost;
            linked.extend(statement.sessions.iter().cloned());
            stays.insert((*number, *at));
        }
    }
    let mut left_out = Vec::new();
    for (number, section) in sections.iter_mut().enumerate() {
        let all = std::mem::take(&mut section.statements);
        let had = !all.is_empty();
        for (at, statement) in all.into_iter().enumerate() {
            match stays.contains(&(number, at)) {
                true => section.statements.push(statement),
                false => left_out.push(statement),
            }
        }
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
