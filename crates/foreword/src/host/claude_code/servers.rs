//! Our entry in Claude Code's list of MCP servers.
//!
//! The user's list is in `.claude.json`, where the host also keeps its own state, account and keys,
//! and which it often rewrites. So nothing of that file is copied or recorded: our entry is inserted
//! and removed as text, and the install record only holds whether there was a file before. A
//! project's list is `.mcp.json` in its top folder.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use jsonc_parser::ast::Value;
use jsonc_parser::cst::{CstObject, CstObjectProp};

use super::CONFIG_DIR;
use crate::host::json::{indent, insert_into, parse, string};
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
    let (_root, top) = parse(list)?;
    Ok(match entry(&top) {
        None => Listed::Nobody,
        Some(entry) => ours(&entry).map_or(Listed::Another, Listed::Ours),
    })
}

/// The list with our server in it once, running `program`.
pub fn connect(list: &str, program: &Path) -> anyhow::Result<String> {
    let (_root, top) = parse(list)?;
    match entry(&top) {
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
fn insert_server(list: &str, program: &Path) -> anyhow::Result<String> {
    let program = program.to_str();
    let program = program.context("the path of this program is not valid UTF-8")?;
    let program = serde_json::Value::from(program);
    let entry = format!(
        "\"foreword\": {{\n  \"type\": \"stdio\",\n  \"command\": {program},\n  \"args\": [\"mcp\"]\n}}"
    );
    insert_into(list, |page, top| {
        let top_list = page.list(top, &top.properties, true);
        Ok(match top.get(SERVERS).map(|property| &property.value) {
            None => {
                let servers = format!("\"{SERVERS}\": {{\n{}\n}}", indent(&entry));
                page.add(&top_list, &[servers])
            }
            Some(Value::Object(servers)) => {
                let servers = page.list(servers, &servers.properties, top_list.lines);
                page.add(&servers, std::slice::from_ref(&entry))
            }
            Some(_) => bail!("\"{SERVERS}\" is not an object; nothing was changed"),
        })
    })
}

/// The list without our server.
pub fn disconnect(list: &str) -> anyhow::Result<String> {
    let (root, top) = parse(list)?;
    let Some(entry) = entry(&top).filter(|entry| ours(entry).is_some()) else {
        return Ok(list.to_owned());
    };
    entry.remove();
    // If there was no list before, ours was added as the last property. An empty list elsewhere
    // was there before and stays.
    let emptied = top.properties().pop().filter(|last| {
        let servers = top.object_value(SERVERS);
        last.decoded_name().is_some_and(|it| it == SERVERS)
            && servers.is_some_and(|it| it.properties().is_empty())
    });
    if let Some(servers) = emptied {
        servers.remove();
    }
    Ok(root.to_string())
}

/// The entry that has our name.
fn entry(list: &CstObject) -> Option<CstObjectProp> {
    list.object_value(SERVERS)?.get("foreword")
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
