//! How the claude CLI is started as a memory agent: with the user's login and nothing
//! else of the user's.
//!
//! No tools, no MCP servers, no hooks, no plugins, no skills, no instructions, no session
//! in the user's list. `--setting-sources user` keeps the login (`apiKeyHelper`, `env`);
//! everything else in those settings is switched off one by one. What an older or newer
//! client does not know, it ignores, as long as it is a variable or a setting rather
//! than an option.

use std::os::unix::fs::DirBuilderExt as _;

use serde_json::{Map, Value, json};
use tokio::process::Command;

use crate::agent::provider::{self, Question};
use crate::config;
use crate::home::Home;
use crate::host::claude_code::{environment, settings};
use crate::start;

pub fn prepare(
    settings: &config::ClaudeSection,
    home: &Home,
    question: &Question<'_>,
) -> std::io::Result<Command> {
    let folder = home.agent();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    let ours = variables(question);
    let mut command = Command::new(&settings.command);
    command
        .args(["-p", "--verbose"])
        .args(["--input-format", "stream-json"])
        .args(["--output-format", "stream-json"])
        .args(["--setting-sources", "user"])
        .args(["--settings", &overrides(&ours).to_string()])
        .args(["--strict-mcp-config", "--disable-slash-commands"])
        .args(["--tools", ""])
        .args(["--no-session-persistence", "--max-turns", "1"])
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
        // Should a hook of ours run after all, it knows where it is.
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

/// What goes over the user's settings. Their `env` would go over our variables, so these
/// stand here once more.
fn overrides(variables: &[(String, String)]) -> Value {
    let environment: Map<String, Value> = variables
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    // A plugin that is not named here has no hooks, skills or servers with the options above,
    // either; it would only be loaded.
    let plugins: Map<String, Value> = settings::plugins()
        .into_iter()
        .map(|name| (name, Value::from(false)))
        .collect();
    json!({
        settings::OFF: true,
        settings::PLUGINS: plugins,
        // The model is told of these two.
        "outputStyle": "default",
        "language": "",
        "alwaysThinkingEnabled": false,
        "env": environment,
    })
}
