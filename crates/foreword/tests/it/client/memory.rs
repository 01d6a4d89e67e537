//! End to end with a model: a provider derives memory from a session of the real client, and the
//! next session is shown it. With provider `claude` the real client is the
//! host and, isolated, the memory agent too.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::claude::Claude;
use super::model::{Model, Request};
use super::{PROMPT, repair};
use crate::support::claude_client;

/// The beginning of the memory agent's instructions, which no other request has.
const INSTRUCTIONS: &str = "You keep the memory of a coding agent";

pub const MEMORY: &str = "<observation>
<type>decision</type>
<title>Kumquat limit fixed at seven</title>
<subtitle>check.sh passes with it.</subtitle>
<facts><fact>limit.toml holds the kumquat limit that check.sh compares with 7</fact></facts>
<narrative>check.sh compares the number in limit.toml with 7, so that `a < b && c` holds.</narrative>
<concepts><concept>limits</concept></concepts>
<files_read></files_read>
<files_modified><file>limit.toml</file></files_modified>
</observation>
<summary>
<request>Have the check pass</request>
<investigated>Why check.sh failed</investigated>
<learned>The limit has to be 7</learned>
<completed>limit.toml holds 7</completed>
<next_steps>Cover the burst case</next_steps>
<files_read></files_read>
<files_edited><file>limit.toml</file></files_edited>
<notes></notes>
</summary>";

/// A user whose memory is written by a model.
pub struct Remembering {
    pub claude: Claude,
    /// The memory's own server, where it is not the host's.
    other: Option<Model>,
}

impl Remembering {
    fn new(provider: &str) -> Remembering {
        Remembering::scripted(provider, repair, &json!([]), "")
    }

    /// The host's model answers with `turns`, the memory agent's with `memory` and then always with
    /// `MEMORY`. `settings` are added to those of the provider.
    pub fn scripted(
        provider: &str,
        turns: impl Fn(&Path) -> Value,
        memory: &Value,
        settings: &str,
    ) -> Remembering {
        let claude = Claude::scripted(|app| {
            let memory = json!({
                "name": "memory", "match": {"system_contains": INSTRUCTIONS},
                "turns": memory, "then": MEMORY,
            });
            json!({"lanes": [memory], "turns": turns(app)})
        });
        let folder = claude.sandbox.user_home().join("other-model");
        let other = (provider == "openai").then(|| {
            let script = json!({"turns": memory, "then": MEMORY});
            Model::scripted("testdata/fake_openai.py", &folder, &script)
        });
        let host_port = claude.model.port();
        let openai_port = other.as_ref().map_or("0", Model::port);
        let settings = format!(
            "provider = \"{provider}\"\n\
             [claude]\ncommand = \"{}\"\n\
             [anthropic]\nbase_url = \"http://127.0.0.1:{host_port}\"\n\
             [openai]\nbase_url = \"http://127.0.0.1:{openai_port}/v1\"\nmodel = \"tiny\"\n{settings}",
            claude_client().display()
        );
        std::fs::write(claude.sandbox.home().join("config.toml"), settings).unwrap();
        Remembering { claude, other }
    }

    /// `foreword` as the user types it, with the environment that the client has.
    pub fn foreword(&self, arguments: &[&str]) -> String {
        let mut command: Command = self.claude.sandbox.command(arguments);
        let address = format!("http://127.0.0.1:{}", self.claude.model.port());
        command
            .env("ANTHROPIC_BASE_URL", address)
            .env("ANTHROPIC_API_KEY", "sk-ant-test-fake")
            .env("CLAUDE_CONFIG_DIR", self.claude.config_dir());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn drain(&self) {
        assert_eq!(
            self.foreword(&["worker", "drain"]),
            "everything is processed\n"
        );
    }

    /// The requests of the memory agent.
    pub fn asked(&self) -> Vec<Request> {
        match &self.other {
            Some(other) => other.requests(),
            None => self.claude.model.asked("memory"),
        }
    }
}

fn a_model_writes_what_opens_the_next_session(provider: &str) {
    let user = Remembering::new(provider);
    let claude = &user.claude;
    claude.ask(&claude.app, PROMPT);
    user.drain();
    let next = claude.ask(&claude.app, "What now?");
    user.drain();

    let first = &next.requests[0];
    let index = first.contexts().pop().expect("nothing was added");
    assert!(
        index.contains("decision: Kumquat limit fixed at seven"),
        "{index}"
    );
    assert!(index.contains("Cover the burst case"), "{index}");
    let session = "select count(*) from sessions where title = 'Have the check pass' and subtitle = 'limit.toml holds 7'";
    assert_eq!(claude.sandbox.count("memory.db", session), 1);

    // A call for the turn of the first session and one when it ended, none for the few words of the
    // second; the ledger has what the server counted.
    let asked = user.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].contains("the kumquat limit is 6, not 7"));
    let ledger = "select sum(requests) from ledger where state = 'answered'";
    assert_eq!(claude.sandbox.count("memory.db", ledger), 2);

    // Two sessions of the user's; the memory agent's own are none, and no hook ran in them.
    assert_eq!(claude.sandbox.status()["sessions"], 2);
    let dropped: Value = serde_json::from_str(&claude.sandbox.run(&["dropped", "--json"])).unwrap();
    assert_eq!(dropped["dropped"], json!([]));
}

