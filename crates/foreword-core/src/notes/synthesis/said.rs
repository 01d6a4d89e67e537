//! A note's points as they can be compared: what kind each is, what it claims, what it chose.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{Kind, Taken};
use crate::notes::note::Point;
use crate::store::kin::words::{
    DENIES, GIVES_UP, Words, as_written, content, is_negated, is_number, named_after, plain, tokens,
};
use crate::text;
use crate::text::is_in;

#[derive(Debug, Clone)]
pub struct Said {
    pub kind: Kind,
    pub label: String,
    /// Whether the label is of what is still to be done.
    pub is_telling: bool,
    pub text: String,
    /// Without the reason.
    pub claim: String,
    /// What the claim is about, without its "not".
    pub words: Words,
    /// Those that are no numbers.
    pub plain: Words,
    /// All that is said, with the reason.
    pub known: Words,
    /// Whether the claim is that something is not so.
    pub is_negative: bool,
    /// What it holds.
    pub chosen: Words,
    /// What is said not to be so, or no longer.
    pub against: Words,
    pub given_up: Words,
    /// What stands before the verb, but for numbers, and those that are names: `chapter 3`.
    pub subject: Words,
    pub names: Vec<(Words, String)>,
    /// When it was last said.
    pub at: String,
    /// Numbers of the notes that say so, the oldest first.
    pub notes: BTreeSet<usize>,
    pub related: Vec<String>,
    pub begins: String,
    /// How far it says that something is.
    pub states: Vec<String>,
    pub is_done: bool,
    pub stands: bool,
}

/// A statement is no longer than this.
const TEXT_MAX: usize = 400;

/// Which words of a label mean which kind; the first that fits.
#[rustfmt::skip] // A list is read line by line.
pub const LABELS: [(Kind, &str); 5] = [
    (Kind::Question, "question open unclear unknown tbd doubt ask frage offen unklar"),
    (Kind::Change, "change evolution migration switch reversal supersede rename history änderung wechsel umstellung"),
    (Kind::Decision, "decision decided choice rule convention policy constraint requirement preference agreed principle design architecture approach standard entscheid beschluss regel vorgabe konvention"),
    (Kind::Status, "status progress done next todo blocked blocker plan milestone step action task state completed result pending fixed stand fortschritt erledigt fertig nächst aufgabe blockiert ergebnis"),
    (Kind::Learning, "discovery learning learned insight gotcha bug fix cause finding lesson fact pitfall warning caveat note observation risk idea problem erkenntnis entdeckung ursache fehler hinweis"),
];
/// Labels that a status cannot do without.
const TELLING: &str = "next todo blocked blocker pending plan nächst aufgabe blockiert";

