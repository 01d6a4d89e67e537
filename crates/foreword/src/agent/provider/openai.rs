//! The `openai` provider: any endpoint that speaks OpenAI's chat completions.
//!
//! These are OpenAI itself, gateways, and servers of local models. They agree on the usual case and
//! differ in keys, names of limits, shapes of errors, and thinking inside the answer. This file and
//! `http` handle the differences. An answer is streamed, so that one that repeats itself or takes too
//! long can be stopped.

use foreword_core::model::FailureKind;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::http::stream::{REPEATS_ITSELF, fitting};
use super::http::{self, Endpoint, HttpAnswer, Post, Secret, Service};
use super::{Failure, ModelCall, Provider, Question, TEMPERATURE, Usage, prices};
use crate::agent::conversation::Conversation;
use crate::config;

const SERVICE: Service = Service {
    section: "openai",
    key: "OPENAI_API_KEY",
};

pub struct OpenAi {
    model: String,
    /// The address, or the failure that follows from the settings.
    endpoint: Result<Endpoint, Failure>,
    /// The fields of `OPTIONAL` that the endpoint was found to refuse.
    refused: Vec<&'static str>,
    /// The tokens per second of its last answer.
    pace: Option<f64>,
}

/// Fields that some endpoints refuse by name. A request is sent again without such a field;
/// `max_completion_tokens` takes the place of `max_tokens`, as OpenAI's reasoning models require.
const OPTIONAL: [&str; 4] = [
    "max_tokens",
    "temperature",
    "stream_options",
    "response_format",
];

impl Provider for OpenAi {
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

impl OpenAi {
    pub fn new(settings: &config::OpenAiSection) -> OpenAi {
        OpenAi {
            model: settings.model.trim().to_owned(),
            endpoint: endpoint(settings),
            refused: Vec::new(),
            pace: None,
        }
    }

