//! `search --format` has five levels, and each prints less than the next on the same memory: titles
//! of sessions, their summaries, titles of observations, facts, everything.

use serde_json::{Value, json};

use crate::mcp::Client;
use crate::offline::{Replay, SESSIONS};

const LEVELS: [&str; 5] = ["sessions", "summaries", "index", "facts", "full"];

fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

#[track_caller]
fn assert_each_costs_less_than_the_next(levels: &[String]) {
    let costs: Vec<_> = levels.iter().map(|text| tokens(text)).collect();
    // A memory of one turn has one line each in the first three; `summaries` has what was asked, too.
    let [sessions, summaries, index, facts, full] = costs[..] else {
        panic!("{costs:?}");
    };
    let rises = index < facts && facts < full && sessions < summaries && summaries < full;
    assert!(rises, "{costs:?}\n{}", levels.join("\n---\n"));
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn each_level_costs_less_than_the_next_on_both_roads() {
    for (name, project) in SESSIONS {
        let Replay {
            sandbox, project, ..
        } = Replay::new(name, project).turn_by_turn();
        let mut client = Client::new(&sandbox, &project);
        for words in ["", "test deploy runner"] {
            let printed = LEVELS.map(|level| {
                let since = ["--since", "2000-01-01"];
                let mut command = sandbox.command(&["search", words, "--format", level]);
                let output = command.args(since).current_dir(&project).output().unwrap();
                assert!(output.status.success(), "{output:?}");
                String::from_utf8(output.stdout).unwrap()
            });
            assert_each_costs_less_than_the_next(&printed);
            let texts = LEVELS
                .map(|level| client.text_of("search", json!({"query": words, "format": level})));
            assert_each_costs_less_than_the_next(&texts);
        }
        client.end();
    }
}

#[test]
fn hits_can_be_had_as_the_sessions_that_they_are_from() {
    let Replay {
        sandbox, project, ..
    } = Replay::new("bug-hunt", "tally").turn_by_turn();
    let plain = |text: String| {
        let today = text.lines().find_map(|line| line.get(10..26)).unwrap();
        text.replace(today, "TIME")
    };
    let mut command = sandbox.command(&["search", "timestamps", "--format", "summaries"]);
    let printed = command.current_dir(&project).output().unwrap().stdout;
    insta::assert_snapshot!(plain(String::from_utf8(printed).unwrap()), @"
    00000000  TIME  Bill an entry in the month of its own time zone (1 observation)
      #3 The March invoice for acme is 270 short: totals() puts part of it into February — Bill an entry in the month of its own time zone
    ");
    let mut client = Client::new(&sandbox, &project);
    let arguments = json!({"query": "timestamps", "format": "summaries"});
    let texts = client.text_of("search", arguments);
    let texts = texts.split_once("instructions.\n").unwrap().1;
    insta::assert_snapshot!(plain(texts.to_owned()), @"
    00000000  TIME  Bill an entry in the month of its own time zone (1 observation)
      #3 Bill an entry in the month of its own time zone
    </foreword-memory>
    ");
    client.end();
}

#[test]
fn command_agent_and_why_have_the_same_order() {
    let Replay {
        sandbox, project, ..
    } = Replay::new("bug-hunt", "tally").turn_by_turn();
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        let output = command.current_dir(&project).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let mut client = Client::new(&sandbox, &project);
    for words in ["total", "month of the invoice", "kumquat test"] {
        let printed = run(&["search", words, "--format", "json"]);
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let hits = printed.as_array().unwrap();
        assert!(!hits.is_empty(), "{words}");
        let array = client.text_of("search", json!({"query": words, "format": "json"}));
        assert_eq!(serde_json::from_str::<Value>(&array).unwrap(), printed);
        for (at, hit) in hits.iter().enumerate() {
            let why = run(&["why", &hit["id"].to_string(), words]);
            let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
            let rank = format!("“{words}” finds it at rank {};", at + 1);
            assert!(why.contains(&rank), "{rank}\n{why}");
            let score = format!("score {:.2}", hit["score"].as_f64().unwrap());
            assert!(why.contains(&score), "{score}\n{why}");
        }
    }
    let none = client.text_of("search", json!({"query": "kumquat", "format": "json"}));
    assert_eq!(none, "[]\n");
    client.end();
}