/// All points of a note; a list under a heading of its own counts, labelled by that heading.
pub fn said(number: usize, taken: &Taken) -> impl Iterator<Item = Said> {
    let note = &taken.note;
    let others = note.others.iter().flat_map(|(heading, text)| {
        let lines = text.lines().map(str::trim_start);
        let items = lines.filter_map(|it| it.strip_prefix("- "));
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
    let is_telling = kind == Kind::Status && TELLING.split(' ').any(|it| label.starts_with(it));
    let whole = match is_telling || known.is_none() {
        true => format!("{}: {said}", text::capitalised(&point.label)),
        false => said.to_owned(),
    };
    let claim = claim(said);
    let text = text::shorten(&whole, TEXT_MAX).into_owned();
    let words = &content(claim) - &*NO_MATTER;
    let given_up = named_after(claim, GIVES_UP);
    let against = &named_after(claim, DENIES) | &given_up;
    let tokens = tokens(claim);
    let is_done = is_in(DONE, &label) || tokens.iter().any(|it| is_in(DONE, it));
    Some(Said {
        kind,
        is_telling,
        known: &content(&text) | &words,
        text,
        plain: plain(&words),
        chosen: &words - &against,
        words,
        is_negative: is_negative(claim),
        against,
        given_up,
        subject: &plain(&content(&subject(claim).join(" "))) - &*NO_MATTER,
        names: names(claim),
        claim: claim.to_owned(),
        is_done,
        label,
        at: taken.note.added(point).unwrap_or(&taken.at).clone(),
        notes: BTreeSet::from([number]),
        related: taken.related.clone(),
        begins: tokens.first().cloned().unwrap_or_default(),
        states: tokens.into_iter().filter(|it| is_state(it)).collect(),
        stands: true,
    })
}

impl Said {
    /// Neither denies what the other says.
    pub fn agrees(&self, other: &Said) -> bool {
        self.is_negative == other.is_negative
            && self.against.is_disjoint(&other.chosen)
            && other.against.is_disjoint(&self.chosen)
    }

    /// `Chapter 3 …`, `Chapter 4 …`
    pub fn is_of_another(&self, other: &Said) -> bool {
        self.names.iter().any(|(noun, number)| {
            let mut others = other.names.iter().filter(|it| it.0 == *noun).peekable();
            others.peek().is_some() && others.all(|it| it.1 != *number)
        })
    }
}

/// In the first clause: `cents, never floats` says that it is cents.
fn is_negative(claim: &str) -> bool {
    let clause = claim.split([',', ';']).next().unwrap_or_default();
    let tokens = tokens(clause);
    let has = |list: &str| tokens.iter().any(|it| is_in(list, it));
    let is_not = is_negated(clause) || has(NOT) || tokens.iter().any(|it| it.starts_with("kein"));
    is_not != has(OFF)
}

const NOT: &str = "nicht nie niemals ohne";
const OFF: &str = "disabled off deaktiviert abgeschaltet";
/// Words that make no other matter. `We use X` and `X is used` are one.
static NO_MATTER: LazyLock<Words> = LazyLock::new(|| {
    content(
        "use used using never always longer cannot without enabled disabled nicht nie niemals ohne mehr immer \
         kein keine keinen keiner keinem aktiviert deaktiviert abgeschaltet \
         der die das ein eine einen ist sind wird werden und für mit auf im von zu",
    )
});

/// The words before the verb; all, if there is none.
pub fn subject(claim: &str) -> Vec<&str> {
    let words = claim.split_whitespace().map(bare);
    let is_verb = |(at, word): &(usize, &str)| {
        let word = word.to_lowercase();
        is_in(VERBS, &word) || is_state(&word) || *at > 0 && word.ends_with("ed")
    };
    let words = words.enumerate().take_while(|it| !is_verb(it));
    words.map(|it| it.1).collect()
}

/// Numbers and letters that say which one it is, if it is no amount.
fn names(claim: &str) -> Vec<(Words, String)> {
    let words: Vec<&str> = claim.split_whitespace().map(bare).collect();
    let is_name = |it: &str| is_number(it) || it.len() == 1 && it.chars().all(char::is_uppercase);
    let is_amount = |it: &&str| {
        let unit = content(it);
        is_in(AMOUNTS, &it.to_lowercase()) || !unit.is_empty() && plain(&unit).is_empty()
    };
    let name = |at: usize| {
        if !is_name(words[at]) || words.get(at + 1).is_some_and(is_amount) {
            return None;
        }
        let noun = plain(&content(words[at - 1]));
        (!noun.is_empty()).then(|| (noun, words[at].to_owned()))
    };
    (1..subject(claim).len()).filter_map(name).collect()
}

const VERBS: &str = "is are was were be has have had must should will can may does do did needs need uses use keeps \
    keep runs run works goes go gets lives live stays stay takes sends returns begins ends belongs reads writes answers \
    carry carries costs expire expires allow limit set store retry wait stores makes make comes fails passes moves \
    replaces ist sind wird werden war hat haben bleibt braucht läuft liegt liegen kommt geht soll muss kann";
/// How far something is.
const STATES: &str = "half partly started broken failing open missing blocked pending works red begun green kaputt offen halb";
/// Those of them that a plan ends with; labels too.
const DONE: &str = "done finished complete completed fixed ready merged written drafted released deployed fertig erledigt \
    behoben geschrieben";
const AMOUNTS: &str = "times per % attempts mal tage stunden";

fn is_state(word: &str) -> bool {
    is_in(STATES, word) || is_in(DONE, word)
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

#[rustfmt::skip] // A list is read line by line.
const REASONS: [&str; 9] = [" because ", " since ", " so that ", ", so ", "; ", " — ", " – ", ". ", " ("];

/// Words of a text that are among these stems, as they are written there; at most three.
pub fn surface(text: &str, stems: &Words) -> String {
    let words = text.split_whitespace().map(bare);
    let is_one = |word: &&str| {
        let stem = content(word);
        !stem.is_empty() && stem.is_subset(stems) && !is_in(PLAIN, &word.to_lowercase())
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

/// A beginning without the small words at its ends: `novel is told`.
pub fn trimmed(start: &str) -> String {
    let mut words: Vec<&str> = start.split_whitespace().collect();
    let is_small = |it: &&str| content(it).is_subset(&NO_MATTER);
    while words.last().is_some_and(is_small) {
        words.pop();
    }
    let small = words.iter().take_while(|it| is_small(it)).count();
    words.split_off(small).join(" ")
}

/// `Deploy` with `Docker Compose`: what is done, and the name of how.
pub fn by_name(claim: &str) -> Option<(Words, Words)> {
    let words = as_written(claim);
    let at = words.iter().position(|it| is_in(HOW, it))?;
    let (what, how) = (&words[..at], &words[at + 1..]);
    let is_name = |it: char| it.is_uppercase() || it.is_ascii_digit();
    let more = how.iter().any(|it| it == "for" || is_in(HOW, it));
    (how.first()?.contains(is_name) && !more)
        .then(|| (content(&what.join(" ")), content(&how.join(" "))))
}

const HOW: &str = "with on via in to by using";

pub fn bare(word: &str) -> &str {
    word.trim_matches(|it: char| !it.is_alphanumeric())
}

/// Words that name no subject.
const PLAIN: &str = "use uses used using keep make add now new run runs get set instead switched moved settled decided \
    replaced back need should will one two first last lives live stored kept told";

/// What a decision is for, in few words: `opaque tokens`.
pub fn choice(claim: &str, subject: &Words) -> String {
    let lower = claim.to_ascii_lowercase();
    // `from cookies to JWT`
    let from = lower.find(" from ");
    let from_to = from.and_then(|from| Some(from + lower[from..].find(" to ")? + 4));
    let starts = CHOOSES.iter().filter_map(|it| {
        let at = format!(" {lower}").find(&format!(" {it} "))?;
        Some(at + it.len() + 1)
    });
    let start = from_to.or(starts.min()).unwrap_or(0);
    let rest = claim.get(start..).unwrap_or(claim);
    let lower = rest.to_ascii_lowercase();
    let ends = ENDS.iter().filter_map(|it| lower.find(it));
    let about = [" for ", " as "].iter().filter_map(|it| lower.find(it));
    let about = about.filter(|at| !content(&lower[*at..]).is_disjoint(subject));
    let end = ends.chain(about).filter(|at| *at > 2).min();
    let choice = text::shorten(rest[..end.unwrap_or(rest.len())].trim(), 60);
    let choice = choice.trim_end_matches([',', '.']);
    let mut verbs = ["is ", "are "].iter();
    let without = verbs.find_map(|it| choice.strip_prefix(it));
    without.unwrap_or(choice).to_owned()
}

#[rustfmt::skip] // A list is read line by line.
const CHOOSES: &[&str] = &[
    "use", "uses", "using", "switched to", "switch to", "moved to", "move to", "back to", "settled on", "go with",
    "chose", "are stored in", "is stored in", "live in", "lives in", "are kept in", "is kept in", "keep",
];
#[rustfmt::skip]
const ENDS: [&str; 6] = [" instead", " replaces ", " rather than", ", ", " after ", " in place of"];
