//! Takes secrets and private spans out of a text, before its first write to disk.
//!
//! A hook pays for this on every event, so there is nothing to construct: constant
//! tables over three bytes say which rules could begin here (mostly none), and a
//! small hand-written check decides. (The regex crate costs 4-5 ms to build its
//! automaton, several times the hook's whole life.) `redact` sees a field whole;
//! cutting comes after, so that no cut can hide half a secret from it.

use std::borrow::Cow;
use std::ops::Range;

/// A text without its secrets, and how many were taken out.
#[derive(Debug, PartialEq, Eq)]
pub struct Redacted<'a> {
    pub text: Cow<'a, str>,
    pub count: u32,
}

/// Replaces each secret by `[redacted:KIND]` and each private span by `[private]`.
#[must_use]
pub fn redact(text: &str) -> Redacted<'_> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut kept = 0;
    let mut count = 0;
    let mut at = 0;
    while let Some(&[a, b, c]) = bytes[at..].first_chunk() {
        let candidates = BEGINS.rules(a, b, c);
        if candidates == 0 {
            at += 1;
            continue;
        }
        let mut rules = RULES
            .iter()
            .enumerate()
            .filter(|(number, _)| candidates >> number & 1 == 1);
        let Some((span, label)) = rules.find_map(|(_, rule)| rule.find(bytes, at)) else {
            at += 1;
            continue;
        };
        // Every rule ends a span on ASCII or at the text's end, so both are
        // character boundaries.
        out.push_str(&text[kept..span.start]);
        out.push_str(label);
        kept = span.end;
        at = span.end;
        count += 1;
    }
    if count == 0 {
        return Redacted {
            text: Cow::Borrowed(text),
            count,
        };
    }
    out.push_str(&text[kept..]);
    Redacted {
        text: Cow::Owned(out),
        count,
    }
}

/// The value of a field whose name gives it away, taken out; none if it may stay.
#[must_use]
pub fn named(name: &str, value: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let telling = SECRET_NAMES.iter().any(|secret| name.contains(secret));
    let mixed = value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let one_word = value.len() >= 8 && value.bytes().all(|byte| byte.is_ascii_graphic());
    let clean = value.starts_with("[redacted:") || value.starts_with(['$', '{', '/']);
    (telling && mixed && one_word && !clean).then(|| "[redacted:value]".to_owned())
}

/// Names after which a value is a secret.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "private_key",
];

/// One kind of secret: how it begins, and a check that gives the span to replace.
struct Rule {
    begins: &'static [&'static str],
    /// Whether `begins` matches in any case (its words are given in lower case).
    any_case: bool,
    label: &'static str,
    /// From the whole text, where the match begins and where its beginning ends.
    check: fn(&[u8], usize, usize) -> Option<Range<usize>>,
}

impl Rule {
    fn find(&self, bytes: &[u8], at: usize) -> Option<(Range<usize>, &'static str)> {
        let rest = &bytes[at..];
        let begin = self.begins.iter().find(|begin| {
            let head = rest.get(..begin.len());
            head.is_some_and(|head| {
                if self.any_case {
                    head.eq_ignore_ascii_case(begin.as_bytes())
                } else {
                    head == begin.as_bytes()
                }
            })
        })?;
        (self.check)(bytes, at, at + begin.len()).map(|span| (span, self.label))
    }
}

