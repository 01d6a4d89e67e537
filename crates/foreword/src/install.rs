//! Connects Claude Code: our hooks in its `settings.json`, and out of it again.
//!
//! The file is the user's: other keys, their order, comments and white space stay as
//! they are, and what we cannot understand we do not touch. An entry is ours if it
//! runs a program called `foreword` with one of our hook commands. This file knows
//! which are ours; `server` does the same for our entry in the list of MCP servers,
//! `skills` for the files of `/summarize` and its like; `insert` adds entries, `file` reads and
//! replaces the file, `record` remembers what was done.

mod file;
mod insert;
pub mod record;
pub mod server;
pub mod skills;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use foreword_core::capture::Hook;
use jsonc_parser::cst::{CstNode, CstRootNode};
use jsonc_parser::{ParseOptions, ast};

pub use file::SettingsFile;
use record::{Place, Record, Scope};

/// How Claude Code's settings stand to this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    Connected,
    /// Some hooks are missing or point at another program.
    Partly(Vec<String>),
    None,
}

/// The user's settings file of Claude Code.
pub fn user_place() -> anyhow::Result<Place> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let dir = set("CLAUDE_CONFIG_DIR")
        .or_else(|| set("HOME").map(|home| home.join(".claude")))
        .context("neither CLAUDE_CONFIG_DIR nor HOME is set, so there is no place to install to")?;
    Ok(Place {
        scope: Scope::User,
        settings: std::path::absolute(dir.join("settings.json"))?,
    })
}

/// The settings file of the project that the current directory is in.
pub fn project_place() -> anyhow::Result<Place> {
    let dir = std::env::current_dir().context("the current directory is gone")?;
    let place = foreword_core::project::resolve(&dir, &crate::home::project_rules(false));
    let settings = record::project_settings(&place.root.unwrap_or(dir));
    // In the home directory itself the project's file is the user's.
    let user = user_place()?;
    let folder = |path: &Path| std::fs::canonicalize(path.parent()?).ok();
    if user.settings == settings
        || folder(&user.settings).is_some_and(|it| folder(&settings) == Some(it))
    {
        return Ok(user);
    }
    Ok(Place {
        scope: Scope::Project,
        settings,
    })
}

/// This program, by the name that will still lead to it after an upgrade: a package
/// manager moves the file and keeps the link that is on the PATH.
pub fn program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("could not find out where this program is")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let linked = std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join("foreword"))
        .find(|link| is_same_file(link, &program));
    let program = linked.unwrap_or(program);
    if !is_called_foreword(&program) {
        bail!(
            "hooks are recognised by the name `foreword`, but this program is {}; rename it first",
            program.display()
        );
    }
    Ok(program)
}

pub fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}

fn is_called_foreword(program: &Path) -> bool {
    program.file_stem().is_some_and(|name| name == "foreword")
}

/// The settings with all our hooks in them, each once and pointing at `program`; `clean`
/// is what they are without us.
pub fn connect(settings: &str, clean: &str, program: &Path) -> anyhow::Result<String> {
    if connection(settings, program)? == Connection::Connected {
        return Ok(settings.to_owned());
    }
    insert::insert(clean, program)
}

/// The settings without us: the file as it was before install, byte for byte, if nobody changed
/// it since; else the file of today without our entries. None if there was no file before
/// install and nothing else is in it.
pub fn without_us(settings: &str, record: Option<&Record>) -> anyhow::Result<Option<String>> {
    let original = record.and_then(Record::original);
    if let Some(original) = &original
        && record.is_some_and(|record| record.written == settings)
    {
        return Ok(original.clone());
    }
    let rest = disconnect(settings)?;
    let top = parse(&rest)?.object_value();
    let is_empty = top.is_some_and(|top| top.properties().is_empty());
    Ok((!is_empty || original != Some(None)).then_some(rest))
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
    let mut problems = Vec::new();
    let mut found = 0;
    let off = parse(settings)?
        .object_value()
        .and_then(|top| top.get("disableAllHooks")?.value()?.as_boolean_lit())
        .is_some_and(|value| value.value());
    if off {
        problems.push("disableAllHooks is true, so no hook runs".to_owned());
    }
    for (event, programs) in programs(settings)? {
        found += programs.len();
        match programs.as_slice() {
            [one] if is_same_file(Path::new(one), program) => {}
            [] => problems.push(format!("{event} is not connected")),
            [one] => problems.push(format!("{event} runs {one}")),
            _ => problems.push(format!("{event} is connected {} times", programs.len())),
        }
    }
    Ok(match (found, problems.is_empty()) {
        (0, _) => Connection::None,
        (_, true) => Connection::Connected,
        (_, false) => Connection::Partly(problems),
    })
}

