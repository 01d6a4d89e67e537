//! A host that misbehaves: sessions that are resumed, forked, cleared and mixed up, events
//! that come twice, late or incomplete. Whatever it sends, no hook fails, nothing is stored twice
//! or under the wrong session or project.
//!
//! A sequence has a line for each input that the host sends: the session, a recorded
//! payload, and changed fields. `client/fill.rs` tests what only the real client
//! can do.

use std::path::Path;

use foreword_core::host::{HOSTS, Hook};
use serde_json::Value;

use crate::support::{Sandbox, feed, signal};

/// The inputs, and the sessions afterwards: a line for each, with its state,
/// its project and its events.
struct Sequence {
    name: &'static str,
    sent: &'static str,
    known: &'static str,
}

const SEQUENCES: &[Sequence] = &[
    Sequence {
        name: "a session from its start to its end",
        sent: "s1 SessionStart.startup
               s1 UserPromptSubmit prompt=p1
               s1 PostToolUse.Bash prompt=p1 tool=t1
               s1 PostToolUseFailure.Bash prompt=p1 tool=t2
               s1 Stop prompt=p1
               s1 SessionEnd.other",
        known: "s1 completed app: session_start prompt tool_use tool_failure stop session_end",
    },
    Sequence {
        name: "resumed",
        sent: "s1 SessionStart.startup
               s1 UserPromptSubmit prompt=p1
               s1 Stop prompt=p1
               s1 SessionEnd.prompt_input_exit
               s1 SessionStart.resume
               s1 UserPromptSubmit prompt=p2
               s1 PostToolUse.Bash prompt=p2 tool=t1",
        known: "s1 active app: session_start prompt stop session_end session_start prompt tool_use",
    },
    Sequence {
        name: "resumed and ended again within seconds",
        sent: "s1 SessionStart.startup
               s1 UserPromptSubmit prompt=p1
               s1 SessionEnd.other prompt=p1
               s1 SessionStart.resume
               s1 UserPromptSubmit prompt=p2
               s1 SessionEnd.other prompt=p2",
        known: "s1 completed app: session_start prompt session_end session_start prompt session_end",
    },
    Sequence {
        name: "forked: another id, and the calls of the first turn are not sent again",
        sent: "s1 SessionStart.startup
               s1 UserPromptSubmit prompt=p1
               s1 PostToolUse.Bash prompt=p1 tool=t1
               s1 SessionEnd.other
               s2 SessionStart.fork
               s2 UserPromptSubmit prompt=p2
               s2 PostToolUse.Bash prompt=p2 tool=t1
               s2 SessionEnd.other",
        known: "s1 completed app: session_start prompt tool_use session_end
                s2 completed app: session_start prompt tool_use session_end",
    },
    Sequence {
        name: "cleared: the old session ends and a new one begins in the same process",
        sent: "s1 SessionStart.startup
               s1 UserPromptSubmit prompt=p1
               s1 Stop prompt=p1
               s1 SessionEnd.clear
               s2 SessionStart.clear
               s2 UserPromptSubmit prompt=p2
               s2 Stop prompt=p2",
        known: "s1 completed app: session_start prompt stop session_end
                s2 active app: session_start prompt stop",
    },
    Sequence {
        name: "compacted: a subagent without a name stops that never started",
        sent: "s1 UserPromptSubmit prompt=p1
               s1 PreCompact.auto
               s1 SubagentStop@compact prompt=p1
               s1 SessionStart.compact
               s1 PostCompact.auto
               s1 PostToolUse.Bash prompt=p1 tool=t1
               s1 Stop prompt=p1",
        known: "s1 active app: prompt session_start tool_use stop",
    },
    Sequence {
        name: "two sessions by turns, in two projects",
        sent: "s1 UserPromptSubmit prompt=p1
               s2 UserPromptSubmit prompt=p2 in=other
               s1 PostToolUse.Bash prompt=p1 tool=t1
               s2 PostToolUse.Bash prompt=p2 tool=t1 in=other
               s1 Stop prompt=p1
               s2 Stop prompt=p2 in=other",
        known: "s1 active app: prompt tool_use stop
                s2 active other: prompt tool_use stop",
    },
    Sequence {
        name: "a session that goes elsewhere stays with the project it began in",
        sent: "s1 UserPromptSubmit prompt=p1
               s1 PostToolUse.Bash prompt=p1 tool=t1 in=other",
        known: "s1 active app: prompt tool_use",
    },
    Sequence {
        name: "no id, or an empty one",
        sent: "- UserPromptSubmit prompt=p1
               none UserPromptSubmit prompt=p1
               s1 UserPromptSubmit prompt=p2
               - PostToolUse.Bash prompt=p2 tool=t1
               s1 Stop prompt=p2",
        known: "s1 active app: prompt stop",
    },
    Sequence {
        name: "no prompt id and no tool id",
        sent: "s1 UserPromptSubmit prompt=none
               s1 PostToolUse.Bash prompt=none tool=none
               s1 Stop prompt=-",
        known: "s1 active app: prompt tool_use stop",
    },
    Sequence {
        name: "no cwd: where the host says the project is",
        sent: "s1 UserPromptSubmit prompt=p1 cwd=none
               s1 PostToolUse.Bash prompt=p1 tool=t1 cwd=-
               s1 Stop prompt=p1 cwd=gone",
        known: "s1 active app: prompt tool_use stop",
    },
    Sequence {
        name: "neither cwd nor project: nobody's, rather than somebody else's",
        sent: "s1 UserPromptSubmit prompt=p1 cwd=none in=nowhere
               s1 Stop prompt=p1 cwd=none in=nowhere
               s2 UserPromptSubmit prompt=p2",
        known: "s1 active -: prompt stop
                s2 active app: prompt",
    },
    Sequence {
        name: "subagents that nobody announced",
        sent: "s1 UserPromptSubmit prompt=p1
               s1 PostToolUse.Read.in-subagent prompt=p1 tool=t1 agent=never-started
               s1 SubagentStop prompt=p1 agent=another
               s1 PostToolUse.Bash prompt=unheard tool=t2 agent=a3
               s1 UserPromptSubmit.task-notification prompt=n1
               s1 Stop prompt=n1",
        known: "s1 active app: prompt tool_use tool_use notification stop",
    },
    Sequence {
        name: "a tool, a stop and an end before there was a prompt, or ever will be",
        sent: "s1 PostToolUse.Bash prompt=p1 tool=t1
               s1 Stop prompt=p1
               s1 SessionEnd.other",
        known: "s1 completed app: tool_use stop session_end",
    },
    Sequence {
        name: "an end alone",
        sent: "s1 SessionEnd.other",
        known: "s1 completed app: session_end",
    },
    Sequence {
        name: "a stop that failed, and the session went on",
        sent: "s1 UserPromptSubmit prompt=p1
               s1 StopFailure prompt=p1
               s1 UserPromptSubmit prompt=p2
               s1 Stop prompt=p2",
        known: "s1 active app: prompt stop_failure prompt stop",
    },
    Sequence {
        name: "what a hook does not answer for",
        sent: "s1 Notification.permission_prompt
               s1 PostToolBatch
               s1 MessageDisplay
               s1 UserPromptSubmit prompt=p1",
        known: "s1 active app: prompt",
    },
];