#[test]
fn the_claude_cli_writes_what_opens_the_next_session() {
    a_model_writes_what_opens_the_next_session("claude");
}

#[test]
fn the_messages_api_writes_what_opens_the_next_session() {
    a_model_writes_what_opens_the_next_session("anthropic");
}

#[test]
fn a_model_of_any_make_writes_what_opens_the_next_session() {
    a_model_writes_what_opens_the_next_session("openai");
}

#[test]
fn the_memory_agent_knows_nothing_of_the_users_that_is_live_in_the_session() {
    let user = Remembering::new("claude");
    let claude = &user.claude;
    // Another program's hook that logs what ran, and instructions for every session.
    let settings = claude.config_dir().join("settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    let mut connected: Value = serde_json::from_str(&text).unwrap();
    let ran = claude.sandbox.user_home().join("ran");
    let line = format!("pwd >> '{}'; echo 'PAPAYA from a hook'", ran.display());
    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        let hooks = connected["hooks"][event].as_array_mut().unwrap();
        hooks.push(json!({"hooks": [{"type": "command", "command": line}]}));
    }
    std::fs::write(&settings, connected.to_string()).unwrap();
    for (place, words) in [
        (
            claude.config_dir().join("CLAUDE.md"),
            "PAPAYA for this user",
        ),
        (claude.app.join("CLAUDE.md"), "PAPAYA in this project"),
        (
            claude.sandbox.user_home().join("CLAUDE.md"),
            "PAPAYA at home",
        ),
        (
            claude.sandbox.home().join("CLAUDE.md"),
            "PAPAYA in the data",
        ),
    ] {
        std::fs::write(place, words).unwrap();
    }
    let mcp = "import sys, json\n\
        for line in sys.stdin:\n    m = json.loads(line)\n    if 'id' not in m: continue\n    r = {}\n    \
        if m['method'] == 'initialize': r = {'protocolVersion': m['params']['protocolVersion'], 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'fruit', 'version': '1'}, 'instructions': 'PAPAYA from a server'}\n    \
        elif m['method'] == 'tools/list': r = {'tools': [{'name': 'papaya', 'description': 'PAPAYA', 'inputSchema': {'type': 'object'}}]}\n    \
        elif m['method'] == 'server/discover':\n        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32601, 'message': 'no'}}), flush=True)\n        continue\n    \
        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n";
    std::fs::write(claude.app.join("fruit.py"), mcp).unwrap();
    let server = json!({"mcpServers": {"fruit": {"command": "python3", "args": [claude.app.join("fruit.py")]}}});
    std::fs::write(claude.app.join(".mcp.json"), server.to_string()).unwrap();

    let run = claude.ask(&claude.app, PROMPT);
    user.drain();
    // All of these apply in the user's session …
    let host = &run.requests[0];
    for words in [
        "PAPAYA from a hook",
        "PAPAYA for this user",
        "PAPAYA in this project",
        "PAPAYA from a server",
    ] {
        assert!(host.contains(words), "not live: {words}");
    }
    // … and none in the memory agent's.
    let asked = user.asked();
    // One question about the turn, one about the session.
    assert_eq!(asked.len(), 2);
    assert!(!asked[0].contains("PAPAYA"), "{:?}", asked[0]);
    assert_eq!(asked[0].0["tools"], json!([]));
    let ran = std::fs::read_to_string(ran).unwrap();
    let elsewhere: Vec<&str> = ran
        .lines()
        .filter(|line| *line != claude.app.to_string_lossy())
        .collect();
    assert_eq!(elsewhere, Vec::<&str>::new());
    // No conversation of the agent's is in the user's list.
    let lists = std::fs::read_dir(claude.config_dir().join("projects")).unwrap();
    let lists: Vec<String> = lists
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with("agent"))
        .collect();
    assert_eq!(lists, Vec::<String>::new());
}
