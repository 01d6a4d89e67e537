//! Reads the master that a model, or an agent, wrote: untrusted text.
//!
//! All sections must be there, and a statement counts only with notes that exist: it is
//! dropped if it cites none, and an unknown citation is removed. Marks are ours to set.

use std::collections::BTreeMap;

use super::{Section, Statement};
use crate::notes::evidence::unmarked;
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub sections: Vec<Section>,
    /// Statements that cited no note.
    pub dropped: usize,
}

const TEXT_MAX: usize = 600;

/// `labels` by session; the error says what is missing.
pub fn read(
    answer: &str,
    names: &[String],
    labels: &BTreeMap<String, String>,
) -> Result<Reply, String> {
    let mut sections: Vec<Option<Section>> = vec![None; names.len()];
    let (mut at, mut theme, mut dropped) = (None, None, 0);
    for line in answer.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            at = names
                .iter()
                .position(|it| it.eq_ignore_ascii_case(name.trim()));
            theme = None;
            if let Some(at) = at {
                sections[at].get_or_insert_with(|| Section {
                    name: names[at].clone(),
                    ..Section::default()
                });
            }
            continue;
        }
        if let Some(name) = line.strip_prefix("### ") {
            theme = Some(text::shorten(&text::one_line(name), 60).into_owned());
            continue;
        }
        let section = at.and_then(|at: usize| sections[at].as_mut());
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        if let (Some(section), Some(item)) = (section, item) {
            match statement(item, labels) {
                Some(statement) => section.statements.push(Statement {
                    theme: theme.clone(),
                    ..statement
                }),
                None => dropped += 1,
            }
        }
    }
    let missing = names.iter().zip(&sections).filter(|it| it.1.is_none());
    let missing: Vec<_> = missing.map(|it| format!("`## {}`", it.0)).collect();
    if !missing.is_empty() {
        return Err(format!("{} missing", missing.join(", ")));
    }
    let mut sections: Vec<_> = sections.into_iter().flatten().collect();
    if sections.iter().all(|it| it.statements.is_empty()) {
        return Err(format!("no statement cites a note ({dropped} cite none)"));
    }
    for section in &mut sections {
        // What has no theme stands before the first.
        section.statements.sort_by_key(|it| it.theme.is_some());
    }
    Ok(Reply { sections, dropped })
}

fn statement(item: &str, labels: &BTreeMap<String, String>) -> Option<Statement> {
    let item = unmarked(&text::one_line(item));
    let (mut said, mut sessions) = (String::new(), Vec::new());
    let mut rest = item.as_str();
    while let Some(open) = rest.find('[') {
        let (before, inside) = rest.split_at(open);
        said.push_str(before);
        let Some(close) = inside.find(']') else {
            rest = inside;
            break;
        };
        let (words, after) = (&inside[1..close], &inside[close + 1..]);
        let cited: Vec<_> = words
            .split([',', ' '])
            .filter(|it| !it.is_empty())
            .collect();
        let is_id = |it: &&str| {
            let plain = it
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
            plain && it.contains(|it: char| it.is_ascii_digit())
        };
        let known: Vec<_> = cited.iter().filter_map(|it| session(it, labels)).collect();
        // `[text](target)` and `[x]` are somebody's words.
        if known.is_empty() && (after.starts_with('(') || !cited.iter().all(is_id)) {
            said.push_str(&inside[..=close]);
        } else {
            said.truncate(said.trim_end().len());
            sessions.extend(known);
        }
        rest = after;
    }
    said.push_str(rest);
    let said = text::one_line(&said);
    sessions.sort();
    sessions.dedup();
    let says = said.contains(char::is_alphanumeric) && !sessions.is_empty();
    says.then(|| Statement {
        text: text::shorten(&said, TEXT_MAX).into_owned(),
        sessions,
        theme: None,
    })
}

/// The session that is cited, by its label or how it begins.
fn session(cited: &str, labels: &BTreeMap<String, String>) -> Option<String> {
    let mut by_label = labels.iter().filter(|it| it.1 == cited);
    let mut begins = labels
        .keys()
        .filter(|it| cited.len() >= 8 && it.starts_with(cited));
    let exact = by_label.next().map(|it| it.0);
    exact.or_else(|| begins.next()).cloned()
}
