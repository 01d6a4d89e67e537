//! The `openai` provider: any endpoint that speaks OpenAI's chat completions.
//!
//! These are OpenAI itself, gateways, and servers of local models. They agree on the usual case and
//! differ in keys, names of limits, shapes of errors, and thinking inside the answer. This file and
//! `http` handle the differences.

use foreword_core::model::FailureKind;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::http::{self, Endpoint, HttpAnswer, Post, Secret, Service, Unanswered};
use super::{Failure, ModelCall, Provider, Question, Usage, prices};
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
    limit: Limit,
}

/// The field that limits the tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// The usual one.
    MaxTokens,
    /// The one that OpenAI's reasoning models require.
    MaxCompletionTokens,
}

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
            limit: Limit::MaxTokens,
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
        let post = |limit| Post {
            headers: headers.clone(),
            body: body(&self.model, question, conversation, limit),
            key: key.map(Secret),
            patience: question.patience,
            now: question.now,
        };
        let is_local = endpoint.is_local();
        let mut before = 0;
        let mut answered = endpoint.post(post(self.limit)).await;
        if self.limit == Limit::MaxTokens && answered.as_ref().is_ok_and(wants_other_limit) {
            self.limit = Limit::MaxCompletionTokens;
            before = 1;
            answered = endpoint.post(post(self.limit)).await;
        }
        match answered {
            Ok(answer) => call(&self.model, is_local, before + 1, &answer),
            Err(Unanswered { requests, failure }) => ModelCall::failed(before + requests, failure),
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
    limit: Limit,
) -> Value {
    let limit = match limit {
        Limit::MaxTokens => "max_tokens",
        Limit::MaxCompletionTokens => "max_completion_tokens",
    };
    let mut messages = vec![json!({"role": "system", "content": question.system})];
    messages.extend(http::messages(conversation.map_or(&[], |it| &it.exchanges)));
    messages.push(json!({"role": "user", "content": question.text}));
    json!({
        "model": model,
        limit: question.answer_max,
        "messages": messages,
        "stream": false,
    })
}

/// Whether the model refused `max_tokens` and named `max_completion_tokens` instead.
fn wants_other_limit(answer: &HttpAnswer<'_>) -> bool {
    if answer.status != 400 {
        return false;
    }
    let complaint = answer.complaint();
    let says = |words: &str| complaint.message.to_lowercase().contains(words);
    let is_named = complaint.param.as_deref() == Some("max_tokens") || says("max_tokens");
    is_named && (says("unsupported") || says("not supported"))
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
