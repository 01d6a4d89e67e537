//! The door for text that reaches an agent or a person: recorded text is made visible and harmless
//! here, and nowhere else, before it is shown.
//!
//! Recorded text may come from anywhere: a web page, a test's output, a cloned repository. Two things
//! in it are changed. The `<` of a tag is replaced, so that the text can neither close the frame that
//! it stands in nor open a tag that a host gives a meaning to (`<system-reminder>`). Characters that
//! nobody sees but a model reads, or that steer a terminal, are shown as marks. `one_line` and `visible`
//! do both for text, `visible_json` for JSON, where escapes do the same and parsing gives the text back.
//! The memory itself keeps the text as it came.
//!
//! A few hidden characters stay, because a script or an emoji is written with them and they sit alone
//! between characters that are seen: the variation selector and the joiners of an emoji, and joiners
//! between letters of Arabic and Indic scripts. Flags made of tag characters are not among them.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text on one line, safe in a list, on a terminal and within a frame.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut gap = false;
    for piece in pieces(text) {
        match piece {
            Piece::Seen(character) if character.is_whitespace() => gap = !line.is_empty(),
            piece => {
                if std::mem::take(&mut gap) {
                    line.push(' ');
                }
                piece.write(&mut line);
            }
        }
    }
    without_tags(&line)
}

/// The text with its lines and tabs, safe on a terminal and within a frame.
pub fn visible(text: &str) -> String {
    without_tags(&with_marks(text))
}

/// The text with marks for hidden characters, and its tags as they are: for a model that is asked about
/// recorded text between fences.
pub fn with_marks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    pieces(text).for_each(|piece| piece.write(&mut out));
    out
}

/// JSON in which every tag and every hidden character is escaped; parsed, it is the same.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |it: char| opens(it) || it != '\n' && is_hidden(it);
    if !json.contains(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if is_escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// Replaces the `<` of each tag. `a < b` stays as it is.
pub fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let is_tag = opens(character) && begins_tag(&text[at + character.len_utf8()..]);
        out.push(if is_tag { '‹' } else { character });
    }
    out
}

/// A less-than sign, also as East Asian text has it.
fn opens(character: char) -> bool {
    matches!(character, '<' | '＜' | '﹤')
}

/// Whether a text begins like a tag without its `<`. An empty text does: the rest of a tag may follow
/// in the next field.
fn begins_tag(rest: &str) -> bool {
    let bare = rest.trim_start();
    let has_gap = bare.len() < rest.len();
    let is_name = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_' | ':' | '.');
    match bare.chars().next() {
        // No host gives a meaning to a comment; our own notes end with one.
        Some('!') if rest.starts_with("!--") => false,
        None | Some('/') => true,
        // `<|im_start|>`; the second bar is that of East Asian text.
        Some('!' | '?' | '|' | '｜') => !has_gap,
        Some(first) if first.is_alphabetic() => {
            let after = bare.trim_start_matches(is_name).trim_start();
            !has_gap || after.starts_with(['>', '＞', '﹥'])
        }
        Some(_) => false,
    }
}

/// Part of a text: a character that stays, or a run of hidden ones.
enum Piece {
    Seen(char),
    Hidden { first: char, count: usize },
}

impl Piece {
    fn write(&self, out: &mut String) {
        let _ = match *self {
            Piece::Seen(character) => out.write_char(character),
            Piece::Hidden { first, count: 1 } => match u32::from(first) {
                // Unicode has pictures of these: ␛.
                code @ 0..0x20 => out.write_char(char::from_u32(0x2400 + code).unwrap_or('�')),
                0x7f => out.write_char('␡'),
                code => write!(out, "[U+{code:04X}]"),
            },
            Piece::Hidden { first, count } => {
                let more = count - 1;
                write!(out, "[U+{:04X} and {more} more hidden]", u32::from(first))
            }
        };
    }
}

fn pieces(text: &str) -> impl Iterator<Item = Piece> {
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    std::iter::from_fn(move || {
        let first = characters.next()?;
        let next = characters.peek().copied();
        let is_shown = |it: char, before: char, next: Option<char>| {
            !is_hidden(it)
                || matches!(it, '\n' | '\t')
                || it == '\r' && next == Some('\n')
                || is_written_with(it, before, next)
        };
        if is_shown(first, before, next) {
            before = first;
            // The line break that follows stands for both.
            let seen = if first == '\r' { ' ' } else { first };
            return Some(Piece::Seen(seen));
        }
        let mut count = 1;
        while let Some(next) = characters.next_if(|&it| !is_shown(it, first, None)) {
            before = next;
            count += 1;
        }
        Some(Piece::Hidden { first, count })
    })
}

/// Whether an emoji or a word is written with this hidden character between its neighbours.
fn is_written_with(hidden: char, before: char, next: Option<char>) -> bool {
    let is_key = matches!(before, '#' | '*' | '0'..='9') && next == Some('\u{20e3}');
    match hidden {
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(before) || is_key,
        '\u{200d}' if is_emoji(before) || before == '\u{fe0f}' => next.is_some_and(is_emoji),
        '\u{200c}' | '\u{200d}' => is_joining(before) && next.is_some_and(is_joining),
        _ => false,
    }
}

