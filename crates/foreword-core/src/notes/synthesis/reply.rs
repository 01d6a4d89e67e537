//! Reads the master that a model, or an agent, wrote: untrusted text.
//!
//! All sections must be there, and a statement counts only with notes that exist: it is
//! dropped if it cites none, and an unknown citation is removed. Marks are ours to set.

use std::collections::{BTreeMap, BTreeSet};

use super::{Section, Statement};
use crate::notes::evidence::unmarked;
use crate::notes::note::item;
use crate::text;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterReply {
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
) -> Result<MasterReply, String> {
    let mut sections: Vec<_> = names.iter().map(|it| Section::called(it)).collect();
    let mut missing: Vec<_> = names.iter().collect();
    let (mut at, mut theme, mut dropped) = (None, None, 0);
    for line in answer.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            let is_it = |it: &String| it.eq_ignore_ascii_case(name.trim());
            at = names.iter().position(is_it);
            missing.retain(|it| !is_it(it));
            theme = None;
        } else if let Some(name) = line.strip_prefix("### ") {
            theme = Some(text::shorten(&text::one_line(name), 60).into_owned());
        } else if let (Some(at), Some(item)) = (at, item(line)) {
            match statement(item, labels, &theme) {
                Some(statement) => sections[at].statements.push(statement),
                None => dropped += 1,
            }
        }
    }
    if !missing.is_empty() {
        let missing: Vec<_> = missing.iter().map(|it| format!("`## {it}`")).collect();
        return Err(format!("{} missing", missing.join(", ")));
    }
    if sections.iter().all(|it| it.statements.is_empty()) {
        return Err(format!("no statement cites a note ({dropped} cite none)"));
    }
    for section in &mut sections {
        // Statements without a theme come before those with one.
        section.statements.sort_by_key(|it| it.theme.is_some());
    }
    Ok(MasterReply { sections, dropped })
}

fn statement(
    item: &str,
    labels: &BTreeMap<String, String>,
    theme: &Option<String>,
) -> Option<Statement> {
    let item = unmarked(&text::one_line(item));
    let (mut said, mut sessions) = (String::new(), BTreeSet::new());
    let mut rest = item.as_str();
    while let Some((before, (inside, after))) = rest
        .split_once('[')
        .and_then(|(before, it)| Some((before, it.split_once(']')?)))
    {
        said.push_str(before);
        let cited = inside.split([',', ' ']).filter(|it| !it.is_empty());
        let known: Vec<_> = cited.clone().filter_map(|it| session(it, labels)).collect();
        let is_id = |it: &str| {
            let plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
            it.chars().all(plain) && it.contains(|it: char| it.is_ascii_digit())
        };
        // `[text](target)` and `[x]` are somebody's words.
        if known.is_empty() && (after.starts_with('(') || !cited.clone().all(is_id)) {
            said.push_str(&format!("[{inside}]"));
        } else {
            said.truncate(said.trim_end().len());
            sessions.extend(known);
        }
        rest = after;
    }
    said.push_str(rest);
    let said = text::one_line(&said);
    let says = said.contains(char::is_alphanumeric) && !sessions.is_empty();
    says.then(|| Statement {
        text: text::shorten(&said, TEXT_MAX).into_owned(),
        sessions: sessions.into_iter().collect(),
        theme: theme.clone(),
    })
}

/// The session that is cited, by its label or how it begins.
fn session(cited: &str, labels: &BTreeMap<String, String>) -> Option<String> {
    let by_label = labels.iter().find(|it| it.1 == cited).map(|it| it.0);
    let begins = |it: &&String| cited.len() >= 8 && it.starts_with(cited);
    by_label.or_else(|| labels.keys().find(begins)).cloned()
}
