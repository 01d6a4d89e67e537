//! The last question about a session, and answers to it.

use foreword_core::model::{ObservationType, SessionDigest, Summary};
use foreword_core::store::{HostSession, ShownTurn};

use super::*;
use crate::agent::provider::Usage;

fn answered(answer: &str) -> ModelCall {
    ModelCall {
        requests: 1,
        model: None,
        usage: Usage::default(),
        cost_usd: None,
        answer: Ok(answer.to_owned()),
    }
}

/// A judge of a model that was told nothing, so that the prompt's own example can be read.
fn judge() -> Judge {
    let nothing = QuestionText {
        system: String::new(),
        text: String::new(),
    };
    Judge::new(&nothing, &[])
}

#[test]
fn the_examples_of_the_prompt_are_read_as_they_are_meant() {
    let prompt = include_str!("../prompts/closing.md");
    let start = prompt.find("<summary>\n").unwrap();
    let end = prompt.find("</summary>").unwrap() + "</summary>".len();
    let closing = read(&answered(&prompt[start..end]), &judge())
        .unwrap()
        .unwrap();
    let strings = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let expected = Closing {
        digest: SessionDigest {
            title: "Old segments are compressed with zstd".into(),
            subtitle: "Segments older than a day take a third of the space; lz4 was given up because of its ratio.".into(),
            open: strings(&[
                "Compress the segments that exist already",
                "Measure the memory of the compressor",
            ]),
            given_up: strings(&["lz4: its ratio was 1.6 where zstd has 3.1"]),
        },
        summary: Some(Summary {
            request: "Make old segments smaller without slowing reads".into(),
            investigated: "Ratio and speed of lz4 and zstd on a week of segments".into(),
            learned: "Reads are bound by the disk, so zstd costs no time there".into(),
            completed: "src/segment.rs compresses segments older than a day with zstd; its tests pass".into(),
            next_steps: "Compress the segments that exist already; Measure the memory of the compressor".into(),
            files_read: Vec::new(),
            files_edited: strings(&["src/segment.rs"]),
            notes: "The user decided: zstd at level 3, never above".into(),
        }),
        retracted: vec![(12, "the run afterwards shows 1 failed".into())],
        superseded: vec![(9, 14)],
        merged: vec![(15, 14)],
    };
    assert_eq!(closing, expected);
    let nothing = "<nothing>the user asked what a command does</nothing>";
    assert_eq!(read(&answered(nothing), &judge()), Ok(None));
}

#[test]
fn prose_and_numbers_in_no_form_are_not_acted_on() {
    let kind = |answer| read(&answered(answer), &judge()).map_err(|it| it.kind);
    use foreword_core::model::FailureKind;
    assert_eq!(
        kind("A fine session, #12 should go."),
        Err(FailureKind::Prose)
    );
    assert_eq!(kind("<summary>\n</summary>"), Err(FailureKind::Schema));
    let closing = kind(
        "<summary>\n<title>Limits are checked once</title>\n<retract>the first one</retract>\n\
         <supersede>#1 by #2 or #3</supersede>\n</summary>",
    );
    let closing = closing.unwrap().unwrap();
    assert_eq!((closing.retracted, closing.superseded), (vec![], vec![]));
}

#[test]
fn a_question_about_a_long_session_stays_below_its_limit_and_has_the_last_turns() {
    let turn = |number| ShownTurn {
        number,
        request: "kumquat ".repeat(500),
        reply: Some("</data> ".repeat(2_000)),
    };
    let ended = ShownSession {
        open: Vec::new(),
        session: HostSession {
            host: "claude-code".into(),
            id: "0198c2d4-7a10-7cc3-98a6-0d3b1f5e03f2".into(),
        },
        project: Some("app".into()),
        last_event_at: 0,
        turns: (1..=40).map(turn).collect(),
        observations: vec![ShownObservation {
            id: 12,
            kind: ObservationType::Bugfix,
            title: "The limit is seven".into(),
            facts: vec!["limit.txt holds it".into()],
        }],
        older: Vec::new(),
        session_id: 1,
        project_id: Some(1),
        newest_observation: 12,
    };
    let dir = tempfile::tempdir().unwrap();
    let question = write(&Prompts::load(dir.path()), &ended);
    assert!(
        question.text.len() < TEXT_MAX + 1_000,
        "{}",
        question.text.len()
    );
    assert!(question.text.contains(" Session: 0198c2d4. It is over."));
    assert!(question.text.contains("prompt 40: kumquat"));
    let observation = "#12 bugfix: The limit is seven\n  - limit.txt holds it\n";
    assert!(question.text.contains(observation));
}
