//! Budgets: what calls to a model may cost on one day and for one session.
//!
//! Before a call, the most that it may cost is reserved in the ledger, in one transaction with the
//! check that the budgets have room for it; the outcome of the call replaces the reservation. So
//! processes that ask at the same time stay within the budgets together. What a provider does not
//! report is estimated from the length of the texts. Calls count in dollars if the price of the model
//! is known, else in tokens.

use foreword_core::ledger::{Entry, Exceeded, Limits, OpenCall, Reservation, Spent};
use foreword_core::model::{FailureKind, Millis};
use foreword_core::store::Store;
use foreword_core::text;

use super::conversation::Conversation;
use super::provider::openai::OpenAi;
use super::provider::{ModelCall, Question, Usage, prices};
use crate::config::provider::Name;
use crate::config::{BudgetSection, Config};

pub const DAY: Millis = 24 * 3_600_000;

/// Added to the time that a call may take, until its reservation ends.
const GRACE: Millis = 10_000;

/// The start of a time's day, in UTC.
pub fn day(now: Millis) -> Millis {
    now - now.rem_euclid(DAY)
}

/// The budgets of the settings, for the model that is asked.
#[derive(Clone)]
pub struct Budget {
    limits: BudgetSection,
    /// The model's name in the settings.
    model: String,
    /// False for a model on this machine or in its network.
    is_paid: bool,
    answer_max: u32,
}

impl Budget {
    pub fn new(name: Name, config: &Config) -> Budget {
        let is_local = || OpenAi::new(&config.openai).is_local();
        Budget {
            limits: config.budget.clone(),
            model: name.model(config).to_owned(),
            is_paid: name != Name::OpenAi || !is_local(),
            answer_max: config.model.answer_max_tokens,
        }
    }

    /// The cost of these tokens; none if the price is not known.
    fn cost(&self, model: &str, usage: &Usage) -> Option<f64> {
        prices::cost(model, usage).filter(|_| self.is_paid)
    }

    /// Today's limit if it leaves no room for an answer: `$1.00` or `3000000 tokens`.
    pub fn used_up_today(&self, store: &Store, now: Millis) -> rusqlite::Result<Option<String>> {
        let today = store.spent(day(now), None, now)?;
        Ok(self.used_up(&today, self.limits.daily_usd, self.limits.daily_tokens))
    }

    /// The session's limit if it leaves no room for an answer.
    pub fn used_up_by(
        &self,
        store: &Store,
        host_session_id: &str,
        now: Millis,
    ) -> rusqlite::Result<Option<String>> {
        let session = store.spent(0, Some(host_session_id), now)?;
        Ok(self.used_up(
            &session,
            self.limits.session_usd,
            self.limits.session_tokens,
        ))
    }

    fn used_up(&self, spent: &Spent, usd: f64, tokens: u64) -> Option<String> {
        let answer = Usage {
            output: self.answer_max.into(),
            ..Usage::default()
        };
        let answer = Reservation {
            usd: self.cost(&self.model, &answer),
            tokens: answer.output,
            ..Reservation::default()
        };
        let exceeded = spent.exceeds(&answer, usd, tokens);
        exceeded.then(|| limit(usd, tokens, answer.usd.is_some() || spent.usd >= usd))
    }

    /// Reserves the most that this question may cost, and records the call. An error text if a budget
    /// has no room for it. `session` says whether the session's budget counts, too.
    pub fn reserve(
        &self,
        store: &Store,
        entry: &Entry<'_>,
        question: &Question<'_>,
        conversation: Option<&Conversation>,
        session: bool,
    ) -> rusqlite::Result<Result<OpenCall, String>> {
        let reservation = self.reservation(question, conversation);
        let BudgetSection {
            daily_usd,
            session_usd,
            daily_tokens,
            session_tokens,
        } = self.limits;
        let limits = Limits {
            day: day(entry.at),
            daily: (daily_usd, daily_tokens),
            session: session.then_some((session_usd, session_tokens)),
        };
        let reserved = store.reserve(entry, &reservation, &limits)?;
        Ok(reserved.map_err(|exceeded| {
            let (whose, (usd, tokens)) = match exceeded {
                Exceeded::Day => ("daily budget", limits.daily),
                Exceeded::Session => ("session's budget", (session_usd, session_tokens)),
            };
            let limit = limit(usd, tokens, reservation.usd.is_some());
            let most = match reservation.usd {
                Some(usd) => format!("${usd:.4}"),
                None => format!("{} tokens", reservation.tokens),
            };
            format!("the {whose} of {limit} has no room for a call of up to {most}")
        }))
    }

