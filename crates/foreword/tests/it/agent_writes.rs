//! The coding agent itself writes the memory, by `remember`, if the user chose that at install.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mcp::Client;
use crate::support::{Host, Sandbox};

const ASKED: &str = "call Foreword's `remember` once";

struct Scene {
    sandbox: Sandbox,
    project: PathBuf,
}

impl Scene {
    fn installed(arguments: &[&str]) -> Scene {
        let sandbox = Sandbox::new();
        sandbox.run(&[&["install"], arguments].concat());
        let project = sandbox.project("app");
        Scene { sandbox, project }
    }

    fn send(&self, hook: &str, input: &Value) -> String {
        self.sandbox.run_hook(hook, &self.project, input)
    }

    /// Has the agent call `remember`: the server stores it, and the hook sends the call.
    fn remember(&self, host: &Host, text: &str) {
        let mut command = self.sandbox.command(&["mcp"]);
        command.env("CLAUDE_CODE_SESSION_ID", "stale");
        let mut client = Client::in_project(command, &self.project);
        let answer = client.text_of("remember", json!({"text": text, "type": "discovery"}));
        client.end();
        let response = json!([{"type": "text", "text": answer}]);
        let call = host.tool("mcp__foreword__remember", json!({"text": text}), response);
        self.send("save", &call);
    }

    fn rows(&self, sql: &str) -> Vec<String> {
        let memory = self.sandbox.database("memory.db");
        let mut statement = memory.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }
}

/// Work from which `offline` derives an observation.
fn work(scene: &Scene, host: &Host, before: &str, after: &str) {
    scene.send("new", &host.prompt("Raise the kumquat limit"));
    scene.send("save", &host.edit("limit.toml", before, after));
    scene.send(
        "save",
        &host.bash(
            "git commit -m 'Raise the kumquat limit'",
            "[main 1234567] Raise the kumquat limit\n 1 file changed",
        ),
    );
}

#[test]
fn what_the_agent_wrote_is_all_that_is_kept_of_the_turn() {
    let scene = Scene::installed(&["--provider", "agent", "--allow-tools"]);
    let mut host = Host::new("s1", &scene.project);
    assert!(
        scene
            .send("context", &host.start("startup"))
            .contains(ASKED)
    );
    work(&scene, &host, "limit = 6", "limit = 7");
    scene.remember(&host, "The crates hold seven kumquats, so the limit is 7.");
    scene.send(
        "summary",
        &host.stop("The kumquat limit is 7 now, since the crates hold seven."),
    );
    scene.sandbox.drain();
    let all = "select o.origin || ' ' || o.provider || ' ' || s.host_session_id || ' ' || p.number || ' ' || o.title
               from observations o join sessions s on s.id = o.session_id
               left join prompts p on p.id = o.prompt_id order by o.id";
    let first = "agent agent s1 1 The crates hold seven kumquats, so the limit is 7.";
    assert_eq!(scene.rows(all), [first]);
    assert_eq!(scene.sandbox.status()["summaries"], 0);

    // A turn without a call is derived offline.
    host.prompt = "s1-second".to_owned();
    work(&scene, &host, "limit = 7", "limit = 8");
    scene.send(
        "summary",
        &host.stop("The kumquat limit is 8 now, since new crates hold eight."),
    );
    scene.sandbox.drain();
    let rows = scene.rows(all);
    assert_eq!(rows[0], first);
    assert!(
        rows.len() > 1 && rows[1].starts_with("agent offline s1 2 "),
        "{rows:?}"
    );

    // Deriving again leaves both as they are.
    scene.sandbox.run(&["redo", "s1"]);
    assert_eq!(scene.rows(all), rows);
    let next = scene.send("context", &Host::new("s2", &scene.project).start("startup"));
    assert!(
        next.contains("The crates hold seven kumquats") && next.contains(ASKED),
        "{next}"
    );
    assert!(!next.contains("Laid down by the user"), "{next}");
}

#[test]
fn the_agent_is_asked_only_if_it_was_chosen_and_may_call_the_tool() {
    let asked = |scene: &Scene| {
        let start = Host::new("s1", &scene.project).start("startup");
        scene.send("context", &start).contains(ASKED)
    };
    let settings = |scene: &Scene| {
        let path = scene.sandbox.user_home().join(".claude/settings.json");
        std::fs::read_to_string(path).unwrap()
    };
    let scene = Scene::installed(&["--allow-tools"]);
    assert!(!asked(&scene), "off by default");
    assert!(!settings(&scene).contains("mcp__foreword__remember"));

    let dry = scene
        .sandbox
        .run(&["install", "--provider", "agent", "--dry-run"]);
    assert!(
        dry.contains("+") && dry.contains("mcp__foreword__remember"),
        "{dry}"
    );
    scene.sandbox.run(&["install", "--provider", "agent"]);
    assert!(settings(&scene).contains("mcp__foreword__remember"));
    assert!(settings(&scene).contains("mcp__foreword__search"));
    assert!(asked(&scene));

    scene
        .sandbox
        .run(&["install", "--provider", "agent", "--no-allow-tools"]);
    assert!(!settings(&scene).contains("mcp__foreword"));
    assert!(!asked(&scene));
    let doctor = scene.sandbox.command(&["doctor"]).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(
        doctor.contains("agent-not-asked") && doctor.contains("is not asked to"),
        "{doctor}"
    );

    scene.sandbox.run(&["install", "--provider", "agent"]);
    assert!(asked(&scene));
    scene.sandbox.run(&["install", "--provider", "offline"]);
    assert!(!settings(&scene).contains("mcp__foreword__remember"));
    assert!(!asked(&scene));
}

#[test]
fn a_hook_at_the_end_of_a_turn_without_a_call_says_nothing() {
    let scene = Scene::installed(&["--provider", "agent"]);
    let host = Host::new("s1", Path::new(&scene.project));
    work(&scene, &host, "limit = 6", "limit = 7");
    assert_eq!(scene.send("summary", &host.stop("Done.")), "");
}
