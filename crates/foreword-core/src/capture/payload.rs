//! What the worker will need of an event: redacted first, then cut to size.
//!
//! The order matters: a secret must be seen whole. What is cut or left out is
//! said in the payload itself, so that nobody later takes a part for the whole.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::host::{HookInput, Host, Subject, json};
use crate::model::{EventKind, Payload};
use crate::redact::{self, files};

/// How much of an event is kept, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of one text; the middle is cut out of a longer one.
    pub field_max: usize,
    /// Of the whole payload; texts are cut harder until it fits.
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

/// What is nested deeper is kept as a text: whoever reads the event back gives up
/// at 128 levels, of which spool and payload take some themselves.
const DEPTH_MAX: usize = 64;

/// The payload of an event of this kind.
pub fn build(
    host: &Host,
    kind: EventKind,
    input: &HookInput<'_>,
    subject: &Subject<'_>,
    limits: &Limits,
) -> Payload {
    let mut work = Work::default();
    let mut payload = Payload::default();
    match kind {
        EventKind::SessionStart => {
            payload.source = input.source.as_deref().map(|text| work.redacted(text));
            payload.model = input.model.as_deref().map(|text| work.redacted(text));
        }
        EventKind::Prompt | EventKind::Notification => {
            payload.prompt = input.prompt.as_deref().map(|text| work.redacted(text));
        }
        EventKind::ToolUse | EventKind::ToolFailure if shows_secrets(subject) => {
            without_content(host, input, subject, &mut payload, &mut work);
        }
        EventKind::ToolUse | EventKind::ToolFailure => {
            let tool = &input.tool;
            let name = tool.name.as_deref().unwrap_or_default();
            let repeated = |field: &str| host.repeated.contains(&(name, field));
            payload.input = tool
                .input
                .map(|raw| work.value(raw, |_| false, &mut Vec::new()));
            payload.response = tool
                .response
                .map(|raw| work.value(raw, repeated, &mut payload.left_out));
            payload.error = input.error.map(|raw| work.text(raw));
            payload.interrupted = input.interrupted;
        }
        EventKind::Stop | EventKind::StopFailure => {
            payload.reply = input.reply.as_deref().map(|text| work.redacted(text));
            payload.error = input.error.map(|raw| work.text(raw));
        }
        EventKind::Receipt => {}
        EventKind::SessionEnd => {
            payload.reason = input.reason.as_deref().map(|text| work.redacted(text));
        }
    }
    payload.redacted = work.redacted;
    cut(&mut payload, limits);
    payload
}

/// Whether a tool use is about a file whose whole content is secret.
fn shows_secrets(subject: &Subject<'_>) -> bool {
    subject.paths.iter().any(|path| files::is_secret_file(path))
        || subject.command.as_deref().is_some_and(files::shows_secrets)
}

/// Keeps which file or command it was and how it ended, and nothing that it showed.
fn without_content(
    host: &Host,
    input: &HookInput<'_>,
    subject: &Subject<'_>,
    payload: &mut Payload,
    work: &mut Work,
) {
    let paths = subject.paths.iter().map(|path| work.redacted(path));
    let paths = paths.collect();
    // A command may hold the values that it writes to the file.
    let command = subject.command.as_deref().map(files::without_values);
    let command = command.map(|command| work.redacted(&command));
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
    work.redacted += 1;
}

#[derive(Default)]
struct Work {
    redacted: u32,
}

impl Work {
    fn redacted(&mut self, text: &str) -> String {
        let redacted = redact::redact(text);
        self.redacted += redacted.count;
        redacted.text.into_owned()
    }

    /// A field that is a text today, and may be something else tomorrow.
    fn text(&mut self, raw: &RawValue) -> String {
        match json::plain_text(raw) {
            Some(text) => self.redacted(&text),
            None => self.redacted(raw.get()),
        }
    }

    /// A redacted value. Top-level fields that are `repeated` elsewhere are not even parsed.
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
            object.insert(self.redacted(&name), value);
        }
        let mut value = Value::Object(object);
        self.named_secrets(&mut value);
        value
    }

    fn any(&mut self, raw: &RawValue) -> Value {
        let parsed = serde_json::from_str(raw.get())
            .or_else(|_| serde_json::from_str(&json::mend(raw.get()).unwrap_or_default()));
        match parsed {
            Ok(mut value) => {
                self.walk(&mut value, 0);
                value
            }
            // Nested deeper than anyone means: kept as the text that it is.
            Err(_) => Value::String(self.redacted(raw.get())),
        }
    }

    fn walk(&mut self, value: &mut Value, depth: usize) {
        match value {
            Value::String(text) => {
                let redacted = redact::redact(text);
                self.redacted += redacted.count;
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

    /// A field's name is as much a text as its value.
    fn names(&mut self, fields: &mut serde_json::Map<String, Value>) {
        if fields.keys().all(|name| redact::redact(name).count == 0) {
            return;
        }
        *fields = std::mem::take(fields)
            .into_iter()
            .map(|(name, field)| (self.redacted(&name), field))
            .collect();
    }

    /// `{"password": "…"}`: the value alone would not look like a secret.
    fn named_secrets(&mut self, value: &mut Value) {
        let Value::Object(fields) = value else {
            return;
        };
        for (name, field) in fields {
            if let Value::String(text) = field
                && let Some(clean) = redact::named(name, text)
            {
                *text = clean;
                self.redacted += 1;
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
    // So many small fields that cutting each is no help: keep them as one text.
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
    let gone = before.saturating_sub(max) as u64;
    match cut.iter_mut().find(|(field, _)| field == name) {
        Some((_, bytes)) => *bytes += gone,
        None => cut.push((name.to_owned(), gone)),
    }
}

/// Beginning and end of a long text: a command's error stands at its end.
fn middle_cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = text.floor_char_boundary(max / 2);
    let tail = text.ceil_char_boundary(text.len() - max / 2);
    let gone = tail - head;
    Cow::Owned(format!(
        "{}\n[… {gone} bytes cut …]\n{}",
        &text[..head],
        &text[tail..]
    ))
}
