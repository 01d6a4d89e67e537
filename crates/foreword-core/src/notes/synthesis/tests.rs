use std::collections::BTreeMap;

use super::*;
use crate::notes::master::SECTIONS;

/// Notes of one day each, `Label: text` by line; sessions are a, b, c…
fn taken(notes: &[&str]) -> Vec<Taken> {
    let note = |(at, points): (usize, &&str)| {
        let points: String = points
            .lines()
            .map(|it| format!("- {}\n", it.trim()))
            .collect();
        let text = format!("# T\n\n## Context\n\nC\n\n## Tracking Points\n\n{points}");
        Taken {
            session: char::from(b'a' + u8::try_from(at).unwrap()).to_string(),
            at: format!("2026-11-{:02}", at + 1),
            note: Note::read(&text).0,
            related: Vec::new(),
        }
    };
    notes.iter().enumerate().map(note).collect()
}

fn section(notes: &[&str], name: &str) -> Vec<String> {
    let names = SECTIONS.map(str::to_owned);
    let sections = synthesise(&taken(notes), &names);
    let section = sections.into_iter().find(|it| it.name == name).unwrap();
    let line = |it: &Statement| format!("{} [{}]", it.text, it.sessions.join(" "));
    section.statements.iter().map(line).collect()
}

#[test]
fn the_same_decision_in_five_notes_is_one_statement_with_five_citations() {
    let notes = [
        "Decision: Use PostgreSQL for the job queue because it is there already",
        "Decision: Use PostgreSQL for the job queue",
        "Decision: We use PostgreSQL for the job queue, so no Redis is needed",
        "Decision: The job queue uses PostgreSQL",
        "Decision: PostgreSQL is used for the job queue (one less service)",
    ];
    assert_eq!(
        section(&notes, DECISIONS),
        ["Use PostgreSQL for the job queue because it is there already [a b c d e]"]
    );
    assert_eq!(section(&notes, EVOLUTION), [""; 0]);
}

#[test]
fn a_contradiction_is_the_later_decision_and_one_line_of_evolution() {
    let notes = [
        "Decision: Use cookies for sessions",
        "Decision: Switched sessions from cookies to JWT because mobile needs it",
        "Decision: Use opaque tokens for sessions instead of JWT, which cannot be revoked",
    ];
    assert_eq!(
        section(&notes, DECISIONS),
        ["Use opaque tokens for sessions instead of JWT, which cannot be revoked [c]"]
    );
    assert_eq!(
        section(&notes, EVOLUTION),
        ["Sessions: cookies → tried JWT → settled on opaque tokens [a b c]"]
    );
    for (older, newer) in [
        ("The queue lives in Redis", "The queue lives in PostgreSQL"),
        (
            "Told in the first person",
            "Told in the third person instead of the first",
        ),
        ("Sample size is 40 per group", "Sample size is 60 per group"),
        (
            "Interviews are transcribed by hand",
            "Interviews are no longer transcribed by hand, we switched to a service",
        ),
    ] {
        let notes = [
            &*format!("Decision: {older}"),
            &*format!("Decision: {newer}"),
        ];
        assert_eq!(section(&notes, DECISIONS), [format!("{newer} [b]")]);
        assert_eq!(section(&notes, EVOLUTION).len(), 1, "{older} | {newer}");
    }
}

#[test]
fn decisions_about_different_things_stay_two() {
    for (older, newer) in [
        (
            "Use PostgreSQL for the job queue",
            "Use PostgreSQL for sessions instead of Redis",
        ),
        ("Logs are kept for 30 days", "Backups are kept for 90 days"),
        ("Use Jest for the front end", "Use pytest for the back end"),
        ("The API returns JSON", "The API is versioned by header"),
        (
            "Chapter 3 is told by Anna",
            "Chapter 4 is told by her brother",
        ),
        (
            "Anna is told the truth in chapter 3",
            "Ruth is told the truth in chapter 3",
        ),
        (
            "The parser is kept in `src/a.rs`",
            "The lexer is kept in `src/b.rs`",
        ),
        (
            "Staging deploys from main every night",
            "Production deploys from main every week",
        ),
        (
            "Errors are logged to stderr",
            "Errors of the importer are shown to the user",
        ),
    ] {
        let notes = [
            &*format!("Decision: {older}"),
            &*format!("Decision: {newer}"),
        ];
        assert_eq!(section(&notes, DECISIONS).len(), 2, "{older} | {newer}");
        assert_eq!(section(&notes, EVOLUTION), [""; 0]);
    }
}

