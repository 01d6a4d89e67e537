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
fn points_that_read_the_same_are_one_statement_with_all_citations() {
    let notes = [
        "Decision: Use `PostgreSQL` for the job queue.",
        "Decision: use PostgreSQL for the job queue\nQuestion: Use PostgreSQL for the job queue",
        "Decision: Decision: Use PostgreSQL for the job queue",
        "Decision: PostgreSQL is used for the job queue",
    ];
    assert_eq!(
        section(&notes, DECISIONS),
        [
            "PostgreSQL is used for the job queue [d]",
            "Use `PostgreSQL` for the job queue. [a b c]",
        ]
    );
    assert_eq!(
        section(&notes, QUESTIONS),
        ["Use PostgreSQL for the job queue [b]"]
    );
}

#[test]
fn contradictions_both_stand_and_the_newest_comes_first() {
    let notes = [
        "Decision: Use cookies for sessions\nStatus: Login is half done",
        "Decision: Use opaque tokens for sessions instead of cookies\nStatus: Login is done",
        "Decision: Use cookies for sessions",
    ];
    assert_eq!(
        section(&notes, DECISIONS),
        [
            "Use cookies for sessions [a c]",
            "Use opaque tokens for sessions instead of cookies [b]",
        ]
    );
    assert_eq!(
        section(&notes, STATUS),
        ["Login is done [b]", "Login is half done [a]"]
    );
    assert_eq!(section(&notes, EVOLUTION), [""; 0]);
}

#[test]
fn labels_say_the_section_and_stay_where_they_say_more() {
    let notes = ["Next: Write the logout page
        Open questions: Who owns the domain
        Change: Sessions moved to Redis
        Character: Anna limps since the war
        Gotcha: The archive closes at four
        Mood: is it too dark?
        Status: ---"];
    let all = SECTIONS.map(|name| section(&notes, name));
    assert_eq!(
        all.concat(),
        [
            "Next: Write the logout page [a]",
            "Character: Anna limps since the war [a]",
            "Gotcha: The archive closes at four [a]",
            "Sessions moved to Redis [a]",
            "Who owns the domain [a]",
            "Mood: is it too dark? [a]",
        ]
    );
    let names = ["Where we stand", "Characters", "Open questions"].map(str::to_owned);
    let sections = synthesise(&taken(&notes), &names);
    let counts = sections.iter().map(|it| it.statements.len());
    assert_eq!(counts.collect::<Vec<_>>(), [3, 1, 2]);
}

#[test]
fn a_list_under_a_heading_of_its_own_is_labelled_by_it() {
    let text = "# T\n\n## Context\n\nC\n\n## Decisions\n\n- Use tabs\n- Next: Reformat\n";
    let taken = Taken {
        session: "a".to_owned(),
        at: "2026-11-01".to_owned(),
        note: Note::read(text).0,
        related: Vec::new(),
    };
    let sections = synthesise(&[taken], &SECTIONS.map(str::to_owned));
    let texts = sections.iter().flat_map(|it| &it.statements);
    let texts: Vec<_> = texts.map(|it| it.text.as_str()).collect();
    assert_eq!(texts, ["Next: Reformat", "Use tabs"]);
}

#[test]
fn an_answer_must_have_its_sections_and_cite_notes() {
    let names = ["Status", "Decisions"].map(str::to_owned);
    let labels = [("4f0c2a1e-77".to_owned(), "4f0c2a1e".to_owned())].into();
    let read = |answer: &str| read_reply(answer, &names, &labels);
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
    assert_eq!(
        texts,
        [
            "The maximum is 90",
            "The maximum is 80",
            "The minimum age is 16",
            "The minimum age is 18",
        ]
    );
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
