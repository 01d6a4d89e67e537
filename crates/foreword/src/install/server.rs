//! Our entry in the host's list of MCP servers.
//!
//! The user's list is in `.claude.json`, where the host also keeps its own state, account
//! and keys, and which it writes all the time. So no copy of that file is made and nothing
//! of it is written down: our entry is put in and taken out by text, and only that the file
//! was not there before is remembered. A project's list is `.mcp.json` at its top.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use jsonc_parser::cst::{CstObject, CstObjectProp, CstRootNode};

use super::record::{Place, Record, Scope};
use super::{SettingsFile, insert, is_called_foreword, is_same_file, parse, string};

const SERVERS: &str = "mcpServers";

/// The list that goes with a settings file.
pub fn place(settings: &Place) -> anyhow::Result<Place> {
    let folder = settings.settings.parent().context("it has no folder")?;
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let list = match settings.scope {
        Scope::User if set("CLAUDE_CONFIG_DIR").is_some() => folder.join(".claude.json"),
        Scope::User => {
            let home = set("HOME").context("HOME is not set")?;
            PathBuf::from(home).join(".claude.json")
        }
        Scope::Project => {
            let top = folder.parent().context("it has no folder")?;
            top.join(".mcp.json")
        }
    };
    Ok(Place {
        scope: settings.scope,
        settings: std::path::absolute(list)?,
    })
}

/// Who is called foreword in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    Nobody,
    /// This program of ours.
    Ours(String),
    Another,
}

/// Who is listed beside these settings.
pub fn listed(settings: &Place) -> anyhow::Result<Listed> {
    let file = SettingsFile::read(&place(settings)?)?;
    let root = parse(&file.text.unwrap_or_default())?;
    Ok(match entry(&root) {
        None => Listed::Nobody,
        Some(entry) => ours(&entry).map_or(Listed::Another, Listed::Ours),
    })
}

/// The list with our server in it, once and as `program`.
pub fn connect(list: &str, program: &Path) -> anyhow::Result<String> {
    let root = parse(list)?;
    match entry(&root) {
        Some(entry) => match ours(&entry) {
            Some(command) if is_same_file(Path::new(&command), program) => Ok(list.to_owned()),
            Some(_) => insert::insert_server(&disconnect(list)?, program),
            None => {
                bail!("another server is called foreword; rename it first, nothing was changed")
            }
        },
        None => insert::insert_server(list, program),
    }
}

/// The list without us; none if there would be no file.
pub fn without_us(list: &str, record: Option<&Record>) -> anyhow::Result<Option<String>> {
    let rest = disconnect(list)?;
    let root = parse(&rest)?;
    let top = root.object_value();
    let empty = top.is_some_and(|top| top.properties().is_empty());
    Ok((!(empty && record.is_some())).then_some(rest))
}

fn disconnect(list: &str) -> anyhow::Result<String> {
    let root = parse(list)?;
    let Some(entry) = entry(&root).filter(|entry| ours(entry).is_some()) else {
        return Ok(list.to_owned());
    };
    entry.remove();
    // Where there was no list, ours was put at the end; one elsewhere was empty before.
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
