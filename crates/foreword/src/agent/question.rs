//! Writes the question to a model about a batch of events.
//!
//! Recorded text is shortened and stands between fences. Each step has a number, by which an answer
//! cites it.

use std::borrow::Cow;

use foreword_core::host::{self, Output, Replacement, ToolKind};
use foreword_core::model::{Event, EventKind, Millis, Turn};
use foreword_core::recall::digest::{Digest, DigestPrompt};
use foreword_core::store::ShownObservation;
use foreword_core::text;
use serde_json::Value;

use super::fence::Fence;
use super::prompts::Prompts;
use super::repair::files::relative;

// The longest texts of each kind, in characters. The middle of a longer one is left out.

const INPUT_MAX: usize = 1_200;
const OUTPUT_MAX: usize = 2_000;
const PROMPT_MAX: usize = 2_000;
const REPLY_MAX: usize = 3_000;
const TASK_MAX: usize = 300;
const COMPLETED_MAX: usize = 400;
/// The agent's last words in the turn before.
const BEFORE_MAX: usize = 500;
/// The most turns before, if all but the first were small.
const BEFORE_TURNS: usize = 4;
/// The content of a file that a later step edits: the edit shows the part that matters.
const EDITED_MAX: usize = 300;
const FACT_MAX: usize = 120;
const FACTS_MAX: usize = 2;
/// The beginning of a session's id, enough to tell sessions apart.
const SESSION_MAX: usize = 8;
/// The longest name outside of the fences.
const NAME_MAX: usize = 80;

/// A turn without tool uses is not asked about by itself if its prompt and reply have at most this many
/// bytes.
pub const SMALL: usize = 400;

/// The most bytes of an event's payload that count towards the size of a batch.
pub const EVENT_BYTES: usize = INPUT_MAX + OUTPUT_MAX;

/// The events that a question is about, and their context.
#[derive(Debug, Clone, Copy)]
pub struct QuestionSubject<'a> {
    pub events: &'a [Event],
    /// All events of the turn that the last event belongs to.
    pub turn: &'a Turn,
    pub digest: &'a Digest,
    /// Whether to ask for a summary of that turn: it has ended, or is long.
    pub sum_up: bool,
    /// The limits of texts are divided by this, after a question was too long.
    pub cut: usize,
}

/// The text of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionText {
    pub system: String,
    pub text: String,
}

pub fn write(prompts: &Prompts, subject: &QuestionSubject<'_>) -> QuestionText {
    let steps = steps(subject);
    let known = known(subject);
    let fence = Fence::new();
    let last = subject.events.last();
    let date = text::date(last.map_or(0, |event| event.at));
    let session = session_name(last.map_or("unknown", |it| &it.host_session_id));
    let project = project(subject, last);
    let values = [
        ("project", &*project),
        ("date", &date),
        ("session", &session),
    ];
    let mut parts = vec![prompts.fill("session", &values)];
    if !known.is_empty() {
        parts.push(prompts.fill("continuation", &[("known", &fence.around(&known))]));
    }
    let steps: Vec<String> = steps.iter().map(|step| step.fenced(&fence)).collect();
    parts.push(prompts.fill("observe", &[("steps", &steps.join("\n"))]));
    if subject.sum_up {
        let number = prompt_number(subject, subject.turn.events.first());
        parts.push(prompts.fill("summary", &[("number", &number.to_string())]));
    }
    QuestionText {
        system: prompts.fill("init", &[]),
        text: parts.join("\n\n"),
    }
}

/// Each step in its fence, for another kind of question.
pub fn fenced_steps(subject: &QuestionSubject<'_>) -> Vec<String> {
    let steps = steps(subject);
    let fence = Fence::new();
    steps.iter().map(|step| step.fenced(&fence)).collect()
}

fn steps(subject: &QuestionSubject<'_>) -> Vec<QuestionStep> {
    let numbered = subject.events.iter().enumerate();
    numbered
        .filter_map(|(at, event)| QuestionStep::of(at + 1, event, subject))
        .collect()
}

/// The same question, after an answer that could not be read.
pub fn write_again(prompts: &Prompts, question: &QuestionText, sum_up: bool) -> QuestionText {
    let summary = if sum_up { ", `<summary>`" } else { "" };
    let again = prompts.fill("again", &[("summary", summary)]);
    QuestionText {
        system: question.system.clone(),
        text: format!("{}\n\n{again}", question.text),
    }
}

