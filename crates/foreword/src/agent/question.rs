//! Words a batch of events as a question to a model.
//!
//! What is recorded is capped, and stands between fences whose name is a hash of all that
//! is recorded and of ids that nobody can know before: nothing in it can end the fence or
//! pose as one. Each step has a number, by which an answer can name what it rests on.

use foreword_core::host::{self, Output};
use foreword_core::model::{Event, EventKind, Millis, Turn};
use foreword_core::store::{Digest, DigestPrompt};
use foreword_core::text;
use serde_json::Value;

use super::prompts::Prompts;
use super::repair::files::relative;

/// In characters; what is longer is cut in its middle.
const INPUT_MAX: usize = 1_200;
const OUTPUT_MAX: usize = 2_400;
const PROMPT_MAX: usize = 2_000;
const REPLY_MAX: usize = 3_000;
const GOAL_MAX: usize = 300;
const COMPLETED_MAX: usize = 400;
/// Of a name that stands outside of the fences.
const NAME_MAX: usize = 80;

/// So many bytes of an event's payload count when batches are made.
pub const EVENT_BYTES: usize = INPUT_MAX + OUTPUT_MAX;

/// What a question is about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub events: &'a [Event],
    /// The turn that the last event belongs to, whole.
    pub turn: &'a Turn,
    pub digest: &'a Digest,
    /// That turn is at its end, as far as one can tell.
    pub sum_up: bool,
    /// Texts are cut harder by this factor, after a question was too long.
    pub cut: usize,
}

/// A question in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worded {
    pub system: String,
    pub text: String,
}

pub fn word(prompts: &Prompts, subject: &Subject<'_>) -> Worded {
    let steps = steps(subject);
    let known = known(subject);
    let fence = fence(subject.events, &steps, &known);
    let last = subject.events.last();
    let date = text::date(last.map_or(0, |event| event.at));
    let session = name(last.map_or("unknown", |it| &it.host_session_id));
    let project = project(subject, last);
    let values = [
        ("project", &*project),
        ("date", &date),
        ("session", &session),
    ];
    let mut parts = vec![prompts.fill("session", &values)];
    if !known.is_empty() {
        parts.push(prompts.fill("continuation", &[("known", &known), ("fence", &fence)]));
    }
    let steps: Vec<String> = steps.iter().map(|step| step.fenced(&fence)).collect();
    parts.push(prompts.fill("observe", &[("steps", &steps.join("\n"))]));
    if subject.sum_up {
        let number = prompt_number(subject, subject.turn.events.first());
        parts.push(prompts.fill("summary", &[("number", &number.to_string())]));
    }
    Worded {
        system: prompts.fill("init", &[]),
        text: parts.join("\n\n"),
    }
}

/// The steps alone, each in its fence, for a question of another kind.
pub fn told(subject: &Subject<'_>) -> Vec<String> {
    let steps = steps(subject);
    let fence = fence(subject.events, &steps, "");
    steps.iter().map(|step| step.fenced(&fence)).collect()
}

fn steps(subject: &Subject<'_>) -> Vec<Step> {
    let numbered = subject.events.iter().enumerate();
    numbered
        .filter_map(|(at, event)| Step::of(at + 1, event, subject))
        .collect()
}

/// The same question, after an answer that could not be read.
pub fn word_again(prompts: &Prompts, question: &Worded, sum_up: bool) -> Worded {
    let summary = if sum_up { ", `<summary>`" } else { "" };
    let again = prompts.fill("again", &[("summary", summary)]);
    Worded {
        system: question.system.clone(),
        text: format!("{}\n\n{again}", question.text),
    }
}

/// Tokens of what the host sent about tool uses, also of what was cut at capture.
pub fn raw_tokens(events: &[Event]) -> u64 {
    let characters = events.iter().filter(|event| is_tool(event)).map(|event| {
        let payload = &event.payload;
        let values = payload.input.iter().chain(&payload.response);
        let values: usize = values.map(|it| it.to_string().chars().count()).sum();
        let error = payload.error.as_ref().map_or(0, String::len);
        let cut: u64 = payload.cut.iter().map(|(_, bytes)| bytes).sum();
        (values + error) as u64 + cut
    });
    characters.sum::<u64>() / 4
}

