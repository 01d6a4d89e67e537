//! Words a turn as a summary: what was asked, looked at and done, and what the
//! agent itself named as next.

use foreword_core::model::Summary;
use foreword_core::text::{capitalised, one_line, shorten};

use super::Story;
use super::findings::{Findings, command_at, edit_at};
use super::steps::What;
use super::words::{self, Call};

pub fn summary(request: &str, story: &Story<'_>, findings: &Findings) -> Summary {
    let files_edited = unique(story.steps.iter().filter_map(|step| match &step.what {
        What::Edit(edit) => Some(edit.file.path.as_str()),
        _ => None,
    }));
    let files_read = unique(story.steps.iter().filter_map(|step| match &step.what {
        What::Read(file) => Some(file.path.as_str()),
        _ => None,
    }));
    Summary {
        request: shorten(&one_line(request), 400).into_owned(),
        investigated: if files_read.is_empty() {
            String::new()
        } else {
            format!("Read {}.", files_read.join(", "))
        },
        learned: learned(story, findings),
        completed: completed(story, findings),
        next_steps: story.reply.map(next_steps).unwrap_or_default(),
        notes: notes(story),
        files_read,
        files_edited,
    }
}

fn unique<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for path in paths {
        if !seen.iter().any(|it| it == path) {
            seen.push(path.to_owned());
        }
    }
    seen
}

fn name_at(story: &Story<'_>, at: usize) -> String {
    command_at(&story.steps, at)
        .and_then(|command| Call::of(&command.text))
        .map_or_else(|| "a command".to_owned(), |call| call.name)
}

fn completed(story: &Story<'_>, findings: &Findings) -> String {
    let mut parts = Vec::new();
    for commit in &findings.commits {
        parts.push(format!("committed “{}”", shorten(&commit.subject, 90)));
    }
    for repair in &findings.repairs {
        parts.push(format!("`{}` passes again", name_at(story, repair.passed)));
    }
    let left = findings
        .other_edits
        .iter()
        .filter_map(|&at| edit_at(&story.steps, at));
    let left = unique(left.map(|edit| edit.file.path.as_str()));
    if !left.is_empty() {
        parts.push(format!("changed {}", left.join(", ")));
    }
    parts.dedup();
    sentence(&parts.join("; "))
}

fn learned(story: &Story<'_>, findings: &Findings) -> String {
    let failed = findings
        .repairs
        .iter()
        .map(|repair| (repair.failed, "failed at first"));
    let failing = findings
        .failures
        .iter()
        .map(|&at| (at, "failed and was not seen to pass"));
    let lines: Vec<String> = failed
        .chain(failing)
        .filter_map(|(at, how)| {
            let line = words::key_line(&command_at(&story.steps, at)?.output)?;
            Some(format!("`{}` {how}: {line}.", name_at(story, at)))
        })
        .collect();
    lines.join(" ")
}

fn notes(story: &Story<'_>) -> String {
    let closing = words::first_paragraph(story.reply.unwrap_or_default());
    match (closing.is_empty(), story.failed) {
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

/// How agents introduce what is left to do.
const HEADINGS: &[&str] = &[
    "next steps",
    "next step",
    "next",
    "remaining",
    "remaining work",
    "todo",
    "to do",
    "still to do",
    "follow-ups",
    "follow-up",
];

/// What the agent's last words name as next; empty if they name nothing.
fn next_steps(reply: &str) -> String {
    let lines: Vec<&str> = reply.lines().map(str::trim).collect();
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_matches(['#', '*', ' ', '-', '_']);
        let (heading, inline) = match bare.split_once(':') {
            Some((heading, rest)) => (heading, rest.trim_matches(['*', ' '])),
            None => (bare, ""),
        };
        let heading = heading.trim_matches(['*', ' ']).to_lowercase();
        if !HEADINGS.contains(&heading.as_str()) {
            continue;
        }
        // A one-word line that is no heading ("Next") introduces nothing.
        if inline.is_empty()
            && !line.starts_with('#')
            && !line.contains(':')
            && !line.starts_with("**")
        {
            continue;
        }
        let mut steps: Vec<String> = Vec::new();
        if !inline.is_empty() {
            steps.push(one_line(inline));
        }
        for line in lines[at + 1..].iter().skip_while(|line| line.is_empty()) {
            let Some(item) = list_item(line) else {
                break;
            };
            steps.push(one_line(item));
        }
        if !steps.is_empty() {
            let steps: Vec<_> = steps
                .iter()
                .map(|step| step.trim_end_matches('.'))
                .collect();
            return shorten(&steps.join("; "), 400).into_owned();
        }
    }
    String::new()
}

fn list_item(line: &str) -> Option<&str> {
    let bulleted = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    bulleted.or_else(|| {
        let (number, item) = line.split_once(['.', ')'])?;
        (!number.is_empty() && number.chars().all(|it| it.is_ascii_digit())).then(|| item.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::next_steps;

    #[test]
    fn next_steps_are_what_the_agent_named_as_such() {
        for (reply, expected) in [
            (
                "Done.\n\n## Next steps\n\n1. Write docs.\n2. Ship it.\n\nBye.",
                "Write docs; Ship it",
            ),
            (
                "Done. \nNext: add a test for refunds.",
                "add a test for refunds",
            ),
            ("**Next steps:**\n- one\n- two", "one; two"),
            ("All green. What is next is up to you.", ""),
            ("Next", ""),
        ] {
            assert_eq!(next_steps(reply), expected, "{reply}");
        }
    }
}
