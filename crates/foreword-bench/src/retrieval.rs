//! `foreword-bench retrieval`: does search find the sessions that answer a question?
//!
//! The data is a file of questions, one JSON object a line, each with its own haystack
//! of sessions. All of them go into one fresh memory on disk, a project for each
//! question, as prompts; then each question is a query in its project: by words, by
//! vectors alone if the model is installed, and by both as the command `search` does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use foreword_core::model::{Event, EventKind, Millis, Payload};
use foreword_core::search::LoadedVectors;
use foreword_core::search::vectors::Vectors;
use foreword_core::search::{Filter, Found, Hit, Meaning, Query, Sort, search, search_by_meaning};
use foreword_core::store::{Batch, Replaces, Store};
use foreword_embed::SentenceModel as Model;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::statistics::{milliseconds, percentile};
use foreword::home::Home;
use foreword::service;
use foreword::service::sentence_model;

#[derive(clap::Args)]
pub struct Args {
    /// Questions and their sessions: {"id", "type", "question", "gold": [session id], "sessions": [{"id", "date", "text"}]} a line
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Search by words alone
    #[arg(long)]
    no_model: bool,
    /// Keep the memory with its vectors in this folder, and use the one that is there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct DataQuestion {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    question: String,
    gold: BTreeSet<String>,
    sessions: Vec<DataSession>,
}

#[derive(Deserialize)]
struct DataSession {
    id: String,
    date: Option<String>,
    text: String,
}

/// A question's result: the ranks of its gold sessions among the found ones, from 0, and the time
/// of the search.
pub struct RankedQuestion<'a> {
    kind: &'a str,
    gold: usize,
    ranks: Vec<usize>,
    took: Duration,
}

/// The size of the prompts that a session is stored as: a whole turn, or several short ones.
const PROMPT_CHARACTERS: usize = 2_000;
/// Hits for each query; several may be of one session, and ten sessions are wanted.
const HITS: u32 = 100;

pub fn run(args: &Args) -> anyhow::Result<()> {
    let data = std::fs::read(&args.data)
        .with_context(|| format!("could not read {}", args.data.display()))?;
    let questions = serde_json::Deserializer::from_slice(&data)
        .into_iter()
        .collect::<Result<Vec<DataQuestion>, _>>()
        .context("the data does not have the fields that `--help` shows")?;
    let dir = tempfile::Builder::new()
        .prefix("foreword-bench-")
        .tempdir()?;
    let started = Instant::now();
    let home = Home::at(args.keep.as_deref().unwrap_or(dir.path()));
    std::fs::create_dir_all(home.dir())?;
    let kept = home.memory().exists();
    let mut store = Store::open(&home.memory(), &home.backups())?;
    for question in questions.iter().filter(|_| !kept) {
        for session in &question.sessions {
            remember(&mut store, question, session)?;
        }
    }
    let model = service::home_to_look_at()?.model();
    let model = (!args.no_model && model.exists()).then(|| Model::open(&model));
    let model = model
        .transpose()
        .context("the sentence model cannot be used")?;
    let all = |ask: &dyn Fn(&DataQuestion) -> anyhow::Result<Found>| {
        let asked = questions.iter().map(|question| {
            let gold = question.gold.iter();
            let gold = gold.map(|id| host_session_id(question, id)).collect();
            RankedQuestion::of(&question.kind, &gold, || ask(question))
        });
        asked.collect::<anyhow::Result<Vec<_>>>()
    };
    let by_words = all(&|question| Ok(search(&store, &query(question))?))?;
    let mut report = match &model {
        None => report(&by_words),
        Some(model) => {
            embed(&mut store, model)?;
            let mut loaded = LoadedVectors::default();
            store.load_vectors(sentence_model::NAME, &mut loaded)?;
            let vectors = &loaded.vectors;
            let by_vectors = all(&|it| by_vectors(&store, vectors, model, it))?;
            let fused = all(&|it| {
                let meaning = Meaning {
                    vectors,
                    question: &model.embed(&it.question),
                };
                Ok(search_by_meaning(&store, &query(it), meaning)?)
            })?;
            let mut report = compared(&fused, &by_words);
            report.insert("records".into(), vectors.len().into());
            report.insert("by_vectors".into(), self::report(&by_vectors).into());
            report
        }
    };
    report.insert("model".into(), model.map(|_| sentence_model::NAME).into());
    report.insert("seconds".into(), started.elapsed().as_secs().into());
    report.insert(
        "source_sha256".into(),
        format!("{:x}", Sha256::digest(&data)).into(),
    );
    print(&report, args.json);
    Ok(())
}

