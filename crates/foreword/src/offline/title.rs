//! Titles: a sentence shortened to a few words, and how well it can be understood alone.
//!
//! Candidates come from plans, commits, the agent's sentences (`prose`) and the user's request;
//! which one is taken is decided where a turn is put together.

use std::collections::{HashMap, HashSet};

use super::lexicon::{
    addresses_the_user, anchors, begins_subordinate, code_spans, has_cjk, is_cut_word,
    is_file_name, is_in_first_person, is_stop_word, is_unspaced, is_word, leans_back,
    pointing_words, stems, telling_words, without_openers, without_reporter, words,
};
use super::markdown::{item_text, lines_outside_code, sentences, strip};
use super::prose::after_label;

/// How many words a title has at most.
pub const MAX_WORDS: usize = 12;
/// Signs that a text does not end with where it is cut.
const LOOSE_SIGNS: [char; 10] = [' ', ',', ';', ':', '—', '-', '、', '，', '；', '：'];

/// What cutting a sentence costs its title: at a sign of punctuation little, before a function
/// word more, anywhere else most.
const CUT_AT_SIGN: f32 = 0.1;
const CUT_AT_WORD: f32 = 0.5;
const CUT_ANYWHERE: f32 = 1.2;

/// A sentence in at most `max_words` words, and what cutting it costs.
/// `drop_label`: a short label before a comma, dash or colon ("Root cause: …") is left out.
pub fn squeeze(sentence: &str, max_words: usize, drop_label: bool) -> (String, f32) {
    let stripped = strip(sentence);
    let mut text = with_short_paths(item_text(&stripped).unwrap_or(&stripped));
    // "Fix: …" says what the change is for.
    let label = after_label(&text).filter(|_| drop_label && !text.starts_with("Fix"));
    text = without_reporter(label.unwrap_or(&text)).replace("()`", "`");
    let bare = without_brackets(&text);
    if words(&text) > max_words || words(&bare) >= 4 {
        text = bare;
    }
    let text = without_loose_end(text.trim_end_matches(['.', '。', '!', ' ', ':', '：']));
    if words(text) <= max_words {
        return (capitalised(text), 0.0);
    }
    let cut = |end: usize| capitalised(text[..end].trim_end_matches(LOOSE_SIGNS));
    match last_cut(text, max_words) {
        (Some(at_sign), _) => (cut(at_sign), CUT_AT_SIGN),
        (_, Some(at_word)) => (cut(at_word), CUT_AT_WORD),
        _ => (capitalised(&clip(text, max_words)), CUT_ANYWHERE),
    }
}

/// The text without one or two function words at its end ("… with", "… so that").
fn without_loose_end(text: &str) -> &str {
    let mut text = text;
    for _ in 0..2 {
        text = match text.rsplit_once(' ') {
            Some((rest, last)) if is_cut_word(last) && words(rest) >= 3 => rest,
            _ => text,
        };
    }
    text
}

/// The text with `path/to/x.ts:12` as `x.ts`.
fn with_short_paths(text: &str) -> String {
    let is_part = |it: char| is_word(it) || "./-[]@:".contains(it);
    let tokens = text.split_inclusive(|it| !is_part(it));
    tokens.map(with_short_path).collect()
}

/// A token as it is, unless it is a path or an address in a file.
fn with_short_path(token: &str) -> String {
    let bare = token.trim_end_matches(|it| !is_word(it));
    let (path, line) = bare.split_once(':').unwrap_or((bare, ""));
    let name = path.rsplit('/').next().unwrap_or(path);
    if !is_file_name(name) || line.contains(char::is_alphabetic) {
        return token.to_owned();
    }
    format!("{name}{}", &token[bare.len()..])
}

/// The text without what stands in round brackets, unless that is in a code span.
fn without_brackets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<usize> = Vec::new();
    for (is_code, piece) in code_spans(text) {
        if is_code {
            out.push_str(piece);
            continue;
        }
        for character in piece.chars() {
            match character {
                '(' | '（' => open.push(out.trim_end().len()),
                ')' | '）' if !open.is_empty() => {
                    out.truncate(open.pop().unwrap_or_default());
                    continue;
                }
                _ => {}
            }
            out.push(character);
        }
    }
    out
}

/// Where a long sentence can end within the limit: at its last `— ; , :`, and before its last
/// function word. Never inside a code span.
fn last_cut(text: &str, max_words: usize) -> (Option<usize>, Option<usize>) {
    let (mut at_sign, mut at_word) = (None, None);
    let (mut length, mut before) = (0, "");
    for (at, token) in tokens(text) {
        if length > 2 * max_words {
            break;
        }
        let bare = token.trim();
        let is_dash = matches!(bare, "—" | "–" | "-" | "/");
        if length >= 8 {
            if is_dash || before.ends_with([',', ';', ':', '，', '、', '。', '；', '：']) {
                at_sign = Some(at);
            } else if is_cut_word(bare) && !is_stop_word(before) {
                at_word = Some(at);
            }
        }
        length += half_words(bare);
        before = bare;
    }
    (at_sign, at_word)
}

