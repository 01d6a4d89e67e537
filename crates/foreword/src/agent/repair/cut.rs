//! Ends what is too long at a sentence, or else at a word.

use foreword_core::text::shorten;

/// At most `max` characters.
pub fn sentence(text: &str, max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max) else {
        return text.to_owned();
    };
    match sentence_end(text, end) {
        Some(end) => text[..end].to_owned(),
        None => shorten(text, max).into_owned(),
    }
}

/// About `max` words, of which not a byte is changed.
pub fn words(text: &str, max: usize) -> String {
    // For scripts that put no spaces between words, and for what is no text at all.
    let text = sentence(text, max * 12);
    match first_words(&text, max) {
        None => text,
        Some(head) => match sentence_end(&text, head.len()) {
            Some(end) => head[..end].to_owned(),
            None => format!("{}…", head.trim_end_matches([',', ';', ':', '.'])),
        },
    }
}

/// Up to the end of the `max`-th word; none if there are no more.
fn first_words(text: &str, max: usize) -> Option<&str> {
    let mut words = text.split_whitespace();
    let last = words.by_ref().take(max).last()?;
    words.next()?;
    // Both are slices of the same text, so their addresses say where the word ends.
    let end = last.as_ptr() as usize - text.as_ptr() as usize + last.len();
    text.get(..end)
}

/// Where the last whole sentence before `max` ends, unless half would be thrown away.
fn sentence_end(text: &str, max: usize) -> Option<usize> {
    let end = text[..max]
        .char_indices()
        .rev()
        .find_map(|(at, character)| {
            let end = at + character.len_utf8();
            let ends = match character {
                '.' | '!' | '?' => text[end..].starts_with(char::is_whitespace),
                '。' | '！' | '？' => true,
                _ => false,
            };
            ends.then_some(end)
        });
    end.filter(|&end| end >= max / 2)
}
