//! Asks the worker to search by meaning.
//!
//! Only the worker loads the model and the vectors. The client sends a question over a socket, and
//! `worker/embed.rs` replies. If that is not possible, the search goes by words and returns the
//! reason. It never fails because of this, and waits no longer than `PATIENCE`, or `START_PATIENCE` if
//! a worker has to be started first.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use foreword_core::search::Related;
use foreword_core::search::{Filter, Found, Query, Sort};
use foreword_core::store::Store;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::home::Home;
use crate::platform::{self, Lock};
use crate::service::sentence_model;
use crate::start;
use crate::switch::{self, Switches};

/// How long a search waits for a running worker.
const PATIENCE: Duration = Duration::from_millis(150);
/// How long a search waits for a worker that starts or loads its model: most are ready by then, and
/// a person hardly notices.
const START_PATIENCE: Duration = Duration::from_millis(300);
/// How often a search looks whether the worker is ready.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The longest question in bytes, with its filter.
pub const QUESTION_MAX: usize = 16 << 10;
/// The longest reply in bytes.
const ANSWER_MAX: u64 = 4 << 20;
/// The version of the messages, which goes up with each change of their types: client and worker
/// may be of different releases.
const VERSION: u32 = 3;

/// One line of JSON on the socket, in either direction.
#[derive(Debug, Serialize, Deserialize)]
struct EmbedMessage<T> {
    v: u32,
    #[serde(rename = "it")]
    body: T,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbedQuestion {
    Search {
        words: String,
        filter: Filter,
        limit: u32,
    },
    Related(i64),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbedReply {
    Found {
        found: Found,
        /// How much of the memory is indexed by meaning.
        percent: u64,
    },
    Related(Vec<Related>),
    Refused(NoMeaning),
}

/// Why a search goes by words alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoMeaning {
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

impl NoMeaning {
    /// Whether the user chose to have no search by meaning.
    pub fn is_chosen(self) -> bool {
        matches!(
            self,
            NoMeaning::NotInstalled | NoMeaning::Off | NoMeaning::SwitchedOff
        )
    }

    pub fn as_str(self) -> &'static str {
        match self {
            NoMeaning::NotInstalled => "`foreword model install` adds search by meaning",
            NoMeaning::Off => "the setting `model.embed` is off",
            NoMeaning::SwitchedOff => "Foreword is switched off",
            NoMeaning::NotRunning => "the worker was not running; search again in a moment",
            NoMeaning::Loading => "the worker loads its model; search again in a moment",
            NoMeaning::Long => "the question is too long",
            NoMeaning::Slow => "the worker did not answer in time",
            NoMeaning::NothingEmbedded => "the worker has not indexed anything by meaning yet",
            NoMeaning::Broken => "the model cannot be used; `foreword model status` says why",
            NoMeaning::Failed => "the worker could not search; `foreword logs` says why",
        }
    }
}

/// How the hits of a search were ranked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ranking {
    /// By words or by date; meaning was not asked for.
    #[default]
    Words,
    /// By words, because the worker could not search by meaning.
    WordsOnly(NoMeaning),
    /// By both, with the share of the memory that is indexed by meaning.
    WordsAndMeaning { percent: u64 },
}

/// Searches by words and, if the worker replies at once, by meaning.
pub fn search(home: &Home, store: &Store, query: &Query<'_>) -> rusqlite::Result<(Found, Ranking)> {
    let by_words = || foreword_core::search::search(store, query);
    if query.sort == Sort::Date || !query.words.contains(char::is_alphanumeric) {
        return Ok((by_words()?, Ranking::Words));
    }
    let question = EmbedQuestion::Search {
        words: query.words.to_owned(),
        filter: query.filter.clone(),
        limit: query.limit,
    };
    let reason = match ask_once_started(home, &question) {
        EmbedReply::Found { found, percent } => {
            return Ok((found, Ranking::WordsAndMeaning { percent }));
        }
        EmbedReply::Related(_) => NoMeaning::Broken,
        EmbedReply::Refused(reason) => reason,
    };
    Ok((by_words()?, Ranking::WordsOnly(reason)))
}

/// The observations related to one: by files and concepts and, if the worker replies at once, by
/// meaning.
pub fn related(home: &Home, store: &Store, id: i64) -> rusqlite::Result<Vec<Related>> {
    match ask(home, &EmbedQuestion::Related(id)) {
        EmbedReply::Related(related) => Ok(related),
        _ => store.related(id),
    }
}

/// The share of the memory that is indexed by meaning; none without the model.
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

