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
    "password", "passwd", "passphrase", "passcode", "requirepass", "masterauth", "pwd", "psk", "pw",
    "passwort", "kennwort", "zugangscode", "losungswort", // German
    "mot de passe", "mot_de_passe", "motdepasse", "mdp", "jeton", "phrase secrète", // French
    "contraseña", "contrasena", "contrasenya", "clave", // Spanish, Catalan
    "senha", "palavra-passe", "chave", // Portuguese
    "parola d'ordine", "parola", // Italian, Turkish, Romanian
    "wachtwoord", "lösenord", "losenord", "adgangskode", "passord", "salasana", // Dutch, Nordic
    "hasło", "haslo", "heslo", "jelszó", "jelszo", "lozinka", "şifre", "sifre", // Polish, Czech, Hungarian, Croatian, Turkish
    "парол", "Парол", "ПАРОЛ", "токен", "Токен", "секрет", "Секрет", // Russian
    "密码", "密碼", "口令", "令牌", "密钥", "密鑰", "秘钥", // Chinese
    "パスワード", "パスフレーズ", "暗証番号", "トークン", "秘密鍵", // Japanese
    "비밀번호", "암호", "토큰", // Korean
    "mật khẩu", "κωδικός", "كلمة المرور", "סיסמה", "पासवर्ड", "รหัสผ่าน",
    "pass",
];

/// Words for a key: only a value that looks random counts after them.
#[rustfmt::skip] // A list is read in a line.
pub const KEY_LABELS: &[&str] = &[
    "secret", "token", "credential", "key", "auth", "pepper", "salt", "schlüssel", "clé", "clef",
    "llave", "clave", "chave", "chiave", "sleutel", "klucz", "ключ", "Ключ", "キー", "키",
];

/// Parts of a name that make its value something else than a secret: `token_hash`, `key_id`.
const OTHER_NAMES: &str = "hash sha md5 digest checksum integrity id ids uuid url uri name file path type count size \
    length version public fingerprint field column index label prefix regex pattern format policy expiry expires ttl \
    encryption algorithm method required reset strength manager url endpoint map code cache word words board stroke";

/// Signs that separate a label from its value, and words that do.
#[rustfmt::skip] // A list is read in a line.
const SEPARATORS: &[&str] = &[
    "=>", "->", ":=", "?=", "=", ":", "：", "＝", "|", "→", "??", "||", "%3D", "'s ",
    "is ", "was ", "to ", "ist ", "lautet ", "est ", "es ", "é ", "è ", "равен ", "это ", "— ", "– ", "- ",
    "是", "为", "為", "は", "는 ",
];

/// A value after a label.
struct Labelled {
    start: usize,
    ending: ValueEnding,
    /// The part of the name after the label: `_base` in `secret_key_base`.
    rest_of_name: Range<usize>,
    link: Link,
}

/// How a value follows its label.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    /// After a sign or a word: `password: …`.
    Direct,
    /// After more words and then a sign or a word: `Kennwort für den Server lautet: …`.
    Remote,
    /// After a space: `mit dem Passwort …`.
    Space,
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
    let encoded = at > 2 && bytes[at - 3] == b'%';
    let inside_word = |byte: u8| byte.is_ascii_alphabetic() && !encoded;
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
    // The rest of a name, or of a word with endings: `паролем`.
    let name = run_max(bytes, name_end, 28, |byte| {
        is_token_byte(byte) && is_ascii
            || !is_ascii && (0xd0..=0xd1).contains(&bytes[at]) && byte >= 0x80
    });
    let mut position = run_max(bytes, name, 5, |byte| b"\"'`\\]*_".contains(&byte));
    if bytes[name..].starts_with(b"'s ") {
        position = name;
    }
    position = run_max(bytes, position, 1, |byte| byte == b'?');
    let closed = position > name && bytes[position - 1] != b'*';
    let gap = blanks(bytes, position);
    let column = gap > position + 1 || bytes.get(position) == Some(&b'\t');
    let spaced = gap > position;
    position = gap;
    if bytes.get(position) == Some(&b'(') {
        let remark = run_max(bytes, position, 32, |byte| byte != b')' && byte != b'\n');
        if bytes.get(remark) == Some(&b')') {
            position = run_max(bytes, remark + 1, 8, |byte| matches!(byte, b' ' | b'*'));
        }
    }
    let rest = &bytes[position..];
    if rest.starts_with(b"==") || rest.starts_with(b"::") || rest.starts_with(b"=~") {
        return None;
    }
    let (after, link) = match separator(rest) {
        Some(length) => (position + length, Link::Direct),
        // `define('DB_PASSWORD', '…')`, `["--password", "…"]`.
        None if closed && rest.first() == Some(&b',') => {
            let quote = blanks(bytes, position + 1);
            opening_quote(bytes, quote)?;
            (position + 1, Link::Direct)
        }
        None if column => (position, Link::Direct),
        None if spaced => match remote_separator(bytes, position) {
            Some(after) if is_other_name(&bytes[position..after]) => return None,
            Some(after) => (after, Link::Remote),
            None => (position, Link::Space),
        },
        None => return None,
    };
    let start = run_max(bytes, blanks(bytes, after), 2, |byte| byte == b'*');
    let mut start = blanks(bytes, start);
    if bytes[start..].starts_with(b"$'") {
        start += 1;
    }
    let (start, ending) = opening_quote(bytes, start).unwrap_or((start, ValueEnding::Space));
    Some(Labelled {
        start,
        ending,
        rest_of_name: name_end..name,
        link,
    })
}

