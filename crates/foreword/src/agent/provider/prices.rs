//! The cost of a call, from a dated table of list prices.
//!
//! For a model that is not in the table, budgets count tokens instead. When a price changes, check
//! all rows and set `AS_OF`.

use super::Usage;

/// The month in which the prices were checked.
pub const AS_OF: &str = "2026-11";

/// US dollars per million tokens.
struct Price {
    input: f64,
    output: f64,
    cache_write: f64,
    cache_read: f64,
}

/// Anthropic's prices: writing to the cache costs 1.25 times the input price, reading from it a tenth.
const fn anthropic(input: f64, output: f64) -> Price {
    Price {
        input,
        output,
        cache_write: input * 1.25,
        cache_read: input * 0.1,
    }
}

/// OpenAI's prices: writing to the cache costs nothing extra.
const fn openai(input: f64, output: f64, cache_read: f64) -> Price {
    Price {
        input,
        output,
        cache_write: input,
        cache_read,
    }
}

/// Prices of the newer Anthropic models that charge a twentieth for reading from the cache.
const fn anthropic_5_5(input: f64, output: f64) -> Price {
    Price {
        cache_read: input * 0.05,
        ..anthropic(input, output)
    }
}

const PRICES: &[(&str, Price)] = &[
    // The prices that Claude Code 2.1.325 uses for questions of this length.
    ("claude-haiku-5-5", anthropic(0.1, 0.5)),
    ("claude-sonnet-5-5", anthropic_5_5(2.0, 10.0)),
    ("claude-opus-5-5", anthropic_5_5(4.0, 20.0)),
    ("claude-haiku-4-5", anthropic(1.0, 5.0)),
    ("claude-sonnet-4-5", anthropic(3.0, 15.0)),
    ("claude-sonnet-4", anthropic(3.0, 15.0)),
    ("claude-sonnet-4-0", anthropic(3.0, 15.0)),
    ("claude-opus-4-5", anthropic(5.0, 25.0)),
    ("claude-opus-4-1", anthropic(15.0, 75.0)),
    ("claude-3-5-haiku", anthropic(0.8, 4.0)),
    ("gpt-4o-mini", openai(0.15, 0.6, 0.075)),
    ("gpt-4o", openai(2.5, 10.0, 1.25)),
    ("gpt-4.1-mini", openai(0.4, 1.6, 0.1)),
    ("gpt-4.1-nano", openai(0.1, 0.4, 0.025)),
    ("gpt-5-mini", openai(0.25, 2.0, 0.025)),
    ("gpt-5-nano", openai(0.05, 0.4, 0.005)),
];

/// How much more than single questions one conversation a session costs at most (`docs/models.md`).
const IN_CONVERSATION: f64 = 1.41;

/// The cost of a recorded day of 150 tool uses (`foreword-bench agent`) with a model, or with the
/// cheapest Claude model if its price is not known.
pub fn recorded_day(model: &str) -> f64 {
    let day = Usage {
        input: 45_000,
        output: 8_600,
        ..Usage::default()
    };
    let known = cost(model, &day).or_else(|| cost("claude-haiku-5-5", &day));
    known.unwrap_or_default() * IN_CONVERSATION
}

/// The cost in US dollars; none if the model's price is not known.
pub fn cost(model: &str, usage: &Usage) -> Option<f64> {
    let price = price(model)?;
    let cached = usage.cache_read + usage.cache_write;
    let plain = usage.input.saturating_sub(cached);
    let dollars = plain as f64 * price.input
        + usage.cache_write as f64 * price.cache_write
        + usage.cache_read as f64 * price.cache_read
        + usage.output as f64 * price.output;
    Some(dollars / 1e6)
}

/// The price of a conversation's history as a share of the price of new input: the price of reading it
/// from the provider's cache or, if it is no longer there, of writing it there again. 1 if the model's
/// price is not known.
pub fn share_of_history(model: Option<&str>, is_cached: bool) -> f64 {
    match model.and_then(price) {
        Some(price) if is_cached => price.cache_read / price.input,
        Some(price) => price.cache_write / price.input,
        None => 1.0,
    }
}

/// The price of a model by its name, or by the claude CLI's name for the newest of its kind: `haiku`.
fn price(model: &str) -> Option<&'static Price> {
    let newest = ["haiku", "sonnet", "opus"].contains(&model);
    let newest = newest.then(|| format!("claude-{model}-"));
    let is_it = |name: &str| match &newest {
        Some(start) => name.starts_with(start),
        None => is(model, name),
    };
    let (_, price) = PRICES.iter().find(|(name, _)| is_it(name))?;
    Some(price)
}

/// Whether a model has this name, alone or with the date of a version: `claude-haiku-4-5-20251001`,
/// `gpt-4o-2024-08-06`, `claude-3-5-haiku-latest`.
fn is(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else {
        return false;
    };
    let is_date = |version: &str| {
        let digits = version.bytes().filter(u8::is_ascii_digit).count();
        digits == 8
            && version
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    rest.is_empty()
        || rest
            .strip_prefix('-')
            .is_some_and(|version| version == "latest" || is_date(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: u64 = 1_000_000;

    #[test]
    fn a_model_is_known_by_its_name_and_by_that_of_its_versions() {
        let usage = Usage {
            input: MILLION,
            output: MILLION,
            ..Usage::default()
        };
        let cases = [
            ("haiku", Some(0.6)),
            ("claude-haiku-4-5", Some(6.0)),
            ("claude-haiku-4-5-20251001", Some(6.0)),
            ("claude-sonnet-4-20250514", Some(18.0)),
            ("claude-sonnet-4-5-20250929", Some(18.0)),
            ("claude-opus-4-5", Some(30.0)),
            ("claude-opus-4-1-20250805", Some(90.0)),
            ("claude-3-5-haiku-latest", Some(4.8)),
            ("gpt-4o-mini-2024-07-18", Some(0.75)),
            ("gpt-4o", Some(12.5)),
            ("gpt-4o-audio-preview", None),
            ("claude-sonnet-4-9", None),
            ("claude-haiku-4-5x", None),
            ("qwen3:8b", None),
            ("", None),
        ];
        for (model, expected) in cases {
            assert_eq!(cost(model, &usage), expected, "{model}");
        }
    }

    #[test]
    fn what_the_cache_gave_or_took_has_its_own_price() {
        let usage = Usage {
            input: 3 * MILLION,
            output: 0,
            cache_read: MILLION,
            cache_write: MILLION,
        };
        assert_eq!(cost("claude-haiku-4-5", &usage), Some(1.0 + 1.25 + 0.1));
    }
}
