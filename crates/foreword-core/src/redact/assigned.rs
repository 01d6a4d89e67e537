//! Finds values that follow a secret name: `DB_PASSWORD=…`, `"api_key": "…"`, `--token …`.
//!
//! Ordinary code mentions secrets all the time (`token: String`, `password = form.password`),
//! so how much a value has to look like a secret depends on how it is assigned: after a name
//! in capitals and a bare `=` almost every value counts, in a sentence only one that
//! looks random. Only the value is replaced; the name stays.

use std::ops::Range;

use super::rules::{
    WINDOW, after_last, begins_a_word, is_hex, is_mixed, is_placeholder, is_token_byte, run_max,
};

/// Names that a secret value follows. If one name begins with another, the longer comes first.
#[rustfmt::skip] // A list is read in a line.
pub const SECRET_NAMES: &[&str] = &[
    "password", "passwd", "passphrase", "secret_key", "secret-key", "secretkey", "secret", "token",
    "api_key", "api-key", "api key", "apikey", "accesskey", "accountkey", "credential", "pwd",
];

/// The character or sign that ends a value.
#[derive(Clone, Copy)]
pub enum ValueEnding {
    /// The quote that opened the value, and the number of backslashes before it.
    Quote(u8, usize),
    /// A space or a quote, as in a `.env` file or a shell.
    Space,
    /// A space, a quote or a sign that separates values in code.
    Code,
    /// The `<` of a tag.
    Tag,
}

/// The end of the value that starts at `start`, at most `max` bytes after it.
pub fn end_of_value(bytes: &[u8], start: usize, ending: ValueEnding, max: usize) -> usize {
    match ending {
        ValueEnding::Quote(quote, depth) => {
            let until = bytes.len().min(start.saturating_add(max));
            let mut slashes = 0;
            for (at, &byte) in (start..until).zip(&bytes[start..until]) {
                #[cfg(test)]
                super::rules::bytes_read::add(1);
                match byte {
                    b'\n' => return at,
                    b'\\' => slashes += 1,
                    _ => {
                        let closes = slashes <= depth || depth == 0 && slashes % 2 == 0;
                        if byte == quote && closes {
                            return at - slashes.min(depth);
                        }
                        slashes = 0;
                    }
                }
            }
            // With the limit `WINDOW` this may be inside a character; such an end is only
            // looked at, never used to cut the text.
            until
        }
        ValueEnding::Space => run_max(bytes, start, max, |byte| {
            byte > b' ' && byte != 0x7f && !matches!(byte, b'"' | b'\'' | b'\\' | b'`')
        }),
        ValueEnding::Code => run_max(bytes, start, max, |byte| {
            byte.is_ascii_graphic() && !b"\"'\\`,;()<>}]".contains(&byte)
        }),
        ValueEnding::Tag => run_max(bytes, start, max, |byte| byte != b'<' && byte != b'\n'),
    }
}

/// The way in which a value is assigned to its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `NAME=value`.
    Tight,
    /// `name: value`, `name := value`, `<name>value</name>`.
    Assigned,
    /// `name value`, `name is value`.
    Spaced,
}

/// A value that is assigned to a name.
struct Assigned {
    start: usize,
    ending: ValueEnding,
    form: Form,
    colon: bool,
}

impl Assigned {
    fn quoted(&self) -> bool {
        !matches!(self.ending, ValueEnding::Space | ValueEnding::Code)
    }

    /// The first `WINDOW` bytes of the value.
    fn seen<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..end_of_value(bytes, self.start, self.ending, WINDOW)]
    }

    /// The whole value.
    fn span(&self, bytes: &[u8]) -> Range<usize> {
        let mut end = end_of_value(bytes, self.start, self.ending, usize::MAX);
        if matches!(self.ending, ValueEnding::Space) {
            while end > self.start + 1 && matches!(bytes[end - 1], b',' | b';' | b')' | b'}') {
                end -= 1;
            }
        }
        self.start..end
    }
}

