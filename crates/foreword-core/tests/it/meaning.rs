//! Search by meaning: items with other words are found, and items with a literal name come first.
//! The vectors here are made up; the worker's tests use a real model.

use foreword_core::model::{Event, EventKind, Kind, Millis, Observation};
use foreword_core::search::vectors::{DIMENSIONS, Vector, Vectors};
use foreword_core::search::{
    Filter, Found, MatchKind, Matched, Meaning, Query, Sort, search_by_meaning,
};
use foreword_core::search::{LoadedVectors, Unembedded};
use foreword_core::store::Store;

use crate::queue::event;
use crate::store::{observation, open, outside, prompt, store};

const MODEL: &str = "made-up";
const NOW: Millis = 1_800_000_000_000;

/// A vector with this cosine to `towards(1.0)`.
fn towards(cosine: f32) -> Vector {
    let mut vector = [0.0; DIMENSIONS];
    vector[0] = cosine;
    vector[1] = (1.0 - cosine * cosine).sqrt();
    vector
}

fn told(title: &str) -> Observation {
    Observation {
        subtitle: String::new(),
        facts: Vec::new(),
        narrative: String::new(),
        concepts: Vec::new(),
        ..observation(title, title)
    }
}

/// A memory of one turn with these observations, each with its cosine to the query.
fn memory(dir: &tempfile::TempDir, titles: &[(&str, f32)]) -> Store {
    let mut memory = open(dir);
    store(&mut memory, &[prompt(1, "p1", "unasked")], |_| {
        titles.iter().map(|(title, _)| told(title)).collect()
    });
    embed(&mut memory, |text| {
        let known = titles.iter().find(|(title, _)| text.starts_with(title));
        towards(known.map_or(0.0, |it| it.1))
    });
    memory
}

fn embed(memory: &mut Store, near: impl Fn(&str) -> Vector) {
    let items = memory.unembedded(MODEL, 1000).unwrap();
    let vectors = |item: Unembedded| {
        let vectors = item.chunks.iter().map(|it| near(it)).collect();
        (item, vectors)
    };
    let made: Vec<_> = items.into_iter().map(vectors).collect();
    memory.put_vectors(MODEL, &made).unwrap();
}

fn query(words: &str) -> Query<'_> {
    Query {
        words,
        filter: Filter::default(),
        sort: Sort::Relevance,
        limit: 20,
    }
}

fn found_by(memory: &Store, query: &Query<'_>) -> Found {
    let mut loaded = LoadedVectors::default();
    memory.load_vectors(MODEL, &mut loaded).unwrap();
    let meaning = Meaning {
        vectors: &loaded.vectors,
        question: &towards(1.0),
    };
    search_by_meaning(memory, query, meaning).unwrap()
}

fn titles(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.title.as_str()).collect()
}

#[test]
fn what_has_none_of_the_words_is_found_by_what_it_means() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(
        &dir,
        &[("alpha beta", 0.9), ("gamma delta", 0.5), ("epsilon", 0.1)],
    );
    let found = found_by(&memory, &query("zeta eta"));
    assert_eq!(titles(&found), ["alpha beta", "gamma delta"]);
    assert_eq!(found.answer, MatchKind::Meaning);
    assert_eq!(found.unknown, ["zeta", "eta"]);
    let found = found_by(&memory, &query("gamma"));
    assert_eq!(titles(&found), ["gamma delta", "alpha beta"]);
    assert_eq!(
        found.hits.iter().map(|it| it.matched).collect::<Vec<_>>(),
        [Some(Matched::AllWords), Some(Matched::Meaning)]
    );
}

#[test]
fn what_is_meant_as_it_stands_comes_first_however_near_the_others_are() {
    let dir = tempfile::tempdir().unwrap();
    let told = [
        ("the borrow checker again", 0.95),
        ("error E0308 in the parser", 0.2),
        ("parseHTTPReply panics", 0.15),
        ("see src/net/retry.rs", 0.13),
        ("the tide is high", 0.14),
    ];
    let memory = memory(&dir, &told);
    let first = |words: &str| titles(&found_by(&memory, &query(words)))[0].to_owned();
    assert_eq!(first("the borrow error E0308"), told[1].0);
    assert_eq!(first("borrow checker and parseHTTPReply"), told[2].0);
    assert_eq!(first("the borrow checker in src/net/retry.rs"), told[3].0);
    assert_eq!(first("borrow checker again \"high tide\""), told[4].0);
    assert_eq!(first("borrow the tide"), told[0].0);
    assert_eq!(first("E9999 borrow checker"), told[0].0);
}