/// The tokens of a text with their positions: code spans and words with the signs and space after
/// them, and single characters where words are not separated.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let (mut start, mut skip) = (0, 0);
    let mut before = ' ';
    for (at, here) in text.char_indices() {
        if at < skip {
            continue;
        }
        let begins = !here.is_whitespace()
            && (before.is_whitespace()
                || here.is_alphanumeric() && (is_unspaced(here) || is_unspaced(before)));
        if begins && at > start {
            tokens.push((start, &text[start..at]));
            start = at;
        }
        if here == '`' {
            skip = text[at + 1..].find('`').map_or(skip, |end| at + end + 2);
        }
        before = here;
    }
    if start < text.len() {
        tokens.push((start, &text[start..]));
    }
    tokens
}

/// The length of a token, where a character of Japanese or Chinese is half a word.
fn half_words(token: &str) -> usize {
    if token.starts_with(is_unspaced) {
        1
    } else {
        2 * words(token)
    }
}

/// At most `max_words` words of a text, with an ellipsis if it was longer. A code span is kept
/// whole or left out.
pub fn clip(text: &str, max_words: usize) -> String {
    if words(text) <= max_words {
        return text.to_owned();
    }
    let (mut end, mut length) = (0, 0);
    for (at, token) in tokens(text) {
        length += half_words(token);
        // A first token that is too long by itself stays: there is nothing else.
        if length > 2 * max_words && at > 0 {
            break;
        }
        end = at + token.len();
    }
    format!("{}…", text[..end].trim_end_matches(LOOSE_SIGNS))
}

/// The text with a capital, if it begins with a plain word and not with a name.
pub fn capitalised(text: &str) -> String {
    let mut parts = text.split(|it: char| it.is_whitespace() || ":,'’".contains(it));
    let first = parts.next().unwrap_or_default();
    let is_plain = !first.is_empty() && first.chars().all(char::is_lowercase);
    if is_plain {
        foreword_core::text::capitalised(text)
    } else {
        text.to_owned()
    }
}

/// How well a title can be understood alone; 2 is enough. `edited` are the stems of the paths and
/// names that were edited, `asked` those of the request.
pub fn alone(title: &str, edited: &HashSet<String>, asked: &HashSet<String>) -> f32 {
    let (names, stems) = (anchors(title).len(), stems(title));
    let shared = |context: &HashSet<String>| stems.intersection(context).count();
    let (in_edits, in_request) = (shared(edited), shared(asked));
    let at_most = |count: usize, max: usize, each: f32| count.min(max) as f32 * each;
    let good = at_most(names, 2, 0.7)
        + at_most(stems.len(), 6, 0.3)
        + at_most(in_edits, 3, 0.25)
        + at_most(in_request, 3, 0.25);
    let characters = title.chars().count();
    let tells_less_than = |least| !has_cjk(title) && telling_words(title) < least;
    let has_context = !edited.is_empty() || !asked.is_empty();
    let faults = [
        (leans_back(title), 1.2),
        (is_in_first_person(title) || addresses_the_user(title), 1.2),
        (begins_subordinate(title), 1.3),
        (
            !title.starts_with(|it: char| it.is_alphanumeric() || "`\"“".contains(it)),
            1.5,
        ),
        (!has_cjk(title) && plain_words(title) < 3, 1.0),
        // Nothing but names: "`a.rs`, `b.rs`".
        (plain_words(title) == 0, 3.0),
        (words(title) < 3, 1.5),
        (characters > 110, 1.0),
        (characters > 150, 3.0),
        (names > 3, 0.5),
        (title.ends_with('…'), 0.7),
        (tells_less_than(2), 2.5),
        (tells_less_than(3) && names < 2, 0.8),
        (has_context && in_edits + in_request == 0, 0.8),
    ];
    let bad: f32 = faults.iter().filter(|it| it.0).map(|it| it.1).sum();
    good - bad - at_most(pointing_words(title, 2), 2, 0.5)
}

/// How many words of a title are outside of code spans.
fn plain_words(title: &str) -> usize {
    let plain = code_spans(title).filter(|(is_code, _)| !is_code);
    plain.map(|(_, piece)| words(piece)).sum()
}

