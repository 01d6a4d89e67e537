//! The sentence model in the worker: it embeds texts without vectors while there is nothing else to
//! do, and answers searches by meaning (`crate::service::embed_client`).
//!
//! One thread embeds at the lowest priority. Its only state is which texts have no vectors, so it can
//! be stopped after any text. It also loads the model and the vectors. The other thread answers
//! requests on the socket. The worker's own loop waits for neither.

use std::io::Write as _;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use foreword_core::model::Millis;
use foreword_core::search::{LoadedVectors, Unembedded};
use foreword_core::search::{Meaning, Query, Sort, search_by_meaning};
use foreword_core::store::Store;
use foreword_core::text;
use foreword_embed::{SentenceModel as Model, WEIGHTS};

use crate::home::{self, Home};
use crate::log::Log;
use crate::platform;
use crate::service::embed_client::{self, EmbedQuestion, EmbedReply, NoMeaning};
use crate::service::sentence_model;

/// The number of texts that are embedded in one transaction, at least.
const BATCH: usize = 32;
/// The most characters of a query that are embedded; more would take too long.
const QUESTION_MAX: usize = 500;
/// The model and the vectors (50 MB) are unloaded after this time without use.
const MODEL_IDLE: Duration = Duration::from_secs(30);
const WRITE_WITHIN: Duration = Duration::from_millis(100);

pub struct Embedder {
    shared: Arc<Shared>,
    listener: UnixListener,
    threads: Vec<JoinHandle<()>>,
    socket: PathBuf,
}

struct Shared {
    home: Home,
    state: Mutex<State>,
    memory: Mutex<Memory>,
    changed: Condvar,
    /// Embedding pauses: the worker has other work, or ends.
    yields: AtomicBool,
    /// The time of the last answer or embedding.
    used_at: AtomicI64,
}

#[derive(Default)]
struct State {
    ends: bool,
    /// Whether there may be texts without vectors.
    look: bool,
    /// Whether a request needs the model.
    wanted: bool,
    model: Option<Arc<Model>>,
    /// The modification time of model files that cannot be loaded.
    broken: Option<SystemTime>,
    /// Whether vectors that cannot be read were found.
    damaged: bool,
}

/// The vectors that are searched; empty until they are loaded.
#[derive(Default)]
struct Memory {
    store: Option<Store>,
    loaded: LoadedVectors,
}

impl Embedder {
    pub fn start(home: &Home) -> anyhow::Result<Embedder> {
        let socket = home.embed_socket();
        // This process holds the worker's lock, so an existing socket is a dead worker's.
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).context("could not open the socket")?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
        let shared = Arc::new(Shared {
            home: home.clone(),
            // The command that started the worker may be about to search.
            state: Mutex::new(State {
                wanted: true,
                ..State::default()
            }),
            memory: Mutex::default(),
            changed: Condvar::new(),
            yields: AtomicBool::new(false),
            used_at: AtomicI64::new(0),
        });
        let (answers, embeds) = (shared.clone(), shared.clone());
        let answered = listener.try_clone()?;
        let threads = vec![
            std::thread::spawn(move || answers.answer_all(&answered)),
            std::thread::spawn(move || embeds.embed_all()),
        ];
        Ok(Embedder {
            shared,
            listener,
            threads,
            socket,
        })
    }

    /// Pauses embedding after the current text, because the worker has work.
    pub fn pause(&self) {
        self.shared.yields.store(true, Ordering::Relaxed);
    }

    /// Continues embedding, because the worker has nothing to do.
    pub fn go_on(&self) {
        self.shared.yields.store(false, Ordering::Relaxed);
        self.shared.state().look = true;
        self.shared.changed.notify_all();
    }

    /// Whether the socket still exists.
    pub fn is_reachable(&self) -> bool {
        self.socket.exists()
    }

    pub fn used_at(&self) -> Millis {
        self.shared.used_at.load(Ordering::Relaxed)
    }
}

