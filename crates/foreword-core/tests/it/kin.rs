//! How often a repeat is recognised: the labelled pairs of `testdata/kin`.

use std::collections::BTreeMap;
use std::path::Path;

use foreword_core::model::ObservationType;
use foreword_core::store::kin::{Insight, is_repeat};
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
    facts: Vec<String>,
    files: Vec<String>,
}

impl LabelledInsight {
    fn insight(&self) -> Insight<'_> {
        Insight {
            kind: self.r#type,
            title: &self.title,
            facts: &self.facts,
            files: &self.files,
        }
    }
}

/// Rows are the true relation of a pair, columns the answer.
fn table(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/kin")
        .join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let mut answers: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for line in text.lines() {
        let pair: Pair = serde_json::from_str(line).unwrap();
        let is_repeat = is_repeat(&pair.older.insight(), &pair.newer.insight());
        answers.entry(pair.relation).or_default()[usize::from(!is_repeat)] += 1;
    }
    let rows = answers.iter().map(|(relation, [repeat, unrelated])| {
        format!("{relation:<15}{repeat:>6}{unrelated:>11}\n")
    });
    format!(
        "true \\ said    repeat  unrelated\n{}",
        rows.collect::<String>()
    )
}

#[test]
fn the_labelled_pairs_are_judged_as_the_readme_says() {
    insta::assert_snapshot!(table("dev.jsonl"), @r"
    true \ said    repeat  unrelated
    duplicate           2         11
    supersedes          0         13
    unrelated           0         14
    ");
    insta::assert_snapshot!(table("held_out.jsonl"), @r"
    true \ said    repeat  unrelated
    duplicate           2         11
    supersedes          0         13
    unrelated           0         14
    ");
}
