//! A note's points as they can be compared: what kind each is, what it claims, what it chose.

use super::{Kind, Taken};
use crate::kin::words::{DENIES, GIVES_UP, Words, content, tokens};
use crate::notes::note::Point;
use crate::text;

#[derive(Debug, Clone)]
pub struct Said {
    pub kind: Kind,
    pub label: String,
    pub text: String,
    /// Without the reason.
    pub claim: String,
    pub words: Words,
    /// Numbers of the notes that say so, the oldest first.
    pub notes: Vec<usize>,
    pub related: Vec<String>,
    /// The first word, and whether something is denied or given up: who has neither in common
    /// with another, replaces nothing.
    pub begins: Option<String>,
    pub is_against: bool,
    pub stands: bool,
}

/// A statement is no longer than this.
const TEXT_MAX: usize = 400;

/// Which words of a label mean which kind; the first that fits.
#[rustfmt::skip] // A list is read line by line.
pub const LABELS: [(Kind, &str); 5] = [
    (Kind::Question, "question open unclear unknown tbd doubt ask"),
    (Kind::Change, "change evolution migration switch reversal supersede rename history"),
    (Kind::Decision, "decision decided choice rule convention policy constraint requirement preference agreed principle design architecture approach"),
    (Kind::Status, "status progress done next todo blocked blocker plan milestone step action task state completed result pending fixed"),
    (Kind::Learning, "discovery learning learned insight gotcha bug fix cause finding lesson fact pitfall warning caveat note observation risk idea"),
];
/// Labels that a status cannot do without.
const TELLING: [&str; 6] = ["next", "todo", "blocked", "blocker", "pending", "plan"];

/// All points of a note; a list under a heading of its own counts, labelled by that heading.
pub fn said(number: usize, taken: &Taken) -> impl Iterator<Item = Said> {
    let note = &taken.note;
    let others = note.others.iter().flat_map(|(heading, text)| {
        let items = text
            .lines()
            .filter_map(|it| it.trim_start().strip_prefix("- "));
        items.map(move |item| match Point::read(item) {
            (point, true) => point,
            (point, false) => Point {
                label: heading.clone(),
                ..point
            },
        })
    });
    let points = note.points.iter().cloned().chain(others);
    points.filter_map(move |point| of(number, taken, &point))
}

fn of(number: usize, taken: &Taken, point: &Point) -> Option<Said> {
    let said = text::one_line(&point.text);
    let said = said.trim_start_matches(['#', '>', '-', '*', ' ']);
    if !said.contains(char::is_alphanumeric) {
        return None;
    }
    let label = point.label.to_lowercase();
    // `Decisions` and `Open question` too.
    let means = |words: &str| {
        let mut parts = label.split([' ', '-', '/']);
        parts.any(|part| words.split(' ').any(|it| part.starts_with(it)))
    };
    let known = LABELS.iter().find(|it| means(it.1));
    let kind = match known {
        Some((kind, _)) => *kind,
        None if said.ends_with('?') => Kind::Question,
        None => Kind::Learning,
    };
    let is_telling = kind == Kind::Status && TELLING.iter().any(|it| label.starts_with(it));
    let whole = if is_telling || known.is_none() {
        format!("{}: {said}", text::capitalised(&point.label))
    } else {
        text::capitalised(said)
    };
    let claim = claim(said);
    let tokens = tokens(claim);
    let line = format!(" {} ", tokens.join(" "));
    let mut against = GIVES_UP.iter().chain(DENIES);
    Some(Said {
        kind,
        text: text::shorten(&whole, TEXT_MAX).into_owned(),
        // `We use X` and `X is used` are one.
        words: &content(claim) - &content("use used using"),
        claim: claim.to_owned(),
        label,
        notes: vec![number],
        related: taken.related.clone(),
        begins: tokens.into_iter().next(),
        is_against: against.any(|it| line.contains(&format!(" {it} "))),
        stands: true,
    })
}

/// What is said, without why.
fn claim(text: &str) -> &str {
    let end = REASONS.iter().filter_map(|it| text.find(it)).filter(|at| {
        let head = text.get(..*at).unwrap_or_default();
        head.split_whitespace().count() > 2
    });
    let end = end.min().unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ',', ' '])
}

const REASONS: [&str; 9] = [
    " because ",
    " since ",
    " so that ",
    ", so ",
    "; ",
    " — ",
    " – ",
    ". ",
    " (",
];

/// Words of a text that are among these stems, as they are written there; at most three.
pub fn surface(text: &str, stems: &Words) -> String {
    let words = text.split_whitespace().map(bare);
    let is_one = |word: &&str| {
        let stem = content(word);
        !stem.is_empty() && stem.is_subset(stems) && !PLAIN.contains(&word.to_lowercase().as_str())
    };
    words.filter(is_one).take(3).collect::<Vec<_>>().join(" ")
}

/// How many bytes all of them begin with, in whole words.
pub fn start(claims: &[&str]) -> usize {
    let first = claims.first().copied().unwrap_or_default();
    let ends = first.match_indices(' ').map(|it| it.0 + 1);
    let alike = |at: &usize| claims.iter().all(|it| it.starts_with(&first[..*at]));
    ends.take_while(alike).last().unwrap_or(0)
}

/// A beginning without the small words at its end: `The novel is told`.
pub fn subject(start: &str) -> String {
    let mut words: Vec<&str> = start.split_whitespace().collect();
    while words.last().is_some_and(|it| content(it).is_empty()) {
        words.pop();
    }
    words.join(" ")
}

pub fn bare(word: &str) -> &str {
    word.trim_matches(|it: char| !it.is_alphanumeric())
}

/// Words that name no subject.
const PLAIN: &[&str] = &[
    "use", "uses", "used", "using", "keep", "make", "add", "now", "new", "run", "runs", "get",
    "set", "instead", "switched", "moved", "settled", "decided", "replaced", "back", "need",
    "should", "will", "one", "two", "first", "last", "lives", "live", "stored", "kept", "told",
];

/// What a decision is for, in few words: `opaque tokens`.
pub fn choice(claim: &str, subject: &Words) -> String {
    let lower = claim.to_ascii_lowercase();
    // `from cookies to JWT`
    let from_to = lower
        .find(" from ")
        .and_then(|from| Some(from + lower[from..].find(" to ")? + 4));
    let start = from_to.or_else(|| {
        let starts = CHOOSES.iter().filter_map(|it| {
            let at = format!(" {lower}").find(&format!(" {it} "))?;
            Some(at + it.len() + 1)
        });
        starts.min()
    });
    let rest = claim.get(start.unwrap_or(0)..).unwrap_or(claim);
    let lower = rest.to_ascii_lowercase();
    let ends = ENDS
        .iter()
        .filter_map(|it| lower.find(it))
        .filter(|at| *at > 2);
    let about = lower.find(" for ").filter(|at| {
        let what = content(&lower[*at..]);
        *at > 2 && !what.is_disjoint(subject)
    });
    let end = ends.chain(about).min().unwrap_or(rest.len());
    let choice = text::shorten(rest[..end].trim(), 60);
    choice.trim_end_matches([',', '.']).to_owned()
}

#[rustfmt::skip] // A list is read line by line.
const CHOOSES: &[&str] = &[
    "use", "uses", "using", "switched to", "switch to", "moved to", "move to", "back to", "settled on", "go with",
    "chose", "are stored in", "is stored in", "live in", "lives in", "are kept in", "is kept in", "keep",
];
const ENDS: &[&str] = &[
    " instead",
    " rather than",
    ", not ",
    ", ",
    " after ",
    " in place of",
];
