//! Every recorded payload of Claude Code, given to every hook command: the event that it
//! becomes, with its fields, or the reason why there is none.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use foreword_core::capture::{CaptureContext, CaptureSettings, Captured, Drop, Hook, capture};
use foreword_core::host::HOSTS;
use foreword_core::project::Rules;

fn recorded() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/claude-code/hooks");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn context() -> CaptureContext {
    CaptureContext {
        host: &HOSTS[0],
        now: 1_763_000_000_000,
        event_id: uuid::Uuid::nil(),
        project_dir: None,
        rules: Rules {
            not_projects: vec![PathBuf::from("/home/dev")],
            separate_worktrees: false,
        },
    }
}

#[test]
fn every_recorded_payload_becomes_the_event_it_is_or_nothing() {
    let mut table = String::new();
    let files = recorded();
    assert_eq!(files.len(), 57);
    for file in files {
        let input = std::fs::read(&file).unwrap();
        let _ = writeln!(table, "{}", file.file_name().unwrap().display());
        let mut nothing = Vec::new();
        for &hook in Hook::ALL {
            match capture(hook, &input, &context(), &CaptureSettings::default()) {
                Captured::Event(event) => {
                    let fields = serde_json::to_value(&event).unwrap();
                    let _ = writeln!(table, "  {}:", hook.name());
                    for (name, value) in fields.as_object().unwrap() {
                        let same_everywhere = ["id", "at", "host"].contains(&name.as_str());
                        if !value.is_null() && !same_everywhere {
                            let _ = writeln!(table, "    {name} = {value}");
                        }
                    }
                }
                Captured::Dropped(Drop::OtherEvent) => nothing.push(hook.name()),
                Captured::Dropped(drop) => {
                    let _ = writeln!(table, "  {}: nothing ({drop})", hook.name());
                }
            }
        }
        let _ = writeln!(table, "  not answered by {}", nothing.join(", "));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_same_payload_received_twice_has_one_key_and_a_resume_has_another() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/claude-code/hooks");
    for (name, hook) in [
        ("SessionStart.resume.json", Hook::Context),
        ("UserPromptSubmit.json", Hook::New),
        ("PostToolUse.Bash.json", Hook::Save),
        ("Stop.json", Hook::Summary),
        ("SessionEnd.other.json", Hook::Cleanup),
    ] {
        let input = std::fs::read(folder.join(name)).unwrap();
        let key_at = |now| {
            let context = CaptureContext { now, ..context() };
            match capture(hook, &input, &context, &CaptureSettings::default()) {
                Captured::Event(event) => event.key,
                Captured::Dropped(drop) => panic!("{name}: {drop}"),
            }
        };
        let now = context().now;
        assert_eq!(key_at(now), key_at(now + 40), "{name}");
        let repeats = matches!(hook, Hook::Context | Hook::Cleanup);
        assert_eq!(key_at(now) != key_at(now + 60_000), repeats, "{name}");
    }
}

#[test]
fn a_secret_is_gone_before_the_cut_wherever_it_stands() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let settings = CaptureSettings::default();
    let max = settings.limits.field_max;
    for at in [0, max / 2 - 20, max / 2 - 1, max - 10, 3 * max] {
        let text = format!("{} {secret} {}", "x".repeat(at), "y ".repeat(4 * max));
        let input = serde_json::json!({
            "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "t",
            "tool_input": {"command": text}, "tool_response": {"stdout": text},
        });
        let captured = capture(
            Hook::Save,
            input.to_string().as_bytes(),
            &context(),
            &settings,
        );
        let Captured::Event(event) = captured else {
            panic!("{captured:?}")
        };
        let kept = serde_json::to_string(&event).unwrap();
        assert!(!kept.contains("a1B2a1B2"), "at {at}");
        assert!(kept.len() < settings.limits.payload_max + 4096);
        assert_eq!(event.payload.redacted, 2);
        assert_eq!(event.payload.cut.len(), 2);
    }
}