/// The title that a request gives, and whether nothing of its sentence is missing in it.
pub fn request_title(prompt: &str) -> Option<(String, bool)> {
    let mut text = typed(prompt);
    if let Some(command) = text.strip_prefix('/') {
        let (_, rest) = command.split_once(char::is_whitespace)?;
        text = rest.trim().to_owned();
    }
    let sentences = sentences(&text.replace('\n', " "));
    let mut requests = sentences.iter().take(3).map(|sentence| {
        let sentence = item_text(sentence).unwrap_or(sentence);
        without_openers(sentence).trim_end_matches(['?', '？', '.', '!', '。', ' '])
    });
    let request = requests.find(|request| words(request) >= 3)?;
    let (title, lost) = squeeze(request, MAX_WORDS, true);
    let is_complete = lost < CUT_ANYWHERE && words(&title) + 3 >= words(request);
    Some((title, is_complete))
}

/// The heading of a plan that the user handed over, after at most twelve words of introduction.
pub fn plan_heading(prompt: &str) -> Option<String> {
    let mut length = 0;
    for line in lines_outside_code(prompt).flatten() {
        if let Some(heading) = line.strip_prefix("# ").map(strip) {
            return Some(heading).filter(|it| !it.is_empty());
        }
        length += words(line);
        if length > 12 {
            return None;
        }
    }
    None
}

/// What the user typed: a prompt without code, tagged blocks, quoted chat and pasted logs.
pub fn typed(prompt: &str) -> String {
    let lines: Vec<&str> = lines_outside_code(prompt).flatten().collect();
    let text = without_tagged(&lines.join("\n"));
    let is_chat = text.lines().filter(|line| is_chat_line(line)).count() > 1;
    // A log that follows the user's words ends them; one that comes before them is left out.
    let lines = text.lines().filter(|line| !is_chat || !is_chat_line(line));
    let lines = lines.skip_while(|line| line.trim().is_empty() || is_log_line(line));
    let typed: Vec<&str> = lines.take_while(|line| !is_log_line(line)).collect();
    typed.join("\n").trim().to_owned()
}

/// The text without `<tag>…</tag>` blocks.
fn without_tagged(text: &str) -> String {
    // Where each tag is closed last, so that no closing tag is looked for in vain.
    let closers = text.match_indices("</").filter_map(|(at, _)| {
        let rest = &text[at + 2..];
        let name = tag_name(rest).filter(|name| rest[name.len()..].starts_with('>'))?;
        Some((name, at))
    });
    let closed: HashMap<&str, usize> = closers.collect();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in text.match_indices('<') {
        let name = tag_name(&text[at + 1..]).unwrap_or_default();
        if at >= done && closed.get(name).is_some_and(|last| *last > at) {
            let close = format!("</{name}>");
            out.push_str(&text[done..at]);
            out.push(' ');
            done = text[at..]
                .find(&close)
                .map_or(at, |end| at + end + close.len());
        }
    }
    out.push_str(&text[done..]);
    out
}

/// The name in `name>` or `name attribute…>`.
fn tag_name(text: &str) -> Option<&str> {
    let end = text.find(|it: char| !is_word(it) && it != '-')?;
    (end > 0 && text[end..].starts_with(['>', ' '])).then(|| &text[..end])
}

/// Whether a line quotes somebody: `Name: …`.
fn is_chat_line(line: &str) -> bool {
    line.trim_start().split_once(": ").is_some_and(|(name, _)| {
        name.starts_with(char::is_uppercase)
            && (2..=21).contains(&name.chars().count())
            && name.chars().all(|it| is_word(it) || ".-".contains(it))
    })
}

/// Whether a line looks like the output of a program: indented, after a sign that no sentence
/// begins with, or after `place:12` or `[12:00`.
fn is_log_line(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let place = first.split_once(':').map(|(_, line)| line);
    let number = first.strip_prefix('[').or(place);
    line.starts_with("    ")
        || first.starts_with(['•', '⨯', '✖', '❯', '$', '>', '|', '='])
        || number.is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()))
}

/// The kinds of conventional commits.
const KINDS: &str = "fix feat chore docs refactor test tests ci build perf style revert";

/// The kind of a conventional commit subject (`fix` of `fix(store)!: …`) and what follows it.
pub fn conventional(subject: &str) -> (Option<&str>, String) {
    let prefix = subject.split_once(": ").and_then(|(prefix, rest)| {
        let prefix = prefix.strip_suffix('!').unwrap_or(prefix);
        let (kind, scope) = prefix.split_once('(').unwrap_or((prefix, ")"));
        let is_kind = KINDS.split(' ').any(|it| it.eq_ignore_ascii_case(kind));
        (is_kind && scope.ends_with(')')).then_some((kind, rest))
    });
    match prefix {
        Some((kind, rest)) => (Some(kind), capitalised(rest.trim())),
        None => (None, capitalised(subject)),
    }
}

#[cfg(test)]
mod tests;
