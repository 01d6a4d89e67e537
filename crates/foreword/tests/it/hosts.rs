//! The names of a host's events, tools and files occur in its own folder only.

use std::path::{Path, PathBuf};

/// Names of events, tools, fields, files and variables of a host, as they appear in code and comments.
/// Those with quotation marks are ordinary words without them.
const NAMES: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "StopFailure",
    "SessionEnd",
    "SubagentStop",
    "PreCompact",
    "hook_event_name",
    "hookEventName",
    "hookSpecificOutput",
    "additionalContext",
    "systemMessage",
    "tool_input",
    "tool_response",
    "toolUseResult",
    "structuredPatch",
    "file/content",
    "\"file_path\"",
    "\"old_string\"",
    "\"new_string\"",
    "notebook_path",
    "last_assistant_message",
    "task-notification",
    "disableAllHooks",
    "enabledPlugins",
    "mcpServers",
    "mcp__",
    "settings.json",
    "CLAUDE_",
    "CLAUDE.md",
    "/.claude",
    "\".claude",
    "`.claude",
    "\"claude-code\"",
    "\"Bash\"",
    "\"Read\"",
    "\"Edit\"",
    "\"Write\"",
    "\"Glob\"",
    "\"Grep\"",
    "\"LS\"",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "WebFetch",
    "WebSearch",
    "TodoWrite",
    "AskUserQuestion",
    "ExitPlanMode",
];

/// Names that are allowed: our own kinds of events and one variable have them too.
const OURS: &[&str] = &[
    "EventKind::SessionStart",
    "EventKind::StopFailure",
    "EventKind::SessionEnd",
    "SessionStart = \"session_start\"",
    "StopFailure = \"stop_failure\"",
    "SessionEnd = \"session_end\"",
    "FOREWORD_CLAUDE_COMMAND",
];

#[test]
fn names_of_a_host_stand_in_its_own_folder_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut elsewhere = Vec::new();
    let mut files = Vec::new();
    for product in [
        "foreword",
        "foreword-core",
        "foreword-embed",
        "foreword-bench",
    ] {
        sources(&crates.join(product).join("src"), &mut files);
    }
    // The host that the benches play.
    files.retain(|file| !file.ends_with("foreword-bench/src/host.rs"));
    assert!(files.len() > 150, "{} files", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // Inline tests stand at the end of a file.
        let product = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        for (number, line) in (1..).zip(product.lines()) {
            let others = OURS
                .iter()
                .fold(line.to_owned(), |line, ours| line.replace(ours, ""));
            for name in NAMES.iter().filter(|name| others.contains(*name)) {
                let file = file.strip_prefix(crates).unwrap().display();
                elsewhere.push(format!("{file}:{number}: {name}"));
            }
        }
    }
    assert!(
        elsewhere.is_empty(),
        "a host's names outside of host/:\n{}",
        elsewhere.join("\n")
    );
}

/// Rust and TOML sources, without the hosts' files and folders and without tests.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["host", "tests"].contains(&name) {
            sources(&path, files);
        } else if name.ends_with(".toml") || name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}