#[test]
fn a_status_gives_way_to_the_next_and_a_question_to_its_answer() {
    let notes = [
        "Status: Login page half done\nQuestion: Should the cache be shared between workers?\nQuestion: Who owns the domain?",
        "Done: Login page finished, with tests\nDecision: Each worker has its own cache, not one shared between workers\nNext: Write the logout page",
    ];
    assert_eq!(
        section(&notes, STATUS),
        [
            "Login page finished, with tests [b]",
            "Next: Write the logout page [b]"
        ]
    );
    assert_eq!(section(&notes, QUESTIONS), ["Who owns the domain? [a]"]);
    assert_eq!(
        section(&notes, EVOLUTION),
        [
            "Should the cache be shared between workers? → Each worker has its own cache, not one shared between workers [a b]"
        ]
    );
}

#[test]
fn labels_that_nobody_knows_keep_their_word_and_sections_can_be_others() {
    let notes = [
        "Character: Anna limps since the war\nGotcha: The archive closes at four\nMood: is it too dark?",
    ];
    assert_eq!(
        section(&notes, LEARNINGS),
        [
            "Character: Anna limps since the war [a]",
            "The archive closes at four [a]"
        ]
    );
    assert_eq!(section(&notes, QUESTIONS), ["Mood: is it too dark? [a]"]);
    let names = ["Open Questions", "Characters", "Findings"].map(str::to_owned);
    let sections = synthesise(&taken(&notes), &names);
    let counts = sections.iter().map(|it| it.statements.len());
    assert_eq!(counts.collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn many_statements_are_grouped_by_theme() {
    let notes = ["Decision: Totals are rounded in src/billing/total.rs
        Decision: Invoices are numbered in src/billing/invoice.rs
        Decision: Login is rate limited per account
        Decision: Login needs a second factor for admins
        Decision: The login of guests expires after a day
        Decision: Test the mail first
        Decision: Test the relay too
        Decision: Test everything once
        Decision: Die Farben folgen dem System
        Decision: Die Suche ist schnell
        Decision: Die Kasse ist neu
        Decision: Dates are stored as UTC
        Decision: Mail goes out through a relay"];
    let names = SECTIONS.map(str::to_owned);
    let mut sections = synthesise(&taken(&notes), &names);
    assert_eq!(fit(&mut sections, &BTreeMap::new(), 4_000), []);
    let themes = sections[1].statements.iter().map(|it| it.theme.as_deref());
    let themes: Vec<_> = themes.collect();
    assert_eq!(
        themes,
        [
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            Some("Billing"),
            Some("Billing"),
            Some("Login"),
            Some("Login"),
            Some("Login")
        ]
    );
}

#[test]
fn an_answer_must_have_its_sections_and_cite_notes() {
    let names = ["Status", "Decisions"].map(str::to_owned);
    let labels = [("4f0c2a1e-77".to_owned(), "4f0c2a1e".to_owned())].into();
    let read = |answer: &str| reply::read(answer, &names, &labels);
    assert_eq!(
        read("# M\n## Status\n- a [4f0c2a1e]"),
        Err("`## Decisions` missing".into())
    );
    let nothing = "## Status\n- a [ffffffff]\n## Decisions\n- b";
    assert_eq!(
        read(nothing),
        Err("no statement cites a note (2 cite none)".into())
    );
    let answer = "Sure!\n## status\n- Works, see [docs](x) [4f0c2a1e] [00000000]\n- invented\n## Decisions\n### Pay\n- `x` (gone) stays [4f0c2a1e-77].\n## More\n- other [4f0c2a1e]";
    let reply = read(answer).unwrap();
    assert_eq!(reply.dropped, 1);
    let said: Vec<_> = reply
        .sections
        .iter()
        .flat_map(|it| &it.statements)
        .collect();
    assert_eq!(said[0].text, "Works, see [docs](x)");
    assert_eq!(said[1].text, "`x` stays.");
    assert_eq!(said[1].theme.as_deref(), Some("Pay"));
    assert!(said.iter().all(|it| it.sessions == ["4f0c2a1e-77"]));
}

#[test]
fn what_is_old_and_rests_on_little_falls_out_first() {
    let notes = [
        "Discovery: The old thing is slow\nDecision: Use PostgreSQL for the job queue",
        "Discovery: The new engine is quick\nDecision: Use PostgreSQL for the job queue",
    ];
    let taken = taken(&notes);
    let when = taken
        .iter()
        .map(|it| (it.session.as_str(), &it.at))
        .collect();
    let names = SECTIONS.map(str::to_owned);
    let mut sections = synthesise(&taken, &names);
    assert_eq!(fit(&mut sections, &when, 4000), []);
    let out = fit(&mut sections, &when, 150);
    let out: Vec<_> = out.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(out, ["The old thing is slow"]);
}

/// One note after the other, each with one point: what stands, what changed.
#[track_caller]
fn check(label: &str, notes: [&str; 2], standing: &[&str], evolution: &[&str]) {
    let notes = notes.map(|it| format!("{label}: {it}"));
    let notes = [&*notes[0], &*notes[1]];
    let sections = synthesise(&taken(&notes), &SECTIONS.map(str::to_owned));
    let (changed, rest): (Vec<_>, Vec<_>) = sections.iter().partition(|it| it.name == EVOLUTION);
    let texts = |all: &[&Section]| -> Vec<String> {
        let statements = all.iter().flat_map(|it| &it.statements);
        statements.map(|it| it.text.clone()).collect()
    };
    assert_eq!(texts(&rest), standing, "{notes:?}");
    assert_eq!(texts(&changed), evolution, "{notes:?}");
    for statement in rest.iter().flat_map(|it| &it.statements) {
        let cited = statement.sessions.len();
        assert!(
            cited == 1 || standing.len() == 1 && evolution.is_empty(),
            "{statement:?}"
        );
    }
}

#[test]
fn points_of_one_note_leave_each_other_alone() {
    for points in [
        "Decision: Use PostgreSQL for jobs\nDecision: Use SQLite for jobs instead of PostgreSQL",
        "Decision: The cache is enabled\nDecision: The cache is disabled",
        "Status: Login is broken\nStatus: Login is fixed",
        "Decision: Sample size is 40 per group\nDecision: Sample size is 60 per group",
    ] {
        let sections = synthesise(&taken(&[points]), &SECTIONS.map(str::to_owned));
        let counts: Vec<_> = sections.iter().map(|it| it.statements.len()).collect();
        assert_eq!(counts.iter().sum::<usize>(), 2, "{points}");
        assert_eq!(counts[3], 0, "{points}");
    }
}

#[test]
fn a_number_or_name_of_the_subject_makes_it_another() {
    for (label, older, newer) in [
        (
            "Decision",
            "Zone 1 is served by truck 12",
            "Zone 2 is served by truck 14",
        ),
        (
            "Decision",
            "Zone A is served by truck 12",
            "Zone B is served by truck 14",
        ),
        (
            "Decision",
            "HTTP 429 is retried 5 times",
            "HTTP 503 is retried 3 times",
        ),
        (
            "Decision",
            "Chapter 3 ends with the fire",
            "Chapter 4 ends with the flood",
        ),
        ("Status", "Chapter 3 is drafted", "Chapter 4 is drafted"),
        (
            "Status",
            "The login page is done",
            "The logout page is done",
        ),
        (
            "Status",
            "Phase 1 of the import is done",
            "Phase 2 of the import is half done",
        ),
    ] {
        check(label, [older, newer], &[newer, older], &[]);
    }
    check(
        "Decision",
        [
            "Zone 1 is served by truck 12",
            "Zone 1 is served by truck 14",
        ],
        &["Zone 1 is served by truck 14"],
        &["Zone 1 is served by truck: 12 → 14"],
    );
}

#[test]
fn the_same_words_with_another_negation_are_a_change() {
    for (older, newer, line) in [
        (
            "The cache is enabled",
            "The cache is disabled",
            "Cache: enabled → disabled",
        ),
        (
            "Always squash",
            "Never squash",
            "Always squash → Never squash",
        ),
        (
            "Der Cache ist aktiv",
            "Der Cache ist nicht mehr aktiv",
            "Cache: aktiv → nicht mehr aktiv",
        ),
        (
            "Die Suche braucht einen Server",
            "Die Suche braucht keinen Server",
            "Suche braucht: einen Server → keinen Server",
        ),
        (
            "Invoices are sent by mail to every customer of the shop",
            "Invoices are no longer sent by mail to every customer of the shop",
            "Invoices: sent by mail to every customer of the shop → no longer sent by mail to every customer of the shop",
        ),
    ] {
        check("Decision", [older, newer], &[newer], &[line]);
        check("Discovery", [older, newer], &[newer], &[line]);
    }
    check(
        "Decision",
        ["Use tabs, not spaces", "Use spaces, not tabs"],
        &["Use spaces, not tabs"],
        &["tabs → spaces"],
    );
    // Whoever says less, or of another part, denies nothing and supports nothing.
    check(
        "Discovery",
        [
            "Tests run against a copy of the real database",
            "Slow tests never run against a copy of the real database",
        ],
        &[
            "Slow tests never run against a copy of the real database",
            "Tests run against a copy of the real database",
        ],
        &[],
    );
}

#[test]
fn a_change_is_told_by_its_subject() {
    for (older, newer, line) in [
        (
            "Use MySQL 8 as the database",
            "Use PostgreSQL 16 as the database instead of MySQL 8",
            "Database: MySQL 8 → PostgreSQL 16",
        ),
        (
            "MySQL 8 as the database",
            "The database moved from MySQL 8 to PostgreSQL 16",
            "Database: MySQL 8 → PostgreSQL 16",
        ),
        (
            "Use signed cookies for sessions",
            "Sessions moved from signed cookies to Redis",
            "Sessions: signed cookies → Redis",
        ),
        (
            "Login with LDAP",
            "Login via OIDC replaces LDAP",
            "Login: with LDAP → via OIDC",
        ),
        (
            "Deploy with Docker Compose",
            "Deploy on Kubernetes now",
            "Deploy: with Docker Compose → on Kubernetes now",
        ),
        (
            "Use Redis instead of Postgres",
            "Use Postgres",
            "Redis → Postgres",
        ),
        ("Use npm", "Use pnpm instead of npm", "npm → pnpm"),
        (
            "Use Redis for the message queue",
            "The message queue moved to RabbitMQ",
            "Message queue: Redis → RabbitMQ",
        ),
    ] {
        check("Decision", [older, newer], &[newer], &[line]);
    }
    check(
        "Decision",
        [
            "Use Redis instead of Postgres for sessions",
            "Use Postgres for the queue",
        ],
        &[
            "Use Postgres for the queue",
            "Use Redis instead of Postgres for sessions",
        ],
        &[],
    );
}

#[test]
fn a_status_that_was_overtaken_goes() {
    check(
        "Status",
        ["Login is broken", "Login is fixed"],
        &["Login is fixed"],
        &[],
    );
    check(
        "Stand",
        ["Import ist halb fertig", "Import ist fertig"],
        &["Import ist fertig"],
        &[],
    );
    check(
        "Status",
        ["Import is half done", "Import is done"],
        &["Import is done"],
        &[],
    );
    for (next, done, left) in [
        (
            "Next: Write the docs",
            "Done: The docs are written",
            "The docs are written [b]",
        ),
        (
            "Todo: Write the docs",
            "Status: Wrote the docs, all done",
            "Wrote the docs, all done [b]",
        ),
        (
            "Nächster Schritt: Schreibe die Doku",
            "Erledigt: Die Doku ist geschrieben",
            "Die Doku ist geschrieben [b]",
        ),
    ] {
        assert_eq!(section(&[next, done], STATUS), [left]);
    }
    let two = [
        "Next: Write the docs",
        "Done: The docs of the old API are written",
    ];
    assert_eq!(section(&two, STATUS).len(), 2);
}

#[test]
fn german_labels_go_where_the_english_ones_do() {
    let note = ["Entscheidung: Wir nehmen SQLite
        Erkenntnis: WAL ist schnell
        Entdeckung: Der Index fehlt
        Problem: Das Backup ist langsam
        Frage: Wer zahlt
        Offen: Der Name
        Stand: Import läuft
        Nächstes: Export bauen
        Änderung: Neuer Name"];
    let count = |name| section(&note, name).len();
    assert_eq!(SECTIONS.map(count), [2, 1, 3, 1, 2]);
    assert_eq!(section(&note, STATUS)[1], "Nächstes: Export bauen [a]");
}

#[test]
fn a_statement_begins_as_it_was_written() {
    check(
        "Status",
        ["src/b.rs is split", "npm is slow here"],
        &["npm is slow here", "src/b.rs is split"],
        &[],
    );
}

#[test]
fn an_old_point_of_an_updated_note_stays_old() {
    let draft = |points: &str| {
        Note::read(&format!(
            "# T\n\n## Context\n\nC\n\n## Tracking Points\n\n{points}"
        ))
        .0
    };
    let age = "- Decision: The minimum age is 18\n";
    let first = crate::notes::keep(&draft(age), None, "2026-10-01T09:00:00Z").text;
    let more = draft(&format!("{age}- Decision: The maximum is 90\n"));
    let updated = crate::notes::keep(&more, Some(&first), "2026-11-16T09:00:00Z").text;
    let taken = |session: &str, text: &str, at: &str| Taken {
        session: session.to_owned(),
        at: at.to_owned(),
        note: Note::read(text).0,
        related: Vec::new(),
    };
    let of = |text: &str, at: &str| {
        format!(
            "# T\n\n## Context\n\nC\n\n## Tracking Points\n\n- Decision: {text}\n\n*Summarized: {at}*\n"
        )
    };
    let notes = [
        taken("a", &updated, "2026-10-01T09:00:00Z"),
        taken(
            "b",
            &of("The minimum age is 16", "2026-10-20"),
            "2026-10-20",
        ),
        taken("c", &of("The maximum is 80", "2026-11-01"), "2026-11-01"),
    ];
    let sections = synthesise(&notes, &SECTIONS.map(str::to_owned));
    let texts: Vec<_> = sections[1]
        .statements
        .iter()
        .map(|it| it.text.as_str())
        .collect();
    assert_eq!(texts, ["The maximum is 90", "The minimum age is 16"]);
}

#[test]
fn every_section_keeps_its_share_and_an_emptied_one_says_so() {
    let notes: Vec<String> = (0..20)
        .map(|it| format!("Decision: Rule number{it} is about thing{it} and its neighbours\nQuestion: Who owns part{it}?"))
        .collect();
    let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
    let taken = taken(&notes);
    let when = taken
        .iter()
        .map(|it| (it.session.as_str(), &it.at))
        .collect();
    let fitted = |max| {
        let mut sections = synthesise(&taken, &SECTIONS.map(str::to_owned));
        // A change of no weight is the first to go.
        sections[3].statements = vec![Statement {
            text: "Old → new".to_owned(),
            sessions: vec!["a".to_owned()],
            theme: None,
        }];
        fit(&mut sections, &when, max);
        sections
    };
    let counts = |max| {
        fitted(max)
            .iter()
            .map(|it| it.statements.len())
            .collect::<Vec<_>>()
    };
    let full = counts(4_000);
    assert_eq!(full, [0, 20, 0, 1, 20]);
    let some = counts(450);
    assert!(
        some[1] > 0 && some[1] < 20 && some[3] == 1 && some[4] > 0,
        "{some:?}"
    );
    let leads: Vec<_> = fitted(0)
        .into_iter()
        .map(|it| it.lead.unwrap_or_default())
        .collect();
    let archived = "What was here is in `archive/`.";
    assert_eq!(leads, ["", archived, "", archived, archived]);
}
