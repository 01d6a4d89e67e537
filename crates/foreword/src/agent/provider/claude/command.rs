//! How the claude CLI is started as a memory agent: with the user's login and nothing
//! else of the user's.
//!
//! No tools, no MCP servers, no hooks, no plugins, no skills, no CLAUDE.md, no session
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
use crate::install;
use crate::start;

pub fn prepare(
    settings: &config::Claude,
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

/// Those with a comment were seen to matter; the others are the client's own word for it.
const VARIABLES: &[(&str, &str)] = &[
    // An `@path` anywhere in the question had the client read that file, wherever it was,
    // and send it along; also with no tools at all.
    ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
    ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    // The user's own CLAUDE.md comes with `--setting-sources user`, as do their rules.
    ("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1"),
    ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
    // One request is one request: it is us who try again, later, and count.
    ("CLAUDE_CODE_MAX_RETRIES", "0"),
    ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
    ("CLAUDE_CODE_DISABLE_REFUSAL_RETRY", "1"),
    // Else any 400 is asked again without each of them.
    ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
    // The first is not enough for models that choose themselves how long to think.
    ("MAX_THINKING_TOKENS", "0"),
    ("CLAUDE_CODE_DISABLE_THINKING", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
];

fn variables(question: &Question<'_>) -> Vec<(String, String)> {
    let fixed = VARIABLES
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    fixed
        .chain([(
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS".to_owned(),
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
    let plugins: Map<String, Value> = enabled_plugins()
        .into_iter()
        .map(|name| (name, Value::from(false)))
        .collect();
    json!({
        "disableAllHooks": true,
        "enabledPlugins": plugins,
        // The model is told of these two.
        "outputStyle": "default",
        "language": "",
        "alwaysThinkingEnabled": false,
        "env": environment,
    })
}

/// The plugins in the user's settings. One that we do not see here has no hooks, skills or
/// servers with the options above, either; it would only be loaded.
fn enabled_plugins() -> Vec<String> {
    let text = install::user_place()
        .ok()
        .and_then(|place| std::fs::read_to_string(place.settings).ok())
        .unwrap_or_default();
    let settings: Value = serde_json::from_str(&text).unwrap_or_default();
    let plugins = settings["enabledPlugins"].as_object();
    plugins.map_or_else(Vec::new, |plugins| plugins.keys().cloned().collect())
}