/// For each event that we want to hear of, the programs that our entries run.
pub fn programs(settings: &str) -> anyhow::Result<Vec<(&'static str, Vec<String>)>> {
    let root = parse(settings)?;
    let hooks = root
        .object_value()
        .and_then(|top| top.object_value("hooks"));
    let mut found = Vec::new();
    for &hook in Hook::ALL {
        for event in hook.host_events() {
            let groups = hooks.as_ref().and_then(|hooks| hooks.array_value(event));
            let programs = groups
                .into_iter()
                .flat_map(|groups| groups.elements())
                .filter_map(|group| group.as_object()?.array_value("hooks"))
                .flat_map(|entries| entries.elements())
                .filter_map(|entry| ours(&entry))
                .filter_map(|(program, name)| (name == hook.name()).then_some(program))
                .collect();
            found.push((*event, programs));
        }
    }
    Ok(found)
}

/// What else the settings have Claude Code run: commands of hooks, and plugins that are on.
pub fn others(settings: &str) -> anyhow::Result<Vec<String>> {
    let mut others = Vec::new();
    let root = parse(settings)?;
    let top = root.object_value();
    let hooks = top.as_ref().and_then(|top| top.object_value("hooks"));
    for event in hooks.into_iter().flat_map(|hooks| hooks.properties()) {
        let groups = event.array_value().into_iter();
        let entries = groups
            .flat_map(|groups| groups.elements())
            .filter_map(|group| group.as_object()?.array_value("hooks"))
            .flat_map(|entries| entries.elements())
            .filter(|entry| ours(entry).is_none());
        for entry in entries {
            let command = || string(&entry.as_object()?.get("command")?.value()?);
            others.extend(command());
        }
    }
    let plugins = top.and_then(|top| top.object_value("enabledPlugins"));
    for plugin in plugins.into_iter().flat_map(|it| it.properties()) {
        let on = plugin
            .value()
            .and_then(|it| it.as_boolean_lit())
            .is_some_and(|it| it.value());
        if on {
            others.extend(plugin.name().and_then(|name| name.decoded_value().ok()));
        }
    }
    others.sort();
    others.dedup();
    Ok(others)
}

/// Program and hook command of an entry, if it is one of ours.
fn ours(entry: &CstNode) -> Option<(String, String)> {
    let entry = entry.as_object()?;
    let command = string(&entry.get("command")?.value()?)?;
    let is_foreword = is_called_foreword(Path::new(&command));
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
    let root = CstRootNode::parse(settings, &grammar()).map_err(broken)?;
    if root.object_value().is_none() {
        bail!("this file does not hold a JSON object; mend it first, nothing was changed");
    }
    Ok(root)
}

fn parse_value(settings: &str) -> anyhow::Result<ast::Value<'_>> {
    let parsed = jsonc_parser::parse_to_ast(settings, &Default::default(), &grammar());
    let value = parsed.map_err(broken)?.value;
    value.context("this file is empty")
}

fn broken(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("this file is not valid JSON: {error}; mend it first, nothing was changed")
}

