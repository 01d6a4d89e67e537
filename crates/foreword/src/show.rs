//! Formats the output of commands as text and as JSON.
//!
//! Recorded text is printed line by line through `one_line`, the door in `foreword_core::text`.

mod consent;
mod found;
mod hands;
mod money;
mod why;

pub use consent::{
    consent, consent_to_tools, local_models, local_models_not_looked_for, permission,
    provider_chosen, unread,
};
pub use found::{
    ALL_PROJECTS, facts, found, hits_json, item_title, kind, mark, marks, no_hits, notes, ranking,
    related, same_turn, session, session_title, sessions, timeline, title, waiting,
};
pub use hands::{
    HandsReport, Verb, changes, export_markdown, history, imported, remembered, undone,
};
pub use money::{bill, bill_json, pause_json, redo_plan, redone, sample_answer, stand_in, usd};
pub use why::{preview, preview_json, receipts, why, why_json};

use std::fmt::Write as _;
use std::path::Path;

use foreword_core::model::Millis;
use foreword_core::safety::backup::Backup;
use foreword_core::safety::recover::Restored;
use foreword_core::store::{Item, ItemBody, Project};
use foreword_core::text::{self, count, one_line, size};
use serde_json::Value;

use crate::colour::{Style, paint};
use crate::doctor::agent::AgentStatus;
use crate::doctor::status::Status;
use crate::doctor::{Finding, Severity};
use crate::install::Connection;
use crate::local_time;
use crate::output::{self, SafeText};
use crate::service::sentence_model::{self, Files};
use crate::{host, platform};

/// JSON in which tags and hidden characters are escaped.
pub fn json(value: &Value) -> String {
    text::visible_json(&format!("{value:#}")).into_owned()
}

/// Prints the result of a command: as JSON, or as text.
pub fn print(as_json: bool, value: impl FnOnce() -> Value, words: impl FnOnce() -> String) {
    if as_json {
        println!("{}", json(&value()));
    } else {
        print!("{}", words());
    }
}

/// Prints text of the memory: framed and limited if an agent runs the command. JSON is for programs.
pub fn print_recalled(
    as_json: bool,
    value: impl FnOnce() -> Value,
    words: impl FnOnce() -> String,
) {
    if as_json {
        println!("{}", json(&value()));
    } else {
        print_words(&words());
    }
}

/// Prints text of the memory as `print_recalled` does, for a command without JSON.
pub fn print_words(words: &str) {
    if host::is_agent_here() {
        output::recalled(words).print();
    } else {
        print!("{words}");
    }
}

/// Prints the change of a file that may be somebody else's: all of it, since it may have to be approved.
pub fn print_diff(path: &Path, before: Option<&str>, after: Option<&str>) {
    let diff = diff(path, before, after);
    if host::is_agent_here() {
        output::framed_data(&SafeText::plain(&diff)).print();
        return;
    }
    for line in diff.lines() {
        match line.chars().next() {
            Some('+') => println!("{}", paint(Style::Added, line)),
            Some('-') => println!("{}", paint(Style::Removed, line)),
            _ => println!("{line}"),
        }
    }
}

