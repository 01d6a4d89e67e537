//! The conversation about a session: when a question goes into it, when it begins anew, and when it
//! is deleted.

use super::*;

const SESSION: &str = "[model]\nconversation = \"session\"\nhistory_max_tokens = 100000";

/// Sends another turn of the session and has it processed.
async fn turn(world: &World, prompt: &str) {
    let mut host = world.host("s1");
    host.prompt = prompt.to_owned();
    world.send(&host.prompt(&format!("Now {prompt}")));
    let mut edit = host.edit(&format!("{prompt}.txt"), "0", "1");
    edit["tool_use_id"] = prompt.into();
    world.send(&edit);
    world.send(&host.stop(&format!("{prompt} is done.")));
    world.drain().await;
}

async fn end(world: &World) {
    world.send(&world.host("s1").end());
    world.drain().await;
}

fn kept(world: &World) -> i64 {
    world.count(world.home.memory(), "conversations")
}

#[tokio::test]
async fn all_questions_of_a_session_are_one_conversation_that_is_gone_after_it() {
    let world = World::new(SESSION);
    turn(&world, "one").await;
    turn(&world, "two").await;
    assert_eq!(kept(&world), 1);
    end(&world).await;
    world.assert_all_is_stored();
    assert_eq!(world.model.carried(), [Some(0), Some(1), Some(2)]);
    let questions = world.model.questions();
    assert!(questions[2].contains(OVER));
    // The conversation has the observations already, but not their numbers.
    let known = questions[1].matches("Kumquat limit").count();
    assert_eq!(known, 1, "{}", questions[1]);
    assert!(!questions[1].contains("limit.txt"), "{}", questions[1]);
    assert_eq!(kept(&world), 0);
}

#[tokio::test]
async fn a_model_can_correct_what_it_wrote_earlier_in_the_conversation() {
    let world = World::new(SESSION);
    turn(&world, "one").await;
    let number = world.memory("select cast(id as text) from observations")[0].clone();
    world.model.answer(|_| Ok(observed("Another limit")));
    turn(&world, "two").await;
    let known =
        format!("recorded in this session:\n#{number} bugfix: Kumquat limit raised to seven\n");
    let question = &world.model.questions()[1];
    assert!(question.contains(&known), "{question}");

    // It was shown the number in an earlier question, and to an earlier worker.
    let retract = format!("<nothing>no</nothing>\n<retract>#{number} it is five</retract>");
    world.model.answer(move |_| Ok(retract.clone()));
    turn(&world, "three").await;
    world.assert_all_is_stored();
    let question = &world.model.questions()[2];
    assert!(!question.contains("Kumquat limit"), "{question}");
    assert!(question.contains("bugfix: Another limit\n"), "{question}");
    let retracted =
        "select title || ': ' || coalesce(retracted, 'holds') from observations order by id";
    let expected = [
        "Kumquat limit raised to seven: it is five",
        "Another limit: holds",
    ];
    assert_eq!(world.memory(retracted), expected);
}

#[tokio::test]
async fn a_turn_costs_three_calls_at_most_also_when_its_conversation_is_too_long() {
    let world = World::new(SESSION);
    turn(&world, "one").await;
    let mut calls = 0;
    world.model.answer(move |_| {
        calls += 1;
        match calls {
            1 | 2 => Err(Failure::new(FailureKind::TooLong, "no")),
            _ => Ok("It was a fine turn.".to_owned()),
        }
    });
    turn(&world, "two").await;
    world.assert_all_is_stored();
    assert_eq!(world.model.questions().len(), 1 + 3);
}

#[tokio::test]
async fn questions_that_stand_alone_give_the_same_memory() {
    let (alone, together) = (
        World::new("[model]\nconversation = \"question\""),
        World::new(SESSION),
    );
    for world in [&alone, &together] {
        turn(world, "one").await;
        turn(world, "two").await;
        end(world).await;
        world.assert_all_is_stored();
    }
    assert_eq!(alone.model.carried(), [None, None, None]);
    let titles = "select title || narrative from observations";
    assert_eq!(alone.memory(titles), together.memory(titles));
    assert!(alone.model.questions()[1].contains("Kumquat limit"));
}

