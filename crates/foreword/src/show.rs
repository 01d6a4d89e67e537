//! How things look on a terminal and as JSON. The only module that words output.
//!
//! Captured text passes through `clean`: it may hold control characters, and a
//! terminal would obey them.

use std::fmt::Write as _;

use foreword_core::model::Millis;
use foreword_core::search::Hit;
use foreword_core::store::{Item, ItemBody};
use foreword_core::text::{self, one_line};
use serde_json::{Value, json};

use crate::cli::Status;
use crate::install::Connection;

pub fn hits(hits: &[Hit]) -> String {
    let mut out = String::new();
    for hit in hits {
        let kind = hit
            .observation_type
            .map_or(hit.kind.as_str(), |it| it.as_str());
        let _ = writeln!(
            out,
            "#{:<5} {}  {kind:<9}  {}",
            hit.id,
            text::date(hit.at),
            one_line(&hit.title)
        );
    }
    out
}

pub fn hits_json(hits: &[Hit]) -> Value {
    let rows = hits.iter().map(|hit| {
        json!({
            "id": hit.id,
            "kind": hit.kind,
            "type": hit.observation_type,
            "title": hit.title,
            "project": hit.project,
            "session": hit.session,
            "created_at": text::rfc3339(hit.at),
            "score": hit.score,
            "stale": null,
        })
    });
    rows.collect()
}

pub fn item_json(item: &Item) -> Value {
    let mut value = serde_json::to_value(item).unwrap_or_default();
    value["created_at"] = text::rfc3339(item.at).into();
    value
}

pub fn item(item: &Item) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(out, "{:<14}{}", format!("{name}:"), clean(text));
        }
    };
    let list = |items: &[String]| items.join(", ");
    match &item.body {
        ItemBody::Observation {
            r#type,
            title,
            subtitle,
            facts,
            narrative,
            concepts,
            files_read,
            files_modified,
            origin,
            branch,
            commit,
            provider,
            ..
        } => {
            line(&format!("#{} {type}", item.id), title);
            line("", subtitle);
            for fact in facts {
                line("fact", fact);
            }
            line("narrative", narrative);
            line("concepts", &list(concepts));
            line("modified", &list(files_modified));
            line("read", &list(files_read));
            let commit = commit
                .as_deref()
                .map(|id| format!(" at {}", &id[..id.len().min(10)]));
            line(
                "branch",
                &format!(
                    "{}{}",
                    branch.as_deref().unwrap_or_default(),
                    commit.unwrap_or_default()
                ),
            );
            line("origin", &format!("{origin}, by {provider}"));
        }
        ItemBody::Summary {
            request,
            investigated,
            learned,
            completed,
            next_steps,
            files_read,
            files_edited,
            notes,
            ..
        } => {
            line(&format!("#{} summary", item.id), request);
            line("investigated", investigated);
            line("learned", learned);
            line("completed", completed);
            line("next steps", next_steps);
            line("edited", &list(files_edited));
            line("read", &list(files_read));
            line("notes", notes);
        }
        ItemBody::Prompt { text, reply } => {
            line(&format!("#{} prompt", item.id), text);
            line("reply", reply.as_deref().unwrap_or_default());
        }
    }
    let number = item
        .prompt_number
        .map(|number| format!(", prompt {number}"))
        .unwrap_or_default();
    line("project", item.project.as_deref().unwrap_or("none"));
    line("session", &format!("{}{number}", item.session));
    line("when", &text::rfc3339(item.at));
    out
}

pub fn status(status: &Status) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<12}{text}");
    };
    if status.off {
        line(
            "off",
            "FOREWORD_OFF is set: nothing is written and nothing injected".into(),
        );
    }
    line("home", status.home.dir().display().to_string());
    line("host", connection(&status.connection));
    let totals = &status.totals;
    line(
        "memory",
        format!(
            "{} observations, {} summaries, {} prompts, {} sessions, {} projects",
            totals.observations, totals.summaries, totals.prompts, totals.sessions, totals.projects
        ),
    );
    if let Some(at) = totals.last_event_at {
        line("last event", ago(status.now, at));
    }
    let pending = status.queue.pending + status.spooled;
    let waiting = status
        .queue
        .oldest_at
        .map(|at| format!(", oldest {}", ago(status.now, at)));
    line(
        "pending",
        format!("{pending} events{}", waiting.unwrap_or_default()),
    );
    if status.queue.skipped > 0 {
        line(
            "skipped",
            format!("{} events could not be processed", status.queue.skipped),
        );
        for skipped in status.skipped.iter().take(3) {
            let why = skipped.last_error.as_deref().unwrap_or("unknown");
            line(
                "",
                format!("{} {}: {}", skipped.id, skipped.kind, one_line(why)),
            );
        }
    }
    if status.unreadable > 0 {
        line(
            "spool",
            format!("{} unreadable files in spool/unreadable", status.unreadable),
        );
    }
    line(
        "worker",
        match status.worker_pid {
            Some(pid) => format!("running (pid {pid})"),
            None => "not running; the next hook starts it".into(),
        },
    );
    line(
        "provider",
        match &status.provider {
            Ok(choice) => format!("{} ({})", choice.name, choice.reason),
            Err(error) => error.clone(),
        },
    );
    for problem in &status.problems {
        line("problem", one_line(problem));
    }
    for (name, log) in [
        ("hook log", &status.hook_log),
        ("worker log", &status.worker_log),
    ] {
        for (number, entry) in log.iter().enumerate() {
            line(if number == 0 { name } else { "" }, one_line(entry));
        }
    }
    out
}

fn connection(connection: &Result<Connection, String>) -> String {
    match connection {
        Ok(Connection::Connected) => "Claude Code is connected".into(),
        Ok(Connection::None) => "Claude Code is not connected; run `foreword install`".into(),
        Ok(Connection::Partly(problems)) => {
            format!(
                "Claude Code is not fully connected ({}); run `foreword install`",
                problems.join("; ")
            )
        }
        Err(error) => format!("Claude Code's settings could not be read: {error}"),
    }
}

fn ago(now: Millis, at: Millis) -> String {
    let seconds = (now - at).max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("on {}", text::date(at)),
    }
}

/// Captured text for a terminal: its lines, without what would steer the terminal.
fn clean(text: &str) -> String {
    text.chars()
        .filter(|&character| character == '\n' || character == '\t' || !text::is_unsafe(character))
        .collect()
}
