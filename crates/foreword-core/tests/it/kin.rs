//! Measures how many labelled pairs of insights in `testdata/kin` are judged right.

use std::collections::BTreeMap;
use std::path::Path;

use foreword_core::model::ObservationType;
use foreword_core::store::kin::judge::{Insight, Kinship, kinship};
use serde::Deserialize;

#[derive(Deserialize)]
struct Pair {
    older: LabelledInsight,
    newer: LabelledInsight,
    relation: String,
}

#[derive(Deserialize)]
struct LabelledInsight {
    r#type: ObservationType,
    title: String,
    subtitle: String,
    facts: Vec<String>,
    narrative: String,
    concepts: Vec<String>,
    files: Vec<String>,
}

impl LabelledInsight {
    fn insight(&self) -> Insight<'_> {
        Insight {
            kind: self.r#type,
            title: &self.title,
            subtitle: &self.subtitle,
            facts: &self.facts,
            narrative: &self.narrative,
            concepts: &self.concepts,
            files: &self.files,
        }
    }
}

/// A table of the labelled relations against the judged ones, with counts.
fn table(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/kin")
        .join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let mut judged = BTreeMap::new();
    let mut wrong = 0;
    for line in text.lines() {
        let pair: Pair = serde_json::from_str(line).unwrap();
        let answer = match kinship(&pair.older.insight(), &pair.newer.insight()) {
            Kinship::Duplicate => "duplicate",
            Kinship::Supersedes => "supersedes",
            Kinship::Unrelated => "unrelated",
        };
        if answer != pair.relation {
            wrong += if answer == "supersedes" { 2 } else { 1 };
        }
        *judged.entry((pair.relation, answer)).or_insert(0) += 1;
    }
    let relations = ["supersedes", "duplicate", "unrelated"];
    let mut out = String::from("true \\ said    supersedes  duplicate  unrelated\n");
    let count = |relation: &str, answer| {
        judged
            .get(&(relation.to_owned(), answer))
            .copied()
            .unwrap_or(0)
    };
    for relation in relations {
        let [s, d, u] = relations.map(|answer| count(relation, answer));
        out.push_str(&format!("{relation:<15}{s:>10}{d:>11}{u:>11}\n"));
    }
    let precision = relations.map(|answer| {
        let all: u32 = relations.iter().map(|it| count(it, answer)).sum();
        format!(
            "{:.2}",
            f64::from(count(answer, answer)) / f64::from(all.max(1))
        )
    });
    let [s, d, u] = precision;
    out.push_str(&format!("precision      {s:>10}{d:>11}{u:>11}\n"));
    let right: u32 = relations.iter().map(|it| count(it, it)).sum();
    let pairs = text.lines().count();
    out.push_str(&format!(
        "{right} of {pairs} right; wrong ones, a wrong “supersedes” twice: {wrong}\n"
    ));
    out
}

#[test]
fn the_labelled_pairs_are_judged_as_the_readme_says() {
    insta::assert_snapshot!(table("dev.jsonl"), @r"
    true \ said    supersedes  duplicate  unrelated
    supersedes             13          0          0
    duplicate               0         13          0
    unrelated               0          0         14
    precision            1.00       1.00       1.00
    40 of 40 right; wrong ones, a wrong “supersedes” twice: 0
    ");
    insta::assert_snapshot!(table("held_out.jsonl"), @r"
    true \ said    supersedes  duplicate  unrelated
    supersedes              4          0          9
    duplicate               0          6          7
    unrelated               0          0         14
    precision            1.00       1.00       0.47
    24 of 40 right; wrong ones, a wrong “supersedes” twice: 16
    ");
}
