//! Formats what agents were shown of the memory, and why.

use std::fmt::Write as _;

use foreword_core::recall::index::{Fate, Index, Weighed};
use foreword_core::search::ShownItem;
use foreword_core::search::{Matched, OVERTAKEN, stale_factor};
use foreword_core::text::{self, count, one_line};
use serde_json::{Value, json};

use super::{TextPage, item_title, mark};
use crate::host;
use crate::local_time;
use crate::output::{self, SafeText};
use crate::service::embed_client::Ranking;
use crate::service::why::{Explanation, Rank};

/// Prints the index as a session gets it, then the reason for each line, and the lines left out.
pub fn preview(index: &Index) {
    let why = reasons(index);
    if host::is_agent_here() {
        // The agent that looks at it has an index of its own: this one is data to it.
        output::recalled(&format!("{}\n{why}", index.text)).print();
    } else {
        SafeText::index(index).print();
        print!("\n{why}");
    }
}

fn reasons(index: &Index) -> String {
    let mut out = String::new();
    if index.weighed.is_empty() {
        return out;
    }
    out.push_str("\nWhy each line is there, or is not, the worthiest first:\n");
    for line in &index.weighed {
        let title = text::shorten(&one_line(&line.title), 60).into_owned();
        let (id, kind, worth) = (line.id, line.kind, line.worth());
        let _ = writeln!(
            out,
            "{worth:>4}  #{id} {kind}: {title}\n      {}",
            fate(line)
        );
    }
    out
}

/// The text and the weighed lines of `preview`.
pub fn preview_json(index: Option<&Index>) -> Value {
    let weighed = index.into_iter().flat_map(|it| &it.weighed);
    json!({
        "text": index.map(|it| &it.text),
        "lines": weighed.map(weighed_json).collect::<Value>(),
    })
}

fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::Shown => "shown",
        Fate::SessionFull => "left out: its session has enough lines",
        Fate::Repeated => "left out: a line that is shown has the same title",
        Fate::NoRoom => "left out: no room",
    }
}

fn fate(line: &Weighed) -> String {
    let fate = fate_name(line.fate);
    let reasons = line.reasons.iter();
    let reasons: Vec<String> = reasons
        .map(|(reason, points)| format!("{reason} {points:+}"))
        .collect();
    format!("{fate}; {}", reasons.join(", "))
}

pub fn receipts(receipts: &[ShownItem]) -> String {
    if receipts.is_empty() {
        return "no agent was shown anything yet\n".to_owned();
    }
    let mut out = String::new();
    for receipt in receipts {
        let title = receipt.title.as_deref().unwrap_or("(forgotten since)");
        let title = text::shorten(&one_line(title), 70).into_owned();
        let _ = writeln!(
            out,
            "{}  #{:<5} {title}{}",
            occasion(receipt),
            receipt.item,
            opened(receipt)
        );
    }
    let shown = receipts.iter().filter(|it| !it.is_opening());
    let (all, opened) = shown.fold((0, 0), |(all, opened), it| {
        (all + 1, opened + u64::from(it.opened))
    });
    let _ = writeln!(
        out,
        "\n{}, {opened} of them opened later",
        count(all, "line shown", "lines shown")
    );
    out
}

/// When and where: `2026-11-16 14:03  prompt  1f2e3d4c`.
fn occasion(receipt: &ShownItem) -> String {
    let time = local_time::minute(receipt.at);
    let session: String = receipt.session.chars().take(8).collect();
    format!("{time}  {:<6}  {:<8}", receipt.shown, one_line(&session))
}

fn opened(receipt: &ShownItem) -> &'static str {
    if receipt.opened && !receipt.is_opening() {
        " (opened later)"
    } else {
        ""
    }
}

pub fn why(why: &Explanation) -> String {
    let mut page = TextPage::default();
    page.text("", &item_title(&why.item));
    page.gap();
    let index = match &why.weighed {
        Some(line) => fate(line),
        None => "not among the lines that are weighed here".to_owned(),
    };
    page.field("index now", &index);
    for (freshness, path) in &why.files {
        let state = freshness.map_or("nothing to compare it with", |it| it.as_str());
        page.field("file", &format!("{path}: {state}"));
    }
    if let Some(it) = &why.rank {
        page.field("search", &rank(it));
    }
    if why.receipts.is_empty() {
        page.field("shown", "never yet");
    }
    for receipt in &why.receipts {
        let because = match receipt.because.as_str() {
            "" => String::new(),
            because => format!("  because of: {because}"),
        };
        let occasion = occasion(receipt);
        page.field("shown", &format!("{occasion}{because}{}", opened(receipt)));
    }
    page.out
}

pub fn why_json(why: &Explanation) -> Value {
    let files = why.files.iter();
    let files = files.map(|(state, path)| json!({"path": path, "state": state}));
    let rank = why.rank.as_ref().map(|rank| {
        let hit = rank.place.as_ref().map(|(_, hit)| hit);
        json!({
            "words": rank.words,
            "rank": rank.place.as_ref().map(|(place, _)| place),
            "score": hit.and_then(|hit| hit.score),
            "seen": rank.seen,
        })
    });
    json!({
        "id": why.item.id,
        "title": item_title(&why.item),
        "index": why.weighed.as_ref().map(weighed_json),
        "files": files.collect::<Value>(),
        "search": rank,
        "receipts": why.receipts,
    })
}

fn weighed_json(line: &Weighed) -> Value {
    let reasons = line.reasons.iter();
    let reasons = reasons.map(|(reason, points)| json!({"reason": reason, "points": points}));
    json!({
        "id": line.id,
        "type": line.kind,
        "title": line.title,
        "worth": line.worth(),
        "shown": line.fate == Fate::Shown,
        "fate": fate_name(line.fate),
        "reasons": reasons.collect::<Value>(),
    })
}

/// The rank in a search and its reasons: `“expires” finds it at rank 2; it has all the words; …`
fn rank(rank: &Rank) -> String {
    let words = &rank.words;
    let Some((place, hit)) = &rank.place else {
        let seen = count(rank.seen as u64, "hit", "hits");
        return format!("“{words}” does not find it among {seen}");
    };
    let mut parts = vec![format!("“{words}” finds it at rank {place}")];
    if hit.id != rank.id {
        parts.push(format!("in the line of #{}", hit.id));
    }
    parts.extend(hit.matched.map(|matched| {
        let how = match matched {
            Matched::AllWords => "it has all the words",
            Matched::SomeWords => "it has some of the words",
            Matched::Meaning => "it has none of the words, but is near in meaning",
        };
        how.to_owned()
    }));
    let score = hit.score.unwrap_or_default();
    let part = 100.0 * score / rank.best_score.max(f64::MIN_POSITIVE);
    parts.push(match place {
        1 => format!("score {score:.2}"),
        _ => format!("score {score:.2}, {part:.0} % of the score at rank 1"),
    });
    if hit.is_overtaken() {
        let overtaken = super::found::overtaken(hit.superseded_by, hit.retracted.as_deref());
        parts.push(format!("{overtaken}: score × {OVERTAKEN}"));
    }
    let factor = stale_factor(hit.freshness);
    if factor < 1.0 {
        parts.push(format!("{}: score × {factor}", mark(hit.freshness).trim()));
    }
    parts.push(match rank.ranking {
        Ranking::Words => "ranked by words".to_owned(),
        Ranking::WordsOnly(reason) => format!("ranked by words only: {}", reason.as_str()),
        Ranking::WordsAndMeaning { percent } => {
            format!("ranked by words and meaning ({percent} % of the memory is indexed by meaning)")
        }
    });
    parts.join("; ")
}
