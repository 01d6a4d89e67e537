//! Transcripts of the host: the inputs that are rebuilt from them, and lines that must do no harm.

use std::path::Path;

use foreword_core::host::{HOSTS, ReplayedInput};
use foreword_core::model::EventKind;
use proptest::prelude::*;
use serde_json::Value;

const SESSION: &str = "687d8424-9948-4ccb-a944-74dd0307c406";

fn recorded(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/transcript");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The lines of one turn, among lines from which no input is made.
fn turn() -> Vec<u8> {
    let mut refused = recorded("user.tool_result");
    refused["permissionDecision"]["decision"] = "reject".into();
    let mut done = recorded("assistant.text");
    done["message"]["stop_reason"] = "end_turn".into();
    done["message"]["content"][0]["text"] = "Written.".into();
    let lines = [
        recorded("queue-operation"),
        recorded("user.string.meta"),
        recorded("user.string"),
        recorded("attachment.file"),
        recorded("assistant.text"),
        recorded("assistant.tool_use"),
        refused,
        recorded("assistant.tool_use"),
        recorded("user.tool_result"),
        recorded("user.tool_result"),
        done,
        recorded("system.stop_hook_summary"),
        recorded("last-prompt"),
        recorded("user.string.compact_summary"),
        recorded("system.local_command"),
    ];
    let lines = lines.map(|line| format!("{line}\n"));
    lines.concat().into_bytes()
}

fn read(bytes: &[u8]) -> Vec<ReplayedInput> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    std::fs::write(&path, bytes).unwrap();
    read_file(&path)
}

fn read_file(path: &Path) -> Vec<ReplayedInput> {
    let mut all = Vec::new();
    let read: Result<(), ()> = HOSTS[0].replay(path, SESSION, |input| {
        all.push(input);
        Ok(())
    });
    read.unwrap();
    all
}

/// The event name of each input, and its prompt, tool or reply.
fn short(replayed: &[ReplayedInput]) -> Vec<String> {
    let line = |replayed: &ReplayedInput| {
        let input: Value = serde_json::from_str(&replayed.input).unwrap();
        assert_eq!(input["session_id"], SESSION);
        assert_eq!(input["prompt_id"], replayed.prompt_id.as_str());
        let about = ["prompt", "tool_name", "last_assistant_message"];
        let about = about.iter().find_map(|name| input[name].as_str());
        format!(
            "{} {}",
            input["hook_event_name"].as_str().unwrap(),
            about.unwrap()
        )
    };
    replayed.iter().map(line).collect()
}

const TURN: [&str; 3] = [
    "UserPromptSubmit main prompt please",
    "PostToolUse Write",
    "Stop Written.",
];

#[test]
fn a_turn_is_its_prompt_the_tools_that_ran_and_the_last_words() {
    let replayed = read(&turn());
    assert_eq!(short(&replayed), TURN);
    let input: Value = serde_json::from_str(&replayed[1].input).unwrap();
    let result = recorded("user.tool_result");
    assert_eq!(input["tool_response"], result["toolUseResult"]);
    assert_eq!(input["tool_input"]["content"], "hi there\nline two\n");
    assert_eq!(input["cwd"], "/home/dev/project");
    assert_eq!(replayed[1].branch.as_deref(), Some("master"));
    assert_eq!(replayed[1].at, 1_794_770_743_207);
}

#[test]
fn a_subagents_file_yields_only_its_tool_uses() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a/subagents");
    std::fs::create_dir_all(&folder).unwrap();
    let mut reply = recorded("assistant.tool_use.sidechain");
    reply["message"]["content"] = serde_json::json!([{"type": "text", "text": "Read."}]);
    reply["message"]["stop_reason"] = "end_turn".into();
    let mut asked = recorded("user.string");
    asked["agentId"] = "a365c1ede025e8b3e".into();
    let lines = [
        asked,
        recorded("assistant.tool_use.sidechain"),
        recorded("user.tool_result.sidechain"),
        reply,
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    std::fs::write(folder.join("agent-a365c1ede025e8b3e.jsonl"), lines).unwrap();
    let path = dir.path().join("a.jsonl");
    let replayed = read_file(&path);
    assert_eq!(short(&replayed), ["PostToolUse Read"]);
    let input: Value = serde_json::from_str(&replayed[0].input).unwrap();
    assert_eq!(input["agent_id"], "a365c1ede025e8b3e");
    assert_eq!(input["transcript_path"], path.to_str().unwrap());
    assert_eq!(input["tool_response"], "1\thi there\n2\tline 2\n3\t");
}

#[test]
fn lines_that_are_not_understood_are_skipped_and_nothing_else() {
    let other = String::from_utf8(turn()).unwrap().replace(SESSION, "other");
    let half = recorded("user.string").to_string();
    for junk in [
        b"\n\n".to_vec(),
        b"{\n".to_vec(),
        b"\xff\xfe\n".to_vec(),
        b"{\"sessionId\": 7}\n".to_vec(),
        half.as_bytes()[..half.len() / 2].to_vec(),
        other.into_bytes(),
        // Longer than the longest line that is read.
        [vec![b'x'; 17 << 20], b"\n".to_vec()].concat(),
    ] {
        assert_eq!(
            short(&read(&[junk.clone(), b"\n".to_vec(), turn()].concat())),
            TURN
        );
        assert_eq!(short(&read(&[turn(), junk].concat())), TURN);
    }
    assert_eq!(read_file(Path::new("/nowhere/a.jsonl")), []);
    assert_eq!(read_file(Path::new("/dev/null")), []);
}

