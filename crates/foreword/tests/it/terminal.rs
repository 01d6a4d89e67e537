//! Captured text cannot control a terminal: Foreword prints no control characters, whatever a
//! session contained.

use crate::support::{Host, Sandbox};

/// Colours, a cleared screen, a changed title, a turned text, a bell.
const HOSTILE: &str =
    "red\u{1b}[31m\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}txt\u{2066}\u{9b}31m\u{feff}\rover\u{8}end";

fn is_clean(text: &str) -> bool {
    text.chars()
        .all(|it| it == '\n' || !foreword_core::text::is_unsafe(it))
}

#[test]
fn nothing_that_was_captured_reaches_the_terminal_as_it_was() {
    let sandbox = Sandbox::new();
    let project = sandbox.project(&format!("app{}", HOSTILE.replace('\u{7}', "")));
    let host = Host::new("s1", &project);
    sandbox.run_hook(
        "new",
        &project,
        &host.prompt(&format!("Fix hostile {HOSTILE}")),
    );
    sandbox.run_hook(
        "save",
        &project,
        &host.bash_failed(
            &format!("make {HOSTILE}"),
            &format!("Exit code 2\nerror: {HOSTILE}"),
        ),
    );
    sandbox.run_hook(
        "save",
        &project,
        &host.edit(
            &format!("src/{HOSTILE}.rs"),
            HOSTILE,
            &format!("new {HOSTILE}"),
        ),
    );
    sandbox.run_hook(
        "save",
        &project,
        &host.bash(&format!("make {HOSTILE}"), HOSTILE),
    );
    sandbox.run_hook(
        "summary",
        &project,
        &host.stop(&format!("Done {HOSTILE}\n\nNext steps:\n- {HOSTILE}")),
    );
    sandbox.hook("save", &project, HOSTILE.as_bytes());
    sandbox.drain();

    let mut commands: Vec<Vec<String>> = vec![
        vec!["status".into()],
        vec!["projects".into()],
        vec!["projects".into(), "--json".into()],
        vec!["dropped".into()],
        vec!["search".into(), "hostile".into(), "--all-projects".into()],
        vec![
            "search".into(),
            "hostile".into(),
            "--all-projects".into(),
            "--format".into(),
            "full".into(),
        ],
        vec![
            "search".into(),
            "hostile".into(),
            "--all-projects".into(),
            "--format".into(),
            "json".into(),
        ],
        vec![
            "search".into(),
            format!("nothing{HOSTILE}"),
            "--all-projects".into(),
        ],
        vec!["show".into(), format!("9999")],
        vec![
            "projects".into(),
            "rename".into(),
            HOSTILE.replace('\0', ""),
            "x".into(),
        ],
    ];
    for id in 1..=5 {
        commands.push(vec!["show".into(), id.to_string()]);
        commands.push(vec![
            "show".into(),
            id.to_string(),
            "--format".into(),
            "json".into(),
        ]);
    }
    let mut seen = String::new();
    for arguments in commands {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = sandbox.command(&arguments).output().unwrap();
        for printed in [output.stdout, output.stderr] {
            let printed = String::from_utf8(printed).unwrap();
            assert!(is_clean(&printed), "{arguments:?}: {printed:?}");
            seen += &printed;
        }
    }
    // The text itself is shown.
    assert!(seen.contains("red [31m"), "{seen}");

    let context = sandbox.run_hook(
        "context",
        &project,
        &Host::new("s2", &project).start("startup"),
    );
    let context: serde_json::Value = serde_json::from_str(&context).unwrap();
    assert!(is_clean(
        context["hookSpecificOutput"]["additionalContext"]
            .as_str()
            .unwrap()
    ));
}