/// Reads an opening quote with its backslashes; returns the start of the value and its ending.
pub fn opening_quote(bytes: &[u8], at: usize) -> Option<(usize, ValueEnding)> {
    let quote_at = run_max(bytes, at, 3, |byte| byte == b'\\');
    let quote = *bytes.get(quote_at)?;
    if !matches!(quote, b'"' | b'\'' | b'`') {
        return None;
    }
    let triple = bytes.get(quote_at..quote_at + 3) == Some(&[quote; 3]);
    let start = quote_at + if triple { 3 } else { 1 };
    Some((start, ValueEnding::Quote(quote, quote_at - at)))
}

/// The value after a name that ends at `name_end`; `env` if the name is in capitals, as an
/// environment variable's.
fn assigned(bytes: &[u8], name_end: usize, env: bool) -> Option<Assigned> {
    let blank = |byte: u8| byte == b' ' || byte == b'\t';
    let closed = run_max(bytes, name_end, 4, |byte| {
        matches!(byte, b'"' | b'\'' | b'\\' | b'`' | b']')
    });
    if closed == name_end && bytes.get(closed) == Some(&b'>') {
        return element(bytes, closed + 1);
    }
    let separator = run_max(bytes, closed, 32, blank);
    let rest = &bytes[separator..];
    let (width, colon) = match rest {
        [b'=', b'=' | b'~', ..] | [b':', b':', ..] => return None,
        [b':' | b'?', b'=', ..] | [b'=', b'>', ..] => (2, false),
        [b'=', ..] => (1, false),
        [b':', ..] => (1, true),
        _ if separator > closed && closed == name_end => {
            let is = if rest.starts_with(b"is ") { 3 } else { 0 };
            let at = separator + is;
            let (start, ending) = opening_quote(bytes, at).unwrap_or((at, ValueEnding::Space));
            return Some(Assigned {
                start,
                ending,
                form: Form::Spaced,
                colon: false,
            });
        }
        _ => return None,
    };
    let after = separator + width;
    let mut at = run_max(bytes, after, 32, blank);
    let tight = separator == closed && width == 1 && !colon && at == after;
    if colon {
        at = typed(bytes, at).or_else(|| block(bytes, at)).unwrap_or(at);
    }
    let plain = if tight && env {
        ValueEnding::Space
    } else {
        ValueEnding::Code
    };
    let (start, ending) = opening_quote(bytes, at).unwrap_or((at, plain));
    Some(Assigned {
        start,
        ending,
        form: if tight { Form::Tight } else { Form::Assigned },
        colon,
    })
}

/// `<password>…</password>`, if the element contains nothing but the value.
fn element(bytes: &[u8], start: usize) -> Option<Assigned> {
    let end = end_of_value(bytes, start, ValueEnding::Tag, WINDOW);
    bytes[end..].starts_with(b"</").then_some(Assigned {
        start,
        ending: ValueEnding::Tag,
        form: Form::Assigned,
        colon: false,
    })
}

/// `password: string = "…"`: the value comes after the type.
fn typed(bytes: &[u8], at: usize) -> Option<usize> {
    let end = run_max(bytes, at, 24, |byte| {
        byte.is_ascii_alphanumeric() || b"&_<>".contains(&byte)
    });
    let assigns = bytes[end..].starts_with(b" = \"") || bytes[end..].starts_with(b" = '");
    (end > at && assigns).then_some(end + 3)
}

/// `password: >-`: the value is on the next line.
fn block(bytes: &[u8], at: usize) -> Option<usize> {
    if !matches!(bytes.get(at), Some(b'>' | b'|')) {
        return None;
    }
    let end = run_max(bytes, at + 1, 2, |byte| matches!(byte, b'-' | b'+' | b'\r'));
    (bytes.get(end) == Some(&b'\n')).then(|| run_max(bytes, end + 1, 64, |byte| byte == b' '))
}

