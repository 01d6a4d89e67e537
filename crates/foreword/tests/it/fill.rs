//! Events that hooks did not deliver are taken from the transcript, once, and never those that
//! capture excludes. The same with the real client is in `client/fill.rs`.

use foreword_core::store::Store;
use serde_json::{Value, json};

use crate::support::{Host, Sandbox};
use crate::transcript::{self, Transcript};

/// A session that has begun: hooks got its start and its prompt, the transcript has the prompt.
struct Scene {
    sandbox: Sandbox,
    host: Host,
    transcript: Transcript,
}

const PROMPT: &str = "Fix the kumquat";

impl Scene {
    fn new() -> Scene {
        Scene::in_sandbox(Sandbox::new())
    }

    fn in_sandbox(sandbox: Sandbox) -> Scene {
        sandbox.keep_workers_away();
        let mut host = Host::new("s1", &sandbox.project("app"));
        let transcript = Transcript::of(&sandbox, &mut host);
        let scene = Scene {
            sandbox,
            host,
            transcript,
        };
        scene.send("context", &scene.host.start("startup"));
        scene.send("new", &scene.host.prompt(PROMPT));
        scene.transcript.prompt(PROMPT);
        scene
    }

    fn send(&self, hook: &str, input: &Value) {
        self.sandbox.run_hook(hook, &self.host.project, input);
    }

    /// Ends the session, and has a worker process everything.
    fn end(&self) {
        self.end_after("s1-prompt");
    }

    fn end_after(&self, prompt: &str) {
        let mut end = self.host.end();
        end["prompt_id"] = prompt.into();
        self.send("cleanup", &end);
        self.sandbox.drain();
    }

