//! The kinds of secrets: the prefix of each, and a check of the text after it.
//!
//! Most secrets have a prefix of their own and a body of token characters. The others need
//! a look at the text around the prefix: blocks, URLs, headers, and values after a name
//! such as `password` (`assigned`).
//!
//! A hostile or odd text must not make a hook slow, so redaction takes linear time: a
//! check that fails has read at most a constant number of bytes (`WINDOW`), or only bytes
//! that no other match of its rule reads. Only a span that is replaced is read to its end,
//! and it is not read again.

use std::ops::Range;

use RuleCheck::{Exactly, Look, MixedToken, Random, Token, Wide};

use super::assigned;
use super::files::is_secret_file;

/// The number of bytes that a check reads before it decides.
pub const WINDOW: usize = 128;

/// One kind of secret: its prefixes, and a check that returns the span to replace.
pub struct Rule {
    prefixes: Prefixes,
    /// Whether `prefixes`, which are in lower case, match in any case.
    any_case: bool,
    /// The kind of secret, or in brackets the whole replacement.
    label: &'static str,
    check: RuleCheck,
}

/// The condition that the text after a prefix has to meet.
pub enum RuleCheck {
    /// The match begins a word, and at least this many token characters follow the prefix.
    Token(usize),
    /// As `Token`, with a digit and a letter among them: the prefix also begins ordinary words.
    MixedToken(usize),
    /// As `Token`, with exactly this many characters, of a smaller set.
    Exactly(usize, fn(u8) -> bool),
    /// As `Token`, with a length in this range, and characters in an order that no name has.
    Random(usize, usize),
    /// As `Random` of at least this length, with the signs that join the parts of a token.
    Wide(usize),
    /// A function of the text, the position of the prefix and the position after it.
    Look(fn(&[u8], usize, usize) -> Option<Range<usize>>),
}

impl Rule {
    /// The span to replace, if the text after a prefix, which ends at `body`, meets the condition.
    fn check(&self, bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
        match self.check {
            Token(least) => token(bytes, at, body, least),
            MixedToken(_) if !begins_a_word(bytes, at) => None,
            MixedToken(least) => {
                let seen = &bytes[body..run_max(bytes, body, WINDOW, is_token_byte)];
                is_mixed(seen).then(|| token(bytes, at, body, least))?
            }
            Exactly(length, fits) => {
                let end = run_max(bytes, body, length + 1, fits);
                let ends = bytes.get(end).is_none_or(|&byte| !is_token_byte(byte));
                (begins_a_word(bytes, at) && end - body == length && ends).then_some(at..end)
            }
            Random(least, most) => random(bytes, at, body, least, most, is_token_byte),
            Wide(least) => random(bytes, at, body, least, usize::MAX, is_wide_byte),
            Look(look) => look(bytes, at, body),
        }
    }
}

pub type Prefixes = &'static [&'static str];

pub const fn exact(prefixes: Prefixes, label: &'static str, check: RuleCheck) -> Rule {
    Rule {
        prefixes,
        any_case: false,
        label,
        check,
    }
}

pub const fn any_case(prefixes: Prefixes, label: &'static str, check: RuleCheck) -> Rule {
    Rule {
        any_case: true,
        ..exact(prefixes, label, check)
    }
}

pub fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

pub fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

