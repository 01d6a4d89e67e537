//! Makes an event from a hook's input, or returns the reason why there is none.
//!
//! The `host` decodes its input; `payload` keeps the part that the worker needs, redacted
//! and cut. This file adds the rest of the event: session, project, touched files, and the key
//! that makes the same input received twice one event.

mod payload;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use uuid::Uuid;

use crate::files;
pub use crate::host::Hook;
use crate::host::{HOSTS, HookInput, Host, Subject};
use crate::model::{Event, EventKind, FileRole, Millis, Payload, Receipt, Shown, TouchedFile};
use crate::project::{self, Place, Rules};
use crate::redact::{self, is_secret_file};
use crate::text;
pub use payload::Limits;

/// The circumstances of a hook run that decide what its event contains.
#[derive(Debug, Clone)]
pub struct CaptureContext {
    /// The host that runs the hook.
    pub host: &'static Host,
    pub now: Millis,
    pub event_id: Uuid,
    /// The project directory as the host gives it; the input's `cwd` changes with the agent's `cd`.
    pub project_dir: Option<PathBuf>,
    pub rules: Rules,
}

/// The user's settings for capturing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSettings {
    /// Tools whose uses are not stored.
    pub boring_tools: Vec<String>,
    /// Patterns of projects of which nothing is stored.
    pub exclude_projects: Vec<String>,
    /// Patterns of paths; a tool use that names such a path is not stored.
    pub exclude_paths: Vec<String>,
    /// Whether the agent's calls of Foreword's own `remember` are stored: they are if the agent
    /// itself writes the memory.
    pub keeps_remember: bool,
    pub limits: Limits,
}

impl Default for CaptureSettings {
    fn default() -> CaptureSettings {
        CaptureSettings {
            boring_tools: boring_tools(),
            exclude_projects: Vec::new(),
            exclude_paths: Vec::new(),
            keeps_remember: false,
            limits: Limits::default(),
        }
    }
}

fn boring_tools() -> Vec<String> {
    let tools = HOSTS.iter().flat_map(|host| host.boring_tools);
    tools.map(|&tool| tool.to_owned()).collect()
}

/// An input without an id counts as received twice only within this time. Session starts and
/// ends have the same payload at every resume, and older hosts give prompts no id.
const SAME_INPUT_WITHIN: Millis = 10_000;

/// The result of capturing a hook's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Captured {
    Event(Box<Event>),
    Dropped(Drop),
}

/// Foreword's own tool by which an agent writes into the memory.
const REMEMBER: &str = "remember";

/// The number of the observation that the agent wrote by this tool use; none for all other events.
pub fn remembered(event: &Event) -> Option<i64> {
    let host = crate::host::named(&event.host)?;
    let tool = (host.own_tool)(event.tool_name.as_deref()?)?;
    let answer = event.payload.response.as_ref()?.to_string();
    let (_, number) = answer.split_once('#').filter(|_| tool == REMEMBER)?;
    let end = number.find(|it: char| !it.is_ascii_digit());
    number[..end.unwrap_or(number.len())].parse().ok()
}

/// The reason why an input did not become an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Drop {
    #[error("empty input")]
    Empty,
    #[error("input is not the JSON of a hook")]
    NotJson,
    #[error("no session id")]
    NoSession,
    #[error("an event that this command does not handle")]
    OtherEvent,
    #[error("a tool whose use leaves nothing to remember")]
    BoringTool,
    #[error("a call to Foreword itself")]
    OwnTool,
    #[error("an excluded project")]
    ExcludedProject,
    #[error("an excluded path")]
    ExcludedPath,
}

impl Drop {
    /// Whether the input was dropped on purpose, rather than because it was not understood.
    pub fn is_intended(self) -> bool {
        !matches!(self, Drop::Empty | Drop::NotJson | Drop::NoSession)
    }
}

/// The session that a hook's input is about.
pub fn session_of(host: &Host, input: &[u8]) -> Option<String> {
    let input = (host.read)(input)?;
    input
        .session_id
        .map(|id| redact::identifier(id.into_owned()))
}

/// Makes an event from the input that the host wrote to `hook`'s standard input.
pub fn capture(
    hook: Hook,
    input: &[u8],
    context: &CaptureContext,
    settings: &CaptureSettings,
) -> Captured {
    match try_capture(hook, input, context, settings) {
        Ok(event) => Captured::Event(Box::new(event)),
        Err(drop) => Captured::Dropped(drop),
    }
}

