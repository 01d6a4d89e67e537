//! Words a turn as a summary: what was asked, looked at and done, and what the
//! agent itself named as next.

use foreword_core::model::Summary;
use foreword_core::text::{capitalised, one_line, shorten};

use super::teller::Teller;
use super::{changes, quote, said, speech};

/// None for what happened before anybody typed something.
pub fn summary(teller: &Teller<'_>) -> Option<Summary> {
    let request = teller.words().request()?;
    let edits = teller.edits(&teller.lasting());
    let files_edited = changes::paths(&edits).into_iter().map(str::to_owned);
    let files_read: Vec<String> = teller.files_read().into_iter().map(|it| it.path).collect();
    Some(Summary {
        request: shorten(&one_line(request), 400).into_owned(),
        investigated: match files_read.join(", ").as_str() {
            "" => String::new(),
            read => format!("Read {read}."),
        },
        learned: learned(teller),
        completed: completed(teller),
        next_steps: shorten(&next_steps(teller).join("; "), 400).into_owned(),
        notes: notes(teller),
        files_read,
        files_edited: files_edited.collect(),
    })
}

/// What the agent named as next, without what the user asked for since.
fn next_steps(teller: &Teller<'_>) -> Vec<String> {
    let reply = teller.words().reply().unwrap_or_default();
    let mut steps = speech::next_steps(reply);
    let later = &teller.story.turns[teller.turn + 1..];
    let requests: Vec<&str> = later.iter().filter_map(|it| it.request()).collect();
    steps.retain(|step| !requests.iter().any(|request| said::takes_up(request, step)));
    steps
}

fn completed(teller: &Teller<'_>) -> String {
    let mut parts = Vec::new();
    let mut told: Vec<usize> = Vec::new();
    for commit in teller.commits() {
        told.extend(&commit.edits);
        parts.push(format!("committed {}", quote(&commit.subject, 90)));
    }
    for trouble in teller.troubles() {
        let passed = trouble.passed.and_then(|at| teller.command(at));
        if let Some(command) = passed.filter(|_| !teller.is_on_the_way(trouble)) {
            told.extend(&trouble.edits);
            parts.push(format!("`{}` passes again", command.name()));
        }
    }
    let mut left = teller.lasting();
    left.retain(|at| !told.contains(at));
    if !left.is_empty() {
        let paths = changes::paths(&teller.edits(&left)).join(", ");
        parts.push(format!("changed {paths}"));
    }
    for rejected in teller.rejected() {
        parts.push(format!("tried and undone: {}", teller.tried(&rejected)));
    }
    parts.dedup();
    match parts.join("; ").as_str() {
        "" => String::new(),
        parts => format!("{}.", capitalised(parts)),
    }
}

fn learned(teller: &Teller<'_>) -> String {
    let mut lines = Vec::new();
    for trouble in teller.troubles() {
        let (at, how) = match trouble.passed {
            Some(_) if teller.is_on_the_way(trouble) => continue,
            Some(_) => (trouble.runs[0], "failed at first"),
            None => (trouble.last(), "failed and was not seen to pass"),
        };
        if let Some(command) = teller.command(at)
            && let Some(line) = command.key_line()
        {
            lines.push(format!("`{}` {how}: {line}.", command.name()));
        }
    }
    for concluded in teller.concluded() {
        let sentences = speech::sentences(&concluded);
        lines.extend(sentences.first().map(|said| quote(said, 160)));
    }
    lines.join(" ")
}

fn notes(teller: &Teller<'_>) -> String {
    let words = teller.words();
    let closing = speech::first_paragraph(words.reply().unwrap_or_default());
    if words.failed() {
        format!("The turn failed: {}", shorten(&closing, 200))
    } else if closing.is_empty() {
        "The turn ended without a reply.".to_owned()
    } else {
        format!("The agent's closing words: {}", quote(&closing, 300))
    }
}
