//! Connects a host, by adding our hooks to its settings, and disconnects it again.
//!
//! The settings file belongs to the user: other keys, their order, comments and white space stay as
//! they are, and a file that cannot be parsed is not touched. The host's row in `host` knows the form
//! of its settings and which entries are ours. `skills` writes the files of `/summarize` and the
//! other skills, `file` reads and replaces a file, `local_models` finds models that run on this machine,
//! and `sentence_model` installs the model for search by meaning.
//!
//! What an install did is recorded in the data directory until the uninstall, in one file for each
//! settings file, since the user's settings and those of several projects can all be connected. By
//! the name of the file, a hook of the plugin also sees that hooks from the settings run for the same
//! session, and then does nothing. Only `uninstall` reads the content.

mod file;
pub mod local_models;
pub mod sentence_model;
pub mod skills;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use foreword_core::files::{self, SMALL_MAX};
use foreword_core::model::Millis;
use foreword_core::text::{if_there, modified_at};
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::host::{
    self, Client, InstallScope, Listed, SettingsPlace, is_called_foreword, is_same_file,
};
pub use file::SettingsFile;

/// Whether a host's settings run this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    Connected,
    /// Some hooks are missing or point at another program.
    Partly(Vec<String>),
    /// The hooks are there, but the host does not read the file, for this reason.
    Unread(String),
    None,
}

/// The settings file of the project that the current directory is in.
pub fn project_place(client: &'static Client) -> anyhow::Result<SettingsPlace> {
    let settings = client.settings_of(&project_root()?);
    // In the home directory, the project's settings file is that of the user.
    let user = client.user_place()?;
    let folder = |path: &Path| std::fs::canonicalize(path.parent()?).ok();
    if user.settings == settings
        || folder(&user.settings).is_some_and(|it| folder(&settings) == Some(it))
    {
        return Ok(user);
    }
    Ok(SettingsPlace {
        client,
        scope: InstallScope::Project,
        settings,
    })
}

/// The top of the working tree that the current directory is in, else the directory itself.
pub fn project_root() -> anyhow::Result<PathBuf> {
    let dir = std::env::current_dir().context("the current directory is gone")?;
    let place = foreword_core::project::resolve(&dir, &crate::home::project_rules(false));
    Ok(place.root.unwrap_or(dir))
}

/// The path of this program that stays valid after an upgrade: the link on the PATH if there is one,
/// since a package manager moves the file and keeps the link.
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

/// The settings with each of our hooks in them once, running `program`. `clean` is the same settings
/// without our hooks.
pub fn connect(
    client: &Client,
    settings: &str,
    clean: &str,
    program: &Path,
) -> anyhow::Result<String> {
    match connection(client, settings, program)? {
        Connection::Connected | Connection::Unread(_) => Ok(settings.to_owned()),
        Connection::Partly(_) | Connection::None => (client.insert_hooks)(clean, program),
    }
}

/// The settings after an uninstall: the file as it was before the install, byte for byte, if it was
/// not changed since; else the current file without our entries. None if there was no file before
/// the install and nothing else is in it.
pub fn without_us(
    client: &Client,
    settings: &str,
    record: Option<&InstallRecord>,
) -> anyhow::Result<Option<String>> {
    let original = record.and_then(InstallRecord::original);
    if let Some(original) = &original
        && record.is_some_and(|record| record.written == settings)
    {
        return Ok(original.clone());
    }
    let rest = (client.remove_hooks)(settings)?;
    let rest = (client.remove_rules)(&rest, record.map_or(&[], |it| &it.rules))?;
    let is_empty = host::is_empty(&rest)?;
    Ok((!is_empty || original != Some(None)).then_some(rest))
}

/// The settings with our rules as the user decided about each of them, and the rules that an install
/// added. Without a decision about a rule, it stays if an install added it and the user did not
/// take it out of the settings as they were `before`. Rules of the user stay in any case.
pub fn permit(
    client: &Client,
    before: &str,
    settings: &str,
    decisions: &[(String, Option<bool>)],
    record: Option<&InstallRecord>,
) -> anyhow::Result<(String, Vec<String>)> {
    let earlier = record.map_or(&[][..], |it| &it.rules);
    // A rule of the user about the same tool counts, too, even if it denies it.
    let is_in = |text: &str, rule: &String| matches!((client.permission)(text, rule), Ok(Some(_)));
    // Settings without our hooks are a new file, from which nobody took anything.
    let is_new = (client.programs)(before)?.iter().all(|it| it.1.is_empty());
    let is_wanted = |(rule, decision): &(String, Option<bool>)| {
        decision.unwrap_or_else(|| earlier.contains(rule) && (is_new || is_in(before, rule)))
    };
    let wanted = decisions.iter().filter(|it| is_wanted(it));
    let wanted: Vec<String> = wanted.map(|(rule, _)| rule.clone()).collect();
    let unwanted = only(earlier, |rule| !wanted.contains(rule));
    let settings = (client.remove_rules)(settings, &unwanted)?;
    let missing = only(&wanted, |rule| !is_in(&settings, rule));
    let settings = (client.insert_rules)(&settings, &missing)?;
    let ours = only(&wanted, |rule| {
        missing.contains(rule) || earlier.contains(rule)
    });
    Ok((settings, ours))
}

fn only(rules: &[String], is_wanted: impl Fn(&String) -> bool) -> Vec<String> {
    let rules = rules.iter().filter(|it| is_wanted(it));
    rules.cloned().collect()
}

