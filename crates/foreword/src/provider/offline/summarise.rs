//! Words a turn as a summary: what was asked, looked at and done, and what the
//! agent itself named as next.

use foreword_core::model::Summary;
use foreword_core::text::{capitalised, one_line, shorten};

use super::teller::Teller;
use super::{changes, output, said, speech};

/// None for what happened before anybody typed something.
pub fn summary(teller: &Teller<'_>) -> Option<Summary> {
    let request = teller.words().request()?;
    let edits = teller.edits(&teller.lasting());
    let files_edited = changes::paths(&edits).into_iter().map(str::to_owned);
    let files_read: Vec<String> = teller.files_read().into_iter().map(|it| it.path).collect();
    let next = next_steps(teller);
    Some(Summary {
        request: shorten(&one_line(request), 400).into_owned(),
        investigated: if files_read.is_empty() {
            String::new()
        } else {
            format!("Read {}.", files_read.join(", "))
        },
        learned: learned(teller),
        completed: completed(teller),
        next_steps: shorten(&next.join("; "), 400).into_owned(),
        notes: notes(teller),
        files_read,
        files_edited: files_edited.collect(),
    })
}

/// What the agent named as next, without what the user asked for since.
fn next_steps(teller: &Teller<'_>) -> Vec<String> {
    let mut steps = teller
        .words()
        .reply()
        .map(speech::next_steps)
        .unwrap_or_default();
    let later = &teller.story.turns[teller.turn + 1..];
    let requests: Vec<&str> = later.iter().filter_map(|it| it.request()).collect();
    steps.retain(|step| !requests.iter().any(|request| said::takes_up(request, step)));
    steps
}

fn completed(teller: &Teller<'_>) -> String {
    let mut parts = Vec::new();
    let mut committed: Vec<usize> = Vec::new();
    for commit in teller.commits() {
        committed.extend(&commit.edits);
        parts.push(format!("committed “{}”", shorten(&commit.subject, 90)));
    }
    let mut repaired: Vec<usize> = Vec::new();
    for trouble in teller.troubles() {
        let passed = trouble.passed.and_then(|at| teller.command(at));
        if let Some(command) = passed
            && !teller.is_on_the_way(trouble)
        {
            repaired.extend(&trouble.edits);
            parts.push(format!("`{}` passes again", command.name()));
        }
    }
    let mut left = teller.lasting();
    left.retain(|at| !committed.contains(at) && !repaired.contains(at));
    if !left.is_empty() {
        let paths = changes::paths(&teller.edits(&left)).join(", ");
        parts.push(format!("changed {paths}"));
    }
    for rejected in teller.rejected() {
        let thing = teller.tried(&rejected);
        parts.push(format!("tried and undone: {thing}"));
    }
    parts.dedup();
    sentence(&parts.join("; "))
}

fn learned(teller: &Teller<'_>) -> String {
    let mut lines = Vec::new();
    for trouble in teller.troubles() {
        let (at, how) = match trouble.passed {
            Some(_) if teller.is_on_the_way(trouble) => continue,
            Some(_) => (trouble.runs[0], "failed at first"),
            None => (trouble.last(), "failed and was not seen to pass"),
        };
        let command = teller.command(at);
        let line = command.and_then(|it| output::key_line(&it.output));
        if let (Some(command), Some(line)) = (command, line) {
            lines.push(format!("`{}` {how}: {line}.", command.name()));
        }
    }
    let concluded = teller.concluded();
    lines.extend(concluded.iter().map(|it| {
        let said = speech::sentences(it).first().copied().unwrap_or_default();
        format!("“{}”", shorten(said, 160))
    }));
    lines.join(" ")
}

fn notes(teller: &Teller<'_>) -> String {
    let words = teller.words();
    let closing = speech::first_paragraph(words.reply().unwrap_or_default());
    match (closing.is_empty(), words.failed()) {
        (true, false) => "The turn ended without a reply.".to_owned(),
        (_, true) => format!("The turn failed: {}", shorten(&closing, 200)),
        (false, false) => format!("The agent's closing words: “{}”", shorten(&closing, 300)),
    }
}

fn sentence(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{}.", capitalised(text)),
    }
}
