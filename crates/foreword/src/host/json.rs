//! Adds entries to the user's JSON files by inserting text, so that every byte that was there stays.
//!
//! The place of an insertion comes from a syntax tree, its layout from the file itself: a list on
//! one line stays on one line, and a file with tabs gets tabs.

use std::ops::Range;

use anyhow::{Context as _, bail};
use jsonc_parser::ParseOptions;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstNode, CstObject, CstRootNode};

/// The value of a JSON text; none if it cannot be parsed.
#[cfg(test)]
pub fn value(text: &str) -> Option<serde_json::Value> {
    parse_value(text).ok().map(Into::into)
}

/// Whether a JSON object has no keys.
pub fn is_empty(text: &str) -> anyhow::Result<bool> {
    Ok(parse(text)?.1.properties().is_empty())
}

pub fn string(node: &CstNode) -> Option<String> {
    node.as_string_lit()?.decoded_value().ok()
}

/// The syntax tree of a file, and the object in it; an empty file has an empty one.
pub fn parse(text: &str) -> anyhow::Result<(CstRootNode, CstObject)> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let root = CstRootNode::parse(text, &grammar()).map_err(broken)?;
    let top = root.object_value().context(NO_OBJECT)?;
    Ok((root, top))
}

/// Why a program that reads plain JSON does not accept this file, with the line; none if it does. An
/// empty file is accepted.
pub fn not_plain_json(text: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return None;
    }
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    let line = error.line();
    let from_error = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let from_error = from_error.get(error.column().saturating_sub(1)..);
    Some(if from_error.is_some_and(|it| it.starts_with('/')) {
        format!("line {line} has a comment")
    } else if from_error.is_some_and(|it| it.starts_with(['}', ']'])) {
        format!("there is a comma before the bracket in line {line}")
    } else {
        format!("line {line} is not valid JSON ({error})")
    })
}

const NO_OBJECT: &str =
    "this file does not hold a JSON object; correct it first; nothing was changed";

/// Changes a file by the insertions that `insert` returns for its object.
pub fn insert_into(
    text: &str,
    insert: impl Fn(&JsonPage<'_>, &Object<'_>) -> anyhow::Result<Vec<Insertion>>,
) -> anyhow::Result<String> {
    if text.trim().is_empty() {
        return Ok(insert_into("{}", insert)? + "\n");
    }
    let Value::Object(top) = parse_value(text)? else {
        bail!(NO_OBJECT);
    };
    let mut insertions = insert(&JsonPage::new(text, &top), &top)?;
    insertions.sort_by_key(|(at, _)| *at);
    let mut changed = String::new();
    let mut from = 0;
    for (at, insertion) in insertions {
        changed.push_str(&text[from..at]);
        changed.push_str(&insertion);
        from = at;
    }
    Ok(changed + &text[from..])
}

fn parse_value(text: &str) -> anyhow::Result<Value<'_>> {
    let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &grammar());
    let value = parsed.map_err(broken)?.value;
    value.context("this file is empty")
}

fn broken(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("this file is not valid JSON: {error}; correct it first; nothing was changed")
}

/// JSON with comments and trailing commas, which people use in settings. All else is an error.
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

pub fn indent(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

/// A text to insert, with its byte offset.
pub type Insertion = (usize, String);

/// A JSON file and the layout that its author chose: line ends and indentation.
pub struct JsonPage<'a> {
    text: &'a str,
    newline: &'static str,
    unit: String,
}

/// The elements of an object or an array, by their byte offsets.
pub struct List {
    /// The text between the brackets.
    inner: Range<usize>,
    last: Option<Range<usize>>,
    /// Whether each element is on its own line.
    pub lines: bool,
}

impl<'a> JsonPage<'a> {
    pub fn new(text: &'a str, top: &Object<'_>) -> JsonPage<'a> {
        let mut page = JsonPage {
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

    /// The elements of an object or an array.
    pub fn list(&self, of: &impl Ranged, elements: &[impl Ranged], lines_if_empty: bool) -> List {
        let inner = of.start() + 1..of.end() - 1;
        let last = elements.last().map(|it| it.start()..it.end());
        let lines = match &last {
            Some(last) => {
                // Line breaks within the last element do not count.
                let around = [inner.start..last.start, last.end..inner.end];
                around.into_iter().any(|it| self.text[it].contains('\n'))
            }
            None => lines_if_empty || self.text[inner.clone()].contains('\n'),
        };
        List { inner, last, lines }
    }

    /// The insertions that add elements at the end of a list.
    pub fn add(&self, list: &List, elements: &[String]) -> Vec<Insertion> {
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

    /// The insertion that adds the first elements to an empty list, after any comments in it.
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

    /// The white space before `at` on its line; empty if there is anything else.
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

    /// The end of the line at `at` if only a comment follows on it, so that the comment stays beside
    /// its element; else `at`.
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

/// A line as it is joined with the next one: after a comma follows a space.
fn spaced(line: &str) -> String {
    let space = if line.ends_with(',') { " " } else { "" };
    format!("{line}{space}")
}
