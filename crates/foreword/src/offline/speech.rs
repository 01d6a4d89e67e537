//! Taking speech apart: paragraphs, sentences, the phrases in them, and the list of
//! what is next.
//!
//! Phrases that are looked for are written as one text, parted by commas.

use foreword_core::text::one_line;

use crate::agent::reply::without_bullet;

/// How agents introduce what is left to do.
const HEADINGS: &str = "next steps, next step, next, remaining, remaining work, todo, to do, \
    still to do, follow-ups, follow-up";

/// What may stand before the words that ask for something or decide it.
const OPENINGS: &str = "ok, okay, yes, no, agreed, right, wait, please, can you, could you, \
    now, so, and, but, also, then, next, instead, in the end, finally, we need to, i need you to, \
    i want you to";

/// Whether a text has one of these phrases, to the letter.
pub fn has(text: &str, phrases: &str) -> bool {
    phrases.split(", ").any(|phrase| text.contains(phrase))
}

/// What follows if a text begins with one of these phrases, in any case.
pub fn after<'a>(text: &'a str, phrases: &str) -> Option<&'a str> {
    phrases.split(", ").find_map(|phrase| {
        let (head, rest) = text.split_at_checked(phrase.len())?;
        let whole = head.eq_ignore_ascii_case(phrase) && rest.starts_with([' ', ',']);
        whole.then(|| rest.trim_start_matches([',', ' ']))
    })
}

/// Without what only opens or softens it.
pub fn without_openings(sentence: &str) -> &str {
    let mut rest = sentence;
    while let Some(words) = after(rest, OPENINGS) {
        rest = words;
    }
    rest
}

/// Up to the first of these marks, which are parted by bars.
pub fn before_any<'a>(text: &'a str, marks: &str) -> &'a str {
    let end = marks.split('|').filter_map(|mark| text.find(mark)).min();
    text[..end.unwrap_or(text.len())].trim_end_matches([',', '.', ' '])
}

/// The words of a text, as identifiers have them.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_')
        .filter(|word| !word.is_empty())
}

/// Paragraphs and list items, each on one line; code blocks are no speech, and
/// blockquotes are somebody else's.
pub fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut gap = true;
    let mut code = false;
    for line in text.lines().map(str::trim) {
        let fence = line.starts_with("```");
        code ^= fence;
        if code || fence || line.is_empty() || line.starts_with('>') {
            gap = true;
            continue;
        }
        let item = list_item(line);
        let words = one_line(item.unwrap_or(line).trim_start_matches(['#', ' ']));
        match paragraphs.last_mut() {
            Some(last) if !gap && item.is_none() => {
                last.push(' ');
                last.push_str(&words);
            }
            _ => paragraphs.push(words),
        }
        gap = false;
    }
    paragraphs
}

/// What a reply says first; what comes after is lists and details, unless the
/// first words only announce them.
pub fn first_paragraph(reply: &str) -> String {
    let paragraph = one_line(reply.trim().split("\n\n").next().unwrap_or_default());
    if paragraph.ends_with(':') {
        return paragraphs(&body(reply)).join(" ");
    }
    paragraph
}

/// A reply without the list of what is left to do.
pub fn body(reply: &str) -> String {
    let lines = reply
        .lines()
        .take_while(|line| next_heading(line).is_none());
    lines.collect::<Vec<_>>().join("\n")
}

/// Split at full stops that stand outside of `code`.
pub fn sentences(paragraph: &str) -> Vec<&str> {
    let mut code = false;
    let mut after_stop = false;
    let parts = paragraph.split_inclusive(|character| {
        let ends = after_stop && character == ' ';
        code ^= character == '`';
        after_stop = !code && matches!(character, '.' | '!' | '?');
        ends
    });
    let sentences = parts.map(str::trim);
    sentences.filter(|it| !it.is_empty()).collect()
}

/// The sentences of a whole text.
pub fn all_sentences(text: &str) -> Vec<String> {
    let paragraphs = paragraphs(text);
    let sentences = paragraphs.iter().flat_map(|it| sentences(it));
    sentences.map(str::to_owned).collect()
}

/// The heading that opens the list of what is next, and what stands beside it.
fn next_heading(line: &str) -> Option<&str> {
    let line = line.trim();
    let (heading, inline) = line.split_once(':').unwrap_or((line, ""));
    let heading = heading
        .trim_matches(['#', '*', ' ', '-', '_'])
        .to_lowercase();
    // A one-word line that is no heading ("Next") introduces nothing.
    let marked = line.starts_with(['#', '*']) || line.contains(':');
    let is_heading = marked && HEADINGS.split(", ").any(|it| it == heading);
    is_heading.then(|| inline.trim_matches(['*', '_', ' ']))
}

/// What the agent's last words name as next.
pub fn next_steps(reply: &str) -> Vec<String> {
    let lines: Vec<&str> = reply.lines().map(str::trim).collect();
    let lists = lines.iter().enumerate().filter_map(|(at, line)| {
        let inline = next_heading(line)?;
        let below = lines[at + 1..].iter().skip_while(|line| line.is_empty());
        let items = below.map_while(|line| list_item(line));
        let steps = std::iter::once(inline).chain(items);
        let steps = steps.map(|step| one_line(step).trim_end_matches('.').to_owned());
        Some(steps.filter(|step| !step.is_empty()).collect::<Vec<_>>())
    });
    let mut told = lists.filter(|steps| !steps.is_empty());
    told.next().unwrap_or_default()
}

fn list_item(line: &str) -> Option<&str> {
    let item = without_bullet(line);
    (item.len() < line.len()).then_some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_steps_are_what_the_agent_named_as_such() {
        for (reply, expected) in [
            (
                "Done.\n\n## Next steps\n\n1. Write docs.\n2. Ship it.\n\nBye.",
                "Write docs; Ship it",
            ),
            (
                "Done. \nNext: add a test for refunds.",
                "add a test for refunds",
            ),
            ("**Next steps:**\n- one\n- two", "one; two"),
            ("All green. What is next is up to you.", ""),
            ("Next", ""),
        ] {
            assert_eq!(next_steps(reply).join("; "), expected, "{reply}");
        }
    }
}
