//! Matches projects and paths with the patterns that the user excludes from the memory.
//!
//! A pattern without `*` matches a name, or a folder and everything below it; `*` matches
//! any characters, including slashes.

/// Whether one of the patterns matches this project key or path.
pub fn covers(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| one_covers(pattern, name))
}

/// A path without `.` and `..`, resolved from its text alone, without the file system.
pub fn straight(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty()) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn one_covers(pattern: &str, name: &str) -> bool {
    let pattern = pattern.trim_end_matches('/');
    if !pattern.contains('*') {
        return name == pattern
            || name
                .strip_prefix(pattern)
                .is_some_and(|rest| rest.starts_with('/'));
    }
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{one_covers, straight};

    #[test]
    fn a_detour_leads_to_the_same_path() {
        assert_eq!(straight("/a/src/../private/./x"), "/a/private/x");
        assert_eq!(straight("/../x"), "/../x");
        assert_eq!(straight("a/b"), "a/b");
    }

    #[test]
    fn a_pattern_covers_a_folder_a_name_or_what_its_stars_allow() {
        for (pattern, name, expected) in [
            ("/srv/client", "/srv/client", true),
            ("/srv/client/", "/srv/client/app", true),
            ("/srv/client", "/srv/client2", false),
            ("github.com/acme/*", "github.com/acme/pay", true),
            ("github.com/acme/*", "github.com/other/pay", false),
            ("*/secrets/*", "/srv/app/secrets/a.txt", true),
            ("*.sql", "/srv/dump.sql", true),
            ("*.sql", "/srv/dump.sql.txt", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*", "", true),
        ] {
            assert_eq!(one_covers(pattern, name), expected, "{pattern} {name}");
        }
    }
}