/// `password = "…"`, `"api_key": "…"`, `DB_PASSWORD=…`, `--token …`.
pub fn value(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let upper_case = is_upper_case(&bytes[at..body]);
    // The name may go on: `API_TOKEN_PROD=`, `password2:`.
    let name_end = if upper_case {
        run_max(bytes, body, 32, |byte| {
            byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
        })
    } else {
        run_max(bytes, body, 3, |byte| byte.is_ascii_digit())
    };
    let assigned = assigned(bytes, name_end, upper_case)?;
    let seen = assigned.seen(bytes);
    let quoted = assigned.quoted();
    if is_placeholder(seen) || quoted && is_between(seen) || is_folder(bytes, at, body, seen) {
        return None;
    }
    let secret = if assigned.form == Form::Spaced {
        is_spaced_value(bytes, at, seen)
    } else if assigned.form == Form::Tight && is_flag(bytes, at) {
        seen.len() >= 4 && !is_upper_case(seen)
    } else if assigned.form == Form::Tight && upper_case {
        is_env_value(seen, name_end > body, quoted)
    } else if assigned.colon && is_complaint(bytes, at) {
        is_random(seen)
    } else {
        // A full stop at the end is the sentence's; one inside means code (`form.password`).
        let inner = seen.strip_suffix(b".").unwrap_or(seen);
        let is_code = !quoted
            && (inner.contains(&b'.')
                || seen.contains(&b':')
                || seen.contains(&b'[')
                || bytes.get(assigned.start + seen.len()) == Some(&b'(')
                // `TOKEN: &str = …` declares a constant: this is its type.
                || assigned.colon && bytes[assigned.start + seen.len()..].starts_with(b" = ")
                || is_constant(seen));
        let whole_line = !quoted && assigned.colon && is_whole_line(bytes, at, &assigned, seen);
        !is_code
            && (is_secret_value(seen, quoted || whole_line)
                || quoted && is_passphrase(&bytes[at..body], seen))
    };
    secret.then(|| assigned.span(bytes))
}

/// Whether this is the shell's variable for the current folder: `PWD=/home/me`, `OLDPWD=~`.
fn is_folder(bytes: &[u8], at: usize, body: usize, value: &[u8]) -> bool {
    let before = &bytes[at.saturating_sub(WINDOW)..at];
    let name = after_last(before, |byte| !is_token_byte(byte));
    let is_path = matches!(value.first(), Some(b'/' | b'~' | b'.')) || value.get(1) == Some(&b':');
    is_path && &bytes[at..body] == b"PWD" && matches!(name, b"" | b"OLD")
}

/// `DB_PASS=…`, `pass: "…"`, `smtpPass`, but not `passes` or `bypass`.
pub fn pass(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let hump = at > 0 && bytes[at - 1].is_ascii_lowercase() && bytes[at] == b'P';
    let ends = bytes
        .get(body)
        .is_none_or(|byte| !byte.is_ascii_alphabetic());
    if !ends || !(hump || begins_a_word(bytes, at)) {
        return None;
    }
    // Followed by a space, `pass` is an ordinary word of a sentence.
    let in_sentence = matches!(bytes.get(body), Some(b' ' | b'\t'))
        && !matches!(bytes.get(body + 1), Some(b'=' | b':'));
    if in_sentence && !is_flag(bytes, at) {
        return None;
    }
    value(bytes, at, body)
}

/// `signing_key = "…"`: only a value that looks random, since keys of maps and tables have such
/// names too.
pub fn key(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let before = &bytes[at.saturating_sub("public".len())..at];
    if before.eq_ignore_ascii_case(b"public") {
        return None;
    }
    let mut assigned = assigned(bytes, body, false)?;
    for prefix in ["base64:", "0x"] {
        if bytes[assigned.start..].starts_with(prefix.as_bytes()) {
            assigned.start += prefix.len();
        }
    }
    is_random(assigned.seen(bytes)).then(|| assigned.span(bytes))
}

