//! Search by meaning, for whoever searches.
//!
//! The model and all vectors are in memory once: the worker has them, and is asked over a
//! socket (`worker/embed.rs` answers). Whatever is missing for that, the search goes by words at
//! once and says why: it never fails and never waits.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use foreword_core::search::{Answer, Filter, Found, Query, Sort};
use foreword_core::store::{Related, Store};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::home::Home;
use crate::platform::{self, Lock};
use crate::service::sentence_model;
use crate::start;
use crate::switch::{self, Switches};

/// All that asking may take.
const PATIENCE: Duration = Duration::from_millis(150);
/// A question with all that is around it, and an answer.
pub const QUESTION_MAX: usize = 16 << 10;
const ANSWER_MAX: u64 = 4 << 20;
/// Counts up with every change of what is below, or of what it is made of: both sides are this
/// program, but not always of one age.
const VERSION: u32 = 2;

/// What is sent, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Message<T> {
    v: u32,
    it: T,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    Search {
        words: String,
        filter: Filter,
        limit: u32,
        offset: u32,
    },
    Related(i64),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    Found {
        found: Found,
        /// Of the memory, that is searched by meaning.
        percent: u64,
    },
    Related(Vec<Related>),
    Not(Why),
}

/// Why a search goes by words alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    NotInstalled,
    Off,
    SwitchedOff,
    NotRunning,
    Loading,
    Long,
    Slow,
    NothingEmbedded,
    Broken,
    Failed,
}

impl Why {
    fn as_str(self) -> &'static str {
        match self {
            Why::NotInstalled => "`foreword model install` adds search by meaning",
            Why::Off => "the setting `model.embed` is off",
            Why::SwitchedOff => "Foreword is switched off",
            Why::NotRunning => "the worker was not running; in a moment it goes by meaning too",
            Why::Loading => "the worker loads its model; in a moment it goes by meaning too",
            Why::Long => "the question is too long",
            Why::Slow => "the worker did not answer in time",
            Why::NothingEmbedded => "the worker has not embedded anything yet",
            Why::Broken => "the model cannot be used; `foreword model status` says why",
            Why::Failed => "the worker could not search; `foreword logs` says why",
        }
    }
}

/// Finds by words and, where that can be had at once, by meaning; and says what the answer
/// does not tell by itself, a line or nothing.
pub fn search(home: &Home, store: &Store, query: &Query<'_>) -> rusqlite::Result<(Found, String)> {
    let by_words = || foreword_core::search::search(store, query);
    if query.sort == Sort::Date || !query.words.contains(char::is_alphanumeric) {
        return Ok((by_words()?, String::new()));
    }
    let question = Question::Search {
        words: query.words.to_owned(),
        filter: query.filter.clone(),
        limit: query.limit,
        offset: query.offset,
    };
    let why = match ask(home, &question) {
        Told::Found { found, percent } => {
            let note = match percent {
                100.. => String::new(),
                _ => format!("{percent} % of the memory is searched by meaning yet\n"),
            };
            return Ok((found, note));
        }
        Told::Related(_) => Why::Broken,
        Told::Not(why) => why,
    };
    let found = by_words()?;
    // Who lives without a model need not hear of it where words were enough.
    let enough = found.answer == Answer::AllWords;
    let own_wish = matches!(why, Why::NotInstalled | Why::Off | Why::SwitchedOff);
    let note = match enough && own_wish {
        true => String::new(),
        false => format!("by words only: {}\n", why.as_str()),
    };
    Ok((found, note))
}

/// What has to do with an observation, by meaning too where that can be had at once.
pub fn related(home: &Home, store: &Store, id: i64) -> rusqlite::Result<Vec<Related>> {
    match ask(home, &Question::Related(id)) {
        Told::Related(related) => Ok(related),
        _ => store.related(id),
    }
}

/// Which share of the memory can be found by meaning; none if nobody can tell, or nothing is.
pub fn share(home: &Home, store: &Store) -> Option<f64> {
    if !is_installed(home) || !Config::tolerant(home).0.model.embed {
        return None;
    }
    let (embedded, items) = store.embedded(sentence_model::NAME).ok()?;
    Some(if items == 0 {
        1.0
    } else {
        embedded as f64 / items as f64
    })
}

pub fn is_installed(home: &Home) -> bool {
    home.model().join(foreword_embed::WEIGHTS).is_file()
}