#[test]
fn what_a_filter_leaves_out_is_no_measure_for_what_it_lets_through() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = memory(&dir, &[("of another kind", 0.9)]);
    store(&mut memory, &[prompt(7, "p2", "unasked")], |_| {
        let concepts = vec!["rare".to_owned()];
        vec![Observation {
            concepts,
            ..told("wanted")
        }]
    });
    embed(&mut memory, |_| towards(0.3));
    let filter = Filter {
        concept: Some("rare".into()),
        ..Filter::default()
    };
    let query = Query {
        filter,
        ..query("zeta")
    };
    assert_eq!(titles(&found_by(&memory, &query)), ["wanted"]);
}

#[test]
fn a_filter_holds_for_what_is_found_by_meaning_too() {
    let dir = tempfile::tempdir().unwrap();
    let many: Vec<String> = (0..400).map(|at| format!("filler{at} word{at}")).collect();
    let mut all: Vec<(&str, f32)> = many.iter().map(|it| (it.as_str(), 0.9)).collect();
    all.push(("the one", 0.5));
    let mut memory = memory(&dir, &all);
    store(&mut memory, &[prompt(7, "p2", "unasked")], |_| {
        let concepts = vec!["rare".to_owned()];
        vec![Observation {
            concepts,
            ..told("wanted")
        }]
    });
    embed(&mut memory, |_| towards(0.4));
    let filter = Filter {
        concept: Some("rare".into()),
        ..Filter::default()
    };
    let found = found_by(
        &memory,
        &Query {
            filter,
            ..query("zeta")
        },
    );
    assert_eq!(titles(&found), ["wanted"]);
}

#[test]
fn of_hits_with_the_same_score_the_newest_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(&dir, &[("first", 0.6), ("second", 0.6), ("third", 0.6)]);
    assert_eq!(
        titles(&found_by(&memory, &query("zeta"))),
        ["third", "second", "first"]
    );
}

#[test]
fn what_is_like_the_best_hits_comes_before_what_is_a_little_nearer() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    store(&mut memory, &[prompt(1, "p1", "unasked")], |_| {
        let titles = ["alpha one", "alpha two", "like them", "of another kind"];
        titles.map(told).into()
    });
    embed(&mut memory, |text| match text {
        _ if text.starts_with("alpha") => towards(0.9),
        _ if text.starts_with("like") => towards(0.5),
        _ if text.starts_with("of") => {
            let mut vector = [0.0; DIMENSIONS];
            (vector[0], vector[2]) = (0.55, 0.835);
            vector
        }
        _ => towards(0.0),
    });
    assert_eq!(
        titles(&found_by(&memory, &query("alpha"))),
        ["alpha two", "alpha one", "like them", "of another kind"]
    );
}

#[test]
fn one_word_of_many_is_not_all_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let many = "zeta eta theta iota kappa lambda";
    let mut memory = memory(&dir, &[(many, 0.1)]);
    store(&mut memory, &[prompt(7, "p2", "unasked")], |_| {
        let titles = ["one word of them", "nearer"];
        let concepts = vec!["rare".to_owned()];
        let told = |title: &str| Observation {
            concepts: concepts.clone(),
            ..told(title)
        };
        titles.map(told).into()
    });
    embed(&mut memory, |text| {
        towards(if text == "nearer" { 0.8 } else { 0.4 })
    });
    let filter = Filter {
        concept: Some("rare".into()),
        ..Filter::default()
    };
    let words = format!("{many} word");
    let query = Query {
        filter,
        ..query(&words)
    };
    assert_eq!(
        titles(&found_by(&memory, &query)),
        ["nearer", "one word of them"]
    );
}

#[test]
fn what_is_too_far_from_the_query_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(&dir, &[("alpha", 0.13)]);
    let nothing = found_by(&memory, &query("zeta eta"));
    assert_eq!(
        (titles(&nothing), nothing.answer),
        (vec![], MatchKind::Nothing)
    );
    assert_eq!(nothing.unknown, ["zeta", "eta"]);
}

