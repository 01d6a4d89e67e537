//! What an agent may send. A field's comment is what the agent is told about it, and paid for.

use anyhow::{Context as _, bail};
use foreword_core::model::{Kind, Millis, ObservationType};
use foreword_core::project::Place;
use foreword_core::search::{Filter, HITS_PER_SESSION, Sort};
use rmcp::schemars::{self, JsonSchema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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
    pub format: Option<String>,
    #[schemars(extend("enum" = ["decision", "bugfix", "feature", "refactor", "discovery"]))]
    pub r#type: Option<String>,
    #[schemars(extend("enum" = ["observation", "summary", "prompt", "note"]))]
    pub kind: Option<String>,
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
    pub sort: Option<String>,
}

/// How much of each hit is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Only the sessions that the hits are from.
    Sessions,
    /// And what their prompts came to.
    Summaries,
    Index,
    Facts,
    Full,
    /// As `foreword search --format json` has it.
    Json,
}

impl Format {
    /// How many hits to look for if so many lines are wanted.
    pub fn hits_per_line(self) -> u32 {
        match self {
            Format::Sessions | Format::Summaries => HITS_PER_SESSION,
            Format::Index | Format::Facts | Format::Full | Format::Json => 1,
        }
    }
}

const ALL_PROJECTS: &str = "*";
const LIMIT: u32 = 10;
const LIMIT_MAX: u32 = 50;

impl Search {
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX)
    }

    pub fn format(&self) -> anyhow::Result<Format> {
        Ok(match self.format.as_deref() {
            Some("sessions") => Format::Sessions,
            Some("summaries") => Format::Summaries,
            None | Some("index") => Format::Index,
            Some("facts") => Format::Facts,
            Some("full") => Format::Full,
            Some("json") => Format::Json,
            Some(other) => {
                bail!("format '{other}' is none of sessions, summaries, index, facts, full, json")
            }
        })
    }

    /// Projects that must be there.
    pub fn named_projects(&self) -> &[String] {
        let all = self.projects.iter().any(|name| name == ALL_PROJECTS);
        if all { &[] } else { &self.projects }
    }

    pub fn sort(&self) -> anyhow::Result<Sort> {
        Ok(match self.sort.as_deref() {
            None | Some("relevance") => Sort::Relevance,
            Some("date") => Sort::Date,
            Some(other) => bail!("sort '{other}' is none of relevance, date"),
        })
    }

    /// What to look at, given the project that the server runs in.
    pub fn filter(&self, here: &Place, now: Millis) -> anyhow::Result<Filter> {
        let time = |text: &Option<String>| {
            let when = text.as_deref().map(crate::service::when::when).transpose();
            when.map_err(anyhow::Error::msg)
        };
        Ok(Filter {
            projects: projects(&self.projects, here.project.as_deref())?,
            kind: self.kind.as_deref().map(kind).transpose()?,
            observation_type: self.r#type.as_deref().map(observation_type).transpose()?,
            concept: self.concept.clone(),
            file: self.file.as_deref().and_then(|file| here.name_of(file)),
            since: time(&self.since)?.map(|when| when.start(now)),
            until: time(&self.until)?.map(|when| when.end(now)),
            ..Filter::default()
        })
    }
}

/// A model writes null, one for a list of one, or `"#12"` for 12; what it means is plain.
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
        number(it).ok_or_else(|| D::Error::custom(format!("{it} is no number such as 12")))
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
    let current = current
        .context("this directory is no project; name some in `projects`, or [\"*\"] for all")?;
    Ok(Some(vec![current.to_owned()]))
}

pub fn observation_type(word: &str) -> anyhow::Result<ObservationType> {
    ObservationType::parse(word).with_context(|| {
        let all: Vec<_> = ObservationType::ALL.iter().map(|it| it.as_str()).collect();
        format!("type '{word}' is none of {}", all.join(", "))
    })
}

fn kind(word: &str) -> anyhow::Result<Kind> {
    Kind::parse(word).with_context(|| {
        let all: Vec<_> = Kind::ALL.iter().map(|it| it.as_str()).collect();
        format!("kind '{word}' is none of {}", all.join(", "))
    })
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
    /// Complete in itself; its first sentence becomes the title
    pub text: String,
    /// Default decision
    #[serde(default)]
    #[schemars(extend("enum" = ["decision", "bugfix", "feature", "refactor", "discovery"]))]
    pub r#type: Option<String>,
}

impl Remember {
    pub fn kind(&self) -> anyhow::Result<ObservationType> {
        let word = self.r#type.as_deref();
        word.map_or(Ok(ObservationType::Decision), observation_type)
    }
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