/// Asks the worker. If it has to be started or loads its model, waits for that.
fn ask_once_started(home: &Home, question: &EmbedQuestion) -> EmbedReply {
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        let reply = ask(home, question);
        let may_be_ready_soon = match reply {
            EmbedReply::Refused(NoMeaning::NotRunning) => start::may_be_starting(home),
            EmbedReply::Refused(NoMeaning::Loading) => true,
            _ => false,
        };
        if !may_be_ready_soon || Instant::now() >= deadline {
            return reply;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a worker that starts has no socket yet on which it could be waited for"
        )]
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Asks the worker, and starts one if there is none.
fn ask(home: &Home, question: &EmbedQuestion) -> EmbedReply {
    if !is_installed(home) {
        return EmbedReply::Refused(NoMeaning::NotInstalled);
    }
    if !Config::tolerant(home).0.model.embed {
        return EmbedReply::Refused(NoMeaning::Off);
    }
    if switch::off_in_environment() || Switches::read(home).everywhere() {
        return EmbedReply::Refused(NoMeaning::SwitchedOff);
    }
    if !matches!(Lock::holder(&home.lock()), Ok(Some(_))) {
        start::wake_worker(home);
        return EmbedReply::Refused(NoMeaning::NotRunning);
    }
    // A worker that was idle when the model was installed does not listen on the socket yet.
    if !home.embed_socket().exists() {
        start::wake_worker(home);
        return EmbedReply::Refused(NoMeaning::Loading);
    }
    let (path, question) = (home.embed_socket(), line(question));
    if question.len() > QUESTION_MAX {
        return EmbedReply::Refused(NoMeaning::Long);
    }
    let (sender, receiver) = mpsc::channel();
    // On a thread, because connecting to a worker that hangs may take forever.
    std::thread::spawn(move || {
        let answer = match exchange(&path, &question) {
            Ok(answer) => read_answer(&answer),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                EmbedReply::Refused(NoMeaning::NotRunning)
            }
            Err(_) => EmbedReply::Refused(NoMeaning::Slow),
        };
        let _ = sender.send(answer);
    });
    let answer = receiver.recv_timeout(PATIENCE);
    let answer = answer.unwrap_or(EmbedReply::Refused(NoMeaning::Slow));
    if answer == EmbedReply::Refused(NoMeaning::NotRunning) {
        start::wake_worker(home);
    }
    answer
}

fn exchange(path: &Path, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(path)?;
    // Nobody else can create a socket in the data directory; should that ever not hold, the question
    // does not leave this user's processes.
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

/// A question or a reply as it is sent.
pub fn line(body: &impl Serialize) -> Vec<u8> {
    let message = EmbedMessage { v: VERSION, body };
    let mut line = serde_json::to_vec(&message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A question or a reply as it was sent; none if it is cut, of another version, or something else.
fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let line = bytes.strip_suffix(b"\n")?;
    let message: EmbedMessage<T> = serde_json::from_slice(line).ok()?;
    (message.v == VERSION).then_some(message.body)
}

pub fn read_question(bytes: &[u8]) -> Option<EmbedQuestion> {
    read(bytes)
}

/// The worker's reply. It is empty if the worker closed the connection, as one of another version
/// does.
pub fn read_answer(bytes: &[u8]) -> EmbedReply {
    let reason = if bytes.is_empty() {
        NoMeaning::Slow
    } else {
        NoMeaning::Failed
    };
    read(bytes).unwrap_or(EmbedReply::Refused(reason))
}

/// Reads a question within `PATIENCE`; none if the client sends anything else, or nothing.
pub fn receive(stream: &mut UnixStream) -> Option<EmbedQuestion> {
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
    use foreword_core::search::MatchKind;

    use super::*;

    fn question(words: &str) -> EmbedQuestion {
        EmbedQuestion::Search {
            words: words.to_owned(),
            filter: Filter {
                since: Some(1),
                ..Filter::default()
            },
            limit: 10,
        }
    }

    #[test]
    fn a_question_and_its_answer_are_read_as_they_were_sent() {
        for asked in [question("why \"so\"\n?"), EmbedQuestion::Related(7)] {
            assert_eq!(read_question(&line(&asked)), Some(asked));
        }
        let found = Found {
            hits: Vec::new(),
            answer: MatchKind::Meaning,
            unknown: vec!["so".into()],
            looser: Vec::new(),
        };
        let reply = EmbedReply::Found { found, percent: 7 };
        assert_eq!(read_answer(&line(&reply)), reply);
        let loading = EmbedReply::Refused(NoMeaning::Loading);
        assert_eq!(read_answer(&line(&loading)), loading);
    }

    #[test]
    fn what_is_cut_of_another_version_or_nothing_is_no_answer() {
        let mut cut = line(&EmbedReply::Related(Vec::new()));
        cut.pop();
        assert_eq!(read_answer(&cut), EmbedReply::Refused(NoMeaning::Failed));
        assert_eq!(read_answer(b""), EmbedReply::Refused(NoMeaning::Slow));
        let other = String::from_utf8(line(&question("x"))).unwrap();
        assert!(other.starts_with("{\"v\":3,"), "{other}");
        let other = other.replacen("\"v\":3", "\"v\":4", 1);
        assert_eq!(read_question(other.as_bytes()), None);
    }
}