#[test]
fn no_cut_shows_a_part_of_any_kind_of_secret() {
    // Built at run time; `part` is in every one of them, at its beginning and its end.
    let part = "q7Zx";
    let core = format!("{part}{}{part}", "a1B2".repeat(8));
    let kinds = [
        format!("ghp_{core}"),
        format!("sk-proj-{core}"),
        format!("eyJ{core}.eyJ{core}.{core}"),
        format!("DB_PASS={core}"),
        format!("DB_PASSWORD=\"{core} {core}\""),
        format!("\"password\": \"{core}\""),
        format!("<password>{core}</password>"),
        format!("postgres://u:{core}@db"),
        format!("Authorization: token {core}"),
        format!("Cookie: session={core}"),
        format!("mysql -p{core} db"),
        format!("my api key is {core}"),
        format!("-----BEGIN X PRIVATE KEY-----\n{core}\n-----END X PRIVATE KEY-----"),
        format!("<private>{core}</private>"),
    ];
    let mut settings = CaptureSettings::default();
    settings.limits.field_max = 256;
    for kind in kinds {
        // Every position around the end of the head and the beginning of the tail.
        for at in 0..300 {
            for (before, after) in [(at, 400), (400, at)] {
                let text = format!("{}\n{kind}\n{}", ". ".repeat(before), ". ".repeat(after));
                let input = serde_json::json!({
                    "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": text,
                });
                let input = input.to_string();
                let captured = capture(Hook::New, input.as_bytes(), &context(), &settings);
                let Captured::Event(event) = captured else {
                    panic!("{captured:?}")
                };
                let kept = serde_json::to_string(&event.payload).unwrap();
                assert!(!kept.contains(part), "{before}, {after}: {kept}");
                assert!(!kept.contains("a1B2"), "{before}, {after}: {kept}");
            }
        }
    }
}

#[test]
fn a_payload_of_many_small_fields_is_cut_to_size_too() {
    let fields: serde_json::Map<_, _> = (0..20_000)
        .map(|n| (format!("field{n}"), "small".into()))
        .collect();
    let input = serde_json::json!({
        "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "mcp__x__y",
        "tool_input": fields, "tool_response": [{"type": "text", "text": "ok"}],
    });
    let Captured::Event(event) = capture(
        Hook::Save,
        input.to_string().as_bytes(),
        &context(),
        &CaptureSettings::default(),
    ) else {
        panic!()
    };
    assert!(
        serde_json::to_string(&event.payload).unwrap().len()
            <= CaptureSettings::default().limits.payload_max
    );
    assert!(event.payload.cut.iter().any(|(field, _)| field == "input"));
}

#[test]
fn half_an_emoji_or_an_odd_field_does_not_cost_the_event() {
    let input =
        br#"{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt_id":"p","cwd":17,
        "prompt":"half \ud83d, whole \ud83d\ude00, low \ude00 end \\ud83d","reason":["x"]}"#;
    let Captured::Event(event) = capture(Hook::New, input, &context(), &CaptureSettings::default())
    else {
        panic!()
    };
    let expected = "half \u{fffd}, whole \u{1f600}, low \u{fffd} end \\ud83d";
    assert_eq!(event.payload.prompt.as_deref(), Some(expected));
    assert_eq!(event.cwd, None);

    let input = br#"{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Bash","tool_use_id":"t",
        "tool_input":{"command":"echo \ud83d"},"tool_response":{"stdout":"\ude00 out","stderr":""}}"#;
    let Captured::Event(event) =
        capture(Hook::Save, input, &context(), &CaptureSettings::default())
    else {
        panic!()
    };
    assert_eq!(
        event.payload.input,
        Some(serde_json::json!({"command": "echo \u{fffd}"}))
    );
    let response = serde_json::json!({"stdout": "\u{fffd} out", "stderr": ""});
    assert_eq!(event.payload.response, Some(response));
}

#[test]
fn without_an_id_the_same_words_later_are_another_prompt() {
    let input = br#"{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"yes, go on"}"#;
    let key_at = |now| match capture(
        Hook::New,
        input,
        &CaptureContext { now, ..context() },
        &CaptureSettings::default(),
    ) {
        Captured::Event(event) => event.key,
        Captured::Dropped(drop) => panic!("{drop}"),
    };
    let now = context().now;
    assert_eq!(key_at(now), key_at(now + 5));
    assert_ne!(key_at(now), key_at(now + 60_000));
}
