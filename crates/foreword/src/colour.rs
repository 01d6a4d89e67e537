//! Colours for people at a terminal.
//!
//! `--color` decides; else `NO_COLOR`, `CLICOLOR_FORCE` and `CLICOLOR`; else colours are used if
//! standard output is a terminal. Text for an agent and JSON never have any.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// Whether output has colours; set once, before the first output.
static IS_ON: OnceLock<bool> = OnceLock::new();

/// Sets by the value of `--color` whether output has colours.
pub fn choose(choice: &str) {
    let is_on = match choice {
        "always" => true,
        "never" => false,
        _ => wanted(
            |name| std::env::var(name).ok(),
            std::io::stdout().is_terminal(),
        ),
    };
    let _ = IS_ON.set(is_on);
}

/// Whether the environment and the terminal call for colours.
fn wanted(variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let set = |name| variable(name).filter(|it| !it.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    if set("CLICOLOR_FORCE").is_some_and(|it| it != "0") {
        return true;
    }
    let is_off = set("CLICOLOR").is_some_and(|it| it == "0");
    let is_dumb = set("TERM").is_some_and(|it| it == "dumb");
    is_terminal && !is_off && !is_dumb
}

pub fn is_on() -> bool {
    *IS_ON.get().unwrap_or(&false)
}

/// How a piece of text stands out.
#[derive(Debug, Clone, Copy)]
pub enum Style {
    /// The title of a page.
    Title,
    /// A number by which an item can be named.
    Number,
    /// Something that is read last: a date, the name of a field.
    Quiet,
    Error,
    Warning,
    Added,
    Removed,
}

const END: &str = "\x1b[0m";

impl Style {
    const ALL: [Style; 7] = [
        Style::Title,
        Style::Number,
        Style::Quiet,
        Style::Error,
        Style::Warning,
        Style::Added,
        Style::Removed,
    ];

    fn code(self) -> &'static str {
        match self {
            Style::Title => "\x1b[1m",
            Style::Number | Style::Warning => "\x1b[33m",
            Style::Quiet => "\x1b[2m",
            Style::Error | Style::Removed => "\x1b[31m",
            Style::Added => "\x1b[32m",
        }
    }
}

/// The text in this style, or as it is if colours are off. The text has no control characters.
pub fn paint(style: Style, text: &str) -> String {
    if !is_on() || text.is_empty() {
        return text.to_owned();
    }
    format!("{}{text}{END}", style.code())
}

/// Splits a text before its first code of ours: the text before it, the code, the text after it.
pub fn split_at_code(text: &str) -> Option<(&str, &'static str, &str)> {
    if !is_on() {
        return None;
    }
    let codes = Style::ALL.map(Style::code).into_iter().chain([END]);
    let first = codes.filter_map(|code| Some((text.find(code)?, code)));
    let (at, code) = first.min()?;
    Some((&text[..at], code, &text[at + code.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_before_the_terminal() {
        let wanted = |variables: &[(&str, &str)], is_terminal| {
            let value = |name: &str| {
                let found = variables.iter().find(|it| it.0 == name)?;
                Some(found.1.to_owned())
            };
            wanted(value, is_terminal)
        };
        assert!(wanted(&[], true));
        assert!(!wanted(&[], false));
        assert!(!wanted(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true));
        assert!(wanted(&[("NO_COLOR", "")], true));
        assert!(!wanted(&[("CLICOLOR", "0")], true));
        assert!(wanted(&[("CLICOLOR_FORCE", "1")], false));
        assert!(!wanted(&[("TERM", "dumb")], true));
    }
}