    pub fn is_local(&self) -> bool {
        self.endpoint.as_ref().is_ok_and(Endpoint::is_local)
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
        let headers = match headers(key) {
            Ok(headers) => headers,
            Err(failure) => return ModelCall::failed(0, failure),
        };
        let is_local = endpoint.is_local();
        let answer_max = fitting(question.answer_max, self.pace, question.patience);
        let post = |refused: &[&str]| Post {
            headers: headers.clone(),
            body: body(&self.model, question, conversation, (answer_max, refused)),
            key: key.map(Secret),
            patience: question.patience,
            now: question.now,
        };
        let refused = &mut self.refused;
        match endpoint
            .post_without_refused(&OPTIONAL, refused, post)
            .await
        {
            Ok((requests, answer)) => {
                self.pace = answer.pace.or(self.pace);
                call(&self.model, is_local, requests, &answer)
            }
            Err(unanswered) => unanswered.into(),
        }
    }
}

fn endpoint(settings: &config::OpenAiSection) -> Result<Endpoint, Failure> {
    let base_url = settings.base_url.trim().trim_end_matches('/');
    let missing = match (base_url.is_empty(), settings.model.trim().is_empty()) {
        (true, true) => "base_url and model are",
        (true, false) => "base_url is",
        (false, true) => "model is",
        (false, false) => {
            let base_url = base_url
                .strip_suffix("/chat/completions")
                .unwrap_or(base_url);
            return Endpoint::new(SERVICE, &format!("{base_url}/chat/completions"));
        }
    };
    let text = format!(
        "openai: {missing} not set; write in config.toml, for instance: [openai] base_url = \"http://127.0.0.1:11434/v1\", model = \"qwen3:8b\""
    );
    Err(Failure::new(FailureKind::Missing, text))
}

/// The headers with the key, if there is one. Local models need none.
fn headers(key: Option<&str>) -> Result<HeaderMap, Failure> {
    let Some(key) = key else {
        return Ok(HeaderMap::new());
    };
    let secret = http::secret_header("authorization", &format!("Bearer {key}"));
    let secret = secret.ok_or_else(|| {
        let text = "OPENAI_API_KEY has characters that no key has";
        Failure::new(FailureKind::Auth, text)
    })?;
    Ok(HeaderMap::from_iter([secret]))
}

fn body(
    model: &str,
    question: &Question<'_>,
    conversation: Option<&Conversation>,
    (answer_max, refused): (u32, &[&str]),
) -> Value {
    let accepts = |field: &str| !refused.contains(&field);
    let limit = if accepts("max_tokens") {
        "max_tokens"
    } else {
        "max_completion_tokens"
    };
    let mut messages = vec![json!({"role": "system", "content": question.system})];
    messages.extend(http::messages(conversation.map_or(&[], |it| &it.exchanges)));
    messages.push(json!({"role": "user", "content": question.text}));
    let mut body = json!({
        "model": model,
        limit: answer_max,
        "messages": messages,
        "stream": accepts("stream_options"),
    });
    if accepts("stream_options") {
        body["stream_options"] = json!({"include_usage": true});
    }
    let schema = question.schema.filter(|_| accepts("response_format"));
    if let Some(schema) = schema.and_then(|it| serde_json::from_str::<Value>(it).ok()) {
        let schema = json!({"name": "memory", "schema": schema});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    if accepts("temperature") {
        body["temperature"] = TEMPERATURE.into();
    }
    body
}

/// The call for an answer. Its cost counts even if the answer cannot be used.
fn call(asked: &str, is_local: bool, requests: u32, answer: &HttpAnswer<'_>) -> ModelCall {
    let reply = match answer.reply() {
        Ok(reply) => reply,
        Err(failure) => return ModelCall::failed(requests, failure),
    };
    let model = http::model(reply);
    let usage = usage(&reply["usage"]);
    let name = model.as_deref().unwrap_or(asked);
    // A local model may have the name of a paid one, so the table of prices does not apply.
    let priced = usage.filter(|_| !is_local);
    ModelCall {
        requests,
        cost_usd: priced.and_then(|usage| prices::cost(name, &usage)),
        usage: usage.unwrap_or_default(),
        answer: text_of(reply).unwrap_or_else(|| Err(answer.strange("no chat completion"))),
        model,
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input: http::tokens(&usage["prompt_tokens"])?,
        output: http::tokens(&usage["completion_tokens"])?,
        cache_read: http::tokens(&usage["prompt_tokens_details"]["cached_tokens"]).unwrap_or(0),
        cache_write: 0,
    })
}

/// None if the reply is not a completion.
fn text_of(reply: &Value) -> Option<Result<String, Failure>> {
    let choice = reply["choices"].get(0)?;
    let message = choice.get("message")?;
    let text = content(&message["content"]);
    let text = without_thinking(&text);
    let failure = |kind, text: &str| Err(Failure::new(kind, text));
    let refused = message["refusal"].as_str().is_some_and(|it| !it.is_empty());
    Some(match choice["finish_reason"].as_str() {
        Some("content_filter") => failure(
            FailureKind::Refusal,
            "the provider's filter stopped the answer",
        ),
        _ if refused => failure(FailureKind::Refusal, "the model declined to answer"),
        Some("length") => Err(Failure {
            partial: text.filter(|text| !text.is_empty()).map(str::to_owned),
            ..Failure::new(
                FailureKind::CutOff,
                "the answer was longer than it may be and ends in the middle",
            )
        }),
        Some(REPEATS_ITSELF) => Err(Failure {
            partial: text.map(str::to_owned),
            ..Failure::new(
                FailureKind::CutOff,
                "the answer repeats itself over and over, and was stopped",
            )
        }),
        Some("error") => failure(
            FailureKind::Broken,
            "the provider gave up in the middle of the answer",
        ),
        _ => match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => Ok(text.to_owned()),
            None => failure(FailureKind::Empty, "the model answered with no text"),
        },
    })
}

/// A string, or parts of which some are text.
fn content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect()
        }
        _ => String::new(),
    }
}

/// The text after `</think>`; none if the thinking never ends.
fn without_thinking(text: &str) -> Option<&str> {
    match text.trim_start().strip_prefix("<think>") {
        Some(thought) => thought
            .split_once("</think>")
            .map(|(_, answer)| answer.trim_start()),
        None => Some(text),
    }
}

#[cfg(test)]
mod tests;
