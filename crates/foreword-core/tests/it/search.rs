//! Search by words: every query works, and stored items are found again.

use foreword_core::model::{Kind, Observation, ObservationType, Origin};
use foreword_core::search::{Filter, Found, Looser, MatchKind, Query, Sort, search, timeline};
use foreword_core::store::Store;
use proptest::prelude::*;

use crate::store::{observation, open, prompt, store};

fn query(words: &str) -> Query<'_> {
    Query {
        words,
        filter: Filter::default(),
        sort: Sort::Relevance,
        limit: 20,
    }
}

fn found(memory: &Store, words: &str) -> Found {
    search(memory, &query(words)).unwrap()
}

fn titles(found: &Found) -> Vec<&str> {
    let observations = found
        .hits
        .iter()
        .filter(|hit| hit.kind == Kind::Observation);
    observations.map(|hit| hit.title.as_str()).collect()
}

/// A memory of one turn with these observations.
fn memory(dir: &tempfile::TempDir, observations: &[Observation]) -> Store {
    let mut memory = open(dir);
    store(&mut memory, &[prompt(1, "p1", "unasked")], |_| {
        observations.to_vec()
    });
    memory
}

fn titled(titles: &[&str]) -> Vec<Observation> {
    titles
        .iter()
        .map(|title| observation(title, title))
        .collect()
}

#[test]
fn identifiers_and_languages_without_spaces_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let told = [
        "parseHTTPReply panics",
        "snake_case_name",
        "path/to/widget.rs",
        "Vec<Gadget>",
        "rm -rf",
        "C++ templates",
        "error E0308",
        "全文検索の速度",
        "한국어를 찾다",
        "naïve café",
    ];
    let memory = memory(&dir, &titled(&told));
    let first = |words: &str| {
        titles(&found(&memory, words))
            .first()
            .map(|it| (*it).to_owned())
    };
    for (words, title) in [
        ("parseHTTPReply", told[0]),
        ("http reply", told[0]),
        ("parse_http_reply", told[0]),
        ("snakeCaseName", told[1]),
        ("case name", told[1]),
        ("widget.rs", told[2]),
        ("src/path/to/widget.rs", told[2]),
        ("Vec<Gadget>", told[3]),
        ("gadgets", told[3]),
        ("rm -rf /", told[4]),
        ("C++", told[5]),
        ("E0308", told[6]),
        ("検索", told[7]),
        ("速", told[7]),
        ("한국", told[8]),
        ("naive cafe\u{301}", told[9]),
        ("\"NEAR(* AND cafe:^ -{", told[9]),
    ] {
        assert_eq!(first(words).as_deref(), Some(title), "{words}");
    }
}

#[test]
fn rows_with_every_word_come_first_and_the_answer_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let told = ["Token token token", "Expiry of a token", "Unrelated"];
    let memory = memory(&dir, &titled(&told));
    let both = found(&memory, "the expiry of our tokens");
    assert_eq!(
        (titles(&both), both.answer),
        (vec![told[1], told[0]], MatchKind::AllWords)
    );
    let one = found(&memory, "token zebra");
    assert_eq!(
        (one.answer, one.unknown),
        (MatchKind::AnyWord, vec!["zebra".to_owned()])
    );
    let none = found(&memory, "expir");
    assert_eq!(
        (none.answer, none.looser),
        (MatchKind::Nothing, vec![Looser::Beginnings(1)])
    );
    assert_eq!(found(&memory, "\0 ** ").answer, MatchKind::Listed);
}

#[test]
fn a_question_about_decisions_puts_them_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = titled(&["Retry retry limit", "The limit of a retry is three"]);
    told[1].kind = ObservationType::Decision;
    let memory = memory(&dir, &told);
    assert_eq!(titles(&found(&memory, "retry"))[0], told[0].title);
    for words in [
        "when did we decide about the retry",
        "retry decision",
        "¿cuándo decidimos retry?",
    ] {
        assert_eq!(titles(&found(&memory, words))[0], told[1].title, "{words}");
    }
}

