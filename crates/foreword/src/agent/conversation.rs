//! The conversation with a model about one session: what it was asked and what it answered.
//!
//! With `model.conversation = "session"` each question of a session goes into the same conversation,
//! so that the model knows what it saw before. `anthropic` and `openai` are sent the exchanges again
//! each time; the `claude` CLI keeps its own transcript, by an id. When carrying a conversation on
//! would cost more than `model.history_max_tokens`, a new one begins with a digest of the session
//! (`closing::opening`).

use std::collections::{BTreeSet, HashSet};

use foreword_core::model::{FailureKind, Millis};
use foreword_core::redact::thorough;
use foreword_core::store::ShownSession;
use foreword_core::text;
use serde::{Deserialize, Serialize};

use super::closing;
use super::compress::Compressor;
use super::judge;
use super::prompts::Prompts;
use super::provider::{Failure, ModelCall, Provider as _, Question, prices};

/// How long providers keep what they have cached of a conversation.
const CACHE_LIFE: Millis = 5 * 60_000;
/// Providers cache no shorter text than this, in tokens.
const CACHE_MIN: u64 = 4_096;

/// The most names that are kept of a conversation.
const NAMES_MAX: usize = 4_000;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    /// The version of the prompts that it began with.
    pub prompts: String,
    /// Each question with its answer, redacted. Empty if the client keeps them.
    pub exchanges: Vec<(String, String)>,
    /// The names of files and code in what the client keeps.
    pub names: Vec<String>,
    /// The numbers of the observations that the model was shown, by which it can retract or replace
    /// them.
    pub shown: BTreeSet<i64>,
    /// The client's own record of it.
    pub client: Option<ClientRecord>,
    /// About how many tokens of history are sent with the next question.
    tokens: u64,
    /// The model that answered, if its price is known.
    model: Option<String>,
    /// Whether the last question was sent soon enough for the cache, and the provider read nothing
    /// from it.
    uncached: bool,
    /// The digest of the session that stands before the first question; empty afterwards.
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
    /// Begins a conversation with a digest of what is stored of the session (`so_far`).
    pub fn begin(prompts: &Prompts, so_far: Option<&ShownSession>) -> Conversation {
        let (opening, shown) =
            so_far.map_or_else(Default::default, |it| closing::opening(prompts, it));
        Conversation {
            prompts: prompts.version().to_owned(),
            opening,
            shown,
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

    /// Whether the provider may still have it in its cache.
    fn is_recent(&self, now: Millis) -> bool {
        (0..CACHE_LIFE).contains(&(now - self.used_at))
    }

    /// What its history costs with the next question, in tokens at the full price of input.
    pub fn burden(&self, now: Millis) -> u64 {
        let is_cached = self.is_recent(now) && !self.uncached;
        let share = prices::share_of_history(self.model.as_deref(), is_cached);
        (self.tokens as f64 * share) as u64
    }

    /// Adds a question and its answer. A call that failed is not added.
    pub fn add(&mut self, question: &Question<'_>, call: &ModelCall) {
        let Ok(answer) = &call.answer else {
            return;
        };
        let usage = &call.usage;
        if self.tokens > CACHE_MIN && self.is_recent(question.now) {
            self.uncached = usage.cache_read == 0;
        }
        let estimate = text::tokens(question.text) + text::tokens(answer);
        let counted =
            (usage.input + usage.output).saturating_sub(text::tokens(question.system) as u64);
        self.tokens = counted.max(self.tokens + estimate as u64);
        self.model = call.model.clone().filter(|_| call.cost_usd.is_some());
        self.used_at = question.now;
        self.opening.clear();
        let answer = thorough(answer).text.into_owned();
        if self.client.is_none() {
            self.exchanges.push((question.text.to_owned(), answer));
            return;
        }
        let names = judge::names(question.text).chain(judge::names(&answer));
        let mut known: HashSet<String> = self.names.drain(..).collect();
        known.extend(names.map(str::to_owned));
        self.names = known.into_iter().take(NAMES_MAX).collect();
        self.names.sort();
    }
}

impl Compressor {
    /// Whether the next question can go into the conversation: it began with the present prompts, and
    /// its history does not cost too much.
    pub fn can_go_on(&self, conversation: &Conversation, now: Millis) -> bool {
        conversation.prompts == self.prompts.version()
            && conversation.burden(now) <= self.settings.history_max_tokens
    }

    /// Ends the conversation after a failure that it may have caused: it is too long, or the provider
    /// no longer has it. False if there is no conversation, or if it was new.
    pub async fn leave_conversation(&mut self, failed: &Failure) -> bool {
        let its_own = matches!(failed.kind, FailureKind::TooLong | FailureKind::Request);
        let left = its_own && self.conversation.as_ref().is_some_and(|it| !it.is_new());
        if left {
            self.end_conversation().await;
        }
        left
    }

    /// Ends the conversation, and deletes what the provider has of it.
    pub async fn end_conversation(&mut self) {
        if let Some(conversation) = self.conversation.take() {
            self.model.forget(&conversation).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::agent::provider::Usage;

    const MINUTE: Millis = 60_000;

    /// Adds an exchange to a conversation of about this many tokens, with these of the cache.
    fn ask(it: &mut Conversation, answer: &str, tokens: u64, cache_read: u64, now: Millis) {
        let question = Question {
            system: "",
            text: "what happened?",
            patience: Duration::ZERO,
            answer_max: 1,
            schema: None,
            now,
        };
        let usage = Usage {
            input: tokens,
            cache_read,
            ..Usage::default()
        };
        let call = ModelCall {
            requests: 1,
            model: Some("claude-haiku-4-5".to_owned()),
            usage,
            cost_usd: Some(1.0),
            answer: Ok(answer.to_owned()),
        };
        it.add(&question, &call);
    }

    #[test]
    fn history_costs_little_while_the_provider_has_it_and_more_than_new_input_after_that() {
        let mut conversation = Conversation::default();
        ask(&mut conversation, "nothing", 8_000, 0, 0);
        let burden = |it: &Conversation, minutes| it.burden(minutes * MINUTE);
        assert_eq!(burden(&conversation, 4), 800);
        assert_eq!(burden(&conversation, 5), 10_000);
        // Nothing was read of it, so it was not cached.
        ask(&mut conversation, "nothing", 10_000, 0, MINUTE);
        assert_eq!(burden(&conversation, 2), 12_500);
        ask(&mut conversation, "nothing", 12_000, 9_000, 2 * MINUTE);
        assert_eq!(burden(&conversation, 3), 1_200);
    }

    #[test]
    fn a_conversation_is_stored_redacted_and_read_again() {
        let secret = ["sk", "ant", "api03", &"aB3dE5gH7jK9mN1pQ2rS4tU6".repeat(3)].join("-");
        let mut conversation = Conversation::default();
        ask(&mut conversation, &format!("use {secret}"), 100, 0, 7);
        let state = conversation.state();
        assert!(!state.contains(&secret[14..]), "{state}");
        assert_eq!(Conversation::read((state, 7)), Some(conversation));
        assert_eq!(Conversation::read(("[7]".to_owned(), 7)), None);
    }
}