pub fn item(item: &Item) -> String {
    let mut page = TextPage::default();
    match &item.body {
        ItemBody::Observation(it) => {
            let title = found::title_of(it);
            page.title(&format!("#{} {}: {title}", item.id, it.r#type));
            page.text("", &it.subtitle);
            let overtaken = found::overtaken(it.superseded_by, it.retracted.as_deref());
            page.text("", &found::later(overtaken, &it.supersedes, it.times));
            let limits = found::by_hand(it.pinned_at.is_some(), it.hidden_at.is_some(), it.until);
            page.text("", &text::capitalised(&limits.join(", ")));
            page.gap();
            for fact in found::facts_of(it) {
                page.text("- ", &fact);
            }
            page.gap();
            page.text("", &it.narrative);
            page.gap();
            page.field("concepts", &it.concepts.join(", "));
            page.field("modified", &found::files(&it.files_modified, item));
            page.field("read", &found::files(&it.files_read, item));
            let commit = it.commit.as_deref();
            let commit = commit.map(|id| format!(" at {}", &id[..id.len().min(10)]));
            let branch = it.branch.as_deref().unwrap_or_default();
            page.field("branch", &format!("{branch}{}", commit.unwrap_or_default()));
            let subagent = it.agent_id.as_ref();
            let subagent = subagent.map(|id| format!(", by subagent {id}"));
            let subagent = subagent.unwrap_or_default();
            let model = it.model.as_ref().map(|model| {
                let version = it.prompt_version.as_deref().unwrap_or("unknown");
                format!(" ({model}, prompts {version})")
            });
            page.field("origin", &format!("{}{subagent}", found::origin(it.origin)));
            let by = match it.provider.as_str() {
                "offline" => "rules, without a model".to_owned(),
                "user" => "the user".to_owned(),
                "agent" => "the coding agent".to_owned(),
                provider => format!("{provider}{}", model.unwrap_or_default()),
            };
            page.field("written by", &by);
            page.field(
                "edited",
                &it.edited_at.map(text::rfc3339).unwrap_or_default(),
            );
            page.field("imported", it.imported_from.as_deref().unwrap_or_default());
        }
        ItemBody::Summary(it) => {
            page.title(&format!("#{} summary: {}", item.id, it.request));
            page.gap();
            page.field("investigated", &it.investigated);
            page.field("learned", &it.learned);
            page.field("completed", &it.completed);
            page.field("next steps", &it.next_steps);
            page.field("edited", &it.files_edited.join(", "));
            page.field("read", &it.files_read.join(", "));
            page.field("notes", &it.notes);
        }
        ItemBody::Prompt(it) => {
            page.title(&format!("#{} prompt: {}", item.id, it.text));
            page.gap();
            page.field("reply", it.reply.as_deref().unwrap_or_default());
        }
        ItemBody::Note(it) => {
            page.title(&format!("#{} note: {}", item.id, it.title));
            page.gap();
            let lines = it.text.lines();
            for line in lines.filter(|it| !it.starts_with("<!-- foreword ")) {
                page.text("", line);
            }
            page.gap();
            page.field("file", &it.path);
            if it.foreign {
                page.field("from", "it came with the project; no session here wrote it");
            }
        }
    }
    let number = item
        .prompt_number
        .map(|number| format!(", prompt {number}"))
        .unwrap_or_default();
    page.field("project", item.project.as_deref().unwrap_or("none"));
    if !item.session.is_empty() {
        page.field("session", &format!("{}{number}", item.session));
    }
    page.field("when", &local_time::minute(item.at));
    page.out
}

/// Lines of text, wrapped, with their continuation under their beginning.
#[derive(Default)]
struct TextPage {
    out: String,
}

/// The longest line, if the terminal is not narrower.
const WIDTH_MAX: usize = 100;

fn width() -> usize {
    platform::terminal_width().map_or(WIDTH_MAX, |width| width.clamp(20, WIDTH_MAX))
}

impl TextPage {
    fn gap(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn field(&mut self, name: &str, text: &str) {
        let start = self.out.len();
        self.text(&format!("{name:<13} "), text);
        self.paint(Style::Quiet, start, name.len());
    }

    /// Adds the title of a page.
    fn title(&mut self, text: &str) {
        let start = self.out.len();
        self.text("", text);
        let length = self.out.len() - start;
        self.paint(Style::Title, start, length.saturating_sub(1));
    }

    /// Colours a part of what was added last.
    fn paint(&mut self, style: Style, start: usize, length: usize) {
        if let Some(part) = self.out.get(start..start + length) {
            let painted = paint(style, part);
            self.out.replace_range(start..start + length, &painted);
        }
    }

    /// Adds text after `mark`, wrapped and without control characters.
    fn text(&mut self, mark: &str, text: &str) {
        let indent = mark.chars().count();
        let width = width();
        let mut mark = mark.to_owned();
        for paragraph in text.lines() {
            let mut line = std::mem::replace(&mut mark, " ".repeat(indent));
            let mut empty = true;
            for word in one_line(paragraph)
                .split(' ')
                .filter(|word| !word.is_empty())
            {
                if !empty && line.chars().count() + 1 + word.chars().count() > width {
                    let _ = writeln!(self.out, "{line}");
                    line = " ".repeat(indent);
                    empty = true;
                }
                if !empty {
                    line.push(' ');
                }
                line.push_str(word);
                empty = false;
            }
            if !empty {
                let _ = writeln!(self.out, "{line}");
            }
        }
    }
}

pub fn projects(projects: &[Project]) -> String {
    if projects.is_empty() {
        return "no project is remembered yet\n".to_owned();
    }
    let mut out = String::new();
    for project in projects {
        let last = project
            .last_event_at
            .map(|at| format!(", last {}", local_time::minute(at)));
        let _ = writeln!(
            out,
            "{}: {}, {}{}",
            one_line(&project.name),
            count(project.sessions, "session", "sessions"),
            count(project.observations, "observation", "observations"),
            last.unwrap_or_default()
        );
        for key in &project.keys {
            let _ = writeln!(out, "  {}", one_line(key));
        }
    }
    out
}

/// The lines of a status: a name of fixed width, then a text.
#[derive(Default)]
struct StatusLines(String);

impl StatusLines {
    fn add(&mut self, name: &str, text: String) {
        let name = paint(Style::Quiet, &format!("{name:<12}"));
        let _ = writeln!(self.0, "{name}{text}");
    }
}

pub fn status(status: &Status) -> String {
    let mut lines = StatusLines::default();
    for scope in &status.off {
        let scope = one_line(scope);
        lines.add(
            "off",
            format!("{scope}: nothing is written and nothing injected"),
        );
    }
    if !status.repository.is_empty() {
        lines.add("repository", one_line(&status.repository));
    }
    lines.add("home", status.home.dir().display().to_string());
    lines.add("host", connection(status));
    if let Some(listed) = status.server {
        let server = if listed {
            format!("listed: {}", permission(status.permission, status.client))
        } else {
            "not listed: the agent cannot search; run `foreword install`".to_owned()
        };
        lines.add("server", server);
    }
    memory_lines(status, &mut lines);
    queue_lines(status, &mut lines);
    let worker = match status.worker_pid {
        Some(pid) => format!("running (pid {pid})"),
        None => "not running; the next hook starts it".to_owned(),
    };
    lines.add("worker", worker);
    match &status.agent {
        Ok(agent) => provider_lines(agent, &mut lines),
        Err(error) => lines.add("provider", error.clone()),
    }
    for problem in &status.problems {
        lines.add("problem", one_line(&local_time::log_line(problem)));
    }
    for (name, log) in [
        ("hook log", &status.hook_log),
        ("worker log", &status.worker_log),
    ] {
        for (number, entry) in log.iter().enumerate() {
            let entry = one_line(&local_time::log_line(entry));
            lines.add(if number == 0 { name } else { "" }, entry);
        }
    }
    lines.0
}

fn memory_lines(status: &Status, lines: &mut StatusLines) {
    let totals = &status.totals;
    lines.add(
        "memory",
        [
            count(totals.observations, "observation", "observations"),
            count(totals.summaries, "summary", "summaries"),
            count(totals.prompts, "prompt", "prompts"),
            count(totals.sessions, "session", "sessions"),
            count(totals.projects, "project", "projects"),
        ]
        .join(", "),
    );
    if let Some(share) = status.embedded {
        let percent = (share * 100.0).floor();
        let share = format!("{percent} % of it is indexed by meaning");
        lines.add("meaning", share);
    }
    if let Some(at) = status.last_event_at {
        lines.add("last event", ago(status.now, at));
    }
}

/// The most skipped events that `status` lists.
const SKIPPED_MAX: usize = 10;

fn queue_lines(status: &Status, lines: &mut StatusLines) {
    let pending = status.queue.pending + status.spooled;
    let oldest = status.queue.oldest_at;
    let oldest = oldest.map(|at| format!(", oldest {}", ago(status.now, at)));
    let waiting = count(pending, "event", "events") + &oldest.unwrap_or_default();
    lines.add("pending", waiting + &why_pending(status, pending));
    if status.queue.skipped > 0 {
        let events = count(status.queue.skipped, "event", "events");
        let cure = "`foreword retry` tries all of them again, `foreword retry NUMBER` one";
        lines.add(
            "skipped",
            format!("{events} could not be processed; {cure}"),
        );
        for (number, it) in (1..=SKIPPED_MAX).zip(&status.skipped) {
            let why = one_line(it.last_error.as_deref().unwrap_or("unknown"));
            let at = local_time::minute(it.at);
            lines.add("", format!("{number}  {} of {at}: {why}", it.kind));
        }
    }
    if status.unreadable > 0 {
        let unreadable = format!("{} unreadable files in spool/unreadable", status.unreadable);
        lines.add("spool", unreadable);
    }
}

fn provider_lines(agent: &AgentStatus, lines: &mut StatusLines) {
    let (name, reason) = (agent.choice.name.as_str(), &agent.choice.reason);
    lines.add("provider", format!("{name} ({reason})"));
    if let Some(problem) = &agent.problem {
        lines.add("", format!("cannot be used: {}", one_line(&problem.reason)));
    }
    if let Some(pause) = &agent.pause {
        lines.add("paused", money::pause(pause));
    }
    if let Some(unfit) = &agent.unfit {
        lines.add("unfit", money::unfit(unfit));
    }
    if agent.has_model() || agent.today.calls > 0 {
        lines.add("cost", money::today(agent));
    }
    for stood_in in &agent.stand_ins {
        lines.add("offline", format!("{} (today)", stand_in(stood_in)));
    }
}

/// The reason why events are waiting.
fn why_pending(status: &Status, pending: u64) -> String {
    let agent = status.agent.as_ref().ok();
    let paused = agent.is_some_and(|agent| agent.pause.is_some());
    match &status.last_error {
        _ if pending == 0 => String::new(),
        _ if paused => ", waiting for the provider".to_owned(),
        Some(error) => format!(", to be tried again after: {}", one_line(error)),
        None if status.worker_pid.is_some() => ", processed when the turn ends".to_owned(),
        None => String::new(),
    }
}

fn connection(status: &Status) -> String {
    let client = status.client.host.title;
    match &status.connection {
        Ok(Connection::Connected) => format!("{client} is connected"),
        Ok(Connection::Unread(why)) => {
            format!("{client} is not connected: it does not read its settings, since {why}")
        }
        Ok(Connection::None) => format!("{client} is not connected; run `foreword install`"),
        Ok(Connection::Partly(problems)) => {
            format!(
                "{client} is not fully connected ({}); run `foreword install`",
                problems.join("; ")
            )
        }
        Err(error) => format!("{client}'s settings could not be read: {error}"),
    }
}

pub fn findings(findings: &[Finding], checks: usize) -> String {
    let mut out = String::new();
    for finding in findings {
        let style = match finding.severity {
            Severity::Error => Style::Error,
            Severity::Warning => Style::Warning,
        };
        let severity = paint(style, &format!("{:<9}", finding.severity.as_str()));
        let _ = writeln!(out, "{severity}{}", finding.id);
        let diagnosis = &finding.diagnosis;
        let _ = writeln!(out, "         {}", one_line(&diagnosis.evidence));
        let mark = if diagnosis.cure_is_command {
            "cure: "
        } else {
            ""
        };
        let _ = writeln!(out, "         {mark}{}\n", one_line(&diagnosis.cure));
    }
    let count_of = |severity, one, many| {
        let found = findings.iter().filter(|it| it.severity == severity);
        match found.count() as u64 {
            0 => None,
            found => Some(count(found, one, many)),
        }
    };
    let found: Vec<_> = [
        count_of(Severity::Error, "error", "errors"),
        count_of(Severity::Warning, "warning", "warnings"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let found = match found.as_slice() {
        [] => "nothing found".to_owned(),
        found => found.join(" and "),
    };
    let _ = writeln!(out, "{checks} checks, {found}");
    out
}

/// Lines about what is as the user wants it, and still good to know.
pub fn doctor_notes(notes: &[String]) -> String {
    notes.iter().map(|it| one_line(it) + "\n").collect()
}

/// A line about fields of the host's that this version does not know; usually empty.
pub fn unknown_fields(unknown: &[(String, u64)]) -> String {
    if unknown.is_empty() {
        return String::new();
    }
    let fields = unknown.iter().map(|(name, events)| {
        format!("{} ({})", one_line(name), count(*events, "event", "events"))
    });
    let fields: Vec<_> = fields.collect();
    format!(
        "The coding agent also sends what this version does not know: {}\n",
        fields.join(", ")
    )
}

/// The change of a file in the format of `diff -u`.
pub fn diff(path: &Path, before: Option<&str>, after: Option<&str>) -> String {
    let name = |text: Option<&str>| match text {
        Some(_) => path.display().to_string(),
        None => "/dev/null".to_owned(),
    };
    let [old, new] = [before, after].map(Option::unwrap_or_default);
    let diff = similar::TextDiff::from_lines(old, new);
    diff.unified_diff()
        .header(&name(before), &name(after))
        .to_string()
}

pub fn restored(name: &str, restored: &Restored) -> String {
    let aside = restored.aside.file_name().unwrap_or_default();
    let mut text = format!(
        "restored from {name}: {} back, {} gone that came after it\nthe memory as it was is {}\n",
        count(restored.came_back, "item came", "items came"),
        count(restored.gone, "item is", "items are"),
        aside.to_string_lossy(),
    );
    if !restored.left_out.is_empty() {
        let parts = restored.left_out.join(", ");
        let _ = writeln!(
            text,
            "left out, because it is not Foreword's: {}",
            text::shorten(&one_line(&parts), 300)
        );
    }
    if restored.refused > 0 {
        let rows = count(restored.refused, "row was", "rows were");
        let _ = writeln!(
            text,
            "{rows} left out, because the memory does not allow them"
        );
    }
    text
}

/// What going back to a backup would change.
pub fn restore_plan(name: &str, restored: &Restored) -> String {
    format!(
        "{name}: {} come back, {} that came after it would be gone\n",
        count(restored.came_back, "item would", "items would"),
        count(restored.gone, "item", "items"),
    )
}

pub fn backed_up(backup: &Backup) -> String {
    format!("{} ({})\n", backup.path.display(), size(backup.size))
}

pub fn vacuumed(file: &str, before: u64, after: u64) -> String {
    format!("{file}: {} before, {} now\n", size(before), size(after))
}

pub fn model_status(folder: &Path, files: &Files, embedded: Option<f64>) -> String {
    let files = match files {
        Files::Good => format!("{}, SHA-256 checked", size(sentence_model::bytes())),
        Files::None => "not installed; `foreword model install` gets it".to_owned(),
        Files::Bad(wrong) => format!("{wrong}; `foreword model install` gets it anew"),
    };
    let embedded =
        embedded.map(|share| format!("embedded  {:.0} % of the memory\n", share * 100.0));
    format!(
        "model     {}\nfolder    {}\nfiles     {files}\n{}",
        sentence_model::NAME,
        folder.display(),
        embedded.unwrap_or_default()
    )
}

fn ago(now: Millis, at: Millis) -> String {
    let seconds = (now - at).max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("on {}", local_time::minute(at)),
    }
}