const RULES: &[Rule] = &[
    Rule {
        begins: &["<private"],
        any_case: true,
        label: "[private]",
        check: private_span,
    },
    Rule {
        begins: &["-----BEGIN "],
        any_case: false,
        label: "[redacted:private-key]",
        check: private_key_block,
    },
    Rule {
        begins: &["sk-ant-"],
        any_case: false,
        label: "[redacted:anthropic-key]",
        check: |bytes, at, body| token(bytes, at, body, 16),
    },
    Rule {
        begins: &["sk-proj-", "sk-svcacct-", "sk-or-v1-", "sk-"],
        any_case: false,
        label: "[redacted:api-key]",
        check: mixed_token,
    },
    Rule {
        begins: &["sk_live_", "rk_live_", "sk_test_", "rk_test_"],
        any_case: false,
        label: "[redacted:stripe-key]",
        check: |bytes, at, body| token(bytes, at, body, 16),
    },
    Rule {
        begins: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        any_case: false,
        label: "[redacted:github-token]",
        check: |bytes, at, body| token(bytes, at, body, 30),
    },
    Rule {
        begins: &["glpat-"],
        any_case: false,
        label: "[redacted:gitlab-token]",
        check: |bytes, at, body| token(bytes, at, body, 20),
    },
    Rule {
        begins: &["AKIA", "ASIA"],
        any_case: false,
        label: "[redacted:aws-key-id]",
        check: aws_key_id,
    },
    Rule {
        begins: &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-"],
        any_case: false,
        label: "[redacted:slack-token]",
        check: |bytes, at, body| token(bytes, at, body, 16),
    },
    Rule {
        begins: &["AIza"],
        any_case: false,
        label: "[redacted:google-key]",
        check: |bytes, at, body| token(bytes, at, body, 35),
    },
    Rule {
        begins: &["npm_"],
        any_case: false,
        label: "[redacted:npm-token]",
        check: |bytes, at, body| token(bytes, at, body, 36),
    },
    Rule {
        begins: &["pypi-"],
        any_case: false,
        label: "[redacted:pypi-token]",
        check: |bytes, at, body| token(bytes, at, body, 50),
    },
    Rule {
        begins: &["hf_"],
        any_case: false,
        label: "[redacted:huggingface-token]",
        check: |bytes, at, body| token(bytes, at, body, 30),
    },
    Rule {
        begins: &["eyJ"],
        any_case: false,
        label: "[redacted:jwt]",
        check: jwt,
    },
    Rule {
        begins: &["://"],
        any_case: false,
        label: "[redacted:password]",
        check: url_password,
    },
    Rule {
        begins: &["bearer "],
        any_case: true,
        label: "[redacted:bearer-token]",
        check: bearer,
    },
    Rule {
        begins: SECRET_NAMES,
        any_case: true,
        label: "[redacted:value]",
        check: assigned_value,
    },
];

/// For each of the first three bytes of a beginning, which rules allow it there: a
/// bit per rule. 3 KB, made at compile time.
struct Begins([[u32; 256]; 3]);

static BEGINS: Begins = Begins::new();

impl Begins {
    const fn new() -> Begins {
        let mut tables = [[0; 256]; 3];
        let mut rule = 0;
        while rule < RULES.len() {
            let mut begin = 0;
            while begin < RULES[rule].begins.len() {
                let word = RULES[rule].begins[begin].as_bytes();
                let mut at = 0;
                while at < tables.len() {
                    tables[at][word[at] as usize] |= 1 << rule;
                    if RULES[rule].any_case {
                        tables[at][word[at].to_ascii_uppercase() as usize] |= 1 << rule;
                    }
                    at += 1;
                }
                begin += 1;
            }
            rule += 1;
        }
        Begins(tables)
    }

    /// The rules that a text with these bytes could be for, a bit each.
    #[inline]
    fn rules(&self, a: u8, b: u8, c: u8) -> u32 {
        let [first, second, third] = &self.0;
        first[usize::from(a)] & second[usize::from(b)] & third[usize::from(c)]
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// A rule's word must not begin inside another word (`task-…` is no `sk-` key).
fn begins_a_word(bytes: &[u8], at: usize) -> bool {
    at == 0 || !bytes[at - 1].is_ascii_alphanumeric()
}

fn run(bytes: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    bytes[from..]
        .iter()
        .position(|&byte| !fits(byte))
        .map_or(bytes.len(), |length| from + length)
}

fn token(bytes: &[u8], at: usize, body: usize, least: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, is_token_byte);
    (begins_a_word(bytes, at) && end - body >= least).then_some(at..end)
}

/// `sk-` also begins CSS classes and slugs: a key mixes letters and digits.
fn mixed_token(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let span = token(bytes, at, body, 20)?;
    let body = &bytes[body..span.end];
    let mixed = body.iter().any(u8::is_ascii_digit) && body.iter().any(u8::is_ascii_alphabetic);
    mixed.then_some(span)
}

fn aws_key_id(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit()
    });
    (begins_a_word(bytes, at) && end - body == 16).then_some(at..end)
}

