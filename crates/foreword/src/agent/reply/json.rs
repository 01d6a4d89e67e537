//! Reads a reply in JSON, from a model that had to follow a schema. It has the same blocks and fields
//! as a reply in tags.

use foreword_core::text::flat;
use serde_json::{Map, Value};

use super::{Field, MARKS, NOTHING, Reply, ReplyBlock, TagEnd};

/// If JSON was cut off, it is tried up to each of this many of its last closing braces.
const ENDS_MAX: usize = 40;

/// None if the reply is no JSON object with a list of observations.
pub fn read(reply: &str, known: &[&'static str]) -> Option<Reply> {
    let (start, end) = (reply.find('{')?, reply.rfind('}')?);
    let before = reply[..start].trim();
    if !(before.is_empty() || before.starts_with("```")) {
        return None;
    }
    let whole = reply.get(start..=end).and_then(object);
    let open_end = whole.is_none();
    let fields = whole.or_else(|| cut_off(&reply[start..]))?;
    let blocks = fields.get("observations")?.as_array()?;
    let mut read = Reply {
        observations: blocks
            .iter()
            .map(|it| block("observation", it, known))
            .collect(),
        open_end,
        ..Reply::default()
    };
    let summary = fields.get("summary").map(|it| block("summary", it, known));
    read.summary = summary.filter(|it| it.fields.iter().any(|field| !field.content.is_empty()));
    let nothing = fields.get(NOTHING).map(content);
    // An empty list says that nothing is worth keeping, with or without a reason.
    let is_empty = blocks.is_empty() && read.summary.is_none() && !open_end;
    let nothing = nothing.filter(|reason| !reason.is_empty());
    read.nothing = nothing.or_else(|| is_empty.then(String::new));
    for mark in MARKS {
        let marks = fields.get(mark).map(content).unwrap_or_default();
        let marks = marks.lines().map(|line| (mark, line.to_owned()));
        read.marks.extend(marks);
    }
    Some(read)
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// The complete observations of JSON that was cut off.
fn cut_off(text: &str) -> Option<Map<String, Value>> {
    let ends = text.match_indices('}').map(|(at, _)| at);
    let ends: Vec<usize> = ends.collect();
    let mut closed = ends.iter().rev().take(ENDS_MAX);
    closed.find_map(|&end| object(&format!("{}]}}", &text[..=end])))
}

fn block(name: &'static str, value: &Value, known: &[&'static str]) -> ReplyBlock {
    let fields = value.as_object().into_iter().flatten();
    let fields = fields.filter_map(|(name, value)| {
        Some(Field {
            name: known.iter().find(|it| *it == name)?,
            content: content(value),
            end: TagEnd::Tag,
        })
    });
    ReplyBlock {
        name,
        fields: fields.collect(),
        closed: true,
    }
}

/// A text as it is, a list as lines.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => {
            let items = items.iter().map(|it| flat(&content(it)));
            items.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::agent::prompts::ANSWER_SCHEMA;
    use crate::agent::repair::TAGS;
    use crate::agent::reply::{self, Reply};
    use serde_json::{Value, json};

    fn answer() -> String {
        let observation = json!({
            "type": "decision", "title": "Seven, \"not\" six", "facts": ["one\nfact", "two"],
            "events": [3, 4], "supersedes": [12], "strange": "x",
        });
        let answer = json!({
            "observations": [observation, {"title": "Second"}],
            "summary": {"request": "", "completed": ""},
            "retract": ["#9: it fails"],
            "nothing": "",
        });
        answer.to_string()
    }

    fn titles(reply: &Reply) -> Vec<String> {
        let blocks = reply.observations.iter();
        blocks.map(|it| it.short(&["title"])).collect()
    }

    #[test]
    fn an_empty_list_says_that_nothing_is_worth_keeping() {
        let reply = reply::read(r#"{"observations": []}"#, TAGS);
        assert_eq!(reply.nothing.as_deref(), Some(""));
        assert_eq!(reply::read(r#"{"observations": ["#, TAGS).nothing, None);
    }

    #[test]
    fn json_is_read_like_tags() {
        for answer in [answer(), format!("```json\n{}\n```", answer())] {
            let reply = reply::read(&answer, TAGS);
            assert_eq!(titles(&reply), ["Seven, \"not\" six", "Second"]);
            let [first, _] = &reply.observations[..] else {
                panic!("two observations");
            };
            assert_eq!(first.list(&["facts"], "fact"), ["one fact", "two"]);
            assert_eq!(reply::numbers(&first.verbatim(&["events"])), [3, 4]);
            assert_eq!(first.verbatim(&["supersedes"]), "12");
            assert_eq!(reply.summary, None);
            assert_eq!(reply.nothing, None);
            assert_eq!(reply.marks, [("retract", "#9: it fails".to_owned())]);
        }
    }

    #[test]
    fn of_json_that_is_cut_off_the_complete_observations_are_read() {
        let answer = answer();
        let (first, _) = answer.split_once("{\"title\":\"Second").unwrap();
        let reply = reply::read(&format!("{first}{{\"title\":\"Sec"), TAGS);
        assert_eq!(titles(&reply), ["Seven, \"not\" six"]);
        assert!(reply.open_end);
        for nonsense in [
            "{",
            "{}",
            "{\"observations\": 3}",
            "} {",
            "a {\"observations\": []}",
        ] {
            assert_eq!(titles(&reply::read(nonsense, TAGS)), [] as [&str; 0]);
        }
    }

    #[test]
    fn every_field_of_the_schema_is_one_that_is_read() {
        let schema: Value = serde_json::from_str(ANSWER_SCHEMA).unwrap();
        let known = format!("{TAGS} {}", crate::agent::repair::CLOSING_TAGS);
        let known: Vec<&str> = known.split_whitespace().collect();
        let properties = &schema["properties"];
        for block in [&properties["observations"]["items"], &properties["summary"]] {
            let fields = block["properties"].as_object().unwrap();
            for field in fields.keys() {
                assert!(known.contains(&field.as_str()), "{field}");
            }
        }
    }
}
