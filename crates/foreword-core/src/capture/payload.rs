//! Makes an event's payload, the part that the worker needs: redacted first, then cut to size.
//!
//! The order matters: half a secret would not be recognised. The payload records what was
//! cut or left out, so that nobody later takes a part for the whole.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::host::{self, HookInput, Host, Subject};
use crate::model::{EventKind, Payload};
use crate::redact::{self, Stage, ValueRedactor};

/// The size limits of an event, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest text; the middle is cut out of a longer one.
    pub field_max: usize,
    /// The largest payload; texts are cut further until it fits.
    pub payload_max: usize,
    /// The largest file whose content a hook hashes.
    pub hash_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            field_max: 16 << 10,
            payload_max: 64 << 10,
            hash_max: 128 << 10,
        }
    }
}

/// Makes the payload of an event of this kind.
pub fn build(
    host: &Host,
    kind: EventKind,
    input: &HookInput<'_>,
    subject: &Subject<'_>,
    limits: &Limits,
) -> Payload {
    let mut redactor = ValueRedactor::new(Stage::Fast);
    let mut payload = Payload::default();
    match kind {
        EventKind::SessionStart => {
            payload.source = input.source.as_deref().map(|text| redactor.text(text));
            payload.model = input.model.as_deref().map(|text| redactor.text(text));
        }
        EventKind::Prompt | EventKind::Notification => {
            payload.prompt = input.prompt.as_deref().map(|text| redactor.text(text));
        }
        EventKind::ToolUse | EventKind::ToolFailure if shows_secrets(subject) => {
            without_content(host, input, subject, &mut payload, &mut redactor);
        }
        EventKind::ToolUse | EventKind::ToolFailure => {
            let tool = &input.tool;
            let name = tool.name.as_deref().unwrap_or_default();
            let repeated = |field: &str| host.repeated.contains(&(name, field));
            payload.input = tool
                .input
                .map(|raw| value(&mut redactor, raw, |_| false, &mut Vec::new()));
            payload.response = tool
                .response
                .map(|raw| value(&mut redactor, raw, repeated, &mut payload.left_out));
            payload.error = input.error.map(|raw| text(&mut redactor, raw));
            payload.interrupted = input.interrupted;
        }
        EventKind::Stop | EventKind::StopFailure | EventKind::Words => {
            payload.reply = input.reply.as_deref().map(|text| redactor.text(text));
            payload.error = input.error.map(|raw| text(&mut redactor, raw));
        }
        EventKind::Receipt => {}
        EventKind::SessionEnd | EventKind::Refusal => {
            payload.reason = input.reason.as_deref().map(|text| redactor.text(text));
            if !shows_secrets(subject) {
                payload.input = (input.tool.input)
                    .map(|raw| value(&mut redactor, raw, |_| false, &mut Vec::new()));
            }
        }
    }
    payload.redacted = redactor.count;
    cut(&mut payload, limits);
    payload
}

/// Whether a tool use is about a file whose whole content is secret.
fn shows_secrets(subject: &Subject<'_>) -> bool {
    subject
        .paths
        .iter()
        .any(|path| redact::is_secret_file(path))
        || subject
            .command
            .as_deref()
            .is_some_and(redact::shows_secrets)
}

/// Stores the file or command and whether it was interrupted, and nothing of the output.
fn without_content(
    host: &Host,
    input: &HookInput<'_>,
    subject: &Subject<'_>,
    payload: &mut Payload,
    redactor: &mut ValueRedactor,
) {
    let paths = subject.paths.iter().map(|path| redactor.text(path));
    let paths = paths.collect();
    // A command may hold the values that it writes to the file.
    let command = subject.command.as_deref().map(redact::without_values);
    let command = command.map(|command| redactor.text(&command));
    payload.input = Some((host.bare_input)(paths, command));
    payload.interrupted = input.interrupted;
    for (name, raw) in [("response", input.tool.response), ("error", input.error)] {
        if let Some(raw) = raw {
            payload.left_out.push((
                format!("{name}: contents of a secret file"),
                raw.get().len() as u64,
            ));
        }
    }
    redactor.count += 1;
}

/// The text of a field that is usually a text; otherwise its JSON.
fn text(redactor: &mut ValueRedactor, raw: &RawValue) -> String {
    match host::plain_text(raw) {
        Some(text) => redactor.text(&text),
        None => redactor.text(raw.get()),
    }
}