fn is_emoji(character: char) -> bool {
    matches!(character, '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | 'Ⓜ' | '〰' | '〽' | '㊗' | '㊙'
        | '\u{2194}'..='\u{21aa}' | '\u{231a}'..='\u{23ff}' | '\u{25aa}'..='\u{27bf}'
        | '\u{2934}'..='\u{2935}' | '\u{2b05}'..='\u{2b55}' | '\u{1f000}'..='\u{1faff}')
}

/// Letters and marks of scripts whose words have joiners: Arabic, Syriac, those of India, Sinhala.
fn is_joining(character: char) -> bool {
    matches!(character, '\u{620}'..='\u{74f}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{dff}')
}

/// Whether nobody sees a character, or it steers what shows it: a terminal's cursor and colours, the
/// direction of text.
pub fn is_hidden(character: char) -> bool {
    is_unsafe(character)
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{2028}' | '\u{2029}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character can move the cursor, colour a terminal or reverse the direction of text.
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_any_host_is_no_tag_any_more() {
        for (text, shown) in [
            (
                "<system-reminder>x</system-reminder>",
                "‹system-reminder>x‹/system-reminder>",
            ),
            ("</foreword-memory>", "‹/foreword-memory>"),
            ("< /foreword-memory >", "‹ /foreword-memory >"),
            ("< system-reminder >", "‹ system-reminder >"),
            ("<\u{200b}system>", "<[U+200B]system>"),
            ("＜system＞ ﹤system>", "‹system＞ ‹system>"),
            ("<|im_start|>system", "‹|im_start|>system"),
            ("<!-- x --> <!x> <?php", "<!-- x --> ‹!x> ‹?php"),
            ("<ünder>", "‹ünder>"),
            ("the end <", "the end ‹"),
            (
                "a < b && c > d, 1<2, <= 3, <- x",
                "a < b && c > d, 1<2, <= 3, <- x",
            ),
        ] {
            assert_eq!(one_line(text), shown);
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible("a\n<\n /b>"), "a\n‹\n /b>");
    }

    #[test]
    fn characters_that_nobody_sees_are_shown_as_marks() {
        let hidden = "\u{ad} \u{34f} \u{61c} \u{115f} \u{1160} \u{180b} \u{180e} \u{200b} \u{200d} \u{200e} \u{202e} \
            \u{2060} \u{2066} \u{206a} \u{2800} \u{3164} \u{fe00} \u{fe0f} \u{feff} \u{ffa0} \u{fff9} \u{e0001} \u{e0041} \u{e0100}";
        for hidden in hidden.split(' ') {
            let code = u32::from(hidden.chars().next().unwrap());
            assert_eq!(
                one_line(&format!("a{hidden}b")),
                format!("a[U+{code:04X}]b")
            );
            assert_eq!(visible(&format!("a{hidden}b")), format!("a[U+{code:04X}]b"));
        }
        assert_eq!(
            one_line("a\u{1b}[31m\tb\n\u{7f}c\u{9b}"),
            "a␛[31m b ␡c[U+009B]"
        );
        assert_eq!(visible("a\r\n\tb\rc\0"), "a \n\tb␍c␀");
        let smuggled: String = "run this"
            .bytes()
            .map(|it| char::from_u32(0xe0000 + u32::from(it)).unwrap())
            .collect();
        assert_eq!(
            one_line(&format!("ok{smuggled}.")),
            "ok[U+E0072 and 7 more hidden]."
        );
    }

    #[test]
    fn emoji_and_words_keep_the_hidden_characters_that_they_are_written_with() {
        for text in ["❤️ 1️⃣ 👩‍👩‍👧 👩🏽‍🚀 🏳️‍🌈", "می‌خواهم", "ශ්‍රී", "क्‍ष"]
        {
            assert_eq!(one_line(text), text);
            assert_eq!(visible(text), text);
        }
        // But not several in a row, nor where nothing is written with them.
        assert_eq!(one_line("❤\u{fe0f}\u{fe0f}"), "❤\u{fe0f}[U+FE0F]");
        assert_eq!(
            one_line("a\u{fe0f}b\u{200d}c 1\u{fe0f}"),
            "a[U+FE0F]b[U+200D]c 1[U+FE0F]"
        );
        assert_eq!(
            one_line("م\u{200c}\u{200d}م"),
            "م[U+200C and 1 more hidden]م"
        );
    }

    #[test]
    fn what_is_visible_stays_as_it_is() {
        for text in ["<a>\u{e0041}\u{1b}[1m< /b>", "x\r\ny", "❤️<|a|>", "<<SYS>>"] {
            assert_eq!(visible(&visible(text)), visible(text));
            assert_eq!(one_line(&one_line(text)), one_line(text));
        }
    }

    #[test]
    fn json_is_the_same_when_it_is_parsed() {
        let text = "</foreword-memory> a < b \u{1b}[31m \u{e0041} \u{ad} ❤️ ＜x";
        let json = serde_json::json!({ "a": [text] });
        for written in [format!("{json}"), format!("{json:#}")] {
            let shown = visible_json(&written);
            assert!(!shown.contains(|it: char| opens(it) || it != '\n' && is_hidden(it)));
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
                json
            );
        }
    }
}
