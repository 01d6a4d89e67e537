//! The coding agents that Foreword can be connected to: its hosts.
//!
//! A host is one row of `HOSTS`: the names of its events as data, and plain functions that read
//! what it writes (the standard input of a hook, a recorded tool use, a transcript). All of that
//! is in a folder of the host's own, here `claude_code`; everything else uses only the types
//! of this file. The helpers at its end serve all hosts: they read JSON strings that were cut in the
//! middle of an emoji, and very long transcripts. The program's `host` has a second row for each host:
//! its settings and answers.

pub mod claude_code;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::files;
use crate::model::{Event, EventKind, FileRole, Millis};

/// Every host.
pub const HOSTS: &[Host] = &[claude_code::HOST];

/// The host of a hook command that names none.
pub const DEFAULT_HOST: &Host = &HOSTS[0];

/// A coding agent: how it names things, and how its data are read.
#[derive(Debug)]
pub struct Host {
    /// Its name in events and sessions.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The events that run one of Foreword's hook commands.
    pub events: &'static [HostEvent],
    /// Events that only a transcript has: no hook is run for them, `transcript` makes them up.
    pub replayed: &'static [HostEvent],
    /// Tools whose uses are not stored by default, since they do not describe the work.
    pub boring_tools: &'static [&'static str],
    /// Fields of a tool's response that only repeat its input or the file on disk: tool, field.
    pub repeated: &'static [(&'static str, &'static str)],
    /// Decodes the standard input of a hook; none if it is not what this host writes.
    pub read: for<'a> fn(&'a [u8]) -> Option<HookInput<'a>>,
    /// Finds the files and the command in a tool's input. Parses the whole input: call it once.
    pub subject: for<'a> fn(&HookInput<'a>) -> Subject<'a>,
    /// Makes a tool input that contains these paths and this command and nothing else.
    pub bare_input: fn(Vec<String>, Option<String>) -> Value,
    /// The kind of the tool that has this name.
    pub tool_kind: fn(&str) -> ToolKind,
    /// Reads the input and the response that an event recorded.
    pub tool_use: for<'a> fn(&'a Event) -> ToolUse<'a>,
    /// The bare name of one of Foreword's own tools, from the name that the host gives it.
    pub own_tool: fn(&str) -> Option<&str>,
    /// Whether a file is the host's own, such as a plan that it keeps: no part of any project.
    pub is_own_file: fn(&str) -> bool,
    /// Reads a session's transcript and those of its subagents until `take` breaks off.
    pub transcript: fn(&Path, &str, Take<'_>),
}

/// Takes one input at a time from a transcript.
pub type Take<'a> = &'a mut dyn FnMut(ReplayedInput) -> ControlFlow<()>;

/// An event of a host, and the hook command that is run for it.
#[derive(Debug)]
pub struct HostEvent {
    pub name: &'static str,
    pub hook: Hook,
    pub kind: EventKind,
    /// The tools whose events the command is run for, as the host's settings write it; all if none.
    pub matcher: Option<&'static str>,
}

/// The hook commands: `foreword NAME`, run by a host for its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    Context,
    New,
    FileContext,
    Save,
    Summary,
    Cleanup,
}

impl Hook {
    pub const ALL: &[Hook] = &[
        Hook::Context,
        Hook::New,
        Hook::FileContext,
        Hook::Save,
        Hook::Summary,
        Hook::Cleanup,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Hook::Context => "context",
            Hook::New => "new",
            Hook::FileContext => "file-context",
            Hook::Save => "save",
            Hook::Summary => "summary",
            Hook::Cleanup => "cleanup",
        }
    }

    pub fn parse(name: &str) -> Option<Hook> {
        Hook::ALL.iter().copied().find(|hook| hook.name() == name)
    }
}

