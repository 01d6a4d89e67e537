//! Made-up secrets in every channel through which a text reaches the memory, with both stages of redaction.
//!
//! `testdata/secrets` has the corpora: ours, and a second one by somebody who had not seen the
//! rules. Each secret is put into every channel; then the event is captured as in a hook and
//! redacted as in the worker. The test prints what leaked, by family, and fails above a limit.
#![expect(
    clippy::disallowed_macros,
    reason = "the rates are shown with `--nocapture`"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use foreword_core::capture::{CaptureContext, CaptureSettings, Captured, Hook, capture};
use foreword_core::host::HOSTS;
use foreword_core::model::Event;
use foreword_core::project::Rules;
use foreword_core::redact;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Secret {
    id: String,
    family: String,
    known_shape: bool,
    text: String,
    secrets: Vec<String>,
    /// Whether the secret is recognised without anything around it.
    #[serde(default)]
    alone: bool,
}

#[derive(Deserialize)]
struct Innocent {
    id: String,
    text: String,
}

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(path)
}

fn corpus<T: for<'de> Deserialize<'de>>(path: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// The event of a hook's input, as it is queued.
fn captured(hook: Hook, input: &Value, project_dir: Option<&Path>) -> Event {
    let context = CaptureContext {
        host: &HOSTS[0],
        now: 1_763_000_000_000,
        event_id: uuid::Uuid::nil(),
        project_dir: project_dir.map(Path::to_owned),
        rules: Rules::default(),
    };
    let input = input.to_string();
    match capture(
        hook,
        input.as_bytes(),
        &context,
        &CaptureSettings::default(),
    ) {
        Captured::Event(event) => *event,
        Captured::Dropped(drop) => panic!("{drop}: {input}"),
    }
}

/// All texts of a value, also the names of fields.
fn texts(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => *all += &format!("{text}\n"),
        Value::Array(items) => items.iter().for_each(|item| texts(item, all)),
        Value::Object(fields) => {
            for (name, field) in fields {
                *all += &format!("{name}\n");
                texts(field, all);
            }
        }
        _ => {}
    }
}

/// What memory.db would hold of an event.
fn stored(mut event: Event) -> String {
    redact::event(&mut event);
    let mut all = String::new();
    texts(&serde_json::to_value(&event).unwrap(), &mut all);
    all
}

fn tool(name: &str, input: Value, response: Value) -> String {
    let input = json!({
        "hook_event_name": "PostToolUse", "session_id": "s", "tool_use_id": "t",
        "tool_name": name, "tool_input": input, "tool_response": response,
    });
    stored(captured(Hook::Save, &input, None))
}

