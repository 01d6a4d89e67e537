//! Notes that a model writes from a transcript. Only the model is replaced.

use serde_json::{Value, json};

use super::{DRAFT, Desk, converse};
use crate::agent::server::Server;
use crate::support::Host;
use crate::transcript::Transcript;

/// A user whose model answers like this, and the model.
fn desk(script: &Value) -> (Server, Desk) {
    let server = Server::start("claude-code/fake_anthropic.py");
    server.script(script);
    let mut desk = Desk::new();
    let address = format!("http://127.0.0.1:{}", server.port);
    desk.sandbox.set("FOREWORD_PROVIDER", "anthropic");
    desk.sandbox.set("FOREWORD_ANTHROPIC_BASE_URL", address);
    desk.sandbox.set("ANTHROPIC_API_KEY", "sk-test");
    (server, desk)
}

/// State and failure of each call, and what it was made for.
fn ledger(desk: &Desk) -> Vec<String> {
    let memory = desk.sandbox.database("memory.db");
    let sql = "select state || ' ' || coalesce(failure, '') || ' ' || host_session_id from ledger order by id";
    let mut statement = memory.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn a_model_writes_the_note_and_the_ledger_knows() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let answer = format!(
        "Here it is:\n\n```markdown\n{}```",
        DRAFT.replace("three times", &token)
    );
    let (server, desk) = desk(&json!({"then": answer}));
    let (_, transcript) = converse(&desk, "s1");
    transcript.line("user.string", |line| {
        let words = format!("And now with {token}. <private>plum</private>");
        line["message"]["content"] = words.into();
        line["promptId"] = "second".into();
    });
    let printed = desk.run(&["summarize", "s1", "--yes"]);
    assert!(
        printed.ends_with("anthropic is asked: The conversation, step by step\n"),
        "{printed}"
    );
    let note = desk.note("s1");
    assert!(note.starts_with("# Retries in the client\n"), "{note}");
    assert!(note.contains("- Decision: retry [redacted:"), "{note}");
    assert_eq!(ledger(&desk), ["answered  summarize"]);
    let questions = server.questions();
    assert_eq!(questions.len(), 1);
    for (words, there) in [
        ("Let's use a limit of seven", true),
        ("the user's prompt 2", true),
        ("the compacted words", false),
        ("the subagent's words", false),
        (token.as_str(), false),
        ("plum", false),
    ] {
        assert_eq!(questions[0].contains(words), there, "{words}");
    }
}

#[test]
fn an_answer_that_is_no_note_is_asked_for_once_more_and_then_done_without() {
    let (server, desk) = desk(&json!({"turns": ["Sure!", DRAFT]}));
    converse(&desk, "s1");
    desk.run(&["summarize", "s1", "--yes"]);
    assert!(desk.note("s1").starts_with("# Retries"));
    let questions = server.questions();
    assert_eq!(questions.len(), 2);
    assert!(
        questions[1]
            .contains("your note could not be used:\n- line 1: text before the first section\n")
    );

    server.script(&json!({"then": "Sure!"}));
    converse(&desk, "s2");
    let printed = desk.run(&["summarize", "s2", "--yes"]);
    let why = "the model's answer has not the form of a note; the note is made without a model\n";
    assert!(printed.ends_with(why), "{printed}");
    assert!(
        desk.note("s2")
            .starts_with("# The limit is 7 now; the cause was an old default\n")
    );
    assert_eq!(server.questions().len(), 4);
}

#[test]
fn when_nobody_can_be_asked_it_is_said_and_done_without() {
    let error = json!({"error": {"status": 401, "type": "api_error", "message": "no"}});
    let (server, mut desk) = desk(&json!({"then": error}));
    converse(&desk, "s1");
    let summarize = |desk: &Desk| {
        let printed = desk.run(&["summarize", "s1", "--dry-run"]);
        let why = printed
            .lines()
            .rev()
            .find(|it| it.ends_with("; the note is made without a model"));
        why.unwrap_or_else(|| panic!("{printed}")).to_owned()
    };
    let failed = summarize(&desk);
    assert!(failed.starts_with("anthropic did not answer: "), "{failed}");
    assert_eq!(server.questions().len(), 1);
    let paused = summarize(&desk);
    assert!(paused.starts_with("anthropic is paused: "), "{paused}");
    assert!(
        paused.contains("; `foreword retry` ends the pause; "),
        "{paused}"
    );
    desk.sandbox.set("FOREWORD_BUDGET_DAILY_USD", "0");
    let spent = summarize(&desk);
    assert!(
        spent.starts_with("the daily budget of $0.00 is used up; "),
        "{spent}"
    );
    assert_eq!(server.questions().len(), 1, "nobody was asked again");
    assert_eq!(ledger(&desk), ["failed auth summarize"]);
    // A draft does not cause a question either.
    desk.save("s1", DRAFT);
    assert_eq!(server.questions().len(), 1);
}

#[test]
fn a_long_conversation_is_told_in_parts_and_put_together() {
    let (server, mut desk) = desk(&json!({"then": DRAFT}));
    desk.sandbox.set("FOREWORD_MODEL_BATCH_MAX_TOKENS", "1000");
    let mut host = Host::new("s1", &desk.project);
    let transcript = Transcript::of(&desk.sandbox, &mut host);
    for number in 0..4 {
        transcript.prompt(&format!(
            "Question {number}: {}",
            "kumquats and pomelos ".repeat(60)
        ));
        transcript.reply(&format!(
            "Answer {number}: {}",
            "all is well here ".repeat(60)
        ));
    }
    let printed = desk.run(&["summarize", "s1", "--yes"]);
    let asked: Vec<_> = printed
        .lines()
        .filter(|it| it.starts_with("anthropic is asked: "))
        .collect();
    insta::assert_snapshot!(asked.join("\n"), @"
    anthropic is asked: Part 1 of 3 of the conversation
    anthropic is asked: Part 2 of 3 of the conversation
    anthropic is asked: Part 3 of 3 of the conversation
    anthropic is asked: Notes on the parts of one conversation, in order; what a later part overtook is no longer so
    ");
    let questions = server.questions();
    assert_eq!(questions.len(), asked.len());
    assert!(questions[0].contains("Question 0: ") && !questions[0].contains("Question 3: "));
    let merge = questions.last().unwrap();
    assert!(merge.contains("retry three times") && !merge.contains("Question "));
    assert!(desk.note("s1").starts_with("# Retries"));
}

#[test]
fn a_conversation_of_any_length_costs_a_bounded_number_of_questions() {
    let (server, mut desk) = desk(&json!({"then": DRAFT}));
    desk.sandbox.set("FOREWORD_MODEL_BATCH_MAX_TOKENS", "1000");
    let mut host = Host::new("s1", &desk.project);
    let transcript = Transcript::of(&desk.sandbox, &mut host);
    for number in 0..400 {
        transcript.prompt(&format!(
            "Question {number}: {}",
            "kumquats and pomelos ".repeat(60)
        ));
    }
    desk.run(&["summarize", "s1", "--yes"]);
    let questions = server.questions();
    assert_eq!(questions.len(), 13);
    assert!(questions[0].contains("Question 0: ") && questions[11].contains("Question 399: "));
}