/// The standard input of a hook, decoded. Every field may be missing.
#[derive(Debug, Default)]
pub struct HookInput<'a> {
    /// The hook command that handles the host's event, and the kind of event it becomes.
    pub event: Option<(Hook, EventKind)>,
    pub session_id: Option<Cow<'a, str>>,
    pub prompt_id: Option<Cow<'a, str>>,
    /// The subagent that the event is about, if it is one.
    pub agent_id: Option<Cow<'a, str>>,
    pub transcript_path: Option<Cow<'a, str>>,
    pub cwd: Option<Cow<'a, str>>,
    pub tool: ToolCall<'a>,
    pub error: Option<&'a RawValue>,
    pub interrupted: bool,
    pub prompt: Option<Cow<'a, str>>,
    /// The agent's last message of a turn.
    pub reply: Option<Cow<'a, str>>,
    /// Why a session starts: a new one, resumed, cleared, compacted.
    pub source: Option<Cow<'a, str>>,
    pub model: Option<Cow<'a, str>>,
    /// Why a session ends.
    pub reason: Option<Cow<'a, str>>,
    /// Names of fields that Foreword does not know; `doctor` counts them.
    pub unknown: Vec<String>,
}

/// The tool use that a hook is run for.
#[derive(Debug, Default)]
pub struct ToolCall<'a> {
    pub name: Option<Cow<'a, str>>,
    pub kind: ToolKind,
    /// The name of the tool, without the host's prefix, if it is one of Foreword's own MCP tools.
    pub own: Option<String>,
    pub id: Option<Cow<'a, str>>,
    /// Input and response are not parsed here: they can be megabytes, and parts are not needed.
    pub input: Option<&'a RawValue>,
    pub response: Option<&'a RawValue>,
}

/// The files and the command that a tool use is about.
#[derive(Debug, Default)]
pub struct Subject<'a> {
    pub paths: Vec<Cow<'a, str>>,
    /// The command line, if the tool is a shell.
    pub command: Option<Cow<'a, str>>,
}

/// The purpose of a tool, independent of its name in a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolKind {
    /// Shows a file.
    Read,
    /// Changes or writes files.
    Edit,
    /// Runs a command line.
    Shell,
    /// Fetches or searches pages of the web.
    Web,
    /// Searches the text of files.
    Search,
    /// A tool of an MCP server.
    Mcp,
    #[default]
    Other,
}

impl ToolKind {
    /// Whether such a tool reads or modifies the files that it names; none if it does not name any.
    pub fn file_role(self) -> Option<FileRole> {
        match self {
            ToolKind::Read => Some(FileRole::Read),
            ToolKind::Edit => Some(FileRole::Modified),
            ToolKind::Shell
            | ToolKind::Web
            | ToolKind::Search
            | ToolKind::Mcp
            | ToolKind::Other => None,
        }
    }
}

/// The fields of a recorded tool use, independent of the host. A missing text is empty where
/// empty means the same.
#[derive(Debug, Default)]
pub struct ToolUse<'a> {
    pub path: Option<&'a str>,
    pub command: Option<&'a str>,
    /// The agent's own description of the command.
    pub description: &'a str,
    /// The replacements of an edit, in order.
    pub replacements: Vec<Replacement<'a>>,
    /// The whole file that is written.
    pub content: Option<&'a str>,
    /// Lines of the change, each with `-`, `+` or a space in front.
    pub patch: Vec<&'a str>,
    /// The file did not exist before.
    pub created: bool,
    pub output: Output<'a>,
    /// The exit code and the output of a command that failed.
    pub exit_code: Option<&'a str>,
    pub error: &'a str,
    /// The user interrupted it.
    pub interrupted: bool,
    /// It goes on in the background: nothing is known of its end.
    pub in_background: bool,
    /// The questions that the user was asked, with the answers.
    pub answers: Vec<QuestionAnswer<'a>>,
}

/// A text that an edit replaces, and the text it is replaced by. The cell of a notebook has only
/// its new text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Replacement<'a> {
    pub before: &'a str,
    pub after: &'a str,
}

/// The user's answer to one question, and the options that the question offered.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct QuestionAnswer<'a> {
    pub question: &'a str,
    pub answer: &'a str,
    pub options: Vec<&'a str>,
}

/// The response of a tool that succeeded.
#[derive(Debug, Default)]
pub enum Output<'a> {
    /// No response was recorded.
    #[default]
    None,
    /// The content of the file that was read.
    File(&'a str),
    /// The change that was made, which repeats the input.
    Change,
    /// The standard output and standard error of a command.
    Printed(&'a str, &'a str),
    Other(&'a Value),
}

/// The input of a hook, rebuilt from a line of a transcript; the hook itself may have been lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedInput {
    pub hook: Hook,
    pub kind: EventKind,
    pub prompt_id: String,
    /// The id of the tool use; of words between tool uses, the id of their message.
    pub tool_use_id: Option<String>,
    /// The hook's standard input.
    pub input: String,
    pub branch: Option<String>,
    pub at: Millis,
}

