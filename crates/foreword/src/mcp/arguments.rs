//! The arguments of the tools. The comment of a field is part of the schema that the agent gets, so
//! each word costs tokens.

use anyhow::Context as _;
use foreword_core::model::{Kind, ObservationType};
use foreword_core::search::{Filter, Sort};
use rmcp::schemars::{self, JsonSchema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::service::Reader;
use crate::service::search::{Format, LIMIT, SearchRequest};
use crate::service::when::when;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// Words; without any, everything the filters let through
    #[serde(deserialize_with = "or_default")]
    pub query: String,
    /// Default 10, at most 50
    pub limit: Option<u32>,
    /// How much of each hit, the cheapest first; default index
    #[schemars(extend("enum" = ["sessions", "summaries", "index", "facts", "full", "json"]))]
    #[schemars(with = "Option<String>")]
    pub format: Option<Format>,
    #[schemars(extend("enum" = ["decision", "bugfix", "feature", "refactor", "discovery"]))]
    #[schemars(with = "Option<String>")]
    pub r#type: Option<ObservationType>,
    #[schemars(extend("enum" = ["observation", "summary", "prompt", "note"]))]
    #[schemars(with = "Option<String>")]
    pub kind: Option<Kind>,
    pub concept: Option<String>,
    /// Path, its end, or a folder
    pub file: Option<String>,
    /// Names; ["*"] for all. Default: this one
    #[serde(alias = "project", deserialize_with = "one_or_more")]
    pub projects: Vec<String>,
    /// 30d, 12h, today or 2026-11-01
    pub since: Option<String>,
    pub until: Option<String>,
    #[schemars(extend("enum" = ["relevance", "date"]))]
    #[schemars(with = "Option<String>")]
    pub sort: Option<Sort>,
}

const ALL_PROJECTS: &str = "*";
const LIMIT_MAX: u32 = 50;

impl Search {
    pub fn request(&self, reader: &Reader) -> anyhow::Result<SearchRequest> {
        Ok(SearchRequest {
            sort: self.sort.unwrap_or_default(),
            format: self.format.unwrap_or_default(),
            limit: self.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX),
            ..SearchRequest::new(&self.query, self.filter(reader)?)
        })
    }

    /// The filter of this search: in the reader's project unless others are named.
    pub fn filter(&self, reader: &Reader) -> anyhow::Result<Filter> {
        let time = |text: &Option<String>| {
            let when = text.as_deref().map(when).transpose();
            when.map_err(anyhow::Error::msg)
        };
        let file = self.file.as_deref();
        Ok(Filter {
            projects: projects(&self.projects, reader.project())?,
            kind: self.kind,
            observation_type: self.r#type,
            concept: self.concept.clone(),
            file: file.and_then(|file| reader.place.name_of(file)),
            since: time(&self.since)?.map(|when| when.start(reader.now)),
            until: time(&self.until)?.map(|when| when.end(reader.now)),
            ..Filter::default()
        })
    }
}

/// Accepts null for a missing value. Models also write one element for a list of one, and `"#12"`
/// for 12, which the functions below accept.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    source: D,
) -> Result<T, D::Error> {
    Option::deserialize(source).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore<T> {
    More(Vec<T>),
    One(T),
}

fn one_or_more<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    source: D,
) -> Result<Vec<T>, D::Error> {
    Ok(match Option::deserialize(source)? {
        None => Vec::new(),
        Some(OneOrMore::One(one)) => vec![one],
        Some(OneOrMore::More(more)) => more,
    })
}

fn numbers<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<i64>, D::Error> {
    let numbers: Vec<Value> = one_or_more(source)?;
    let number = |it: &Value| match it {
        Value::String(text) => text.trim_start_matches('#').parse().ok(),
        other => other.as_i64(),
    };
    let read = numbers.iter().map(|it| {
        number(it).ok_or_else(|| D::Error::custom(format!("{it} is not a number such as 12")))
    });
    read.collect()
}

fn projects(named: &[String], current: Option<&str>) -> anyhow::Result<Option<Vec<String>>> {
    if named.iter().any(|name| name == ALL_PROJECTS) {
        return Ok(None);
    }
    if !named.is_empty() {
        return Ok(Some(named.to_vec()));
    }
    let current =
        current.context("not a project directory; name some in `projects`, or [\"*\"] for all")?;
    Ok(Some(vec![current.to_owned()]))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observations {
    #[serde(alias = "id", deserialize_with = "numbers")]
    pub ids: Vec<i64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeline {
    pub id: Option<i64>,
    pub query: Option<String>,
    /// How many on each side; default 5, at most 20
    pub around: Option<u32>,
}

const AROUND: u32 = 5;
const AROUND_MAX: u32 = 20;

impl Timeline {
    pub fn around(&self) -> u32 {
        self.around.unwrap_or(AROUND).min(AROUND_MAX)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// Complete in itself
    pub text: String,
    /// Default: its first sentence
    pub title: Option<String>,
    /// Default decision
    #[serde(default)]
    #[schemars(extend("enum" = ["decision", "bugfix", "feature", "refactor", "discovery"]))]
    #[schemars(with = "Option<String>")]
    pub r#type: Option<ObservationType>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub facts: Vec<String>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub files: Vec<String>,
    #[serde(default, deserialize_with = "one_or_more")]
    pub concepts: Vec<String>,
    #[serde(default)]
    #[schemars(extend("enum" = ["user", "team"]))]
    #[schemars(with = "Option<String>")]
    pub scope: Scope,
    /// When it stops to hold: 7d or 2026-12-01
    pub until: Option<String>,
}

/// For whom something is remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    #[default]
    User,
    Team,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forget {
    #[serde(alias = "id", deserialize_with = "numbers")]
    pub ids: Vec<i64>,
    #[serde(default)]
    pub confirm: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    /// A sub-area
    pub scope: Option<String>,
}