#[rustfmt::skip] // A table is read line by line.
const RULES: &[Rule] = &[
    any_case(&["<private"], "[private]", Look(private_span)),
    // Foreword wrote this text for the agent; it must not be stored as something new.
    any_case(&["<foreword-memory project="], "[from Foreword's memory]", Look(own_index)),
    exact(&["-----BEGIN ", "---- BEGIN "], "private-key", Look(private_key_block)),
    exact(&["-----END "], "private-key", Look(private_key_end)),
    exact(&["sk-ant-"], "anthropic-key", Token(16)),
    exact(&["sk-or-v1-"], "openrouter-key", Token(20)),
    exact(&["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-"], "openai-key", MixedToken(20)),
    exact(&["sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"], "stripe-key", Token(16)),
    exact(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], "github-token", Token(30)),
    exact(&["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"], "gitlab-token", Token(20)),
    exact(&["AKIA", "ASIA", "ABIA", "ACCA"], "aws-key-id", Look(aws_key_id)),
    exact(&["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"], "slack-token", Token(16)),
    exact(&["hooks.slack.com/services/"], "slack-webhook", Look(webhook)),
    exact(&["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"], "discord-webhook", Look(webhook)),
    exact(&["AIza"], "google-key", Token(35)),
    exact(&["GOCSPX-"], "google-secret", Token(20)),
    exact(&["ya29."], "google-token", Token(30)),
    exact(&["npm_"], "npm-token", Exactly(36, is_alphanumeric)),
    exact(&["pypi-"], "pypi-token", MixedToken(50)),
    exact(&["hf_"], "huggingface-token", MixedToken(30)),
    exact(&["SG."], "sendgrid-key", Look(sendgrid)),
    exact(&["SK"], "twilio-key", Exactly(32, is_hex)),
    exact(&["key-"], "mailgun-key", Exactly(32, is_hex)),
    exact(&["dop_v1_", "doo_v1_", "dor_v1_"], "digitalocean-token", Token(40)),
    exact(&["dapi"], "databricks-token", Exactly(32, is_hex)),
    exact(&["shpat_", "shpss_", "shpca_", "shppa_"], "shopify-token", Token(32)),
    exact(&["sq0atp-", "sq0csp-"], "square-token", Token(20)),
    exact(&["lin_api_", "lin_oauth_"], "linear-key", Token(30)),
    exact(&["ntn_"], "notion-token", MixedToken(40)),
    exact(&["hvs.", "hvb.", "hvr."], "vault-token", Token(24)),
    exact(&["AGE-SECRET-KEY-1"], "age-key", Token(40)),
    exact(&["dckr_pat_"], "docker-token", Token(20)),
    exact(&["glsa_", "glc_"], "grafana-token", MixedToken(30)),
    exact(&["PMAK-"], "postman-key", Token(40)),
    exact(&["NRAK-"], "newrelic-key", Token(24)),
    exact(&["sntrys_", "sntryu_"], "sentry-token", Token(40)),
    exact(&["sbp_"], "supabase-token", Exactly(40, is_hex)),
    exact(&["figd_"], "figma-token", Token(30)),
    exact(&[":AA"], "telegram-token", Look(telegram)),
    exact(&["eyJ"], "jwt", Look(jwt)),
    exact(&["://"], "password", Look(url_password)),
    any_case(&["bearer "], "bearer-token", Look(bearer)),
    any_case(&["authorization"], "authorization", Look(authorization)),
    any_case(&["cookie:"], "cookie", Look(cookie)),
    exact(&["sig="], "signature", Look(signature)),
    exact(&["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"], "discord-token", Look(discord)),
    exact(&["gsk_", "xai-", "ATATT", "r8_", "rubygems_", "nvapi-", "fm2_", "nfp_"], "token", Wide(30)),
    exact(&["tskey-"], "token", MixedToken(20)),
    exact(&["dp.st.", "dp.pt.", "dp.ct.", "dp.sa."], "token", Wide(30)),
    exact(&["diff --git ", "+++ "], "secret-file", Look(secret_hunk)),
    exact(&[" -p", " -u", " --user"], "password", Look(assigned::option)),
    any_case(assigned::SECRET_NAMES, "value", Look(assigned::value)),
    any_case(&["pass"], "value", Look(assigned::pass)),
    any_case(&["_key", "-key"], "value", Look(assigned::key)),
];

/// The rules of the fast stage.
pub static FAST: RuleSet = RuleSet::new(RULES, &FAST_BEGINNINGS);
static FAST_BEGINNINGS: [Beginning; beginnings_count(RULES)] = beginnings(RULES);

/// A prefix of a rule, under a byte that it begins with.
#[derive(Clone, Copy)]
pub struct Beginning {
    byte: u8,
    rule: usize,
    prefix: &'static str,
}