impl Drop for Embedder {
    fn drop(&mut self) {
        self.pause();
        self.shared.state().ends = true;
        self.shared.changed.notify_all();
        // The thread at the socket ends when the socket is shut down (which works even if its file
        // is gone) or at the next connection.
        if let Ok(listener) = self.listener.try_clone() {
            let _ = UnixStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
        }
        let _ = UnixStream::connect(&self.socket);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_use(&self) {
        self.used_at.store(home::now(), Ordering::Relaxed);
    }

    fn answer_all(&self, listener: &UnixListener) {
        for stream in listener.incoming() {
            if self.state().ends {
                return;
            }
            match stream {
                Ok(stream) => self.answer(stream),
                // Perhaps too many open files: wait a moment instead of looping.
                Err(_) => drop(self.changed.wait_timeout(self.state(), WRITE_WITHIN)),
            }
        }
    }

    /// Answers one request of this user; other connections are closed.
    fn answer(&self, mut stream: UnixStream) {
        if !platform::is_our_user(&stream) || stream.set_write_timeout(Some(WRITE_WITHIN)).is_err()
        {
            return;
        }
        let Some(question) = embed_client::receive(&mut stream) else {
            return;
        };
        self.note_use();
        let model = {
            let mut state = self.state();
            state.wanted = state.model.is_none();
            // Texts may have come since the last look.
            state.look = true;
            state.model.clone().ok_or(match state.broken {
                Some(_) => NoMeaning::Broken,
                None => NoMeaning::Loading,
            })
        };
        self.changed.notify_all();
        let reply = model.and_then(|model| self.reply(&model, &question));
        let _ = stream.write_all(&embed_client::line(
            &reply.unwrap_or_else(EmbedReply::Refused),
        ));
    }

    fn reply(&self, model: &Model, question: &EmbedQuestion) -> Result<EmbedReply, NoMeaning> {
        let mut memory = self.memory();
        let reply = self.load(&mut memory).and_then(|()| match &memory.store {
            Some(store) if !memory.loaded.vectors.is_empty() || memory.loaded.percent == 100 => {
                Ok(Ok(answer(store, &memory.loaded, model, question)?))
            }
            _ => Ok(Err(NoMeaning::NothingEmbedded)),
        });
        reply.unwrap_or_else(|error| {
            Log::Worker.line(&self.home, &format!("could not search: {error:#}"));
            *memory = Memory::default();
            Err(NoMeaning::Failed)
        })
    }

    /// Loads the vectors that are new since the last time.
    fn load(&self, memory: &mut Memory) -> anyhow::Result<()> {
        if memory.store.is_none() {
            memory.store = Store::look(&self.home.memory())?;
        }
        if let Some(store) = &memory.store {
            store.load_vectors(sentence_model::NAME, &mut memory.loaded)?;
        }
        if std::mem::take(&mut memory.loaded.damaged) {
            self.state().damaged = true;
        }
        Ok(())
    }

    fn embed_all(&self) {
        platform::lower_our_priority();
        let mut store: Option<Store> = None;
        let mut made = 0;
        loop {
            let mut state = self.state();
            while !(state.ends || state.wanted || (state.look && !self.yields())) {
                let waited = self.changed.wait_timeout(state, MODEL_IDLE);
                let (again, over) = waited.unwrap_or_else(PoisonError::into_inner);
                state = again;
                let unused = home::now() - self.used_at.load(Ordering::Relaxed);
                if over.timed_out() || unused >= MODEL_IDLE.as_millis() as Millis {
                    state.model = None;
                    // If the vectors are in use, they are unloaded the next time.
                    if let Ok(mut memory) = self.memory.try_lock() {
                        *memory = Memory::default();
                    }
                }
            }
            if state.ends {
                return;
            }
            let look = !state.wanted && !self.yields();
            state.wanted = false;
            // Reset before looking, so that texts that come meanwhile set it again.
            state.look &= !look;
            if std::mem::take(&mut state.damaged) {
                // Opening the store again deletes vectors that cannot be read.
                store = None;
            }
            drop(state);
            if !look {
                self.model();
                // If this fails, the search itself reports it.
                let _ = self.load(&mut self.memory());
                continue;
            }
            match self.batch(&mut store) {
                Ok(Some(count)) => {
                    made += count;
                    self.note_use();
                    self.state().look = true;
                }
                done => {
                    if made > 0 {
                        let items = text::count(made as u64, "item", "items");
                        Log::Work.line(&self.home, &format!("{items} embedded"));
                        made = 0;
                    }
                    if let Err(error) = done {
                        let line = format!("could not embed: {error:#}");
                        Log::Worker.line(&self.home, &line);
                        store = None;
                    }
                }
            }
        }
    }

    fn yields(&self) -> bool {
        self.yields.load(Ordering::Relaxed)
    }

    /// The model, loaded if necessary. After a failure it is tried again once its files change.
    fn model(&self) -> Option<Arc<Model>> {
        let folder = self.home.model();
        let time = || std::fs::metadata(folder.join(WEIGHTS)).and_then(|it| it.modified());
        let time = time().unwrap_or(SystemTime::UNIX_EPOCH);
        let mut state = self.state();
        if state.model.is_some() || state.broken == Some(time) {
            return state.model.clone();
        }
        drop(state);
        let opened = Model::open(&folder);
        if let Err(error) = &opened {
            let line = format!("the sentence model cannot be used, search goes by words: {error}");
            Log::Worker.line(&self.home, &line);
        }
        state = self.state();
        state.broken = opened.is_err().then_some(time);
        state.model = opened.ok().map(Arc::new);
        state.model.clone()
    }

    /// Embeds some texts without vectors, the newest first, and returns the number of items; none if
    /// there are no such texts, or no model.
    fn batch(&self, store: &mut Option<Store>) -> anyhow::Result<Option<usize>> {
        let store = match store {
            Some(store) => store,
            None => {
                let opened = Store::open(&self.home.memory(), &self.home.backups())?;
                opened.drop_useless_vectors(sentence_model::NAME)?;
                store.insert(opened)
            }
        };
        let items = store.unembedded(sentence_model::NAME, BATCH)?;
        if items.is_empty() {
            return Ok(None);
        }
        let Some(model) = self.model() else {
            return Ok(None);
        };
        let mut made: Vec<(Unembedded, Vec<_>)> = Vec::new();
        for item in items {
            let texts = item.chunks.iter();
            let vectors: Vec<_> = texts
                .take_while(|_| !self.yields())
                .map(|it| model.embed(it))
                .collect();
            if vectors.len() < item.chunks.len() {
                break;
            }
            made.push((item, vectors));
        }
        store.put_vectors(sentence_model::NAME, &made)?;
        Ok(Some(made.len()))
    }
}

fn answer(
    store: &Store,
    loaded: &LoadedVectors,
    model: &Model,
    question: &EmbedQuestion,
) -> anyhow::Result<EmbedReply> {
    let (words, filter, limit, offset) = match question {
        EmbedQuestion::Related(id) => {
            return Ok(EmbedReply::Related(
                store.related_by_meaning(*id, &loaded.vectors)?,
            ));
        }
        EmbedQuestion::Search {
            words,
            filter,
            limit,
            offset,
        } => (words, filter.clone(), *limit, *offset),
    };
    let query = Query {
        words,
        filter,
        sort: Sort::Relevance,
        limit,
        offset,
    };
    let meaning = Meaning {
        vectors: &loaded.vectors,
        question: &model.embed(&text::shorten(words, QUESTION_MAX)),
    };
    Ok(EmbedReply::Found {
        found: search_by_meaning(store, &query, meaning)?,
        percent: loaded.percent,
    })
}
