//! Labels of secrets in the thorough stage: words that say that a secret follows, in several languages
//! and notations, and the values that count as one after such a word.
//!
//! `assigned` covers names in code and in shells, where a wrong match would spoil a line of code. Here
//! are the rest: labels in tables and sentences, names in one field with the value in another, SQL,
//! and configuration files.

use std::ops::Range;

use super::Stage;
use super::assigned::{
    self, SECRET_NAMES, ValueEnding, contains, end_of_value, is_between, is_random,
    is_secret_value, is_wordy, opening_quote,
};
use super::rules::{
    WINDOW, after_last, begins_a_word, is_base64_byte, is_mixed, is_placeholder, is_scrambled,
    is_token_byte, run_max,
};

/// Fields that hold a name whose value is in a field beside it.
pub const NAME_FIELDS: &[&str] = &[
    "name",
    "key",
    "variable",
    "var",
    "id",
    "parameterkey",
    "parametername",
    "setting",
    "option",
];

/// Fields that hold the value of a name that is in a field beside it.
pub const VALUE_FIELDS: &[&str] = &["value", "default", "parametervalue", "val", "content"];

/// Words for a password, a passphrase or a token, in lower case where they have one. If one word
/// begins with another, the longer comes first.
#[rustfmt::skip] // A list is read in a line.
pub const PASSWORD_LABELS: &[&str] = &[
    "password", "passwd", "passphrase", "passcode", "pwd",
    "passwort", "kennwort", "zugangscode", "losungswort", // German
    "mot de passe", "mot_de_passe", "motdepasse", "mdp", "jeton", "phrase secrète", // French
    "contraseña", "contrasena", "contrasenya", "clave", // Spanish, Catalan
    "senha", "palavra-passe", "chave", // Portuguese
    "parola d'ordine", "parola", // Italian, Turkish, Romanian
    "wachtwoord", "lösenord", "losenord", "adgangskode", "passord", "salasana", // Dutch, Nordic
    "hasło", "haslo", "heslo", "jelszó", "jelszo", "lozinka", "şifre", "sifre", // Polish, Czech, Hungarian, Croatian, Turkish
    "пароль", "Пароль", "ПАРОЛЬ", "пароля", "токен", "Токен", "секрет", "Секрет", // Russian
    "密码", "密碼", "口令", "令牌", "密钥", "密鑰", "秘钥", // Chinese
    "パスワード", "パスフレーズ", "暗証番号", "トークン", "秘密鍵", // Japanese
    "비밀번호", "암호", "토큰", // Korean
    "mật khẩu", "κωδικός", "كلمة المرور", "סיסמה", "पासवर्ड", "รหัสผ่าน",
    "pass",
];

/// Words for a key: only a value that looks random counts after them.
#[rustfmt::skip] // A list is read in a line.
pub const KEY_LABELS: &[&str] = &[
    "secret", "token", "credential", "key", "psk", "auth", "schlüssel", "clé", "clef", "llave",
    "sleutel", "klucz", "ключ", "Ключ", "キー", "키",
];

/// Parts of a name that make its value something else than a secret: `token_hash`, `key_id`.
const OTHER_NAMES: &str = "hash sha md5 digest checksum integrity id ids uuid url uri name file path type count size \
    length version public fingerprint field column index label prefix regex pattern format policy expiry expires ttl \
    url endpoint map code cache word words board stroke";

/// Signs that separate a label from its value, and words that do.
#[rustfmt::skip] // A list is read in a line.
const SEPARATORS: &[&str] = &[
    "=>", "->", ":=", "=", ":", "：", "＝", "|", "→",
    "is ", "was ", "ist ", "lautet ", "est ", "es ", "é ", "è ", "wynosi ", "это ", "— ", "– ", "- ",
    "是", "为", "為", "は", "입니다", "는 ",
];

/// A value after a label.
struct Labelled {
    start: usize,
    ending: ValueEnding,
    /// The part of the name after the label: `_base` in `secret_key_base`.
    rest_of_name: Range<usize>,
}

impl Labelled {
    fn quoted(&self) -> bool {
        matches!(self.ending, ValueEnding::Quote(..))
    }