/// A table of rules, with two indexes of their prefixes that are built at compile time.
pub struct RuleSet {
    rules: &'static [Rule],
    /// For each value of the first three bytes of a prefix, the rules that allow it at this
    /// position, one bit per rule: 6 KB.
    bytes: [[u64; 256]; 3],
    /// The prefixes, ordered by their first byte and then as in the table.
    beginnings: &'static [Beginning],
    /// Where the prefixes with each first byte begin in `beginnings`.
    starts: [u16; 257],
}

impl RuleSet {
    pub const fn new(rules: &'static [Rule], beginnings: &'static [Beginning]) -> RuleSet {
        assert!(rules.len() <= 64);
        let mut bytes = [[0; 256]; 3];
        let mut starts = [0; 257];
        let mut next = 0;
        while next < beginnings.len() {
            let Beginning { byte, rule, prefix } = beginnings[next];
            starts[byte as usize + 1] = next as u16 + 1;
            bytes[0][byte as usize] |= 1 << rule;
            let mut at = 1;
            while at < bytes.len() {
                if at < prefix.len() {
                    let byte = prefix.as_bytes()[at];
                    bytes[at][byte as usize] |= 1 << rule;
                    if rules[rule].any_case {
                        bytes[at][byte.to_ascii_uppercase() as usize] |= 1 << rule;
                    }
                } else {
                    // Any byte may follow a prefix of two bytes.
                    let mut byte = 0;
                    while byte < 256 {
                        bytes[at][byte] |= 1 << rule;
                        byte += 1;
                    }
                }
                at += 1;
            }
            next += 1;
        }
        let mut byte = 0;
        while byte < 256 {
            if starts[byte + 1] < starts[byte] {
                starts[byte + 1] = starts[byte];
            }
            byte += 1;
        }
        RuleSet {
            rules,
            bytes,
            beginnings,
            starts,
        }
    }

    /// The rules that have a prefix that may begin with these bytes, one bit each.
    #[inline]
    pub fn candidates(&self, a: u8, b: u8, c: u8) -> u64 {
        let [first, second, third] = &self.bytes;
        first[usize::from(a)] & second[usize::from(b)] & third[usize::from(c)]
    }

    /// The span and label of the first of these rules that matches at this position.
    pub fn find(
        &self,
        candidates: u64,
        bytes: &[u8],
        at: usize,
    ) -> Option<(Range<usize>, &'static str)> {
        let first = usize::from(bytes[at]);
        let beginnings = usize::from(self.starts[first])..usize::from(self.starts[first + 1]);
        self.beginnings[beginnings].iter().find_map(|beginning| {
            let rule = &self.rules[beginning.rule];
            let prefix = beginning.prefix.as_bytes();
            // The second byte rules most prefixes out, without a call.
            let second = bytes[at + 1];
            let may_fit = candidates & 1 << beginning.rule != 0
                && (second == prefix[1]
                    || rule.any_case && second.to_ascii_lowercase() == prefix[1]);
            let head = bytes.get(at..at + prefix.len()).filter(|_| may_fit)?;
            let fits = if rule.any_case {
                head.eq_ignore_ascii_case(prefix)
            } else {
                head == prefix
            };
            let span = fits.then(|| rule.check(bytes, at, at + prefix.len()))??;
            Some((span, rule.label))
        })
    }

    /// The first prefix of each rule.
    #[cfg(test)]
    pub fn prefixes(&self) -> impl Iterator<Item = &'static str> {
        self.rules.iter().map(|rule| rule.prefixes[0])
    }
}

/// The number of prefixes; one that matches in any case begins with two bytes.
pub const fn beginnings_count(rules: &[Rule]) -> usize {
    let (mut count, mut rule) = (0, 0);
    while rule < rules.len() {
        let mut prefix = 0;
        while prefix < rules[rule].prefixes.len() {
            let first = rules[rule].prefixes[prefix].as_bytes()[0];
            let two = rules[rule].any_case && first.is_ascii_lowercase();
            count += if two { 2 } else { 1 };
            prefix += 1;
        }
        rule += 1;
    }
    count
}