fn jwt(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let first = run(bytes, body, is_token_byte);
    if !begins_a_word(bytes, at) || bytes.get(first) != Some(&b'.') || first - at < 10 {
        return None;
    }
    let second = run(bytes, first + 1, is_token_byte);
    if second - first < 10 {
        return None;
    }
    let end = if bytes.get(second) == Some(&b'.') {
        run(bytes, second + 1, is_token_byte)
    } else {
        second
    };
    Some(at..end)
}

/// `scheme://user:PASSWORD@host`: only the password goes.
fn url_password(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let authority_end = run(bytes, body, |byte| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>')
    });
    let authority = &bytes[body..authority_end];
    // Plain loops: the memchr crate first asks the processor what it can do, which takes
    // longer than these few bytes (see the hook's `stdin`).
    let at_sign = authority.iter().rposition(|&byte| byte == b'@')?;
    let colon = authority[..at_sign].iter().position(|&byte| byte == b':')?;
    let password = &authority[colon + 1..at_sign];
    // `${PASSWORD}` and `{password}` name a secret without being one.
    let is_name = password.is_empty() || matches!(password[0], b'$' | b'{' | b'[');
    (!is_name).then_some(body + colon + 1..body + at_sign)
}

fn bearer(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, |byte| {
        is_token_byte(byte) || b".+/=~".contains(&byte)
    });
    (end - body >= 20).then_some(body..end)
}

/// `password = "…"`, `"api_key": "…"`, `DB_PASSWORD=…`: only the value goes.
fn assigned_value(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'\\');
    let mut at = run(bytes, body, quote);
    at = run(bytes, at, |byte| byte == b' ');
    if !matches!(bytes.get(at), Some(b'=' | b':')) {
        return None;
    }
    at = run(bytes, at + 1, |byte| byte == b' ');
    let start = run(bytes, at, quote);
    let quoted = start > at;
    let end = run(bytes, start, |byte| {
        byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'"' | b'\'' | b'\\' | b'`' | b',' | b';' | b')' | b'(' | b'<' | b'>'
            )
    });
    let value = &bytes[start..end];
    // Code talks about secrets all the time (`token: String`, `password = form.password`);
    // a value has digits and letters, and no call or path around it.
    let mixed = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    let long = value.len() >= if quoted { 8 } else { 12 };
    let is_name = matches!(value.first(), Some(b'$' | b'{' | b'[' | b'&'));
    let is_code = !quoted && (value.contains(&b'.') || bytes.get(end) == Some(&b'('));
    (mixed && long && !is_name && !is_code).then_some(start..end)
}

