//! `foreword doctor --ask`: has the chosen model answer a question about a sample turn, and checks
//! whether the answer can be used.

use std::time::Instant;

use anyhow::Context as _;
use foreword_core::model::{Event, Turn};
use foreword_core::recall::digest::Digest;

use crate::agent::ask::{WhilePaused, ask};
use crate::agent::compress::derived;
use crate::agent::judge::Judge;
use crate::agent::prompts::{ANSWER_SCHEMA, Prompts};
use crate::agent::question::{self, QuestionSubject};
use crate::config::Config;
use crate::home::Home;
use crate::host::claude_code::played::SAMPLE_TURN;

/// What came of the question about the sample turn.
pub struct SampleAnswer {
    pub seconds: f64,
    /// The titles of the observations that can be used, or why there are none.
    pub usable: Result<Vec<String>, String>,
}

pub fn ask_about_sample(home: &Home, config: &Config) -> anyhow::Result<SampleAnswer> {
    let events: Vec<Event> = serde_json::from_str(SAMPLE_TURN).context("the sample turn")?;
    let turn = Turn {
        prompt_id: Some("p1".to_owned()),
        events: events.clone(),
    };
    let subject = QuestionSubject {
        events: &events,
        turn: &turn,
        digest: &Digest::default(),
        sum_up: true,
        cut: 1,
    };
    let question_text = question::write(&Prompts::load(&home.prompts()), &subject);
    let (system, text) = (&question_text.system, &question_text.text);
    let begun = Instant::now();
    let schema = Some(ANSWER_SCHEMA);
    let answer = ask(
        home,
        config,
        "doctor",
        WhilePaused::Ask,
        system,
        text,
        schema,
    )?;
    let seconds = begun.elapsed().as_secs_f64();
    let judge = Judge::new(&question_text, &events);
    let usable = match derived(&answer, &subject, &judge) {
        Ok((derived, _)) if derived.observations.is_empty() => {
            Err("it found nothing worth keeping in a turn that has something".to_owned())
        }
        Ok((derived, _)) => Ok(derived
            .observations
            .into_iter()
            .map(|it| it.title)
            .collect()),
        Err(failure) => Err(failure.text),
    };
    Ok(SampleAnswer { seconds, usable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_turn_is_one_from_which_offline_derives_something() {
        let events: Vec<Event> = serde_json::from_str(SAMPLE_TURN).unwrap();
        let turn = Turn {
            prompt_id: Some("p1".to_owned()),
            events,
        };
        let derived = crate::offline::derive(&[turn]);
        assert_eq!(derived.turns[0].observations.len(), 1);
    }
}
