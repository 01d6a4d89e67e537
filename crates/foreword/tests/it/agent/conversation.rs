//! The conversation about a session, for every provider with a model: it goes on from turn to turn
//! and from worker to worker, begins anew when it costs too much, and ends with the session.

use std::path::Path;

use serde_json::{Value, json};

use super::server::Question;
use super::world::{Agent, LEDGER, Provider, answer};
use crate::support::{Host, signal, wait_until};

super::for_each! {
    [claude Claude, anthropic Anthropic, openai OpenAi]
    [
        a_session_is_one_conversation_until_it_is_over,
        a_conversation_that_the_provider_lost_is_begun_again,
    ]
}

/// An answer with a certain usage, so that the ledger can be compared.
fn counted(text: Value) -> Value {
    json!({"text": text, "usage": {
        "input_tokens": 100, "output_tokens": 10,
        "cache_creation_input_tokens": 20, "cache_read_input_tokens": 3,
    }})
}

fn closing() -> Value {
    let closing = "<summary><title>The kumquat limit is seven</title><subtitle>All checks pass</subtitle>\
                   <request>Make the check pass</request><completed>The limit is 7</completed>\
                   <next_steps>Tell the customers</next_steps><retract>#2: it was six again</retract></summary>";
    closing.into()
}

/// A user whose questions about a session are one conversation.
fn user(provider: Provider) -> Agent {
    let mut agent = Agent::new(provider);
    agent.sandbox.set("FOREWORD_MODEL_CONVERSATION", "session");
    agent
        .sandbox
        .set("FOREWORD_MODEL_HISTORY_MAX_TOKENS", "100000");
    // A turn is processed when it has stopped.
    agent
        .sandbox
        .set("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "120");
    agent
}

/// Has a worker process everything, and end.
fn work(agent: &Agent) {
    agent.sandbox.drain();
    agent.sandbox.run(&["worker", "stop"]);
}

fn send_turn(agent: &Agent, host: &mut Host, name: &str) {
    host.prompt = name.to_owned();
    agent.send(&host.prompt(&format!("Now {name}")));
    let mut edit = host.edit(&format!("{name}.txt"), "0", "1");
    edit["tool_use_id"] = name.into();
    agent.send(&edit);
    agent.send(&host.stop(&format!("{name} is done.")));
}

/// The questions of the user in a request.
fn asked(question: &Question) -> Vec<String> {
    let messages = question.0["messages"].as_array().unwrap().iter();
    let of_user = messages.filter(|it| it["role"] == "user");
    of_user.map(|it| it["content"].to_string()).collect()
}

/// The client's id of the conversation; none for other providers.
fn client_session(question: &Question) -> Option<String> {
    let user: Value = serde_json::from_str(question.0["metadata"]["user_id"].as_str()?).unwrap();
    Some(user["session_id"].as_str()?.to_owned())
}

fn a_session_is_one_conversation_until_it_is_over(provider: Provider) {
    let mut agent = user(provider);
    let reply = counted(answer("Kumquat limit raised to seven"));
    agent.script(&json!({"then": reply}));
    let mut host = agent.host("s1");

    // Two turns with one worker, which is then killed; the next one goes on.
    let mut worker = agent.worker();
    for (number, name) in [(1, "one"), (2, "two")] {
        send_turn(&agent, &mut host, name);
        wait_until("the turn is stored", || {
            agent.sandbox.status()["summaries"] == number && agent.events().waiting == 0
        });
    }
    if provider == Provider::Claude {
        assert_eq!(agent.sandbox.processes().len(), 2, "worker and client");
    }
    signal(worker.id(), "KILL");
    worker.wait().unwrap();
    send_turn(&agent, &mut host, "three");
    work(&agent);
    let questions = agent.questions();
    for (before, question) in questions.iter().enumerate() {
        let asked = asked(question);
        assert_eq!(asked.len(), before + 1, "{asked:?}");
        let names = ["one.txt", "two.txt", "three.txt"];
        for (asked, name) in asked.iter().zip(names) {
            assert!(asked.contains(name), "{asked}");
        }
        assert_eq!(client_session(question), client_session(&questions[0]));
    }

    // It costs too much now.
    agent.sandbox.set("FOREWORD_MODEL_HISTORY_MAX_TOKENS", "50");
    send_turn(&agent, &mut host, "four");
    work(&agent);
    agent
        .sandbox
        .set("FOREWORD_MODEL_HISTORY_MAX_TOKENS", "100000");
    let questions = agent.questions();
    let rolled_over = asked(&questions[3]);
    assert_eq!(rolled_over.len(), 1);
    for part in [
        "limit.txt holds the kumquat limit",
        "three is done.",
        "four.txt",
    ] {
        assert!(rolled_over[0].contains(part), "{part}: {rolled_over:?}");
    }

    agent.script(&json!({"then": counted(closing())}));
    agent.send(&host.end());
    work(&agent);
    agent.assert_all_is_stored();
    let questions = agent.questions();
    assert_eq!((questions.len(), asked(&questions[4]).len()), (5, 2));
    assert!(questions[4].contains("It is over."));
    assert_eq!(
        agent.column("select retracted from observations where id = 2"),
        ["it was six again"]
    );
    agent.sandbox.keep_workers_away();
    let index = agent.sandbox.run_hook(
        "context",
        &agent.project,
        &agent.host("s2").start("startup"),
    );
    assert!(index.contains("The kumquat limit is seven"), "{index}");

    let sums = "select sum(requests) || ' ' || sum(input_tokens) || ' ' || sum(output_tokens) || ' ' \
                || sum(cache_read_tokens) from ledger";
    let expected = format!("5 {} 50 15", 5 * 123);
    assert_eq!(agent.column(sums), [expected], "{:?}", agent.column(LEDGER));
    assert_nothing_is_left(&agent);
}

/// Expects neither conversations nor files of the client nor processes.
fn assert_nothing_is_left(agent: &Agent) {
    assert_eq!(agent.count("conversations"), 0);
    assert_eq!(transcripts(agent), Vec::<String>::new());
    assert_eq!(client_sessions(agent), Vec::<String>::new());
    wait_until("nothing runs for this home", || {
        agent.sandbox.processes().is_empty()
    });
}

/// The files in the client's folders of transcripts.
fn transcripts(agent: &Agent) -> Vec<String> {
    let projects = agent.sandbox.user_home().join(".claude/projects");
    let folders = entries(&projects).into_iter();
    folders.flat_map(|it| entries(it.as_ref())).collect()
}

/// The client's files about its running processes. One that is killed leaves them.
fn client_sessions(agent: &Agent) -> Vec<String> {
    entries(&agent.sandbox.user_home().join(".claude/sessions"))
}

fn entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|it| it.path().display().to_string()).collect()
}

