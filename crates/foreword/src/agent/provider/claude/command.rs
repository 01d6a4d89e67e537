//! Starts the claude CLI as a memory agent, with the user's login and none of the user's other
//! settings.
//!
//! No tools, no MCP servers, no hooks, no plugins, no skills, no instructions, no session
//! in the user's list. `--setting-sources user` keeps the login (`apiKeyHelper`, `env`);
//! everything else in those settings is switched off one by one. An older or newer
//! client ignores variables and settings that it does not know, but not options.

use std::os::unix::fs::DirBuilderExt as _;

use serde_json::{Map, Value, json};
use tokio::process::Command;

use super::Transcript;
use crate::agent::provider::{self, Question};
use crate::config;
use crate::home::Home;
use crate::host::claude_code::{environment, settings};
use crate::start;

pub fn prepare(
    settings: &config::ClaudeSection,
    home: &Home,
    question: &Question<'_>,
    transcript: Transcript<'_>,
) -> std::io::Result<Command> {
    let folder = home.agent();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    let ours = variables(question);
    let mut command = Command::new(&settings.command);
    match transcript {
        Transcript::None => command.arg("--no-session-persistence"),
        Transcript::New => &mut command,
        Transcript::Of(record) => command.args(["--resume", &record.id]),
    };
    command
        .args(["-p", "--verbose"])
        .args(["--input-format", "stream-json"])
        .args(["--output-format", "stream-json"])
        .args(["--setting-sources", "user"])
        .args(["--settings", &overrides(&ours).to_string()])
        .args(["--strict-mcp-config", "--disable-slash-commands"])
        .args(["--tools", ""])
        .args(["--max-turns", "1"])
        .args(["--model", &settings.model])
        .args(["--system-prompt", question.system])
        .current_dir(folder)
        .env_clear()
        .envs(
            start::environment_for(provider::Name::Claude)
                .into_iter()
                .filter(|(name, _)| !name.as_encoded_bytes().starts_with(b"FOREWORD_")),
        )
        .envs(ours)
        // If one of our hooks runs in this process all the same, it does nothing.
        .env("FOREWORD_AGENT", "1")
        .env("FOREWORD_HOME", home.dir());
    Ok(command)
}

fn variables(question: &Question<'_>) -> Vec<(String, String)> {
    let fixed = environment::QUIET
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    fixed
        .chain([(
            environment::ANSWER_MAX.to_owned(),
            question.answer_max.to_string(),
        )])
        .collect()
}

/// Settings that override the user's. Our variables are repeated here because `env` in the user's
/// settings would override them.
fn overrides(variables: &[(String, String)]) -> Value {
    let environment: Map<String, Value> = variables
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    // The options above already disable the hooks, skills and servers of plugins; this keeps them
    // from being loaded.
    let plugins: Map<String, Value> = settings::plugins()
        .into_iter()
        .map(|name| (name, Value::from(false)))
        .collect();
    json!({
        settings::OFF: true,
        settings::PLUGINS: plugins,
        // These two would become part of the prompt.
        "outputStyle": "default",
        "language": "",
        "alwaysThinkingEnabled": false,
        "env": environment,
    })
}
