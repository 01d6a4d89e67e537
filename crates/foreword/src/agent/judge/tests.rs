//! Real answers of a very small model, and good ones, judged by the same recording.

use std::path::{Path, PathBuf};

use foreword_core::model::{EventKind, Payload, Turn};
use foreword_core::recall::digest::Digest;
use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::agent::prompts::Prompts;
use crate::agent::question::{self, QuestionSubject};
use crate::agent::{repair, reply};

/// What was recorded, with every name that the small model copied from its own sessions.
const RECORDED: &str = "scheduler/runner.py: retry_ max_retries, Bash failed with exit code 127; \
    src/signup.ts:40 writes pw_hash with MD5; Dockerfile: go-sqlite3 is a stub without cgo; src/spool";

fn judge() -> Judge {
    let event = Event {
        id: Uuid::nil(),
        key: String::new(),
        kind: EventKind::Stop,
        host: "claude-code".into(),
        host_session_id: "s1".into(),
        prompt_id: Some("p1".into()),
        agent_id: None,
        tool_name: None,
        tool_use_id: None,
        cwd: None,
        project_dir: None,
        project: Some("example.com/me/app".into()),
        root: None,
        transcript_path: None,
        branch: None,
        commit: None,
        files: Vec::new(),
        payload: Payload {
            reply: Some(RECORDED.into()),
            ..Payload::default()
        },
        at: 1_763_000_000_000,
    };
    let events = [event];
    let turn = Turn {
        prompt_id: Some("p1".into()),
        events: events.to_vec(),
    };
    let subject = QuestionSubject {
        events: &events,
        turn: &turn,
        digest: &Digest::default(),
        sum_up: true,
        cut: 1,
    };
    let dir = tempfile::tempdir().unwrap();
    as_it_was_asked(dir.path());
    let question_text = question::write(&Prompts::load(dir.path()), &subject);
    Judge::new(&question_text, &events)
}

/// Why an answer cannot be used: its blocks say why, or there are none.
fn verdict(judge: &Judge, answer: &str) -> &'static str {
    let mut reply = reply::read(answer, repair::TAGS);
    match judge.sift(&mut reply) {
        Some(why) => why,
        None if reply.observations.is_empty() && reply.nothing.is_none() => "it has no block",
        None => "it can be used",
    }
}

/// Writes the prompt that the small model was asked for summaries with.
pub fn as_it_was_asked(prompts: &Path) {
    std::fs::create_dir_all(prompts).unwrap();
    std::fs::copy(recorded("summary.md"), prompts.join("summary.md")).unwrap();
}

fn recorded(file: &str) -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    checkout.join("testdata/answers").join(file)
}

/// The recorded answers of one file.
pub fn answers(file: &str) -> Vec<String> {
    let lines = std::fs::read_to_string(recorded(&format!("{file}.jsonl"))).unwrap();
    let answer = |line: &str| {
        let said: Value = serde_json::from_str(line).unwrap();
        said["answer"].as_str().unwrap().to_owned()
    };
    lines.lines().map(answer).collect()
}

#[test]
fn no_answer_of_a_very_small_model_can_be_used() {
    let judge = judge();
    for file in ["plain", "grammar", "observation", "short", "json"] {
        for answer in answers(file) {
            let verdict = verdict(&judge, &answer);
            assert_ne!(verdict, "it can be used", "{file}: {answer}");
        }
    }
}

#[test]
fn our_own_words_are_no_memory_unless_they_were_recorded() {
    let judge = judge();
    let observation = |title: &str, narrative: &str| {
        format!(
            "<observation>\n<title>{title}</title>\n<narrative>{narrative}</narrative>\n</observation>"
        )
    };
    let echo = "it repeats the question";
    let cases = [
        (
            observation("Session tokens refreshed before expiry", "x"),
            echo,
        ),
        (
            observation(
                "x",
                "Requests that began shortly before the hour failed with 401, because TokenStore looked",
            ),
            echo,
        ),
        (observation("06:13 the runner", "x"), echo),
        (
            "<nothing>the user asked how a flag of tar is spelled</nothing>".to_owned(),
            echo,
        ),
        (
            "<nothing>a look at the runner</nothing>".to_owned(),
            "it can be used",
        ),
        (
            observation(
                "Runner gives up after max_retries",
                "scheduler/runner.py counts.",
            ),
            "it can be used",
        ),
    ];
    for (answer, expected) in cases {
        assert_eq!(verdict(&judge, &answer), expected, "{answer}");
    }
    let recorded = QuestionText {
        system: "Write <title>Session tokens refreshed before expiry</title>".into(),
        text: "<data 1>\nSession tokens refreshed before expiry\n</data 1>".into(),
    };
    let answer = observation("Session tokens refreshed before expiry", "x");
    assert_eq!(
        verdict(&Judge::new(&recorded, &[]), &answer),
        "it can be used"
    );
}

#[test]
fn names_that_were_not_recorded_count_against_an_observation() {
    let judge = judge();
    let observed = |facts: &str| {
        format!("<observation>\n<title>Limits</title>\n<facts>{facts}</facts>\n</observation>")
    };
    let invented = "it names files or code that were not recorded";
    let cases = [
        (
            "<fact>dave_johnson asked</fact>\n<fact>alexander_bass answered</fact>",
            invented,
        ),
        (
            "<fact>src/auth/token.rs calls TokenStore::get</fact>",
            invented,
        ),
        (
            "<fact>lib/scheduler/runner.py reads max_retries</fact>",
            "it can be used",
        ),
        // A name that everybody knows is no invention.
        (
            "<fact>runner.py has max_retries as in JavaScript</fact>",
            "it can be used",
        ),
        (
            "<fact>and/or, e.g. 3.5 times, 17:40</fact>",
            "it can be used",
        ),
    ];
    for (facts, expected) in cases {
        assert_eq!(verdict(&judge, &observed(facts)), expected, "{facts}");
    }
}

#[test]
fn a_good_observation_stays_beside_a_summary_that_is_ours() {
    let mut reply = reply::read(
        "<observation>\n<title>Runner gives up</title>\n<narrative>It counts.</narrative>\n</observation>\n\
         <summary>\n<request>What the user wanted</request>\n<completed>What is done and works</completed>\n</summary>",
        repair::TAGS,
    );
    assert_eq!(judge().sift(&mut reply), None);
    assert_eq!((reply.observations.len(), reply.summary), (1, None));
}

#[test]
fn our_own_words_retract_nothing_and_are_no_memory_of_another_question() {
    let mut judge = judge();
    judge.know(&Prompts::load(Path::new("none")));
    let answer = "<observation><title>The limit is seven</title></observation>
<retract>#14 the run afterwards fails</retract>
<retract>#15 seven was wrong</retract>";
    let mut reply = reply::read(answer, repair::TAGS);
    assert_eq!(judge.sift(&mut reply), None);
    assert_eq!(reply.marks, [("retract", "#15 seven was wrong".to_owned())]);
    let again = Prompts::load(Path::new("none")).fill("again", &[]);
    let echo: String = again
        .split_whitespace()
        .take(9)
        .collect::<Vec<_>>()
        .join(" ");
    assert!(judge.is_ours(&echo), "{echo}");
}

#[test]
fn a_name_that_the_client_was_shown_before_is_recorded() {
    let mut judge = judge();
    assert!(!judge.is_recorded("src/zork/quux.py"));
    let mut conversation = Conversation::default();
    conversation.names.push("src/zork/quux.py".to_owned());
    judge.also(&conversation);
    assert!(judge.is_recorded("src/zork/quux.py") && !judge.is_recorded("src/other.py"));
}
