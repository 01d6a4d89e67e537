//! Checks of the coding agent: the hooks in its settings, the client itself, and our MCP server, which
//! must be listed where the hooks are and answer.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use foreword_core::text::shorten;
use serde_json::{Value, json};

use super::{Diagnosis, Examination};
use crate::host::{InstallScope, Listed, SettingsPlace, is_same_file};
use crate::install;
use crate::platform;
use foreword_core::text::shell_word;

pub fn settings_broken(exam: &Examination) -> Option<Diagnosis> {
    let (place, error) = exam
        .settings
        .iter()
        .find_map(|(place, text)| Some((place, text.as_ref().err()?)))?;
    let file = shell_word(&place.settings);
    let aside = format!("mv {file} {file}.broken");
    let cure = match place.scope {
        InstallScope::User => format!("{aside} && {}", exam.foreword("install")),
        InstallScope::Project => aside,
    };
    let path = place.settings.display();
    Diagnosis::cured_by(cure, format!("{path} cannot be understood: {error}"))
}

pub fn settings_unread(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam).filter(Hooks::any)?;
    let mut settings = exam.settings.iter();
    let (_, text) = settings.find(|(place, _)| *place == hooks.place)?;
    let why = (hooks.place.client.unread)(text.as_ref().ok()?)?;
    let (title, path) = (
        hooks.place.client.host.title,
        hooks.place.settings.display(),
    );
    Diagnosis::advised(
        format!(
            "correct {path}: {title} accepts plain JSON only, without comments and trailing commas"
        ),
        format!("{title} ignores all of {path}, so nothing is captured: {why}"),
    )
}

pub fn hooks_missing(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam)?;
    let is_missing =
        |(event, programs): &(&'static str, Vec<String>)| programs.is_empty().then_some(*event);
    let missing: Vec<_> = hooks.programs.iter().filter_map(is_missing).collect();
    if missing.is_empty() || (!hooks.any() && plugin_is_on(exam)) {
        return None;
    }
    let path = hooks.place.settings.display();
    let evidence = if hooks.any() {
        format!("{path} does not connect {}", missing.join(", "))
    } else {
        format!("{path} does not connect Foreword: nothing is captured, nothing recalled")
    };
    Diagnosis::cured_by(hooks.install(exam), evidence)
}

pub fn hooks_binary_gone(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam)?;
    let (event, program) = hooks.first_program(|program| !program.exists())?;
    let evidence = format!("{event} runs {program}, which is not there");
    Diagnosis::cured_by(hooks.install(exam), evidence)
}

pub fn hooks_other_binary(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam)?;
    let (event, program) =
        hooks.first_program(|program| program.exists() && !is_same_file(program, &exam.program))?;
    let this = exam.program.display();
    let evidence = format!("{event} runs {program}, not this program, {this}");
    Diagnosis::cured_by(hooks.install(exam), evidence)
}

/// The settings that contain our hooks: the user's, else the project's.
pub struct Hooks {
    pub place: SettingsPlace,
    programs: Vec<(&'static str, Vec<String>)>,
}

impl Hooks {
    pub fn find(exam: &Examination) -> Option<Hooks> {
        // Settings that cannot be read are reported by `settings_broken`.
        let all: Option<Vec<_>> = exam
            .settings
            .iter()
            .map(|(place, text)| {
                let programs = (place.client.programs)(text.as_ref().ok()?).ok()?;
                let place = place.clone();
                Some(Hooks { place, programs })
            })
            .collect();
        let mut all = all?;
        let connected = all.iter().position(Hooks::any).unwrap_or(0);
        Some(all.swap_remove(connected))
    }

    pub fn any(&self) -> bool {
        self.programs
            .iter()
            .any(|(_, programs)| !programs.is_empty())
    }

    fn first_program(&self, wanted: impl Fn(&Path) -> bool) -> Option<(&'static str, &str)> {
        self.programs.iter().find_map(|(event, programs)| {
            let program = programs.iter().find(|program| wanted(Path::new(program)))?;
            Some((*event, program.as_str()))
        })
    }