#[test]
fn a_clear_first_hit_by_words_stays_first_unless_another_is_clearly_nearer() {
    let dir = tempfile::tempdir().unwrap();
    let told = [("alpha beta", 0.4), ("gamma", 0.1), ("near", 0.88)];
    let memory = memory(&dir, &told);
    let found = found_by(&memory, &query("alpha beta gamma"));
    assert_eq!(titles(&found)[0], "alpha beta");
    let dir = tempfile::tempdir().unwrap();
    let memory = self::memory(&dir, &[told[0], told[1], ("near", 1.0)]);
    let found = found_by(&memory, &query("beta gamma delta"));
    assert_eq!(titles(&found)[0], "near");
}

#[test]
fn what_is_not_embedded_yet_is_ranked_by_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = memory(&dir, &[("alpha one", 0.3), ("beta two", 0.6)]);
    store(&mut memory, &[prompt(7, "p2", "unasked")], |_| {
        vec![told("alpha beta gamma")]
    });
    let found = found_by(&memory, &query("alpha beta gamma"));
    assert_eq!(titles(&found)[0], "alpha beta gamma");
    assert_eq!(found.answer, MatchKind::AllWords);
}

#[test]
fn a_query_without_words_or_by_date_goes_by_words_alone() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(&dir, &[("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6)]);
    let two = Query {
        limit: 2,
        ..query("zeta")
    };
    assert_eq!(titles(&found_by(&memory, &two)), ["a", "b"]);
    let listed = Query { words: "", ..two };
    assert_eq!(found_by(&memory, &listed).answer, MatchKind::Listed);
    let dated = Query {
        sort: Sort::Date,
        ..query("a")
    };
    assert_eq!(titles(&found_by(&memory, &dated)), ["a"]);
}

/// Stores the first turn again, with another text for alpha.
fn tell_again(memory: &mut Store, at: Millis, title: &str) {
    let more = Event {
        prompt_id: Some("p1".into()),
        ..event("s", at, EventKind::ToolUse)
    };
    let alpha = Observation {
        seed: "alpha".into(),
        ..told(title)
    };
    store(memory, &[more], |_| vec![alpha.clone(), told("beta")]);
}

#[test]
fn a_text_that_changes_or_goes_takes_its_vectors_along() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = memory(&dir, &[("alpha", 0.9), ("beta", 0.8)]);
    let (embedded, items) = memory.embedded(MODEL).unwrap();
    assert_eq!(
        (embedded, items),
        (items, 4),
        "prompt, summary, two observations"
    );
    let id = |title: &str| {
        let found = found_by(&memory, &query(title));
        found.hits.iter().find(|it| it.title == title).unwrap().id
    };
    let (alpha, beta) = (id("alpha"), id("beta"));
    let again = |memory: &mut Store, at: Millis, title: &str| {
        tell_again(memory, at, title);
        let left = memory.unembedded(MODEL, 10).unwrap();
        left.into_iter().map(|it| it.id).collect::<Vec<_>>()
    };
    // An item that is derived again with the same text keeps its vectors.
    assert_eq!(again(&mut memory, 2, "alpha"), [0; 0]);
    assert_eq!(again(&mut memory, 3, "alpha, said better"), [alpha]);
    memory.forget(&[beta], NOW).unwrap();
    let rows: Vec<i64> = outside(&dir)
        .prepare("select item_id from vectors")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(!rows.contains(&beta) && !rows.contains(&alpha), "{rows:?}");
}

#[test]
fn a_prompt_that_nothing_came_of_is_neither_embedded_nor_listed() {
    let dir = tempfile::tempdir().unwrap();
    let memory = memory(&dir, &[("alpha", 0.9)]);
    // The trigger for the full text needs a function that only the store has.
    let empty = "drop trigger prompts_text_update; update prompts set kept = 0";
    outside(&dir).execute_batch(empty).unwrap();
    assert_eq!(memory.embedded(MODEL).unwrap(), (2, 2));
    assert_eq!(memory.unembedded(MODEL, 10).unwrap(), []);
    let listed = found_by(&memory, &query("")).hits;
    let kinds: Vec<_> = listed.iter().map(|hit| hit.kind).collect();
    assert!(!kinds.contains(&Kind::Prompt), "{kinds:?}");
}

#[test]
fn vectors_of_a_text_that_changed_meanwhile_are_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    store(&mut memory, &[prompt(1, "p1", "unasked")], |_| {
        vec![told("alpha"), told("beta")]
    });
    let items = memory.unembedded(MODEL, 10).unwrap();
    tell_again(&mut memory, 2, "alpha, said better");
    let made = |it: Unembedded| {
        let vectors = vec![towards(0.5); it.chunks.len()];
        (it, vectors)
    };
    let made: Vec<_> = items.into_iter().map(made).collect();
    memory.put_vectors(MODEL, &made).unwrap();
    let left = memory.unembedded(MODEL, 10).unwrap();
    let left: Vec<_> = left.into_iter().map(|it| it.chunks.concat()).collect();
    assert_eq!(left, ["alpha, said better"]);
}