/// About how many tokens the host sent about tool uses, including the text that was cut at capture.
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

/// The name of the turn that events end in, for the ledger: the host's id of its prompt, or empty before
/// the first prompt.
pub fn turn_name(events: &[Event]) -> &str {
    let of_a_turn = events.iter().rev().find(|it| it.kind.is_of_a_turn());
    let prompt_id = of_a_turn.and_then(|it| it.prompt_id.as_deref());
    prompt_id.unwrap_or_default()
}

pub fn is_tool(event: &Event) -> bool {
    matches!(event.kind, EventKind::ToolUse | EventKind::ToolFailure)
}

struct QuestionStep {
    head: String,
    body: String,
}

impl QuestionStep {
    /// None for an event without content.
    fn of(number: usize, event: &Event, subject: &QuestionSubject<'_>) -> Option<QuestionStep> {
        let cut = |text: &str, max: usize| middle_cut(text, max / subject.cut.max(1));
        let payload = &event.payload;
        let (prompt, error) = (payload.prompt.as_deref(), payload.error.as_deref());
        let (what, body) = match event.kind {
            EventKind::Prompt => {
                let number = prompt_number(subject, Some(event));
                (
                    format!("the user's prompt {number}"),
                    cut(prompt?, PROMPT_MAX),
                )
            }
            EventKind::Notification => {
                let what = "a background task reports".to_owned();
                (what, cut(prompt?, PROMPT_MAX))
            }
            EventKind::Stop => {
                let reply = payload.reply.as_deref()?;
                ("the agent's last words".to_owned(), cut(reply, REPLY_MAX))
            }
            EventKind::Words => {
                let words = payload.reply.as_deref()?;
                ("the agent's words".to_owned(), cut(words, REPLY_MAX))
            }
            EventKind::Refusal => {
                let tool = name(event.tool_name.as_deref().unwrap_or("a_tool"));
                let reason = cut(payload.reason.as_deref()?, PROMPT_MAX);
                let input = cut(&input(event), INPUT_MAX);
                let body = format!("{input}\n→ {reason}");
                (format!("the user refused {tool}"), body.trim().to_owned())
            }
            EventKind::StopFailure => {
                let error = error.unwrap_or("for no known reason");
                ("the turn failed".to_owned(), cut(error, INPUT_MAX))
            }
            EventKind::ToolUse | EventKind::ToolFailure => {
                let (failed, output) = match event.kind {
                    EventKind::ToolFailure => (" failed", error.unwrap_or_default().to_owned()),
                    _ if host::tool_kind(event) == ToolKind::Search => ("", found(event, subject)?),
                    _ => ("", output(event)),
                };
                let by = event.agent_id.as_ref().map_or("", |_| ", by a subagent");
                let tool = name(event.tool_name.as_deref().unwrap_or("a_tool"));
                let input = cut(&input(event), INPUT_MAX);
                let max = if is_edited(event, subject) {
                    EDITED_MAX
                } else {
                    OUTPUT_MAX
                };
                let output = cut(&output, max);
                let arrow = if output.is_empty() { "" } else { "\n→ " };
                let body = format!("{input}{arrow}{output}");
                (format!("{tool}{failed}{by}"), body)
            }
            EventKind::SessionStart | EventKind::SessionEnd | EventKind::Receipt => {
                return None;
            }
        };
        let time = clock(event.at);
        Some(QuestionStep {
            head: format!("[{number}] {time} {what}"),
            body,
        })
    }

    fn fenced(&self, fence: &Fence) -> String {
        format!("{}\n{}", self.head, fence.around(&self.body))
    }
}

/// Whether an event shows a file that a later one changes.
fn is_edited(event: &Event, subject: &QuestionSubject<'_>) -> bool {
    let path = |it: &Event| host::tool_use(it).path.map(str::to_owned);
    let shown = path(event).filter(|_| host::tool_kind(event) == ToolKind::Read);
    let later = subject.events.iter().skip_while(|it| it.id != event.id);
    let mut edits = later.filter(|it| host::tool_kind(it) == ToolKind::Edit);
    shown.is_some_and(|shown| edits.any(|it| path(it).is_some_and(|path| path == shown)))
}

