//! Fills a memory with made-up observations, through the same door as the worker.

use foreword_core::model::{
    Derived, Event, EventKind, FileRole, Millis, Observation, ObservationType, Origin, Payload,
    Summary, TouchedFile, Turn,
};
use foreword_core::store::{Batch, Replaces, Store, Told};
use uuid::Uuid;

use crate::home::{self, Home};

/// A working session of some hours: four prompts, ten insights.
const PROMPTS_PER_SESSION: u32 = 4;
const OBSERVATIONS_PER_SESSION: u32 = 10;
const SESSION_EVERY: Millis = 3 * 3_600_000;

/// Adds about `observations` observations to a project, in sessions up to now.
pub fn fill(home: &Home, project: &str, observations: u32) -> anyhow::Result<()> {
    std::fs::create_dir_all(home.dir())?;
    let mut store = Store::open(&home.memory(), &home.backups())?;
    let now = home::now();
    let sessions = observations.div_ceil(OBSERVATIONS_PER_SESSION);
    for number in 0..sessions {
        let ago = Millis::from(sessions - number) * SESSION_EVERY;
        let session = Session {
            number,
            project,
            at: now - ago,
        };
        let (events, turns) = session.story();
        store.commit(&Batch {
            events: &events,
            told: &turns,
            replaces: Replaces::Turns,
            provider: "offline",
            now: session.at,
        })?;
    }
    Ok(())
}

pub struct Session<'a> {
    pub number: u32,
    pub project: &'a str,
    pub at: Millis,
}

impl Session<'_> {
    fn story(&self) -> (Vec<Event>, Vec<Told>) {
        let mut all = Vec::new();
        let mut turns = Vec::new();
        for prompt in 0..PROMPTS_PER_SESSION {
            let prompt_id = format!("prompt-{}-{prompt}", self.number);
            let asked = Payload {
                prompt: Some(format!(
                    "{}: {}",
                    title(self.number, prompt),
                    WORDS.join(" ")
                )),
                ..Payload::default()
            };
            let events = vec![self.event(EventKind::Prompt, &prompt_id, prompt, asked)];
            let from = prompt * OBSERVATIONS_PER_SESSION / PROMPTS_PER_SESSION;
            let to = (prompt + 1) * OBSERVATIONS_PER_SESSION / PROMPTS_PER_SESSION;
            let observations = (from..to).map(|it| self.observation(it, &events)).collect();
            let derived = Derived {
                observations,
                summary: Some(self.summary(prompt)),
            };
            all.extend(events.iter().cloned());
            let prompt_id = Some(prompt_id);
            turns.push(Told::offline(Turn { prompt_id, events }, derived));
        }
        (all, turns)
    }

    pub fn event(&self, kind: EventKind, prompt_id: &str, minute: u32, payload: Payload) -> Event {
        Event {
            id: Uuid::now_v7(),
            key: format!("{kind}:{prompt_id}"),
            kind,
            host: "claude-code".to_owned(),
            host_session_id: format!("filled-{}", self.number),
            prompt_id: Some(prompt_id.to_owned()),
            agent_id: None,
            tool_name: None,
            tool_use_id: None,
            cwd: None,
            project_dir: None,
            project: Some(self.project.to_owned()),
            root: None,
            transcript_path: None,
            branch: Some("main".to_owned()),
            commit: None,
            files: Vec::new(),
            payload,
            at: self.at + Millis::from(minute) * 60_000,
        }
    }

    fn observation(&self, number: u32, events: &[Event]) -> Observation {
        let kinds = ObservationType::ALL;
        let file = format!(
            "src/{}/{}.rs",
            word(self.number),
            word(number + self.number / 7)
        );
        Observation {
            seed: format!("filled-{number}"),
            kind: kinds[(self.number + number) as usize % kinds.len()],
            title: title(self.number, number),
            subtitle: format!("{file}, seen while working on {}", word(self.number / 3)),
            facts: (0..3).map(|fact| title(number, fact)).collect(),
            narrative: format!("{} {}", title(number, self.number), WORDS.join(" ")),
            concepts: vec![word(number).to_owned(), word(self.number).to_owned()],
            files: vec![TouchedFile {
                path: file,
                role: FileRole::Modified,
                size: Some(4_000),
                mtime: Some(self.at),
                hash: None,
            }],
            origin: Origin::Agent,
            agent_id: None,
            events: events.iter().map(|event| event.id).collect(),
            at: self.at + Millis::from(number) * 60_000,
        }
    }

    fn summary(&self, prompt: u32) -> Summary {
        Summary {
            request: title(self.number, prompt),
            investigated: title(prompt, self.number),
            learned: title(self.number, prompt + 1),
            completed: format!("Changed src/{}.rs; the tests pass.", word(self.number)),
            next_steps: format!("cover the {} of {}", word(prompt), word(self.number)),
            files_read: vec![format!("src/{}.rs", word(prompt))],
            files_edited: vec![format!("src/{}.rs", word(self.number))],
            notes: String::new(),
        }
    }
}

fn title(a: u32, b: u32) -> String {
    let (a, b) = (a as usize, b as usize);
    let number = a * 31 + b;
    format!(
        "{} {} is kept apart from {} {number}",
        word(a as u32 * 7 + 3),
        word(b as u32 * 5 + a as u32),
        word((a / 5 + b) as u32),
    )
}

fn word(number: u32) -> &'static str {
    WORDS[number as usize % WORDS.len()]
}

const WORDS: &[&str] = &[
    "ledger",
    "refund",
    "token",
    "expiry",
    "webhook",
    "retry",
    "account",
    "balance",
    "currency",
    "rounding",
    "parser",
    "cursor",
    "session",
    "login",
    "migration",
    "schema",
    "index",
    "cache",
    "queue",
    "worker",
    "timeout",
    "backoff",
    "snapshot",
    "fixture",
    "router",
    "handler",
    "payload",
    "signature",
    "header",
    "upload",
    "stream",
    "export",
    "invoice",
    "receipt",
    "discount",
    "tax",
    "settlement",
    "dispute",
];