fn try_capture(
    hook: Hook,
    input: &[u8],
    context: &CaptureContext,
    settings: &CaptureSettings,
) -> Result<Event, Drop> {
    if input.trim_ascii().is_empty() {
        return Err(Drop::Empty);
    }
    let mut input = (context.host.read)(input).ok_or(Drop::NotJson)?;
    let mut kind = match input.event {
        Some((handler, kind)) if handler == hook => kind,
        _ => return Err(Drop::OtherEvent),
    };
    let id = |field: &Option<Cow<'_, str>>| present(field).map(redact::identifier);
    let host_session_id = id(&input.session_id).ok_or(Drop::NoSession)?;
    let tool_name = present(&input.tool.name);
    let is_boring = |tool: &String| settings.boring_tools.contains(tool);
    if tool_name.as_ref().is_some_and(is_boring) {
        return Err(Drop::BoringTool);
    }

    let subject = (context.host.subject)(&input);
    let mut receipt = None;
    let is_remember = input.tool.own.as_deref() == Some(REMEMBER);
    let is_kept = is_remember && settings.keeps_remember && kind == EventKind::ToolUse;
    let runs_foreword = || subject.command.as_deref().is_some_and(runs_foreword);
    if !is_kept && (input.tool.own.is_some() || runs_foreword()) {
        receipt = Some(opened(kind, &input, &subject).ok_or(Drop::OwnTool)?);
        kind = EventKind::Receipt;
    }
    let mut paths = subject.paths.iter();
    if paths.any(|path| is_path_covered(&settings.exclude_paths, path)) {
        return Err(Drop::ExcludedPath);
    }
    let cwd = present(&input.cwd);
    let without_secrets = |text: &str| redact::thorough(text).text.into_owned();
    let place = context
        .project_dir
        .as_deref()
        .or(cwd.as_deref().map(Path::new))
        .map(|dir| project::resolve(dir, &context.rules))
        .unwrap_or_default();
    if is_excluded(&place, &settings.exclude_projects) {
        return Err(Drop::ExcludedProject);
    }
    let mut payload = payload::build(context.host, kind, &input, &subject, &settings.limits);
    let unknown = std::mem::take(&mut input.unknown);
    payload.unknown = unknown.iter().map(|it| without_secrets(it)).collect();
    payload.receipt = receipt;
    let prompt_id = id(&input.prompt_id);
    let tool_use_id = id(&input.tool.id);
    let key = key(
        kind,
        &host_session_id,
        prompt_id.as_deref(),
        tool_use_id.as_deref(),
        &payload,
        context.now,
    );

    Ok(Event {
        id: context.event_id,
        key,
        kind,
        host: context.host.name.to_owned(),
        host_session_id,
        prompt_id,
        agent_id: id(&input.agent_id),
        files: touched_files(kind, &input, &subject, &settings.limits),
        tool_name: tool_name.as_deref().map(without_secrets),
        tool_use_id,
        cwd: cwd.as_deref().map(without_secrets),
        project_dir: context
            .project_dir
            .as_ref()
            .map(|dir| without_secrets(&dir.to_string_lossy())),
        project: place.project,
        root: place
            .root
            .map(|root| without_secrets(&root.to_string_lossy())),
        transcript_path: present(&input.transcript_path)
            .as_deref()
            .map(without_secrets),
        branch: place.head.branch.as_deref().map(without_secrets),
        commit: place.head.commit,
        payload,
        at: context.now,
    })
}

/// An event that records that items were shown on the occasion of another event. If the same hook
/// runs twice, or at the same time as another, the same items shown in a session have one key.
pub fn receipt(occasion: &Event, id: Uuid, receipt: Receipt) -> Event {
    let items: Vec<_> = receipt.items.iter().map(|(id, _)| id.to_string()).collect();
    let key = match receipt.shown {
        Shown::Index => format!("receipt:{}", occasion.key),
        _ => format!("receipt:{}:{}", occasion.host_session_id, items.join(",")),
    };
    Event {
        id,
        key,
        kind: EventKind::Receipt,
        files: Vec::new(),
        payload: Payload {
            receipt: Some(receipt),
            ..Payload::default()
        },
        ..occasion.clone()
    }
}

