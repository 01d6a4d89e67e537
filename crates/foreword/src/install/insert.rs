//! Puts our hooks into a settings file by inserting text, and nothing else.
//!
//! Every byte that was there stays, in its order: a syntax tree says where, the
//! file's own layout says how. A list on one line stays on one line; a file with
//! tabs gets tabs. So whatever the user wrote is still theirs to recognise.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, bail};
use foreword_core::capture::Hook;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

/// Seconds after which the host gives up on a hook. Ours take milliseconds.
const TIMEOUT: u32 = 5;

/// The settings with all our hooks added. They must hold none of ours yet.
pub fn insert(settings: &str, program: &Path) -> anyhow::Result<String> {
    let program = program
        .to_str()
        .context("the path of this program is not valid UTF-8")?;
    if settings.trim().is_empty() {
        return Ok(insert("{}", Path::new(program))? + "\n");
    }
    let value = super::parse_value(settings)?;
    let Value::Object(top) = &value else {
        bail!("this file does not hold a JSON object; mend it first, nothing was changed");
    };
    let page = Page::new(settings, top);
    let mut insertions = Vec::new();
    let top_list = page.list(top.range(), top.properties.iter().map(Ranged::range), true);
    let hooks = top.properties.iter().find(|it| it.name.as_str() == "hooks");
    match hooks.map(|property| &property.value) {
        None => {
            let events = events().map(|(event, hook)| property(event, program, hook));
            let hooks = format!(
                "\"hooks\": {{\n{}\n}}",
                indent(&events.collect::<Vec<_>>().join(",\n"))
            );
            insertions.extend(page.add(&top_list, &[hooks]));
        }
        Some(Value::Object(hooks)) => {
            insertions = into_hooks(&page, hooks, top_list.lines, program)?;
        }
        Some(_) => bail!("\"hooks\" in settings.json is not an object; nothing was changed"),
    }
    Ok(apply(settings, insertions))
}