/// A line of a sequence: the hook, the folder it runs in, and its input.
struct Step {
    hook: &'static str,
    project: Option<String>,
    input: Value,
}

fn steps(sandbox: &Sandbox, sent: &str) -> Vec<Step> {
    let step = |line: &str| {
        let mut words = line.split_whitespace();
        let session = words.next().unwrap();
        let mut input = recorded(words.next().unwrap());
        let mut place = "app";
        set(&mut input, "session_id", session);
        set(&mut input, "transcript_path", "none");
        let app = sandbox.project("app");
        set(&mut input, "cwd", app.to_str().unwrap());
        for word in words {
            let (name, value) = word.split_once('=').unwrap();
            match name {
                "prompt" => set(&mut input, "prompt_id", value),
                "tool" => set(&mut input, "tool_use_id", value),
                "agent" => set(&mut input, "agent_id", value),
                "cwd" => set(&mut input, "cwd", value),
                "in" => {
                    place = value;
                    if input["cwd"].is_string() {
                        input["cwd"] = sandbox.project(value).to_str().unwrap().into();
                    }
                }
                _ => panic!("{word}"),
            }
        }
        let event = input["hook_event_name"].as_str().unwrap();
        let mut events = HOSTS[0].events.iter();
        // An event that no hook is connected to is sent to one all the same.
        let hook = events
            .find(|it| it.name == event)
            .map_or(Hook::Save, |it| it.hook);
        Step {
            hook: hook.name(),
            project: (place != "nowhere").then(|| place.to_owned()),
            input,
        }
    };
    sent.lines().map(step).collect()
}

/// `none` removes a field, `-` empties it.
fn set(input: &mut Value, field: &str, value: &str) {
    match value {
        "none" => drop(input.as_object_mut().unwrap().remove(field)),
        "-" => input[field] = "".into(),
        value => input[field] = value.into(),
    }
}

