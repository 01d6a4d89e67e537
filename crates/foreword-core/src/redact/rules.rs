//! The kinds of secrets: how each begins, and how the rest is checked.
//!
//! Most have a prefix of their own and are lines in `PREFIXED`. The others
//! (`RULES` after them) need a look at what is around: blocks, URLs, headers, and
//! values behind a telling name.

use std::ops::Range;

/// One kind of secret: how it begins, and a check that gives the span to replace.
struct Rule {
    begins: &'static [&'static str],
    /// Whether `begins` matches in any case (its words are given in lower case).
    any_case: bool,
    label: &'static str,
    check: Check,
}

enum Check {
    /// A word of its own with at least so many token characters after its beginning.
    Token(usize),
    /// The same, with a digit and a letter in it: its beginning also begins ordinary words.
    MixedToken(usize),
    /// The same, of exactly so many characters out of a smaller set.
    Exactly(usize, fn(u8) -> bool),
    /// Anything: from the text, where the match begins and where its beginning ends.
    Look(fn(&[u8], usize, usize) -> Option<Range<usize>>),
}

impl Rule {
    fn find(&self, bytes: &[u8], at: usize) -> Option<(Range<usize>, &'static str)> {
        let rest = &bytes[at..];
        let begin = self.begins.iter().find(|begin| {
            rest.get(..begin.len()).is_some_and(|head| {
                if self.any_case {
                    head.eq_ignore_ascii_case(begin.as_bytes())
                } else {
                    head == begin.as_bytes()
                }
            })
        })?;
        let body = at + begin.len();
        let span = match self.check {
            Check::Token(least) => token(bytes, at, body, least),
            Check::MixedToken(least) => {
                token(bytes, at, body, least).filter(|span| is_mixed(&bytes[body..span.end]))
            }
            Check::Exactly(length, fits) => {
                let end = run(bytes, body, fits);
                let ends = bytes.get(end).is_none_or(|&byte| !is_token_byte(byte));
                (begins_a_word(bytes, at) && end - body == length && ends).then_some(at..end)
            }
            Check::Look(look) => look(bytes, at, body),
        }?;
        Some((span, self.label))
    }
}

const fn prefixed(begins: &'static [&'static str], label: &'static str, check: Check) -> Rule {
    Rule {
        begins,
        any_case: false,
        label,
        check,
    }
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