#[test]
fn what_shares_one_common_word_of_many_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(&dir, &titled(&["Run the tests"]));
    let none = found(
        &memory,
        "which kafka topic carries shipping updates to the warehouse printer driver run",
    );
    assert_eq!((none.hits, none.answer), (vec![], MatchKind::Nothing));
}

#[test]
fn words_that_say_nothing_are_asked_for_when_there_are_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(&dir, &titled(&["Where will it be", "Other"]));
    assert_eq!(titles(&found(&memory, "where will")), ["Where will it be"]);
}

#[test]
fn every_filter_narrows() {
    let dir = tempfile::tempdir().unwrap();
    let mut old = observation("a", "Alpha one");
    old.at = 1_000;
    let mut new = observation("b", "Alpha two");
    new.kind = ObservationType::Decision;
    new.concepts = vec!["jwt".into()];
    new.files[0].path = "crates/core/src/token.rs".into();
    new.origin = Origin::User;
    new.at = 2_000;
    let memory = memory(&dir, &[old, new]);
    let hits = |filter: Filter, words: &str| {
        let found = search(
            &memory,
            &Query {
                filter,
                ..query(words)
            },
        )
        .unwrap();
        titles(&found)
            .iter()
            .map(|it| it.replace("Alpha ", ""))
            .collect::<Vec<_>>()
    };
    let none = Filter::default;
    let file = |path: &str| Filter {
        file: Some(path.into()),
        ..none()
    };
    for (filter, expected) in [
        (
            Filter {
                observation_type: Some(ObservationType::Decision),
                ..none()
            },
            "two",
        ),
        (
            Filter {
                concept: Some("JWT".into()),
                ..none()
            },
            "two",
        ),
        (file("crates/core/src/token.rs"), "two"),
        (file("token.rs"), "two"),
        (file("./crates/core/"), "two"),
        (file("core"), "two"),
        (file("en.rs"), ""),
        (file("src"), "two one"),
        (
            Filter {
                origin: Some(Origin::User),
                ..none()
            },
            "two",
        ),
        (
            Filter {
                since: Some(1_500),
                ..none()
            },
            "two",
        ),
        (
            Filter {
                until: Some(1_500),
                ..none()
            },
            "one",
        ),
        (
            Filter {
                session: Some("s".into()),
                prompt: Some(1),
                ..none()
            },
            "two one",
        ),
        (
            Filter {
                session: Some("other".into()),
                ..none()
            },
            "",
        ),
        (
            Filter {
                prompt: Some(2),
                ..none()
            },
            "",
        ),
        (
            Filter {
                branch: Some("nowhere".into()),
                ..none()
            },
            "",
        ),
        (
            Filter {
                kind: Some(Kind::Prompt),
                ..none()
            },
            "",
        ),
        (
            Filter {
                projects: Some(vec!["/p".into()]),
                ..none()
            },
            "two one",
        ),
        (
            Filter {
                projects: Some(vec!["p".into(), "q".into()]),
                ..none()
            },
            "two one",
        ),
        (
            Filter {
                projects: Some(vec!["q".into()]),
                ..none()
            },
            "",
        ),
    ] {
        for words in ["", "alpha"] {
            assert_eq!(
                hits(filter.clone(), words).join(" "),
                expected,
                "{words} {filter:?}"
            );
        }
    }
    let elsewhere = Query {
        filter: Filter {
            projects: Some(vec!["q".into()]),
            ..none()
        },
        ..query("alpha")
    };
    let found = search(&memory, &elsewhere).unwrap();
    assert_eq!(found.looser, [Looser::AllProjects(2)]);
}

