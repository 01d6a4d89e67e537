//! Connects Claude Code: our hooks in its `settings.json`, and out of it again.
//!
//! The file is the user's. It is edited as a syntax tree, so that other keys, their
//! order, comments and whitespace stay as they are; what we cannot understand we do
//! not touch. An entry is ours if it runs a program called `foreword` with one of
//! our hook commands.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use foreword_core::capture::Hook;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstNode, CstObject, CstRootNode};
use jsonc_parser::json;

/// Seconds after which the host gives up on a hook. Ours take milliseconds.
const TIMEOUT: u32 = 5;

/// How Claude Code's settings stand to this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    Connected,
    /// Some hooks are missing or point at another program.
    Partly(Vec<String>),
    None,
}

/// The user's settings file of Claude Code.
pub fn settings_path() -> anyhow::Result<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let dir = set("CLAUDE_CONFIG_DIR")
        .or_else(|| set("HOME").map(|home| home.join(".claude")))
        .context("neither CLAUDE_CONFIG_DIR nor HOME is set, so there is no place to install to")?;
    Ok(dir.join("settings.json"))
}

/// The settings with all our hooks in them, each once and pointing at `program`.
pub fn connect(settings: &str, program: &Path) -> anyhow::Result<String> {
    if connection(settings, program)? == Connection::Connected {
        return Ok(settings.to_owned());
    }
    let clean = disconnect(settings)?;
    let root = parse(&clean)?;
    let top = root
        .object_value_or_create()
        .context("settings.json is not a JSON object")?;
    let hooks = object(&top, "hooks")?;
    let program = program
        .to_str()
        .context("the path of this program is not valid UTF-8")?;
    for &hook in Hook::ALL {
        let arguments = vec![hook.name().to_owned()];
        for event in hook.host_events() {
            let groups = array(&hooks, event)?;
            groups.ensure_multiline();
            groups.append(json!({
                "hooks": [{"type": "command", "command": program, "args": (arguments.clone()), "timeout": TIMEOUT}]
            }));
        }
    }
    let mut text = root.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// The settings without our hooks, and without the brackets that only held them.
pub fn disconnect(settings: &str) -> anyhow::Result<String> {
    let root = parse(settings)?;
    let Some(hooks) = root
        .object_value()
        .and_then(|top| top.object_value("hooks"))
    else {
        return Ok(settings.to_owned());
    };
    let mut removed = false;
    for event in hooks.properties() {
        let Some(groups) = event.array_value() else {
            continue;
        };
        let mut touched = false;
        for group in groups.elements() {
            let Some(entries) = group.as_object().and_then(|it| it.array_value("hooks")) else {
                continue;
            };
            let (ours, others): (Vec<_>, Vec<_>) = entries
                .elements()
                .into_iter()
                .partition(|it| ours(it).is_some());
            touched |= !ours.is_empty();
            if others.is_empty() && !ours.is_empty() {
                group.remove();
            } else {
                ours.into_iter().for_each(CstNode::remove);
            }
        }
        removed |= touched;
        if touched && groups.elements().is_empty() {
            event.remove();
        }
    }
    if !removed {
        return Ok(settings.to_owned());
    }
    let emptied = hooks.properties().is_empty();
    if let Some(property) = root
        .object_value()
        .and_then(|top| top.get("hooks"))
        .filter(|_| emptied)
    {
        property.remove();
    }
    Ok(root.to_string())
}

/// Which of our hooks the settings hold.
pub fn connection(settings: &str, program: &Path) -> anyhow::Result<Connection> {
    let root = parse(settings)?;
    let hooks = root
        .object_value()
        .and_then(|top| top.object_value("hooks"));
    let mut problems = Vec::new();
    let mut found = 0;
    for &hook in Hook::ALL {
        for event in hook.host_events() {
            let groups = hooks.as_ref().and_then(|hooks| hooks.array_value(event));
            let programs: Vec<String> = groups
                .into_iter()
                .flat_map(|groups| groups.elements())
                .filter_map(|group| group.as_object()?.array_value("hooks"))
                .flat_map(|entries| entries.elements())
                .filter_map(|entry| ours(&entry))
                .filter_map(|(program, name)| (name == hook.name()).then_some(program))
                .collect();
            found += programs.len();
            match programs.as_slice() {
                [one] if Path::new(one) == program => {}
                [] => problems.push(format!("{event} is not connected")),
                [one] => problems.push(format!("{event} runs {one}")),
                _ => problems.push(format!("{event} is connected {} times", programs.len())),
            }
        }
    }
    Ok(match (found, problems.is_empty()) {
        (0, _) => Connection::None,
        (_, true) => Connection::Connected,
        (_, false) => Connection::Partly(problems),
    })
}

/// Program and hook command of an entry, if it is one of ours.
fn ours(entry: &CstNode) -> Option<(String, String)> {
    let entry = entry.as_object()?;
    let command = string(&entry.get("command")?.value()?)?;
    let is_foreword = Path::new(&command)
        .file_stem()
        .is_some_and(|name| name == "foreword");
    let arguments = entry.array_value("args")?.elements();
    let [argument] = arguments.as_slice() else {
        return None;
    };
    let name = string(argument)?;
    (is_foreword && Hook::parse(&name).is_some()).then_some((command, name))
}

fn string(node: &CstNode) -> Option<String> {
    node.as_string_lit()?.decoded_value().ok()
}

fn parse(settings: &str) -> anyhow::Result<CstRootNode> {
    let settings = if settings.trim().is_empty() {
        "{}"
    } else {
        settings
    };
    let root = CstRootNode::parse(settings, &ParseOptions::default()).map_err(|error| {
        anyhow::anyhow!(
            "settings.json is not valid JSON: {error}; mend it first, nothing was changed"
        )
    })?;
    if root.object_value().is_none() {
        bail!("settings.json does not hold a JSON object; mend it first, nothing was changed");
    }
    Ok(root)
}

fn object(parent: &CstObject, name: &str) -> anyhow::Result<CstObject> {
    parent.object_value_or_create(name).with_context(|| {
        format!("\"{name}\" in settings.json is not an object; nothing was changed")
    })
}

fn array(parent: &CstObject, name: &str) -> anyhow::Result<CstArray> {
    parent.array_value_or_create(name).with_context(|| {
        format!("hooks.{name} in settings.json is not a list; nothing was changed")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/opt/foreword";

    fn connected(settings: &str) -> String {
        connect(settings, Path::new(PROGRAM)).unwrap()
    }

    #[test]
    fn every_hook_is_connected_once_in_exec_form() {
        let text = connected("");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut lines = Vec::new();
        for (event, groups) in value["hooks"].as_object().unwrap() {
            for group in groups.as_array().unwrap() {
                assert_eq!(group.get("matcher"), None);
                for hook in group["hooks"].as_array().unwrap() {
                    lines.push(format!("{event}: {} {}", hook["command"], hook["args"]));
                }
            }
        }
        lines.sort();
        let expected = [
            r#"PostToolUse: "/opt/foreword" ["save"]"#,
            r#"PostToolUseFailure: "/opt/foreword" ["save"]"#,
            r#"SessionEnd: "/opt/foreword" ["cleanup"]"#,
            r#"SessionStart: "/opt/foreword" ["context"]"#,
            r#"Stop: "/opt/foreword" ["summary"]"#,
            r#"StopFailure: "/opt/foreword" ["summary"]"#,
            r#"UserPromptSubmit: "/opt/foreword" ["new"]"#,
        ];
        assert_eq!(lines, expected);
        assert_eq!(
            connection(&text, Path::new(PROGRAM)).unwrap(),
            Connection::Connected
        );
    }

    #[test]
    fn a_second_install_changes_nothing_and_a_moved_program_is_followed() {
        let first = connected("{}");
        assert_eq!(connected(&first), first);
        let moved = connect(&first, Path::new("/new/foreword")).unwrap();
        assert_eq!(moved, first.replace("/opt/foreword", "/new/foreword"));
    }

    #[test]
    fn what_others_wrote_survives_install_and_uninstall() {
        let before = r#"{
    "model": "opus",
    "hooks": {
        "Stop": [
            {"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}
        ]
    },
    "permissions": {"allow": ["Bash(ls:*)"]}
}
"#;
        let during = connected(before);
        assert!(during.contains("say done") && during.contains("\"summary\""));
        assert_eq!(disconnect(&during).unwrap(), before);
    }

    #[test]
    fn a_program_that_only_sounds_like_ours_is_left_alone() {
        let settings = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/x/foreword-extra","args":["summary"]}]}]}}"#;
        assert_eq!(disconnect(settings).unwrap(), settings);
    }

    #[test]
    fn settings_that_we_do_not_understand_are_not_touched() {
        for broken in ["{", "[]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": {}}}"] {
            assert!(connect(broken, Path::new(PROGRAM)).is_err(), "{broken}");
        }
    }
}