pub const fn beginnings<const N: usize>(rules: &'static [Rule]) -> [Beginning; N] {
    let nothing = Beginning {
        byte: 0,
        rule: 0,
        prefix: "",
    };
    let (mut all, mut count, mut byte) = ([nothing; N], 0, 0);
    while byte < 256 {
        let mut rule = 0;
        while rule < rules.len() {
            let mut at = 0;
            while at < rules[rule].prefixes.len() {
                let prefix = rules[rule].prefixes[at];
                let first = prefix.as_bytes()[0];
                let upper = rules[rule].any_case && first.to_ascii_uppercase() as usize == byte;
                if first as usize == byte || upper {
                    all[count] = Beginning {
                        byte: byte as u8,
                        rule,
                        prefix,
                    };
                    count += 1;
                }
                at += 1;
            }
            rule += 1;
        }
        byte += 1;
    }
    all
}

pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Whether a word begins at this position: `task-…` does not contain an `sk-` key. A word may
/// begin after an escaped line end, as in JSON inside JSON.
pub fn begins_a_word(bytes: &[u8], at: usize) -> bool {
    at == 0
        || !bytes[at - 1].is_ascii_alphanumeric()
        || at > 1 && bytes[at - 2] == b'\\' && matches!(bytes[at - 1], b'n' | b't' | b'r')
}

/// The bytes after the last one that ends what came before; all bytes if there is none.
pub fn after_last(bytes: &[u8], ends: impl Fn(u8) -> bool) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| ends(byte));
    end.map_or(bytes, |end| &bytes[end + 1..])
}

pub fn run(bytes: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    run_max(bytes, from, usize::MAX, fits)
}

/// The end of the run of bytes that `fits` accepts, at most `max` bytes after `from`.
pub fn run_max(bytes: &[u8], from: usize, max: usize, fits: impl Fn(u8) -> bool) -> usize {
    let until = bytes.len().min(from.saturating_add(max));
    let end = bytes[from..until]
        .iter()
        .position(|&byte| !fits(byte))
        .map_or(until, |length| from + length);
    #[cfg(test)]
    bytes_read::add(end - from);
    end
}

pub fn is_mixed(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

fn token(bytes: &[u8], at: usize, body: usize, least: usize) -> Option<Range<usize>> {
    let fits =
        begins_a_word(bytes, at) && run_max(bytes, body, least, is_token_byte) - body == least;
    (fits && !is_placeholder(&bytes[body..body + least]))
        .then(|| at..run(bytes, body, is_token_byte))
}

/// A token whose characters stand in an order that no name has.
fn random(
    bytes: &[u8],
    at: usize,
    body: usize,
    least: usize,
    most: usize,
    fits: fn(u8) -> bool,
) -> Option<Range<usize>> {
    if !begins_a_word(bytes, at) {
        return None;
    }
    let seen = run_max(bytes, body, WINDOW.max(least), fits);
    if seen - body < least || !is_scrambled(&bytes[body..seen]) {
        return None;
    }
    let mut end = run_max(bytes, body, most.saturating_add(1), fits);
    // The full stop or colon after a token belongs to the sentence.
    while matches!(bytes[end - 1], b'.' | b':') {
        end -= 1;
    }
    (end - body <= most).then_some(at..end)
}

fn is_wide_byte(byte: u8) -> bool {
    is_token_byte(byte) || b"+/=.~!|:%".contains(&byte)
}

/// Whether the characters of a value are mixed as no name is: letters of both cases and digits, or
/// digits before letters in several places.
pub fn is_scrambled(value: &[u8]) -> bool {
    let digit_before_letter = value
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
        .count();
    let both_cases =
        value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    digit_before_letter >= 2 || both_cases && value.iter().any(u8::is_ascii_digit)
}

/// The path of a webhook's URL, which is its key.
pub fn webhook(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, |byte| is_token_byte(byte) || byte == b'/');
    (end - body >= 24).then_some(body..end)
}

/// `SG.` and two parts separated by a dot.
fn sendgrid(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let first = run(bytes, body, is_token_byte);
    if first - body < 16 || bytes.get(first) != Some(&b'.') {
        return None;
    }
    let end = run(bytes, first + 1, is_token_byte);
    (begins_a_word(bytes, at) && end - first > 30).then_some(at..end)
}