/// Prints the report as JSON, or as lines with the figures of words alone beside them.
pub fn print(report: &Map<String, Value>, as_json: bool) {
    if as_json {
        println!("{:#}", Value::from(report.clone()));
        return;
    }
    let other = |name: &str| report.get("by_words").and_then(|it| it.get(name));
    for (name, value) in report.iter().filter(|(_, value)| !value.is_object()) {
        match other(name) {
            Some(by_words) => println!("{name:<14} {value:<8} by words alone {by_words}"),
            None => println!("{name:<14} {value}"),
        }
    }
}

/// The figures of both kinds of search, and how often each ranked a question better.
pub fn compared(
    fused: &[RankedQuestion<'_>],
    by_words: &[RankedQuestion<'_>],
) -> Map<String, Value> {
    let better = |a: &[RankedQuestion<'_>], b: &[RankedQuestion<'_>]| {
        let both = a.iter().zip(b);
        both.filter(|(a, b)| a.ndcg() > b.ndcg()).count()
    };
    let mut report = report(fused);
    report.insert("won".into(), better(fused, by_words).into());
    report.insert("lost".into(), better(by_words, fused).into());
    report.insert("by_words".into(), self::report(by_words).into());
    report
}

/// Figures of all questions, and by their type.
pub fn report(asked: &[RankedQuestion<'_>]) -> Map<String, Value> {
    let mut report = figures(&asked.iter().collect::<Vec<_>>());
    let mut types: BTreeMap<&str, Vec<&RankedQuestion<'_>>> = BTreeMap::new();
    for it in asked {
        types.entry(it.kind).or_default().push(it);
    }
    let types: Map<_, _> = types
        .into_iter()
        .map(|(kind, asked)| (kind.to_owned(), figures(&asked).into()))
        .collect();
    let times: Vec<f64> = asked.iter().map(|it| milliseconds(it.took)).collect();
    report.insert("by_type".into(), types.into());
    report.insert("ms_p50".into(), json!(percentile(&times, 50)));
    report
}

/// Embeds everything as the worker does, but on two threads, and prints its progress.
pub fn embed(store: &mut Store, model: &Model) -> anyhow::Result<()> {
    loop {
        let items = store.unembedded(sentence_model::NAME, 1_000)?;
        let texts: Vec<&str> = items
            .iter()
            .flat_map(|it| &it.chunks)
            .map(String::as_str)
            .collect();
        let mut vectors = model.embed_all(&texts, 2).into_iter();
        let made: Vec<_> = items
            .into_iter()
            .map(|it| (vectors.by_ref().take(it.chunks.len()).collect(), it))
            .map(|(vectors, it)| (it, vectors))
            .collect();
        if made.is_empty() {
            return Ok(());
        }
        store.put_vectors(sentence_model::NAME, &made)?;
        let (embedded, items) = store.embedded(sentence_model::NAME)?;
        eprintln!("{embedded} of {items} embedded");
    }
}

fn remember(
    store: &mut Store,
    question: &DataQuestion,
    session: &DataSession,
) -> anyhow::Result<()> {
    let at = session.at().unwrap_or_default();
    let mut prompts = vec![String::new()];
    for line in session.text.lines() {
        let last = prompts.last_mut().expect("there is always one");
        if last.len() + line.len() > PROMPT_CHARACTERS && !last.is_empty() {
            prompts.push(line.to_owned());
        } else {
            last.push_str(line);
            last.push('\n');
        }
    }
    let events: Vec<Event> = (0..)
        .zip(prompts)
        .map(|(number, prompt)| event(question, session, at, number, prompt))
        .collect();
    store.commit(&Batch {
        events: &events,
        turns: &[],
        replaces: Replaces::Nothing,
        digest: None,
        provider: "offline",
        now: at,
    })?;
    Ok(())
}

fn event(
    question: &DataQuestion,
    session: &DataSession,
    at: Millis,
    number: i64,
    prompt: String,
) -> Event {
    let host_session_id = host_session_id(question, &session.id);
    Event {
        id: Uuid::now_v7(),
        key: format!("{host_session_id}:{number}"),
        kind: EventKind::Prompt,
        host: "bench".to_owned(),
        prompt_id: Some(number.to_string()),
        agent_id: None,
        tool_name: None,
        tool_use_id: None,
        cwd: None,
        project_dir: None,
        project: Some(project(question)),
        root: None,
        transcript_path: None,
        branch: None,
        commit: None,
        files: Vec::new(),
        payload: Payload {
            prompt: Some(prompt),
            ..Payload::default()
        },
        at: at + number,
        host_session_id,
    }
}

fn project(question: &DataQuestion) -> String {
    format!("/bench/{}", question.id)
}

fn host_session_id(question: &DataQuestion, session: &str) -> String {
    format!("{}/{session}", question.id)
}

/// The day of a date such as `2023/05/26 (Fri) 04:41`.
fn date(text: &str) -> Option<Millis> {
    let day = text.split(' ').next()?.replace('/', "-");
    let date: jiff::civil::Date = day.parse().ok()?;
    let start = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(start.timestamp().as_millisecond())
}

impl DataSession {
    fn at(&self) -> Option<Millis> {
        self.date.as_deref().and_then(date)
    }
}

fn query(question: &DataQuestion) -> Query<'_> {
    Query {
        words: &question.question,
        filter: Filter {
            projects: Some(vec![project(question)]),
            ..Filter::default()
        },
        sort: Sort::Relevance,
        limit: HITS,
        offset: 0,
    }
}

/// Ranks all items of the project by the distance of their vectors alone.
fn by_vectors(
    store: &Store,
    vectors: &Vectors,
    model: &Model,
    question: &DataQuestion,
) -> anyhow::Result<Found> {
    let everything = Query {
        words: "",
        limit: u32::MAX,
        ..query(question)
    };
    let mut found = search(store, &everything)?;
    let mut hits: HashMap<i64, Hit> = found.hits.drain(..).map(|it| (it.id, it)).collect();
    let vector = model.embed(&question.question);
    let mut near = vectors.near(&vector, hits.keys().copied());
    near.sort_by(|a, b| b.1.total_cmp(&a.1));
    found.hits = near
        .into_iter()
        .filter_map(|(id, _)| hits.remove(&id))
        .collect();
    Ok(found)
}

impl<'a> RankedQuestion<'a> {
    /// Runs a search and finds the ranks of the gold sessions, given by the host's ids.
    pub fn of(
        kind: &'a str,
        gold: &BTreeSet<String>,
        ask: impl FnOnce() -> anyhow::Result<Found>,
    ) -> anyhow::Result<RankedQuestion<'a>> {
        let started = Instant::now();
        let found = ask()?;
        let took = started.elapsed();
        let mut sessions: Vec<String> = Vec::new();
        for hit in found.hits {
            if !sessions.contains(&hit.session) {
                sessions.push(hit.session);
            }
        }
        let ranks = (0..)
            .zip(&sessions)
            .filter(|(_, it)| gold.contains(*it))
            .map(|(rank, _)| rank)
            .collect();
        Ok(RankedQuestion {
            kind,
            gold: gold.len(),
            ranks,
            took,
        })
    }
}

fn figures(asked: &[&RankedQuestion<'_>]) -> Map<String, Value> {
    let mean = |figure: &dyn Fn(&RankedQuestion<'_>) -> f64| {
        let sum: f64 = asked.iter().map(|it| figure(it)).sum();
        let mean = sum / asked.len().max(1) as f64;
        Value::from((mean * 10_000.0).round() / 10_000.0)
    };
    let mut figures = Map::new();
    figures.insert("n".into(), asked.len().into());
    for top in [1, 5, 10] {
        let any = |it: &RankedQuestion<'_>| f64::from(u8::from(it.within(top) > 0));
        figures.insert(format!("recall_any@{top}"), mean(&any));
    }
    for top in [5, 10] {
        let all = |it: &RankedQuestion<'_>| f64::from(u8::from(it.within(top) == it.gold));
        figures.insert(format!("recall_all@{top}"), mean(&all));
    }
    let share = |it: &RankedQuestion<'_>| it.within(1) as f64 / it.gold.max(1) as f64;
    figures.insert("recall@1".into(), mean(&share));
    figures.insert("ndcg@10".into(), mean(&|it| it.ndcg()));
    figures.insert("mrr".into(), mean(&|it| it.reciprocal_rank()));
    figures
}

impl RankedQuestion<'_> {
    fn within(&self, top: usize) -> usize {
        self.ranks.iter().filter(|rank| **rank < top).count()
    }

    fn ndcg(&self) -> f64 {
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let ideal: f64 = (0..self.gold.min(10)).map(gain).sum();
        let ranks = self.ranks.iter().filter(|rank| **rank < 10);
        ranks.map(|rank| gain(*rank)).sum::<f64>() / ideal.max(f64::MIN_POSITIVE)
    }

    fn reciprocal_rank(&self) -> f64 {
        self.ranks
            .first()
            .map_or(0.0, |rank| 1.0 / (*rank as f64 + 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_question_with_two_gold_sessions() {
        let asked = RankedQuestion {
            kind: "k",
            gold: 2,
            ranks: vec![1, 7],
            took: Duration::ZERO,
        };
        let figures = Value::from(figures(&[&asked]));
        assert_eq!(
            figures,
            json!({
                "n": 1, "recall_any@1": 0.0, "recall_any@5": 1.0, "recall_any@10": 1.0,
                "recall_all@5": 0.0, "recall_all@10": 1.0, "recall@1": 0.0, "ndcg@10": 0.5803, "mrr": 0.5,
            })
        );
    }

    #[test]
    fn a_date_of_the_data_is_a_day() {
        assert_eq!(date("1970/01/02 (Fri) 04:41"), Some(86_400_000));
        assert_eq!(date("some day"), None);
    }
}
