//! Checks whether the agent may call the tools of our MCP server, and not only whether it is listed.

use super::host::{Hooks, plugin_is_on, settings_unread};
use super::{Diagnosis, Examination};
use crate::config::provider;
use crate::host::{Listed, Permission, READING_TOOLS, REMEMBER};
use crate::install::{self, InstallRecord};

pub fn tools_not_allowed(exam: &Examination) -> Option<Diagnosis> {
    let tools = Tools::find(exam)?;
    if tools.is_refused() || tools.permission == Permission::Allowed {
        return None;
    }
    let client = tools.hooks.place.client;
    let evidence = client.permission_line(tools.permission);
    if tools.of_plugin {
        let rules = READING_TOOLS.iter().map(|it| (client.rule)(it, true));
        let rules: Vec<_> = rules.map(|rule| format!("\"{rule}\"")).collect();
        let path = tools.hooks.place.settings.display();
        return Diagnosis::advised(
            format!(
                "a plugin cannot allow its own tools; to allow them, add to \"permissions\" in {path}: \"allow\": [{}]",
                rules.join(", ")
            ),
            evidence,
        );
    }
    match tools.permission {
        Permission::Denied => Diagnosis::advised(
            "remove that rule if the agent shall search its memory".to_owned(),
            evidence,
        ),
        _ => Diagnosis::cured_by(
            format!("{} --allow-tools", tools.hooks.install(exam)),
            evidence,
        ),
    }
}

/// The agent is to write the memory, but may not: then it is not asked to.
pub fn agent_not_asked(exam: &Examination) -> Option<Diagnosis> {
    if !provider::is_agent(&exam.home) {
        return None;
    }
    let tools = Tools::find(exam)?;
    let client = tools.hooks.place.client;
    let root = install::project_root().ok();
    let may = client.tool_permission(root.as_deref(), &[REMEMBER], tools.of_plugin);
    let (title, rule) = (client.host.title, (client.rule)(REMEMBER, tools.of_plugin));
    let why = match may {
        Permission::Allowed => return None,
        Permission::Asked => format!("{title} would ask before each call of `{REMEMBER}`"),
        Permission::Denied => format!("the permission rules of {title} deny `{REMEMBER}`"),
    };
    let evidence = format!(
        "the coding agent is to write the memory, but is not asked to: {why}; all turns are derived offline"
    );
    if tools.of_plugin || may == Permission::Denied {
        let path = tools.hooks.place.settings.display();
        let advice = format!("allow \"{rule}\" under \"permissions\" in {path}");
        return Diagnosis::advised(advice, evidence);
    }
    let cure = format!("{} --provider agent", tools.hooks.install(exam));
    Diagnosis::cured_by(cure, evidence)
}

/// A line for a user who did not want the tools to be allowed.
pub fn tools_refused(exam: &Examination) -> Option<String> {
    let tools = Tools::find(exam)?;
    let line = tools.hooks.place.client.permission_line(tools.permission);
    tools
        .is_refused()
        .then(|| format!("{line}; you chose this, and `foreword install --allow-tools` changes it"))
}

/// Whether the agent may use the tools of our server that only read.
struct Tools {
    hooks: Hooks,
    of_plugin: bool,
    permission: Permission,
    said_no: bool,
}

impl Tools {
    /// Whether the user said no to allowing the tools.
    fn is_refused(&self) -> bool {
        self.said_no && self.permission == Permission::Asked
    }

    /// None if no server of ours is known to the host, or the host does not read its settings.
    fn find(exam: &Examination) -> Option<Tools> {
        let hooks = Hooks::find(exam)?;
        let is_listed = || matches!(install::listed(&hooks.place), Ok(Listed::Ours(_)));
        let of_plugin = !hooks.any();
        if settings_unread(exam).is_some() {
            return None;
        }
        if of_plugin && !plugin_is_on(exam) || !of_plugin && !is_listed() {
            return None;
        }
        let client = hooks.place.client;
        let root = install::project_root().ok();
        let record = InstallRecord::load(&exam.home, &hooks.place);
        Some(Tools {
            permission: client.tool_permission(root.as_deref(), READING_TOOLS, of_plugin),
            said_no: record.is_some_and(|it| it.refused),
            hooks,
            of_plugin,
        })
    }
}
