//! Has a model write the note of a conversation, or prints the conversation for an agent that does.
//!
//! A long conversation is split: one question for each part, then one that merges the notes of the
//! parts. The answer is checked like any draft: it must have the form of a note.

use anyhow::bail;
use foreword_core::model::{Event, Turn};
use foreword_core::notes::{DraftProblem, Note};
use foreword_core::recall::digest::{Digest, DigestPrompt};

use crate::agent::ask::{WhilePaused, ask};
use crate::agent::fence::Fence;
use crate::agent::judge::Judge;
use crate::agent::prompts::Prompts;
use crate::agent::question::{QuestionSubject, QuestionText, fenced_steps};
use crate::config::Config;
use crate::home::Home;

/// The most parts of a conversation. The middle of a longer one is left out, after its texts were
/// cut as far as possible.
const PARTS_MAX: usize = 12;
/// The most bytes of a conversation that is printed for an agent: what fits into one output of its
/// shell.
const SOURCES_MAX: usize = 24_000;

/// `say` shows a line about the progress.
pub fn note(
    home: &Home,
    config: &Config,
    turns: &[Turn],
    say: impl Fn(&str),
) -> anyhow::Result<Note> {
    let prompts = Prompts::load(&home.prompts());
    let one = |what: &str, told: &str| -> anyhow::Result<Note> {
        say(what.trim_end_matches(':'));
        let mut problems = String::new();
        for _ in 0..2 {
            let values = [("what", what), ("told", told), ("problems", &problems)];
            let question_text = QuestionText {
                system: prompts.fill("note", &[]),
                text: prompts.fill("conversation", &values),
            };
            let QuestionText { system, text } = &question_text;
            let answer = ask(
                home,
                config,
                "summarize",
                WhilePaused::Fail,
                system,
                text,
                None,
            )?;
            let (note, mut wrong) = Note::read(body(&answer));
            let judge = Judge::new(&question_text, &[]);
            let lines = (1..).zip(body(&answer).lines());
            let mut echoes = lines.filter(|(_, it)| !it.starts_with("##") && judge.is_ours(it));
            wrong.extend(echoes.next().map(|(line, _)| DraftProblem {
                line,
                what: "this repeats the question".to_owned(),
            }));
            if wrong.is_empty() {
                return Ok(note);
            }
            let wrong: Vec<_> = wrong.iter().map(|it| format!("\n- {it}")).collect();
            let before = "You were asked this before, and your note could not be used:";
            problems = format!("\n\n{before}{}", wrong.concat());
        }
        bail!("the model's answer has not the form of a note");
    };
    let (parts, _) = parts(turns, config.model.batch_max_tokens as usize * 4, PARTS_MAX);
    if let [whole] = parts.as_slice() {
        return one("The conversation, step by step:", whole);
    }
    let mut notes = String::new();
    let fence = Fence::new();
    for (number, part) in (1..).zip(&parts) {
        let what = format!("Part {number} of {} of the conversation:", parts.len());
        let note = one(&what, part)?;
        notes.push_str(&fence.around(&note.to_string()));
        notes.push('\n');
    }
    let what = "Notes on the parts of one conversation, in order; what a later part overtook is no longer so:";
    one(what, &notes)
}

/// The conversation as one text for an agent, fenced as data. The middle of a long one is left out.
pub fn sources(turns: &[Turn]) -> String {
    let (parts, is_whole) = parts(turns, SOURCES_MAX / 2, 2);
    let between = if is_whole {
        "\n"
    } else {
        "\n\n(the middle of this long conversation is left out)\n\n"
    };
    parts.join(between)
}

/// The conversation as text, in parts that are short enough for a question, and whether that is all
/// of it.
fn parts(turns: &[Turn], bytes_max: usize, parts_max: usize) -> (Vec<String>, bool) {
    let events: Vec<Event> = turns.iter().flat_map(|it| it.events.clone()).collect();
    let prompt = |(number, turn): (u32, &Turn)| DigestPrompt {
        host_prompt_id: turn.prompt_id.clone(),
        number,
        text: String::new(),
        reply: None,
        summed_up_at: None,
    };
    let digest = Digest {
        prompts: (1..).zip(turns).map(prompt).collect(),
        ..Digest::default()
    };
    let turn = Turn {
        prompt_id: None,
        events: Vec::new(),
    };
    let mut parts = Vec::new();
    for cut in [1, 4, 16] {
        let subject = QuestionSubject {
            events: &events,
            turn: &turn,
            digest: &digest,
            sum_up: false,
            cut,
        };
        parts = packed(fenced_steps(&subject), bytes_max);
        if parts.len() <= parts_max {
            return (parts, true);
        }
    }
    let half = parts_max / 2;
    parts.drain(half..parts.len() - half);
    (parts, false)
}

fn packed(steps: Vec<String>, bytes_max: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for step in steps {
        match parts.last_mut() {
            Some(part) if part.len() + step.len() < bytes_max => {
                part.push('\n');
                part.push_str(&step);
            }
            _ => parts.push(step),
        }
    }
    parts
}

/// The note in an answer, without a greeting before it or a code fence around it.
fn body(answer: &str) -> &str {
    let answer = answer.trim();
    let start = match answer.find("\n# ") {
        Some(at) if !answer.starts_with("# ") => at + 1,
        _ => 0,
    };
    let fenced = start > 0 && answer[..start].contains("```");
    let body = &answer[start..];
    body.strip_suffix("```").filter(|_| fenced).unwrap_or(body)
}