/// A refused tool use, with the text that the client gives the model.
fn refused(said: &str) -> Value {
    let mut refused = recorded("user.tool_result");
    refused["permissionDecision"] = Value::Null;
    refused["toolUseResult"] = "User rejected tool use".into();
    let block = &mut refused["message"]["content"][0];
    block["is_error"] = true.into();
    block["content"] = format!(
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). {said}"
    )
    .into();
    refused
}

fn spoken(text: &str, uuid: &str, stop_reason: Value) -> Value {
    let mut line = recorded("assistant.text");
    line["message"]["stop_reason"] = stop_reason;
    line["message"]["content"][0]["text"] = text.into();
    line["uuid"] = uuid.into();
    line
}

fn lines(lines: &[Value]) -> Vec<u8> {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    lines.collect::<String>().into_bytes()
}

#[test]
fn a_refused_tool_use_is_there_with_the_users_reason() {
    let said = "To tell you how to proceed, the user said:\nno tokens under my account";
    let stop = "STOP what you are doing and wait for the user to tell you how to proceed.";
    let transcript = [
        recorded("user.string"),
        recorded("assistant.tool_use"),
        refused(said),
        recorded("assistant.tool_use"),
        refused(stop),
    ];
    let replayed = read(&lines(&transcript));
    assert_eq!(
        short(&replayed),
        ["UserPromptSubmit main prompt please", "ToolRefused Write"]
    );
    let input: Value = serde_json::from_str(&replayed[1].input).unwrap();
    assert_eq!(input["reason"], "no tokens under my account");
    assert_eq!(replayed[1].kind, EventKind::Refusal);
    assert_eq!(
        replayed[1].tool_use_id.as_deref(),
        Some("toolu_01a73f276743144665a2302f")
    );

    let mut decided = recorded("user.tool_result");
    decided["permissionDecision"] =
        serde_json::json!({"decision": "reject", "source": "user", "reason": "not here"});
    let transcript = [
        recorded("user.string"),
        recorded("assistant.tool_use"),
        decided,
    ];
    let input: Value = serde_json::from_str(&read(&lines(&transcript))[1].input).unwrap();
    assert_eq!(input["reason"], "not here");
}

#[test]
fn words_between_tool_calls_are_taken_if_the_last_words_are_few() {
    let cause = "The cause is that the parser reads the whole file twice. ".repeat(3);
    for (closing, expected) in [("Done.", 1), ("It is done, and all of it is tested.", 0)] {
        let transcript = [
            recorded("user.string"),
            spoken(&cause, "m1", "tool_use".into()),
            recorded("assistant.tool_use"),
            recorded("user.tool_result"),
            spoken("Now the rest.", "m2", "tool_use".into()),
            spoken(closing, "m3", "end_turn".into()),
        ];
        let replayed = read(&lines(&transcript));
        let words: Vec<_> = replayed
            .iter()
            .filter(|it| it.kind == EventKind::Words)
            .collect();
        assert_eq!(words.len(), expected, "{closing}");
        let said = format!("WordsBetween {cause}");
        assert!(
            words
                .iter()
                .all(|it| it.tool_use_id.as_deref() == Some("m1"))
        );
        assert_eq!(short(&replayed).contains(&said), expected == 1, "{closing}");
        assert_eq!(*short(&replayed).last().unwrap(), format!("Stop {closing}"));
    }
}

#[test]
fn a_transcript_of_an_older_client_has_turns_too() {
    let older = |mut line: Value| {
        line.as_object_mut().unwrap().remove("promptId");
        line.as_object_mut().unwrap().remove("permissionDecision");
        line
    };
    let mut second = older(recorded("user.string"));
    second["uuid"] = "u2".into();
    second["message"]["content"] = "And now?".into();
    let mut agent = second.clone();
    agent["isSidechain"] = true.into();
    let transcript = [
        older(recorded("user.string")),
        agent,
        spoken("I look.", "m1", Value::Null),
        recorded("assistant.tool_use"),
        older(recorded("user.tool_result")),
        spoken("Written.", "m2", Value::Null),
        second,
        spoken("Nothing more.", "m3", Value::Null),
    ];
    let replayed = read(&lines(&transcript));
    assert_eq!(
        short(&replayed),
        [
            TURN.as_slice(),
            &["UserPromptSubmit And now?", "Stop Nothing more."]
        ]
        .concat()
    );
    let turns: Vec<_> = replayed.iter().map(|it| it.prompt_id.as_str()).collect();
    let first = format!("line-{}", recorded("user.string")["uuid"].as_str().unwrap());
    assert_eq!(turns, [&first, &first, &first, "line-u2", "line-u2"]);
}

#[test]
fn of_a_very_long_transcript_the_end_is_read() {
    let filler = [vec![b'x'; 1 << 20], b"\n".to_vec()].concat().repeat(33);
    assert_eq!(read(&[turn(), filler.clone()].concat()), []);
    assert_eq!(short(&read(&[filler, turn()].concat())), TURN);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn flipped_bytes_cost_the_lines_they_are_in_at_most(
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = turn();
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert!(read(&bytes).len() <= TURN.len() + 1);
    }
}