#[test]
fn damaged_vectors_and_those_of_another_model_are_left_out_dropped_and_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = memory(&dir, &[("alpha", 0.9), ("beta", 0.8)]);
    let other = outside(&dir);
    let harm = "update vectors set chunks = zeroblob(length(chunks))
                where item_id = (select id from observations where title = 'alpha')";
    assert_eq!(other.execute(harm, []).unwrap(), 1);
    assert_eq!(titles(&found_by(&memory, &query("zeta"))), ["beta"]);
    assert_eq!(memory.drop_useless_vectors(MODEL).unwrap(), 1);
    assert_eq!(memory.unembedded(MODEL, 10).unwrap().len(), 1);
    embed(&mut memory, |_| towards(0.9));
    assert_eq!(
        titles(&found_by(&memory, &query("zeta"))),
        ["alpha", "beta"]
    );

    assert_eq!(memory.embedded("another").unwrap().0, 0);
    assert_eq!(memory.drop_useless_vectors("another").unwrap(), 4);
    assert_eq!(memory.unembedded("another", 10).unwrap().len(), 4);
}

#[test]
fn loaded_vectors_take_in_what_was_made_since() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = memory(&dir, &[("alpha", 0.9)]);
    let mut loaded = LoadedVectors::default();
    memory.load_vectors(MODEL, &mut loaded).unwrap();
    let before = loaded.vectors.clone();
    memory.load_vectors(MODEL, &mut loaded).unwrap();
    assert_eq!((&loaded.vectors, loaded.percent), (&before, 100));
    // One vector is replaced; their number stays the same.
    let last: i64 = outside(&dir)
        .query_row(
            "delete from vectors where made = (select max(made) from vectors) returning item_id",
            [],
            |row| row.get(0),
        )
        .unwrap();
    embed(&mut memory, |_| towards(0.1));
    memory.load_vectors(MODEL, &mut loaded).unwrap();
    let count = |vectors: &Vectors| vectors.nearest(&towards(1.0), 100).len();
    assert_eq!(count(&loaded.vectors), count(&before));
    assert_ne!(loaded.vectors.of(last), before.of(last));
    let mut anew = LoadedVectors::default();
    memory.load_vectors(MODEL, &mut anew).unwrap();
    assert_eq!(loaded.vectors.of(last), anew.vectors.of(last));
    // An item without vectors counts.
    store(&mut memory, &[prompt(9, "p9", "asked")], |_| Vec::new());
    memory.load_vectors(MODEL, &mut loaded).unwrap();
    assert_eq!(loaded.percent, 60);
}

#[test]
fn what_is_close_in_meaning_is_related_and_what_says_nearly_the_same_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = memory(&dir, &[("tokens are rejected too early", 1.0)]);
    for (number, title) in [
        (7, "too soon"),
        (8, "somewhat like it"),
        (9, "of something else"),
    ] {
        let id = format!("p{number}");
        let event = Event {
            host_session_id: format!("other{number}"),
            ..prompt(number, &id, "asked")
        };
        store(&mut memory, &[event], |_| {
            vec![Observation {
                files: Vec::new(),
                ..told(title)
            }]
        });
    }
    embed(&mut memory, |title| {
        towards(match title {
            _ if title.contains("early") => 1.0,
            _ if title.contains("soon") => 0.98,
            _ if title.contains("somewhat") => 0.7,
            _ => 0.1,
        })
    });
    let mut loaded = LoadedVectors::default();
    memory.load_vectors(MODEL, &mut loaded).unwrap();
    let found = found_by(&memory, &query("rejected")).hits[0].id;
    let related = memory.related_by_meaning(found, &loaded.vectors).unwrap();
    let related: Vec<_> = related
        .iter()
        .map(|it| (it.title.as_str(), it.why.as_str()))
        .collect();
    assert_eq!(
        related,
        [
            ("too soon", "nearly the same"),
            ("somewhat like it", "close in meaning")
        ]
    );
}
