//! Freshness of an observation's files, and related observations.

use std::path::Path;

use foreword_core::model::{Event, FileRole, Freshness, Observation, TouchedFile};
use foreword_core::project::Place;
use foreword_core::search::Related;
use foreword_core::search::{Filter, Query, Sort, freshen, search};
use foreword_core::store::Store;

use crate::store::{observation, open, prompt, store};

/// An observation in a session of its own.
fn learn(memory: &mut Store, session: &str, root: &Path, observation: &Observation) {
    let event = Event {
        host_session_id: session.into(),
        key: session.into(),
        id: uuid::Uuid::from_u128(session.as_bytes()[0].into()),
        root: Some(root.display().to_string()),
        ..prompt(1, session, "unasked")
    };
    store(memory, &[event], |_| vec![observation.clone()]);
}

fn file(path: &str, role: FileRole) -> TouchedFile {
    TouchedFile {
        path: path.into(),
        role,
        size: Some(3),
        mtime: Some(1),
        hash: Some(blake3::hash(b"one").to_hex().to_string()),
    }
}

fn about(title: &str, files: &[(&str, FileRole)], concepts: &[&str]) -> Observation {
    Observation {
        files: files.iter().map(|(path, role)| file(path, *role)).collect(),
        concepts: concepts.iter().map(|it| (*it).to_owned()).collect(),
        ..observation(title, title)
    }
}

#[test]
fn what_no_longer_fits_its_files_is_marked_and_moves_down() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("same.rs"), "one").unwrap();
    std::fs::write(root.join("changed.rs"), "other").unwrap();
    let mut memory = open(&dir);
    for (session, path) in [("a", "same.rs"), ("b", "changed.rs"), ("c", "gone.rs")] {
        // Of two with the same points the later comes first.
        let one = about("kumquat", &[(path, FileRole::Modified)], &[]);
        learn(&mut memory, session, &root, &one);
    }
    let found = |here: &Place, sort| {
        let query = Query {
            words: "kumquat",
            filter: Filter::default(),
            sort,
            limit: 10,
        };
        let mut hits = search(&memory, &query).unwrap().hits;
        let before = hits[0].score.unwrap();
        freshen(&memory, here, sort, &mut hits).unwrap();
        let rows = hits.iter().map(|hit| {
            let left = (hit.score.unwrap() / before * 100.0).round();
            (hit.session.clone(), hit.freshness, left)
        });
        rows.collect::<Vec<_>>()
    };
    let row = |session: &str, freshness, left: f64| (session.to_owned(), Some(freshness), left);
    let ranked = [
        row("a", Freshness::Fresh, 100.0),
        row("b", Freshness::Changed, 90.0),
        row("c", Freshness::Gone, 75.0),
    ];
    // From outside the project, paths are below the session's working tree.
    let elsewhere = Place::default();
    assert_eq!(found(&elsewhere, Sort::Relevance), ranked);
    let by_date: Vec<_> = found(&elsewhere, Sort::Date)
        .into_iter()
        .map(|(session, _, left)| (session, left))
        .collect();
    let rows = ["c", "b", "a"].map(|it| (it.to_owned(), 100.0));
    assert_eq!(by_date, rows);

    // From another working tree of the project, paths are below that one.
    let other = dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let here = Place {
        project: Some("/p".into()),
        root: Some(other),
        ..Place::default()
    };
    let states = |rows: Vec<(String, Option<Freshness>, f64)>| {
        rows.into_iter().map(|(_, it, _)| it).collect::<Vec<_>>()
    };
    let seen = states(found(&here, Sort::Relevance));
    assert_eq!(seen, [Some(Freshness::Gone); 3]);
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(states(found(&elsewhere, Sort::Relevance)), [None; 3]);
}

#[test]
fn observations_of_other_sessions_are_related_by_files_and_concepts() {
    use FileRole::{Modified, Read};
    let dir = tempfile::tempdir().unwrap();
    let mut memory = open(&dir);
    let told: &[(&str, Observation)] = &[
        ("a", about("read it", &[("src/a.rs", Read)], &[])),
        ("b", about("one word", &[], &["jwt"])),
        ("c", about("two words", &[], &["auth", "jwt"])),
        (
            "d",
            about(
                "changed it",
                &[("src/a.rs", Modified), ("src/b.rs", Read)],
                &["jwt"],
            ),
        ),
        (
            "e",
            about(
                "the one",
                &[("src/a.rs", Modified), ("src/b.rs", Modified)],
                &["jwt", "auth"],
            ),
        ),
    ];
    for (session, observation) in told {
        learn(&mut memory, session, dir.path(), observation);
    }
    let id = |title: &str| {
        let query = Query {
            words: title,
            filter: Filter::default(),
            sort: Sort::Relevance,
            limit: 1,
        };
        search(&memory, &query).unwrap().hits[0].id
    };
    let related = |title: &str, why: &str| Related {
        id: id(title),
        r#type: foreword_core::model::ObservationType::Bugfix,
        title: title.to_owned(),
        why: why.to_owned(),
    };
    assert_eq!(
        memory.related(id("the one")).unwrap(),
        [
            related("changed it", "same file src/a.rs and 1 more; concept jwt"),
            related("two words", "concepts auth, jwt"),
            related("read it", "same file src/a.rs"),
        ]
    );
    assert_eq!(memory.related(999).unwrap(), []);
}