pub fn is_tool(event: &Event) -> bool {
    matches!(event.kind, EventKind::ToolUse | EventKind::ToolFailure)
}

struct Step {
    head: String,
    body: String,
}

impl Step {
    /// None for events that say nothing by themselves.
    fn of(number: usize, event: &Event, subject: &Subject<'_>) -> Option<Step> {
        let cut = |text: &str, max: usize| middle_cut(text, max / subject.cut.max(1));
        let payload = &event.payload;
        let (prompt, error) = (payload.prompt.as_deref(), payload.error.as_deref());
        let (what, body) = match event.kind {
            EventKind::Prompt => ("the user's prompt".to_owned(), cut(prompt?, PROMPT_MAX)),
            EventKind::Notification => {
                let what = "a background task reports".to_owned();
                (what, cut(prompt?, PROMPT_MAX))
            }
            EventKind::Stop => {
                let reply = payload.reply.as_deref()?;
                ("the agent's last words".to_owned(), cut(reply, REPLY_MAX))
            }
            EventKind::StopFailure => {
                let error = error.unwrap_or("for no known reason");
                ("the turn failed".to_owned(), cut(error, INPUT_MAX))
            }
            EventKind::ToolUse | EventKind::ToolFailure => {
                let (failed, output) = match event.kind {
                    EventKind::ToolFailure => (" failed", error.unwrap_or_default().to_owned()),
                    _ => ("", output(event)),
                };
                let by = event.agent_id.as_ref().map_or("", |_| ", by a subagent");
                let tool = name(event.tool_name.as_deref().unwrap_or("a_tool"));
                let input = cut(&input(event), INPUT_MAX);
                let output = cut(&output, OUTPUT_MAX);
                let arrow = if output.is_empty() { "" } else { "\n→ " };
                let body = format!("{input}{arrow}{output}");
                (format!("{tool}{failed}{by}"), body)
            }
            EventKind::SessionStart | EventKind::SessionEnd | EventKind::Receipt => {
                return None;
            }
        };
        let prompt = prompt_number(subject, Some(event));
        let time = clock(event.at);
        Some(Step {
            head: format!("[{number}] {time}, prompt {prompt}: {what}"),
            body,
        })
    }

    fn fenced(&self, fence: &str) -> String {
        let Step { head, body } = self;
        format!("{head}\n<data {fence}>\n{body}\n</data {fence}>")
    }
}

/// What went in, in the fewest words that say it.
fn input(event: &Event) -> String {
    let Some(input) = &event.payload.input else {
        return String::new();
    };
    let tool_use = host::tool_use(event);
    if let Some(command) = tool_use.command {
        return command.to_owned();
    }
    if let Some(path) = tool_use.path {
        let path = relative(path, event.root.as_deref());
        return match (tool_use.before, tool_use.after, tool_use.content) {
            (Some(old), Some(new), _) => {
                let old = middle_cut(old, INPUT_MAX / 3);
                format!("{path}\n-- before\n{old}\n-- after\n{new}")
            }
            (_, _, Some(content)) => format!("{path}\n{content}"),
            _ => path,
        };
    }
    let fields = input.as_object().filter(|fields| fields.len() == 1);
    let only = fields.and_then(|fields| fields.values().next());
    plain(only.unwrap_or(input))
}

/// What came out. An edit or a written file says nothing that its input did not.
fn output(event: &Event) -> String {
    match host::tool_use(event).output {
        Output::None | Output::Change => String::new(),
        Output::File(content) => content.to_owned(),
        Output::Printed(out, err) => {
            let both = format!("{}\n{}", out.trim_end(), err.trim());
            both.trim().to_owned()
        }
        Output::Other(response) => plain(response),
    }
}