/// A receipt for the items that the agent opened by number, over MCP or with `foreword show`.
fn opened(kind: EventKind, input: &HookInput<'_>, subject: &Subject<'_>) -> Option<Receipt> {
    const ITEMS_MAX: usize = 50;
    let over_mcp = input.tool.own.as_deref() == Some("get_observations");
    let ids: Vec<i64> = if over_mcp {
        ids(input)
    } else {
        let words = subject.command.as_deref().unwrap_or_default();
        let mut words = words.split_whitespace().peekable();
        let mut ids = Vec::new();
        while let Some(word) = words.next() {
            if word == "show" {
                ids.extend(words.peek().and_then(|it| it.parse::<i64>().ok()));
            }
        }
        ids
    };
    if kind != EventKind::ToolUse || ids.is_empty() {
        return None;
    }
    let items = ids.into_iter().take(ITEMS_MAX);
    Some(Receipt {
        shown: Shown::Opened,
        items: items.map(|id| (id, String::new())).collect(),
    })
}

/// The item numbers in the input of Foreword's own MCP tool.
fn ids(input: &HookInput<'_>) -> Vec<i64> {
    #[derive(Default, Deserialize)]
    struct Ids {
        ids: Vec<i64>,
    }
    let raw = input.tool.input;
    let ids = raw.and_then(|raw| serde_json::from_str::<Ids>(raw.get()).ok());
    ids.unwrap_or_default().ids
}

/// Whether a pattern matches the project's key or its root.
pub fn is_excluded(place: &Place, patterns: &[String]) -> bool {
    let root = place.root.as_deref().map(Path::to_string_lossy);
    let names = place.project.as_deref().into_iter().chain(root.as_deref());
    names.into_iter().any(|name| covers(patterns, name))
}