/// A list of MCP servers with ours added. It must not hold ours yet.
pub fn insert_server(text: &str, program: &Path) -> anyhow::Result<String> {
    if text.trim().is_empty() {
        return Ok(insert_server("{}", program)? + "\n");
    }
    let value = super::parse_value(text)?;
    let Value::Object(top) = &value else {
        bail!("this file does not hold a JSON object; mend it first, nothing was changed");
    };
    let program = program.to_str();
    let program = program.context("the path of this program is not valid UTF-8")?;
    let program = serde_json::Value::from(program);
    let entry = format!(
        "\"foreword\": {{\n  \"type\": \"stdio\",\n  \"command\": {program},\n  \"args\": [\"mcp\"]\n}}"
    );
    let page = Page::new(text, top);
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

/// Adds to the hooks that are there: to the lists of some events, and lists for the others.
fn into_hooks(
    page: &Page<'_>,
    hooks: &Object<'_>,
    lines: bool,
    program: &str,
) -> anyhow::Result<Vec<Insertion>> {
    let hooks_list = page.list(
        hooks.range(),
        hooks.properties.iter().map(Ranged::range),
        lines,
    );
    let mut insertions = Vec::new();
    let mut missing = Vec::new();
    for (event, hook) in events() {
        let present = hooks.properties.iter().find(|it| it.name.as_str() == event);
        match present.map(|property| &property.value) {
            None => missing.push(property(event, program, hook)),
            Some(Value::Array(groups)) => {
                let elements = groups.elements.iter().map(Ranged::range);
                let groups = page.list(groups.range(), elements, hooks_list.lines);
                insertions.extend(page.add(&groups, &[group(program, hook)]));
            }
            Some(_) => bail!("hooks.{event} in settings.json is not a list; nothing was changed"),
        }
    }
    if !missing.is_empty() {
        insertions.extend(page.add(&hooks_list, &missing));
    }
    Ok(insertions)
}

fn events() -> impl Iterator<Item = (&'static str, Hook)> {
    Hook::ALL
        .iter()
        .flat_map(|&hook| hook.host_events().iter().map(move |&event| (event, hook)))
}

/// `"Stop": [GROUP]`, laid out with two spaces; `Page::lay_out` fits it in.
fn property(event: &str, program: &str, hook: Hook) -> String {
    format!("\"{event}\": [\n{}\n]", indent(&group(program, hook)))
}

fn group(program: &str, hook: Hook) -> String {
    let program = serde_json::Value::from(program);
    let name = hook.name();
    let matcher = hook.matcher();
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

fn indent(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

/// Text and where it goes.
type Insertion = (usize, String);

fn apply(settings: &str, mut insertions: Vec<Insertion>) -> String {
    insertions.sort_by_key(|(at, _)| *at);
    let mut text = String::new();
    let mut from = 0;
    for (at, insertion) in insertions {
        text.push_str(&settings[from..at]);
        text.push_str(&insertion);
        from = at;
    }
    text.push_str(&settings[from..]);
    text
}

/// A file and the layout that its author chose.
struct Page<'a> {
    text: &'a str,
    newline: &'static str,
    unit: String,
}

/// An object or a list: what is between its brackets.
struct List {
    /// Behind the opening bracket, and before the closing one.
    inner: Range<usize>,
    last: Option<Range<usize>>,
    /// Each element on a line of its own.
    lines: bool,
}

impl<'a> Page<'a> {
    fn new(text: &'a str, top: &Object<'_>) -> Page<'a> {
        let mut page = Page {
            text,
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            unit: "  ".to_owned(),
        };
        let first = top
            .properties
            .first()
            .map(|it| page.margin(it.range().start));
        if let Some(margin) = first.filter(|margin| !margin.is_empty()) {
            page.unit = margin.to_owned();
        }
        page
    }

    fn list(
        &self,
        range: jsonc_parser::common::Range,
        elements: impl Iterator<Item = jsonc_parser::common::Range>,
        lines_if_empty: bool,
    ) -> List {
        let inner = range.start + 1..range.end - 1;
        let last = elements.last().map(|it| it.start..it.end);
        let lines = match &last {
            Some(last) => {
                // Not within the last element, which may be a block on its own.
                let around = [inner.start..last.start, last.end..inner.end];
                around.into_iter().any(|it| self.text[it].contains('\n'))
            }
            None => lines_if_empty || self.text[inner.clone()].contains('\n'),
        };
        List { inner, last, lines }
    }

    /// What it takes to add elements at the end of a list.
    fn add(&self, list: &List, elements: &[String]) -> Vec<Insertion> {
        let Some(last) = &list.last else {
            return vec![self.fill(list, elements)];
        };
        let mut margin = self.margin(last.start).to_owned();
        if margin.is_empty() && list.lines {
            margin = self.margin_of_line(list.inner.start) + &self.unit;
        }
        let text = self.lay_out(elements, list.lines, &margin);
        let gap = if list.lines {
            format!("{}{margin}", self.newline)
        } else {
            " ".to_owned()
        };
        let comma = self.text[last.end..list.inner.end]
            .char_indices()
            .find(|&(at, it)| it == ',' && self.is_bare(last.end, last.end + at))
            .map(|(at, _)| last.end + at);
        match comma {
            Some(comma) => vec![(self.line_end(comma + 1, list), gap + &text)],
            None => vec![
                (last.end, ",".to_owned()),
                (self.line_end(last.end, list), gap + &text),
            ],
        }
    }

    /// The first elements of an empty list, behind any comments in it.
    fn fill(&self, list: &List, elements: &[String]) -> Insertion {
        let inside = &self.text[list.inner.clone()];
        let at = list.inner.start + inside.trim_end().len();
        if !list.lines {
            return (at, self.lay_out(elements, false, ""));
        }
        let outer = self.margin_of_line(list.inner.start);
        let margin = format!("{outer}{}", self.unit);
        let text = self.lay_out(elements, true, &margin);
        let newline = self.newline;
        let tail = if self.text[at..list.inner.end].contains('\n') {
            String::new()
        } else {
            format!("{newline}{outer}")
        };
        (at, format!("{newline}{margin}{text}{tail}"))
    }

    fn lay_out(&self, elements: &[String], lines: bool, margin: &str) -> String {
        if !lines {
            let elements = elements.iter().map(|element| {
                let lines = element.lines().map(str::trim_start);
                lines.map(spaced).collect::<String>()
            });
            return elements.collect::<Vec<_>>().join(", ");
        }
        let break_line = format!("{}{margin}", self.newline);
        let lines = elements.join(",\n");
        let lines = lines.lines().map(|line| {
            let text = line.trim_start();
            self.unit.repeat((line.len() - text.len()) / 2) + text
        });
        lines.collect::<Vec<_>>().join(&break_line)
    }

    /// The white space in front of `at`, if nothing else is before it on its line.
    fn margin(&self, at: usize) -> &'a str {
        let line = self.text[..at].rfind('\n').map_or(0, |it| it + 1);
        let margin = &self.text[line..at];
        if line > 0 && margin.trim().is_empty() {
            margin
        } else {
            ""
        }
    }

    fn margin_of_line(&self, at: usize) -> String {
        let line = self.text[..at].rfind('\n').map_or(0, |it| it + 1);
        let rest = &self.text[line..];
        rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()].to_owned()
    }

    /// Where the line ends on which `at` is, if only comments are left on it: a remark
    /// stays beside what it is about.
    fn line_end(&self, at: usize, list: &List) -> usize {
        if !list.lines {
            return at;
        }
        let rest = &self.text[at..list.inner.end];
        let line = rest.lines().next().unwrap_or_default();
        let comment = line.trim();
        let whole = comment.starts_with("//")
            || (comment.starts_with("/*") && comment.find("*/") == Some(comment.len() - 2));
        if whole {
            at + line.trim_end().len()
        } else {
            at
        }
    }

    /// Whether `at` is outside of comments, given that `from` is.
    fn is_bare(&self, from: usize, at: usize) -> bool {
        let before = &self.text[from..at];
        let line = before.rfind('\n').map_or(before, |it| &before[it..]);
        let open = before.matches("/*").count() > before.matches("*/").count();
        !open && !line.contains("//")
    }
}

/// A line that is joined with the next: a comma wants a space behind it.
fn spaced(line: &str) -> String {
    let space = if line.ends_with(',') { " " } else { "" };
    format!("{line}{space}")
}