/// The host that has this name.
pub fn named(name: &str) -> Option<&'static Host> {
    HOSTS.iter().find(|host| host.name == name)
}

/// Reads the tool use of an event. It is empty if this version does not know the event's host.
pub fn tool_use(event: &Event) -> ToolUse<'_> {
    named(&event.host).map_or_else(ToolUse::default, |host| (host.tool_use)(event))
}

/// Whether a file is the own file of the host that the event is from.
pub fn is_own_file(event: &Event, path: &str) -> bool {
    named(&event.host).is_some_and(|host| (host.is_own_file)(path))
}

/// The kind of tool that an event is about.
pub fn tool_kind(event: &Event) -> ToolKind {
    let kind = || Some((named(&event.host)?.tool_kind)(event.tool_name.as_deref()?));
    kind().unwrap_or_default()
}

impl Host {
    /// Calls `take` with each input of a session's transcript, until it fails.
    pub fn replay<E>(
        &self,
        path: &Path,
        session: &str,
        mut take: impl FnMut(ReplayedInput) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        (self.transcript)(path, session, &mut |input| {
            result = take(input);
            if result.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        result
    }
}

/// A JSON string, borrowed where it has no escapes.
#[derive(Deserialize)]
pub struct Plain<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The text of a JSON string; none if the value has another type.
pub fn plain_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    match serde_json::from_str::<Plain<'_>>(raw.get()) {
        Ok(plain) => Some(plain.0),
        Err(_) => serde_json::from_str(&mend(raw.get())?).ok().map(Cow::Owned),
    }
}

/// Replaces unpaired surrogates: half an emoji, cut by a host that counts in UTF-16, which Rust
/// does not accept in a text. None if there are none. Called only if the JSON did not parse.
pub fn mend(json: &str) -> Option<String> {
    let input = json.as_bytes();
    let mut mended: Option<String> = None;
    let mut at = 0;
    while let Some(found) = input
        .get(at..)
        .and_then(|rest| rest.iter().position(|&byte| byte == b'\\'))
    {
        at += found;
        let Some(unit) = surrogate(input, at) else {
            at += 2;
            continue;
        };
        let paired = unit < 0xdc00 && surrogate(input, at + 6).is_some_and(|low| low >= 0xdc00);
        if !paired {
            let mended = mended.get_or_insert_with(|| json.to_owned());
            mended.replace_range(at..at + 6, "\\ufffd");
        }
        at += if paired { 12 } else { 6 };
    }
    mended
}

/// The surrogate that is written as `\uXXXX` at this position.
fn surrogate(input: &[u8], at: usize) -> Option<u16> {
    let digits = input.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

/// Only this many bytes at the end of a transcript are read: events that hooks missed are usually there.
pub const TRANSCRIPT_MAX: u64 = 32 << 20;
/// A line longer than this is skipped.
const LINE_MAX: u64 = 8 << 20;

/// The lines of a transcript, which may be written to meanwhile: one at a time, without those that are too long.
pub struct Lines {
    file: BufReader<File>,
    line: Vec<u8>,
}

impl Lines {
    pub fn open(path: &Path) -> io::Result<Lines> {
        let (mut file, metadata) = files::open(path)?;
        // The first line is then incomplete; it is not JSON, and the caller skips it.
        file.seek(SeekFrom::Start(
            metadata.len().saturating_sub(TRANSCRIPT_MAX),
        ))?;
        Ok(Lines {
            file: BufReader::new(file),
            line: Vec::new(),
        })
    }

    /// The next line that is not too long; none at the end.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut skipping = false;
        loop {
            self.line.clear();
            let mut limited = self.file.by_ref().take(LINE_MAX);
            let length = limited.read_until(b'\n', &mut self.line)? as u64;
            if length == 0 {
                return Ok(None);
            }
            let too_long = length == LINE_MAX && !self.line.ends_with(b"\n");
            if !too_long && !skipping {
                return Ok(Some(&self.line));
            }
            skipping = too_long;
        }
    }
}
