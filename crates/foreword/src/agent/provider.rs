//! Who answers the compressor's questions.
//!
//! Three providers have a model answer: `claude` (the user's own CLI), `anthropic`
//! and `openai` (HTTP). A question stands alone: what the model should know of
//! earlier is in it. Whatever comes back is a `Call`: what it cost, and a reply or
//! one of a closed set of failures. `offline` needs no question; it derives from the
//! events themselves. `choose` says which one is used and why.

pub mod anthropic;
pub mod claude;
pub mod http;
pub mod openai;
pub mod prices;
#[cfg(test)]
pub mod scripted;

use std::time::Duration;

use foreword_core::model::{FailureKind, Millis};
use foreword_core::store::ledger::{Answered, Failed};

use crate::config::Config;
use crate::config::provider::Name;
use crate::home::Home;

/// One question to a model, whole.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The same from question to question, so that it can be cached.
    pub system: &'a str,
    pub text: &'a str,
    /// After so long without an answer the call has failed.
    pub patience: Duration,
    /// So many tokens an answer may have.
    pub answer_max: u32,
    pub now: Millis,
}

/// What became of a question. A failed call costs, too.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// How many requests went out: the claude CLI tries again by itself.
    pub requests: u32,
    /// As the answer names it.
    pub model: Option<String>,
    pub usage: Usage,
    /// None if the price is not known, which is not the same as nothing.
    pub cost_usd: Option<f64>,
    pub answer: Result<String, Failure>,
}

/// Tokens, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All of the input, also what came from a cache or was written to one.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

pub trait Provider {
    async fn ask(&mut self, question: &Question<'_>) -> Call;
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Nobody's fault here: everything waits, and nothing counts.
    Pause,
    /// Ask about fewer events at once; one event alone has failed.
    Split,
}

/// The remedy belongs to the kind: no road decides for itself.
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
        | Kind::Request => Remedy::Split,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// For people: one line, without anything secret.
    pub text: String,
    /// When the provider says that it can be asked again.
    pub retry_at: Option<Millis>,
    /// What there is of an answer that was cut off: its whole blocks can still be used.
    pub partial: Option<String>,
}

impl Failure {
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Failure {
        Failure {
            kind,
            text: foreword_core::text::one_line(&text.into()),
            retry_at: None,
            partial: None,
        }
    }
}

impl Call {
    /// A call that failed before anything was counted.
    pub fn failed(requests: u32, failure: Failure) -> Call {
        Call {
            requests,
            model: None,
            usage: Usage::default(),
            cost_usd: None,
            answer: Err(failure),
        }
    }

    /// For the ledger. What is wrong with an answer only its reader knows.
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
            Name::Offline => None,
        }
    }
}

impl Provider for Model {
    async fn ask(&mut self, question: &Question<'_>) -> Call {
        match self {
            Model::Claude(claude) => claude.ask(question).await,
            Model::Anthropic(anthropic) => anthropic.ask(question).await,
            Model::OpenAi(openai) => openai.ask(question).await,
            #[cfg(test)]
            Model::Scripted(scripted) => scripted.ask(question).await,
        }
    }
}
