//! Claude Code's permission rules about the tools of our MCP server.
//!
//! Claude Code asks the user before it calls a tool of an MCP server, and refuses the call where
//! nobody can be asked, unless a rule in `permissions.allow` names the tool. Rules are inserted and
//! removed as text, like the hooks in `settings`.

use anyhow::bail;
use jsonc_parser::ast::Value;
use jsonc_parser::cst::CstArray;

use crate::host::Permission;
use crate::host::json::{indent, insert_into, parse, string};

const PERMISSIONS: &str = "permissions";
const ALLOW: &str = "allow";

/// Our server, as rules name it: listed by `install`, and as part of the plugin.
const SERVER: &str = "mcp__foreword";
const PLUGIN_SERVER: &str = "mcp__plugin_foreword_foreword";

/// The rule that allows a tool of the server that `install` lists, or of the plugin's.
pub fn rule(tool: &str, of_plugin: bool) -> String {
    let server = if of_plugin { PLUGIN_SERVER } else { SERVER };
    format!("{server}__{tool}")
}

/// The settings with these rules added to those that allow something.
pub fn insert(settings: &str, rules: &[String]) -> anyhow::Result<String> {
    if rules.is_empty() {
        return Ok(settings.to_owned());
    }
    let rules: Vec<String> = rules.iter().map(|rule| format!("\"{rule}\"")).collect();
    let allow = format!("\"{ALLOW}\": [\n{}\n]", indent(&rules.join(",\n")));
    insert_into(settings, |page, top| {
        let top_list = page.list(top, &top.properties, true);
        Ok(match top.get(PERMISSIONS).map(|it| &it.value) {
            None => {
                let permissions = format!("\"{PERMISSIONS}\": {{\n{}\n}}", indent(&allow));
                page.add(&top_list, &[permissions])
            }
            Some(Value::Object(permissions)) => {
                let list = page.list(permissions, &permissions.properties, top_list.lines);
                match permissions.get(ALLOW).map(|it| &it.value) {
                    None => page.add(&list, std::slice::from_ref(&allow)),
                    Some(Value::Array(allowed)) => {
                        let list = page.list(allowed, &allowed.elements, list.lines);
                        page.add(&list, &rules)
                    }
                    Some(_) => {
                        bail!("\"{PERMISSIONS}.{ALLOW}\" is not a list; nothing was changed")
                    }
                }
            }
            Some(_) => bail!("\"{PERMISSIONS}\" is not an object; nothing was changed"),
        })
    })
}

/// The settings without these rules, and without the brackets that only held them.
pub fn remove(settings: &str, rules: &[String]) -> anyhow::Result<String> {
    let (root, top) = parse(settings)?;
    let Some(permissions) = top.object_value(PERMISSIONS) else {
        return Ok(settings.to_owned());
    };
    let Some(allowed) = permissions.array_value(ALLOW) else {
        return Ok(settings.to_owned());
    };
    let elements = allowed.elements().into_iter();
    let ours = elements.filter(|it| string(it).is_some_and(|rule| rules.contains(&rule)));
    let ours: Vec<_> = ours.collect();
    if ours.is_empty() {
        return Ok(settings.to_owned());
    }
    for element in ours {
        element.remove();
    }
    if allowed.elements().is_empty()
        && let Some(property) = permissions.get(ALLOW)
    {
        property.remove();
    }
    if permissions.properties().is_empty()
        && let Some(property) = top.get(PERMISSIONS)
    {
        property.remove();
    }
    Ok(root.to_string())
}

/// What the rules of one settings file say about a tool; none if they do not name it. A rule that
/// denies a tool, or has the user asked, wins over one that allows it.
pub fn permission(settings: &str, rule: &str) -> anyhow::Result<Option<Permission>> {
    let (_root, top) = parse(settings)?;
    let Some(permissions) = top.object_value(PERMISSIONS) else {
        return Ok(None);
    };
    let names_it = |list: CstArray| {
        let mut rules = list.elements().into_iter().filter_map(|it| string(&it));
        rules.any(|it| covers(&it, rule))
    };
    let lists = [
        ("deny", Permission::Denied),
        ("ask", Permission::Asked),
        (ALLOW, Permission::Allowed),
    ];
    let mut lists = lists.into_iter().filter_map(|(name, permission)| {
        let named = permissions.array_value(name).is_some_and(names_it);
        named.then_some(permission)
    });
    Ok(lists.next())
}

/// Whether a rule is about this tool: it names the tool, its server, or all tools of the server.
fn covers(rule: &str, tool: &str) -> bool {
    let server = tool.rsplit_once("__").map_or(tool, |(server, _)| server);
    rule == tool || rule == server || rule.strip_suffix("__*") == Some(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_rules_are_put_in_and_taken_out_to_the_byte() {
        let rules = [rule("search", false), rule("recall", false)];
        for before in [
            "{\n  \"a\": 1\n}\n",
            "{\"a\":1}",
            "{\n\t\"permissions\": {\n\t\t\"deny\": [\"Read\"]\n\t}\n}\n",
            "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls:*)\"\n    ]\n  }\n}\n",
            "{\"permissions\": {\"allow\": [\"Bash(ls:*)\",   \"Read\"]}, \"b\": [ 1,2 ]}",
        ] {
            let written = insert(before, &rules).unwrap();
            let value: serde_json::Value = serde_json::from_str(&written).unwrap();
            let allowed = value["permissions"]["allow"].as_array().unwrap();
            assert!(rules.iter().all(|it| allowed.contains(&it.as_str().into())));
            assert_eq!(remove(&written, &rules).unwrap(), before, "{written}");
        }
        assert!(insert("{\"permissions\": 1}", &rules).is_err());
        assert!(insert("{\"permissions\": {\"allow\": \"x\"}}", &rules).is_err());
    }

    #[test]
    fn a_rule_names_a_tool_its_server_or_all_of_them_and_a_denial_wins() {
        let search = rule("search", false);
        let about = |settings: &str| permission(settings, &search).unwrap();
        for allow in ["mcp__foreword__search", "mcp__foreword", "mcp__foreword__*"] {
            let settings = format!("{{\"permissions\": {{\"allow\": [\"{allow}\"]}}}}");
            assert_eq!(about(&settings), Some(Permission::Allowed), "{allow}");
        }
        let other = "{\"permissions\": {\"allow\": [\"mcp__forewords__search\", \"Bash\"]}}";
        assert_eq!(about(other), None);
        let denied = "{\"permissions\": {\"allow\": [\"mcp__foreword\"], \"deny\": [\"mcp__foreword__search\"]}}";
        assert_eq!(about(denied), Some(Permission::Denied));
        assert_eq!(about("{}"), None);
    }
}
