//! Blocks of a reply, and the observations and summaries made from them.

use foreword_core::model::{FileRole, Payload, TouchedFile};
use uuid::Uuid;

use super::*;
use crate::agent::reply;

fn event(number: i64, kind: EventKind, tool: &str, files: &[(&str, FileRole)]) -> Event {
    Event {
        id: Uuid::from_u128(u128::from(number.unsigned_abs())),
        key: number.to_string(),
        kind,
        host: "claude-code".into(),
        host_session_id: "s".into(),
        prompt_id: Some("p".into()),
        agent_id: None,
        tool_name: (!tool.is_empty()).then(|| tool.to_owned()),
        tool_use_id: None,
        cwd: None,
        project_dir: None,
        project: Some("/p".into()),
        root: Some("/p".into()),
        transcript_path: None,
        branch: None,
        commit: None,
        files: files
            .iter()
            .map(|(path, role)| TouchedFile {
                path: (*path).to_owned(),
                role: *role,
                size: Some(number.unsigned_abs()),
                mtime: Some(number * 10),
                hash: Some(format!("hash {number}")),
            })
            .collect(),
        payload: Payload::default(),
        at: number * 100,
    }
}

fn batch() -> Vec<Event> {
    let mut prompt = event(1, EventKind::Prompt, "", &[]);
    prompt.payload.prompt = Some("What is the origin?".to_owned());
    vec![
        prompt,
        event(
            2,
            EventKind::ToolUse,
            "Read",
            &[("/p/src/a.rs", FileRole::Read)],
        ),
        event(
            3,
            EventKind::ToolUse,
            "Edit",
            &[("/p/src/b.rs", FileRole::Modified)],
        ),
        event(4, EventKind::ToolUse, "Bash", &[]),
    ]
}

/// The observation with these fields.
fn found(fields: &[(&str, &str)]) -> ReplyBlock {
    let tags = |(name, content): &(&str, &str)| format!("<{name}>{content}</{name}>\n");
    let fields: String = fields.iter().map(tags).collect();
    let read = reply::read(&format!("<observation>\n{fields}</observation>"), TAGS);
    read.observations.into_iter().next().unwrap()
}

