//! A provider's cache of prompts, with a clock that the bench moves.
//!
//! A request is a list of parts. What a provider has cached is a beginning of such a list, up to a
//! part that was marked; OpenAI treats every part as marked. An entry is lost five minutes after
//! its last use. Beginnings shorter than a minimum are not cached.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use foreword_core::text;

/// An entry is lost this many minutes after its last use.
const LIFE: u64 = 5;

/// One block of a request.
pub struct Part {
    pub text: String,
    pub marked: bool,
}

/// The shortest beginning that is cached, in tokens.
#[derive(Clone, Copy)]
pub struct CacheMin(pub u64);

/// The tokens of one request: all of its input, those read from the cache, those written to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTokens {
    pub input: u64,
    pub read: u64,
    pub written: u64,
}

#[derive(Debug, Default)]
pub struct PromptCache {
    /// Minutes since the start.
    now: u64,
    /// Hashes of beginnings, each with the time of its last use.
    entries: HashMap<u64, u64>,
}

impl PromptCache {
    pub fn let_pass(&mut self, minutes: u64) {
        self.now += minutes;
        self.entries.retain(|_, used_at| *used_at + LIFE > self.now);
    }

    /// Counts a request, and caches its beginnings.
    pub fn take(&mut self, parts: &[Part], min: CacheMin) -> RequestTokens {
        let mut hasher = DefaultHasher::new();
        let mut tokens = RequestTokens::default();
        let mut marked = 0;
        let mut new = Vec::new();
        for part in parts {
            part.text.hash(&mut hasher);
            tokens.input += text::tokens(&part.text) as u64;
            let beginning = hasher.finish();
            if tokens.input < min.0 {
                continue;
            }
            if self.entries.contains_key(&beginning) {
                tokens.read = tokens.input;
                new.push(beginning);
            }
            if part.marked {
                marked = tokens.input;
                new.push(beginning);
            }
        }
        tokens.written = marked.saturating_sub(tokens.read);
        self.entries
            .extend(new.into_iter().map(|it| (it, self.now)));
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_read_until_five_minutes_after_its_last_use() {
        let part = |text: &str, marked| Part {
            text: text.repeat(40),
            marked,
        };
        let first = [part("a", false), part("b", true)];
        let second = [part("a", false), part("b", false), part("c", true)];
        let count = |read, written, input| RequestTokens {
            input,
            read,
            written,
        };
        let mut cache = PromptCache::default();
        let min = CacheMin(20);
        assert_eq!(cache.take(&first, min), count(0, 20, 20));
        cache.let_pass(4);
        assert_eq!(cache.take(&second, min), count(20, 10, 30));
        cache.let_pass(4);
        assert_eq!(cache.take(&first, min), count(20, 0, 20));
        cache.let_pass(5);
        assert_eq!(cache.take(&first, min), count(0, 20, 20));
        assert_eq!(cache.take(&first[..1], min), count(0, 0, 10));
    }
}
