//! The text that a hook adds to a session from the memory: the index when a session starts, and a
//! reminder with a prompt or a file that the memory knows something about.
//!
//! If a reminder takes too long, the hook goes on without it. For everything that is shown, a
//! receipt is stored as an event.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use foreword_core::capture::{self, Hook};
use foreword_core::model::{Event, EventKind, Receipt, Shown};
use foreword_core::queue::Inlet;
use foreword_core::recall::index::{self, Fate, IndexRequest, StartReason};
use foreword_core::recall::reminder::{self, Occasion, Reminder, ShownBefore};
use foreword_core::spool;
use foreword_core::store::Store;
use uuid::Uuid;

use crate::config::provider;
use crate::config::{HookSettings, ShowSection};
use crate::home::Home;
use crate::host::{Client, Permission, REMEMBER};
use crate::log::Log;
use crate::not_kept::{self, Reason};
use crate::notice;

/// A hook's answer to the host, and the receipt for the items in it.
pub struct HookAnswer {
    /// In the form that the host expects.
    pub text: String,
    receipt: Option<Receipt>,
}

impl HookAnswer {
    /// The receipt as an event; none if the answer shows no item.
    pub fn receipt(&self, occasion: &Event) -> Option<Event> {
        let receipt = self.receipt.as_ref().filter(|it| !it.items.is_empty());
        receipt.map(|it| capture::receipt(occasion, Uuid::now_v7(), it.clone()))
    }
}

/// The answer of a hook that adds a text or a notice; none if it adds nothing.
pub fn answer(
    home: &Home,
    client: &Client,
    hook: Hook,
    event: &Event,
    settings: &HookSettings,
) -> Option<HookAnswer> {
    let reminder = match hook {
        Hook::Context if settings.show.index => context(home, client, event, settings),
        Hook::New if settings.show.prompts => in_time(home, hook, event, &settings.show),
        Hook::FileContext if settings.show.files => in_time(home, hook, event, &settings.show),
        _ => None,
    };
    let notice = (hook == Hook::Context).then(|| notice::take(home));
    let reminder_text = reminder.as_ref().map(|it| it.text.as_str());
    let text = (client.answer)(hook, reminder_text, notice.flatten())?;
    if text.chars().count() > client.answer_max {
        let line = format!("{}: the answer was too long and was left out", hook.name());
        Log::Hook.line(home, &line);
        return None;
    }
    Some(HookAnswer {
        text,
        receipt: reminder.map(|it| it.receipt),
    })
}

/// Whether a session is asked to write the memory: the user chose that, and the agent may call
/// `remember`, since each call would else be a question to the user.
pub fn asks_agent(home: &Home, client: &Client, root: Option<&Path>) -> bool {
    let of_plugin = std::env::var_os(client.plugin_variable).is_some();
    provider::is_agent(home)
        && client.tool_permission(root, &[REMEMBER], of_plugin) == Permission::Allowed
}

/// The index for a session that starts; none if it would be empty.
fn context(
    home: &Home,
    client: &Client,
    event: &Event,
    settings: &HookSettings,
) -> Option<Reminder> {
    // A memory that cannot be read (newer, damaged) counts as an empty one.
    let store = Store::look(&home.memory()).ok().flatten();
    let request = IndexRequest {
        asks_agent: asks_agent(home, client, event.root.as_deref().map(Path::new)),
        project: event.project.as_deref(),
        host_session_id: &event.host_session_id,
        start_reason: StartReason::parse(event.payload.source.as_deref()),
        branch: event.branch.as_deref(),
        root: event.root.as_deref().map(Path::new),
        now: event.at,
        unopened_kept: settings.unopened_kept(),
    };
    let index = index::index(store.as_ref(), &request).ok().flatten()?;
    let shown = index.weighed.iter().filter(|it| it.fate == Fate::Shown);
    let items = shown.map(|it| (it.id, it.because())).collect();
    Some(Reminder {
        text: index.text,
        receipt: Receipt {
            shown: Shown::Index,
            items,
        },
    })
}

/// A reminder, if there is one and it is found in time. A search that is held up, by a slow disk or
/// a large memory, runs on in its thread until this process exits.
fn in_time(home: &Home, hook: Hook, event: &Event, show: &ShowSection) -> Option<Reminder> {
    if !may_be_of_use(event) {
        return None;
    }
    let until = Instant::now() + Duration::from_millis(show.within_ms);
    let (sender, receiver) = mpsc::channel();
    let (home_there, event) = (home.clone(), event.clone());
    // `std::thread::spawn` would panic if no more threads can be created.
    let thread = std::thread::Builder::new();
    let spawned = thread.spawn(move || sender.send(remind(&home_there, &event)));
    spawned.ok()?;
    match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
        // On a busy machine this thread may itself have been scheduled too late.
        Ok(reminder) if Instant::now() < until => reminder,
        _ => {
            not_kept::count(home, Reason::LateReminder, hook, 0);
            None
        }
    }
}

/// Whether it is worth opening the memory: not for a few words such as "go on", not for a command,
/// and not in a subagent, whose reminder the main agent would then miss.
fn may_be_of_use(event: &Event) -> bool {
    const WORDS_MIN: usize = 3;
    // A sentence in a language without spaces is one word.
    const CHARACTERS_MIN: usize = 10;
    if event.agent_id.is_some() {
        return false;
    }
    match event.kind {
        EventKind::Prompt => event.payload.prompt.as_deref().is_some_and(|prompt| {
            let has_words = prompt.split_whitespace().nth(WORDS_MIN - 1).is_some();
            let is_long = prompt.chars().nth(CHARACTERS_MIN - 1).is_some();
            !prompt.starts_with('/') && (has_words || is_long)
        }),
        kind => kind == EventKind::Receipt && !event.files.is_empty(),
    }
}

fn remind(home: &Home, event: &Event) -> Option<Reminder> {
    let occasion = Occasion {
        project: event.project.as_deref()?,
        host_session_id: &event.host_session_id,
        root: event.root.as_deref().map(Path::new),
        now: event.at,
    };
    let store = Store::look(&home.memory()).ok().flatten()?;
    let (candidates, shown) = match (event.payload.prompt.as_deref(), event.files.first()) {
        (Some(prompt), _) => (
            reminder::for_prompt(&store, &occasion, prompt),
            Shown::Prompt,
        ),
        (_, Some(file)) => (
            reminder::for_file(&store, &occasion, &file.path),
            Shown::File,
        ),
        _ => return None,
    };
    let candidates = candidates.ok().filter(|it| !it.is_empty())?;
    let before = shown_before(home, &store, &event.host_session_id)?;
    candidates.remind(shown, &before)
}

/// The items that this session was shown: from the memory, the queue and the spool. None if one of
/// them cannot be read.
fn shown_before(home: &Home, store: &Store, session: &str) -> Option<ShownBefore> {
    let mut shown = store.shown_in(session).ok()?;
    if let Ok(inlet) = Inlet::open(&home.queue()) {
        shown.extend(inlet.shown_in(session).ok()?);
        inlet.leave();
    }
    shown.extend(spool::shown_in(&home.spool(), session).ok()?);
    Some(shown.into_iter().collect())
}