    /// The kind and text of every stored event, in order of time.
    fn events(&self) -> Vec<String> {
        let memory = self.sandbox.database("memory.db");
        let mut statement = memory
            .prepare(
                "select kind || ' ' || coalesce(
                     event ->> '$.payload.prompt', event ->> '$.payload.input.command',
                     event ->> '$.payload.input.file_path', event ->> '$.payload.reply', ''
                 )
                 from events
                 where kind not in ('session_start', 'session_end', 'receipt')
                 order by at, id",
            )
            .unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    fn state(&self) -> String {
        let memory = self.sandbox.database("memory.db");
        let sql = "select group_concat(state) from sessions";
        memory.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

const WHOLE: [&str; 5] = [
    "prompt Fix the kumquat",
    "tool_use make one",
    "tool_failure make two",
    "tool_use make three",
    "stop Fixed it.",
];

/// A turn of which hooks got only the first tool use.
fn partly_sent() -> (Scene, [Value; 3]) {
    let scene = Scene::new();
    let host = &scene.host;
    let tools = [
        host.bash("make one", "1"),
        host.bash_failed("make two", "Exit code 2"),
        host.bash("make three", "3"),
    ];
    scene.send("save", &tools[0]);
    for tool in &tools {
        scene.transcript.tool(tool);
    }
    scene.transcript.reply("Fixed it.");
    (scene, tools)
}

#[test]
fn what_hooks_missed_is_there_once_when_the_session_is_over() {
    let (scene, tools) = partly_sent();
    scene.end();
    assert_eq!(scene.events(), WHOLE);
    assert_eq!(scene.state(), "completed");
    let reply = "select count(*) from prompts where reply = 'Fixed it.'";
    assert_eq!(scene.sandbox.count("memory.db", reply), 1);
    let misfiled = "select count(*) from events where (event ->> '$.project') is not (event ->> '$.project_dir')";
    assert_eq!(scene.sandbox.count("memory.db", misfiled), 0);
    // All in one batch: the end waits for what belongs before it.
    let batches = "select count(distinct at) from processed_events";
    assert_eq!(scene.sandbox.count("memory.db", batches), 1);
    let log = scene.sandbox.log("worker.log");
    assert!(
        log.contains(" 3 events that hooks missed came from a transcript"),
        "{log}"
    );

    // Reading the transcript again, and hooks that arrive after all, add nothing.
    scene.send("context", &scene.host.start("resume"));
    for tool in &tools {
        scene.send("save", tool);
    }
    scene.send("summary", &scene.host.stop("Fixed it."));
    scene.end_after("another");
    assert_eq!(scene.events(), WHOLE);
    assert_eq!(scene.sandbox.run(&["check"]), "11 checks, nothing found\n");
    let log = scene.sandbox.log("worker.log");
    assert_eq!(log.matches("came from a transcript").count(), 1, "{log}");
}

#[test]
fn what_only_the_transcript_has_is_there_once_too() {
    let scene = Scene::new();
    let cause = "The cause is that the parser reads the whole file twice. ".repeat(3);
    scene.transcript.line("assistant.text", |line| {
        line["message"]["content"][0]["text"] = cause.trim().into();
    });
    let input = scene.host.bash("make one", "1");
    scene.transcript.tool_but(&input, |line| {
        line["permissionDecision"] = json!({"decision": "reject", "source": "user"});
        let result = &mut line["message"]["content"][0];
        result["is_error"] = true.into();
        result["content"] = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nno make, use just".into();
    });
    scene.transcript.reply("Done.");
    for _ in 0..2 {
        scene.end();
        let expected = [
            "prompt Fix the kumquat".to_owned(),
            "refusal make one".to_owned(),
            "stop Done.".to_owned(),
            format!("words {}", cause.trim()),
        ];
        let mut events = scene.events();
        // They may be of the same millisecond.
        events.sort();
        assert_eq!(events, expected);
    }
    let reason =
        "select count(*) from events where kind = 'refusal' and event ->> '$.tool_name' = 'Bash'
                  and event ->> '$.payload.reason' = 'no make, use just'";
    assert_eq!(scene.sandbox.count("memory.db", reason), 1);
}

#[test]
fn a_client_that_died_left_its_session_silent_and_that_is_enough() {
    let (scene, _) = partly_sent();
    scene.sandbox.drain();
    assert_eq!(scene.events(), WHOLE);
    assert_eq!(scene.state(), "active");
    scene.sandbox.drain();
    assert_eq!(scene.events(), WHOLE);
}

#[test]
fn an_idle_worker_looks_for_it_too() {
    let (mut scene, _) = partly_sent();
    scene.sandbox.set("FOREWORD_WORKER_IDLE_SECONDS", "0");
    scene.sandbox.set("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "0");
    scene.sandbox.run(&["worker", "run"]);
    assert_eq!(scene.events(), WHOLE);
}

#[test]
fn a_session_that_never_said_goodbye_is_completed_and_interrupted_after_a_day() {
    let mut scene = Scene::new();
    scene.sandbox.drain();
    // That was more than a day ago, and the transcript came to an end soon after.
    let hour = 3_600_000;
    let ago = format!(
        "update sessions set started_at = started_at - {0}, last_event_at = last_event_at - {0}",
        26 * hour
    );
    scene
        .sandbox
        .database("memory.db")
        .execute_batch(&ago)
        .unwrap();
    scene.transcript.ago = 25 * hour;
    scene.transcript.tool(&scene.host.bash("make late", ""));
    scene.sandbox.drain();
    assert_eq!(
        scene.events(),
        ["tool_use make late", "prompt Fix the kumquat"]
    );
    assert_eq!(scene.state(), "interrupted");
}

#[test]
fn a_missing_prompt_is_taken_where_something_else_of_its_turn_was_told() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    let mut host = Host::new("s1", &sandbox.project("app"));
    let transcript = Transcript::of(&sandbox, &mut host);
    sandbox.run_hook("context", &host.project, &host.start("startup"));
    transcript.prompt(PROMPT);
    sandbox.run_hook("save", &host.project, &host.bash("make", ""));
    sandbox.run_hook("cleanup", &host.project, &host.end());
    sandbox.drain();
    let numbered = "select count(*) from prompts where text = 'Fix the kumquat' and number = 1";
    assert_eq!(sandbox.count("memory.db", numbered), 1);
    let of_the_turn = "select count(*) from events where turn = 's1-prompt'";
    assert_eq!(sandbox.count("memory.db", of_the_turn), 2);
}

#[test]
fn a_transcript_that_is_gone_costs_nothing_and_one_that_is_late_is_read_next_time() {
    let (scene, _) = partly_sent();
    let aside = scene.sandbox.user_home().join("aside");
    std::fs::rename(&scene.transcript.path, &aside).unwrap();
    scene.end();
    assert_eq!(scene.events(), WHOLE[..2]);
    assert_eq!(scene.state(), "completed");
    std::fs::rename(&aside, &scene.transcript.path).unwrap();
    scene.send("context", &scene.host.start("resume"));
    scene.end_after("another");
    assert_eq!(scene.events(), WHOLE);
    assert_eq!(scene.state(), "completed");
}

#[test]
fn one_prompt_and_one_end_of_a_turn_are_enough_however_they_are_worded() {
    for (hook, end) in [("Stop", "stop"), ("StopFailure", "stop_failure")] {
        let scene = Scene::new();
        scene.transcript.prompt("the same, in other words");
        let mut stop = scene.host.stop("Fixed.");
        stop["hook_event_name"] = hook.into();
        scene.send("summary", &stop);
        scene.transcript.reply("Fixed, in other words.");
        scene.end();
        assert_eq!(scene.events(), [WHOLE[0], &format!("{end} Fixed.")]);
    }
}

/// Adds something to the transcript alone; nothing of it may be stored.
#[track_caller]
fn is_never_taken(what: &str, happens: impl FnOnce(&Scene)) {
    let mut sandbox = Sandbox::new();
    let excluded = sandbox.project("app").join("private");
    sandbox.set("FOREWORD_CAPTURE_EXCLUDE_PATHS", excluded);
    let scene = Scene::in_sandbox(sandbox);
    happens(&scene);
    scene.end();
    assert_eq!(scene.events(), ["prompt Fix the kumquat"], "{what}");
    let anywhere = scene.sandbox.files().into_iter();
    let found: Vec<_> = anywhere
        .filter(|(_, bytes)| bytes.windows(6).any(|it| it == b"canary"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(found, Vec::<std::path::PathBuf>::new(), "{what}");
}

#[test]
fn what_only_a_hook_knows_is_not_to_be_kept_is_not_taken_either() {
    for (name, value) in [
        ("FOREWORD_CAPTURE_EXCLUDE_PATHS", "*/private/*"),
        ("FOREWORD_CAPTURE_EXCLUDE_PROJECTS", "*"),
    ] {
        let mut scene = Scene::new();
        let file = scene.host.project.join("private/a.txt");
        let read = scene
            .host
            .tool("Read", json!({"file_path": file}), json!("canary"));
        scene.sandbox.set(name, value);
        scene.send("save", &read);
        scene.sandbox.unset(name);
        scene.transcript.tool(&read);
        scene.transcript.reply("canary");
        scene.end();
        let stored = scene.events().join("\n");
        assert!(
            !stored.contains("a.txt") && !stored.contains("canary"),
            "{name}: {stored}"
        );
        let memory = std::fs::read(scene.sandbox.home().join("memory.db")).unwrap();
        assert!(!memory.windows(6).any(|it| it == b"canary"), "{name}");
    }
}

#[test]
fn what_was_not_to_be_kept_is_never_taken() {
    let canary = |scene: &Scene| scene.host.bash("echo canary", "canary");
    is_never_taken("an excluded path", |scene| {
        let file = scene.host.project.join("private/a.txt");
        let read = json!({"file_path": file});
        scene
            .transcript
            .tool(&scene.host.tool("Read", read, json!("canary")));
    });
    is_never_taken("a boring tool", |scene| {
        let glob = json!({"pattern": "canary"});
        scene
            .transcript
            .tool(&scene.host.tool("Glob", glob, json!("canary")));
    });
    is_never_taken("a tool that was refused", |scene| {
        scene.transcript.tool_but(&canary(scene), |line| {
            line["permissionDecision"]["decision"] = "reject".into();
        });
    });
    is_never_taken("a turn that no hook sent", |scene| {
        for (recorded, words) in [("user.string", "canary"), ("user.string.meta", "x")] {
            scene.transcript.line(recorded, |line| {
                line["promptId"] = "unheard".into();
                line["message"]["content"] = words.into();
            });
        }
        scene.transcript.tool_but(&canary(scene), |line| {
            line["promptId"] = "unheard".into();
        });
    });
    is_never_taken("another session", |scene| {
        scene.transcript.tool_but(&canary(scene), |line| {
            line["sessionId"] = "another".into();
        });
    });
    is_never_taken("what a fork has from before it began", |scene| {
        scene.transcript.tool_but(&canary(scene), |line| {
            line["timestamp"] = transcript::time(60_000).into();
        });
    });
    for scope in [&["--everywhere"][..], &["--session", "s1"]] {
        is_never_taken("switched off for a while", |scene| {
            scene.sandbox.run(&[&["off"], scope].concat());
            scene.transcript.tool(&canary(scene));
            scene.sandbox.run(&[&["on"], scope].concat());
        });
    }
    is_never_taken("half a line, and what is no line at all", |scene| {
        scene
            .transcript
            .raw("{\"canary\n\n[]\n\"canary\"\n{\"type\":\"user\",\"message\":{\"ca");
    });
}

#[test]
fn switched_off_in_the_project_nothing_is_taken() {
    let (scene, _) = partly_sent();
    let mut off = scene.sandbox.command(&["off"]);
    let off = off.current_dir(&scene.host.project).output().unwrap();
    assert!(off.status.success(), "{off:?}");
    scene.sandbox.drain();
    assert_eq!(scene.events(), WHOLE[..2]);
}

#[test]
fn a_project_that_was_off_for_a_while_loses_that_while_and_others_lose_nothing() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    let in_project = |host: &Host, arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        let output = command.current_dir(&host.project).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let sessions: Vec<(Host, Transcript)> = ["ledger", "webshop", "gopher"]
        .into_iter()
        .map(|name| {
            let mut host = Host::new(name, &sandbox.project(name));
            let transcript = Transcript::of(&sandbox, &mut host);
            sandbox.run_hook("new", &host.project, &host.prompt(PROMPT));
            transcript.prompt(PROMPT);
            (host, transcript)
        })
        .collect();
    // No hook delivers the tool uses: before, while and after one project is off.
    let write = |command: &str| {
        for (host, transcript) in &sessions {
            transcript.tool(&host.bash(command, ""));
        }
    };
    write("echo before");
    let (gopher, _) = &sessions[2];
    in_project(gopher, &["off"]);
    write("echo while");
    in_project(gopher, &["on"]);
    write("echo after");
    for (host, _) in &sessions {
        sandbox.run_hook("cleanup", &host.project, &host.end());
    }
    sandbox.drain();

    let whole = "echo before,echo while,echo after";
    for (name, expected) in [
        ("ledger", whole),
        ("webshop", whole),
        ("gopher", "echo before,echo after"),
    ] {
        let memory = sandbox.database("memory.db");
        let sql =
            "select group_concat(event ->> '$.payload.input.command', ',' order by e.at, e.id)
                   from events e join sessions s on s.id = e.session_id
                   where s.host_session_id = ?1";
        let commands: String = memory.query_row(sql, [name], |row| row.get(0)).unwrap();
        assert_eq!(commands, expected, "{name}");
    }
    // A summary reads the same transcripts.
    let (ledger, _) = &sessions[0];
    for host in [ledger, gopher] {
        let note = in_project(host, &["summarize", &host.session, "--yes"]);
        assert!(note.contains(&host.session), "{note}");
    }
}

#[test]
fn what_is_private_in_it_is_taken_out() {
    let scene = Scene::new();
    let say = "cat <<< '<private>canary</private>' ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    scene.transcript.tool(&scene.host.bash(say, ""));
    scene.transcript.reply("<private>canary</private> done");
    scene.end();
    assert_eq!(scene.events().len(), 3);
    for (path, bytes) in scene.sandbox.files() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("canary") && !text.contains("ghp_16C7"),
            "{}",
            path.display()
        );
    }
}

#[test]
fn what_was_forgotten_stays_so() {
    let (scene, _) = partly_sent();
    scene.transcript.tool(
        &scene
            .host
            .edit("src/a.rs", "KUMQUATS: u8 = 6", "KUMQUATS: u8 = 7"),
    );
    scene.transcript.reply(
        "`KUMQUATS` in `src/a.rs` is seven, since a crate holds seven. `Crate::fill` refuses the eighth.",
    );
    scene.end();
    let home = scene.sandbox.home();
    let mut store = Store::open(&home.join("memory.db"), &home.join("backups")).unwrap();
    let ids: Vec<i64> = (0..100).collect();
    assert!(!store.forget(&ids, 1).unwrap().is_empty());
    drop(store);
    let before = scene.sandbox.status()["observations"].clone();
    scene.send("context", &scene.host.start("resume"));
    scene.end_after("another");
    assert_eq!(scene.sandbox.status()["observations"], before);
    assert_eq!(before, 0);
}
