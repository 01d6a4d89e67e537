//! Our entry in Claude Code's list of MCP servers.
//!
//! The user's list is in `.claude.json`, where the host also keeps its own state, account and keys,
//! and which it often rewrites. So nothing of that file is copied or recorded: our entry is inserted
//! and removed as text, and the install record only holds whether there was a file before. A
//! project's list is `.mcp.json` in its top folder.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstObject, CstObjectProp, CstRootNode};

use super::CONFIG_DIR;
use crate::host::json::{JsonPage, apply, indent, parse, parse_value, string};
use crate::host::{InstallScope, Listed, SettingsPlace, is_called_foreword, is_same_file, set};

const SERVERS: &str = "mcpServers";

/// The path of the list that belongs to a settings file.
pub fn place(settings: &SettingsPlace) -> anyhow::Result<PathBuf> {
    let folder = settings
        .settings
        .parent()
        .context("the settings file is in no folder")?;
    Ok(match settings.scope {
        InstallScope::User if set(CONFIG_DIR).is_some() => folder.join(".claude.json"),
        InstallScope::User => set("HOME").context("HOME is not set")?.join(".claude.json"),
        InstallScope::Project => {
            let top = folder
                .parent()
                .context("the settings file is in no folder")?;
            top.join(".mcp.json")
        }
    })
}

/// The server that is listed under our name.
pub fn listed(list: &str) -> anyhow::Result<Listed> {
    Ok(match entry(&parse(list)?) {
        None => Listed::Nobody,
        Some(entry) => ours(&entry).map_or(Listed::Another, Listed::Ours),
    })
}

/// The list with our server in it once, running `program`.
pub fn connect(list: &str, program: &Path) -> anyhow::Result<String> {
    let root = parse(list)?;
    match entry(&root) {
        Some(entry) => match ours(&entry) {
            Some(command) if is_same_file(Path::new(&command), program) => Ok(list.to_owned()),
            Some(_) => insert_server(&disconnect(list)?, program),
            None => {
                bail!("another server is called foreword; rename it first; nothing was changed")
            }
        },
        None => insert_server(list, program),
    }
}

/// A list of MCP servers with ours added. It must not hold ours yet.
fn insert_server(text: &str, program: &Path) -> anyhow::Result<String> {
    if text.trim().is_empty() {
        return Ok(insert_server("{}", program)? + "\n");
    }
    let value = parse_value(text)?;
    let Value::Object(top) = &value else {
        bail!("this file does not hold a JSON object; correct it first; nothing was changed");
    };
    let program = program.to_str();
    let program = program.context("the path of this program is not valid UTF-8")?;
    let program = serde_json::Value::from(program);
    let entry = format!(
        "\"foreword\": {{\n  \"type\": \"stdio\",\n  \"command\": {program},\n  \"args\": [\"mcp\"]\n}}"
    );
    let page = JsonPage::new(text, top);
    let top_list = page.list(top.range(), top.properties.iter().map(Ranged::range), true);
    let mut properties = top.properties.iter();
    let servers = properties.find(|it| it.name.as_str() == "mcpServers");
    let insertions = match servers.map(|property| &property.value) {
        None => {
            let servers = format!("\"mcpServers\": {{\n{}\n}}", indent(&entry));
            page.add(&top_list, &[servers])
        }
        Some(Value::Object(servers)) => {
            let entries = servers.properties.iter().map(Ranged::range);
            let list = page.list(servers.range(), entries, top_list.lines);
            page.add(&list, &[entry])
        }
        Some(_) => bail!("\"mcpServers\" is not an object; nothing was changed"),
    };
    Ok(apply(text, insertions))
}

/// The list without our server.
pub fn disconnect(list: &str) -> anyhow::Result<String> {
    let root = parse(list)?;
    let Some(entry) = entry(&root).filter(|entry| ours(entry).is_some()) else {
        return Ok(list.to_owned());
    };
    entry.remove();
    // If there was no list before, ours was added as the last property. An empty list elsewhere
    // was there before and stays.
    let top = root.object_value();
    let last = top.and_then(|top| top.properties().pop());
    let emptied = last.filter(|last| {
        let servers = entries(&root);
        last.name()
            .is_some_and(|name| name.decoded_value().is_ok_and(|it| it == SERVERS))
            && servers.is_some_and(|it| it.properties().is_empty())
    });
    if let Some(servers) = emptied {
        servers.remove();
    }
    Ok(root.to_string())
}

/// The entry that has our name.
fn entry(list: &CstRootNode) -> Option<CstObjectProp> {
    entries(list)?.get("foreword")
}

fn entries(list: &CstRootNode) -> Option<CstObject> {
    list.object_value()?.object_value(SERVERS)
}

/// The program that an entry runs, if it is ours.
fn ours(entry: &CstObjectProp) -> Option<String> {
    let entry = entry.object_value()?;
    let command = string(&entry.get("command")?.value()?)?;
    let arguments = entry.array_value("args")?.elements();
    let [argument] = arguments.as_slice() else {
        return None;
    };
    let is_ours = is_called_foreword(Path::new(&command)) && string(argument)? == "mcp";
    is_ours.then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_entry_is_put_in_and_taken_out_to_the_byte() {
        let program = Path::new("/opt/foreword");
        for before in [
            "{}",
            "{\n  \"numStartups\": 4,\n  \"projects\": {\n    \"/a\": {}\n  }\n}",
            "{\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  },\n  \"a\": 1\n}\n",
            "{\n\t\"a\": [1,2]\n}\n",
            "{\"a\":1}",
            "{\n  \"mcpServers\": {},\n  \"a\": 1\n}",
        ] {
            let written = connect(before, program).unwrap();
            assert_eq!(connect(&written, program).unwrap(), written);
            let value: serde_json::Value = serde_json::from_str(&written).unwrap();
            assert_eq!(value["mcpServers"]["foreword"]["args"][0], "mcp");
            assert_eq!(disconnect(&written).unwrap(), before, "{written}");
            let moved = connect(&written, Path::new("/usr/foreword")).unwrap();
            assert_eq!(disconnect(&moved).unwrap(), before);
        }
        let taken = "{\"mcpServers\": {\"foreword\": {\"command\": \"mine\"}}}";
        assert!(connect(taken, program).is_err());
        assert_eq!(disconnect(taken).unwrap(), taken);
    }
}
