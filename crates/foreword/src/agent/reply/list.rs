//! The items of a list, however the model wrote it down.
//!
//! The prompt asks for one child element per item. Without any children each line is an
//! item, without its bullet; where items are single words or paths, commas part them too.

use super::scan::{self, Form};

/// `separators` part items that have no tags of their own.
pub fn items<'a>(content: &'a str, child: &'static str, separators: &[char]) -> Vec<&'a str> {
    let children = scan::pieces(content, &[child, "item"]);
    let children = children.iter().filter(|piece| piece.form == Form::Open);
    let mut items: Vec<&str> = children.map(|piece| piece.content).collect();
    if items.is_empty() {
        items = content.split(separators).map(without_bullet).collect();
    }
    let items = items.into_iter().map(str::trim);
    items.filter(|item| !item.is_empty()).collect()
}

/// A line without what marks it as an item.
pub fn without_bullet(line: &str) -> &str {
    let line = line.trim();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => line.strip_prefix(['-', '*', '•', '+', '–']),
        1 | 2 => line[digits..].strip_prefix(['.', ')']),
        _ => None,
    };
    let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(' '));
    rest.map_or(line, str::trim_start)
}