    fn seen<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let end = end_of_value(bytes, self.start, self.ending, WINDOW);
        let value = &bytes[self.start..end];
        let more = |byte: &u8| matches!(byte, b',' | b';' | b'.' | b')' | b'|' | b'*');
        let kept = value.iter().rposition(|byte| !more(byte));
        if self.quoted() {
            value
        } else {
            &value[..kept.map_or(0, |last| last + 1)]
        }
    }

    fn span(&self, bytes: &[u8]) -> Range<usize> {
        let seen = self.seen(bytes).len();
        let whole = end_of_value(bytes, self.start, self.ending, usize::MAX);
        self.start..if seen < WINDOW - 8 {
            self.start + seen
        } else {
            whole
        }
    }
}

/// Reads the value after a label that ends at `name_end`: past the rest of its name, a
/// remark in brackets, quotes and markup, and one separator.
fn labelled(bytes: &[u8], at: usize, name_end: usize) -> Option<Labelled> {
    let is_ascii = bytes[at..name_end].is_ascii();
    let inside_word = |byte: u8| byte.is_ascii_alphabetic();
    let hump = at > 0 && bytes[at - 1].is_ascii_lowercase() && bytes[at].is_ascii_uppercase();
    if is_ascii && at > 0 && inside_word(bytes[at - 1]) && !hump && !begins_a_word(bytes, at) {
        return None;
    }
    let next_is_lower = bytes.get(name_end).is_some_and(u8::is_ascii_lowercase);
    let upper_name = bytes[name_end - 1].is_ascii_uppercase();
    let plural = bytes.get(name_end) == Some(&b's')
        && !bytes.get(name_end + 1).is_some_and(u8::is_ascii_alphabetic);
    if is_ascii && next_is_lower && !plural && !upper_name {
        return None;
    }
    let name = run_max(bytes, name_end, 28, is_token_byte);
    let blank = |byte: u8| matches!(byte, b' ' | b'\t');
    let mut position = run_max(bytes, name, 5, |byte| b"\"'`\\]*_".contains(&byte));
    let closed = position > name && bytes[position - 1] != b'*';
    position = run_max(bytes, position, 24, blank);
    if bytes.get(position) == Some(&b'(') {
        let remark = run_max(bytes, position, 32, |byte| byte != b')' && byte != b'\n');
        if bytes.get(remark) == Some(&b')') {
            position = run_max(bytes, remark + 1, 8, |byte| blank(byte) || byte == b'*');
        }
    }
    let rest = &bytes[position..];
    if rest.starts_with(b"==") || rest.starts_with(b"::") || rest.starts_with(b"=~") {
        return None;
    }
    let separator = SEPARATORS.iter().find(|it| rest.starts_with(it.as_bytes()));
    let after = match separator {
        Some(separator) => position + separator.len(),
        // `define('DB_PASSWORD', '…')`, `["--password", "…"]`.
        None if closed && rest.first() == Some(&b',') => position + 1,
        None => return None,
    };
    let start = run_max(bytes, after, 32, |byte| blank(byte) || byte == b'*');
    let (start, ending) = opening_quote(bytes, start).unwrap_or((start, ValueEnding::Space));
    let is_list = closed && separator.is_none() && !matches!(ending, ValueEnding::Quote(..));
    (!is_list).then_some(Labelled {
        start,
        ending,
        rest_of_name: name_end..name,
    })
}

/// Whether the rest of a name says that its value is not a secret.
fn is_other_name(rest: &[u8]) -> bool {
    let lower = rest.to_ascii_lowercase();
    let mut parts = lower.split(|byte| !byte.is_ascii_alphabetic());
    let is_other =
        |part: &[u8]| std::str::from_utf8(part).is_ok_and(|it| crate::text::is_in(OTHER_NAMES, it));
    parts.any(|part| !part.is_empty() && is_other(part))
}

