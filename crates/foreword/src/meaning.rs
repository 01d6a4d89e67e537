//! Search by meaning, for whoever searches.
//!
//! The model is in memory once: the worker has it, and is asked over a socket for the vector
//! of a question (`worker/embed.rs` answers). The rest happens here, on the vectors in
//! memory.db. Whatever is missing for that, the search goes by words at once and says why: it
//! never fails and never waits.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use foreword_core::search::{Answer, Found, Meaning, Query, Sort, search_by_meaning};
use foreword_core::store::{Loaded, Related, Store};
use foreword_core::text;
use foreword_core::vectors::{DIMENSIONS, Vector};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::home::{self, Home};
use crate::platform::Lock;
use crate::switch::{self, Switches};
use crate::{model_files, start};

/// All that asking may take.
const PATIENCE: Duration = Duration::from_millis(150);
/// A question with all that is around it.
pub const QUESTION_MAX: usize = 4096;
/// The model does not look at more of it.
const WORDS_MAX: usize = 1000;
const VERSION: u32 = 1;

/// One line of JSON.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    v: u32,
    text: String,
}

/// One line of JSON; if there is no error, the numbers of a vector follow.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    v: u32,
    model: String,
    error: Option<String>,
}

/// Why a search goes by words alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    NotInstalled,
    Off,
    SwitchedOff,
    NotRunning,
    Loading,
    Slow,
    NothingEmbedded,
    Broken,
}

impl Why {
    fn as_str(self) -> &'static str {
        match self {
            Why::NotInstalled => "`foreword model install` adds search by meaning",
            Why::Off => "the setting `model.embed` is off",
            Why::SwitchedOff => "Foreword is switched off",
            Why::NotRunning => "the worker was not running; the next search is by meaning too",
            Why::Loading => "the worker loads its model; the next search is by meaning too",
            Why::Slow => "the worker did not answer in time",
            Why::NothingEmbedded => "the worker has not embedded anything yet",
            Why::Broken => "the model cannot be used; `foreword model status` says why",
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
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = ask(home, query.words);
    let meaning = asked.and_then(|answer| {
        // While the worker thinks about it.
        if !load(home, store, &mut loaded) {
            return Err(Why::NothingEmbedded);
        }
        answer.recv_timeout(PATIENCE).unwrap_or(Err(Why::Slow))
    });
    match meaning {
        Ok(question) => {
            let meaning = Meaning {
                vectors: &loaded.1.vectors,
                question: &question,
                now: home::now(),
            };
            let found = search_by_meaning(store, query, meaning)?;
            let (embedded, items) = (loaded.1.items, store.embeddable()?);
            let note = match embedded * 100 / items.max(1) {
                100.. => String::new(),
                percent => format!("{percent} % of the memory is searched by meaning yet\n"),
            };
            Ok((found, note))
        }
        Err(why) => {
            let found = by_words()?;
            // Who lives without a model need not hear of it where words were enough.
            let enough = found.answer == Answer::AllWords;
            let own_wish = matches!(why, Why::NotInstalled | Why::Off | Why::SwitchedOff);
            let silent = enough && own_wish;
            let note = if silent {
                String::new()
            } else {
                format!("by words only: {}\n", why.as_str())
            };
            Ok((found, note))
        }
    }
}

/// What has to do with an observation, by meaning too where there are vectors: they are stored, so
/// nobody needs to be asked.
pub fn related(home: &Home, store: &Store, id: i64) -> rusqlite::Result<Vec<Related>> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if is_installed(home) && load(home, store, &mut loaded) {
        return store.related_by_meaning(id, &loaded.1.vectors);
    }
    store.related(id)
}

/// All vectors of a memory, kept from one question to the next.
static LOADED: LazyLock<Mutex<(PathBuf, Loaded)>> = LazyLock::new(Mutex::default);

/// Brings them up to date; says whether there are any.
fn load(home: &Home, store: &Store, loaded: &mut (PathBuf, Loaded)) -> bool {
    if loaded.0 != home.dir() {
        *loaded = (home.dir().to_owned(), Loaded::default());
    }
    let read = store.load_vectors(model_files::NAME, &mut loaded.1);
    read.is_ok() && !loaded.1.vectors.is_empty()
}

/// Which share of the memory can be found by meaning; none if nobody can tell.
pub fn share(store: &Store) -> Option<f64> {
    let (embedded, items) = store.embedded(model_files::NAME).ok()?;
    Some(if items == 0 {
        1.0
    } else {
        embedded as f64 / items as f64
    })
}

pub fn is_installed(home: &Home) -> bool {
    home.model().join(foreword_embed::WEIGHTS).is_file()
}

