//! Prints the result of a bench, as JSON or as lines for people. It is the same for every bench.

use foreword_core::text::{self, one_line};
use serde_json::{Value, json};

use super::machine;
use foreword::home;

/// Prints the measurements of a bench, with the time and the machine.
pub fn print(bench: &str, measured: Value, as_json: bool) {
    let head = json!({
        "bench": bench,
        "at": text::rfc3339(home::now()),
        "machine": machine::this(),
    });
    let report = with(head, measured);
    if as_json {
        println!("{report:#}");
    } else {
        print!("{}", lines(&report, ""));
    }
}

/// The object with the fields of `more` added.
pub fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut object, more) {
        fields.extend(more);
    }
    object
}

/// A line for each value, or for an object of plain values. Lists of samples are left out.
fn lines(object: &Value, indent: &str) -> String {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.filter(|(_, value)| !are_samples(value));
    let lines = fields.map(|(name, value)| {
        let line = |text: String| format!("{indent}{name:<28} {text}\n");
        let below = |value: &Value| match lines(value, &format!("{indent}  ")) {
            empty if empty.is_empty() => empty,
            lines => format!("{indent}{name}\n{lines}"),
        };
        match value {
            Value::Null => String::new(),
            Value::Array(values) => {
                let texts = values.iter().filter_map(Value::as_str);
                let texts: String = texts.map(|it| line(one_line(it))).collect();
                texts + &values.iter().map(below).collect::<String>()
            }
            Value::Object(fields) => {
                let fields = fields.iter().filter(|(_, value)| !are_samples(value));
                let texts = fields.map(|(name, value)| Some(format!("{name} {}", plain(value)?)));
                let texts: Option<Vec<String>> = texts.collect();
                match texts {
                    Some(texts) if texts.is_empty() => String::new(),
                    Some(texts) => line(texts.join(", ")),
                    None => below(value),
                }
            }
            value => line(plain(value).unwrap_or_default()),
        }
    });
    lines.collect()
}

fn are_samples(value: &Value) -> bool {
    let numbers = |values: &Vec<Value>| values.iter().all(|it| it.is_number() || it.is_array());
    value.as_array().is_some_and(numbers)
}

/// A plain value as text; none if it is a list or an object.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("-".to_owned()),
        Value::String(text) => Some(one_line(text)),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("NO".to_owned()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(it) if number.is_f64() => ((it * 100.0).round() / 100.0).to_string(),
            _ => number.to_string(),
        }),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_belong_together_share_a_line_and_samples_are_left_out() {
        let report = json!({
            "met": false,
            "note": null,
            "raw": [1, 2],
            "seen": ["mark 1 is lost"],
            "scenarios": {"save": {"ms": {"p50": 1.234, "p99": null}, "raw": [{"us": [7]}], "faults": 9}},
        });
        let lines = lines(&report, "");
        let words: Vec<_> = lines.lines().map(one_line).collect();
        assert_eq!(
            words,
            [
                "met NO",
                "scenarios",
                "save",
                "faults 9",
                "ms p50 1.23, p99 -",
                "seen mark 1 is lost"
            ]
        );
    }
}