const RULES: &[Rule] = &[
    Rule {
        begins: &["<private"],
        any_case: true,
        label: "[private]",
        check: Check::Look(private_span),
    },
    prefixed(
        &["-----BEGIN "],
        "[redacted:private-key]",
        Check::Look(private_key_block),
    ),
    prefixed(&["sk-ant-"], "[redacted:anthropic-key]", Check::Token(16)),
    prefixed(
        &["sk-or-v1-"],
        "[redacted:openrouter-key]",
        Check::Token(20),
    ),
    prefixed(
        &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-"],
        "[redacted:openai-key]",
        Check::MixedToken(20),
    ),
    prefixed(
        &["sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"],
        "[redacted:stripe-key]",
        Check::Token(16),
    ),
    prefixed(
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        "[redacted:github-token]",
        Check::Token(30),
    ),
    prefixed(
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"],
        "[redacted:gitlab-token]",
        Check::Token(20),
    ),
    prefixed(
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        "[redacted:aws-key-id]",
        Check::Exactly(16, is_upper),
    ),
    prefixed(
        &[
            "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-",
        ],
        "[redacted:slack-token]",
        Check::Token(16),
    ),
    prefixed(
        &["hooks.slack.com/services/"],
        "[redacted:slack-webhook]",
        Check::Look(webhook),
    ),
    prefixed(
        &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        "[redacted:discord-webhook]",
        Check::Look(webhook),
    ),
    prefixed(&["AIza"], "[redacted:google-key]", Check::Token(35)),
    prefixed(&["GOCSPX-"], "[redacted:google-secret]", Check::Token(20)),
    prefixed(&["ya29."], "[redacted:google-token]", Check::Token(30)),
    prefixed(&["npm_"], "[redacted:npm-token]", Check::MixedToken(36)),
    prefixed(&["pypi-"], "[redacted:pypi-token]", Check::MixedToken(50)),
    prefixed(
        &["hf_"],
        "[redacted:huggingface-token]",
        Check::MixedToken(30),
    ),
    prefixed(&["SG."], "[redacted:sendgrid-key]", Check::Look(sendgrid)),
    prefixed(&["SK"], "[redacted:twilio-key]", Check::Exactly(32, is_hex)),
    prefixed(
        &["key-"],
        "[redacted:mailgun-key]",
        Check::Exactly(32, is_hex),
    ),
    prefixed(
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        "[redacted:digitalocean-token]",
        Check::Token(40),
    ),
    prefixed(
        &["dapi"],
        "[redacted:databricks-token]",
        Check::Exactly(32, is_hex),
    ),
    prefixed(
        &["shpat_", "shpss_", "shpca_", "shppa_"],
        "[redacted:shopify-token]",
        Check::Token(32),
    ),
    prefixed(
        &["sq0atp-", "sq0csp-"],
        "[redacted:square-token]",
        Check::Token(20),
    ),
    prefixed(
        &["lin_api_", "lin_oauth_"],
        "[redacted:linear-key]",
        Check::Token(30),
    ),
    prefixed(&["ntn_"], "[redacted:notion-token]", Check::MixedToken(40)),
    prefixed(
        &["hvs.", "hvb.", "hvr."],
        "[redacted:vault-token]",
        Check::Token(24),
    ),
    prefixed(
        &["AGE-SECRET-KEY-1"],
        "[redacted:age-key]",
        Check::Token(40),
    ),
    prefixed(&["dckr_pat_"], "[redacted:docker-token]", Check::Token(20)),
    prefixed(
        &["glsa_", "glc_"],
        "[redacted:grafana-token]",
        Check::MixedToken(30),
    ),
    prefixed(&["PMAK-"], "[redacted:postman-key]", Check::Token(40)),
    prefixed(&["NRAK-"], "[redacted:newrelic-key]", Check::Token(24)),
    prefixed(
        &["sntrys_", "sntryu_"],
        "[redacted:sentry-token]",
        Check::Token(40),
    ),
    prefixed(
        &["sbp_"],
        "[redacted:supabase-token]",
        Check::Exactly(40, is_hex),
    ),
    prefixed(&["figd_"], "[redacted:figma-token]", Check::Token(30)),
    prefixed(&[":AA"], "[redacted:telegram-token]", Check::Look(telegram)),
    prefixed(&["eyJ"], "[redacted:jwt]", Check::Look(jwt)),
    prefixed(&["://"], "[redacted:password]", Check::Look(url_password)),
    Rule {
        begins: &["bearer "],
        any_case: true,
        label: "[redacted:bearer-token]",
        check: Check::Look(bearer),
    },
    Rule {
        begins: &[
            "authorization: basic ",
            "authorization:basic ",
            "proxy-authorization: basic ",
        ],
        any_case: true,
        label: "[redacted:basic-auth]",
        check: Check::Look(basic),
    },
    Rule {
        begins: SECRET_NAMES,
        any_case: true,
        label: "[redacted:value]",
        check: Check::Look(assigned_value),
    },
    Rule {
        begins: &["_key", "-key"],
        any_case: true,
        label: "[redacted:value]",
        check: Check::Look(assigned_key),
    },
];

/// Names after which a value is a secret.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "api-key",
    "apikey",
    "accesskey",
    "accountkey",
    "credential",
    "pwd",
];

pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|secret| name.ends_with(secret))
}

/// For each of the first three bytes of a beginning, which rules allow it there: a
/// bit per rule. 6 KB, made at compile time.
pub struct Begins([[u64; 256]; 3]);

pub static BEGINS: Begins = Begins::new();

impl Begins {
    const fn new() -> Begins {
        assert!(RULES.len() <= 64);
        let mut tables = [[0; 256]; 3];
        let mut rule = 0;
        while rule < RULES.len() {
            let mut begin = 0;
            while begin < RULES[rule].begins.len() {
                let word = RULES[rule].begins[begin].as_bytes();
                let mut at = 0;
                while at < tables.len() {
                    let mut byte = 0;
                    while byte < 256 {
                        // Anything may follow a beginning of two bytes.
                        let fits = at >= word.len()
                            || word[at] as usize == byte
                            || RULES[rule].any_case
                                && word[at].to_ascii_uppercase() as usize == byte;
                        tables[at][byte] |= (fits as u64) << rule;
                        byte += 1;
                    }
                    at += 1;
                }
                begin += 1;
            }
            rule += 1;
        }
        Begins(tables)
    }

    /// The rules that could begin with these bytes, a bit each.
    #[inline]
    pub fn candidates(&self, a: u8, b: u8, c: u8) -> u64 {
        let [first, second, third] = &self.0;
        first[usize::from(a)] & second[usize::from(b)] & third[usize::from(c)]
    }
}