#[tokio::test]
async fn a_conversation_that_costs_too_much_begins_anew_with_what_came_of_it() {
    let world = World::new("[model]\nconversation = \"session\"\nhistory_max_tokens = 10");
    turn(&world, "one").await;
    turn(&world, "two").await;
    end(&world).await;
    world.assert_all_is_stored();
    // The last question has everything in it, so it needs no conversation.
    assert_eq!(world.model.carried(), [Some(0), Some(0), None]);
    let questions = world.model.questions();
    for part in [
        "bugfix: Kumquat limit raised to seven\n  - limit.txt holds the limit\n",
        "prompt 1: Now one\nlast words: one is done.",
        "two.txt",
    ] {
        assert!(questions[1].contains(part), "{part}: {}", questions[1]);
    }
    assert!(!questions[1].contains("one.txt"), "{}", questions[1]);
}

#[tokio::test]
async fn a_conversation_that_became_too_long_for_the_model_is_begun_again_at_once() {
    let world = World::new(SESSION);
    turn(&world, "one").await;
    world
        .model
        .answer(|question| match question.contains("limit.txt holds") {
            true => Ok(observed("Another limit")),
            false => Err(Failure::new(FailureKind::TooLong, "no")),
        });
    turn(&world, "two").await;
    world.assert_all_is_stored();
    assert_eq!(world.model.carried(), [Some(0), Some(1), Some(0)]);
}

#[tokio::test]
async fn a_conversation_outlives_an_outage_but_not_a_batch_that_failed() {
    let world = World::new(SESSION);
    turn(&world, "one").await;
    world.fails(FailureKind::Outage);
    turn(&world, "two").await;
    world.answers_well();
    let_pass(HOUR / 4);
    world.drain().await;
    world.assert_all_is_stored();
    assert!(world.model.carried().ends_with(&[Some(1)]));

    world.fails(FailureKind::Refusal);
    let mut host = world.host("s1");
    host.prompt = "three".to_owned();
    world.send(&host.edit("three.txt", "0", "1"));
    world.drain().await;
    assert_eq!(kept(&world), 0);
}

#[tokio::test]
async fn a_conversation_that_cannot_be_read_or_has_other_prompts_is_begun_again() {
    let world = World::new(SESSION);
    for state in ["[]", r#"{"prompts": "0", "exchanges": [["a", "b"]]}"#] {
        let asked = world.model.carried().len();
        turn(&world, &format!("turn-{asked}")).await;
        let store = Store::open(&world.home.memory(), &world.home.backups()).unwrap();
        let session = &store.sessions_named("s1").unwrap()[0];
        store
            .keep_conversation(session, "anthropic", state, now())
            .unwrap();
        drop(store);
        turn(&world, &format!("turn-{asked}-next")).await;
        assert_eq!(world.model.carried()[asked + 1], Some(0), "{state}");
    }
    world.assert_all_is_stored();
}

#[tokio::test]
async fn another_provider_and_a_forgotten_item_end_all_conversations() {
    let mut world = World::new(SESSION);
    turn(&world, "one").await;
    let mut store = Store::open(&world.home.memory(), &world.home.backups()).unwrap();
    let session = store.sessions_named("s1").unwrap()[0].clone();
    let asked_at = now();
    store.forget(&[2], now()).unwrap();
    // The answer to a question that was asked before comes now.
    store
        .keep_conversation(&session, "anthropic", "{}", asked_at)
        .unwrap();
    drop(store);
    assert_eq!(kept(&world), 0);

    turn(&world, "two").await;
    assert_eq!(kept(&world), 1);
    world.config.provider = "openai".to_owned();
    world.drain().await;
    assert_eq!(kept(&world), 0);
}