/// The position after spaces, tabs, and line ends that a backslash continues.
fn blanks(bytes: &[u8], at: usize) -> usize {
    let mut end = run_max(bytes, at, 32, |byte| matches!(byte, b' ' | b'\t'));
    if bytes[end..].starts_with(b"\\\n") {
        end = run_max(bytes, end + 2, 32, |byte| matches!(byte, b' ' | b'\t'));
    }
    end
}

/// The length of the separator that a text begins with.
fn separator(rest: &[u8]) -> Option<usize> {
    let found = SEPARATORS.iter().find(|it| rest.starts_with(it.as_bytes()));
    found.map(|it| it.len())
}

/// The position after a separator further on in the sentence; none if other signs come first.
fn remote_separator(bytes: &[u8], at: usize) -> Option<usize> {
    let end = run_max(bytes, at, 56, |byte| {
        byte.is_ascii_alphanumeric() || b" '-?[].".contains(&byte) || byte >= 0x80
    });
    if bytes.get(end) == Some(&b':') {
        return Some(end + 1);
    }
    let words = &bytes[at..end];
    let starts = (1..words.len()).filter(|&start| words[start - 1] == b' ');
    starts
        .filter_map(|start| {
            let length = separator(&words[start..])?;
            (words[start] != b'-').then_some(at + start + length)
        })
        .next()
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
    let label = &bytes[at..body];
    let is_it = |it: &&&str| label.eq_ignore_ascii_case(it.as_bytes());
    let in_code = [
        "password",
        "passwd",
        "pwd",
        "pass",
        "passphrase",
        "psk",
        "pw",
    ];
    let in_code = in_code.iter().find(is_it).is_some();
    if is_other_name(&bytes[found.rest_of_name.clone()])
        || found.quoted() && is_between(value)
        || in_code && !is_strong(value) && assigned::is_complaint(bytes, at)
        || is_code(bytes, &found, value)
    {
        return None;
    }
    let phrase = label.eq_ignore_ascii_case(b"passphrase")
        && (is_wordy(value) || found.quoted() && value.split(|&it| it == b' ').count() > 2);
    let digits = value.iter().filter(|it| it.is_ascii_digit()).count();
    let secret = phrase
        || is_diceware(value)
        || is_option(bytes, at) && value.len() >= 4 && is_password(value)
        || is_app_password(value)
        || match found.link {
            Link::Direct if in_code => {
                is_strong(value)
                    || is_own_line(bytes, at, &found, value) && is_password(value)
                    || is_password(value) && value.len() >= 8 && digits >= 2 && !is_name(value)
            }
            Link::Direct => is_password(value) || !label.is_ascii() && digits >= 6,
            Link::Remote | Link::Space if in_code => {
                is_strong(value)
                    || is_password(value) && digits >= 2 && has_both_cases(value) && !is_name(value)
            }
            Link::Remote => is_password(value) && digits >= 2,
            Link::Space => is_password(value) && digits >= 2,
        };
    secret.then(|| found.span(bytes))
}

/// Whether a label is the name of an option: `--db-password`, `-Dgpg.passphrase=`.
fn is_option(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(32)..at];
    let word = after_last(before, |byte| {
        byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b',')
    });
    word.starts_with(b"--") || word.starts_with(b"-D") || word.starts_with(b"/")
}