fn a_conversation_that_the_provider_lost_is_begun_again(provider: Provider) {
    let agent = user(provider);
    let mut host = agent.host("s1");
    send_turn(&agent, &mut host, "one");
    work(&agent);
    if provider == Provider::Claude {
        let transcripts = transcripts(&agent);
        assert_eq!(transcripts.len(), 1);
        std::fs::remove_file(&transcripts[0]).unwrap();
    } else {
        let message = "prompt is too long: 210000 tokens > 200000 maximum";
        let too_long =
            json!({"error": {"status": 400, "type": "invalid_request_error", "message": message}});
        let good = answer("Kumquat limit raised to seven");
        agent.script(&json!({"turns": [too_long], "then": good}));
    }
    send_turn(&agent, &mut host, "two");
    work(&agent);
    agent.assert_all_is_stored();
    let questions = agent.questions();
    let last = asked(questions.last().unwrap());
    assert_eq!(last.len(), 1);
    assert!(
        last[0].contains("limit.txt holds the kumquat limit"),
        "{last:?}"
    );

    // A transcript that no conversation knows is deleted by the next worker.
    if provider == Provider::Claude {
        let known = transcripts(&agent);
        assert_eq!(known.len(), 1);
        let stray = known[0].replace(".jsonl", "0.jsonl");
        std::fs::write(&stray, "{}").unwrap();
        work(&agent);
        assert_eq!(transcripts(&agent), known);
    }
    agent.send(&host.end());
    work(&agent);
    assert_nothing_is_left(&agent);
}

#[test]
fn uninstall_deletes_the_transcripts_of_the_clients_conversations() {
    let agent = user(Provider::Claude);
    agent.sandbox.run(&["install", "--provider", "claude"]);
    let mut host = agent.host("s1");
    send_turn(&agent, &mut host, "one");
    work(&agent);
    assert_eq!(transcripts(&agent).len(), 1);
    agent.sandbox.run(&["uninstall", "--dry-run"]);
    assert_eq!(transcripts(&agent).len(), 1);
    agent.sandbox.run(&["uninstall"]);
    assert_eq!(transcripts(&agent), Vec::<String>::new());
}

#[test]
fn at_most_two_clients_are_alive_and_none_that_is_not_used() {
    let mut agent = user(Provider::Claude);
    agent.sandbox.set("FOREWORD_WORKER_IDLE_SECONDS", "5");
    let mut worker = agent.worker();
    for (number, session) in [(1, "s1"), (2, "s2"), (3, "s3")] {
        send_turn(&agent, &mut agent.host(session), "one");
        wait_until("the turn is stored", || {
            agent.sandbox.status()["summaries"] == number && agent.events().waiting == 0
        });
        let clients = agent.sandbox.processes().len() - 1;
        assert_eq!(clients, number.min(2), "{session}");
    }
    // One that died is started again.
    let clients = agent.sandbox.processes();
    for client in clients.into_iter().filter(|pid| *pid != worker.id()) {
        signal(client, "KILL");
    }
    wait_until("the clients are gone", || {
        agent.sandbox.processes().len() == 1
    });
    send_turn(&agent, &mut agent.host("s3"), "two");
    wait_until("the turn is stored", || {
        agent.sandbox.status()["summaries"] == 4 && agent.events().waiting == 0
    });
    let questions = agent.questions();
    assert_eq!(asked(questions.last().unwrap()).len(), 2);
    agent.assert_all_is_stored();
    assert!(worker.wait().unwrap().success());
    assert_eq!(agent.sandbox.processes(), Vec::<u32>::new());
    // All three can be carried on. Of the clients that were killed nothing is left.
    assert_eq!(transcripts(&agent).len(), 3);
    work(&agent);
    assert_eq!(client_sessions(&agent), Vec::<String>::new());
}
