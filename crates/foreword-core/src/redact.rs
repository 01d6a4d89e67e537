//! Takes secrets and private spans out of a text, before its first write to disk.
//!
//! Every hook runs this on every event, so nothing is built at run time: constant tables
//! over the next three bytes give the rules that could match here (mostly none), and a
//! small hand-written check decides (`rules`, `assigned`). The regex crate takes 4-5 ms to
//! build its automaton, several times as long as the whole hook. A field is redacted before
//! it is cut, so that no cut can split a secret and hide it. Files whose whole content is
//! secret are recognised by their names (`files`).

mod assigned;
pub mod files;
mod rules;

use std::borrow::Cow;

use rules::PREFIX_TABLE;

/// A text without its secrets, and the number of replaced spans.
#[derive(Debug, PartialEq, Eq)]
pub struct Redacted<'a> {
    pub text: Cow<'a, str>,
    pub count: u32,
}

/// Replaces each secret by `[redacted:KIND]` and each private span by `[private]`.
pub fn redact(text: &str) -> Redacted<'_> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    // Everything before this byte is already in `out`, or replaced.
    let mut copied = 0;
    let mut count = 0;
    let mut at = 0;
    while let Some(&[a, b, c]) = bytes[at..].first_chunk() {
        let candidates = PREFIX_TABLE.candidates(a, b, c);
        if candidates == 0 {
            at += 1;
            continue;
        }
        // A match that starts inside the last replaced span is part of it.
        let found = rules::find(candidates, bytes, at);
        let Some((span, label)) = found.filter(|(span, _)| span.start >= copied) else {
            at += 1;
            continue;
        };
        // Each end of a span is next to an ASCII byte or at an end of the text, so both
        // are character boundaries.
        out.push_str(&text[copied..span.start]);
        out.push_str(label);
        copied = span.end;
        at = span.end.max(at + 1);
        count += 1;
    }
    if count == 0 {
        return Redacted {
            text: Cow::Borrowed(text),
            count,
        };
    }
    out.push_str(&text[copied..]);
    Redacted {
        text: Cow::Owned(out),
        count,
    }
}

/// The replacement for the value of a field with a secret name (`password`); none if the value
/// is not a secret.
pub fn named(name: &str, value: &str) -> Option<String> {
    let clean = value.starts_with("[redacted:") || value.starts_with(['/', '~']);
    (!clean && assigned::is_secret_field(name, value.as_bytes()))
        .then(|| "[redacted:value]".to_owned())
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
            let redacted = redact(&text);
            assert_eq!(redacted.text, format!("before é [redacted:{label}] after"));
            assert_eq!(redacted.count, 1);
        }
    }

    #[test]
    fn a_secret_at_the_end_of_a_sentence_is_one() {
        let text = format!("The password={}.", "hunter2secret99");
        assert_eq!(redact(&text).text, "The password=[redacted:value]");
    }

    #[test]
    fn text_from_our_own_index_is_replaced() {
        // Built from two parts, so that the rule does not match this file itself.
        let (begin, end) = ("<foreword-memory project=\"app\">", "</foreword-");
        let index = format!("{begin}\n#12 the limit is 7\n{end}memory>");
        assert_eq!(
            redact(&format!("a {index} b")).text,
            "a [from Foreword's memory] b"
        );
        for other in ["<foreword-memory project=", "a <foreword-memory> b"] {
            assert_eq!(redact(other).text, other);
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
            assert_eq!(redact(text).text, text);
            assert_eq!(redact(text).count, 0);
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
            assert_eq!(redact(text).text, expected);
        }
    }

    #[test]
    fn a_private_key_is_replaced_whole_even_when_its_end_is_missing() {
        let key = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n", body(70));
        let whole = format!("x {key}-----END OPENSSH PRIVATE KEY----- y");
        assert_eq!(redact(&whole).text, "x [redacted:private-key] y");
        assert_eq!(redact(&format!("x {key}")).text, "x [redacted:private-key]");
    }

    #[test]
    fn the_work_grows_linearly_with_the_text_whatever_is_repeated() {
        let after = [
            "", "a", "-", "_", " ", "=", ": ", ":\"", "a.", "a1-", "\\", "\n",
        ];
        let work = |unit: &str, length: usize| {
            let _ = redact(&unit.repeat(length / unit.len()));
            rules::bytes_read::take()
        };
        for prefix in rules::prefixes() {
            for unit in after.iter().map(|it| format!("{prefix}{it}")) {
                for unit in [unit.clone(), format!("-{unit}"), format!("x{unit}")] {
                    let (once, twice) = (work(&unit, 2_000), work(&unit, 4_000));
                    assert!(twice <= once * 9 / 4 + 2000, "{unit:?}: {once}, {twice}");
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
            assert!(redact(&text).text.len() <= 2 * text.len(), "{unit}");
        }
    }
}