/// `mysql -pX`, `sshpass -p X`, `curl -u me:X`: the program decides whether an option has a password.
pub fn option(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let before = &bytes[at.saturating_sub(WINDOW)..at];
    let line = after_last(before, |byte| matches!(byte, b'\n' | b'|' | b';'));
    let runs = |program: &str| contains(line, program);
    let is_long = bytes[at..body].ends_with(b"user");
    let is_user = is_long || bytes[at..body].ends_with(b"u");
    let gap = run_max(bytes, body, 2, |byte| {
        byte == b' ' || is_long && byte == b'='
    });
    let (start, ending) = opening_quote(bytes, gap).unwrap_or((gap, ValueEnding::Space));
    let end = end_of_value(bytes, start, ending, WINDOW);
    let word = &bytes[start..end];
    let start = if is_user {
        if !(runs("curl") || runs("http ") || runs("wget")) {
            return None;
        }
        start + word.iter().position(|&byte| byte == b':')? + 1
    } else if gap == body && (runs("mysql") || runs("mariadb")) || runs("sshpass") {
        start
    } else {
        return None;
    };
    let password = &bytes[start..end];
    (password.len() >= 3 && !is_placeholder(password) && !is_between(word))
        .then(|| start..end_of_value(bytes, start, ending, usize::MAX))
}

/// Whether a value is the text between two strings, not a string: `f("token=", value, "…")`.
pub fn is_between(value: &[u8]) -> bool {
    matches!(
        value.first(),
        Some(b',' | b')' | b' ' | b'"' | b'\'' | b';' | b'+')
    )
}

/// A plain loop, since building a searcher takes longer than these few bytes.
pub fn contains(bytes: &[u8], word: &str) -> bool {
    bytes
        .windows(word.len())
        .any(|part| part == word.as_bytes())
}

pub fn is_upper_case(name: &[u8]) -> bool {
    name.iter()
        .all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
}

/// Whether the name is part of an option: `--db-password`.
fn is_flag(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(24)..at];
    let name = after_last(before, |byte| !byte.is_ascii_lowercase() && byte != b'-');
    name.windows(2).any(|dashes| dashes == b"--")
}

/// Whether a value after a name and a space is a secret: after an option, in a `.netrc`, after
/// `setenv`; in a sentence only if it looks random.
fn is_spaced_value(bytes: &[u8], at: usize, value: &[u8]) -> bool {
    let before = &bytes[at.saturating_sub(64)..at];
    let line = after_last(before, |byte| byte == b'\n');
    let line_has = |word: &str| contains(line, word);
    let has_digit_or_sign = value
        .iter()
        .any(|&byte| byte.is_ascii_digit() || b"!@#^+/~?".contains(&byte));
    let plain = value.iter().all(u8::is_ascii_graphic) && !matches!(value.first(), Some(b'-'));
    if is_flag(bytes, at) || line_has("login ") || line_has("setenv ") {
        return plain && has_digit_or_sign && value.len() >= 6;
    }
    let value = value.strip_suffix(b",").unwrap_or(value);
    let value = value.strip_suffix(b".").unwrap_or(value);
    is_scattered(value)
}

/// Whether a value in a shell or a `.env` file is a secret: almost every one is. A name that
/// goes on (`TOKEN_URL=`) may mean something else.
fn is_env_value(value: &[u8], goes_on: bool, quoted: bool) -> bool {
    let name = value
        .iter()
        .take_while(|byte| is_token_byte(**byte) || **byte == b'.')
        .count();
    let call = !quoted && value.get(name) == Some(&b'(');
    let place = value.starts_with(b"/") || contains(value, "://");
    if call {
        return false;
    }
    if goes_on {
        return !place && is_secret_value(value, true);
    }
    let numeric = value.iter().all(u8::is_ascii_digit) && value.len() < 8;
    value.len() >= 4 && !numeric
}