/// The events that are read from a transcript.
fn filled_in(text: &str) -> String {
    let recorded = |name: &str| -> Value {
        let text = std::fs::read_to_string(testdata("transcript").join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let mut prompt = recorded("user.string.json");
    prompt["message"]["content"] = text.into();
    let mut reply = recorded("assistant.text.json");
    reply["message"]["stop_reason"] = "end_turn".into();
    reply["message"]["content"][0]["text"] = text.into();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{prompt}\n{reply}\n")).unwrap();
    let mut all = String::new();
    let session = prompt["sessionId"].as_str().unwrap();
    let read: Result<(), ()> = HOSTS[0].replay(file.path(), session, |input| {
        let event = captured(
            input.hook,
            &serde_json::from_str(&input.input).unwrap(),
            None,
        );
        all += &stored(event);
        Ok(())
    });
    read.unwrap();
    assert!(!all.is_empty());
    all
}

/// A secret as the name of everything that an event records beside its content.
fn names(secret: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join(secret);
    std::fs::create_dir_all(root.join(".git")).unwrap();
    std::fs::write(
        root.join(".git/HEAD"),
        format!("ref: refs/heads/{secret}\n"),
    )
    .unwrap();
    let remote = format!(
        "[remote \"origin\"]\n\turl = https://h.example/{secret}/x.git?private_token={secret}\n"
    );
    std::fs::write(root.join(".git/config"), remote).unwrap();
    let input = json!({
        "hook_event_name": "PostToolUse", "session_id": secret, "tool_use_id": secret, "prompt_id": secret,
        "agent_id": secret, "cwd": root, "transcript_path": root.join("t.jsonl"), "tool_name": secret, secret: 1,
        "tool_input": {"file_path": root.join(secret), secret: "x"}, "tool_response": {},
    });
    stored(captured(Hook::Save, &input, Some(&root))).to_lowercase()
}

/// The text in each channel, as it is stored.
fn channels(text: &str) -> Vec<(&'static str, String)> {
    let added: Vec<String> = text.lines().map(|line| format!("+{line}")).collect();
    let blocks: Vec<Value> = text
        .lines()
        .map(|line| json!({"type": "text", "text": line}))
        .collect();
    let patch = json!({"structuredPatch": [{"oldStart": 1, "lines": added}]});
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": text});
    let stop =
        json!({"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": text});
    let file = "/p/notes.txt";
    vec![
        (
            "tool input",
            tool("Bash", json!({"command": text}), json!({})),
        ),
        (
            "tool output",
            tool("Bash", json!({"command": "make"}), json!({"stdout": text})),
        ),
        (
            "lines of a change",
            tool("Edit", json!({"file_path": file}), patch.clone()),
        ),
        (
            "edited text",
            tool(
                "Edit",
                json!({"file_path": file, "old_string": text, "new_string": text}),
                json!({}),
            ),
        ),
        (
            "written file",
            tool("Write", json!({"file_path": file, "content": text}), patch),
        ),
        (
            "MCP result",
            tool("mcp__x__y", json!({"q": [text]}), blocks.into()),
        ),
        ("prompt", stored(captured(Hook::New, &prompt, None))),
        ("last words", stored(captured(Hook::Summary, &stop, None))),
        ("transcript", filled_in(text)),
        (
            "note, question, remember",
            redact::thorough(text).text.into_owned(),
        ),
    ]
}

/// Checks a corpus; returns how many of its secrets leaked in any channel.
fn check(path: &Path) -> (usize, usize) {
    let mut by_family: BTreeMap<(String, bool), (usize, usize)> = BTreeMap::new();
    let mut in_channels = 0;
    for item in corpus::<Secret>(path) {
        let channels = channels(&item.text);
        for secret in &item.secrets {
            let found = |(_, stored): &&(&str, String)| stored.contains(secret.as_str());
            let mut leaks: Vec<&str> = channels
                .iter()
                .filter(found)
                .map(|(name, _)| *name)
                .collect();
            if item.alone && names(secret).contains(&secret.to_lowercase()) {
                leaks.push("names");
            }
            in_channels += channels.len() + usize::from(item.alone);
            let count = by_family
                .entry((item.family.clone(), item.known_shape))
                .or_default();
            count.1 += 1;
            if !leaks.is_empty() {
                count.0 += 1;
                println!("{} in {leaks:?}: {secret}", item.id);
            }
        }
    }
    let (mut leaked, mut known_leaked, mut all) = (0, 0, 0);
    for ((family, known_shape), (leaks, count)) in &by_family {
        leaked += leaks;
        all += count;
        known_leaked += if *known_shape { *leaks } else { 0 };
        if *leaks > 0 {
            println!("{family}: {leaks} of {count}");
        }
    }
    println!(
        "{}: {leaked} of {all} secrets leak ({:.1} %), {known_leaked} with a known shape; {} families, {in_channels} places",
        path.display(),
        leaked as f64 * 100.0 / all as f64,
        by_family.len(),
    );
    assert!(leaked as f64 <= all as f64 * 0.03, "{leaked} of {all}");
    (known_leaked, all)
}

/// Checks that at most one innocent text in a hundred is changed.
fn check_innocent(path: &Path) {
    let innocent = corpus::<Innocent>(path);
    let mut changed = 0;
    for item in &innocent {
        let prompt =
            json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": item.text});
        let mut event = captured(Hook::New, &prompt, None);
        redact::event(&mut event);
        if event.payload.prompt.as_ref() != Some(&item.text) {
            changed += 1;
            println!("{} is changed: {:?}", item.id, event.payload.prompt);
        }
    }
    println!(
        "{}: {changed} of {} innocent texts changed",
        path.display(),
        innocent.len()
    );
    assert!(
        changed * 100 <= innocent.len(),
        "{changed} of {}",
        innocent.len()
    );
}

#[test]
fn our_secrets_are_found_in_every_channel() {
    let (known_leaked, all) = check(&testdata("secrets/secrets.jsonl"));
    assert_eq!(known_leaked, 0);
    assert!(all >= 120, "{all}");
    check_innocent(&testdata("secrets/innocent.jsonl"));
}

#[test]
fn secrets_that_were_collected_without_knowing_the_rules_are_found_too() {
    let (known_leaked, _) = check(&testdata("secrets/second.jsonl"));
    assert_eq!(known_leaked, 0);
    check_innocent(&testdata("secrets/second_innocent.jsonl"));
}

/// Another corpus in the same format, named by `FOREWORD_TEST_SECRETS`: a folder with `secrets.jsonl`
/// and `innocent.jsonl`.
#[test]
#[ignore = "needs a corpus of your own"]
#[expect(clippy::disallowed_methods, reason = "a test may read the environment")]
fn a_corpus_of_your_own() {
    let folder = PathBuf::from(std::env::var("FOREWORD_TEST_SECRETS").unwrap());
    check_innocent(&folder.join("innocent.jsonl"));
    let (known_leaked, _) = check(&folder.join("secrets.jsonl"));
    assert_eq!(known_leaked, 0);
}
