use proptest::prelude::*;

use super::super::prose::{is_fact, read};
use super::*;

#[test]
fn a_sentence_is_squeezed_to_a_title() {
    let check = |input: &str, expected: &str, lost: f32| {
        assert_eq!(
            squeeze(input, MAX_WORDS, true),
            (expected.to_owned(), lost),
            "{input}"
        );
    };
    check(
        "Root cause: the lock is never freed.",
        "The lock is never freed",
        0.0,
    );
    check(
        "Yes — the lock is never freed",
        "The lock is never freed",
        0.0,
    );
    check(
        "Fix: the lock is never freed",
        "Fix: the lock is never freed",
        0.0,
    );
    check(
        "`store.rs`: the lock is never freed",
        "`store.rs`: the lock is never freed",
        0.0,
    );
    check("now src/a/b.ts:12 is read.", "Now b.ts is read", 0.0);
    check(
        "2. Removed the second check",
        "Removed the second check",
        0.0,
    );
    check(
        "`fetch()` reads (src/a/b.ts:1-9).",
        "`fetch` reads (b.ts)",
        0.0,
    );
    check(
        "see https://a.b/c/d.html for it",
        "See https://a.b/c/d.html for it",
        0.0,
    );
    check(
        "The worker claims jobs in order (oldest first, then by size) and frees them again",
        "The worker claims jobs in order and frees them again",
        0.0,
    );
    check(
        "The worker claims the oldest job first, so that a long queue is emptied in order of age",
        "The worker claims the oldest job first",
        CUT_AT_SIGN,
    );
    check(
        "The worker claims the oldest job of every queue before any younger job of another queue",
        "The worker claims the oldest job of every queue",
        CUT_AT_WORD,
    );
    check(
        "Alpha beta gamma delta epsilon zeta eta theta iota kappa lambda `mu nu xi` omicron",
        "Alpha beta gamma delta epsilon zeta eta theta iota kappa lambda…",
        CUT_ANYWHERE,
    );
    check(
        "原因はサーバーが時刻帯を知らないことで、ブラウザーは東京の時刻で描いていました",
        "原因はサーバーが時刻帯を知らないことで",
        CUT_AT_SIGN,
    );
    check(
        "原因はサーバーが時刻帯を知らないことですがブラウザーは東京の時刻で描いていました",
        "原因はサーバーが時刻帯を知らないことですがブラウ…",
        CUT_ANYWHERE,
    );
    check(
        "I've moved the parser to its own crate",
        "Moved the parser to its own crate",
        0.0,
    );
    check(
        "I made two changes: renamed the parser and its tests",
        "Renamed the parser and its tests",
        0.0,
    );
}

#[test]
fn a_title_that_names_its_subject_can_be_understood_alone() {
    let none = HashSet::new();
    let check = |better: &str, worse: &str| {
        let (better_score, worse_score) = (alone(better, &none, &none), alone(worse, &none, &none));
        assert!(
            better_score > worse_score,
            "{better}: {better_score}, {worse}: {worse_score}"
        );
    };
    check(
        "`Store::open` refuses newer files",
        "It refuses newer files",
    );
    check(
        "`Store::open` refuses newer files",
        "I changed what refuses newer files",
    );
    check(
        "`Store::open` refuses newer files",
        "If `Store::open` refuses newer files",
    );
    check("`Store::open` refuses newer files", "All tests pass");
    check(
        "Der Import liest jetzt Zeitzonen",
        "Dies liest jetzt auch Zeitzonen",
    );
    check(
        "El importador lee zonas horarias",
        "Esto lee zonas horarias",
    );
    check("日付の表示を固定しました", "これを固定しました");
    let edited = stems("store/open.rs");
    assert!(
        alone("Store refuses files", &edited, &none) > alone("Cache refuses files", &edited, &none)
    );
}

#[test]
fn a_title_of_names_alone_is_worse_than_a_weak_sentence() {
    let nothing = HashSet::new();
    let names = alone(
        "`testenv.go`, `rewind_test.go`, `scenario_test.go`",
        &nothing,
        &nothing,
    );
    assert!(names < alone("Fix E2E Test Issues", &nothing, &nothing));
}

#[test]
fn a_request_gives_a_title_without_its_opening_words() {
    let check = |prompt: &str, expected: Option<(&str, bool)>| {
        let expected = expected.map(|(title, whole)| (title.to_owned(), whole));
        assert_eq!(request_title(prompt), expected, "{prompt}");
    };
    check(
        "ok, can you please add a retry option?",
        Some(("Add a retry option", true)),
    );
    check(
        "Kannst du bitte die Tests reparieren?",
        Some(("Die Tests reparieren", true)),
    );
    check(
        "por favor, puedes arreglar los tests",
        Some(("Arreglar los tests", true)),
    );
    check(
        "Hi. Let's split the store module",
        Some(("Split the store module", true)),
    );
    check(
        "/review the open pull request",
        Some(("The open pull request", true)),
    );
    check("yes", None);
    check("/compact", None);
    check("```\nfn main() {}\n```", None);
}

