//! The agent asks for what the index only names: the real client calls our MCP server.

use serde_json::json;

use super::claude::Claude;
use super::model::Model;
use super::{PROMPT, repair};

#[test]
fn the_next_session_searches_and_reads_what_the_first_one_learned() {
    let mut claude = Claude::new(repair);
    claude.ask(&claude.app, PROMPT);
    claude.sandbox.drain();
    let id = claude.sandbox.count(
        "memory.db",
        "select id from observations where title like 'Fixed %kumquat%'",
    );
    let turns = json!([
        {"tool": "mcp__foreword__search", "input": {"query": "kumquat limit", "type": "bugfix"}},
        {"tool": "mcp__foreword__get_observations", "input": {"ids": [id]}},
        "It was 6.",
    ]);
    claude.model = Model::start(&claude.sandbox.user_home().join("second-model"), &turns);
    let run = claude.ask(&claude.app, "What was the limit?");
    let [first, found, read] = run.requests.as_slice() else {
        panic!("{:?}", run.requests);
    };
    let tools = first.tools();
    let loaded = |name: &str| tools.contains(&format!("mcp__foreword__{name}").as_str());
    assert!(loaded("search") && loaded("get_observations"), "{tools:?}");
    assert!(!loaded("forget"), "{tools:?}");
    assert!(first.says("Memory of earlier sessions in this project."));
    let found = found.tool_result();
    assert!(
        found.contains(&format!("#{id} bugfix Fixed “error: the kumquat")),
        "{found}"
    );
    let read = read.tool_result();
    assert!(
        read.contains("kumquat limit is 6, not 7") && read.contains("limit.txt"),
        "{read}"
    );
    assert_eq!(run.reply, "It was 6.");

    // Reading the memory is nothing to remember.
    claude.sandbox.drain();
    let tools = "select count(*) from events where tool_name like 'mcp__foreword%'";
    assert_eq!(claude.sandbox.count("memory.db", tools), 0);
}
