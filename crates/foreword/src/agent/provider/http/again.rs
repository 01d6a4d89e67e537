//! The time from which a provider accepts requests again, read from the headers of an error.
//!
//! `retry-after` is used if it is there. Else it is a rate limit's reset time: the latest of the
//! limits with nothing remaining, because all of them must be over. If no limit says that nothing
//! remains, it is the earliest reset time: a request too early costs little, and waiting for the
//! wrong limit could take a day.

use foreword_core::model::{FailureKind, Millis};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use reqwest::header::HeaderMap;

/// The longest wait that is accepted from a header.
const LONGEST: Millis = 7 * 24 * 60 * 60 * 1000;

/// The headers of each limit: the remaining amount, and the reset time.
const LIMITS: &[(&str, &str)] = &[
    (
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ),
    (
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
    ),
    (
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-input-tokens-reset",
    ),
    (
        "anthropic-ratelimit-output-tokens-remaining",
        "anthropic-ratelimit-output-tokens-reset",
    ),
    (
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
    ),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
];

/// None if the headers give no time, or one that is over.
pub fn retry_at(kind: FailureKind, headers: &HeaderMap, now: Millis) -> Option<Millis> {
    let at = match kind {
        FailureKind::RateLimit => after(headers, now).or_else(|| reset(headers, now)),
        FailureKind::Outage => after(headers, now),
        _ => None,
    };
    at.filter(|&at| at > now)
        .map(|at| at.min(now.saturating_add(LONGEST)))
}

fn after(headers: &HeaderMap, now: Millis) -> Option<Millis> {
    let millis = said(headers, "retry-after-ms").and_then(|text| text.parse().ok());
    let text = said(headers, "retry-after");
    let seconds = || text?.parse().ok().map(|seconds: f64| seconds * 1000.0);
    let date = || rfc2822::DateTimeParser::new().parse_timestamp(text?).ok();
    millis
        .or_else(seconds)
        .map(|millis| now.saturating_add(millis.ceil() as Millis))
        .or_else(|| date().map(Timestamp::as_millisecond))
}

fn reset(headers: &HeaderMap, now: Millis) -> Option<Millis> {
    let limits = LIMITS.iter().filter_map(|(remaining, reset)| {
        let used_up = said(headers, remaining) == Some("0");
        Some((used_up, time(said(headers, reset)?, now)?))
    });
    let limits: Vec<(bool, Millis)> = limits.filter(|(_, at)| *at > now).collect();
    let used_up = limits.iter().filter(|(used_up, _)| *used_up);
    let latest = used_up.map(|(_, at)| *at).max();
    latest.or_else(|| limits.iter().map(|(_, at)| *at).min())
}

/// A time such as `2026-11-16T09:00:00Z`, or a duration from now: `6m0s`, `1.5s`.
fn time(text: &str, now: Millis) -> Option<Millis> {
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp.as_millisecond());
    }
    let duration: SignedDuration = text.parse().ok()?;
    Some(now.saturating_add(Millis::try_from(duration.as_millis()).ok()?))
}

fn said<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    type Headers<'a> = &'a [(&'static str, &'static str)];

    /// 2026-11-16T09:00:00Z.
    const NOW: Millis = 1_794_819_600_000;

    fn wait(kind: FailureKind, headers: Headers<'_>) -> Option<Millis> {
        let headers = headers.iter().map(|(name, value)| {
            let value = HeaderValue::from_static(value);
            (HeaderName::from_static(name), value)
        });
        retry_at(kind, &headers.collect(), NOW).map(|at| at - NOW)
    }

    #[test]
    fn a_time_is_found_wherever_it_is_said() {
        let cases: &[(Headers<'_>, Option<Millis>)] = &[
            (&[], None),
            (&[("retry-after", "30")], Some(30_000)),
            (&[("retry-after", "0.5")], Some(500)),
            (&[("retry-after", "0")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "1e300")], Some(LONGEST)),
            (
                &[("retry-after", "Mon, 16 Nov 2026 09:02:00 GMT")],
                Some(120_000),
            ),
            (&[("retry-after", "Sun, 15 Nov 2026 09:02:00 GMT")], None),
            (
                &[("retry-after-ms", "1500"), ("retry-after", "2")],
                Some(1500),
            ),
            (
                &[("anthropic-ratelimit-tokens-reset", "2026-11-16T09:00:10Z")],
                Some(10_000),
            ),
            (&[("x-ratelimit-reset-requests", "6m0s")], Some(360_000)),
            (&[("x-ratelimit-reset-tokens", "1.5s")], Some(1500)),
            (&[("x-ratelimit-reset-tokens", "86ms")], Some(86)),
            (&[("x-ratelimit-reset-tokens", "1h2m3.5s")], Some(3_723_500)),
            (&[("x-ratelimit-reset-tokens", "later")], None),
        ];
        for (headers, expected) in cases {
            assert_eq!(
                wait(FailureKind::RateLimit, headers),
                *expected,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn all_that_is_used_up_must_be_full_again_else_the_first_reset_will_do() {
        let requests = ("anthropic-ratelimit-requests-reset", "2026-11-16T09:00:10Z");
        let input = (
            "anthropic-ratelimit-input-tokens-reset",
            "2026-11-16T09:00:20Z",
        );
        let output = (
            "anthropic-ratelimit-output-tokens-reset",
            "2026-11-16T09:00:30Z",
        );
        let all = [requests, input, output];
        assert_eq!(wait(FailureKind::RateLimit, &all), Some(10_000));
        let used_up = [
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-output-tokens-remaining", "7"),
        ];
        let all = [&all[..], &used_up[..]].concat();
        assert_eq!(wait(FailureKind::RateLimit, &all), Some(20_000));
    }

    #[test]
    fn an_outage_says_when_by_retry_after_only_and_a_wrong_key_never() {
        let headers = &[("retry-after", "3")];
        assert_eq!(wait(FailureKind::Outage, headers), Some(3000));
        assert_eq!(wait(FailureKind::Auth, headers), None);
        let headers = &[("x-ratelimit-reset-requests", "6m0s")];
        assert_eq!(wait(FailureKind::Outage, headers), None);
    }
}