/// Several words and a number, as programs make passwords that people can read.
fn is_diceware(value: &[u8]) -> bool {
    let mut parts = value.rsplit(|&byte| byte == b'-');
    let number = parts
        .next()
        .is_some_and(|it| it.len() >= 2 && it.iter().all(u8::is_ascii_digit));
    let (mut count, mut plain) = (0, true);
    for word in parts {
        count += 1;
        plain &= word.len() >= 4 && word.iter().all(u8::is_ascii_lowercase);
    }
    number && plain && count >= 4
}

/// Four groups of four small letters, as Apple makes passwords for single programs.
fn is_app_password(value: &[u8]) -> bool {
    let groups = || value.split(|&byte| byte == b'-');
    groups().count() == 4
        && groups().all(|it| it.len() == 4 && it.iter().all(u8::is_ascii_lowercase))
}

fn has_both_cases(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase)
}

/// Whether a value with digits is the name of something: `sha256`, `field.base64`, `user2.name`.
fn is_name(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let ends_in = |word: &&str| lower.ends_with(word.as_bytes());
    let known = [
        "sha256", "sha512", "sha1", "md5", "base64", "base32", "utf8", "utf16", "x509", "x64",
        "argon2",
    ];
    let last = value.last().is_some_and(u8::is_ascii_digit)
        || value.iter().any(|byte| b"!@#$%^*+?~".contains(byte));
    let joined = value.len() < 24 && value.iter().any(|byte| b"._".contains(byte));
    known.iter().any(ends_in) || !last && joined
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
    let whole = found.seen(bytes);
    if is_code(bytes, &found, whole) {
        return None;
    }
    // In a path or a URL the value ends at the next sign.
    let part = whole.split(|byte| b"/&?%.,".contains(byte)).next()?;
    let name_is_bare = found.rest_of_name.is_empty() && name.is_empty();
    let in_sentence = found.link != Link::Direct;
    let secret = |value: &[u8]| {
        let hex = value.iter().all(u8::is_ascii_hexdigit);
        !(hex && found.link == Link::Space)
            && is_key_value(value, name_is_bare && !in_sentence, found.quoted())
    };
    if secret(whole) {
        return Some(found.span(bytes));
    }
    let is_variable =
        bytes[at..body].iter().all(u8::is_ascii_uppercase) && is_uuid(whole) && !name.is_empty();
    let is_salt = is_diceware(whole)
        || found.quoted() && whole.len() >= 32 && signs(whole) >= 4 && is_mixed(whole);
    if is_variable || is_salt || is_option(bytes, at) && is_uuid(whole) {
        return Some(found.span(bytes));
    }
    (part.len() < whole.len() && found.link == Link::Direct && secret(part))
        .then(|| found.start..found.start + part.len())
}

/// Whether a value after a word for a key looks random.
fn is_key_value(value: &[u8], name_is_bare: bool, quoted: bool) -> bool {
    let hex = value.iter().all(u8::is_ascii_hexdigit);
    let fits = |&byte: &u8| is_base64_byte(byte) || is_token_byte(byte) || byte == b'~';
    value.len() >= if hex { 32 } else { 20 }
        && value.iter().all(fits)
        && is_mixed(value)
        && is_scrambled(value)
        && !is_uuid(value)
        && !is_wordy(value)
        // A hash is hexadecimal and has one of these lengths; beside a bare `key` it is one.
        && !(hex && name_is_bare && !quoted && matches!(value.len(), 32 | 40 | 64 | 128))
}

