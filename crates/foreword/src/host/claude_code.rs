//! Claude Code: the paths of its files, the form of a hook's answer, and its client.
//!
//! `settings` adds our hooks to its settings, `permissions` the rules that allow our tools, `servers`
//! our entry to its list of MCP servers.
//! `agent_files` deletes what it writes when it runs as the memory agent.
//! `environment` lists its variables for the `claude` provider. `played` stands in for it in the demo.

pub mod agent_files;
pub mod environment;
mod permissions;
pub mod played;
mod servers;
pub mod settings;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use foreword_core::host::{Hook, claude_code};
use foreword_core::text::one_line;
use serde_json::json;

use super::{Client, set};
use crate::platform;

pub const CLIENT: Client = Client {
    host: &claude_code::HOST,
    user_settings,
    project_settings: ".claude/settings.json",
    insert_hooks: settings::insert,
    remove_hooks: settings::disconnect,
    programs: settings::programs,
    hooks_off: settings::hooks_off,
    others: settings::others,
    plugin: "foreword@",
    unread: crate::host::json::not_plain_json,
    local_settings: ".claude/settings.local.json",
    rule: permissions::rule,
    insert_rules: permissions::insert,
    remove_rules: permissions::remove,
    permission: permissions::permission,
    servers: servers::place,
    listed: servers::listed,
    insert_server: servers::connect,
    remove_server: servers::disconnect,
    skills: SKILLS,
    instructions: "CLAUDE.md",
    answer,
    // The client cuts an answer after 10,000 characters.
    answer_max: 9_500,
    plain_answer,
    session_variable: "CLAUDE_CODE_SESSION_ID",
    agent_variable: "CLAUDECODE",
    project_variable: "CLAUDE_PROJECT_DIR",
    plugin_variable: "CLAUDE_PLUGIN_ROOT",
    transcripts: all_transcripts,
    find_transcript,
    command: "claude",
    find_program,
    get: "npm install -g @anthropic-ai/claude-code",
    update: "update",
    // The client that the end-to-end tests drive.
    tested: [2, 1, 325],
};

/// The variable that names the folder of the user's settings, if it is not `~/.claude`.
const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

fn user_settings() -> anyhow::Result<PathBuf> {
    let dir = set(CONFIG_DIR).or_else(|| set("HOME").map(|home| home.join(".claude")));
    let dir = dir
        .context("neither CLAUDE_CONFIG_DIR nor HOME is set, so there is no place to install to")?;
    Ok(dir.join("settings.json"))
}

/// Skills and agents, each with its path below the folder of the settings and its text.
const SKILLS: &[(&str, &str)] = &[
    (
        "skills/summarize/SKILL.md",
        include_str!("../../../../plugin/skills/summarize/SKILL.md"),
    ),
    (
        "skills/synthesize/SKILL.md",
        include_str!("../../../../plugin/skills/synthesize/SKILL.md"),
    ),
    (
        "skills/recall/SKILL.md",
        include_str!("../../../../plugin/skills/recall/SKILL.md"),
    ),
    (
        "agents/summarize.md",
        include_str!("../../../../plugin/agents/summarize.md"),
    ),
    (
        "agents/synthesize.md",
        include_str!("../../../../plugin/agents/synthesize.md"),
    ),
];

fn answer(hook: Hook, text: Option<&str>, notice: Option<String>) -> Option<String> {
    let mut answer = serde_json::Map::new();
    if let Some(text) = text {
        let mut events = CLIENT.host.events.iter();
        let event = events.find(|event| event.hook == hook)?.name;
        let context = json!({"hookEventName": event, "additionalContext": text});
        answer.insert("hookSpecificOutput".to_owned(), context);
    }
    if let Some(notice) = notice {
        answer.insert("systemMessage".to_owned(), notice.into());
    }
    (!answer.is_empty()).then(|| serde_json::Value::Object(answer).to_string())
}

fn plain_answer(hook: Hook) -> &'static str {
    match hook {
        Hook::Save => r#"{"continue":true,"suppressOutput":true}"#,
        // A Stop hook that prints prolongs the turn; a SessionEnd hook that prints is an error.
        Hook::Context | Hook::New | Hook::FileContext | Hook::Summary | Hook::Cleanup => "",
    }
}

/// Finds `projects/FOLDER/SESSION.jsonl` beside the settings, by the session's id or the beginning of
/// it; without a session, the newest transcript of the project.
fn find_transcript(session: Option<&str>, root: &Path) -> anyhow::Result<PathBuf> {
    let projects = user_settings()?.with_file_name("projects");
    let project_folder = slug(&root.to_string_lossy());
    let is_of_project = |path: &Path| {
        let folder = path.parent().and_then(Path::file_name);
        folder.is_some_and(|it| slug(&it.to_string_lossy()) == project_folder)
    };
    let id = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    let wanted = session.unwrap_or_default();
    let is_wanted = |path: &PathBuf| id(path).is_some_and(|it| it.starts_with(wanted));
    let mut found = all_transcripts();
    found.retain(|path| is_wanted(path) && (session.is_some() || is_of_project(path)));
    if found.iter().any(|path| id(path).as_deref() == session) {
        found.retain(|path| id(path).as_deref() == session);
    }
    let ids: BTreeSet<String> = found.iter().filter_map(|path| id(path)).collect();
    if session.is_some() && ids.len() > 1 {
        let ids = ids.iter().map(|it| one_line(it)).collect::<Vec<_>>();
        bail!(
            "several sessions begin with '{}'; write more of the id: {}",
            one_line(wanted),
            ids.join(", ")
        );
    }
    found.sort_by_key(|it| fs::metadata(it).and_then(|it| it.modified()).ok());
    found.pop().with_context(|| {
        let wanted = session.map_or("this project".to_owned(), |session| {
            format!("session {}", one_line(session))
        });
        let projects = projects.display();
        format!("there is no transcript of {wanted} in {projects}; name it with --transcript FILE")
    })
}

/// All files `projects/FOLDER/SESSION.jsonl` beside the settings.
fn all_transcripts() -> Vec<PathBuf> {
    let entries = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
    let projects = user_settings().map(|it| it.with_file_name("projects"));
    let folders = projects.into_iter().flat_map(entries);
    let files = folders.flat_map(|folder| entries(folder.path()));
    let paths = files.map(|it| it.path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect()
}

/// The client's name for the folder of a project's transcripts: the path, with `-` for all but letters
/// and digits.
fn slug(path: &str) -> String {
    path.replace(|it: char| !it.is_ascii_alphanumeric(), "-")
}

/// The folder with the transcripts of sessions that ran in this folder.
pub fn transcripts(of: &Path) -> Option<PathBuf> {
    let of = of.canonicalize().ok()?;
    let projects = user_settings().ok()?.with_file_name("projects");
    Some(projects.join(slug(&of.to_string_lossy())))
}

/// Finds the client on the PATH, or where its own installers put it.
fn find_program() -> Option<PathBuf> {
    let own = || {
        let home = set("HOME")?;
        let own = [".local/bin/claude", ".claude/local/claude"].map(|it| home.join(it));
        own.into_iter().find(|client| client.is_file())
    };
    platform::find_program(CLIENT.command).or_else(own)
}
