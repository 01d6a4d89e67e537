//! Markdown as agents write it: blocks, sentences, and text without markup.
//!
//! Only what matters for meaning is parsed, in time linear in the text: input may be hostile, so
//! whatever is never closed is an ordinary character. `prose` reads the blocks.

use super::lexicon::{code_spans, is_word, words};

/// The text without markup: links, emphasis, pictures. Code spans stay.
pub fn strip(text: &str) -> String {
    let text = text.trim_start().trim_start_matches(['>', '#']);
    let mut out = String::with_capacity(text.len());
    for (is_code, piece) in code_spans(text) {
        if is_code {
            out.push_str(piece);
        } else {
            strip_piece(piece, &mut out);
        }
    }
    let words: Vec<&str> = out.split_whitespace().collect();
    words.join(" ")
}

/// Appends text without code spans, without its markup. A star is emphasis if it opens a word and
/// is closed again; that of `*.png` stays.
fn strip_piece(piece: &str, out: &mut String) {
    let mut rest = piece;
    let mut is_open = false;
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        let before = out.chars().next_back().unwrap_or(' ');
        let doubled = rest.starts_with('*') || before == '*';
        let closes = is_open && !rest.starts_with(is_word);
        let opens =
            || rest.starts_with(is_word) && !is_word(before) && find_near(rest, '*').is_some();
        if sign == '['
            && let Some((label, after)) = link(rest)
        {
            out.truncate(out.trim_end_matches('!').len());
            out.push_str(label);
            rest = after;
        } else if is_picture(sign) {
            rest = rest.trim_start();
        } else if sign == '*' && (doubled || closes || opens()) {
            rest = rest.trim_start_matches('*');
            is_open = !closes;
        } else {
            out.push(sign);
        }
    }
}

/// Whether a character is a picture (a check mark, a warning sign, a block) and no text.
fn is_picture(sign: char) -> bool {
    matches!(sign, '\u{2580}'..='\u{259f}' | '\u{2600}'..='\u{27bf}' | '\u{fe0f}' | '\u{1f300}'..='\u{1faff}')
}

/// The label of `label](address)` and the text after it.
fn link(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.split_at(find_near(text, ']')?);
    let address = rest.strip_prefix("](")?;
    let end = find_near(address, ')')?;
    Some((label, &address[end + 1..]))
}

/// Where a sign is, if it is not far: what is never closed must not be searched to the end.
fn find_near(text: &str, sign: char) -> Option<usize> {
    let mut near = text.char_indices().take(400);
    near.find(|(_, it)| *it == sign).map(|(at, _)| at)
}