/// The first of these rules that matches here.
pub fn find(mut candidates: u64, bytes: &[u8], at: usize) -> Option<(Range<usize>, &'static str)> {
    while candidates != 0 {
        let rule = &RULES[candidates.trailing_zeros() as usize];
        if let Some(found) = rule.find(bytes, at) {
            return Some(found);
        }
        candidates &= candidates - 1;
    }
    None
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

fn is_mixed(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

fn token(bytes: &[u8], at: usize, body: usize, least: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, is_token_byte);
    (begins_a_word(bytes, at) && end - body >= least).then_some(at..end)
}

/// The path of a webhook's address is its key.
fn webhook(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, |byte| is_token_byte(byte) || byte == b'/');
    (end - body >= 24).then_some(body..end)
}

/// `SG.` and two parts.
fn sendgrid(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let first = run(bytes, body, is_token_byte);
    if first - body < 16 || bytes.get(first) != Some(&b'.') {
        return None;
    }
    let end = run(bytes, first + 1, is_token_byte);
    (begins_a_word(bytes, at) && end - first > 30).then_some(at..end)
}

/// `123456789:AA…`: found by its middle.
fn telegram(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let digits = bytes[..at]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let end = run(bytes, body, is_token_byte);
    ((8..=10).contains(&digits) && end - body == 33).then_some(at - digits..end)
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
    (!password.is_empty() && !is_placeholder(password)).then_some(body + colon + 1..body + at_sign)
}

fn bearer(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, |byte| {
        is_token_byte(byte) || b".+/=~".contains(&byte)
    });
    (end - body >= 20 && is_mixed(&bytes[body..end])).then_some(body..end)
}

fn basic(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, |byte| {
        byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
    });
    (end - body >= 8).then_some(body..end)
}

/// `password = "…"`, `"api_key": "…"`, `DB_PASSWORD=…`: only the value goes.
fn assigned_value(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let Assigned {
        span,
        quoted,
        tight,
    } = assigned(bytes, body)?;
    let value = &bytes[span.clone()];
    // Assigned in a shell or a `.env`: nothing but a value can stand there.
    let shouted = bytes[at..body]
        .iter()
        .all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    if tight && shouted {
        let numeric = value.iter().all(u8::is_ascii_digit) && value.len() < 8;
        return (value.len() >= 4 && !numeric && !is_placeholder(value)).then_some(span);
    }
    let is_code = !quoted
        && (value.contains(&b'.') || value.contains(&b':') || bytes.get(span.end) == Some(&b'('));
    (!is_code && is_secret_value(value, quoted)).then_some(span)
}

/// `signing_key = "…"`: keys of maps and tables are called so too, so only what looks random goes.
fn assigned_key(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let Assigned { span, .. } = assigned(bytes, body)?;
    let value = &bytes[span.clone()];
    let random = value.len() >= 20
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && value
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    let hex = value.len() >= 32 && value.iter().all(|&byte| is_hex(byte)) && is_mixed(value);
    (random || hex).then_some(span)
}

struct Assigned {
    span: Range<usize>,
    quoted: bool,
    /// `NAME=value`, without a space.
    tight: bool,
}

/// The value behind a name: `= value`, `: "value"`, also in escaped JSON.
fn assigned(bytes: &[u8], name_end: usize) -> Option<Assigned> {
    let quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'\\' | b'`');
    let closed = run(bytes, name_end, quote);
    let separator = run(bytes, closed, |byte| byte == b' ');
    if !matches!(bytes.get(separator), Some(b'=' | b':')) {
        return None;
    }
    let space = run(bytes, separator + 1, |byte| byte == b' ');
    let start = run(bytes, space, quote);
    let end = run(bytes, start, |byte| {
        byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'"' | b'\'' | b'\\' | b'`' | b',' | b';' | b')' | b'(' | b'<' | b'>' | b'}' | b']'
            )
    });
    Some(Assigned {
        span: start..end,
        quoted: start > space,
        tight: bytes[separator] == b'=' && space == separator + 1,
    })
}

/// Code talks about secrets all the time (`token: String`, `password = form.password`);
/// a value mixes digits and letters and is one word.
pub fn is_secret_value(value: &[u8], quoted: bool) -> bool {
    let long = value.len() >= if quoted { 8 } else { 12 };
    let one_word = value.iter().all(u8::is_ascii_graphic);
    long && one_word && is_mixed(value) && !is_placeholder(value)
}

/// `${PASSWORD}`, `{token}`, `<your-key>`, `[redacted:…]`, `%s`: names a secret without being one.
fn is_placeholder(value: &[u8]) -> bool {
    matches!(
        value.first(),
        Some(b'$' | b'{' | b'[' | b'<' | b'&' | b'%' | b'*')
    )
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
