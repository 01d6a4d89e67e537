//! Shortens a long text at the end of a sentence, or else of a word.

use foreword_core::text::shorten;

/// Shortens a text to at most `max` characters.
pub fn sentence(text: &str, max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max) else {
        return text.to_owned();
    };
    match sentence_end(text, end) {
        Some(end) => text[..end].to_owned(),
        None => shorten(text, max).into_owned(),
    }
}

/// Shortens a text to about `max` words; the words themselves do not change.
pub fn words(text: &str, max: usize) -> String {
    // A limit for scripts without spaces between words, and for data that is not text.
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
    // Both are slices of the same text, so the word's end follows from their addresses.
    let end = last.as_ptr() as usize - text.as_ptr() as usize + last.len();
    text.get(..end)
}

/// The end of the last sentence before `max`; none if more than half would be lost.
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