/// Whether the name is part of an error message: `unexpected token: …` is not an assignment.
pub fn is_complaint(bytes: &[u8], at: usize) -> bool {
    if at == 0 || bytes[at - 1] != b' ' {
        return false;
    }
    let before = &bytes[at.saturating_sub(16)..at - 1];
    let word = after_last(before, |byte| !byte.is_ascii_alphabetic());
    [
        "unexpected",
        "expected",
        "invalid",
        "illegal",
        "unknown",
        "missing",
        "bad",
        "wrong",
        "next",
        "last",
        "first",
        "current",
        "reserved",
        "unrecognized",
        "duplicate",
        "found",
        "a",
        "an",
        "this",
        "of",
    ]
    .iter()
    .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether name and value fill a whole line, as in YAML.
fn is_whole_line(bytes: &[u8], at: usize, assigned: &Assigned, seen: &[u8]) -> bool {
    let end = &bytes[assigned.start + seen.len()..];
    let ends = matches!(end, [] | [b'\n' | b'\r' | b'\\', ..] | [b' ', b'#', ..]);
    let before = &bytes[at.saturating_sub(WINDOW)..at];
    let name = after_last(before, |byte| !is_token_byte(byte));
    let line = after_last(&before[..before.len() - name.len()], |byte| byte == b'\n');
    ends && line
        .iter()
        .all(|&byte| byte.is_ascii_digit() || b" \t-+>|:".contains(&byte) || !byte.is_ascii())
}

/// Whether a value is long enough, one word, and mixes digits and letters.
pub fn is_secret_value(value: &[u8], quoted: bool) -> bool {
    let long = value.len() >= if quoted { 8 } else { 12 };
    let one_word = value.iter().all(|byte| !byte.is_ascii_whitespace());
    long && one_word && is_mixed(value) && !is_placeholder(value) && !is_wordy(value)
}

/// Whether a value is a password without digits, or one of several words.
fn is_passphrase(name: &[u8], value: &[u8]) -> bool {
    let of_password = matches!(name.first(), Some(b'p' | b'P'));
    let spaced = value.contains(&b' ');
    let cased =
        value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    let plain = value.iter().all(u8::is_ascii_alphabetic);
    let contains_pass = value
        .windows(4)
        .any(|part| part.eq_ignore_ascii_case(b"pass"));
    let has_mixed_word = value
        .split(|&byte| byte == b' ')
        .any(|word| word.len() >= 6 && is_mixed(word));
    of_password
        && !contains_pass
        && if spaced {
            has_mixed_word && value.len() >= 12
        } else {
            plain && cased && value.len() >= 12
        }
}

/// Whether a value is a name or a phrase: `must-be-8-chars`, `my-secret-name-v2`.
pub fn is_wordy(value: &[u8]) -> bool {
    let mut parts = 0;
    let all = value
        .split(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/'))
        .all(|part| {
            parts += 1;
            let digits = part.strip_prefix(b"v").unwrap_or(part);
            let number = digits.len() <= 2 && digits.iter().all(u8::is_ascii_digit);
            number || part.iter().all(u8::is_ascii_alphabetic)
        });
    all && parts >= 3
}

/// Whether a value is the name of a constant: `FTS5_MAX_TOKEN_SIZE`.
pub fn is_constant(value: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    value.contains(&b'_') && value.iter().all(fits)
}

/// Whether a value looks random: long, and base64 or hexadecimal.
pub fn is_random(value: &[u8]) -> bool {
    let random = value.len() >= 20
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && value
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    let hex = value.len() >= 32 && value.iter().all(|&byte| is_hex(byte)) && is_mixed(value);
    random || hex
}

/// Whether a word of a sentence looks random: digits in several places, and both cases.
fn is_scattered(value: &[u8]) -> bool {
    let numbers = value
        .split(|byte| !byte.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .count();
    value.len() >= 16
        && numbers >= 2
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && value.iter().all(u8::is_ascii_alphanumeric)
}

/// Whether the value of a JSON field is a secret, judged by its name too.
pub fn is_secret_field(name: &str, value: &[u8]) -> bool {
    let name = name.trim_end_matches(|it: char| it.is_ascii_digit());
    let lower = name.to_ascii_lowercase();
    let ends_in_pass = lower
        .strip_suffix("pass")
        .is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
        || name.ends_with("Pass");
    let upper_case = is_upper_case(name.as_bytes());
    let secret_name = SECRET_NAMES
        .iter()
        .find(|secret| lower.ends_with(*secret) || upper_case && lower.contains(*secret));
    let secret_name = if ends_in_pass {
        Some(&"pass")
    } else {
        secret_name
    };
    secret_name.is_some_and(|secret| {
        is_secret_value(value, true) || is_passphrase(secret.as_bytes(), value)
    })
}
