//! Tests that every provider must pass.

use super::world::{Agent, Provider};

super::for_each! {
    [claude Claude, anthropic Anthropic, openai OpenAi, offline Offline]
    [
        a_session_becomes_memory_that_says_where_it_comes_from,
        what_is_done_is_not_done_again,
    ]
}

fn a_session_becomes_memory_that_says_where_it_comes_from(provider: Provider) {
    let agent = Agent::new(provider);
    let host = agent.host("s1");
    agent.send(&host.start("startup"));
    agent.send_turn(&host);
    agent.send(&host.end());
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
    // One question about the turn, one about the session when it ended.
    assert_eq!(
        agent.questions().len(),
        2 * usize::from(agent.asks_a_model())
    );
}

fn what_is_done_is_not_done_again(provider: Provider) {
    let agent = Agent::new(provider);
    let turn = |session| agent.send_turn(&agent.host(session));
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