/// A value after a word for a password.
pub fn password(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let found = labelled(bytes, at, body)?;
    let value = found.seen(bytes);
    let english = SECRET_NAMES
        .iter()
        .chain(&["pass", "passcode"])
        .any(|it| bytes[at..body].eq_ignore_ascii_case(it.as_bytes()));
    let secret = !is_other_name(&bytes[found.rest_of_name.clone()])
        && !(found.quoted() && is_between(value))
        && !assigned::is_complaint(bytes, at)
        && if english {
            is_strong(value) && !is_code(bytes, &found, value)
                || is_own_line(bytes, at, &found, value) && is_password(value)
        } else {
            is_password(value)
        };
    secret.then(|| found.span(bytes))
}

/// A value that looks random after a word for a key.
pub fn key(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let mut found = labelled(bytes, at, body)?;
    let before = &bytes[at.saturating_sub(24)..at];
    let name = after_last(before, |byte| !is_token_byte(byte) && byte != b' ');
    if is_other_name(&bytes[found.rest_of_name.clone()])
        || contains_word(name, "public")
        || contains_word(name, "cache")
    {
        return None;
    }
    for prefix in ["base64:", "0x"] {
        if bytes[found.start..].starts_with(prefix.as_bytes()) {
            found.start += prefix.len();
        }
    }
    let value = found.seen(bytes);
    let hex = value.iter().all(u8::is_ascii_hexdigit);
    let long = value.len() >= if hex { 32 } else { 20 };
    let plain = value
        .iter()
        .all(|&byte| is_base64_byte(byte) || is_token_byte(byte) || matches!(byte, b'.' | b'~'));
    let secret = long
        && plain
        && is_mixed(value)
        && is_scrambled(value)
        && !is_uuid(value)
        && !is_wordy(value)
        && !value.contains(&b'.')
        // A hash is written in one case and has one of these lengths; beside a bare `key` it is one.
        && !(hex && found.rest_of_name.is_empty() && name.is_empty() && matches!(value.len(), 32 | 40 | 64 | 128));
    secret.then(|| found.span(bytes))
}

/// A random word further on in the line of a label: in a table, after a remark.
pub fn beside(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    if !begins_a_word(bytes, at) || bytes.get(body).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let line = run_max(bytes, body, WINDOW, |byte| {
        byte != b'\n' && !b"{}();<>=\"".contains(&byte)
    });
    let mut start = body;
    while start < line {
        let end = run_max(bytes, start, line - start, |byte| {
            is_base64_byte(byte) || is_token_byte(byte)
        });
        let word = &bytes[start..end];
        let lower = word.to_ascii_lowercase();
        let other = std::str::from_utf8(&lower)
            .is_ok_and(|it| crate::text::is_in(OTHER_NAMES, it) || it.starts_with("sha"));
        if other || start - body > 72 {
            return None;
        }
        let numbers = word
            .split(|byte| !byte.is_ascii_digit())
            .filter(|part| !part.is_empty())
            .count();
        let both_cases =
            word.iter().any(u8::is_ascii_uppercase) && word.iter().any(u8::is_ascii_lowercase);
        if end < line + 1
            && word.len() >= 20
            && both_cases
            && numbers >= 3
            && !is_wordy(word)
            && bits_per_character(word) >= 3.5
        {
            let whole = run_max(bytes, start, usize::MAX, |byte| {
                is_base64_byte(byte) || is_token_byte(byte)
            });
            return Some(start..whole);
        }
        start = end + 1;
    }
    None
}

/// Shannon's entropy of a word, in bits for each character.
fn bits_per_character(word: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in word {
        counts[usize::from(byte)] += 1;
    }
    let length = word.len() as f64;
    let share = |&count: &u32| f64::from(count) / length;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(share)
        .map(|share| -share * share.log2())
        .sum()
}

/// `ALTER USER app PASSWORD '…'`, `IDENTIFIED BY '…'`.
pub fn sql(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'(' | b'=' | b':');
    let quote = run_max(bytes, body, 8, blank);
    let (start, ending) = opening_quote(bytes, quote)?;
    let end = end_of_value(bytes, start, ending, WINDOW);
    let value = &bytes[start..end];
    let before = bytes[at.saturating_sub(WINDOW)..at].to_ascii_lowercase();
    let known = |words: &[&str]| words.iter().any(|word| contains(&before, word));
    let is_statement = match bytes[at].to_ascii_lowercase() {
        b'i' => true,
        b'p' => known(&[
            "user", "role", "login", "alter ", "create ", "set ", "server",
        ]),
        _ => known(&["identified"]),
    };
    let secret = quote > body
        && is_statement
        && value.len() >= 3
        && !value.contains(&b' ')
        && !is_placeholder(value)
        && !is_between(value);
    secret.then(|| start..end_of_value(bytes, start, ending, usize::MAX))
}

