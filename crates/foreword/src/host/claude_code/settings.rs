//! Our hooks in Claude Code's `settings.json`.
//!
//! An entry is ours if it runs a program called `foreword` with one of our hook commands.
//! Entries are inserted as text by `host/json.rs`, so that all else stays as it is.

use std::path::Path;

use anyhow::{Context as _, bail};
use foreword_core::files::{self, SMALL_MAX};
use foreword_core::host::{Hook, HostEvent};
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::cst::{CstBooleanLit, CstNode};

use super::CLIENT;
use crate::host::json::{Insertion, JsonPage, indent, insert_into, parse, string};
use crate::host::{Programs, is_called_foreword};

const HOST_EVENTS: &[HostEvent] = CLIENT.host.events;

/// Seconds after which the host ends a hook. Ours take milliseconds.
const TIMEOUT: u32 = 5;

/// The settings with all our hooks added. They must hold none of ours yet.
pub fn insert(settings: &str, program: &Path) -> anyhow::Result<String> {
    let program = program
        .to_str()
        .context("the path of this program is not valid UTF-8")?;
    insert_into(settings, |page, top| {
        let top_list = page.list(top, &top.properties, true);
        match top.get("hooks").map(|property| &property.value) {
            None => {
                let events = HOST_EVENTS.iter().map(|event| property(event, program));
                let events = indent(&events.collect::<Vec<_>>().join(",\n"));
                let hooks = format!("\"hooks\": {{\n{events}\n}}");
                Ok(page.add(&top_list, &[hooks]))
            }
            Some(Value::Object(hooks)) => into_hooks(page, hooks, top_list.lines, program),
            Some(_) => bail!("\"hooks\" in settings.json is not an object; nothing was changed"),
        }
    })
}

/// The insertions that add our hooks to an existing `hooks` object: to the lists of events that
/// have one, and new lists for the others.
fn into_hooks(
    page: &JsonPage<'_>,
    hooks: &Object<'_>,
    lines: bool,
    program: &str,
) -> anyhow::Result<Vec<Insertion>> {
    let hooks_list = page.list(hooks, &hooks.properties, lines);
    let mut insertions = Vec::new();
    let mut missing = Vec::new();
    for event in HOST_EVENTS {
        match hooks.get(event.name).map(|property| &property.value) {
            None => missing.push(property(event, program)),
            Some(Value::Array(groups)) => {
                let groups = page.list(groups, &groups.elements, hooks_list.lines);
                insertions.extend(page.add(&groups, &[group(event, program)]));
            }
            Some(_) => bail!(
                "hooks.{} in settings.json is not a list; nothing was changed",
                event.name
            ),
        }
    }
    if !missing.is_empty() {
        insertions.extend(page.add(&hooks_list, &missing));
    }
    Ok(insertions)
}

/// `"Stop": [GROUP]`, indented by two spaces; `JsonPage::lay_out` adapts it to the file.
fn property(event: &HostEvent, program: &str) -> String {
    let group = indent(&group(event, program));
    format!("\"{}\": [\n{group}\n]", event.name)
}

fn group(event: &HostEvent, program: &str) -> String {
    let program = serde_json::Value::from(program);
    let name = event.hook.name();
    let matcher = event.matcher;
    let matcher = matcher.map_or(String::new(), |it| format!("\n  \"matcher\": \"{it}\","));
    format!(
        r#"{{{matcher}
  "hooks": [
    {{
      "type": "command",
      "command": {program},
      "args": ["{name}"],
      "timeout": {TIMEOUT}
    }}
  ]
}}"#
    )
}

/// The settings without our hooks, and without the brackets that only held them.
pub fn disconnect(settings: &str) -> anyhow::Result<String> {
    let (root, top) = parse(settings)?;
    let Some(hooks) = top.object_value("hooks") else {
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
    if let Some(property) = top.get("hooks").filter(|_| hooks.properties().is_empty()) {
        property.remove();
    }
    Ok(root.to_string())
}

/// For each event of ours, the programs that our entries run.
pub fn programs(settings: &str) -> anyhow::Result<Programs> {
    let (_root, top) = parse(settings)?;
    let hooks = top.object_value("hooks");
    let mut found = Vec::new();
    for event in HOST_EVENTS {
        let groups = hooks.as_ref();
        let groups = groups.and_then(|hooks| hooks.array_value(event.name));
        let programs = groups
            .into_iter()
            .flat_map(|groups| groups.elements())
            .filter_map(|group| group.as_object()?.array_value("hooks"))
            .flat_map(|entries| entries.elements())
            .filter_map(|entry| ours(&entry))
            .filter_map(|(program, name)| (name == event.hook.name()).then_some(program))
            .collect();
        found.push((event.name, programs));
    }
    Ok(found)
}

/// Commands of other hooks, and plugins that are on.
pub fn others(settings: &str) -> anyhow::Result<Vec<String>> {
    let mut others = Vec::new();
    let (_root, top) = parse(settings)?;
    let hooks = top.object_value("hooks");
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
    let plugins = top.object_value(PLUGINS);
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

/// The name of the setting that switches off all hooks, if it is true.
pub fn hooks_off(settings: &str) -> anyhow::Result<Option<&'static str>> {
    let (_root, top) = parse(settings)?;
    let off = top.get(OFF).and_then(|it| it.value()?.as_boolean_lit());
    Ok(off.filter(CstBooleanLit::value).map(|_| OFF))
}

pub const OFF: &str = "disableAllHooks";
pub const PLUGINS: &str = "enabledPlugins";

/// The plugins that the user's settings name.
pub fn plugins() -> Vec<String> {
    let settings = super::user_settings().ok();
    let text = settings.and_then(|path| files::read_text(&path, SMALL_MAX).ok());
    let settings = serde_json::from_str(&text.unwrap_or_default());
    let settings: serde_json::Value = settings.unwrap_or_default();
    let plugins = settings[PLUGINS].as_object();
    plugins.map_or_else(Vec::new, |plugins| plugins.keys().cloned().collect())
}