/// A tool's input: the command, the path with the change, or the only field.
fn input(event: &Event) -> String {
    let Some(input) = &event.payload.input else {
        return String::new();
    };
    let tool_use = host::tool_use(event);
    if let Some(command) = tool_use.command {
        return command.to_owned();
    }
    if !tool_use.answers.is_empty() {
        let told = tool_use.answers.iter().map(|it| {
            let options = it.options.join(" / ");
            let (question, answer) = (it.question, it.answer);
            format!("asked: {question} ({options})\nthe user answered: {answer}")
        });
        return told.collect::<Vec<_>>().join("\n");
    }
    if let Some(path) = tool_use.path {
        let path = relative(path, event.root.as_deref());
        let mut text = path;
        for Replacement { before, after } in tool_use.replacements {
            let before = middle_cut(before, INPUT_MAX / 3);
            text += &format!("\n-- before\n{before}\n-- after\n{after}");
        }
        if let Some(content) = tool_use.content {
            text += &format!("\n{content}");
        }
        return text;
    }
    let fields = input.as_object().filter(|fields| fields.len() == 1);
    let only = fields.and_then(|fields| fields.values().next());
    plain(only.unwrap_or(input))
}

/// A tool's output. It is empty for an edit or a written file, whose input shows the change, and for
/// questions to the user, whose answers `input` has.
fn output(event: &Event) -> String {
    let tool_use = host::tool_use(event);
    if !tool_use.answers.is_empty() {
        return String::new();
    }
    match tool_use.output {
        Output::None | Output::Change => String::new(),
        Output::File(content) => content.to_owned(),
        Output::Printed(out, err) => {
            let both = format!("{}\n{}", out.trim_end(), err.trim());
            both.trim().to_owned()
        }
        Output::Other(response) => plain(response),
    }
}