/// Asks the worker, and starts one if there is none.
fn ask(home: &Home, question: &Question) -> Told {
    if !is_installed(home) {
        return Told::Not(Why::NotInstalled);
    }
    if !Config::tolerant(home).0.model.embed {
        return Told::Not(Why::Off);
    }
    if switch::off_in_environment() || Switches::read(home).everywhere() {
        return Told::Not(Why::SwitchedOff);
    }
    if !matches!(Lock::holder(&home.lock()), Ok(Some(_))) {
        start::wake_worker(home);
        return Told::Not(Why::NotRunning);
    }
    // One that was idle when the model came does not listen yet.
    if !home.embed_socket().exists() {
        start::wake_worker(home);
        return Told::Not(Why::Loading);
    }
    let (path, question) = (home.embed_socket(), line(question));
    if question.len() > QUESTION_MAX {
        return Told::Not(Why::Long);
    }
    let (sender, receiver) = mpsc::channel();
    // On a thread: to connect to a worker that hangs may take forever.
    std::thread::spawn(move || {
        let answer = match exchange(&path, &question) {
            Ok(answer) => read_answer(&answer),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                Told::Not(Why::NotRunning)
            }
            Err(_) => Told::Not(Why::Slow),
        };
        let _ = sender.send(answer);
    });
    let answer = receiver.recv_timeout(PATIENCE);
    let answer = answer.unwrap_or(Told::Not(Why::Slow));
    if answer == Told::Not(Why::NotRunning) {
        start::wake_worker(home);
    }
    answer
}

fn exchange(path: &Path, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(path)?;
    // Where the data directory's path is too long, the socket lies where others may put one.
    if !platform::is_our_user(&stream) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(question)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}

/// What one side sends to the other.
pub fn line(it: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(&Message { v: VERSION, it }).unwrap_or_default();
    line.push(b'\n');
    line
}

/// What was sent; none if it is not ours, not whole, or of another version.
fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let line = bytes.strip_suffix(b"\n")?;
    let message: Message<T> = serde_json::from_slice(line).ok()?;
    (message.v == VERSION).then_some(message.it)
}

pub fn read_question(bytes: &[u8]) -> Option<Question> {
    read(bytes)
}

/// A worker of another version hangs up.
pub fn read_answer(bytes: &[u8]) -> Told {
    let none = if bytes.is_empty() {
        Why::Slow
    } else {
        Why::Failed
    };
    read(bytes).unwrap_or(Told::Not(none))
}

/// Reads a question from somebody who may send anything, or nothing.
pub fn receive(stream: &mut UnixStream) -> Option<Question> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut part = [0; QUESTION_MAX];
    while bytes.last() != Some(&b'\n') {
        let left = deadline.checked_duration_since(Instant::now())?;
        let left = left.max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).ok()?;
        let room = QUESTION_MAX - bytes.len();
        match stream.read(&mut part[..room]) {
            Ok(count) if count > 0 => bytes.extend(&part[..count]),
            _ => return None,
        }
    }
    read_question(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(words: &str) -> Question {
        Question::Search {
            words: words.to_owned(),
            filter: Filter {
                since: Some(1),
                ..Filter::default()
            },
            limit: 10,
            offset: 0,
        }
    }

    #[test]
    fn a_question_and_its_answer_are_read_as_they_were_sent() {
        for asked in [question("why \"so\"\n?"), Question::Related(7)] {
            assert_eq!(read_question(&line(&asked)), Some(asked));
        }
        let found = Found {
            hits: Vec::new(),
            answer: Answer::Meaning,
            unknown: vec!["so".into()],
            looser: Vec::new(),
        };
        let told = Told::Found { found, percent: 7 };
        assert_eq!(read_answer(&line(&told)), told);
        let loading = Told::Not(Why::Loading);
        assert_eq!(read_answer(&line(&loading)), loading);
    }

    #[test]
    fn what_is_cut_of_another_version_or_nothing_is_no_answer() {
        let mut cut = line(&Told::Related(Vec::new()));
        cut.pop();
        assert_eq!(read_answer(&cut), Told::Not(Why::Failed));
        assert_eq!(read_answer(b""), Told::Not(Why::Slow));
        let other = String::from_utf8(line(&question("x"))).unwrap();
        assert!(other.starts_with("{\"v\":2,"), "{other}");
        let other = other.replacen("\"v\":2", "\"v\":3", 1);
        assert_eq!(read_question(other.as_bytes()), None);
    }
}
