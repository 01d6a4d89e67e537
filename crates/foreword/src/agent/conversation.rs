//! The conversation with a model about one session: what it was asked and what it answered.
//!
//! With `model.conversation = "session"` each question of a session goes into the same conversation,
//! so that the model knows what it saw before. `anthropic` and `openai` are sent the exchanges again
//! each time; the `claude` CLI keeps its own transcript, by an id. When carrying a conversation on
//! would cost more than `model.history_max_tokens`, a new one begins with a digest of the session
//! (`closing::opening`).

use foreword_core::model::{FailureKind, Millis};
use foreword_core::redact::redact;
use foreword_core::store::EndedSession;
use foreword_core::text;
use serde::{Deserialize, Serialize};

use super::closing;
use super::compress::Compressor;
use super::prompts::Prompts;
use super::provider::{Failure, ModelCall, Provider as _, Question, prices};

/// How long providers keep what they have cached of a conversation.
const CACHE_LIFE: Millis = 5 * 60_000;
/// Providers cache no shorter text than this, in tokens.
const CACHE_MIN: u64 = 4_096;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    /// The version of the prompts that it began with.
    pub prompts: String,
    /// Each question with its answer, redacted. Empty if the client keeps them.
    pub exchanges: Vec<(String, String)>,
    /// The client's own record of it.
    pub client: Option<ClientRecord>,
    /// About how many tokens the next question carries along.
    tokens: u64,
    /// The model that answered, if its price is known.
    model: Option<String>,
    /// Whether the provider did not cache what it should have.
    uncached: bool,
    /// Stands before the first question.
    #[serde(skip)]
    pub opening: String,
    #[serde(skip)]
    pub used_at: Millis,
}

/// A conversation that the claude CLI keeps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    pub id: String,
    /// The cost of the whole conversation, as the client counts it.
    pub total_usd: f64,
}

impl Conversation {
    /// `so_far` is what is stored of the session.
    pub fn begin(prompts: &Prompts, so_far: Option<&EndedSession>) -> Conversation {
        Conversation {
            prompts: prompts.version().to_owned(),
            opening: so_far.map_or_else(String::new, |it| closing::opening(prompts, it)),
            ..Conversation::default()
        }
    }

    /// Reads what `Store::take_conversation` returned; none if this program cannot read it.
    pub fn read((state, used_at): (String, Millis)) -> Option<Conversation> {
        let conversation: Conversation = serde_json::from_str(&state).ok()?;
        Some(Conversation {
            used_at,
            ..conversation
        })
    }

    /// The text that `read` reads.
    pub fn state(&self) -> String {
        serde_json::to_string(self).expect("it has only texts and numbers")
    }

    /// Whether nothing was answered in it yet.
    pub fn is_new(&self) -> bool {
        self.exchanges.is_empty() && self.client.is_none()
    }

    /// Whether the provider still has it in its cache.
    pub fn is_warm(&self, now: Millis) -> bool {
        !self.uncached && (0..CACHE_LIFE).contains(&(now - self.used_at))
    }

    /// What carrying it on costs beyond a new one, in tokens at the full price of input.
    pub fn burden(&self, now: Millis) -> u64 {
        let share = prices::share_of_history(self.model.as_deref(), self.is_warm(now));
        (self.tokens as f64 * share) as u64
    }

    /// Adds a question and its answer.
    pub fn add(&mut self, question: &Question<'_>, call: &ModelCall) {
        let Ok(answer) = &call.answer else {
            return;
        };
        let usage = &call.usage;
        if self.tokens > CACHE_MIN && self.is_warm(question.now) {
            self.uncached = usage.cache_read == 0;
        }
        let estimate = text::tokens(question.text) + text::tokens(answer);
        let counted =
            (usage.input + usage.output).saturating_sub(text::tokens(question.system) as u64);
        self.tokens = counted.max(self.tokens + estimate as u64);
        self.model = call.model.clone().filter(|_| call.cost_usd.is_some());
        self.used_at = question.now;
        self.opening.clear();
        if self.client.is_none() {
            let answer = redact(answer).text.into_owned();
            self.exchanges.push((question.text.to_owned(), answer));
        }
    }
}

impl Compressor {
    /// Whether the conversation can take the next question, at an acceptable cost.
    pub fn can_go_on(&self, conversation: &Conversation, now: Millis) -> bool {
        conversation.prompts == self.prompts.version()
            && conversation.burden(now) <= self.settings.history_max_tokens
    }

    /// Leaves the conversation after a failure that may be its own: it is too long, or the provider
    /// no longer has it. False if there is none, or if it was new.
    pub async fn leave_conversation(&mut self, failed: &Failure) -> bool {
        let its_own = matches!(failed.kind, FailureKind::TooLong | FailureKind::Request);
        let left = self.conversation.take_if(|it| its_own && !it.is_new());
        if let Some(left) = &left {
            self.model.forget(left).await;
        }
        left.is_some()
    }
}
