//! Takes secrets and private spans out of a text, in two stages.
//!
//! The fast stage runs in every hook on every event, before its first write to disk. Nothing is built at run
//! time: constant tables over the next three bytes give the rules that could match here (mostly
//! none), and a small hand-written check decides (`rules`, `assigned`). The regex crate takes 4-5 ms
//! to build its automaton, several times as long as the whole hook. A field is redacted before it is
//! cut, so that no cut can split a secret and hide it.
//!
//! The thorough stage runs in the worker and in commands, before anything is stored in memory.db, written to a
//! note or sent to a model. It is the fast stage followed by a second, larger table (`thorough`).
//! Ids and names that tell sessions and projects apart are short, so hooks use it for those, too.
//!
//! `value` redacts JSON values and whole events with either stage. `files` knows the files whose
//! whole content is secret.

mod assigned;
mod files;
mod labels;
mod rules;
mod thorough;
mod value;

use std::borrow::Cow;
use std::ops::Range;

pub use files::{is_secret_file, shows_secrets, without_values};
use rules::{FAST, RuleSet};
use thorough::THOROUGH;
pub use value::{ValueRedactor, event};

/// A text without its secrets, and the number of replaced spans.
#[derive(Debug, PartialEq, Eq)]
pub struct Redacted<'a> {
    pub text: Cow<'a, str>,
    pub count: u32,
}

/// How carefully secrets are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Fast,
    Thorough,
}

impl Stage {
    fn rule_sets(self) -> &'static [&'static RuleSet] {
        static SETS: [&RuleSet; 2] = [&FAST, &THOROUGH];
        match self {
            Stage::Fast => &SETS[..1],
            Stage::Thorough => &SETS,
        }
    }

    /// Replaces each secret by `[redacted:KIND]` and each private span by `[private]`.
    pub fn redact(self, text: &str) -> Redacted<'_> {
        let redacted = self.redact_as_is(text);
        // Colours may stand between a name and its value, or before a token. They are taken out only
        // if there is a secret to be found without them.
        let Some(plain) = self.without_colours(&redacted.text) else {
            return redacted;
        };
        let again = self.redact_as_is(&plain);
        match again.count {
            0 => redacted,
            count => Redacted {
                count: redacted.count + count,
                text: Cow::Owned(again.text.into_owned()),
            },
        }
    }

    fn redact_as_is(self, text: &str) -> Redacted<'_> {
        let mut redacted = Redacted {
            text: Cow::Borrowed(text),
            count: 0,
        };
        for rules in self.rule_sets() {
            let spans = spans(rules, &redacted.text);
            if !spans.is_empty() {
                redacted.count += spans.len() as u32;
                redacted.text = Cow::Owned(replaced(&redacted.text, 0, &spans));
            }
        }
        redacted
    }

    /// Redacts texts that are parts of one text, such as its lines: a private key is recognised
    /// only as a whole. Returns the number of replaced spans.
    fn redact_parts(self, parts: &mut [&mut String]) -> u32 {
        // The lines of a change begin with a sign that is not part of the text.
        let has_sign =
            |part: &&mut String| part.is_empty() || part.starts_with(['+', '-', ' ', '\\']);
        let sign = usize::from(parts.iter().all(has_sign));
        let mut count = 0;
        for rules in self.rule_sets() {
            let mut whole = String::with_capacity(parts.iter().map(|it| it.len() + 1).sum());
            for part in parts.iter() {
                whole.push_str(part.get(sign..).unwrap_or_default());
                whole.push('\n');
            }
            let spans = spans(rules, &whole);
            count += spans.len() as u32;
            if !spans.is_empty() {
                let mut start = 0;
                for part in parts.iter_mut() {
                    let end = start + part.len().saturating_sub(sign);
                    let clean = replaced(&whole[..end], start, &spans);
                    part.truncate(sign);
                    part.push_str(&clean);
                    start = end + 1;
                }
            }
        }
        for part in parts.iter_mut() {
            if self.without_colours(part).is_some() {
                let redacted = self.redact(part);
                count += redacted.count;
                **part = redacted.text.into_owned();
            }
        }
        count
    }

    /// The text without the control sequences of a terminal; none if it has none. In the thorough
    /// stage also without sequences that were written out (`\u001b[1m`) and invisible characters.
    fn without_colours(self, text: &str) -> Option<String> {
        let has_written_out = || {
            let marks = ["\\u001b[", "\\x1b[", "\\033[", "\\e["];
            self == Stage::Thorough
                && (text.contains('\\') && marks.iter().any(|mark| text.contains(mark))
                    || !text.is_ascii() && text.contains(is_invisible))
        };
        if !text.as_bytes().contains(&ESCAPE) && !has_written_out() {
            return None;
        }
        let mut plain = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let length = control_sequence(rest.as_bytes(), self);
            if length == 0 && !(self == Stage::Thorough && is_invisible(next)) {
                plain.push(next);
            }
            rest = &rest[rest.ceil_char_boundary(length.max(next.len_utf8()))..];
        }
        Some(plain)
    }
}

