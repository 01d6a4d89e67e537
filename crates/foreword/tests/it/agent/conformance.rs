//! What holds for every provider: the same sentences, whoever keeps the memory.

use serde_json::json;

use super::world::{Agent, Provider, answer};

super::for_each! {
    [claude Claude, anthropic Anthropic, openai OpenAi, offline Offline]
    [
        a_session_becomes_memory_that_says_where_it_comes_from,
        what_is_done_is_not_done_again,
        two_sessions_at_once_land_where_they_belong,
        a_subagents_work_lands_with_its_parent_marked,
        resume_and_compact_go_on_while_clear_and_fork_begin,
        a_turn_without_a_stop_still_gets_its_summary,
    ]
}

fn a_session_becomes_memory_that_says_where_it_comes_from(provider: Provider) {
    let agent = Agent::new(provider);
    let host = agent.host("s1");
    agent.tell(&host.start("startup"));
    agent.tell_turn(&host);
    agent.tell(&host.end());
    agent.sandbox.drain();
    agent.assert_all_is_stored();

    assert!(agent.count("observations") >= 1);
    assert_eq!((agent.count("summaries"), agent.count("prompts")), (1, 1));
    assert_eq!(agent.column("select state from sessions"), ["completed"]);
    for table in ["observations", "summaries"] {
        let sql = format!("select distinct provider from {table}");
        assert_eq!(agent.column(&sql), [provider.name()]);
        let unnamed = format!("{table} where model is null or prompt_version is null");
        let expected = match agent.asks_a_model() {
            true => 0,
            false => agent.count(table),
        };
        assert_eq!(agent.count(&unnamed), expected, "{table}");
    }
    // An observation names events, and they are kept.
    assert_eq!(
        agent.count("observations where json_array_length(events) = 0"),
        0
    );
    let unknown = "observations, json_each(observations.events) as it \
                   where it.value not in (select id from events)";
    assert_eq!(agent.count(unknown), 0);
    let by = "select distinct provider from processed_events";
    assert_eq!(agent.column(by), [provider.name()]);
    assert_eq!(agent.questions().len(), usize::from(agent.asks_a_model()));
}

fn what_is_done_is_not_done_again(provider: Provider) {
    let agent = Agent::new(provider);
    let turn = |session| agent.tell_turn(&agent.host(session));
    turn("s1");
    agent.sandbox.drain();
    let memory = |agent: &Agent| {
        let texts = "select title || narrative from observations \
                     union all select completed from summaries union all select text from prompts";
        (
            agent.column(texts),
            agent.questions().len(),
            agent.count("ledger"),
        )
    };
    let before = memory(&agent);
    agent.sandbox.drain();
    assert_eq!(memory(&agent), before);

    agent.sandbox.keep_workers_away();
    turn("s1");
    agent.sandbox.drain();
    assert_eq!(memory(&agent), before);
    agent.assert_all_is_stored();
}

fn two_sessions_at_once_land_where_they_belong(provider: Provider) {
    let agent = Agent::new(provider);
    let lane = |session: &str| {
        json!({
            "name": session,
            "match": {"any_user_contains": format!("Session: {session}.")},
            "then": answer(&format!("What {session} did")),
        })
    };
    agent.script(&json!({"lanes": [lane("s1"), lane("s2")]}));
    let (one, two) = (agent.host("s1"), agent.host("s2"));
    // Turn by turn, as two windows do it.
    agent.tell(&one.prompt("Look at the first"));
    agent.tell(&two.prompt("Look at the second"));
    for part in ["a", "b"] {
        agent.tell(&one.edit(&format!("first-{part}.txt"), "0", "1"));
        agent.tell(&two.edit(&format!("second-{part}.txt"), "0", "1"));
    }
    agent.tell(&one.stop("The first is done."));
    agent.tell(&two.stop("The second is done."));
    agent.sandbox.drain();
    agent.assert_all_is_stored();

    let prompts = "select host_session_id || ': ' || text from prompts, sessions \
                   where sessions.id = session_id order by 1";
    assert_eq!(
        agent.column(prompts),
        ["s1: Look at the first", "s2: Look at the second"]
    );
    assert_eq!(agent.count("projects"), 1);
    assert_eq!(agent.count("summaries"), 2);
    let astray = "observations, json_each(observations.events) as it, events \
                  where it.value = events.id and observations.session_id <> events.session_id";
    assert_eq!(agent.count(astray), 0);
    if agent.asks_a_model() {
        let titles = "select host_session_id || ': ' || observations.title \
                      from observations, sessions where sessions.id = session_id order by 1";
        assert_eq!(agent.column(titles), ["s1: What s1 did", "s2: What s2 did"]);
        let questions = agent.questions();
        assert_eq!(questions.len(), 2);
        for question in questions {
            assert_ne!(question.says("first-a.txt"), question.says("second-a.txt"));
        }
    }
}