/// Whether the settings run all our hooks with this program.
pub fn connection(client: &Client, settings: &str, program: &Path) -> anyhow::Result<Connection> {
    let mut problems = Vec::new();
    let mut found = 0;
    if let Some(switch) = (client.hooks_off)(settings)? {
        problems.push(format!("{switch} is true, so no hook runs"));
    }
    for (event, programs) in (client.programs)(settings)? {
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
        (_, false) => Connection::Partly(problems),
        (_, true) => match (client.unread)(settings) {
            Some(why) => Connection::Unread(why),
            None => Connection::Connected,
        },
    })
}

/// The file with the list of MCP servers that belongs to a settings file.
pub fn servers(settings: &SettingsPlace) -> anyhow::Result<SettingsPlace> {
    Ok(SettingsPlace {
        settings: std::path::absolute((settings.client.servers)(settings)?)?,
        ..settings.clone()
    })
}

/// The server that is listed under our name in the list that belongs to these settings.
pub fn listed(settings: &SettingsPlace) -> anyhow::Result<Listed> {
    let list = servers(settings)?;
    let file = SettingsFile::read(&list.settings, list.scope)?;
    (settings.client.listed)(&file.text.unwrap_or_default())
}

/// A list of MCP servers without ours; none if there was no file before the install and nothing else
/// is in it.
pub fn unlisted(
    client: &Client,
    list: &str,
    record: Option<&InstallRecord>,
) -> anyhow::Result<Option<String>> {
    let rest = (client.remove_server)(list)?;
    Ok((!(record.is_some() && host::is_empty(&rest)?)).then_some(rest))
}

/// The changes that one install made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallRecord {
    pub settings: PathBuf,
    /// The text of the settings after the install. If it is still the same, uninstall restores the
    /// backup.
    pub written: String,
    /// A copy of the settings without our entries; none if there was no file.
    pub backup: Option<PathBuf>,
    /// Folders that the install created, the innermost first.
    pub folders: Vec<PathBuf>,
    /// The permission rules that the install added.
    #[serde(default)]
    pub rules: Vec<String>,
    /// Whether the user said no to allowing the tools that only read.
    #[serde(default)]
    pub refused: bool,
}

fn record_path(home: &Home, place: &SettingsPlace) -> PathBuf {
    home.installs().join(place.mark())
}

impl InstallRecord {
    /// The time of the last install; none if there is no record.
    pub fn written_at(home: &Home, place: &SettingsPlace) -> Option<Millis> {
        modified_at(&std::fs::metadata(record_path(home, place)).ok()?)
    }

    /// Reads the record; none if it cannot be read, since our entries can be removed without it.
    pub fn load(home: &Home, place: &SettingsPlace) -> Option<InstallRecord> {
        let text = files::read(&record_path(home, place), SMALL_MAX).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub fn save(&self, home: &Home, place: &SettingsPlace) -> anyhow::Result<()> {
        let write = || {
            std::fs::create_dir_all(home.installs())?;
            let mut file = tempfile::NamedTempFile::new_in(home.installs())?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.persist(record_path(home, place))?;
            Ok::<_, anyhow::Error>(())
        };
        write().context("could not write the record of the install")
    }

    /// The settings before the install: `Some(None)` if there was no file, none if the backup is
    /// lost.
    pub fn original(&self) -> Option<Option<String>> {
        match &self.backup {
            Some(backup) => files::read_text(backup, SMALL_MAX).ok().map(Some),
            None => Some(None),
        }
    }
}

/// Removes the record of an install. From then on, hooks of the plugin do their work.
pub fn forget(home: &Home, place: &SettingsPlace) -> anyhow::Result<()> {
    let removed = if_there(std::fs::remove_file(record_path(home, place)));
    removed.context("could not remove the record of the install")?;
    // This succeeds only if it was the last record.
    let _ = std::fs::remove_dir(home.installs());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::CLIENTS;

    fn disconnect(settings: &str) -> anyhow::Result<String> {
        (CLIENTS[0].remove_hooks)(settings)
    }

    const PROGRAM: &str = "/opt/foreword";

    fn connected(settings: &str) -> String {
        reconnected(settings, PROGRAM)
    }

    fn reconnected(settings: &str, program: &str) -> String {
        let clean = disconnect(settings).unwrap();
        connect(&CLIENTS[0], settings, &clean, Path::new(program)).unwrap()
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

    /// The settings as the host reads them, without empty lists and objects under `hooks`.
    fn effective(settings: &str) -> serde_json::Value {
        let mut value = host::value(settings).unwrap();
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
            let is_read = (CLIENTS[0].unread)(before).is_none();
            let connection = connection(&CLIENTS[0], &written, Path::new(PROGRAM)).unwrap();
            assert_eq!(connection == Connection::Connected, is_read, "{written}");
            assert_eq!(
                matches!(connection, Connection::Unread(_)),
                !is_read,
                "{written}"
            );
            let mut rest = written.chars();
            let kept = before.chars().all(|it| rest.any(|other| other == it));
            assert!(kept, "something of {before:?} is gone:\n{written}");

            let edit = |text: &str| text.replace("\"a\"", "\"new\": [1,  2], \"a\"");
            let after = disconnect(&edit(&written)).unwrap();
            assert_eq!(effective(&after), effective(&edit(before)), "{after}");
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
            connection(&CLIENTS[0], &text, Path::new(PROGRAM)).unwrap(),
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
        let found = connection(&CLIENTS[0], &text, Path::new(PROGRAM)).unwrap();
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
            let refused = connect(&CLIENTS[0], broken, broken, Path::new(PROGRAM)).is_err();
            assert!(refused, "{broken}");
        }
    }
}
