//! A whole session of the real client, about which a model is asked in one conversation: from turn to
//! turn, by the next worker after a kill, begun anew when it costs too much, and once more when the
//! session is over. With provider `claude` the real client has both conversations.

use std::path::Path;

use serde_json::{Value, json};

use super::memory::{MEMORY, Remembering};
use super::{PROMPT, repair};
use crate::support::{signal, wait_until};

const CLOSING: &str = "<summary>
<title>The kumquat limit is seven</title>
<subtitle>All checks pass with it.</subtitle>
<request>Have the check pass</request>
<completed>limit.toml holds 7</completed>
<next_steps>Tell the customers</next_steps>
<retract>#2: it was six again</retract>
</summary>";

/// A turn that breaks and repairs something, and three small ones.
fn turns(app: &Path) -> Value {
    let mut turns = repair(app);
    let all = turns.as_array_mut().unwrap();
    for name in ["two", "three", "four"] {
        all.push(
            json!({"tool": "Bash", "input": {"command": format!("echo {name} > {name}.txt")}}),
        );
        all.push(format!("{name}.txt holds the word {name} now.").into());
    }
    turns
}

fn a_session_is_one_conversation(provider: &str) {
    let counted = |text: &str| {
        let usage = json!({
            "input_tokens": 100, "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 3, "output_tokens": 10,
        });
        json!({"text": text, "usage": usage})
    };
    let answers = [MEMORY, MEMORY, MEMORY, MEMORY, CLOSING].map(counted);
    let settings = "[model]\nconversation = \"session\"\nhistory_max_tokens = 100000\n";
    let user = Remembering::scripted(provider, turns, &json!(answers), settings);
    let sandbox = &user.claude.sandbox;
    let stored = |number: i64| {
        wait_until("the turn is stored", || {
            let answered = "select count(*) from ledger where state = 'answered'";
            let waiting = "select count(*) from events where kind <> 'receipt'";
            sandbox.count("memory.db", answered) == number
                && sandbox.count("queue.db", waiting) == 0
        });
    };

    let mut talk = user.claude.talk(&user.claude.app);
    talk.say(PROMPT);
    stored(1);
    talk.say("Now two");
    stored(2);
    signal(sandbox.worker_pid().expect("a worker runs"), "KILL");
    talk.say("Now three");
    stored(3);
    // Beyond the limit a new conversation begins. A worker ends when the settings change.
    let config = sandbox.home().join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("100000", "50")).unwrap();
    talk.say("Now four");
    stored(4);
    std::fs::write(&config, text).unwrap();
    talk.end();
    user.foreword(&["worker", "drain"]);

    let asked = user.asked();
    let of_user = |number: usize| {
        let messages = asked[number].0["messages"].as_array().unwrap().iter();
        messages.filter(|it| it["role"] == "user").count()
    };
    let carried: Vec<usize> = (0..asked.len()).map(of_user).collect();
    assert_eq!(carried, [1, 2, 3, 1, 2]);
    assert!(asked[2].contains("echo two > two.txt"));
    assert!(!asked[3].contains("echo two > two.txt"));
    assert!(asked[3].contains("limit.toml holds the kumquat limit that check.sh compares with 7"));
    assert!(asked[4].contains("It is over."));
    if provider == "claude" {
        let sessions: Vec<String> = asked.iter().map(super::Request::session).collect();
        assert_eq!(sessions[0], sessions[2]);
        assert_ne!(sessions[0], sessions[3]);
        assert_eq!(sessions[3], sessions[4]);
    }

    let retracted = "select count(*) from observations where retracted = 'it was six again'";
    assert_eq!(sandbox.count("memory.db", retracted), 1);
    for (column, sum) in [
        ("requests", 5),
        ("input_tokens", 5 * 123),
        ("cache_read_tokens", 5 * 3),
        ("output_tokens", 5 * 10),
    ] {
        let sql = format!("select sum({column}) from ledger");
        assert_eq!(sandbox.count("memory.db", &sql), sum, "{column}");
    }
    assert_eq!(
        sandbox.count("memory.db", "select count(*) from conversations"),
        0
    );
    let next = user.claude.ask(&user.claude.app, "What now?");
    let index = next.requests[0].contexts().pop().expect("an index");
    assert!(index.contains("The kumquat limit is seven"), "{index}");
    assert!(!index.contains("Kumquat limit fixed at seven"), "{index}");
}

#[test]
fn a_session_is_one_conversation_of_the_claude_cli() {
    a_session_is_one_conversation("claude");
}

#[test]
fn a_session_is_one_conversation_over_the_messages_api() {
    a_session_is_one_conversation("anthropic");
}

#[test]
fn a_session_is_one_conversation_with_a_model_of_any_make() {
    a_session_is_one_conversation("openai");
}
