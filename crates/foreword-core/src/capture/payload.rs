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
use crate::redact;

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

/// A value nested deeper than this is stored as a text: serde_json reads at most 128 levels, of
/// which event and payload take some themselves.
const DEPTH_MAX: usize = 64;

/// Makes the payload of an event of this kind.
pub fn build(
    host: &Host,
    kind: EventKind,
    input: &HookInput<'_>,
    subject: &Subject<'_>,
    limits: &Limits,
) -> Payload {
    let mut redactor = Redactor::default();
    let mut payload = Payload::default();
    match kind {
        EventKind::SessionStart => {
            payload.source = input.source.as_deref().map(|text| redactor.redact(text));
            payload.model = input.model.as_deref().map(|text| redactor.redact(text));
        }
        EventKind::Prompt | EventKind::Notification => {
            payload.prompt = input.prompt.as_deref().map(|text| redactor.redact(text));
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
                .map(|raw| redactor.value(raw, |_| false, &mut Vec::new()));
            payload.response = tool
                .response
                .map(|raw| redactor.value(raw, repeated, &mut payload.left_out));
            payload.error = input.error.map(|raw| redactor.text(raw));
            payload.interrupted = input.interrupted;
        }
        EventKind::Stop | EventKind::StopFailure | EventKind::Words => {
            payload.reply = input.reply.as_deref().map(|text| redactor.redact(text));
            payload.error = input.error.map(|raw| redactor.text(raw));
        }
        EventKind::Receipt => {}
        EventKind::SessionEnd | EventKind::Refusal => {
            payload.reason = input.reason.as_deref().map(|text| redactor.redact(text));
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
    redactor: &mut Redactor,
) {
    let paths = subject.paths.iter().map(|path| redactor.redact(path));
    let paths = paths.collect();
    // A command may hold the values that it writes to the file.
    let command = subject.command.as_deref().map(redact::without_values);
    let command = command.map(|command| redactor.redact(&command));
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

/// Redacts the texts of a payload and counts the replaced spans.
#[derive(Default)]
struct Redactor {
    count: u32,
}

impl Redactor {
    fn redact(&mut self, text: &str) -> String {
        let redacted = redact::redact(text);
        self.count += redacted.count;
        redacted.text.into_owned()
    }

    /// The text of a field that is usually a text; otherwise its JSON.
    fn text(&mut self, raw: &RawValue) -> String {
        match host::plain_text(raw) {
            Some(text) => self.redact(&text),
            None => self.redact(raw.get()),
        }
    }

    /// A redacted value. Top-level fields that are `repeated` elsewhere are skipped unparsed.
    fn value(
        &mut self,
        raw: &RawValue,
        repeated: impl Fn(&str) -> bool,
        left_out: &mut Vec<(String, u64)>,
    ) -> Value {
        let fields: Result<BTreeMap<Cow<'_, str>, &RawValue>, _> = serde_json::from_str(raw.get());
        let Ok(fields) = fields else {
            return self.any(raw);
        };
        let mut object = serde_json::Map::new();
        for (name, field) in fields {
            if repeated(&name) {
                left_out.push((format!("response.{name}"), field.get().len() as u64));
                continue;
            }
            let value = self.any(field);
            object.insert(self.redact(&name), value);
        }
        let mut value = Value::Object(object);
        self.named_secrets(&mut value);
        value
    }

    fn any(&mut self, raw: &RawValue) -> Value {
        let parsed = serde_json::from_str(raw.get())
            .or_else(|_| serde_json::from_str(&host::mend(raw.get()).unwrap_or_default()));
        match parsed {
            Ok(mut value) => {
                self.walk(&mut value, 0);
                value
            }
            // Nested too deeply to be parsed: stored as a text.
            Err(_) => Value::String(self.redact(raw.get())),
        }
    }

    fn walk(&mut self, value: &mut Value, depth: usize) {
        match value {
            Value::String(text) => {
                let redacted = redact::redact(text);
                self.count += redacted.count;
                if let Cow::Owned(clean) = redacted.text {
                    *text = clean;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.walk(item, depth + 1);
                }
            }
            Value::Object(fields) => {
                for field in fields.values_mut() {
                    self.walk(field, depth + 1);
                }
                self.names(fields);
                self.named_secrets(value);
            }
            _ => {}
        }
        if depth == DEPTH_MAX && (value.is_array() || value.is_object()) {
            *value = Value::String(value.to_string());
        }
    }

    /// Redacts the names of fields, which may contain secrets like their values.
    fn names(&mut self, fields: &mut serde_json::Map<String, Value>) {
        if fields.keys().all(|name| redact::redact(name).count == 0) {
            return;
        }
        *fields = std::mem::take(fields)
            .into_iter()
            .map(|(name, field)| (self.redact(&name), field))
            .collect();
    }

    /// Redacts values by the name of their field: in `{"password": "…"}` the value alone need not
    /// look like a secret.
    fn named_secrets(&mut self, value: &mut Value) {
        let Value::Object(fields) = value else {
            return;
        };
        for (name, field) in fields {
            if let Value::String(text) = field
                && let Some(clean) = redact::named(name, text)
            {
                *text = clean;
                self.count += 1;
            }
        }
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

/// The beginning and end of a long text. The end is kept since a command's error is there.
fn middle_cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(max / 2);
    let tail = text.ceil_char_boundary(text.len() - max / 2);
    let removed = tail - head;
    Cow::Owned(format!(
        "{}\n[… {removed} bytes cut …]\n{}",
        &text[..head],
        &text[tail..]
    ))
}