/// `123456789:AA…`: the prefix `:AA` is in the middle, after the digits.
fn telegram(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let digits = bytes[..at]
        .iter()
        .rev()
        .take(11)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let end = run_max(bytes, body, 34, is_token_byte);
    ((8..=10).contains(&digits) && end - body == 33).then_some(at - digits..end)
}

fn jwt(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    // Only at the beginning of a run, so that each run is read once.
    if !begins_a_word(bytes, at) || at > 0 && matches!(bytes[at - 1], b'-' | b'_') {
        return None;
    }
    let first = run(bytes, body, is_token_byte);
    if bytes.get(first) != Some(&b'.') || first - at < 10 {
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

/// `scheme://user:PASSWORD@host`: only the password is replaced.
fn url_password(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let authority_end = run(bytes, body, |byte| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>')
    });
    let authority = &bytes[body..authority_end];
    // A plain loop: the memchr crate first detects the processor's features, which takes
    // longer than these few bytes (see the hook's `stdin`).
    let Some(at_sign) = authority.iter().rposition(|&byte| byte == b'@') else {
        return slashed_password(bytes, body, authority);
    };
    let colon = authority[..at_sign].iter().position(|&byte| byte == b':')?;
    let password = &authority[colon + 1..at_sign];
    (!password.is_empty() && !is_placeholder(password)).then_some(body + colon + 1..body + at_sign)
}

/// `user:pa/ss@host`: a password with a slash. A number before the slash would be a port.
fn slashed_password(bytes: &[u8], body: usize, authority: &[u8]) -> Option<Range<usize>> {
    let colon = authority.iter().position(|&byte| byte == b':')?;
    let before = &authority[colon + 1..];
    let start = body + colon + 1;
    if colon == 0 || before.iter().all(u8::is_ascii_digit) || is_placeholder(before) {
        return None;
    }
    let end = run_max(bytes, start, WINDOW, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'@' | b'"' | b'\'' | b'`' | b'<' | b'>')
    });
    let host = bytes.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
    (bytes.get(end) == Some(&b'@') && host && end - start >= 6).then_some(start..end)
}

fn bearer(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, |byte| {
        is_token_byte(byte) || b".+/=~".contains(&byte)
    });
    (end - body >= 20 && is_mixed(&bytes[body..end])).then_some(body..end)
}

/// Words that stand for a secret that is to be put in.
const PLACEHOLDERS: &[&str] = &[
    "changeme",
    "change-me",
    "change_me",
    "changeit",
    "password",
    "yourpassword",
    "your-password",
    "your_password",
    "example",
];

/// Whether a value only stands for a secret: `${PASSWORD}`, `{token}`, `<your-key>`, `[redacted:…]`, `%s`,
/// `changeme`, `ghp_xxxx`.
pub fn is_placeholder(value: &[u8]) -> bool {
    let is_repeated = |value: &[u8]| {
        let last = value.rsplit(|byte| matches!(byte, b'_' | b'-')).next();
        last.is_some_and(|it| it.len() >= 4 && it.iter().all(|byte| matches!(byte, b'x' | b'X')))
    };
    matches!(
        value.first(),
        Some(b'$' | b'{' | b'[' | b'<' | b'&' | b'%' | b'*')
    ) || PLACEHOLDERS
        .iter()
        .any(|it| value.eq_ignore_ascii_case(it.as_bytes()))
        || is_repeated(value)
        || value.starts_with("…".as_bytes())
        || value.starts_with(b"...")
}

/// Whether `<private` opens a private span: `<privateer>` and `<private />` do not.
fn opens_private(bytes: &[u8], body: usize) -> bool {
    match bytes.get(body) {
        None | Some(b'>') => true,
        Some(b' ' | b'\n' | b'\t' | b'/') => {
            let end = run_max(bytes, body, WINDOW, |byte| byte != b'>');
            bytes.get(end) != Some(&b'>') || bytes[end - 1] != b'/'
        }
        Some(_) => false,
    }
}

