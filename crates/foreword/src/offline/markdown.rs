//! Markdown as agents write it: blocks, sentences, and text without markup.
//!
//! Only what matters for meaning is parsed, in time linear in the text: input may be hostile, so
//! whatever is never closed is an ordinary character. `prose` reads the blocks.

use super::lexicon::{code_spans, has_cjk, is_word, words};

/// The text without markup: links, emphasis, tags, pictures of state. Code spans stay.
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

/// Appends text without code spans, without its markup.
fn strip_piece(piece: &str, out: &mut String) {
    let mut rest = piece;
    while let Some(sign) = rest.chars().next() {
        let after = &rest[sign.len_utf8()..];
        let before = out.chars().next_back().unwrap_or(' ');
        rest = match sign {
            '[' => match link(after) {
                Some((label, after)) => {
                    if before == '!' {
                        out.pop();
                    }
                    out.push_str(label);
                    after
                }
                None => push(out, sign, after),
            },
            '<' => tag_end(after).unwrap_or_else(|| push(out, sign, after)),
            '*' if after.starts_with('*') => after.trim_start_matches('*'),
            '*' if !is_word(before) => match emphasis(after) {
                Some((inner, after)) => {
                    out.push_str(inner);
                    after
                }
                None => push(out, sign, after),
            },
            '✓'
            | '✅'
            | '✔'
            | '☑'
            | '❌'
            | '✗'
            | '✘'
            | '❓'
            | '⚠'
            | '🎉'
            | '📝'
            | '\u{fe0f}'
            | '\u{2580}'..='\u{259f}' => after.trim_start(),
            _ => push(out, sign, after),
        };
    }
}

fn push<'a>(out: &mut String, character: char, rest: &'a str) -> &'a str {
    out.push(character);
    rest
}

/// How far the end of a link, tag or emphasis is looked for, in bytes.
const MAX_MARKUP: usize = 400;

fn find_near(text: &str, sign: char) -> Option<usize> {
    let mut end = text.len().min(MAX_MARKUP);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].find(sign)
}

/// The label of `label](address)` and the text after it.
fn link(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.split_at(find_near(text, ']')?);
    let address = rest.strip_prefix("](")?;
    let end = find_near(address, ')')?;
    Some((label, &address[end + 1..]))
}

/// The text after `name>` or `/name>`.
fn tag_end(text: &str) -> Option<&str> {
    let name = text.strip_prefix('/').unwrap_or(text);
    let rest = name.trim_start_matches(is_word);
    (rest.len() < name.len()).then(|| rest.strip_prefix('>'))?
}