fn repaired(fields: &[(&str, &str)]) -> Observation {
    let batch = batch();
    let events: Vec<&Event> = batch.iter().collect();
    observation(&found(fields), &events, "seed".into()).unwrap()
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn a_good_observation_is_taken_as_it_is_and_completed_from_its_events() {
    let narrative = "It was `<`.\n\n  It is `<=` now, as in &amp;.";
    let fields = [
        ("type", "bugfix"),
        ("title", "Lease expiry fixed"),
        ("subtitle", "A dead worker's events are claimed again."),
        ("facts", "<fact>src/b.rs compares with <= now.</fact>"),
        ("narrative", narrative),
        ("concepts", "leases"),
        ("files_read", "src/a.rs"),
        ("files_modified", "src/b.rs"),
        ("events", "3, 4"),
    ];
    let file = |path: &str, role, number: u8| TouchedFile {
        path: path.into(),
        role,
        size: Some(number.into()),
        mtime: Some(i64::from(number) * 10),
        hash: Some(format!("hash {number}")),
    };
    assert_eq!(
        repaired(&fields),
        Observation {
            seed: "seed".into(),
            kind: ObservationType::Bugfix,
            title: "Lease expiry fixed".into(),
            subtitle: "A dead worker's events are claimed again.".into(),
            facts: strings(&["src/b.rs compares with <= now."]),
            fact_origins: vec![Origin::Agent],
            narrative: narrative.into(),
            concepts: strings(&["leases"]),
            files: vec![
                file("src/b.rs", FileRole::Modified, 3),
                file("src/a.rs", FileRole::Read, 2),
            ],
            origin: Origin::Agent,
            agent_id: None,
            events: vec![Uuid::from_u128(3), Uuid::from_u128(4)],
            at: 400,
            retracted: None,
        }
    );
}

#[test]
fn only_an_observation_that_says_nothing_is_lost() {
    let nothing = found(&[
        ("type", "bugfix"),
        ("title", " - "),
        ("concepts", "testing"),
        ("files", "src/a.rs"),
    ]);
    assert_eq!(observation(&nothing, &[], String::new()), None);

    let fields = [
        ("facts", "\n- The port is 8080."),
        ("narrative", "## Port\nThe server listens on 8080. More."),
        ("subtitle", "The server listens on 8080. And so on."),
    ];
    assert_eq!(repaired(&fields[..1]).title, "The port is 8080.");
    assert_eq!(repaired(&fields[..2]).title, "Port");
    assert_eq!(repaired(&fields).title, "The server listens on 8080");
}

#[test]
fn the_old_form_gives_a_title_and_a_narrative() {
    let text = "Sessions are kept in SQLite, not Redis. One file is enough.";
    let repaired = repaired(&[("type", "decision"), ("text", text)]);
    assert_eq!(repaired.title, "Sessions are kept in SQLite, not Redis");
    assert_eq!(repaired.narrative, text);
}

#[test]
fn a_type_is_read_generously_and_unknown_ones_are_discoveries() {
    let said = [
        "Bug-Fix",
        "FEATURE",
        " refactoring.",
        "[decision]",
        "how-it-works",
        "bugfix|feature",
        "",
    ];
    let kinds: Vec<&str> = said.iter().map(|said| kind(said).as_str()).collect();
    assert_eq!(
        kinds,
        [
            "bugfix",
            "feature",
            "refactor",
            "decision",
            "discovery",
            "discovery",
            "discovery"
        ]
    );
}

#[test]
fn what_is_too_long_is_cut_and_kept() {
    let sentence = "The worker holds one connection open for all of them. ";
    let facts: Vec<String> = (0..9)
        .map(|n| format!("{n}: {}\n", sentence.repeat(9)))
        .collect();
    let subtitle = "one two three four five six seven eight nine ten eleven twelve, ";
    let repaired = repaired(&[
        ("title", &format!("**{}**", "word ".repeat(30))),
        ("subtitle", &subtitle.repeat(3)),
        ("facts", &facts.concat()),
        ("narrative", &sentence.repeat(100)),
        ("concepts", "Hooks, hooks , #SQLite, a, b, c, d"),
    ]);
    assert_eq!(repaired.title.chars().count(), 75);
    assert!(repaired.title.ends_with("word…"), "{}", repaired.title);
    assert_eq!(repaired.subtitle.split(' ').count(), 24);
    assert_eq!(repaired.facts.len(), 7);
    assert_eq!(
        repaired.facts[0],
        format!("0: {}", sentence.repeat(5)).trim()
    );
    assert_eq!(repaired.narrative, sentence.repeat(60).trim());
    assert_eq!(repaired.concepts, ["hooks", "sqlite", "a", "b", "c"]);
}

#[test]
fn what_is_shown_in_a_list_has_no_control_characters() {
    let repaired = repaired(&[
        ("title", "Red\u{1b}[31m\nalert"),
        ("subtitle", "a\nb"),
        ("facts", "<fact>a\u{1b}[31m\n  b</fact>"),
        ("concepts", "a\u{202e}b"),
    ]);
    assert_eq!(repaired.title, "Red [31m alert");
    assert_eq!(repaired.subtitle, "a b");
    assert_eq!(repaired.facts, ["a [31m b"]);
    assert_eq!(repaired.concepts, ["a b"]);
}

#[test]
fn paths_are_relative_and_what_is_no_path_is_dropped() {
    let written = [
        "/p/src/a.rs",
        "./src/c.rs",
        "`src/d.rs:12`",
        "\"src/e.rs\"",
        "- src/f.rs:12-40",
        "src/g.rs#L7",
        "src\\h.rs",
        "/etc/hosts",
        "src/i.rs (new)",
        "src/",
        "Makefile",
        "none",
        "N/A",
        "",
        "https://example.com/a.rs",
        "no files were changed",
        "a\nb",
        "/p",
        ".",
        "-",
        "src/a.rs",
    ];
    let batch = batch();
    let events: Vec<&Event> = batch.iter().collect();
    assert_eq!(
        files::of_summary(&strings(&written), &events),
        [
            "src/a.rs",
            "src/c.rs",
            "src/d.rs",
            "src/e.rs",
            "src/f.rs",
            "src/g.rs",
            "src/h.rs",
            "/etc/hosts",
            "src/i.rs",
            "src",
            "Makefile",
        ]
    );
}

#[test]
fn a_plain_list_of_files_takes_their_roles_from_the_events() {
    let fields = [
        ("title", "Files"),
        ("files", "a.rs, /p/src/b.rs, src/unseen.rs"),
        ("files_read", "src/b.rs"),
    ];
    let files = repaired(&fields).files;
    let roles: Vec<(&str, FileRole)> = files.iter().map(|it| (it.path.as_str(), it.role)).collect();
    assert_eq!(
        roles,
        [
            ("src/a.rs", FileRole::Read),
            ("src/b.rs", FileRole::Modified),
            ("src/unseen.rs", FileRole::Read),
        ]
    );
    assert_eq!(files[2].hash, None);
}

#[test]
fn an_observation_is_trusted_as_little_as_the_least_of_its_events() {
    let origin_of = |numbers: &str| {
        let repaired = repaired(&[("title", "Origin"), ("events", numbers)]);
        (repaired.origin, repaired.events.len())
    };
    assert_eq!(origin_of("1"), (Origin::User, 1));
    assert_eq!(origin_of("1, 3"), (Origin::Agent, 2));
    assert_eq!(origin_of("2"), (Origin::Read, 1));
    // An edit proves what was done, whatever was read before.
    assert_eq!(origin_of("2, 3"), (Origin::Agent, 2));
    assert_eq!(origin_of("1, 3, 99"), (Origin::Read, 3));
    // The numbers name no event, so all tool uses count.
    assert_eq!(origin_of("0, 99"), (Origin::Read, 3));
    assert_eq!(origin_of(""), (Origin::Read, 3));
    let fetched = event(1, EventKind::ToolUse, "mcp__db__query", &[]);
    assert_eq!(of_events(&[&fetched]), Origin::Read);
}

#[test]
fn a_subagents_observation_is_its_own_only_if_all_of_it_is() {
    let mut batch = batch();
    batch[2].agent_id = Some("agent".into());
    batch[3].agent_id = Some("agent".into());
    let events: Vec<&Event> = batch.iter().collect();
    assert_eq!(agent_id(&events[2..]), Some("agent".into()));
    assert_eq!(agent_id(&events), None);
}

#[test]
fn a_summary_is_plain_text() {
    let completed = "A sentence of some length, so that it counts. ";
    let reply = format!(
        "<summary>
<request>## Fix the **login**
</request>
<investigated>- src/a.rs
- The `session` table

1. Logs.</investigated>
<learned>None.</learned>
<completed>{}</completed>
<files_read>/p/src/a.rs, none</files_read>
</summary>",
        completed.repeat(40)
    );
    let found = reply::read(&reply, TAGS).summary.unwrap();
    let batch = batch();
    let events: Vec<&Event> = batch.iter().collect();
    assert_eq!(
        summary(&found, &events),
        Some(Summary {
            request: "Fix the login".into(),
            investigated: "src/a.rs; The `session` table; Logs.".into(),
            completed: completed.repeat(32).trim().to_owned(),
            files_read: strings(&["src/a.rs"]),
            ..Summary::default()
        })
    );
    assert_eq!(summary(&ReplyBlock::default(), &events), None);
}