/// The fast stage.
pub fn fast(text: &str) -> Redacted<'_> {
    Stage::Fast.redact(text)
}

/// The thorough stage.
pub fn thorough(text: &str) -> Redacted<'_> {
    Stage::Thorough.redact(text)
}

/// Redacts a name that identifies something: a session, a project. Two names that
/// differ only in a secret stay two names, by a hash of the whole.
pub fn identifier(name: String) -> String {
    let redacted = thorough(&name);
    if redacted.count == 0 {
        return name;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{}-{}", redacted.text, &hash[..12])
}

/// The spans of a text to replace, in order, each with the label of its kind.
fn spans(rules: &RuleSet, text: &str) -> Vec<(Range<usize>, &'static str)> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    // The end of the last span.
    let mut done = 0;
    let mut at = 0;
    while let Some(&[a, b, c]) = bytes[at..].first_chunk() {
        let candidates = rules.candidates(a, b, c);
        if candidates == 0 {
            at += 1;
            continue;
        }
        // A match that starts inside the last span is part of it.
        let found = rules.find(candidates, bytes, at);
        let Some((span, label)) = found.filter(|(span, _)| span.start >= done) else {
            at += 1;
            continue;
        };
        let span = text.floor_char_boundary(span.start)..text.ceil_char_boundary(span.end);
        done = span.end;
        at = span.end.max(at + 1);
        spans.push((span, label));
    }
    spans
}

/// The text from `start` on, with these spans replaced. A span that begins before `start` is only
/// left out: its replacement stands where it begins.
fn replaced(text: &str, start: usize, spans: &[(Range<usize>, &'static str)]) -> String {
    let mut out = String::with_capacity(text.len() - start);
    let mut copied = start;
    let ended_before = spans.partition_point(|(span, _)| span.end <= start);
    for (span, label) in &spans[ended_before..] {
        if span.start >= text.len() {
            break;
        }
        if span.start >= start {
            out.push_str(&text[copied..span.start]);
            if label.starts_with('[') {
                out.push_str(label);
            } else {
                out.extend(["[redacted:", label, "]"]);
            }
        }
        copied = span.end.min(text.len());
    }
    out.push_str(&text[copied..]);
    out
}

const ESCAPE: u8 = 0x1b;

/// The length of the terminal's control sequence that a text begins with; 0 if it begins with none.
fn control_sequence(bytes: &[u8], stage: Stage) -> usize {
    let escapes: &[&[u8]] = match stage {
        Stage::Fast => &[&[ESCAPE]],
        Stage::Thorough => &[&[ESCAPE], b"\\u001b", b"\\x1b", b"\\033", b"\\e"],
    };
    let Some(escape) = escapes.iter().find(|it| bytes.starts_with(it)) else {
        return 0;
    };
    let rest = &bytes[escape.len()..];
    let length = match rest.first() {
        Some(b'[') => {
            let parameters = rest[1..].iter();
            let parameters = parameters.take_while(|byte| (0x20..0x40).contains(*byte));
            parameters.count() + 2
        }
        _ if escape.len() > 1 => return 0,
        // A link or a title: to the bell, or to the escape of its end mark.
        Some(b']') => rest
            .iter()
            .position(|byte| matches!(byte, 0x07 | &ESCAPE))
            .map_or(1, |end| end + 1),
        _ => 1,
    };
    escape.len() + length.min(rest.len())
}

/// Whether a character is not seen: it may stand inside a token that was copied from a page.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'
    )
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
            (format!("sk-proj-{}", body(48)), "openai-key"),
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
            let redacted = fast(&text);
            assert_eq!(redacted.text, format!("before é [redacted:{label}] after"));
            assert_eq!(redacted.count, 1);
        }
    }

    #[test]
    fn a_secret_at_the_end_of_a_sentence_is_one() {
        let text = format!("The password={}.", "hunter2secret99");
        assert_eq!(fast(&text).text, "The password=[redacted:value]");
    }

    #[test]
    fn text_from_our_own_index_is_replaced() {
        // Built from two parts, so that the rule does not match this file itself.
        let (begin, end) = ("<foreword-memory project=\"app\">", "</foreword-");
        let index = format!("{begin}\n#12 the limit is 7\n{end}memory>");
        assert_eq!(
            fast(&format!("a {index} b")).text,
            "a [from Foreword's memory] b"
        );
        for other in ["<foreword-memory project=", "a <foreword-memory> b"] {
            assert_eq!(fast(other).text, other);
        }
    }

    #[test]
    fn only_the_value_is_replaced_after_a_secret_name() {
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
            assert_eq!(fast(&text).text, expected);
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
            "Unexpected token: `foo_bar_baz_1`",
            "invalid token: identifier1234",
            "TOKEN=parse_token2(input)",
            "password: \"must-be-8-chars\"",
            "secret: my-secret-name-v2",
            "npm_config_user_agent_of_the_package_manager_node_v20",
            "a <private /> b",
            "mkdir -p /a/b && cargo test -p foreword1",
            "--token <TOKEN>  --password PASSWORD",
            "the password is checked; a token is made; pass the test",
            "it passes: 12345678 of 9",
        ] {
            assert_eq!(fast(text).text, text);
            assert_eq!(fast(text).count, 0);
        }
    }

    #[test]
    fn private_spans_are_replaced_nested_unclosed_and_in_any_case() {
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
            assert_eq!(fast(text).text, expected);
        }
    }

    #[test]
    fn a_private_key_is_replaced_whole_even_when_its_end_is_missing() {
        let key = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n", body(70));
        let whole = format!("x {key}-----END OPENSSH PRIVATE KEY----- y");
        assert_eq!(fast(&whole).text, "x [redacted:private-key] y");
        assert_eq!(fast(&format!("x {key}")).text, "x [redacted:private-key]");
    }

    #[test]
    fn the_work_grows_linearly_with_the_text_whatever_is_repeated() {
        let after = ["", " ", ":\"", "a1-", "\n"];
        let work = |unit: &str, length: usize| {
            let _ = thorough(&unit.repeat(length / unit.len()));
            rules::bytes_read::take()
        };
        for prefix in FAST.prefixes().chain(THOROUGH.prefixes()) {
            for unit in after.iter().map(|it| format!("{prefix}{it}")) {
                for unit in [unit.clone(), format!("-{unit}")] {
                    let (once, twice) = (work(&unit, 1_000), work(&unit, 2_000));
                    // Quadratic work would be four times as much; near the beginning of a text
                    // there is less to look back at.
                    assert!(twice <= once * 3 + 2000, "{unit:?}: {once}, {twice}");
                }
            }
        }
    }

    #[test]
    fn a_long_repetition_of_a_prefix_does_not_grow_the_text() {
        for unit in [
            "sk-",
            "eyJ",
            "-eyJ",
            "token=",
            "TOKEN=",
            "bearer ",
            "password: \"",
            "<private",
            "://",
        ] {
            let text = unit.repeat((400 << 10) / unit.len());
            assert!(fast(&text).text.len() <= 2 * text.len(), "{unit}");
        }
    }

    #[test]
    fn colours_hide_no_secret_and_stay_where_there_is_none() {
        let secret = body(16);
        let name = "\u{1b}[1mDB_PASSWORD\u{1b}[0m";
        for (text, expected) in [
            (
                format!("{name}=\u{1b}[33m{secret}\u{1b}[0m"),
                "DB_PASSWORD=[redacted:value]",
            ),
            (
                format!("\u{1b}[32mghp_{}\u{1b}[m ok", body(36)),
                "[redacted:github-token] ok",
            ),
        ] {
            assert_eq!(fast(&text).text, expected);
        }
        for text in [
            "\u{1b}[32mok\u{1b}[0m 12 passed",
            "\u{1b}",
            "\u{1b}[",
            "\u{1b}]é",
        ] {
            assert_eq!(thorough(text).text, text);
        }
    }

    #[test]
    fn lines_of_a_change_are_one_text() {
        let mut value = serde_json::json!({"lines": [
            " a", "+-----BEGIN RSA PRIVATE KEY-----", format!("+{}", body(64)),
            format!("+{}", body(64)), "+-----END RSA PRIVATE KEY-----", "-b",
        ]});
        let mut redactor = ValueRedactor::new(Stage::Fast);
        redactor.value(&mut value);
        let expected = [" a", "+[redacted:private-key]", "+", "+", "+", "-b"];
        assert_eq!(value, serde_json::json!({ "lines": expected }));
        assert_eq!(redactor.count, 1);
    }

    #[test]
    fn a_value_is_judged_by_the_name_beside_it_and_the_option_before_it() {
        let secret = body(12);
        for (value, expected) in [
            (
                serde_json::json!({"env": [{"name": "DB_PASSWORD", "value": secret}]}),
                serde_json::json!({"env": [{"name": "DB_PASSWORD", "value": "[redacted:value]"}]}),
            ),
            (
                serde_json::json!(["psql", "--password", secret, "-v"]),
                serde_json::json!(["psql", "--password", "[redacted:value]", "-v"]),
            ),
            (
                serde_json::json!({"name": "PORT", "value": "8080"}),
                serde_json::json!({"name": "PORT", "value": "8080"}),
            ),
        ] {
            let mut redacted = value;
            ValueRedactor::new(Stage::Fast).value(&mut redacted);
            assert_eq!(redacted, expected);
        }
    }

    #[test]
    fn two_names_that_differ_in_a_secret_stay_two_and_hide_it() {
        let names = [body(36), body(36).to_uppercase()].map(|it| format!("/srv/ghp_{it}/app"));
        let clean = names.clone().map(identifier);
        assert_ne!(clean[0], clean[1]);
        assert_eq!(clean[0], identifier(names[0].clone()));
        for clean in clean {
            assert!(
                clean.starts_with("/srv/[redacted:github-token]/app-"),
                "{clean}"
            );
            assert_eq!(identifier(clean.clone()), clean);
        }
        assert_eq!(identifier("/srv/app".to_owned()), "/srv/app");
    }
}