#[test]
fn by_date_the_newest_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = titled(&["Alpha alpha alpha", "Alpha and more", "And alpha then"]);
    for (at, it) in (10..).zip(&mut told) {
        it.at = at;
    }
    let memory = memory(&dir, &told);
    let first = |limit, sort| {
        let found = search(
            &memory,
            &Query {
                limit,
                sort,
                ..query("alpha")
            },
        )
        .unwrap();
        titles(&found)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(first(2, Sort::Date), ["And alpha then", "Alpha and more"]);
    assert_eq!(first(1, Sort::Relevance), ["Alpha alpha alpha"]);
    assert_eq!(first(9, Sort::Relevance).len(), 3);
}

/// A row's length is looked up only if the row could be one of the best: the positions of its
/// words show how long it is at least.
#[test]
fn a_shorter_row_comes_first_wherever_its_word_stands() {
    let dir = tempfile::tempdir().unwrap();
    // Lengths are looked up for 4 rows, then 8, 16, 32, 64: the longer ones fill that up.
    let told: Vec<Observation> = (0..5 + 64)
        .map(|number| {
            let mut it = observation(&number.to_string(), &format!("Unrelated {number}"));
            it.narrative = if number < 5 {
                "other ".repeat(30) + "token"
            } else {
                "token".to_owned() + &" other".repeat(40)
            };
            it
        })
        .collect();
    let memory = memory(&dir, &told);
    let ids = |limit| {
        let asked = Query {
            limit,
            ..query("token")
        };
        let hits = search(&memory, &asked).unwrap().hits;
        hits.iter().map(|hit| hit.id).collect::<Vec<_>>()
    };
    let all = ids(100);
    let mut shorter = all[..5].to_vec();
    shorter.sort_unstable();
    assert_eq!(shorter[4] - shorter[0], 4, "the first five that were told");
    assert_eq!(shorter[0], *all.iter().min().unwrap());
    assert_eq!(ids(4), all[..4]);
}

#[test]
fn a_timeline_is_what_came_before_and_after() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = titled(&["a", "b", "c", "d", "e"]);
    for (at, it) in (1000..).zip(&mut told) {
        it.at = at;
    }
    let memory = memory(&dir, &told);
    let middle = found(&memory, "c").hits[0].id;
    let around = timeline(&memory, middle, 1).unwrap();
    let around: Vec<_> = around.iter().map(|hit| hit.title.as_str()).collect();
    assert_eq!(around, ["b", "c", "d"]);
    assert_eq!(timeline(&memory, 999, 1).unwrap(), []);
}

const RARE: [&str; 8] = [
    "zyxwort",
    "Ünïquéte",
    "E90210",
    "quuxBarBaz",
    "稀有词",
    "wörd7",
    "Дельта",
    "été_rare",
];

fn noise() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ -~]{0,12}",
        2 => "\\PC{0,8}",
        1 => Just("token auth the and".to_owned()),
        1 => Just("\" AND NOT NEAR( * ^ : -- ' \\ \0".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_row_with_a_rare_word_of_the_query_is_among_the_hits(
        place in 0..4_usize,
        rare in proptest::sample::select(&RARE[..]),
        around in proptest::collection::vec(noise(), 4),
        separators in proptest::collection::vec("[ \t\n\"'`.,;:()<>/\\\\*_-]", 4),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut row = observation("rare", "Title");
        let text = format!("{}{}{rare}{}{}", around[0], separators[0], separators[1], around[1]);
        match place {
            0 => row.title = text,
            1 => row.facts = vec!["one".into(), text],
            2 => row.narrative = text,
            _ => row.concepts = vec![text],
        }
        let mut rows = titled(&["Token and auth", "The token of auth", "Auth"]);
        rows.push(row);
        let memory = memory(&dir, &rows);
        let words = format!("{}{}{rare}{}{}", around[2], separators[2], separators[3], around[3]);
        let found = found(&memory, &words);
        let wanted = found.hits.iter().filter(|hit| {
            let item = memory.item(hit.id).unwrap().unwrap();
            serde_json::to_string(&item).unwrap().contains(rare)
        });
        prop_assert_eq!(wanted.count(), 1, "{:?}", found);
    }
}
