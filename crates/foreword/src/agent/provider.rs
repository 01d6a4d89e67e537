//! The providers that answer the compressor's questions.
//!
//! `claude` runs the user's own CLI; `anthropic` and `openai` use HTTP. A question stands alone, or is
//! asked in a conversation. The result is a `ModelCall`: its cost, and an answer or
//! one of a fixed set of failures. `offline` is not here: it derives from the events without a
//! model. `config::provider` has the list of providers and chooses one.

pub mod anthropic;
pub mod claude;
pub mod http;
pub mod openai;
pub mod prices;
#[cfg(test)]
pub mod scripted;

use std::time::Duration;

use foreword_core::ledger::{Answered, Failed};
use foreword_core::model::{FailureKind, Millis};

use super::conversation::Conversation;
use crate::config::provider::Name;
use crate::config::{Config, ConversationSetting};
use crate::home::Home;

/// The temperature that is requested, where an endpoint accepts one: low, so that a model keeps to the
/// recording.
const TEMPERATURE: f64 = 0.2;

/// One question to a model.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The system prompt. It is the same for each question, so that the provider can cache it.
    pub system: &'a str,
    pub text: &'a str,
    /// The time after which a call without an answer has failed.
    pub patience: Duration,
    /// The most tokens of the answer.
    pub answer_max: u32,
    /// The JSON schema that the answer is held to, where the provider can do that.
    pub schema: Option<&'static str>,
    pub now: Millis,
}

/// The outcome of a question. A failed call may cost, too.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    /// The number of requests that were sent. The claude CLI may send several.
    pub requests: u32,
    /// The model's name in the answer.
    pub model: Option<String>,
    pub usage: Usage,
    /// None if the price of the model is not known.
    pub cost_usd: Option<f64>,
    pub answer: Result<String, Failure>,
}

/// Tokens, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input tokens, including those read from a cache or written to one.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

pub trait Provider {
    /// Sends a question: the next one of a conversation, or one that stands alone. The caller adds the
    /// exchange to the conversation.
    async fn ask(
        &mut self,
        question: &Question<'_>,
        conversation: Option<&mut Conversation>,
    ) -> ModelCall;

    /// Deletes the provider's own record of a conversation.
    async fn forget(&mut self, _conversation: &Conversation) {}

    /// Ends processes that were last used at this time or before. Returns the time at which the least
    /// recently used of the others was used; none if no process is left.
    async fn end_unused(&mut self, _since: Millis) -> Option<Millis> {
        None
    }
}

/// What the worker does after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Everything waits for a while; the batch is not counted as failed.
    Pause,
    /// The batch is derived offline.
    StandIn,
}

pub fn remedy(kind: FailureKind) -> Remedy {
    use FailureKind as Kind;
    match kind {
        Kind::Auth
        | Kind::Billing
        | Kind::RateLimit
        | Kind::Model
        | Kind::Missing
        | Kind::Outage
        | Kind::Timeout
        | Kind::Broken => Remedy::Pause,
        Kind::TooLong
        | Kind::CutOff
        | Kind::Refusal
        | Kind::Empty
        | Kind::Prose
        | Kind::Schema
        | Kind::Request => Remedy::StandIn,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// One line for the user, without secrets.
    pub text: String,
    /// The time from which the provider accepts requests again, if it gave one.
    pub retry_at: Option<Millis>,
    /// The text of an answer that was cut off. Its complete blocks can still be used.
    pub partial: Option<String>,
}

impl Failure {
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Failure {
        Failure {
            kind,
            text: foreword_core::text::flat(&text.into()),
            retry_at: None,
            partial: None,
        }
    }
}

impl ModelCall {
    /// A call that failed before anything was counted.
    pub fn failed(requests: u32, failure: Failure) -> ModelCall {
        ModelCall {
            requests,
            model: None,
            usage: Usage::default(),
            cost_usd: None,
            answer: Err(failure),
        }
    }

    /// The call's entry in the ledger. `failure` is given by the caller, who knows whether the
    /// answer could be read.
    pub fn answered(&self, failure: Option<Failed>) -> Answered {
        Answered {
            requests: self.requests,
            model: self.model.clone(),
            input_tokens: self.usage.input,
            output_tokens: self.usage.output,
            cache_read_tokens: self.usage.cache_read,
            cache_write_tokens: self.usage.cache_write,
            cost_usd: self.cost_usd,
            failure,
        }
    }
}

/// A provider with a model, ready to be asked.
pub enum Model {
    Claude(claude::Claude),
    Anthropic(anthropic::Anthropic),
    OpenAi(openai::OpenAi),
    #[cfg(test)]
    Scripted(scripted::Scripted),
}

impl Model {
    /// None for `offline`.
    pub fn new(name: Name, config: &Config, home: &Home) -> Option<Model> {
        match name {
            Name::Claude => Some(Model::Claude(claude::Claude::new(&config.claude, home))),
            Name::Anthropic => Some(Model::Anthropic(anthropic::Anthropic::new(
                &config.anthropic,
            ))),
            Name::OpenAi => Some(Model::OpenAi(openai::OpenAi::new(&config.openai))),
            Name::Agent | Name::Offline => None,
        }
    }

    /// Whether the questions about a session share a conversation. With `auto` they do, except with a
    /// local model, which reads little at once, and slowly. `docs/models.md` has what both cost.
    pub fn converses(&self, setting: ConversationSetting) -> bool {
        match (setting, self) {
            (ConversationSetting::Auto, Model::OpenAi(openai)) => !openai.is_local(),
            (ConversationSetting::Auto | ConversationSetting::Session, _) => true,
            (ConversationSetting::Question, _) => false,
        }
    }
}

impl Provider for Model {
    async fn ask(
        &mut self,
        question: &Question<'_>,
        conversation: Option<&mut Conversation>,
    ) -> ModelCall {
        match self {
            Model::Claude(claude) => claude.ask(question, conversation).await,
            Model::Anthropic(anthropic) => anthropic.ask(question, conversation).await,
            Model::OpenAi(openai) => openai.ask(question, conversation).await,
            #[cfg(test)]
            Model::Scripted(scripted) => scripted.ask(question, conversation).await,
        }
    }

    async fn forget(&mut self, conversation: &Conversation) {
        if let Model::Claude(claude) = self {
            claude.forget(conversation).await;
        }
    }

    async fn end_unused(&mut self, since: Millis) -> Option<Millis> {
        match self {
            Model::Claude(claude) => claude.end_unused(since).await,
            _ => None,
        }
    }
}
