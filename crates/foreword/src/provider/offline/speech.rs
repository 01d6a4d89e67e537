//! Taking speech apart: paragraphs, sentences, and the list of what is next.

use foreword_core::text::one_line;

/// How agents introduce what is left to do.
const HEADINGS: &[&str] = &[
    "next steps",
    "next step",
    "next",
    "remaining",
    "remaining work",
    "todo",
    "to do",
    "still to do",
    "follow-ups",
    "follow-up",
];

/// Paragraphs and list items, each on one line; code blocks are no speech, and
/// blockquotes are somebody else's.
pub fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut gap = true;
    let mut code = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            code = !code;
        }
        if code || line.is_empty() || line.starts_with("```") || line.starts_with('>') {
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
    let mut sentences = Vec::new();
    let (mut start, mut code) = (0, false);
    for (at, character) in paragraph.char_indices() {
        let end = at + character.len_utf8();
        match character {
            '`' => code = !code,
            '.' | '!' | '?' if !code && paragraph[end..].starts_with(' ') => {
                sentences.push(paragraph[start..end].trim());
                start = end;
            }
            _ => {}
        }
    }
    sentences.push(paragraph[start..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// The heading that opens the list of what is next, and what stands beside it.
fn next_heading(line: &str) -> Option<&str> {
    let bare = line.trim().trim_matches(['#', '*', ' ', '-', '_']);
    let (heading, inline) = match bare.split_once(':') {
        Some((heading, rest)) => (heading, rest.trim_matches(['*', ' '])),
        None => (bare, ""),
    };
    let heading = heading.trim_matches(['*', ' ']).to_lowercase();
    // A one-word line that is no heading ("Next") introduces nothing.
    let marked = line.trim().starts_with(['#', '*']) || line.contains(':');
    (HEADINGS.contains(&heading.as_str()) && marked).then_some(inline)
}

/// What the agent's last words name as next.
pub fn next_steps(reply: &str) -> Vec<String> {
    let lines: Vec<&str> = reply.lines().map(str::trim).collect();
    for (at, line) in lines.iter().enumerate() {
        let Some(inline) = next_heading(line) else {
            continue;
        };
        let mut steps = vec![one_line(inline)];
        let below = lines[at + 1..].iter().skip_while(|line| line.is_empty());
        steps.extend(below.map_while(|line| list_item(line)).map(one_line));
        steps.retain(|step| !step.is_empty());
        if !steps.is_empty() {
            return steps
                .iter()
                .map(|step| step.trim_end_matches('.').to_owned())
                .collect();
        }
    }
    Vec::new()
}

fn list_item(line: &str) -> Option<&str> {
    let bulleted = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    bulleted.or_else(|| {
        let (number, item) = line.split_once(['.', ')'])?;
        let is_number = !number.is_empty() && number.chars().all(|it| it.is_ascii_digit());
        (is_number && item.starts_with(' ')).then(|| item.trim())
    })
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