/// Whether a shell command only reads the memory, so that its output is nothing new. It may
/// change the folder first and filter the output.
fn runs_foreword(command: &str) -> bool {
    const ALLOWED_BESIDE: &[&str] = &[
        "cd", "head", "tail", "grep", "less", "cat", "jq", "sed", "wc", "sort", "true",
    ];
    // A here-document is input, not a command.
    let command = command.split("<<").next().unwrap_or_default();
    if !command.contains("foreword") {
        return false;
    }
    let program = |part: &str| {
        let word = part.split_whitespace().next().unwrap_or_default();
        word.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let parts = command.split(['&', '|', ';', '\n']).map(str::trim);
    let programs: Vec<String> = parts
        // The `1` of `2>&1` is not a program.
        .filter(|part| !part.chars().all(|it| it.is_ascii_digit()))
        .map(program)
        .collect();
    programs.iter().any(|it| it == "foreword")
        && programs
            .iter()
            .all(|it| it == "foreword" || ALLOWED_BESIDE.contains(&it.as_str()))
}

fn key(
    kind: EventKind,
    session: &str,
    prompt_id: Option<&str>,
    tool_use_id: Option<&str>,
    payload: &Payload,
    now: Millis,
) -> String {
    let hash = || {
        let content = serde_json::to_string(payload).unwrap_or_default();
        let hex = blake3::hash(content.as_bytes()).to_hex();
        hex[..32].to_owned()
    };
    // Without an id from the host, the same content may also come again later, as a new event.
    let bucket = now.div_euclid(SAME_INPUT_WITHIN);
    match (kind, tool_use_id, prompt_id) {
        (EventKind::Receipt, Some(id), _) => opened_key(session, id),
        (EventKind::ToolUse | EventKind::ToolFailure, Some(id), _) => tool_key(session, id),
        (EventKind::Refusal | EventKind::Words, Some(id), _) => replayed_key(kind, session, id),
        (EventKind::ToolUse | EventKind::ToolFailure, None, _) => {
            format!("tool:{session}:{}:{bucket}", hash())
        }
        // A session that is resumed at once ends again, but with another turn's id.
        (EventKind::SessionStart | EventKind::SessionEnd, _, Some(prompt_id)) => {
            let turn = turn_key(kind, session, prompt_id);
            format!("{turn}{}:{bucket}", hash())
        }
        (_, _, None) => format!("{kind}:{session}:{}:{bucket}", hash()),
        (_, _, Some(prompt_id)) => turn_key(kind, session, prompt_id) + &hash(),
    }
}

pub(crate) fn tool_key(session: &str, id: &str) -> String {
    format!("tool:{session}:{id}")
}

pub(crate) fn opened_key(session: &str, id: &str) -> String {
    format!("receipt:{session}:{id}")
}

/// The key of an event that only a transcript has.
pub(crate) fn replayed_key(kind: EventKind, session: &str, id: &str) -> String {
    format!("{kind}:{session}:{id}")
}

/// The beginning of the keys of a turn's prompt, and of each of its stops.
pub(crate) fn turn_key(kind: EventKind, session: &str, prompt_id: &str) -> String {
    format!("{kind}:{session}:{prompt_id}:")
}

/// The files that a tool use names, with their current state.
fn touched_files(
    kind: EventKind,
    input: &HookInput<'_>,
    subject: &Subject<'_>,
    limits: &Limits,
) -> Vec<TouchedFile> {
    let role = input.tool.kind.file_role();
    // A tool use that was refused touched nothing.
    let Some(role) = role.filter(|_| kind != EventKind::Refusal) else {
        return Vec::new();
    };
    let after_tool_use = kind != EventKind::Receipt;
    let paths = subject.paths.iter();
    paths
        .map(|path| touched_file(path, role, after_tool_use, limits))
        .collect()
}

/// One file with its role; its size, time and hash are recorded only after the tool has run.
fn touched_file(path: &str, role: FileRole, after_tool_use: bool, limits: &Limits) -> TouchedFile {
    let metadata = after_tool_use
        .then(|| std::fs::metadata(path).ok())
        .flatten()
        .filter(std::fs::Metadata::is_file);
    let hash = metadata
        .as_ref()
        .filter(|it| it.len() <= limits.hash_max && !is_secret_file(path))
        .and_then(|_| files::read(Path::new(path), limits.hash_max).ok())
        .map(|content| blake3::hash(&content).to_hex().to_string());
    TouchedFile {
        size: metadata.as_ref().map(std::fs::Metadata::len),
        path: redact::thorough(path).text.into_owned(),
        role,
        mtime: metadata.as_ref().and_then(text::modified_at),
        hash,
    }
}

fn present(field: &Option<Cow<'_, str>>) -> Option<String> {
    field
        .as_deref()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// Whether one of the user's patterns matches this project key or path. A pattern without `*` matches
/// a name, or a folder and everything below it; `*` matches any characters, including slashes.
fn covers(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| one_covers(pattern, name))
}

/// Whether one of the patterns matches this path of a file.
pub fn is_path_covered(patterns: &[String], path: &str) -> bool {
    covers(patterns, &straight(path))
}

/// A path without `.` and `..`, resolved from its text alone, without the file system.
fn straight(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty()) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn one_covers(pattern: &str, name: &str) -> bool {
    let pattern = pattern.trim_end_matches('/');
    if !pattern.contains('*') {
        return name == pattern
            || name
                .strip_prefix(pattern)
                .is_some_and(|rest| rest.starts_with('/'));
    }
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_only_reads_the_memory_is_recognised() {
        for look in [
            "foreword show 12",
            "~/bin/foreword search limit 2>&1 | head -20",
            "cd /p && foreword show 3; foreword show 4",
            "/opt/foreword summarize s1 --draft - <<'N'\n# A title\nrm x\nN",
        ] {
            assert!(runs_foreword(look), "{look}");
        }
        for work in [
            "cargo test",
            "cd foreword",
            "cargo test && foreword show 3",
            "git clone x/foreword",
            "grep foreword a.txt",
        ] {
            assert!(!runs_foreword(work), "{work}");
        }
    }

    #[test]
    fn a_detour_leads_to_the_same_path() {
        assert_eq!(straight("/a/src/../private/./x"), "/a/private/x");
        assert_eq!(straight("/../x"), "/../x");
        assert_eq!(straight("a/b"), "a/b");
    }

    #[test]
    fn a_pattern_covers_a_folder_a_name_or_what_its_stars_allow() {
        for (pattern, name, expected) in [
            ("/srv/client", "/srv/client", true),
            ("/srv/client/", "/srv/client/app", true),
            ("/srv/client", "/srv/client2", false),
            ("github.com/acme/*", "github.com/acme/pay", true),
            ("github.com/acme/*", "github.com/other/pay", false),
            ("*/secrets/*", "/srv/app/secrets/a.txt", true),
            ("*.sql", "/srv/dump.sql", true),
            ("*.sql", "/srv/dump.sql.txt", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*", "", true),
        ] {
            assert_eq!(one_covers(pattern, name), expected, "{pattern} {name}");
        }
    }
}