/// From `<private…>` to its `</private>`, including nested spans; to the end if it is not closed.
fn private_span(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    if !opens_private(bytes, body) {
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
            let opens = starts("<private") && opens_private(bytes, position + "<private".len());
            depth += u32::from(opens);
            position += 1;
        }
    }
    Some(at..bytes.len())
}

/// The index that Foreword shows to an agent, from its opening tag to its closing tag; an index
/// that is cut off is not replaced. Reads no further than the next occurrence of the tag's name, so
/// that many opening tags still take linear time.
fn own_index(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    const NAME: &[u8] = b"foreword-memory";
    let name = body + memchr::memmem::find(&bytes[body..], NAME)?;
    let end = name + NAME.len();
    let closes = bytes[..name].ends_with(b"</") && bytes.get(end) == Some(&b'>');
    closes.then_some(at..end + 1)
}

/// A private key from its first line to its last, or to the end of the text. Code that only names
/// the first line is left alone: no body follows.
fn private_key_block(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let label = &bytes[body..bytes.len().min(body + 48)];
    let named = memchr::memmem::find(label, b"PRIVATE KEY")?;
    let begins = body + named + "PRIVATE KEY".len();
    // Dashes, a line end (perhaps written `\n`), quotes, the sign of a diff, the number of a line.
    let between = run_max(bytes, begins, 48, |byte| {
        b"-+ \t\r\n\"'`,|>\\.".contains(&byte) || byte.is_ascii_digit() || !byte.is_ascii()
    });
    let first_line = run_max(bytes, between, 16, is_base64_byte);
    let headers = [&b"BLOCK"[..], b"Proc-Type", b"Comment", b"Version"];
    let has_body =
        first_line - between == 16 || headers.iter().any(|it| bytes[between..].starts_with(it));
    if !has_body {
        return None;
    }
    let dashes = &bytes[at..body - "BEGIN ".len()];
    let last_line = [dashes, b"END "].concat();
    let Some(end) = memchr::memmem::find(&bytes[body..], &last_line) else {
        return Some(at..bytes.len());
    };
    let end = body + end + last_line.len();
    let close = memchr::memmem::find(&bytes[end..], b"----").map_or(bytes.len(), |n| end + n + 4);
    Some(at..run_max(bytes, close, 1, |byte| byte == b'-'))
}

pub fn is_base64_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The end of a private key whose beginning is not in the text, as `tail` shows it.
fn private_key_end(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let label = &bytes[body..bytes.len().min(body + 40)];
    let label_end = memchr::memmem::find(label, b"PRIVATE KEY")? + "PRIVATE KEY".len();
    let mut start = at;
    while start > 0 {
        let before = &bytes[..start - 1];
        let line = after_last(before, |byte| byte == b'\n');
        // A line may begin with the sign of a diff or the number that a tool puts before it.
        let body = line.iter().rev();
        let base64 =
            body.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=\r".contains(byte));
        let length = base64.count();
        #[cfg(test)]
        bytes_read::add(length + 1);
        if length < 4 || line.len() - length > 12 {
            break;
        }
        start -= line.len() + 1;
    }
    let end = body + label_end;
    (start < at).then(|| start..run_max(bytes, end, 16, |byte| byte == b'-' || byte == b' '))
}

/// `AKIA…`, and the secret after it if both are in neighbouring columns of a table.
fn aws_key_id(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let end = run_max(bytes, body, 17, is_upper);
    let ends = bytes.get(end).is_none_or(|&byte| !is_token_byte(byte));
    if !begins_a_word(bytes, at) || end - body != 16 || !ends {
        return None;
    }
    let next = run_max(bytes, end, 8, |byte| b",\t \":|".contains(&byte));
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    let secret = run_max(bytes, next, 41, base64);
    let paired = secret - next == 40 && is_mixed(&bytes[next..secret]);
    Some(at..if paired { secret } else { end })
}