/// The value of a name that stands in another field: `- name: DB_PASSWORD`, then `value: …`.
pub fn value_of_name(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let found = labelled(bytes, at, body)?;
    if !found.rest_of_name.is_empty() {
        return None;
    }
    let before = &bytes[at.saturating_sub(2 * WINDOW)..at];
    let record = after_last(before, |byte| matches!(byte, b'}' | b']' | b'<'));
    let name = secret_name_in(record)?;
    let value = found.seen(bytes);
    let text = std::str::from_utf8(value).ok()?;
    let is_secret = value.len() >= 4
        && !is_placeholder(value)
        && !is_between(value)
        && !contains(value, "://")
        && !text.starts_with(['/', '~'])
        && !matches!(text, "true" | "false" | "null" | "string" | "none");
    (is_secret && is_secret_name(name)).then(|| found.span(bytes))
}

/// The name in the last `name: …` of a record; none if there is none.
fn secret_name_in(record: &[u8]) -> Option<&str> {
    let record = std::str::from_utf8(record).ok().or_else(|| {
        let valid = record
            .iter()
            .rposition(|byte| !byte.is_ascii())
            .map_or(0, |last| last + 1);
        std::str::from_utf8(&record[valid..]).ok()
    })?;
    let lower = record.to_ascii_lowercase();
    let field = NAME_FIELDS
        .iter()
        .chain(&["variable"])
        .filter_map(|field| lower.rfind(field).map(|at| at + field.len()))
        .max()?;
    let rest = record[field..]
        .trim_start_matches(|it: char| matches!(it, '"' | '\'' | '\\' | ':' | '=' | ' ' | '\t'));
    let end = rest
        .find(|it: char| !it.is_ascii_alphanumeric() && !matches!(it, '_' | '-' | '.'))
        .unwrap_or(rest.len());
    Some(&rest[..end])
}

fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let secret = SECRET_NAMES
        .iter()
        .find_map(|it| lower.rfind(it).map(|at| at + it.len()));
    let pass = || lower.ends_with("_pass") || lower.ends_with("-pass") || name.ends_with("Pass");
    match secret {
        Some(end) => !is_other_name(&lower.as_bytes()[end..]),
        None => pass(),
    }
}

/// `ENV DB_PASSWORD …` in a Dockerfile, `setx DB_PASSWORD …`: the name, a space, the value.
pub fn declared(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let name_end = run_max(bytes, body, 48, is_token_byte);
    let name = std::str::from_utf8(&bytes[body..name_end]).ok()?;
    let start = run_max(bytes, name_end, 8, |byte| {
        matches!(byte, b' ' | b'\t' | b'=')
    });
    let (start, ending) = opening_quote(bytes, start).unwrap_or((start, ValueEnding::Space));
    let value = &bytes[start..end_of_value(bytes, start, ending, WINDOW)];
    let secret = begins_a_word(bytes, at)
        && start > name_end
        && is_secret_name(name)
        && value.len() >= 4
        && !is_placeholder(value);
    secret.then(|| start..end_of_value(bytes, start, ending, usize::MAX))
}

/// `machine x`, `login y`, `password z` in a .netrc, each perhaps in a line of its own.
pub fn netrc(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let before = &bytes[at.saturating_sub(2 * WINDOW)..at];
    let start = run_max(bytes, body, 8, |byte| byte.is_ascii_whitespace());
    let end = end_of_value(bytes, start, ValueEnding::Space, WINDOW);
    let in_entry = (contains(before, "machine ") || contains(before, "default"))
        && (contains(before, "login ") || contains(before, "login\n"));
    let secret =
        in_entry && start > body && end - start >= 3 && !is_placeholder(&bytes[start..end]);
    secret.then(|| start..end_of_value(bytes, start, ValueEnding::Space, usize::MAX))
}

