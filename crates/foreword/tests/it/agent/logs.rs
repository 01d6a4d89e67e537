//! The log files: which lines they have, and that they hold no captured text.

use serde_json::{Value, json};

use super::world::{Agent, Provider, answer};
use crate::support::Sandbox;

/// A mark in every text that a user or an agent could have written; no log may hold it.
const MARK: &str = "zebrafinch";

#[test]
fn logs_say_what_happened_and_nothing_of_what_was_said() {
    let agent = Agent::new(Provider::OpenAi);
    let sandbox = &agent.sandbox;
    // One answer after another that is of no use, each with our own words in it.
    let echo = json!({"error": {"status": 400, "type": "invalid_request_error", "message": format!("bad input: {MARK}")}});
    let prose = format!("I will not say anything about {MARK}.");
    let wall = json!({"error": {"status": 401, "type": "authentication_error", "message": MARK}});
    let turns = json!([echo, prose, prose, echo, prose, prose, prose]);
    agent.script(&json!({"turns": turns, "then": answer(MARK)}));
    let mut host = agent.host("s1");
    agent.send(&host.prompt(&format!("Please look at {MARK}")));
    agent.send(&host.bash(&format!("cat {MARK}.txt"), &format!("it says {MARK}")));
    agent.send(&host.bash_failed(&format!("run {MARK}"), &format!("{MARK}: not found")));
    agent.send(&host.stop(&format!("{MARK} is done.")));
    sandbox.run(&["worker", "drain"]);
    agent.script(&json!({"then": wall}));
    host.prompt = "second".to_owned();
    agent.send(&host.prompt(&format!("And another {MARK}")));
    agent.send(&host.edit("limit.txt", "6", "7"));
    sandbox.run(&["worker", "drain"]);
    // What hooks cannot read, or leave out on purpose.
    for input in [
        format!("{{\"session_id\": \"{MARK}"),
        format!("{MARK} {MARK}"),
    ] {
        assert!(
            sandbox
                .hook("save", &agent.project, input.as_bytes())
                .status
                .success()
        );
    }
    agent.send(&host.tool("Glob", json!({"pattern": MARK}), json!(MARK)));
    std::fs::write(sandbox.home().join("spool/torn.json"), MARK).unwrap();
    sandbox.run(&["worker", "stop"]);
    sandbox.keep_workers_away();
    for log in ["queue.db-wal", "queue.db-shm"] {
        std::fs::remove_file(sandbox.home().join(log)).unwrap();
    }
    std::fs::write(sandbox.home().join("queue.db"), MARK.repeat(1000)).unwrap();
    agent.send(&host.prompt(&format!("Once more {MARK}")));
    sandbox.run(&["worker", "drain"]);

    let logs = sandbox.run(&["logs", "--lines", "1000"]);
    for (log, words) in [
        ("work", "came up"),
        ("work", "of session s1 processed"),
        ("worker", ": auth"),
        ("worker", "queue.db was damaged"),
        ("hook", "not the JSON of a hook"),
        ("hook", "the event was spooled"),
    ] {
        let noted =
            |line: &str| line.split_whitespace().nth(2) == Some(log) && line.contains(words);
        assert!(logs.lines().any(noted), "{log}: {words}\n{logs}");
    }
    let written = std::fs::read_dir(sandbox.home().join("logs")).unwrap();
    for entry in written {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains(MARK), "{text}");
    }

    // In order of time, the last ones, as many as asked for.
    let times: Vec<_> = logs.lines().map(|line| line.split(' ').next()).collect();
    assert!(times.is_sorted(), "{logs}");
    // Of a copy: a worker that `drain` left behind may still write here.
    let copy = Sandbox::new();
    std::fs::create_dir_all(copy.home().join("logs")).unwrap();
    for entry in std::fs::read_dir(sandbox.home().join("logs")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(
            entry.path(),
            copy.home().join("logs").join(entry.file_name()),
        )
        .unwrap();
    }
    let logs = copy.run(&["logs", "--lines", "1000"]);
    let last: Vec<&str> = logs.lines().rev().take(3).collect();
    let asked = copy.run(&["logs", "--lines", "3"]);
    assert_eq!(asked.lines().rev().collect::<Vec<_>>(), last);
    let rows: Vec<Value> =
        serde_json::from_str(&copy.run(&["logs", "--json", "--lines", "1"])).unwrap();
    let [row] = rows.as_slice() else {
        panic!("{rows:?}")
    };
    let field = |name: &str| row[name].as_str().unwrap();
    // People read local time, which is UTC in tests.
    let at = field("at").replace('T', " ").replace('Z', "");
    assert_eq!(
        format!("{at} {:<7} {}", field("log"), field("what")),
        last[0]
    );
}

#[test]
fn logs_of_a_home_that_is_not_there_say_so_and_make_none() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["logs"]), "nothing happened yet\n");
    assert_eq!(sandbox.run(&["logs", "--json"]), "[]\n");
    assert!(!sandbox.home().exists());
}
