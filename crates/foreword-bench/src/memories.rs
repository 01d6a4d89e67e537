//! Fills a memory with made-up sessions, with the same function as the worker (`Store::commit`).

use foreword_core::host::DEFAULT_HOST;
use foreword_core::model::{
    Derived, Event, EventKind, FileRole, Millis, Observation, ObservationType, Origin, Payload,
    Summary, TouchedFile, Turn,
};
use foreword_core::store::{Batch, DerivedTurn, Replaces, Store};
use uuid::Uuid;

use super::speech::Speech;
use foreword::home::{self, Home};

/// The size of a session.
#[derive(Clone, Copy)]
pub struct Shape {
    pub prompts: u32,
    /// Observations of each prompt.
    pub observations: u32,
}

/// A working session of some hours.
pub const WORK: Shape = Shape {
    prompts: 5,
    observations: 2,
};
/// Time from one session to the next.
const SESSION_EVERY: Millis = 3 * 3_600_000;
/// The seed of the made-up texts.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Adds about `observations` observations to a project, in sessions up to now.
pub fn fill(home: &Home, project: &str, observations: u32, shape: Shape) -> anyhow::Result<()> {
    std::fs::create_dir_all(home.dir())?;
    let mut store = Store::open(&home.memory(), &home.backups())?;
    let mut speech = Speech::new(SEED);
    let now = home::now();
    let sessions = observations.div_ceil(shape.prompts * shape.observations);
    for number in 0..sessions {
        let ago = Millis::from(sessions - number) * SESSION_EVERY;
        let session = MadeSession {
            number,
            project,
            at: now - ago,
        };
        let turns = 0..shape.prompts;
        let turns: Vec<DerivedTurn> = turns
            .map(|prompt| session.turn(prompt, shape, &mut speech))
            .collect();
        let events: Vec<Event> = turns
            .iter()
            .flat_map(|derived| derived.turn.events.clone())
            .collect();
        store.commit(&Batch {
            events: &events,
            turns: &turns,
            replaces: Replaces::Turns,
            digest: None,
            provider: "offline",
            now: session.at,
        })?;
    }
    Ok(())
}

/// A made-up session.
pub struct MadeSession<'a> {
    pub number: u32,
    pub project: &'a str,
    pub at: Millis,
}

impl MadeSession<'_> {
    fn turn(&self, prompt: u32, shape: Shape, speech: &mut Speech) -> DerivedTurn {
        let prompt_id = format!("prompt-{}-{prompt}", self.number);
        let asked = Payload {
            prompt: Some(speech.words(40)),
            ..Payload::default()
        };
        let event = self.event(EventKind::Prompt, &prompt_id, prompt, asked);
        let first = prompt * shape.observations;
        let derived = Derived {
            observations: (first..first + shape.observations)
                .map(|number| self.observation(number, &event, speech))
                .collect(),
            summary: Some(summary(speech)),
            ..Derived::default()
        };
        let turn = Turn {
            prompt_id: Some(prompt_id),
            events: vec![event],
        };
        DerivedTurn::offline(turn, derived)
    }

    pub fn event(&self, kind: EventKind, prompt_id: &str, minute: u32, payload: Payload) -> Event {
        Event {
            id: Uuid::now_v7(),
            key: format!("{kind}:{prompt_id}"),
            kind,
            host: DEFAULT_HOST.name.to_owned(),
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

    fn observation(&self, number: u32, event: &Event, speech: &mut Speech) -> Observation {
        let kinds = ObservationType::ALL;
        // Texts of the same length would often have the same score.
        let length = 20 + speech.random.below(40);
        let seed = format!("filled-{number}");
        let kind = kinds[(self.number + number) as usize % kinds.len()];
        Observation {
            title: speech.words(7),
            subtitle: speech.words(10),
            facts: (0..3).map(|_| speech.words(10)).collect(),
            narrative: speech.words(length),
            concepts: vec![speech.word(), speech.word()],
            files: vec![TouchedFile {
                path: file(speech),
                role: FileRole::Modified,
                size: Some(4_000),
                mtime: Some(self.at),
                hash: None,
            }],
            events: vec![event.id],
            at: event.at,
            ..Observation::blank(seed, kind, Origin::Agent)
        }
    }
}

fn summary(speech: &mut Speech) -> Summary {
    Summary {
        request: speech.words(8),
        investigated: speech.words(8),
        learned: speech.words(8),
        completed: speech.words(8),
        next_steps: speech.words(6),
        files_read: vec![file(speech)],
        files_edited: vec![file(speech)],
        notes: String::new(),
    }
}

fn file(speech: &mut Speech) -> String {
    format!("src/{}/{}.rs", speech.word(), speech.word())
}
