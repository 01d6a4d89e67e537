//! Reminders: only of observations that a prompt is about.

use std::path::Path;

use foreword_core::model::{
    Event, FileRole, Observation, ObservationType, Origin, Shown, TouchedFile,
};
use foreword_core::recall::reminder::{self, Occasion, ShownBefore};
use foreword_core::store::Store;
use serde::Deserialize;

use crate::store::{open, outside, prompt, store};

#[derive(Deserialize)]
struct Remembered {
    id: usize,
    r#type: ObservationType,
    title: String,
    subtitle: String,
    facts: Vec<String>,
    narrative: String,
    concepts: Vec<String>,
    files: Vec<String>,
}

#[derive(Deserialize)]
struct Labelled {
    prompt: String,
    about: Vec<usize>,
}

fn lines<T: serde::de::DeserializeOwned>(file: &str) -> Vec<T> {
    let path = format!("{}/../../testdata/need/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The memory of the labelled set, and the item numbers by the ids of the set.
fn memory(dir: &tempfile::TempDir) -> (Store, Vec<(i64, usize)>) {
    let remembered: Vec<Remembered> = lines("memory.jsonl");
    let observations: Vec<_> = remembered.iter().map(observation).collect();
    let mut memory = open(dir);
    store(&mut memory, &[prompt(1, "p1", "unasked")], |_| {
        observations.clone()
    });
    let outside = outside(dir);
    let mut statement = outside
        .prepare("select id, seed from observations")
        .unwrap();
    let ids = statement
        .query_map([], |row| {
            Ok((row.get(0)?, row.get::<_, String>(1)?.parse().unwrap()))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    (memory, ids)
}

fn observation(it: &Remembered) -> Observation {
    Observation {
        title: it.title.clone(),
        subtitle: it.subtitle.clone(),
        facts: it.facts.clone(),
        narrative: it.narrative.clone(),
        concepts: it.concepts.clone(),
        files: it.files.iter().map(|path| modified(path)).collect(),
        at: 5,
        ..Observation::blank(it.id.to_string(), it.r#type, Origin::Agent)
    }
}

fn modified(path: &str) -> TouchedFile {
    TouchedFile {
        path: path.to_owned(),
        role: FileRole::Modified,
        size: None,
        mtime: None,
        hash: None,
    }
}

/// How many of the prompts without a match get no reminder, how many of the others get the right
/// one, and how many wrong lines are shown.
fn rates(file: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let (memory, ids) = memory(&dir);
    let occasion = Occasion {
        project: "/p",
        host_session_id: "another",
        root: None,
        now: 0,
    };
    let (mut silent, mut brought, mut all, mut beside) = (0, 0, 0, 0);
    let labelled: Vec<Labelled> = lines(file);
    for Labelled { prompt, about } in &labelled {
        let found = reminder::for_prompt(&memory, &occasion, prompt).unwrap();
        let reminder = found.remind(Shown::Prompt, &ShownBefore::default());
        let items = reminder.map_or(Vec::new(), |it| it.receipt.items);
        let number = |id: i64| ids.iter().find(|(it, _)| *it == id).unwrap().1;
        let shown: Vec<usize> = items.iter().map(|&(id, _)| number(id)).collect();
        if about.is_empty() {
            silent += usize::from(shown.is_empty());
        } else {
            all += 1;
            let right = shown.iter().filter(|it| about.contains(it)).count();
            brought += usize::from(right > 0);
            beside += shown.len() - right;
        }
    }
    let none = labelled.len() - all;
    format!("{silent} of {none} left alone; {brought} of {all} brought, {beside} lines beside it")
}

#[test]
fn a_prompt_brings_what_it_is_about_and_nothing_else() {
    insta::assert_snapshot!(rates("dev.jsonl"), @"50 of 50 left alone; 35 of 50 brought, 4 lines beside it");
    insta::assert_snapshot!(rates("held_out.jsonl"), @"50 of 50 left alone; 41 of 50 brought, 5 lines beside it");
}

#[test]
fn a_prompt_that_names_a_file_brings_what_is_known_about_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let known = |seed: &str, path: &str| Observation {
        files: vec![modified(path)],
        ..crate::store::observation(seed, "Something was laid down")
    };
    store(&mut memory, &[prompt(1, "p1", "unasked")], |_| {
        vec![
            known("row", "src/app/tasks/TaskRow.tsx"),
            known("prod", "envs/prod/main.tf"),
            known("image", "Dockerfile"),
        ]
    });
    let occasion = Occasion {
        project: "/p",
        host_session_id: "another",
        root: Some(Path::new("/home/user/shop")),
        now: 0,
    };
    let reminded = |prompt: &str| {
        let found = reminder::for_prompt(&memory, &occasion, prompt).unwrap();
        let reminder = found.remind(Shown::Prompt, &ShownBefore::default());
        let items = reminder.map_or(Vec::new(), |it| it.receipt.items);
        let names: Vec<String> = items.into_iter().map(|(_, because)| because).collect();
        names.join(" ")
    };
    let cases = [
        ("TaskRowに作成日時も表示", "src/app/tasks/TaskRow.tsx"),
        (
            "see @src/app/tasks/TaskRow.tsx:12",
            "src/app/tasks/TaskRow.tsx",
        ),
        ("/home/user/shop/envs/prod/main.tf", "envs/prod/main.tf"),
        ("rename vpc in envs/prod, please", "envs/prod/main.tf"),
        ("switch the Dockerfile.", "Dockerfile"),
        ("a taskrow, a docker file, prod, main", ""),
        ("OtherRow.tsx and lib/Dockerfile and Row.tsx", ""),
    ];
    for (prompt, expected) in cases {
        assert_eq!(reminded(prompt), expected, "{prompt}");
    }
}

#[test]
fn one_word_is_enough_for_a_rule_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let title = "Always run pytest with `-x`";
    store(&mut memory, &[prompt(1, "p1", "unasked")], |_| {
        [("rule", Origin::User), ("claim", Origin::Agent)]
            .map(|(seed, origin)| Observation {
                origin,
                ..crate::store::observation(seed, title)
            })
            .to_vec()
    });
    let about = |prompt| {
        foreword_core::search::about(&memory, prompt, "/p")
            .unwrap()
            .len()
    };
    assert_eq!(about("start pytest and see"), 1);
    assert_eq!(about("always run the server"), 0);
}

/// Many observations similar to the expected one, of a project and a session.
fn crowd(memory: &mut Store, project: &str, at: i64, title: &str, many: usize) {
    let session = &format!("session at {at}");
    let prompt = Event {
        key: format!("prompt of {session}"),
        project: Some(project.into()),
        host_session_id: session.into(),
        ..prompt(at, session, "Where do webhook retries end?")
    };
    let events = [prompt];
    store(memory, &events, |_| {
        let like = |number: usize| Observation {
            facts: vec![format!("fact {number}")],
            ..crate::store::observation(&format!("{session}{number}"), title)
        };
        (0..many).map(like).collect()
    });
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn other_projects_and_prompts_do_not_crowd_out_what_is_known_here() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let title = "Webhook retries end after twelve attempts";
    crowd(&mut memory, "/p", 2, title, 1);
    for at in 3..50 {
        crowd(&mut memory, "/p", at, title, 0);
    }
    crowd(&mut memory, "/q", 70, title, 50);
    crowd(&mut memory, "/q", 71, "Another matter of that file", 210);
    let occasion = Occasion {
        project: "/p",
        host_session_id: "another",
        root: None,
        now: 0,
    };
    let prompt = "why do webhook retries end after twelve attempts?";
    let about = reminder::for_prompt(&memory, &occasion, prompt).unwrap();
    assert!(!about.is_empty());
    let known = reminder::for_file(&memory, &occasion, "src/a.rs").unwrap();
    assert!(!known.is_empty());
}