/// The sentences of a text. A sentence ends at `. ! ?` before a space and at `。！？`, but not
/// inside a code span or after an abbreviation.
pub fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let (mut start, mut word, mut skip) = (0, 0, 0);
    for (at, sign) in text.char_indices() {
        if at < skip {
            continue;
        }
        let after = &text[at + sign.len_utf8()..];
        if sign == '`' {
            skip = after.find('`').map_or(skip, |end| at + end + 2);
        } else if sign.is_whitespace() {
            word = at;
        } else if ".!?。！？".contains(sign) {
            let rest = after.trim_start_matches(['"', '\'', '”', '’', ')', '»', '」', '』']);
            let is_apart =
                !sign.is_ascii() || rest.is_empty() || rest.starts_with(char::is_whitespace);
            let is_inner = || sign == '.' && !rest.is_empty() && is_abbreviation(&text[word..at]);
            if is_apart && !is_inner() {
                skip = text.len() - rest.len();
                sentences.push(text[start..skip].trim().to_owned());
                (start, word) = (skip, skip);
            }
        }
    }
    sentences.push(text[start..].trim().to_owned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Whether the full stop after a word belongs to it: `e.g.`, `J.`, `3.`
fn is_abbreviation(word: &str) -> bool {
    let word = word.trim_start_matches(|it: char| !it.is_alphanumeric());
    let is_ordinal = word.len() <= 2 && word.bytes().all(|it| it.is_ascii_digit());
    let is_letter = |it: &str| it.chars().count() == 1 && it.starts_with(char::is_alphabetic);
    is_ordinal || word.split('.').all(is_letter)
}

/// A block of markdown, its text without markup.
#[derive(Debug, PartialEq, Eq)]
pub enum Block {
    Heading(String),
    Paragraph(String),
    Item {
        text: String,
        depth: usize,
    },
    /// The cells of a table row.
    Row(Vec<String>),
    /// A code block; its content is dropped.
    Code,
}

/// The sentences of each paragraph, in languages without spaces also the parts between commas,
/// which are as long as sentences elsewhere.
pub fn clauses(text: &str) -> Vec<String> {
    let paragraphs = text.split("\n\n").map(|it| it.replace('\n', " "));
    let sentences: Vec<String> = paragraphs.flat_map(|it| sentences(&it)).collect();
    let clauses = sentences.iter().flat_map(|it| it.split(['，', '、']));
    let clauses = clauses.map(str::trim).filter(|it| !it.is_empty());
    clauses.map(str::to_owned).collect()
}

/// The lines of a text outside of code blocks; a whole code block gives one `None`.
pub fn lines_outside_code(text: &str) -> impl Iterator<Item = Option<&str>> {
    let mut inside = false;
    text.lines().filter_map(move |line| {
        let fence = line.trim_start().strip_prefix("```");
        let was_inside = inside;
        // A block that opens and closes in one line changes nothing.
        inside ^= fence.is_some_and(|rest| was_inside || !rest.contains("```"));
        match fence {
            _ if was_inside => None,
            Some(_) => Some(None),
            None => Some(Some(line)),
        }
    })
}

pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut in_paragraph = false;
    for line in lines_outside_code(markdown) {
        let text = line.unwrap_or_default().trim();
        let block = line.map_or(Some(Block::Code), block_of_line);
        // A blank line, a rule, the line under the header of a table.
        let separates = !text.contains(char::is_alphanumeric);
        let is_indented = line.is_some_and(|line| line.starts_with(' '));
        match (block, blocks.last_mut()) {
            (Some(block), _) => blocks.push(block),
            (None, _) if separates => {}
            (None, Some(Block::Paragraph(before))) if in_paragraph => {
                before.push(' ');
                before.push_str(text);
            }
            (None, Some(Block::Item { text: item, .. })) if is_indented => {
                item.push(' ');
                item.push_str(text);
            }
            (None, _) => blocks.push(Block::Paragraph(text.to_owned())),
        }
        in_paragraph = !separates && matches!(blocks.last(), Some(Block::Paragraph(_)));
    }
    for block in &mut blocks {
        if let Block::Item { text, .. } | Block::Paragraph(text) = block {
            *text = strip(text);
        }
    }
    blocks
}

/// The block that a line is by itself; none if it belongs to a paragraph or separates.
fn block_of_line(line: &str) -> Option<Block> {
    let text = line.trim();
    if let Some(heading) = heading_text(text) {
        let bare = item_text(&heading).map(str::to_owned);
        return Some(Block::Heading(bare.unwrap_or(heading)));
    }
    if !text.contains(char::is_alphanumeric) {
        return None;
    }
    if text.starts_with('|') {
        let cells = text.trim_matches('|').split('|').map(strip);
        return Some(Block::Row(cells.collect()));
    }
    let text = item_text(text)?.to_owned();
    let indent = line.chars().take_while(|it| it.is_whitespace());
    let indent: usize = indent.map(|it| if it == '\t' { 4 } else { 1 }).sum();
    let depth = indent / 2;
    Some(Block::Item { text, depth })
}

/// The text of `## heading`, or of a short line that is wholly bold.
fn heading_text(line: &str) -> Option<String> {
    let after = line.trim_start_matches('#');
    let level = line.len() - after.len();
    if (1..=6).contains(&level) && after.starts_with(char::is_whitespace) {
        return Some(strip(after));
    }
    let bold = line.strip_suffix(':').unwrap_or(line);
    let bold = bold.strip_prefix("**")?.strip_suffix("**")?;
    (!bold.contains('*') && words(bold) <= 9).then(|| strip(bold).trim_end_matches(':').to_owned())
}

/// The text of a list item: after `-`, `*`, `•`, `+`, `1.` or `1)`.
pub fn item_text(line: &str) -> Option<&str> {
    let (mark, text) = line.split_once(char::is_whitespace)?;
    let is_number = |it: &str| it.parse::<u8>().is_ok();
    let is_mark = matches!(mark, "-" | "*" | "•" | "+")
        || mark.strip_suffix(['.', ')']).is_some_and(is_number);
    is_mark.then(|| text.trim())
}

pub fn is_question(text: &str) -> bool {
    ends_in(text, ['?', '？'])
}

pub fn is_lead_in(text: &str) -> bool {
    ends_in(text, [':', '：'])
}

/// Whether one of the signs is among those that follow the last word.
fn ends_in(text: &str, signs: [char; 2]) -> bool {
    text.chars()
        .rev()
        .take_while(|it| !is_word(*it))
        .any(|it| signs.contains(&it))
}