/// Asks the worker, and starts one if there is none. The answer comes within `PATIENCE`, else it
/// is not waited for.
fn ask(home: &Home, words: &str) -> Result<mpsc::Receiver<Result<Vector, Why>>, Why> {
    if !is_installed(home) {
        return Err(Why::NotInstalled);
    }
    if !Config::tolerant(home).0.model.embed {
        return Err(Why::Off);
    }
    if switch::off_in_environment() || Switches::read(home).everywhere() {
        return Err(Why::SwitchedOff);
    }
    if !matches!(Lock::holder(&home.lock()), Ok(Some(_))) {
        start::wake_worker(home);
        return Err(Why::NotRunning);
    }
    // One that was idle when the model came does not listen yet.
    if !home.embed_socket().exists() {
        start::wake_worker(home);
        return Err(Why::Loading);
    }
    let (path, question) = (home.embed_socket(), question(words));
    let (sender, receiver) = mpsc::channel();
    // On a thread: to connect to a worker that hangs may take forever.
    std::thread::spawn(move || {
        let answer = exchange(&path, &question).map_err(|_| Why::Slow);
        let _ = sender.send(answer.and_then(|answer| read_answer(&answer)));
    });
    Ok(receiver)
}

fn exchange(path: &std::path::Path, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(question)?;
    let mut answer = Vec::new();
    stream.take(QUESTION_MAX as u64).read_to_end(&mut answer)?;
    Ok(answer)
}

fn question(words: &str) -> Vec<u8> {
    let text = text::shorten(words, WORDS_MAX).into_owned();
    let question = serde_json::to_vec(&Question { v: VERSION, text });
    let mut question = question.unwrap_or_default();
    question.push(b'\n');
    question
}

/// What the worker was asked; none if it is no question.
pub fn read_question(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_suffix(b"\n")?;
    let question: Question = serde_json::from_slice(line).ok()?;
    (question.v == VERSION).then_some(question.text)
}

/// Reads a question from somebody who may send anything, or nothing.
pub fn receive(stream: &mut UnixStream) -> Option<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut part = [0; QUESTION_MAX];
    while bytes.last() != Some(&b'\n') {
        stream
            .set_read_timeout(Some(
                deadline
                    .checked_duration_since(Instant::now())?
                    .max(Duration::from_millis(1)),
            ))
            .ok()?;
        let room = QUESTION_MAX - bytes.len();
        match stream.read(&mut part[..room]) {
            Ok(count) if count > 0 => bytes.extend(&part[..count]),
            _ => return None,
        }
    }
    read_question(&bytes)
}

/// What the worker says: a vector, or why there is none.
pub fn answer(answer: Result<&Vector, &str>) -> Vec<u8> {
    let head = Head {
        v: VERSION,
        model: model_files::NAME.to_owned(),
        error: answer.err().map(str::to_owned),
    };
    let mut bytes = serde_json::to_vec(&head).unwrap_or_default();
    bytes.push(b'\n');
    let numbers = answer.ok().into_iter().flatten();
    bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
    bytes
}

pub const LOADING: &str = "loading";

/// A vector of our model, of length one; whatever else was sent is no answer.
pub fn read_answer(bytes: &[u8]) -> Result<Vector, Why> {
    let line = bytes.iter().position(|it| *it == b'\n').ok_or(Why::Slow)?;
    let head: Head = serde_json::from_slice(&bytes[..line]).map_err(|_| Why::Broken)?;
    match head.error.as_deref() {
        Some(LOADING) => return Err(Why::Loading),
        None if head.v == VERSION && head.model == model_files::NAME => {}
        _ => return Err(Why::Broken),
    }
    let (numbers, rest) = bytes[line + 1..].as_chunks::<4>();
    if numbers.len() != DIMENSIONS || !rest.is_empty() {
        return Err(Why::Broken);
    }
    let vector: Vector = std::array::from_fn(|at| f32::from_le_bytes(numbers[at]));
    let length: f32 = vector.iter().map(|it| it * it).sum();
    if (0.9..1.1).contains(&length) {
        Ok(vector)
    } else {
        Err(Why::Broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_its_answer_are_read_as_they_were_sent() {
        assert_eq!(
            read_question(&question("why \"so\"\n?")),
            Some("why \"so\"\n?".to_owned())
        );
        let long = question(&"\u{1}".repeat(5000));
        assert!(
            long.len() > QUESTION_MAX,
            "an absurd question is no question"
        );
        assert!(question(&"ü".repeat(5000)).len() < QUESTION_MAX);
        let mut vector = [0.0; DIMENSIONS];
        vector[3] = 1.0;
        assert_eq!(read_answer(&answer(Ok(&vector))), Ok(vector));
        assert_eq!(read_answer(&answer(Err(LOADING))), Err(Why::Loading));
        assert_eq!(read_answer(&answer(Err("broken"))), Err(Why::Broken));
        assert_eq!(
            read_answer(&answer(Ok(&[f32::NAN; DIMENSIONS]))),
            Err(Why::Broken)
        );
        let mut cut = answer(Ok(&vector));
        cut.pop();
        assert_eq!(read_answer(&cut), Err(Why::Broken));
        assert_eq!(read_answer(b""), Err(Why::Slow));
        let other = String::from_utf8(answer(Err(LOADING)))
            .unwrap()
            .replace("\"loading\"", "null");
        assert_eq!(
            read_answer(other.replace("MiniLM", "Other").as_bytes()),
            Err(Why::Broken)
        );
    }
}