/// The inside of `inside*` and the text after it.
fn emphasis(text: &str) -> Option<(&str, &str)> {
    let end = find_near(text, '*')?;
    let (inside, after) = (&text[..end], &text[end + 1..]);
    let is_emphasis = !inside.starts_with(char::is_whitespace)
        && !inside.ends_with(char::is_whitespace)
        && !inside.is_empty()
        && !after.starts_with(is_word);
    is_emphasis.then_some((inside, after))
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
            let is_inner =
                || !rest.is_empty() && is_abbreviation(&text[word..at], &text[start..at], rest);
            if is_apart && !(sign == '.' && is_inner()) {
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

/// Whether the full stop after a word belongs to it: `e.g.`, `J.`, `3.`, or a short word after
/// which a sentence that began with a capital goes on in lower case (`approx. five`).
fn is_abbreviation(word: &str, sentence: &str, rest: &str) -> bool {
    let word = word.trim_start_matches(|it: char| !it.is_alphanumeric());
    let length = word.chars().take(6).count();
    let is_initials = length <= 4
        && word.chars().nth(1) == Some('.')
        && word.chars().all(|it| it.is_alphabetic() || it == '.');
    let is_ordinal = length <= 2 && word.chars().all(|it| it.is_ascii_digit());
    let next = rest.split_whitespace().next().unwrap_or_default();
    let goes_on = next.chars().all(char::is_lowercase)
        && sentence.trim_start().starts_with(char::is_uppercase);
    length == 1 || is_initials || is_ordinal || length <= 4 && goes_on
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
    Row {
        cells: Vec<String>,
        is_header: bool,
    },
    /// A code block; its content is dropped.
    Code,
}

/// Sentences of each paragraph; in languages without spaces also the parts between commas, which are as long as
/// sentences elsewhere.
pub fn clauses(text: &str) -> Vec<String> {
    let paragraphs = text.split("\n\n").map(|it| it.replace('\n', " "));
    let sentences = paragraphs.flat_map(|it| sentences(&it));
    let clauses = sentences.flat_map(|sentence| {
        let signs: &[char] = if has_cjk(&sentence) {
            &['，', '、']
        } else {
            &[]
        };
        let parts = sentence.split(signs).map(|it| it.trim().to_owned());
        parts.collect::<Vec<String>>()
    });
    clauses.filter(|it| !it.is_empty()).collect()
}

/// The lines of a text outside of code blocks; a whole code block gives one `None`.
pub fn lines_outside_code(text: &str) -> impl Iterator<Item = Option<&str>> {
    let mut fence = "";
    text.lines().filter_map(move |line| {
        let start = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| start.starts_with(mark));
        match (fence, mark) {
            ("", None) => Some(Some(line)),
            ("", Some(mark)) => {
                // A block that opens and closes in one line.
                if !start[mark.len()..].contains(mark) {
                    fence = mark;
                }
                Some(None)
            }
            (open, Some(mark)) if open == mark => {
                fence = "";
                None
            }
            _ => None,
        }
    })
}

pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut paragraph = String::new();
    for line in lines_outside_code(markdown) {
        let block = line.and_then(|line| block_of_line(line, &mut blocks));
        let text = line.map_or("", str::trim);
        let continues_item = paragraph.is_empty() && line.is_some_and(|line| line.starts_with(' '));
        let is_plain =
            block.is_none() && !text.is_empty() && !is_rule(text) && !is_table_rule(text);
        if is_plain {
            match blocks.last_mut() {
                Some(Block::Item { text: item, .. }) if continues_item => {
                    item.push(' ');
                    item.push_str(text);
                }
                _ => {
                    paragraph.push(' ');
                    paragraph.push_str(text);
                }
            }
            continue;
        }
        if !paragraph.is_empty() {
            blocks.push(Block::Paragraph(strip(&std::mem::take(&mut paragraph))));
        }
        blocks.extend(block);
        if line.is_none() {
            blocks.push(Block::Code);
        }
    }
    if !paragraph.is_empty() {
        blocks.push(Block::Paragraph(strip(&paragraph)));
    }
    for block in &mut blocks {
        if let Block::Item { text, .. } = block {
            *text = strip(text);
        }
    }
    blocks
}

/// The block that a line is by itself; none if it belongs to a paragraph or separates.
fn block_of_line(line: &str, blocks: &mut [Block]) -> Option<Block> {
    let text = line.trim();
    if let Some(heading) = heading_text(text) {
        return Some(Block::Heading(heading));
    }
    if text.starts_with('|') {
        if is_table_rule(text) {
            if let Some(Block::Row { is_header, .. }) = blocks.last_mut() {
                *is_header = true;
            }
            return None;
        }
        return Some(Block::Row {
            cells: cells(text),
            is_header: false,
        });
    }
    if is_rule(text) {
        return None;
    }
    let item = item_text(text)?;
    let indent: usize = line
        .chars()
        .take_while(|it| it.is_whitespace())
        .map(|it| if it == '\t' { 4 } else { 1 })
        .sum();
    Some(Block::Item {
        text: item.to_owned(),
        depth: indent / 2,
    })
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

/// The text of a list item: after `-`, `*`, `•`, `+`, `1.`, `1)` or `a)`.
pub fn item_text(line: &str) -> Option<&str> {
    let (mark, text) = line.split_once(char::is_whitespace)?;
    let is_number =
        |it: &str| (1..=3).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_digit());
    let is_letter = |it: &str| it.len() == 1 && it.bytes().all(|it| it.is_ascii_lowercase());
    let is_mark = matches!(mark, "-" | "*" | "•" | "+")
        || mark.strip_suffix(['.', ')']).is_some_and(is_number)
        || mark.strip_suffix(')').is_some_and(is_letter);
    is_mark.then(|| text.trim())
}

fn is_rule(line: &str) -> bool {
    line.chars().take(3).count() == 3 && line.chars().all(|it| "-*_=─".contains(it))
}

fn is_table_rule(line: &str) -> bool {
    line.starts_with('|')
        && line
            .chars()
            .all(|it| it.is_whitespace() || "|:-".contains(it))
}

/// The cells of a table row; a `|` in a code span separates nothing.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim_matches('|');
    let mut cells = vec![String::new()];
    for (is_code, piece) in code_spans(row) {
        let mut parts = if is_code {
            vec![piece]
        } else {
            piece.split('|').collect()
        }
        .into_iter();
        if let (Some(cell), Some(part)) = (cells.last_mut(), parts.next()) {
            cell.push_str(part);
        }
        cells.extend(parts.map(str::to_owned));
    }
    cells.iter().map(|cell| strip(cell)).collect()
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