/// JSON, and what people add to it: comments and a comma too many. All else is broken.
fn grammar() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/opt/foreword";

    fn connected(settings: &str) -> String {
        reconnected(settings, PROGRAM)
    }

    fn reconnected(settings: &str, program: &str) -> String {
        let clean = disconnect(settings).unwrap();
        connect(settings, &clean, Path::new(program)).unwrap()
    }

    /// Files as people write them, each with a place where `"a"` can be changed.
    const LAYOUTS: &[&str] = &[
        "{\n  \"a\": 1\n}\n",
        "{\n  \"a\": 1\n}",
        "{\n\t\"a\": 1,\n\t\"b\": {\"c\": [1,2]}\n}\n",
        "{\r\n    \"a\": 1\r\n}\r\n",
        r#"{"a":1}"#,
        r#"{ "a": 1 }"#,
        "\n\n{\n   \"b\": 2,\n\n   \"a\": 1\n\n}\n\n",
        "{\n  \"hooks\": {},\n  \"a\": 1\n}\n",
        "{\n  \"a\": 1,\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": [\n    ]\n  }, \"a\": 1\n}\n",
        "{\n  // why\n  \"a\": 1 // because, well\n  /* end, of it */\n}\n",
        "{\n  \"a\": 1, // last\n}\n",
        r#"{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}"#,
        "{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]\n  },\n  \"a\": 1\n}\n",
        "{\n  \"hooks\": {\"Stop\": [{\"hooks\": [\n    {\"type\": \"command\", \"command\": \"say done\"}]}\n    ]},\n  \"a\": 1}\n",
    ];

    /// What settings mean to Claude Code: an empty list or object under `hooks` means nothing.
    fn meaning(settings: &str) -> serde_json::Value {
        let mut value = serde_json::Value::from(parse_value(settings).unwrap());
        let top = value.as_object_mut().unwrap();
        if let Some(hooks) = top.get_mut("hooks").and_then(|it| it.as_object_mut()) {
            hooks.retain(|_, groups| groups.as_array().is_none_or(|it| !it.is_empty()));
            if hooks.is_empty() {
                top.remove("hooks");
            }
        }
        value
    }

    #[test]
    fn install_only_adds_and_an_edit_elsewhere_survives_uninstall() {
        let mut to_the_byte = 0;
        for before in LAYOUTS {
            let written = connected(before);
            assert_eq!(
                connection(&written, Path::new(PROGRAM)).unwrap(),
                Connection::Connected,
                "{written}"
            );
            let mut rest = written.chars();
            let kept = before.chars().all(|it| rest.any(|other| other == it));
            assert!(kept, "something of {before:?} is gone:\n{written}");

            let edit = |text: &str| text.replace("\"a\"", "\"new\": [1,  2], \"a\"");
            let after = disconnect(&edit(&written)).unwrap();
            assert_eq!(meaning(&after), meaning(&edit(before)), "{after}");
            let comments = ["// why", "// because, well", "/* end, of it */", "// last"];
            for comment in comments.iter().filter(|it| before.contains(**it)) {
                assert!(after.contains(comment), "{after}");
            }
            assert_eq!(disconnect(&after).unwrap(), after);
            to_the_byte += usize::from(after == edit(before));
        }
        assert_eq!((to_the_byte, LAYOUTS.len()), (11, 15));
    }

    #[test]
    fn keys_that_the_user_put_beside_ours_stay_when_ours_go() {
        let before = "{\n  \"a\": 1\n}\n";
        let written = connected(before);
        let behind = written.replacen("\n}\n", ",\n  \"b\": 2\n}\n", 1);
        let between = written.replace(
            "  \"hooks\": {\n    \"Sess",
            "  \"b\": 2,\n  \"hooks\": {\n    \"Sess",
        );
        for edited in [behind, between] {
            assert_eq!(
                disconnect(&edited).unwrap(),
                "{\n  \"a\": 1,\n  \"b\": 2\n}\n"
            );
        }
        let slower = written.replace("\"timeout\": 5", "\"timeout\": 9");
        assert_eq!(disconnect(&slower).unwrap(), before);
    }

    #[test]
    fn every_hook_is_connected_once_in_exec_form() {
        let text = connected("");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let mut lines = Vec::new();
        for (event, groups) in value["hooks"].as_object().unwrap() {
            for group in groups.as_array().unwrap() {
                let matcher = group.get("matcher").map_or("", |it| it.as_str().unwrap());
                for hook in group["hooks"].as_array().unwrap() {
                    lines.push(format!(
                        "{event}: {} {} {matcher}",
                        hook["command"], hook["args"]
                    ));
                }
            }
        }
        lines.sort();
        let expected = [
            r#"PostToolUse: "/opt/foreword" ["save"] "#,
            r#"PostToolUseFailure: "/opt/foreword" ["save"] "#,
            r#"PreToolUse: "/opt/foreword" ["file-context"] Read|Edit|MultiEdit|Write|NotebookEdit"#,
            r#"SessionEnd: "/opt/foreword" ["cleanup"] "#,
            r#"SessionStart: "/opt/foreword" ["context"] "#,
            r#"Stop: "/opt/foreword" ["summary"] "#,
            r#"StopFailure: "/opt/foreword" ["summary"] "#,
            r#"UserPromptSubmit: "/opt/foreword" ["new"] "#,
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
        let moved = reconnected(&first, "/new/foreword");
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
    fn hooks_that_are_all_switched_off_are_no_connection() {
        let text = connected("{\n  \"disableAllHooks\": true\n}\n");
        let found = connection(&text, Path::new(PROGRAM)).unwrap();
        let expected = "disableAllHooks is true, so no hook runs".to_owned();
        assert_eq!(found, Connection::Partly(vec![expected]));
    }

    #[test]
    fn settings_that_we_do_not_understand_are_not_touched() {
        for broken in [
            "{",
            "[]",
            "{\"a\": 1 \"b\": 2}",
            "{'a': 1}",
            "{\"hooks\": []}",
            "{\"hooks\": {\"Stop\": {}}}",
        ] {
            let refused = connect(broken, broken, Path::new(PROGRAM)).is_err();
            assert!(refused, "{broken}");
        }
    }
}