    fn reservation(
        &self,
        question: &Question<'_>,
        conversation: Option<&Conversation>,
    ) -> Reservation {
        let texts = || {
            let history = conversation.into_iter().flat_map(|it| &it.exchanges);
            let history = history.flat_map(|(asked, answer)| [asked.as_str(), answer]);
            history.chain([question.system, question.text])
        };
        // Text has at least three bytes a token on average. Writing to the provider's cache is the
        // dearest kind of input.
        let bytes: usize = texts().map(str::len).sum();
        let most_input = (bytes as u64).div_ceil(3);
        let most = Usage {
            input: most_input,
            cache_write: most_input,
            output: question.answer_max.into(),
            ..Usage::default()
        };
        let input = texts().map(text::tokens).sum::<usize>() as u64;
        // In recorded days the answers have a fifth of the questions' tokens (docs/models.md).
        let probable = Usage {
            input,
            output: most.output.min(input / 5),
            ..Usage::default()
        };
        let patience = Millis::try_from(question.patience.as_millis()).unwrap_or(DAY);
        Reservation {
            usd: self.cost(&self.model, &most),
            tokens: most.input + most.output,
            probable_usd: self.cost(&self.model, &probable),
            probable_input: probable.input,
            probable_output: probable.output,
            // An answer that has begun may take as long again.
            until: question.now + 2 * patience + GRACE,
        }
    }

    /// Estimates the tokens and the cost of a call that the provider did not report, though the model
    /// has worked, or may have.
    pub fn estimate(
        &self,
        call: &mut ModelCall,
        question: &Question<'_>,
        conversation: Option<&Conversation>,
    ) {
        let (answer, has_worked) = match &call.answer {
            Ok(answer) => (answer.as_str(), true),
            Err(failure) => {
                let partial = failure.partial.as_deref();
                let broke_off = matches!(failure.kind, FailureKind::Timeout | FailureKind::Broken);
                (partial.unwrap_or(""), broke_off || partial.is_some())
            }
        };
        let output = text::tokens(answer) as u64;
        let is_reported = call.usage.input > 0 && (call.usage.output > 0 || output == 0);
        let is_priced = call.cost_usd.is_some_and(|usd| usd > 0.0);
        if !has_worked || call.requests == 0 || is_reported || is_priced {
            return;
        }
        if call.usage.input == 0 {
            call.usage.input = self.reservation(question, conversation).probable_input;
        }
        if call.usage.output == 0 {
            call.usage.output = output;
        }
        let model = call.model.as_deref().unwrap_or(&self.model);
        call.cost_usd = self.cost(model, &call.usage);
    }
}

fn limit(usd: f64, tokens: u64, in_dollars: bool) -> String {
    if in_dollars {
        format!("${usd:.2}")
    } else {
        format!("{tokens} tokens")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::agent::provider::Failure;

    #[test]
    fn what_a_provider_does_not_report_is_estimated_and_an_unknown_price_stays_unknown() {
        let question = Question {
            system: &"s".repeat(400),
            text: &"t".repeat(400),
            patience: Duration::from_secs(1),
            answer_max: 100,
            schema: None,
            now: 0,
        };
        let estimated = |model: &str, usage: (u64, u64), answer: Result<String, FailureKind>| {
            let mut config = Config::from("", &Default::default()).unwrap();
            config.anthropic.model = model.to_owned();
            let mut call = ModelCall {
                requests: 1,
                model: None,
                usage: Usage {
                    input: usage.0,
                    output: usage.1,
                    ..Usage::default()
                },
                cost_usd: None,
                answer: answer.map_err(|kind| Failure::new(kind, "")),
            };
            let budget = Budget::new(Name::Anthropic, &config);
            budget.estimate(&mut call, &question, None);
            (call.usage.input, call.usage.output, call.cost_usd)
        };
        let text = || Ok("a".repeat(80));
        let (known, unknown) = ("claude-haiku-4-5", "nobody-knows-1");
        assert_eq!(estimated(known, (0, 0), text()), (200, 20, Some(0.0003)));
        assert_eq!(estimated(unknown, (0, 0), text()), (200, 20, None));
        assert_eq!(estimated(known, (0, 7), text()), (200, 7, Some(0.000_235)));
        assert_eq!(estimated(unknown, (5, 7), text()), (5, 7, None));
        // A call that broke off was paid for, one that was refused was not.
        let failed = |kind| estimated(known, (0, 0), Err(kind));
        assert_eq!(failed(FailureKind::Timeout), (200, 0, Some(0.0002)));
        assert_eq!(failed(FailureKind::Auth), (0, 0, None));
    }
}