    pub fn install(&self, exam: &Examination) -> String {
        match self.place.scope {
            InstallScope::User => exam.foreword("install"),
            InstallScope::Project => exam.foreword("install --project"),
        }
    }
}

pub fn plugin_is_on(exam: &Examination) -> bool {
    others(exam).any(|(place, other)| other.starts_with(place.client.plugin))
}

fn others(exam: &Examination) -> impl Iterator<Item = (&SettingsPlace, String)> {
    exam.settings.iter().flat_map(|(place, text)| {
        let others = text
            .as_ref()
            .ok()
            .and_then(|text| (place.client.others)(text).ok());
        others
            .unwrap_or_default()
            .into_iter()
            .map(move |it| (place, it))
    })
}

/// Names of other memory tools.
#[rustfmt::skip] // A list is read in a line.
const MEMORY_TOOLS: &[&str] = &[
    "claude-mem", "supermemory", "mem0", "openmemory", "basic-memory", "memsearch", "engram",
    "agentmemory",
];

pub fn other_memory_tool(exam: &Examination) -> Option<Diagnosis> {
    let (place, other) = others(exam).find(|(_, other)| is_memory_tool(other))?;
    let path = place.settings.display();
    let other = shorten(&other, 80);
    Diagnosis::advised(
        format!(
            "two memory tools cost each session twice; keep one and remove the other from {path} (Foreword leaves it alone)"
        ),
        format!("{path} also runs another memory tool: {other}"),
    )
}

fn is_memory_tool(command: &str) -> bool {
    let command = command.to_lowercase();
    // Only the name of a program or a plugin counts, not the folders of its path.
    let mut names = command
        .split_whitespace()
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    !command.starts_with("foreword@")
        && (MEMORY_TOOLS.iter().any(|tool| command.contains(tool))
            || names.any(|name| name.contains("memory")))
}

pub fn client_missing(exam: &Examination) -> Option<Diagnosis> {
    let client = Hooks::find(exam)?.place.client;
    if (client.find_program)().is_some() {
        return None;
    }
    let evidence = format!("`{}` is not on the PATH", client.command);
    Diagnosis::cured_by(client.get.to_owned(), evidence)
}

/// The time in which the client must print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

pub fn client_old(exam: &Examination) -> Option<Diagnosis> {
    let client = Hooks::find(exam)?.place.client;
    let program = (client.find_program)()?;
    let mut command = Command::new(&program);
    let (answer, _) = platform::output_within(command.arg("--version"), "", VERSION_LIMIT)?;
    let version = answer.split_whitespace().next()?;
    let numbers: Vec<u32> = version
        .split('.')
        .map_while(|number| number.parse().ok())
        .collect();
    if numbers.len() < 3 || numbers.as_slice() >= &client.tested[..] {
        return None;
    }
    let ([a, b, c], title) = (client.tested, client.host.title);
    Diagnosis::cured_by(
        format!("{} {}", shell_word(&program), client.update),
        format!("{title} {version} is older than {a}.{b}.{c}, the oldest that was tested"),
    )
}

pub fn server_missing(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam).filter(Hooks::any)?;
    let listed = install::listed(&hooks.place).ok()?;
    let list = install::servers(&hooks.place).ok()?.settings;
    let list = list.display();
    match listed {
        Listed::Ours(_) => None,
        Listed::Nobody => Diagnosis::cured_by(
            hooks.install(exam),
            format!("{list} does not list Foreword: the agent cannot search its memory"),
        ),
        Listed::Another => Diagnosis::advised(
            format!("rename it there, then run: {}", hooks.install(exam)),
            format!("{list} lists another server that is called foreword"),
        ),
    }
}

pub fn server_silent(exam: &Examination) -> Option<Diagnosis> {
    let hooks = Hooks::find(exam).filter(Hooks::any)?;
    let Ok(Listed::Ours(program)) = install::listed(&hooks.place) else {
        return None;
    };
    let is_gone = !Path::new(&program).exists();
    // If the hooks run the same program, `hooks_binary_gone` reports it.
    if is_gone
        && hooks
            .first_program(|it| it == Path::new(&program))
            .is_some()
    {
        return None;
    }
    let evidence = if is_gone {
        format!("the server that is listed is {program}, which is not there")
    } else if answers(&program) {
        return None;
    } else {
        format!("{program} mcp does not answer a client that introduces itself")
    };
    Diagnosis::cured_by(hooks.install(exam), evidence)
}

/// The time in which the server must answer; the host's first request waits for it.
const DEADLINE: Duration = Duration::from_secs(5);

fn answers(program: &str) -> bool {
    let hello = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "foreword doctor", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let mut command = Command::new(program);
    let output = platform::output_within(command.arg("mcp"), &format!("{hello}\n"), DEADLINE);
    let answer =
        output.and_then(|(text, _)| serde_json::from_str::<Value>(text.lines().next()?).ok());
    answer.is_some_and(|answer| answer["result"]["serverInfo"]["name"] == "foreword")
}
