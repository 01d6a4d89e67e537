//! The `anthropic` provider: Anthropic's Messages API with the user's key.
//!
//! A question is one request, not streamed. The system prompt is the same for each question and
//! marked for the cache, as is a conversation so far; thinking is not requested. A model is held to the
//! form of an answer by a tool that it has to call. `http` sends the request and handles its
//! failures; the answer is read here.

use foreword_core::model::FailureKind;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::http::{self, Endpoint, HttpAnswer, Post, Secret, Service};
use super::{Failure, ModelCall, Provider, Question, TEMPERATURE, Usage, prices};
use crate::agent::conversation::Conversation;
use crate::config;

const SERVICE: Service = Service {
    section: "anthropic",
    key: "ANTHROPIC_API_KEY",
};

/// The tool that a model calls with its answer.
const TOOL: &str = "remember";

/// Fields that some models refuse by name. The request is sent again without such a field.
const OPTIONAL: [&str; 2] = ["temperature", "tool_choice"];

pub struct Anthropic {
    model: String,
    /// The fields of `OPTIONAL` that the model was found to refuse.
    refused: Vec<&'static str>,
    /// The address, or the failure that follows from the settings.
    endpoint: Result<Endpoint, Failure>,
}

impl Provider for Anthropic {
    async fn ask(
        &mut self,
        question: &Question<'_>,
        conversation: Option<&mut Conversation>,
    ) -> ModelCall {
        let key = http::key(SERVICE);
        self.ask_with(key.as_deref(), question, conversation.as_deref())
            .await
    }
}

impl Anthropic {
    pub fn new(settings: &config::AnthropicSection) -> Anthropic {
        Anthropic {
            model: settings.model.trim().to_owned(),
            refused: Vec::new(),
            endpoint: endpoint(settings),
        }
    }

    async fn ask_with(
        &mut self,
        key: Option<&str>,
        question: &Question<'_>,
        conversation: Option<&Conversation>,
    ) -> ModelCall {
        let endpoint = match &mut self.endpoint {
            Ok(endpoint) => endpoint,
            Err(failure) => return ModelCall::failed(0, failure.clone()),
        };
        let (key, headers) = match headers(key) {
            Ok(headers) => headers,
            Err(failure) => return ModelCall::failed(0, failure),
        };
        let post = |refused: &[&str]| Post {
            headers: headers.clone(),
            body: body(&self.model, question, conversation, refused),
            key: Some(Secret(key)),
            patience: question.patience,
            now: question.now,
        };
        let refused = &mut self.refused;
        match endpoint
            .post_without_refused(&OPTIONAL, refused, post)
            .await
        {
            Ok((requests, answer)) => call(&self.model, requests, &answer),
            Err(unanswered) => unanswered.into(),
        }
    }
}

fn endpoint(settings: &config::AnthropicSection) -> Result<Endpoint, Failure> {
    if settings.model.trim().is_empty() {
        let text = "no model is set; set anthropic.model in config.toml";
        return Err(Failure::new(FailureKind::Missing, text));
    }
    // Users write the address with or without `/v1`, or with the whole path.
    let base_url = settings.base_url.trim().trim_end_matches('/');
    let base_url = base_url.strip_suffix("/messages").unwrap_or(base_url);
    let base_url = base_url.strip_suffix("/v1").unwrap_or(base_url);
    Endpoint::new(SERVICE, &format!("{base_url}/v1/messages"))
}

fn headers(key: Option<&str>) -> Result<(&str, HeaderMap), Failure> {
    let failure = |text| Failure::new(FailureKind::Auth, text);
    let key = key.ok_or_else(|| {
        failure("ANTHROPIC_API_KEY is not set; the worker takes it from the environment in which it is started")
    })?;
    let secret = http::secret_header("x-api-key", key)
        .ok_or_else(|| failure("ANTHROPIC_API_KEY has characters that no key has"))?;
    let version = (
        HeaderName::from_static("anthropic-version"),
        HeaderValue::from_static("2023-06-01"),
    );
    Ok((key, HeaderMap::from_iter([secret, version])))
}

fn body(
    model: &str,
    question: &Question<'_>,
    conversation: Option<&Conversation>,
    refused: &[&str],
) -> Value {
    let accepts = |field: &str| !refused.contains(&field);
    let marked =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let exchanges = conversation.map_or(&[][..], |it| &it.exchanges);
    // The next question of the conversation finds everything up to this mark in the cache.
    let content = match conversation {
        Some(_) => json!([marked(question.text)]),
        None => question.text.into(),
    };
    let mut messages = http::messages(exchanges);
    messages.push(json!({"role": "user", "content": content}));
    let mut body = json!({
        "model": model,
        "max_tokens": question.answer_max,
        "system": [marked(question.system)],
        "messages": messages,
    });
    if accepts("temperature") {
        body["temperature"] = TEMPERATURE.into();
    }
    let schema = question.schema.filter(|_| accepts("tool_choice"));
    if let Some(schema) = schema.and_then(|it| serde_json::from_str::<Value>(it).ok()) {
        body["tools"] = json!([{"name": TOOL, "input_schema": schema}]);
        body["tool_choice"] = json!({"type": "tool", "name": TOOL});
    }
    body
}

/// The call for an answer. Its cost counts even if the answer cannot be used.
fn call(asked: &str, requests: u32, answer: &HttpAnswer<'_>) -> ModelCall {
    let reply = match answer.reply() {
        Ok(reply) => reply,
        Err(failure) => return ModelCall::failed(requests, failure),
    };
    let model = http::model(reply);
    let usage = usage(&reply["usage"]);
    let cost_usd = usage.and_then(|usage| prices::cost(model.as_deref().unwrap_or(asked), &usage));
    ModelCall {
        requests,
        model,
        usage: usage.unwrap_or_default(),
        cost_usd,
        answer: text_of(reply).unwrap_or_else(|| Err(answer.strange("no message"))),
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |name: &str| http::tokens(&usage[name]);
    let cache_read = count("cache_read_input_tokens").unwrap_or(0);
    let cache_write = count("cache_creation_input_tokens").unwrap_or(0);
    Some(Usage {
        // `input_tokens` of the API leaves out the tokens of the cache.
        input: count("input_tokens")? + cache_read + cache_write,
        output: count("output_tokens")?,
        cache_read,
        cache_write,
    })
}

/// None if the reply is not a message.
fn text_of(reply: &Value) -> Option<Result<String, Failure>> {
    let blocks = reply["content"].as_array()?;
    let texts = blocks.iter().filter(|block| block["type"] == "text");
    let text: String = texts.filter_map(|block| block["text"].as_str()).collect();
    let mut called = blocks.iter().filter(|block| block["type"] == "tool_use");
    let text = called.next().map_or(text, |it| it["input"].to_string());
    let failure = |kind, text: &str| Err(Failure::new(kind, text));
    let is_empty = text.trim().is_empty();
    Some(match reply["stop_reason"].as_str() {
        Some("max_tokens" | "model_context_window_exceeded") => Err(Failure {
            partial: (!is_empty).then_some(text),
            ..Failure::new(
                FailureKind::CutOff,
                "the answer was longer than it may be and ends in the middle",
            )
        }),
        Some("refusal") => failure(FailureKind::Refusal, "the model declined to answer"),
        _ if is_empty => failure(FailureKind::Empty, "the model answered with no text"),
        _ => Ok(text),
    })
}

#[cfg(test)]
mod tests;
