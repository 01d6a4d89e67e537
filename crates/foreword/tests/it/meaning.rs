//! Search by meaning, end to end: the real model in the worker, asked over its socket. When a part
//! is missing, search goes by words at once and gives the reason.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mcp::Client;
use crate::model;
use crate::support::{Sandbox, signal, wait_until};

const TOLD: &str = "tokens were rejected one second too early";
const OTHERS: [&str; 3] = [
    "the build cache lives in a folder of its own",
    "the logo is blue",
    "bread is baked on Sundays",
];
const ASKED: &str = "login expiry off-by-one";

struct World {
    sandbox: Sandbox,
    project: PathBuf,
}

impl World {
    /// A project in which something was remembered, with the model but without a worker.
    fn new() -> World {
        let sandbox = Sandbox::new();
        let project = sandbox.project("app");
        let world = World { sandbox, project };
        let mut client = world.client();
        for text in [TOLD].iter().chain(&OTHERS) {
            client.text_of("remember", json!({"text": text}));
        }
        client.end();
        world.install(model::folder());
        world
    }

    fn install(&self, folder: &Path) {
        let models = self.sandbox.home().join("models");
        std::fs::create_dir_all(&models).unwrap();
        let link = models.join("all-MiniLM-L6-v2");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(folder, link).unwrap();
    }

    fn client(&self) -> Client {
        Client::new(&self.sandbox, &self.project)
    }

    fn search(&self, words: &str) -> String {
        let mut command = self.sandbox.command(&["search", words]);
        let output = command.current_dir(&self.project).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        String::from_utf8(output.stdout).unwrap()
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.sandbox.run(&["model", "status", "--json"])).unwrap()
    }

    /// Has a worker embed everything, and asks it until it answers in time.
    fn embedded(&self) {
        self.sandbox.run(&["worker", "start"]);
        wait_until("all is embedded", || self.status()["embedded"] == 1.0);
        wait_until("the worker answers", || {
            !self.search(ASKED).contains("by words only")
        });
    }

    fn embed_socket(&self) -> PathBuf {
        self.sandbox.home().join("embed.sock")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(pid) = self.sandbox.worker_pid() {
            signal(pid, "CONT");
            signal(pid, "TERM");
            wait_until("the worker is gone", || self.sandbox.worker_pid().is_none());
        }
    }
}

#[test]
fn what_was_said_in_other_words_is_found_by_command_and_by_agent() {
    let world = World::new();
    world.embedded();
    let found = world.search(ASKED);
    let first = found.lines().next().unwrap();
    assert!(
        first.contains(TOLD) && first.ends_with("(by meaning)"),
        "{found}"
    );
    assert!(
        found.contains("nothing has any of these words; these are nearest in meaning"),
        "{found}"
    );
    assert!(!found.contains("% of the memory"), "{found}");
    let mut client = world.client();
    let mut printed = String::new();
    wait_until("the agent is answered in time", || {
        printed = client.text_of("search", json!({"query": ASKED}));
        !printed.contains("by words only")
    });
    // An agent's lines are short.
    assert!(
        printed.contains("tokens were rejected one second"),
        "{printed}"
    );
    assert!(
        printed.contains("these are nearest in meaning"),
        "{printed}"
    );
    let around = client.text_of("timeline", json!({"query": "tokens rejected"}));
    assert!(around.contains("> ") && around.contains(TOLD), "{around}");
    client.end();
    assert_eq!(world.sandbox.status()["embedded"], 1.0);
    assert!(
        world
            .sandbox
            .run(&["status"])
            .contains("100 % of it is indexed by meaning")
    );
    assert!(
        world.sandbox.log("work.log").contains("4 items embedded"),
        "{}",
        world.sandbox.log("work.log")
    );

    // Newer memories are embedded by the same worker, after a wake-up.
    world
        .client()
        .text_of("remember", json!({"text": "the invoice rounds down"}));
    wait_until("the new one is embedded, too", || {
        world.status()["embedded"] == 1.0
    });
}