fn a_subagents_work_lands_with_its_parent_marked(provider: Provider) {
    let agent = Agent::new(provider);
    let host = agent.host("s1");
    agent.tell(&host.prompt("Have the check looked at"));
    let mut input = host.bash("sh check.sh", "ok");
    input["agent_id"] = "agent-7".into();
    input["agent_type"] = "general-purpose".into();
    agent.tell(&input);
    agent.tell(&host.bash("git status --short", " M limit.txt"));
    agent.tell(&host.stop("It was looked at."));
    agent.sandbox.drain();
    agent.assert_all_is_stored();

    assert_eq!(agent.column("select host_session_id from sessions"), ["s1"]);
    let marked = "select event ->> '$.tool_name' || ' ' || coalesce(event ->> '$.agent_id', 'itself') from events \
                  where kind = 'tool_use' order by at, id";
    assert_eq!(agent.column(marked), ["Bash agent-7", "Bash itself"]);
    if agent.asks_a_model() {
        let questions = agent.questions();
        assert_eq!(
            questions[0].text().matches("Bash, by a subagent").count(),
            1
        );
        assert_eq!(questions[0].text().matches(": Bash\n").count(), 1);
    }
}

fn resume_and_compact_go_on_while_clear_and_fork_begin(provider: Provider) {
    let agent = Agent::new(provider);
    let turn = |session: &str, source: &str, prompt: &str| {
        agent.sandbox.keep_workers_away();
        let mut host = agent.host(session);
        host.prompt = format!("{session}-{source}");
        agent.tell(&host.start(source));
        agent.tell(&host.prompt(prompt));
        let mut edit = host.edit(&format!("{source}.txt"), "0", "1");
        edit["tool_use_id"] = format!("{session}-{source}-call").into();
        agent.tell(&edit);
        agent.tell(&host.stop(&format!("Done after {source}.")));
        let mut end = host.end();
        // The same end told twice within seconds is one.
        end["reason"] = format!("after {source}").into();
        agent.tell(&end);
        agent.sandbox.drain();
    };
    turn("s1", "startup", "Begin");
    turn("s1", "resume", "Go on");
    turn("s1", "compact", "Go on further");
    turn("s2", "clear", "Begin anew");
    // A fork starts like a resume, with an id of its own.
    turn("s3", "resume", "Go elsewhere");
    agent.assert_all_is_stored();

    let prompts = "select host_session_id || ' ' || number || ' ' || text from prompts, sessions \
                   where sessions.id = session_id order by host_session_id, number";
    assert_eq!(
        agent.column(prompts),
        [
            "s1 1 Begin",
            "s1 2 Go on",
            "s1 3 Go on further",
            "s2 1 Begin anew",
            "s3 1 Go elsewhere"
        ]
    );
    assert_eq!(agent.count("summaries"), 5);
    if agent.asks_a_model() {
        let questions = agent.questions();
        assert_eq!(questions.len(), 5);
        // Who goes on is told what is known of the session; who begins is not.
        let known = questions
            .iter()
            .map(|it| it.says("is known already as far as this"));
        assert_eq!(known.collect::<Vec<_>>(), [false, true, true, false, false]);
    }
}

fn a_turn_without_a_stop_still_gets_its_summary(provider: Provider) {
    let agent = Agent::new(provider);
    let host = |session: &str, prompt: &str| {
        let mut host = agent.host(session);
        host.prompt = format!("{session}-{prompt}");
        host
    };
    let work = |host: &crate::support::Host| {
        agent.tell(&host.prompt("Raise the limit"));
        let mut edit = host.edit("limit.txt", "6", "7");
        edit["tool_use_id"] = format!("{}-call", host.prompt).into();
        agent.tell(&edit);
    };
    // The next prompt comes, as after an interrupt.
    work(&host("s1", "first"));
    work(&host("s1", "second"));
    agent.tell(&host("s1", "second").stop("The limit is 7."));
    // The session ends.
    work(&host("s2", "only"));
    agent.tell(&host("s2", "only").end());
    // Nothing more comes.
    work(&host("s3", "only"));
    agent.sandbox.drain();
    agent.assert_all_is_stored();

    let summed_up = "select host_prompt_id || ' by ' || provider from prompts \
                     join summaries on summaries.prompt_id = prompts.id order by 1";
    let by = |prompt: &str| format!("{prompt} by {}", provider.name());
    assert_eq!(
        agent.column(summed_up),
        ["s1-first", "s1-second", "s2-only", "s3-only"].map(by)
    );
}
