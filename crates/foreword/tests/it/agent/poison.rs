//! One event that no answer can be had for must not take the others along.

use serde_json::json;

use super::world::{Agent, Events, LEDGER, Provider, answer};

super::for_each! {
    [claude Claude, anthropic Anthropic, openai OpenAi]
    [one_poisoned_event_does_not_take_its_batch_along]
}

fn one_poisoned_event_does_not_take_its_batch_along(provider: Provider) {
    let agent = Agent::new(provider);
    let good = answer("Kumquat limit raised to seven");
    agent.script(&json!({
        "lanes": [{
            "name": "poisoned",
            "match": {"any_user_contains": "POISON"},
            "then": "I would rather talk about the weather.",
        }],
        "then": good,
    }));
    let host = agent.host("s1");
    agent.tell(&host.prompt("Make the check pass"));
    agent.tell(&host.edit("limit.txt", "6", "7"));
    agent.tell(&host.bash("sh check.sh", "POISON"));
    agent.tell(&host.bash("git diff --stat", "limit.txt | 2 +-"));
    agent.tell(&host.stop("The limit is 7 now."));
    agent.sandbox.run(&["worker", "drain"]);
    agent.assert_nothing_is_missing();

    let all_but_one = Events {
        stored: 4,
        waiting: 0,
        skipped: 1,
    };
    assert_eq!(agent.events(), all_but_one, "{:?}", agent.column(LEDGER));
    let poisoned = "select count(*) from events \
                    where event like '%POISON%' and attempts = 3 and last_error like '%known tags%'";
    assert_eq!(agent.sandbox.count("queue.db", poisoned), 1);
    assert_eq!(agent.count("events where event like '%POISON%'"), 0);
    assert_eq!(agent.count("summaries"), 1);

    agent.script(&json!({"then": good}));
    agent.sandbox.run(&["retry"]);
    agent.assert_all_is_stored();
    let questions = agent.questions();
    let last = questions.last().unwrap();
    assert!(
        last.says("POISON") && !last.says("git diff"),
        "{}",
        last.text()
    );
}