/// From `<private…>` to its `</private>`, nested ones included; unclosed, to the end.
fn private_span(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    if !matches!(
        bytes.get(body),
        None | Some(b'>' | b' ' | b'\n' | b'\t' | b'/')
    ) {
        return None;
    }
    let mut depth = 1_u32;
    let mut position = body;
    while let Some(next) = memchr::memchr(b'<', &bytes[position..]) {
        position += next;
        let rest = &bytes[position..];
        let starts = |word: &str| {
            rest.get(..word.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
        };
        if starts("</private>") {
            depth -= 1;
            position += "</private>".len();
            if depth == 0 {
                return Some(at..position);
            }
        } else {
            depth += u32::from(starts("<private>"));
            position += 1;
        }
    }
    Some(at..bytes.len())
}

fn private_key_block(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let label = &bytes[body..bytes.len().min(body + 40)];
    memchr::memmem::find(label, b"PRIVATE KEY")?;
    let Some(end) = memchr::memmem::find(&bytes[body..], b"-----END ") else {
        return Some(at..bytes.len());
    };
    let end = body + end + "-----END ".len();
    let close = memchr::memmem::find(&bytes[end..], b"-----").map_or(bytes.len(), |n| end + n + 5);
    Some(at..close)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Built at run time, so that no scanner takes this file for a leak.
    fn body(length: usize) -> String {
        "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0"
            .chars()
            .cycle()
            .take(length)
            .collect()
    }

    #[test]
    fn each_common_secret_is_taken_out_and_its_surroundings_stay() {
        let upper = body(16).to_uppercase();
        let secrets = [
            (format!("sk-ant-api03-{}", body(40)), "anthropic-key"),
            (format!("sk-proj-{}", body(48)), "api-key"),
            (format!("sk_live_{}", body(24)), "stripe-key"),
            (format!("ghp_{}", body(36)), "github-token"),
            (format!("github_pat_{}", body(60)), "github-token"),
            (format!("glpat-{}", body(20)), "gitlab-token"),
            (format!("AKIA{upper}"), "aws-key-id"),
            (format!("xoxb-{}", body(30)), "slack-token"),
            (format!("AIza{}", body(35)), "google-key"),
            (format!("npm_{}", body(36)), "npm-token"),
            (format!("pypi-{}", body(60)), "pypi-token"),
            (format!("hf_{}", body(34)), "huggingface-token"),
            (
                format!("eyJ{}.eyJ{}.{}", body(20), body(30), body(43)),
                "jwt",
            ),
        ];
        for (secret, label) in secrets {
            let text = format!("before é {secret} after");
            let redacted = redact(&text);
            assert_eq!(redacted.text, format!("before é [redacted:{label}] after"));
            assert_eq!(redacted.count, 1);
        }
    }

    #[test]
    fn only_the_value_goes_where_a_name_gives_it_away() {
        let secret = body(14);
        let cases = [
            (
                format!("DB_PASSWORD={secret}\nX=1"),
                "DB_PASSWORD=[redacted:value]\nX=1",
            ),
            (
                format!("{{\"api_key\": \"{secret}\"}}"),
                "{\"api_key\": \"[redacted:value]\"}",
            ),
            (
                format!("\\\"secret\\\":\\\"{secret}\\\""),
                "\\\"secret\\\":\\\"[redacted:value]\\\"",
            ),
            (
                format!("postgres://app:{secret}@db/x"),
                "postgres://app:[redacted:password]@db/x",
            ),
            (
                format!("Authorization: Bearer {secret}{secret}"),
                "Authorization: Bearer [redacted:bearer-token]",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(redact(&text).text, expected);
        }
    }

    #[test]
    fn code_about_secrets_is_left_alone() {
        for text in [
            "let token = parser.next_token2();",
            "password: String,",
            "if (secret === undefined) return;",
            "token: &'a str, api_key: Option<String>",
            "class=\"task-list sk-navbar-item-container-wide\"",
            "postgres://app:${DB_PASSWORD}@db/x",
            "https://example.com/a:b@c",
            "let x = eyJ.foo; AKIAX",
            "-----BEGIN CERTIFICATE-----",
            "git@github.com:acme/pay.git",
        ] {
            assert_eq!(redact(text).text, text);
            assert_eq!(redact(text).count, 0);
        }
    }

    #[test]
    fn private_spans_go_nested_unclosed_and_in_any_case() {
        for (text, expected) in [
            ("a <private>x</private> b", "a [private] b"),
            (
                "a <PRIVATE>x <private>y</private> z</Private> b",
                "a [private] b",
            ),
            ("a <private>x", "a [private]"),
            ("a <private>é<b>", "a [private]"),
            ("a <privateer> b", "a <privateer> b"),
        ] {
            assert_eq!(redact(text).text, expected);
        }
    }

    #[test]
    fn a_private_key_goes_whole_even_when_its_end_is_missing() {
        let key = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n", body(70));
        let whole = format!("x {key}-----END OPENSSH PRIVATE KEY----- y");
        assert_eq!(redact(&whole).text, "x [redacted:private-key] y");
        assert_eq!(redact(&format!("x {key}")).text, "x [redacted:private-key]");
    }
}