#[test]
fn a_plan_is_named_by_its_heading() {
    let check = |prompt: &str, expected: Option<&str>| {
        assert_eq!(plan_heading(prompt).as_deref(), expected, "{prompt}");
    };
    check(
        "Implement the following plan:\n\n# Plan: Retry jobs\n\ntext",
        Some("Plan: Retry jobs"),
    );
    check(
        "Implement the following plan:\n\n# Fix: Retry jobs",
        Some("Fix: Retry jobs"),
    );
    check("# Retry `jobs`\n## Why", Some("Retry `jobs`"));
    check("run this\n```sh\n# a comment\n```", None);
    check("a b c d e f g h i j k l m n\n# Too late", None);
}

#[test]
fn only_what_the_user_typed_is_read() {
    let check = |prompt: &str, expected: &str| assert_eq!(typed(prompt), expected);
    check("why?\n```\nlog\n```\nthanks", "why?\nthanks");
    check(
        "<ide_file>src/a.rs</ide_file>look here <b> now",
        "look here <b> now",
    );
    check(
        "slack:\nDave: use Auth0\nEve: no\nI say bcrypt",
        "slack:\nI say bcrypt",
    );
    check("it fails:\n    at main (a.js:1)\nmore", "it fails:");
    check("src/a.rs:12 error\nwhat is that", "what is that");
    check("it fails:\n[2026-10-02 12:00:01] no route", "it fails:");
    check("[Image #1] what is that", "[Image #1] what is that");
    check("Note: keep the old format", "Note: keep the old format");
    check("at the moment it fails", "at the moment it fails");
}

#[test]
fn a_conventional_subject_is_split() {
    let check = |subject: &str, kind: Option<&str>, rest: &str| {
        assert_eq!(conventional(subject), (kind, rest.to_owned()));
    };
    check("fix(store)!: free the lock", Some("fix"), "Free the lock");
    check("docs: explain it", Some("docs"), "Explain it");
    check("store: free the lock", None, "Store: free the lock");
    check("add a lock", None, "Add a lock");
}

/// Text made of what is hard to read: markup that is never closed, signs, scripts without spaces.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("`"),
        Just("```\n"),
        Just("**"),
        Just("["),
        Just("]("),
        Just("<a>"),
        Just("</a>"),
        Just("- "),
        Just("\n"),
        Just("\n  - x"),
        Just("# "),
        Just("| a |"),
        Just(": "),
        Just("? "),
        Just(". "),
        Just("。"),
        Just("（"),
        Just("("),
        Just(")"),
        Just("日付"),
        Just("ß’İ"),
        Just("word "),
        Just("it "),
        Just("ok "),
        Just("\""),
        Just("— "),
        Just("1. "),
        Just("a/b.c:1"),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

/// Does everything that a turn does with a text, and counts what came out.
fn read_all(text: &str) -> usize {
    let prose = read(text, true);
    let context = stems(text);
    let facts = prose
        .units
        .iter()
        .filter(|unit| is_fact(unit, &context))
        .count();
    let titles = prose
        .leads
        .iter()
        .map(|lead| squeeze(lead, MAX_WORDS, true).0);
    let scored = titles
        .filter(|title| alone(title, &context, &context) > 2.0)
        .count();
    let asked =
        usize::from(request_title(text).is_some()) + usize::from(plan_heading(text).is_some());
    facts + scored + asked + clip(text, 48).len()
}

proptest! {
    #[test]
    fn any_text_is_read(text in hostile()) {
        read_all(&text);
        let (title, _) = squeeze(&text, MAX_WORDS, true);
        prop_assert!(tokens(&title).len() <= text.chars().count() + 1);
    }

    #[test]
    fn units_are_no_longer_than_the_text(text in hostile()) {
        // A heading is repeated at most once, before the first sentence under it.
        let units: usize = read(&text, true).units.iter().map(|unit| unit.text.len()).sum();
        prop_assert!(units <= 3 * text.len() + 8);
    }
}

/// A parser that looks ahead to the end of the text at every sign does not come to an end on
/// these. No text gives more units than it has ends of lines and sentences.
#[test]
fn long_hostile_texts_are_read_to_their_end() {
    for piece in [
        "a", "`", "`a", "[", "<a>", "<a", "(", "*", "- x\n", "  - x\n", "x: ", "— ", ". ", "日",
        "ok ", "\n", "> x\n\n", "| a ", "it. ",
    ] {
        read_all(&piece.repeat(5_000 / piece.len()));
        let text = piece.repeat(200_000 / piece.len());
        let ends = text.matches(['\n', '.']).count();
        assert!(read(&text, true).units.len() <= ends + 1, "{piece}");
        assert!(typed(&text).len() <= text.len(), "{piece}");
        assert!(with_short_paths(&text).len() <= text.len(), "{piece}");
        assert!(without_brackets(&text).len() <= text.len(), "{piece}");
        assert!(clip(&text, 48).len() <= text.len() + "…".len(), "{piece}");
    }
}