/// A redacted value. Top-level fields that are `repeated` elsewhere are skipped unparsed.
fn value(
    redactor: &mut ValueRedactor,
    raw: &RawValue,
    repeated: impl Fn(&str) -> bool,
    left_out: &mut Vec<(String, u64)>,
) -> Value {
    let fields: Result<BTreeMap<Cow<'_, str>, &RawValue>, _> = serde_json::from_str(raw.get());
    let Ok(fields) = fields else {
        return any(redactor, raw);
    };
    let mut object = serde_json::Map::new();
    for (name, field) in fields {
        if repeated(&name) {
            left_out.push((format!("response.{name}"), field.get().len() as u64));
            continue;
        }
        object.insert(name.into_owned(), any(redactor, field));
    }
    redactor.fields(&mut object);
    Value::Object(object)
}

fn any(redactor: &mut ValueRedactor, raw: &RawValue) -> Value {
    let parsed = serde_json::from_str(raw.get())
        .or_else(|_| serde_json::from_str(&host::mend(raw.get()).unwrap_or_default()));
    match parsed {
        Ok(mut value) => {
            redactor.value(&mut value);
            value
        }
        // Nested too deeply to be parsed: stored as a text.
        Err(_) => Value::String(redactor.text(raw.get())),
    }
}

fn cut(payload: &mut Payload, limits: &Limits) {
    let mut field_max = limits.field_max;
    while field_max >= 128 {
        cut_fields(payload, field_max);
        let size = serde_json::to_string(&*payload).map_or(0, |text| text.len());
        if size <= limits.payload_max {
            return;
        }
        field_max /= 2;
    }
    // Too many small fields for cutting each to help: store input and response as one text each.
    payload.cut.clear();
    for (name, field) in [
        ("input", &mut payload.input),
        ("response", &mut payload.response),
    ] {
        if let Some(value) = field {
            let mut text = value.to_string();
            cut_text(&mut text, name, limits.field_max, &mut payload.cut);
            *field = Some(Value::String(text));
        }
    }
}

fn cut_fields(payload: &mut Payload, max: usize) {
    let Payload {
        prompt,
        reply,
        error,
        input,
        response,
        source,
        model,
        reason,
        cut,
        ..
    } = payload;
    for (name, field) in [
        ("prompt", prompt),
        ("reply", reply),
        ("error", error),
        ("source", source),
        ("model", model),
        ("reason", reason),
    ] {
        if let Some(text) = field {
            cut_text(text, name, max, cut);
        }
    }
    for (name, field) in [("input", input), ("response", response)] {
        if let Some(value) = field {
            cut_value(value, name, max, cut);
        }
    }
}

fn cut_value(value: &mut Value, name: &str, max: usize, cut: &mut Vec<(String, u64)>) {
    match value {
        Value::String(text) => cut_text(text, name, max, cut),
        Value::Array(items) => {
            for (number, item) in items.iter_mut().enumerate() {
                cut_value(item, &format!("{name}.{number}"), max, cut);
            }
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                cut_value(value, &format!("{name}.{field}"), max, cut);
            }
        }
        _ => {}
    }
}

fn cut_text(text: &mut String, name: &str, max: usize, cut: &mut Vec<(String, u64)>) {
    let before = text.len();
    let Cow::Owned(short) = middle_cut(text, max) else {
        return;
    };
    *text = short;
    let removed = before.saturating_sub(max) as u64;
    match cut.iter_mut().find(|(field, _)| field == name) {
        Some((_, bytes)) => *bytes += removed,
        None => cut.push((name.to_owned(), removed)),
    }
}

/// A word longer than this, in bytes, may be cut.
const WORD_MAX: usize = 512;

/// The beginning and end of a long text. The end is kept since a command's error is there. Words are
/// kept whole or not at all: the thorough stage comes later, and would not recognise half a token.
fn middle_cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let ends_word = |character: char| matches!(character, ' ' | '\t' | '\n' | '\r' | '"' | ',');
    let head = text.floor_char_boundary(max / 2);
    let last_word = text.floor_char_boundary(head.saturating_sub(WORD_MAX));
    let head = text[last_word..head]
        .rfind(ends_word)
        .map_or(head, |end| last_word + end + 1);
    let tail = text.ceil_char_boundary(text.len() - max / 2);
    let first_word = text.ceil_char_boundary((tail + WORD_MAX).min(text.len()));
    let tail = text[tail..first_word]
        .find(ends_word)
        .map_or(tail, |start| tail + start);
    let removed = tail - head;
    Cow::Owned(format!(
        "{}\n[… {removed} bytes cut …]\n{}",
        &text[..head],
        &text[tail..]
    ))
}