/// Twelve or more small words after `mnemonic` or `seed phrase`.
pub fn mnemonic(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let found = labelled(bytes, at, body)?;
    let end = run_max(bytes, found.start, 3 * WINDOW, |byte| {
        byte.is_ascii_lowercase() || byte == b' '
    });
    let words = bytes[found.start..end]
        .split(|&byte| byte == b' ')
        .filter(|word| (3..=8).contains(&word.len()));
    (words.count() >= 12).then_some(found.start..end)
}

/// Whether a value is a password, judged after a label that code does not use.
fn is_password(value: &[u8]) -> bool {
    let sign = |byte: &u8| b"!@#$%^&*+?~".contains(byte);
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    let digits = value.iter().any(u8::is_ascii_digit);
    value.len() >= 6
        && letters
        && (digits || value.iter().any(sign))
        && !value.iter().any(u8::is_ascii_whitespace)
        && !is_placeholder(value)
        && !is_wordy(value)
        && !contains(value, "://")
        && !matches!(value.first(), Some(b'/' | b'~' | b'-' | b'.' | b'('))
        && !value.iter().any(|byte| b"(){}[]<>".contains(byte))
}

/// Whether a value is a password even beside code: letters, digits and a sign that code does not
/// put into words.
fn is_strong(value: &[u8]) -> bool {
    let sign = |byte: &u8| b"!@#^%+?~$&*".contains(byte);
    is_password(value)
        && value.len() >= 8
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(sign)
        && !matches!(value.last(), Some(b'?' | b'*' | b'&'))
}

/// Whether an unquoted value is an expression.
fn is_code(bytes: &[u8], found: &Labelled, value: &[u8]) -> bool {
    let next = bytes.get(found.start + value.len());
    !found.quoted()
        && (matches!(next, Some(b'(' | b'[')) || contains(value, "&&") || contains(value, "=="))
}

/// Whether name and value fill a line, as in a properties file: `spring.datasource.password=…`.
fn is_own_line(bytes: &[u8], at: usize, found: &Labelled, value: &[u8]) -> bool {
    let before = after_last(&bytes[at.saturating_sub(WINDOW)..at], |byte| byte == b'\n');
    let is_name = before
        .iter()
        .all(|&byte| is_token_byte(byte) || b".+ \t>".contains(&byte));
    let end = &bytes[found.start + value.len()..];
    let ends = matches!(end, [] | [b'\n' | b'\r', ..]);
    is_name
        && ends
        && !found.quoted()
        && value.len() >= 8
        && !value.contains(&b'.')
        && bytes[..found.start].ends_with(b"=")
}

fn contains_word(bytes: &[u8], word: &str) -> bool {
    contains(&bytes.to_ascii_lowercase(), word)
}

pub fn is_uuid(value: &[u8]) -> bool {
    let dashes = [8, 13, 18, 23];
    value.len() == 36
        && value.iter().enumerate().all(|(at, &byte)| {
            if dashes.contains(&at) {
                byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}

/// Whether the value of a field is a secret, judged by the field's name.
pub fn is_secret_field(stage: Stage, name: &str, value: &str) -> bool {
    if value.starts_with("[redacted:") || value.starts_with(['/', '~']) {
        return false;
    }
    if assigned::is_secret_field(name, value.as_bytes()) {
        return true;
    }
    let is_name = || {
        is_secret_name(name)
            && (is_secret_value(value.as_bytes(), true) || is_strong(value.as_bytes()))
    };
    let lower = name.to_lowercase();
    let ends_with = |labels: &[&str]| {
        labels.iter().any(|it| {
            lower.strip_suffix(it).is_some_and(|before| {
                !it.is_ascii() || !before.ends_with(|it: char| it.is_ascii_alphabetic())
            })
        })
    };
    stage == Stage::Thorough
        && (is_name()
            || ends_with(PASSWORD_LABELS) && is_password(value.as_bytes())
            || ends_with(KEY_LABELS)
                && is_random(value.as_bytes())
                && !value.bytes().all(|it| it.is_ascii_hexdigit()))
}