fn signs(value: &[u8]) -> usize {
    value
        .iter()
        .filter(|byte| byte.is_ascii_punctuation())
        .count()
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
    let (start, ending) = opening_quote(bytes, quote).filter(|_| bytes[quote] != b'`')?;
    let end = end_of_value(bytes, start, ending, WINDOW);
    let value = &bytes[start..end];
    let before = bytes[at.saturating_sub(WINDOW)..at].to_ascii_lowercase();
    let known = |words: &[&str]| words.iter().any(|word| contains(&before, word));
    let is_statement = match bytes[at].to_ascii_lowercase() {
        b'i' if bytes[quote] == b'\'' => true,
        b'i' => known(&["user", "role", "alter ", "create ", "grant "]),
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
    let is_element = bytes[at] == b'<';
    let found = if is_element {
        let end = run_max(bytes, body, WINDOW, |byte| byte != b'<' && byte != b'\n');
        let ending = ValueEnding::Tag;
        let (start, rest_of_name) = (body, body..body);
        bytes[end..].starts_with(b"</").then_some(Labelled {
            start,
            ending,
            rest_of_name,
            link: Link::Direct,
        })?
    } else {
        labelled(bytes, at, body)?
    };
    let is_option = is_option(bytes, at);
    if !found.rest_of_name.is_empty()
        || found.link != Link::Direct && !(is_option && found.link == Link::Space)
    {
        return None;
    }
    let before = &bytes[at.saturating_sub(2 * WINDOW)..at];
    let record = after_last(before, |byte| {
        matches!(byte, b'}' | b']') || byte == b'<' && !is_element
    });
    let value = found.seen(bytes);
    let after = &bytes[bytes.len().min(found.start + value.len())..];
    let after = &after[..after.len().min(WINDOW)];
    let until = after
        .iter()
        .position(|byte| matches!(byte, b'}' | b'\n'))
        .unwrap_or(after.len());
    let name = [record, &after[..until]].into_iter().find_map(name_in)?;
    let text = std::str::from_utf8(value).ok()?;
    let is_secret = value.len() >= 4
        && (found.quoted() || is_element || is_mixed(value))
        && !is_placeholder(value)
        && !is_between(value)
        && !contains(value, "://")
        && !text.starts_with(['/', '~', '('])
        && !matches!(text, "true" | "false" | "null" | "string" | "none" | "None");
    let is_key = || name.to_ascii_lowercase().ends_with("key") && is_key_value(value, true, true);
    (is_secret && (is_secret_name(name) || is_key())).then(|| found.span(bytes))
}

/// The name in the last `name: …` of a record; none if there is none.
fn name_in(record: &[u8]) -> Option<&str> {
    let valid = record.iter().rposition(|byte| !byte.is_ascii());
    let record = std::str::from_utf8(&record[valid.map_or(0, |last| last + 1)..]).ok()?;
    let lower = record.to_ascii_lowercase();
    let ends = |field: &&str| {
        let begins = |&(at, _): &(usize, &str)| {
            !lower[..at].ends_with(|it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '/'))
        };
        let closes = |&(at, it): &(usize, &str)| {
            lower[at + it.len()..].starts_with(['"', '\'', '\\', ':', '=', ' ', '>'])
        };
        let places = lower.match_indices(field).filter(begins).filter(closes);
        places.map(|(at, it)| at + it.len()).last()
    };
    let field = NAME_FIELDS.iter().filter_map(ends).max()?;
    let rest = record[field..].trim_start_matches(['"', '\'', '\\', ':', '=', ' ', '\t', '>']);
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | '/');
    Some(&rest[..rest.find(|it| !fits(it)).unwrap_or(rest.len())])
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
    let quoted = matches!(ending, ValueEnding::Quote(..));
    let secret = begins_a_word(bytes, at)
        && (quoted || bytes[at] != b'#')
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
pub fn is_password(value: &[u8]) -> bool {
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

/// Whether a word looks like a password where one is expected, among other words.
pub fn is_password_word(value: &[u8]) -> bool {
    let digits = value.iter().filter(|it| it.is_ascii_digit()).count();
    let scrambled = value.len() >= 16 && is_scrambled(value);
    value.len() >= 8
        && value.len() < WINDOW
        && is_password(value)
        && !is_uuid(value)
        && !is_name(value)
        && (digits >= 2 && (has_both_cases(value) || scrambled) || is_strong(value))
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

/// Whether an unquoted value is an expression or a type.
fn is_code(bytes: &[u8], found: &Labelled, value: &[u8]) -> bool {
    let next = &bytes[found.start + value.len()..];
    let called = matches!(next.first(), Some(b'(' | b'[' | b'{')) || next.starts_with(b" = ");
    !found.quoted() && (called || contains(value, "&&") || contains(value, "=="))
}

/// Whether name and value fill a line, as in a properties file: `spring.datasource.password=…`.
fn is_own_line(bytes: &[u8], at: usize, found: &Labelled, value: &[u8]) -> bool {
    let before = after_last(&bytes[at.saturating_sub(WINDOW)..at], |byte| byte == b'\n');
    let is_name = before
        .iter()
        .all(|&byte| is_token_byte(byte) || b".+ \t>".contains(&byte));
    let end = &bytes[found.start + value.len()..];
    let ends = matches!(end, [] | [b'\n' | b'\r', ..]);
    is_name && ends && !found.quoted() && value.len() >= 8
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