fn recorded(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/claude-code/hooks");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn send(sandbox: &Sandbox, step: &Step) {
    let mut command = sandbox.hook_command(step.hook, Path::new(""));
    match &step.project {
        Some(project) => command.env("CLAUDE_PROJECT_DIR", sandbox.project(project)),
        None => command.env_remove("CLAUDE_PROJECT_DIR"),
    };
    let output = feed(command, step.input.to_string().as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// A line for each stored session.
fn known(sandbox: &Sandbox) -> String {
    let memory = sandbox.database("memory.db");
    let mut statement = memory
        .prepare(
            "select s.host_session_id || ' ' || s.state || ' ' || coalesce(p.name, '-') || ': '
                    || (select group_concat(kind, ' ') from
                           (select kind from events where session_id = s.id and kind <> 'receipt' order by at, id))
             from sessions s
             left join projects p on p.id = s.project_id
             order by s.host_session_id",
        )
        .unwrap();
    let rows = statement.query_map([], |row| row.get::<_, String>(0));
    let rows: Result<Vec<_>, _> = rows.unwrap().collect();
    rows.unwrap().join("\n")
}

fn trimmed(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    lines.join("\n")
}

/// The words of each line, sorted.
fn words(text: &str) -> Vec<Vec<String>> {
    let sorted = |line: &str| {
        let mut words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        // The state of a session depends on its last event.
        words.remove(1);
        words.sort();
        words
    };
    text.lines().map(sorted).collect()
}

/// Sends the steps to a new sandbox; returns the stored sessions after all is processed.
fn replay(sent: &str, order: impl Fn(Vec<Step>) -> Vec<Step>) -> String {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    for step in order(steps(&sandbox, sent)) {
        send(&sandbox, &step);
    }
    sandbox.drain();
    // An event that was sent more than once is stored once, and the databases are whole.
    let doubled = "select count(*) from (select 1 from events group by key having count(*) > 1)";
    assert_eq!(sandbox.count("memory.db", doubled), 0);
    assert_eq!(sandbox.run(&["check"]), "11 checks, nothing found\n");
    assert_eq!(sandbox.log("hook.log").matches("lost").count(), 0);
    known(&sandbox)
}

#[test]
fn every_sequence_ends_up_where_it_belongs() {
    for Sequence { name, sent, known } in SEQUENCES {
        assert_eq!(replay(sent, |steps| steps), trimmed(known), "{name}");
    }
}

#[test]
fn told_backwards_nothing_is_lost_doubled_or_misfiled() {
    for Sequence { name, sent, known } in SEQUENCES {
        // Here the first event that is sent decides.
        if name.contains("goes elsewhere") {
            continue;
        }
        let backwards = replay(sent, |mut steps| {
            steps.reverse();
            steps
        });
        assert_eq!(words(&backwards), words(&trimmed(known)), "{name}");
    }
}

#[test]
fn told_twice_it_is_there_once() {
    let with_ids = |sequence: &&Sequence| !sequence.sent.contains("prompt=none");
    for Sequence { name, sent, known } in SEQUENCES.iter().filter(with_ids) {
        // Starts and ends have no id: sent again much later they are new events.
        let twice: Vec<_> = sent.lines().flat_map(|line| [line, line]).collect();
        let mut after: Vec<String> = Vec::new();
        for line in replay(&twice.join("\n"), |steps| steps).lines() {
            let mut words: Vec<_> = line.split(' ').collect();
            words.dedup_by(|a, b| a == b && a.starts_with("session_"));
            after.push(words.join(" "));
        }
        assert_eq!(after.join("\n"), trimmed(known), "{name}");
    }
}

#[test]
fn a_late_event_does_not_bring_an_ended_session_back_to_life() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    let steps = steps(&sandbox, SEQUENCES[0].sent);
    // One event waits in the spool while the others are taken in.
    let late = 2;
    let aside = sandbox.user_home().join("aside");
    for (number, step) in steps.iter().enumerate() {
        send(&sandbox, step);
        if number == late {
            std::fs::create_dir_all(&aside).unwrap();
            let newest = spooled(&sandbox).pop().unwrap();
            std::fs::rename(
                sandbox.home().join("spool").join(&newest),
                aside.join(&newest),
            )
            .unwrap();
        }
    }
    sandbox.drain();
    let without = SEQUENCES[0].known.replace(" tool_use", "");
    assert_eq!(known(&sandbox), without);
    for entry in std::fs::read_dir(&aside).unwrap().flatten() {
        let spool = sandbox.home().join("spool").join(entry.file_name());
        std::fs::rename(entry.path(), spool).unwrap();
    }
    sandbox.drain();
    assert_eq!(known(&sandbox), SEQUENCES[0].known);
}

fn spooled(sandbox: &Sandbox) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(sandbox.home().join("spool")).unwrap();
    let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn a_goodbye_that_was_killed_leaves_a_session_that_is_finished_all_the_same() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    let mut steps = steps(&sandbox, SEQUENCES[0].sent);
    let stop = steps.iter_mut().find(|it| it.hook == "summary").unwrap();
    stop.input["last_assistant_message"] =
        "`deploy.sh` exits with 3 if `STAGE` is not set. `ci.yml` sets \
        it for the main branch only, so that every other branch fails."
            .into();
    let (goodbye, before) = steps.split_last().unwrap();
    for step in before {
        send(&sandbox, step);
    }
    // The hook's time ends before it has read its input.
    let mut hook = sandbox
        .hook_command(goodbye.hook, &sandbox.project("app"))
        .spawn()
        .unwrap();
    signal(hook.id(), "KILL");
    hook.wait().unwrap();
    sandbox.drain();
    let expected = SEQUENCES[0].known.replace(" session_end", "");
    assert_eq!(known(&sandbox), expected.replace("completed", "active"));
    assert_eq!(sandbox.status()["summaries"], 1);

    // A day later.
    let ago = "update sessions set last_event_at = last_event_at - 25 * 3600000";
    sandbox.database("memory.db").execute_batch(ago).unwrap();
    sandbox.run(&["worker", "stop"]);
    sandbox.drain();
    assert_eq!(
        known(&sandbox),
        expected.replace("completed", "interrupted")
    );
}
