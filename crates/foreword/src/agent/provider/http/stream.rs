//! Folds an answer that is streamed as chat completions into the reply that would have come whole.
//!
//! A small model can repeat one sentence until its limit, and a slow one can need longer than there
//! is time. Such an answer is stopped, and what came of it is kept.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Repeats of parts that are longer than this, in bytes, are not looked for.
const PERIOD_MAX: usize = 400;
/// An answer is stopped when a part at its end was repeated this many times.
const REPEATS: usize = 3;
/// The repeats must have at least this many bytes together.
const REPEATED_MIN: usize = 200;

/// The `finish_reason` of an answer that was stopped because it repeats itself.
pub const REPEATS_ITSELF: &str = "repeats itself";
/// The `finish_reason` of an answer that was stopped because it took too long: the one that endpoints
/// give for an answer that reached its limit, since it is cut off in the same way.
pub const TOOK_TOO_LONG: &str = "length";

#[derive(Debug, Default)]
pub struct Fold {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    model: Value,
    usage: Value,
    refusal: Value,
    finish: Option<String>,
    error: Option<Value>,
    text: String,
    /// The pieces of the text, each of which is about one token.
    pieces: u64,
    /// The length of the text when it was last searched for repeats.
    searched: usize,
    first: Option<Instant>,
    done: bool,
}

impl Fold {
    /// Takes the next bytes; true if nothing more is needed.
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(String::from_utf8_lossy(&line).trim());
            }
        }
        if self.text.len() > self.searched + REPEATED_MIN / 2 {
            self.searched = self.text.len();
            if is_repeating(&self.text) {
                self.stop(REPEATS_ITSELF);
            }
        }
        self.done || self.error.is_some()
    }

    fn take_line(&mut self, line: &str) {
        let Some(data) = line.strip_prefix("data:").map(str::trim) else {
            return;
        };
        self.done |= data == "[DONE]";
        let Ok(piece) = serde_json::from_str::<Value>(data) else {
            return;
        };
        if piece.get("error").is_some_and(|error| !error.is_null()) {
            self.error = Some(piece);
            return;
        }
        let choice = &piece["choices"][0];
        if let Some(text) = choice["delta"]["content"]
            .as_str()
            .filter(|it| !it.is_empty())
        {
            self.first.get_or_insert_with(Instant::now);
            self.text.push_str(text);
            self.pieces += 1;
        }
        if let Some(finish) = choice["finish_reason"].as_str() {
            self.finish = Some(finish.to_owned());
        }
        for (name, value) in [("model", &mut self.model), ("usage", &mut self.usage)] {
            if !piece[name].is_null() {
                *value = piece[name].clone();
            }
        }
        if choice["delta"]["refusal"].is_string() {
            self.refusal = choice["delta"]["refusal"].clone();
        }
    }

    /// Ends the answer here, for this reason. False if nothing of it has come.
    pub fn stop(&mut self, why: &str) -> bool {
        self.finish = Some(why.to_owned());
        self.done = true;
        !self.text.is_empty()
    }

    /// Whether the answer is whole, also if its last line is missing.
    pub fn is_whole(&self) -> bool {
        self.done || self.error.is_some() || self.finish.is_some()
    }

    /// The tokens per second; none before 20 tokens have come.
    pub fn pace(&self) -> Option<f64> {
        let seconds = self.first?.elapsed().as_secs_f64();
        (self.pieces >= 20 && seconds > 0.0).then(|| self.pieces as f64 / seconds)
    }

    /// The reply. Without the server's count of tokens they are estimated, from the length of the
    /// request.
    pub fn reply(self, request_bytes: usize) -> Value {
        if let Some(error) = self.error {
            return error;
        }
        let usage = match self.usage {
            Value::Null => {
                json!({"prompt_tokens": request_bytes / 4, "completion_tokens": self.pieces})
            }
            usage => usage,
        };
        json!({
            "model": self.model,
            "usage": usage,
            "choices": [{
                "message": {"content": self.text, "refusal": self.refusal},
                "finish_reason": self.finish,
            }],
        })
    }
}

/// The limit of an answer in tokens: `answer_max`, or fewer if the endpoint is too slow to write that
/// many in this time, but at least 256.
pub fn fitting(answer_max: u32, pace: Option<f64>, time: Duration) -> u32 {
    let fits = pace.map_or(f64::MAX, |pace| pace * time.as_secs_f64());
    answer_max.min(fits.max(256.0) as u32)
}

/// Whether the end of a text repeats one part over and over.
fn is_repeating(text: &str) -> bool {
    let bytes = text.as_bytes();
    (1..=PERIOD_MAX).any(|period| {
        let length = (period * REPEATS).max(REPEATED_MIN);
        let Some(start) = bytes.len().checked_sub(length).filter(|it| *it >= period) else {
            return false;
        };
        bytes[start..] == bytes[start - period..bytes.len() - period]
    })
}

#[cfg(test)]
mod tests;