/// The lines of a search's output that name a file which the agent mentions in its reply. None if there
/// are none; then the search is left out of the question.
fn found(event: &Event, subject: &QuestionSubject<'_>) -> Option<String> {
    let words = subject.turn.events.iter();
    let words: Vec<&String> = words.filter_map(|it| it.payload.reply.as_ref()).collect();
    let is_spoken_of = |line: &&str| {
        let path = line.split(':').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default().trim();
        name.contains('.') && words.iter().any(|it| it.contains(name))
    };
    let output = output(event);
    let lines: Vec<&str> = output.lines().filter(is_spoken_of).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A JSON value as plain text: strings as they are, blocks of text one after the other.
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

/// Beginning and end of a text, together at most `max` characters, with the number of characters
/// left out between them. UUIDs are abbreviated.
pub fn middle_cut(text: &str, max: usize) -> String {
    let text = &*without_uuids(text.trim());
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

/// A text with the ends of each UUID instead of all of it (`019a…03f2`): a UUID takes about 20 tokens.
fn without_uuids(text: &str) -> Cow<'_, str> {
    const LENGTH: usize = 36;
    let bytes = text.as_bytes();
    let is_uuid = |at: usize| {
        bytes.get(at + 8) == Some(&b'-')
            && (at == 0 || !bytes[at - 1].is_ascii_alphanumeric())
            && !bytes
                .get(at + LENGTH)
                .is_some_and(u8::is_ascii_alphanumeric)
            && text
                .get(at..at + LENGTH)
                .is_some_and(|it| uuid::Uuid::try_parse(it).is_ok())
    };
    let mut short = String::new();
    let mut rest = 0;
    for at in 0..bytes.len().saturating_sub(LENGTH - 1) {
        if at >= rest && is_uuid(at) {
            let end = at + LENGTH;
            short.extend([&text[rest..at + 4], "…", &text[end - 4..end]]);
            rest = end;
        }
    }
    if rest == 0 {
        return text.into();
    }
    (short + &text[rest..]).into()
}

/// The session before this batch and what is known of its subject, for the model; empty at the
/// beginning of a project.
fn known(subject: &QuestionSubject<'_>) -> String {
    let digest = subject.digest;
    let short = |text: &str, max: usize| {
        let line = text::flat(&without_uuids(text));
        text::shorten(&line, max).into_owned()
    };
    let mut lines = Vec::new();
    let asked = |event: &&Event| event.kind == EventKind::Prompt;
    let prompt = subject.events.iter().find(asked);
    let before = prompt.map_or(&[] as &[_], |_| turns_before(&digest.prompts));
    let is_told = |task: &&String| before.iter().any(|it| it.text == **task);
    if let Some(task) = digest.task.as_ref().filter(|task| !is_told(task)) {
        lines.push(format!("the task before: {}", short(task, TASK_MAX)));
    }
    if !digest.observations.is_empty() {
        lines.push("recorded in this session:".to_owned());
    }
    for shown in &digest.observations {
        lines.push(listed(shown, 0));
    }
    if !digest.older.is_empty() {
        lines.push("recorded in earlier sessions:".to_owned());
    }
    for shown in &digest.older {
        lines.push(listed(shown, FACTS_MAX));
    }
    if let Some(completed) = &digest.completed {
        lines.push(format!("done: {}", short(completed, COMPLETED_MAX)));
    }
    for DigestPrompt {
        number,
        text,
        reply,
        ..
    } in before
    {
        lines.push(format!("prompt {number}: {}", short(text, TASK_MAX)));
        let reply = reply.as_deref().map(|it| middle_cut(it, BEFORE_MAX));
        lines.extend(reply.map(|it| format!("the agent's last words: {it}")));
    }
    // The prompt of a turn that began before this batch.
    let begun = subject.turn.events.iter().find(asked);
    if let Some(begun) = begun.filter(|_| prompt.is_none()) {
        let number = prompt_number(subject, Some(begun));
        let text = short(
            begun.payload.prompt.as_deref().unwrap_or_default(),
            TASK_MAX,
        );
        lines.push(format!("prompt {number}, which goes on: {text}"));
    }
    lines.join("\n")
}

/// The turns whose closing words a question has as its context: the last one that has some and, if that
/// was so small that it was not asked about, the ones before it, up to one that was.
fn turns_before(prompts: &[DigestPrompt]) -> &[DigestPrompt] {
    let has_reply = |it: &DigestPrompt| it.reply.is_some();
    let end = prompts.iter().rposition(has_reply).map_or(0, |at| at + 1);
    let prompts = &prompts[..end];
    let is_asked = |it: &DigestPrompt| {
        let reply = it.reply.as_ref().map_or(0, String::len);
        has_reply(it) && (it.summed_up_at.is_some() || it.text.len() + reply > SMALL)
    };
    let first = prompts.iter().rposition(is_asked).unwrap_or(0);
    &prompts[first.max(end.saturating_sub(BEFORE_TURNS))..]
}

/// An observation by its number, with some of its facts.
pub fn listed(shown: &ShownObservation, facts: usize) -> String {
    let ShownObservation {
        id, kind, title, ..
    } = shown;
    let mut lines = format!("#{id} {kind}: {}", text::flat(title));
    for fact in shown.facts.iter().take(facts) {
        let fact = text::flat(fact);
        lines.push_str(&format!("\n  - {}", text::shorten(&fact, FACT_MAX)));
    }
    lines
}

fn project(subject: &QuestionSubject<'_>, last: Option<&Event>) -> String {
    let key = last.and_then(|event| event.project.as_deref());
    let known = subject.digest.project.as_deref();
    let known = known.or(key.map(foreword_core::project::name));
    name(known.unwrap_or("none"))
}

/// The beginning of a session's id, for use outside of a fence.
pub fn session_name(id: &str) -> String {
    let id: String = id.chars().take(SESSION_MAX).collect();
    name(&id)
}

/// A foreign name for use outside of a fence. It becomes one word, so that it cannot be read as an
/// instruction.
pub fn name(word: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || "_-.:/@".contains(c);
    word.chars()
        .take(NAME_MAX)
        .map(|c| if allowed(c) { c } else { '_' })
        .collect()
}

/// The number of the prompt that an event belongs to; a new prompt gets the next number.
fn prompt_number(subject: &QuestionSubject<'_>, event: Option<&Event>) -> u32 {
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
    time.get(11..16).unwrap_or(&time).to_owned()
}

#[cfg(test)]
mod tests;