#[test]
fn why_explains_the_order_of_a_search_by_meaning() {
    let world = World::new();
    world.embedded();
    let run = |arguments: &[&str]| {
        let mut command = world.sandbox.command(arguments);
        let output = command.current_dir(&world.project).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut hits = Vec::new();
    // By words alone nothing is found.
    wait_until("the worker answers", || {
        let found = run(&["search", ASKED, "--format", "json"]);
        hits = serde_json::from_str::<Vec<Value>>(&found).unwrap();
        hits.len() > 1
    });
    for (at, hit) in hits.iter().enumerate() {
        let mut why = String::new();
        wait_until("the worker answers", || {
            why = run(&["why", &hit["id"].to_string(), ASKED]);
            why.contains("ranked by words and meaning (100 %")
        });
        let rank = format!("“{ASKED}” finds it at rank {};", at + 1);
        assert!(why.contains(&rank), "{rank}\n{why}");
        assert!(why.contains("near in meaning; score 0."), "{why}");
    }
}

#[test]
fn a_search_without_a_worker_goes_by_words_says_so_and_starts_one() {
    let world = World::new();
    let found = world.search("tokens early");
    assert!(found.contains(TOLD), "{found}");
    assert!(found.contains("by words only: the worker "), "{found}");
    wait_until("a worker came up", || world.sandbox.worker_pid().is_some());
    wait_until("all is embedded", || world.status()["embedded"] == 1.0);
    wait_until("search goes by meaning", || {
        world.search(ASKED).contains(TOLD)
    });
    // Switched off, no worker is started.
    world.sandbox.run(&["worker", "stop"]);
    world.sandbox.run(&["off", "--everywhere"]);
    let found = world.search("tokens rejected loudly");
    assert!(
        found.contains("by words only: Foreword is switched off"),
        "{found}"
    );
    assert_eq!(world.sandbox.worker_pid(), None);
    assert!(!world.sandbox.home().join("worker.starting").exists());
}

#[test]
fn without_a_model_with_a_broken_one_or_switched_off_search_goes_by_words() {
    let mut world = World::new();
    world.sandbox.set("FOREWORD_MODEL_EMBED", "false");
    let found = world.search("tokens rejected loudly");
    assert!(
        found.contains("by words only: the setting `model.embed` is off"),
        "{found}"
    );
    assert_eq!(world.sandbox.worker_pid(), None);
    world.sandbox.unset("FOREWORD_MODEL_EMBED");

    let broken = world.sandbox.user_home().join("broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("model.safetensors"), "no model").unwrap();
    std::fs::copy(
        model::folder().join("tokenizer.json"),
        broken.join("tokenizer.json"),
    )
    .unwrap();
    world.install(&broken);
    world.sandbox.run(&["worker", "start"]);
    wait_until("the worker says what is wrong", || {
        world
            .sandbox
            .log("worker.log")
            .contains("the sentence model cannot be used")
    });
    let found = world.search("tokens early");
    assert!(
        found.contains(TOLD) && found.contains("by words only"),
        "{found}"
    );
    // The worker continues, and loads the right model when it is installed.
    world.install(model::folder());
    wait_until("what was missing is made", || {
        world.search(ASKED);
        world.sandbox.run(&["worker", "drain"]);
        world.status()["embedded"] == 1.0
    });
    // The model is removed while the worker runs: search goes by words, without an error.
    std::fs::remove_file(world.sandbox.home().join("models/all-MiniLM-L6-v2")).unwrap();
    let found = world.search("tokens early");
    assert!(
        found.contains(TOLD) && !found.contains("by words only"),
        "{found}"
    );
    let found = world.search("tokens rejected loudly");
    assert!(
        found.contains("by words only: `foreword model install` adds search by meaning"),
        "{found}"
    );
}

#[test]
fn a_worker_that_hangs_is_not_waited_for() {
    let world = World::new();
    world.embedded();
    wait_until("a worker runs", || {
        world.search(ASKED);
        world.sandbox.worker_pid().is_some()
    });
    let pid = world.sandbox.worker_pid().unwrap();
    signal(pid, "STOP");
    let found = world.search("tokens early");
    assert!(
        found.contains(TOLD) && found.contains("the worker did not answer in time"),
        "{found}"
    );
    signal(pid, "CONT");
    wait_until("it answers again", || {
        !world.search(ASKED).contains("by words only")
    });
}

#[test]
fn the_worker_keeps_its_locks_on_the_memory() {
    let world = World::new();
    world.embedded();
    // Without them, a process that opens and closes the memory would remove the log that the worker uses.
    let pid = world.sandbox.worker_pid().unwrap().to_string();
    let memory = std::fs::metadata(world.sandbox.home().join("memory.db")).unwrap();
    let inode = format!(":{}", memory.ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let held = locks.lines().any(|lock| {
        let words: Vec<&str> = lock.split_whitespace().collect();
        words.contains(&pid.as_str()) && words.iter().any(|it| it.ends_with(&inode))
    });
    assert!(held, "{pid} {inode}\n{locks}");
}

#[test]
fn a_socket_that_is_gone_is_made_again_and_keeps_nobody_from_ending() {
    let world = World::new();
    world.embedded();
    std::fs::remove_file(world.embed_socket()).unwrap();
    wait_until("search goes by meaning again", || {
        !world.search(ASKED).contains("by words only")
    });
    std::fs::remove_file(world.embed_socket()).unwrap();
    world.sandbox.run(&["worker", "stop"]);
    assert_eq!(world.sandbox.worker_pid(), None);
}

#[test]
fn what_says_nothing_or_is_meant_as_it_stands_is_not_looked_for_by_meaning() {
    let world = World::new();
    world.embedded();
    for (words, expected) in [
        ("nonexistent_fn_xyz", "nothing"),
        (
            &"x ".repeat(20_000),
            "by words only: the question is too long",
        ),
    ] {
        let found = world.search(words);
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("nearest in meaning"), "{found}");
    }
    let found = world.search("the");
    assert!(!found.contains("nearest in meaning"), "{found}");
}

#[test]
fn damaged_vectors_are_made_again() {
    let world = World::new();
    world.embedded();
    world.sandbox.run(&["worker", "stop"]);
    let harm =
        "update vectors set chunks = x'00' where item_id in (select item_id from vectors limit 2)";
    assert_eq!(
        world
            .sandbox
            .database("memory.db")
            .execute(harm, [])
            .unwrap(),
        2
    );
    world.embedded();
    let whole = "select count(*) from vectors where length(chunks) > 300";
    wait_until("they are whole", || {
        world.sandbox.count("memory.db", whole) == 4
    });
}

#[test]
fn the_socket_is_no_way_in() {
    let world = World::new();
    world.embedded();
    let mode = std::fs::metadata(world.embed_socket())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let send = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(world.embed_socket()).unwrap();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    let flood = vec![b'x'; 1 << 20];
    for garbage in [
        b"".as_slice(),
        b"\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"{\"v\":1,\"it\":{\"related\":1}}\n",
        &flood,
    ] {
        assert_eq!(send(garbage), b"");
    }
    // A connection that sends nothing delays others only for a short time.
    let _silent = UnixStream::connect(world.embed_socket()).unwrap();
    wait_until("it answers", || {
        send(b"{\"v\":3,\"it\":{\"related\":1}}\n") == b"{\"v\":3,\"it\":{\"related\":[]}}\n"
    });
    world.sandbox.run(&["worker", "stop"]);
    assert!(!world.embed_socket().exists());
}