/// `Authorization: token …`, in a header or in JSON. `Bearer` has a rule of its own.
fn authorization(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'\\' | b'`' | b' ');
    let separator = run_max(bytes, body, 8, quote);
    if !matches!(bytes.get(separator), Some(b':' | b'=')) {
        return None;
    }
    let word = run_max(bytes, separator + 1, 8, quote);
    let word_end = run_max(bytes, word, 16, |byte| byte.is_ascii_alphabetic());
    let scheme = &bytes[word..word_end];
    let named = ["basic", "token", "apikey", "key", "digest", "negotiate"]
        .iter()
        .any(|name| scheme.eq_ignore_ascii_case(name.as_bytes()));
    let fits = |byte: u8| is_token_byte(byte) || b".+/=~:%".contains(&byte);
    let start = if named && bytes.get(word_end) == Some(&b' ') {
        word_end + 1
    } else {
        word
    };
    let seen = &bytes[start..run_max(bytes, start, WINDOW, fits)];
    let secret = if start == word {
        assigned::is_random(seen)
    } else {
        seen.len() >= 8 && (is_mixed(seen) || seen.ends_with(b"="))
    };
    secret.then(|| start..run(bytes, start, fits))
}

/// The value of a `Cookie:` or `Set-Cookie:` header, to the end of its line.
fn cookie(bytes: &[u8], _at: usize, body: usize) -> Option<Range<usize>> {
    let fits = |byte: u8| {
        (byte.is_ascii_graphic() || byte == b' ') && !matches!(byte, b'"' | b'\'' | b'`' | b'\\')
    };
    let start = run_max(bytes, body, 4, |byte| byte == b' ');
    let seen = &bytes[start..run_max(bytes, start, WINDOW, fits)];
    let equals = seen.iter().position(|&byte| byte == b'=')?;
    let name = &seen[..equals];
    let value = &seen[equals + 1..];
    let secret = !name.is_empty()
        && name.iter().all(|&byte| is_token_byte(byte) || byte == b'.')
        && value.len() >= 8
        && is_mixed(value)
        && !is_placeholder(value);
    secret.then(|| start..run(bytes, start, fits))
}

/// The signature in the query of a shared Azure URL.
fn signature(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"%+/=-_".contains(&byte);
    let in_query = at > 0 && matches!(bytes[at - 1], b'?' | b'&' | b';');
    let seen = &bytes[body..run_max(bytes, body, WINDOW, fits)];
    (in_query && seen.len() >= 30 && is_mixed(seen)).then(|| body..run(bytes, body, fits))
}

/// Three parts separated by dots, the first of them a number in base64.
fn discord(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    if !begins_a_word(bytes, at) {
        return None;
    }
    let first = run_max(bytes, body, 30, is_token_byte);
    if !(22..=28).contains(&(first - at)) || bytes.get(first) != Some(&b'.') {
        return None;
    }
    let second = run_max(bytes, first + 1, 8, is_token_byte);
    if !(6..=7).contains(&(second - first - 1)) || bytes.get(second) != Some(&b'.') {
        return None;
    }
    let least = run_max(bytes, second + 1, 27, is_token_byte) - second - 1;
    (least == 27).then(|| at..run(bytes, second + 1, is_token_byte))
}

/// The part of a diff that is about a file whose whole content is secret.
fn secret_hunk(bytes: &[u8], at: usize, body: usize) -> Option<Range<usize>> {
    let begins_a_line = at == 0 || bytes[at - 1] == b'\n';
    if !begins_a_line {
        return None;
    }
    let line = run_max(bytes, body, 512, |byte| byte != b'\n' && byte != b'\r');
    let names = std::str::from_utf8(&bytes[body..line]).ok()?;
    if !names.split([' ', '\t', '"']).any(is_secret_file) {
        return None;
    }
    let end = memchr::memmem::find(&bytes[line..], b"\ndiff --git ");
    Some(line..end.map_or(bytes.len(), |length| line + length))
}

/// Counts the bytes that the checks have read, so that a test can see that the time is linear.
#[cfg(test)]
pub mod bytes_read {
    use std::cell::Cell;

    thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

    pub fn add(bytes: usize) {
        COUNT.set(COUNT.get() + bytes);
    }

    pub fn take() -> usize {
        COUNT.take()
    }
}