/// A JSON value for reading: texts as they are, blocks of text one after the other.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => match fields.get("text").or(fields.get("content")) {
            Some(inner @ (Value::String(_) | Value::Array(_))) => plain(inner),
            _ => value.to_string(),
        },
        value => value.to_string(),
    }
}

/// Beginning and end, at most `max` characters, with what is missing counted.
fn middle_cut(text: &str, max: usize) -> String {
    let text = text.trim();
    let length = text.chars().count();
    if length <= max {
        return text.to_owned();
    }
    let at = |character: usize| {
        text.char_indices()
            .nth(character)
            .map_or(text.len(), |it| it.0)
    };
    let (head, tail) = (max * 3 / 5, max * 2 / 5);
    let left_out = length - head - tail;
    format!(
        "{}\n[… {left_out} characters left out …]\n{}",
        text[..at(head)].trim_end(),
        text[at(length - tail)..].trim_start()
    )
}

/// What the model should know of the session before this batch; empty at its beginning.
fn known(subject: &Subject<'_>) -> String {
    let digest = subject.digest;
    let short = |text: &str, max: usize| text::shorten(&text::one_line(text), max).into_owned();
    let mut lines = Vec::new();
    if let Some(goal) = &digest.goal {
        lines.push(format!("the user's goal: {}", short(goal, GOAL_MAX)));
    }
    for (kind, title) in &digest.observations {
        lines.push(format!("- {kind}: {}", text::one_line(title)));
    }
    if let Some(completed) = &digest.completed {
        lines.push(format!("done: {}", short(completed, COMPLETED_MAX)));
    }
    // A turn that goes on: what it is about was said before this batch.
    let asked = |event: &&Event| event.kind == EventKind::Prompt;
    let prompt = subject.turn.events.iter().find(asked);
    let is_here = subject.events.iter().any(|it| asked(&it));
    if let Some(prompt) = prompt.filter(|_| !is_here) {
        let number = prompt_number(subject, Some(prompt));
        let text = prompt.payload.prompt.as_deref().unwrap_or_default();
        let text = short(text, GOAL_MAX);
        lines.push(format!("prompt {number}, which goes on: {text}"));
    }
    lines.join("\n")
}

fn fence(events: &[Event], steps: &[Step], known: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    // Their ids are random, so who wrote a text cannot have tried until it fits.
    for event in events {
        hasher.update(event.id.as_bytes());
    }
    hasher.update(known.as_bytes());
    for step in steps {
        hasher.update(step.body.as_bytes());
    }
    hasher.finalize().to_hex()[..8].to_owned()
}

fn project(subject: &Subject<'_>, last: Option<&Event>) -> String {
    let key = last.and_then(|event| event.project.as_deref());
    let known = subject.digest.project.as_deref();
    let known = known.or(key.map(foreword_core::project::name));
    name(known.unwrap_or("none"))
}

/// A name that others chose, for where no fence is around it: one word, so that it cannot
/// say anything.
fn name(word: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || "_-.:/@".contains(c);
    word.chars()
        .take(NAME_MAX)
        .map(|c| if allowed(c) { c } else { '_' })
        .collect()
}

/// The number of the prompt that an event belongs to; a new one counts on.
fn prompt_number(subject: &Subject<'_>, event: Option<&Event>) -> u32 {
    let prompts = &subject.digest.prompts;
    let id = event.and_then(|event| event.prompt_id.as_deref());
    let is_it = |prompt: &&DigestPrompt| id.is_some() && prompt.host_prompt_id.as_deref() == id;
    let last = prompts.last().map_or(0, |prompt| prompt.number);
    match prompts.iter().find(is_it) {
        Some(prompt) => prompt.number,
        None if last == 0 || id == subject.turn.prompt_id.as_deref() => last + 1,
        None => last,
    }
}

fn clock(at: Millis) -> String {
    let time = text::rfc3339(at);
    time.get(11..19).unwrap_or(&time).to_owned()
}

#[cfg(test)]
mod tests;
