//! Reads the output of the claude CLI: one JSON message a line, the last one a `result`.
//!
//! Only the fields that are used are decoded. A failed call also ends with `subtype: "success"`, and
//! the error's text is in the place of an answer; only `is_error` differs. After an answer that was
//! cut off, broken or empty the client goes on by sending a message in the user's name: each such
//! message is one more request.

use foreword_core::model::{FailureKind, Millis};
use serde::Deserialize;

use super::failure;
use crate::agent::provider::{Failure, ModelCall, Usage};

/// The question in the client's input format. It must not begin with a slash, which would make it
/// one of the client's commands.
pub fn user_message(text: &str) -> Vec<u8> {
    let command = text.trim_start().starts_with('/');
    let text = format!("{}{text}", if command { "Text:\n" } else { "" });
    let message = serde_json::json!({
        "type": "user",
        "message": {"role": "user", "content": text},
    });
    format!("{message}\n").into_bytes()
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StreamMessage {
    System(System),
    Assistant(Assistant),
    User {},
    RateLimitEvent {
        rate_limit_info: RateLimit,
    },
    Result(Box<Outcome>),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct System {
    subtype: String,
    model: Option<String>,
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct Assistant {
    message: StreamReply,
    error: Option<String>,
}

#[derive(Deserialize)]
struct StreamReply {
    model: Option<String>,
    content: Vec<StreamBlock>,
}

#[derive(Deserialize)]
struct StreamBlock {
    text: Option<String>,
}

/// The limits of a subscription. Documented, but not tested here: it needs a login.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RateLimit {
    /// In seconds since 1970.
    resets_at: Option<i64>,
}

#[derive(Debug, Default, Clone, Deserialize)]
pub struct Outcome {
    #[serde(default)]
    pub is_error: bool,
    pub result: Option<String>,
    pub stop_reason: Option<String>,
    pub terminal_reason: Option<String>,
    pub api_error: Option<String>,
    pub api_error_status: Option<u16>,
    total_cost_usd: Option<f64>,
    #[serde(default)]
    usage: Tokens,
    #[serde(default, rename = "modelUsage")]
    model_usage: std::collections::BTreeMap<String, ModelTokens>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ModelTokens {
    output_tokens: u64,
}

/// Collects the messages about one question.
#[derive(Debug, Default)]
pub struct StreamReader {
    /// The client's total cost of the conversation before the question.
    usd_before: f64,
    /// The client's id of the conversation.
    session: Option<String>,
    requests: u32,
    model: Option<String>,
    /// The answer, which may come in several messages and requests.
    answer: String,
    /// The client's own name for the error.
    error: Option<String>,
    resets_at: Option<Millis>,
    outcome: Option<Outcome>,
}

impl StreamReader {
    pub fn new(usd_before: f64) -> StreamReader {
        StreamReader {
            usd_before,
            ..StreamReader::default()
        }
    }

    /// The id of the conversation; none if the client did not begin to answer.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The client's total cost of the conversation.
    pub fn total_usd(&self) -> f64 {
        let outcome = self.outcome.as_ref();
        outcome.map_or(self.usd_before, |it| it.total_cost_usd.unwrap_or(0.0))
    }

    /// Reads one line. Unknown messages and lines that are not JSON are ignored.
    pub fn take(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(StreamMessage::System(system)) => match system.subtype.as_str() {
                // `init` comes right before the first request.
                "init" => {
                    self.requests = self.requests.max(1);
                    self.model = system.model.or(self.model.take());
                    self.session = system.session_id;
                }
                "api_retry" => self.requests += 1,
                _ => {}
            },
            Ok(StreamMessage::User {}) => self.requests += 1,
            Ok(StreamMessage::Assistant(assistant)) => self.take_reply(assistant),
            Ok(StreamMessage::RateLimitEvent { rate_limit_info }) => {
                self.resets_at = rate_limit_info.resets_at.map(|at| at.saturating_mul(1000));
            }
            Ok(StreamMessage::Result(outcome)) => self.outcome = Some(*outcome),
            Ok(StreamMessage::Other) | Err(_) => {}
        }
    }

    fn take_reply(&mut self, assistant: Assistant) {
        if assistant.error.is_some() {
            self.error = assistant.error;
            return;
        }
        self.model = assistant.message.model.or(self.model.take());
        for block in assistant.message.content {
            self.answer.push_str(block.text.as_deref().unwrap_or(""));
        }
    }

    pub fn is_complete(&self) -> bool {
        self.outcome.is_some()
    }

    /// The call, after the process has ended.
    pub fn call(mut self, complaint: &str, now: Millis) -> ModelCall {
        let Some(outcome) = self.outcome.take() else {
            let text = match complaint {
                "" => "the claude CLI ended without an answer".to_owned(),
                complaint => format!("the claude CLI ended without an answer: {complaint}"),
            };
            return self.failed(Failure::new(FailureKind::Broken, text));
        };
        let usage = outcome.usage();
        let cost_usd = outcome.cost_of_this(self.usd_before);
        let answer = if outcome.is_error {
            Err(self.failure(&outcome, now))
        } else {
            let result = outcome.result.unwrap_or_default();
            let answer = if self.answer.is_empty() {
                result
            } else {
                std::mem::take(&mut self.answer)
            };
            match answer.trim() {
                "" => Err(Failure::new(
                    FailureKind::Empty,
                    "the model answered without a word",
                )),
                _ => Ok(answer),
            }
        };
        ModelCall {
            requests: self.requests,
            model: self.model,
            usage,
            cost_usd,
            answer,
        }
    }

    fn failure(&mut self, outcome: &Outcome, now: Millis) -> Failure {
        let kind = failure::kind(self.error.as_deref(), outcome);
        let text = outcome.result.as_deref().unwrap_or("no reason was given");
        match (kind, outcome.api_error_status) {
            // Without a login the client sends no request.
            (FailureKind::Auth, None) => self.requests = 0,
            // No connection, so no request.
            (FailureKind::Outage, None) if text.contains("ECONNREFUSED") => self.requests = 0,
            // The client repeats the request without streaming, and does not report it.
            (_, Some(404)) => self.requests += 1,
            _ => {}
        }
        let mut failure = Failure::new(kind, foreword_core::text::shorten(text, 300));
        match kind {
            FailureKind::RateLimit => failure.retry_at = self.resets_at.filter(|at| *at > now),
            FailureKind::CutOff => failure.partial = Some(std::mem::take(&mut self.answer)),
            _ => {}
        }
        failure
    }

    /// The call, if it failed before a result.
    pub fn failed(self, failure: Failure) -> ModelCall {
        let mut call = ModelCall::failed(self.requests, failure);
        call.model = self.model;
        call
    }
}

impl Outcome {
    fn usage(&self) -> Usage {
        let it = &self.usage;
        let cached = it.cache_creation_input_tokens + it.cache_read_input_tokens;
        Usage {
            input: it.input_tokens + cached,
            output: it.output_tokens,
            cache_read: it.cache_read_input_tokens,
            cache_write: it.cache_creation_input_tokens,
        }
    }

    /// The cost of this question. The client reports the total of the conversation; if its last process
    /// was killed, it counts from this question on.
    fn cost_of_this(&self, before: f64) -> Option<f64> {
        let total = self.total_cost_usd?;
        let all: u64 = self.model_usage.values().map(|it| it.output_tokens).sum();
        let is_first = all == self.usage.output_tokens;
        Some(if is_first { total } else { total - before }.max(0.0))
    }
}
