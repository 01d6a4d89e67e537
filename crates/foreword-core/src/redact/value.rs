//! Redacts JSON values and whole events.
//!
//! A value is judged by more than its text: by the name of its field (`{"password": "…"}`), by the
//! field beside it (`{"name": "DB_PASSWORD", "value": "…"}`) and by the argument before it
//! (`["--password", "…"]`). An array of texts is one text: hosts send a change line by line.

use serde_json::{Map, Value};

use super::{Stage, labels};
use crate::model::Event;

/// A value nested deeper than this is stored as a text: serde_json reads at most 128 levels, of
/// which event and payload take some themselves.
const DEPTH_MAX: usize = 64;

/// Redacts values and counts the replaced spans.
pub struct ValueRedactor {
    stage: Stage,
    pub count: u32,
}

impl ValueRedactor {
    pub fn new(stage: Stage) -> ValueRedactor {
        ValueRedactor { stage, count: 0 }
    }

    pub fn text(&mut self, text: &str) -> String {
        let redacted = self.stage.redact(text);
        self.count += redacted.count;
        redacted.text.into_owned()
    }

    fn in_place(&mut self, text: &mut String) {
        let redacted = self.stage.redact(text);
        if redacted.count > 0 {
            self.count += redacted.count;
            *text = redacted.text.into_owned();
        }
    }

    /// Redacts every text in a value.
    pub fn value(&mut self, value: &mut Value) {
        self.walk(value, 0);
    }

    /// Redacts the names and the values of fields whose values were redacted as texts before.
    pub fn fields(&mut self, fields: &mut Map<String, Value>) {
        let stage = self.stage;
        if fields.keys().any(|name| stage.redact(name).count > 0) {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, field)| (self.text(&name), field))
                .collect();
        }
        for (name, field) in fields.iter_mut() {
            match field {
                Value::String(text) => self.named(name, text),
                Value::Array(items) => {
                    for text in items.iter_mut().filter_map(string) {
                        self.named(name, text);
                    }
                }
                _ => {}
            }
        }
        self.name_and_value(fields);
    }

    fn walk(&mut self, value: &mut Value, depth: usize) {
        match value {
            Value::String(text) => self.in_place(text),
            Value::Array(items) => {
                let together = self.as_one_text(items);
                for item in items.iter_mut() {
                    match item {
                        Value::String(_) if together => {}
                        item => self.walk(item, depth + 1),
                    }
                }
                self.arguments(items);
            }
            Value::Object(fields) => {
                for field in fields.values_mut() {
                    self.walk(field, depth + 1);
                }
                self.fields(fields);
            }
            _ => {}
        }
        if depth == DEPTH_MAX && (value.is_array() || value.is_object()) {
            *value = Value::String(value.to_string());
        }
    }

    /// Redacts an array as one text, if each item is a text or has one under `text`.
    fn as_one_text(&mut self, items: &mut [Value]) -> bool {
        if items.is_empty() {
            return false;
        }
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            let part = match item {
                Value::Object(fields) => fields.get_mut("text").and_then(string),
                item => string(item),
            };
            let Some(part) = part else {
                return false;
            };
            parts.push(part);
        }
        self.count += self.stage.redact_parts(&mut parts);
        true
    }

    /// Redacts the argument after an option with a secret name: `["--password", "…"]`.
    fn arguments(&mut self, items: &mut [Value]) {
        for at in 1..items.len() {
            let [.., Value::String(option), Value::String(argument)] = &mut items[..=at] else {
                continue;
            };
            let name = option.trim_start_matches('-');
            if name.len() < option.len() {
                self.named(name, argument);
            }
        }
    }

    /// Redacts the value in `{"name": "DB_PASSWORD", "value": "…"}`.
    fn name_and_value(&mut self, fields: &mut Map<String, Value>) {
        let field = |wanted: &[&str]| {
            let mut names = fields.keys();
            let is_it = |name: &&String| wanted.iter().any(|it| name.eq_ignore_ascii_case(it));
            names.find(is_it).cloned()
        };
        let (Some(name), Some(value)) = (field(labels::NAME_FIELDS), field(labels::VALUE_FIELDS))
        else {
            return;
        };
        let name = fields.get(&name).and_then(Value::as_str).map(str::to_owned);
        if let (Some(name), Some(text)) = (name, fields.get_mut(&value).and_then(string)) {
            self.named(&name, text);
        }
    }

    /// Redacts a value by its name: it alone need not look like a secret.
    fn named(&mut self, name: &str, text: &mut String) {
        if labels::is_secret_field(self.stage, name, text) {
            *text = "[redacted:value]".to_owned();
            self.count += 1;
        }
    }
}

fn string(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Redacts all texts of an event with the thorough stage, before it is stored or shown to a model. The ids
/// and the project of an event were redacted thoroughly when it was captured; they stay as they are.
pub fn event(event: &mut Event) {
    let mut redactor = ValueRedactor::new(Stage::Thorough);
    let payload = &mut event.payload;
    let texts = [
        &mut event.cwd,
        &mut event.project_dir,
        &mut event.root,
        &mut event.transcript_path,
        &mut event.branch,
        &mut event.tool_name,
        &mut payload.source,
        &mut payload.model,
        &mut payload.prompt,
        &mut payload.reply,
        &mut payload.error,
        &mut payload.reason,
    ];
    for text in texts.into_iter().flatten() {
        redactor.in_place(text);
    }
    for file in &mut event.files {
        redactor.in_place(&mut file.path);
    }
    for value in [&mut payload.input, &mut payload.response]
        .into_iter()
        .flatten()
    {
        redactor.value(value);
    }
    payload.redacted += redactor.count;
}
