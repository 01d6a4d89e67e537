//! Reads JSON that hosts write: strings that may be of another type, and broken emoji.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A JSON string, borrowed where it has no escapes.
#[derive(Deserialize)]
pub struct Plain<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The text of a JSON string; none if the value has another type.
pub fn plain_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<Plain<'_>>(raw.get()) {
        Ok(plain) => Some(plain.0),
        Err(_) => serde_json::from_str(&mend(raw.get())?).ok().map(Cow::Owned),
    }
}

/// Replaces unpaired surrogates: half an emoji, cut by a host that counts in UTF-16, which Rust
/// does not accept in a text. None if there are none. Called only if the JSON did not parse.
pub fn mend(json: &str) -> Option<String> {
    let input = json.as_bytes();
    let mut mended: Option<String> = None;
    let mut at = 0;
    while let Some(found) = input
        .get(at..)
        .and_then(|rest| rest.iter().position(|&byte| byte == b'\\'))
    {
        at += found;
        let Some(unit) = surrogate(input, at) else {
            at += 2;
            continue;
        };
        let paired = unit < 0xdc00 && surrogate(input, at + 6).is_some_and(|low| low >= 0xdc00);
        if !paired {
            let mended = mended.get_or_insert_with(|| json.to_owned());
            mended.replace_range(at..at + 6, "\\ufffd");
        }
        at += if paired { 12 } else { 6 };
    }
    mended
}

/// The surrogate that is written as `\uXXXX` at this position.
fn surrogate(input: &[u8], at: usize) -> Option<u16> {
    let digits = input.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}
