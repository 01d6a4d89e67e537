//! A worker step by step, with a scripted model and a clock that the test moves: which events are
//! stored, wait or are skipped for each answer of the model, and how long the worker waits. Tests
//! with real providers, processes and signals are in `tests/it/agent`.

mod conversation;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;

use foreword_core::capture::{self, Captured, Hook};
use foreword_core::host::HOSTS;
use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::agent::judge::tests::{answers, as_it_was_asked};
use crate::agent::provider::scripted::Scripted;
use crate::agent::provider::{Failure, Model};
use crate::notice;
use crate::tests::host::Host;

const HOUR: Millis = 3_600_000;

thread_local! {
    /// The time now; each test has a thread of its own.
    static NOW: Cell<Millis> = const { Cell::new(1_750_000_000_000) };
}

fn now() -> Millis {
    NOW.get()
}

fn let_pass(time: Millis) {
    NOW.set(now() + time);
}

/// A home whose memory is written by a scripted model.
struct World {
    dir: tempfile::TempDir,
    home: Home,
    config: Config,
    model: Scripted,
    sent: RefCell<BTreeSet<Uuid>>,
}

/// The number of sent events in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Events {
    stored: i64,
    waiting: i64,
    skipped: i64,
}

const LEDGER: &str =
    "select state || ' ' || coalesce(failure, '') || ' ' || events from ledger order by id";

impl World {
    fn new(settings: &str) -> World {
        World::of("anthropic", settings)
    }

    fn of(provider: &str, settings: &str) -> World {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home"));
        std::fs::create_dir_all(home.dir()).unwrap();
        let settings = format!("provider = \"{provider}\"\n{settings}");
        World {
            config: Config::from(&settings, &Vec::new()).unwrap(),
            model: Scripted::new(|_| Ok(observed("Kumquat limit raised to seven"))),
            sent: RefCell::default(),
            dir,
            home,
        }
    }

    fn project(&self) -> PathBuf {
        let project = self.dir.path().join("work/app");
        std::fs::create_dir_all(&project).unwrap();
        project
    }

    fn host(&self, session: &str) -> Host {
        Host::new(session, &self.project())
    }

    /// Captures and queues an input as a hook does, a second after the one before.
    fn send(&self, input: &Value) {
        let hook = match input["hook_event_name"].as_str().unwrap() {
            "SessionStart" => Hook::Context,
            "UserPromptSubmit" => Hook::New,
            "Stop" => Hook::Summary,
            "SessionEnd" => Hook::Cleanup,
            _ => Hook::Save,
        };
        let_pass(1_000);
        let id = Uuid::now_v7();
        let context = capture::CaptureContext {
            host: &HOSTS[0],
            now: now(),
            event_id: id,
            project_dir: Some(self.project()),
            rules: home::project_rules(false),
        };
        let settings = capture::CaptureSettings::default();
        let captured = capture::capture(hook, input.to_string().as_bytes(), &context, &settings);
        let Captured::Event(event) = captured else {
            panic!("{captured:?}");
        };
        let queue = Queue::open(&self.home.queue(), &self.home.backups()).unwrap();
        assert!(queue.push(&event).unwrap());
        self.sent.borrow_mut().insert(id);
    }

    /// Sends a turn of five events that breaks something, repairs and commits it.
    fn send_turn(&self, session: &str) {
        let host = self.host(session);
        self.send(&host.prompt("Make the check pass"));
        let error = "Exit code 3\nerror: the kumquat limit is 6, not 7";
        self.send(&host.bash_failed("sh check.sh", error));
        self.send(&host.edit("limit.txt", "6", "7"));
        self.send(&commit(&host, "Raise the kumquat limit to seven"));
        self.send(&host.stop(RAISED));
    }

    /// Runs a worker to its end. Where it would wait, the clock is moved forward instead.
    async fn run(&self, until: Until) -> WorkerEnd {
        let mut worker = Worker::come_up(&self.home, &self.config, until).unwrap();
        worker.deriver.clock = now;
        worker.progress_at = now();
        if self.asks_a_model() {
            let model = Model::Scripted(self.model.clone());
            worker.deriver.ask_instead(model);
        }
        loop {
            match worker.tick().await.unwrap() {
                Next::Again => {}
                Next::WaitUntil(time) => NOW.set(now().max(time)),
                Next::End(end) => return end,
            }
        }
    }

    /// Runs a worker that does not wait; returns the number of events left.
    async fn drain(&self) -> u64 {
        let WorkerEnd::Done { left } = self.run(Until::Drained).await else {
            panic!("a drain ends when it is done");
        };
        left
    }

    fn column(&self, database: PathBuf, sql: &str) -> Vec<String> {
        #[expect(clippy::disallowed_methods, reason = "tests look from outside")]
        let database = rusqlite::Connection::open(database).unwrap();
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, Option<String>>(0));
        rows.unwrap()
            .map(|row| row.unwrap().unwrap_or_default())
            .collect()
    }

    fn memory(&self, sql: &str) -> Vec<String> {
        self.column(self.home.memory(), sql)
    }

    fn count(&self, database: PathBuf, rows: &str) -> i64 {
        let sql = format!("select cast(count(*) as text) from {rows}");
        self.column(database, &sql)[0].parse().unwrap()
    }

    fn events(&self) -> Events {
        Events {
            stored: self.count(self.home.memory(), "processed_events"),
            waiting: self.count(self.home.queue(), "events where state <> 'skipped'"),
            skipped: self.count(self.home.queue(), "events where state = 'skipped'"),
        }
    }

    /// Expects every sent event to be stored, waiting or skipped, and every question in the ledger.
    #[track_caller]
    fn assert_nothing_is_missing(&self) {
        let events = self.events();
        let everywhere = events.stored + events.waiting + events.skipped;
        assert_eq!(everywhere, self.sent.borrow().len() as i64, "{events:?}");
        let asked = self.count(self.home.memory(), "ledger where provider <> 'offline'");
        assert_eq!(asked, self.model.questions().len() as i64);
    }

    #[track_caller]
    fn assert_all_is_stored(&self) {
        self.assert_nothing_is_missing();
        let Events {
            waiting, skipped, ..
        } = self.events();
        assert_eq!((waiting, skipped), (0, 0), "{:?}", self.memory(LEDGER));
    }

    /// The providers of the stored observations and summaries, without repeats.
    fn providers(&self, table: &str) -> Vec<String> {
        self.memory(&format!("select distinct provider from {table} order by 1"))
    }

    fn asks_a_model(&self) -> bool {
        self.config.provider != "offline"
    }

    fn answers_well(&self) {
        self.model
            .answer(|_| Ok(observed("Kumquat limit raised to seven")));
    }

    fn fails(&self, kind: FailureKind) {
        self.model.answer(move |_| Err(Failure::new(kind, "no")));
    }
}

/// The agent's last words about the turn of `send_turn`.
const RAISED: &str = "The check failed because limit.txt held 6 kumquats where check.sh wants 7. \
                      The kumquat limit in limit.txt is 7 now, and check.sh passes.";

/// A check that passes and a commit, from which also the offline provider derives an observation.
fn commit(host: &Host, subject: &str) -> Value {
    let why =
        "limit.txt held 6 kumquats where check.sh wants 7, so every larger order was refused.";
    let command = format!("sh check.sh && git commit -am \"{subject}\" -m \"{why}\"");
    let printed =
        format!("[main 1f2e3d4] {subject}\n 1 file changed, 1 insertion(+), 1 deletion(-)");
    let mut input = host.bash(&command, &printed);
    input["tool_use_id"] = format!("{} {subject}", host.prompt).into();
    input
}

/// A correct answer.
fn observed(title: &str) -> String {
    format!(
        "<observation><type>bugfix</type><title>{title}</title><subtitle>The check passes</subtitle>\
         <facts><fact>limit.txt holds the limit</fact></facts><narrative>The check wants 7.</narrative>\
         <concepts><concept>limits</concept></concepts></observation>\n\
         <summary><request>Make the check pass</request><completed>{title}</completed></summary>"
    )
}

/// A part of the last question about a session, and of no other.
const OVER: &str = "It is over.";

/// What a session came to, and who said so.
const DIGEST: &str = "select title || ' | ' || coalesce(subtitle, '') || ' | ' || open || ' | ' || given_up \
                      || ' | ' || digest_by from sessions";

/// Sends a turn and the end of its session.
fn send_whole_session(world: &World, session: &str) {
    world.send_turn(session);
    world.send(&world.host(session).end());
}

#[tokio::test]
async fn a_session_that_ended_is_asked_about_as_a_whole_once() {
    let world = World::new("");
    world.model.answer(|question| {
        if !question.contains(OVER) {
            return Ok(observed("Kumquat limit raised to seven"));
        }
        let (_, rest) = question.split_once(OVER).expect("the last question");
        let (_, rest) = rest.split_once('#').expect("an observation by number");
        let number = rest.split(' ').next().unwrap_or_default();
        Ok(format!(
            "<summary>\n<title>The limit is seven</title>\n<subtitle>The check passes</subtitle>\n\
             <request>Make the check pass</request>\n<completed>The limit is 7</completed>\n\
             <next_steps>\n- Tell the customers\n- Write the page\n</next_steps>\n\
             <given_up>\n- Eight: too many\n</given_up>\n\
             <retract>#{number}: it was six again</retract>\n<retract>#9999: not shown</retract>\n</summary>"
        ))
    });
    send_whole_session(&world, "s1");
    assert_eq!((world.drain().await, world.drain().await), (0, 0));
    world.assert_all_is_stored();
    assert_eq!(world.model.questions().len(), 2);
    let digest = "The limit is seven | The check passes | [\"Tell the customers\",\"Write the page\"] \
                  | [\"Eight: too many\"] | anthropic";
    assert_eq!(world.memory(DIGEST), [digest]);
    assert_eq!(
        world.memory("select retracted from observations"),
        ["it was six again"]
    );
    assert_eq!(
        world.memory("select completed from summaries"),
        ["The limit is 7"]
    );
}

#[tokio::test]
async fn a_session_that_fell_silent_is_asked_about_too() {
    let world = World::new("");
    world.send_turn("s1");
    world.drain().await;
    assert_eq!(world.model.questions().len(), 1);
    let_pass(25 * HOUR);
    world.drain().await;
    let questions = world.model.questions();
    assert_eq!(questions.len(), 2);
    assert!(questions[1].contains(OVER), "{}", questions[1]);
}

#[tokio::test]
async fn without_an_answer_about_the_whole_session_the_offline_digest_stays() {
    let world = World::new("");
    world.model.answer(|question| {
        Ok(if question.contains(OVER) {
            "It was a fine session.".to_owned()
        } else {
            observed("Kumquat limit raised to seven")
        })
    });
    send_whole_session(&world, "s1");
    world.drain().await;
    world.drain().await;
    world.assert_all_is_stored();
    let by = "select digest_by from sessions";
    assert_eq!(world.memory(by), ["offline"]);
    assert_eq!(world.memory(LEDGER), ["answered  6", "failed prose 0"]);
    assert_eq!(world.memory("select retracted from observations"), [""]);

    // The budget is used up before the session ends.
    let mut world = World::new("");
    world.send_turn("s1");
    world.drain().await;
    world.config.budget.daily_usd = 0.0;
    world.send(&world.host("s1").end());
    world.drain().await;
    world.drain().await;
    world.assert_all_is_stored();
    assert_eq!(world.model.questions().len(), 1);
    assert_eq!(world.memory(by), ["offline"]);
    let why = world.memory("select note from ledger where provider = 'offline'");
    assert_eq!(why, ["the daily budget of $0.00 is used up"]);
}

#[tokio::test]
async fn the_last_question_waits_for_the_end_of_an_outage() {
    let world = World::new("");
    world.send_turn("s1");
    world.drain().await;
    world.send(&world.host("s1").end());
    world.fails(FailureKind::Outage);
    world.drain().await;
    assert_eq!(world.memory("select digest_by from sessions"), ["offline"]);
    world.answers_well();
    let_pass(HOUR / 2);
    world.drain().await;
    assert_eq!(
        world.memory("select digest_by from sessions"),
        ["anthropic"]
    );
    world.assert_all_is_stored();
}

#[tokio::test]
async fn a_turn_that_a_model_finds_nothing_in_leaves_its_prompt_alone() {
    let world = World::new("");
    world.model.answer(|_| {
        let summary = "<summary><request>Look</request><completed>Nothing</completed></summary>";
        Ok(format!("<nothing>only a look</nothing>\n{summary}"))
    });
    world.send_turn("s1");
    world.drain().await;
    world.assert_all_is_stored();
    assert_eq!(world.count(world.home.memory(), "summaries"), 0);
    assert_eq!(
        world.memory("select cast(kept as text) from prompts"),
        ["0"]
    );
    assert_eq!(world.count(world.home.memory(), "texts"), 0);
}

#[tokio::test]
async fn a_turn_becomes_an_observation_and_a_summary_once() {
    let world = World::new("");
    world.send_turn("s1");
    assert_eq!(world.drain().await, 0);
    assert_eq!(world.drain().await, 0);
    world.assert_all_is_stored();
    assert_eq!(world.model.questions().len(), 1);
    assert_eq!(
        world.memory("select title from observations"),
        ["Kumquat limit raised to seven"]
    );
    assert_eq!(world.providers("summaries"), ["anthropic"]);
}

/// A home with a model, and one without.
fn worlds() -> [World; 2] {
    ["anthropic", "offline"].map(|provider| World::of(provider, ""))
}

#[tokio::test]
async fn two_sessions_at_once_land_where_they_belong() {
    for world in worlds() {
        world.model.answer(|question| {
            let first = question.contains("Session: s1.");
            Ok(observed(if first { "What s1 did" } else { "What s2 did" }))
        });
        let (one, two) = (world.host("s1"), world.host("s2"));
        // Turn by turn, as two windows do it.
        world.send(&one.prompt("Look at the first"));
        world.send(&two.prompt("Look at the second"));
        for part in ["a", "b"] {
            world.send(&one.edit(&format!("first-{part}.txt"), "0", "1"));
            world.send(&two.edit(&format!("second-{part}.txt"), "0", "1"));
        }
        world.send(&commit(&one, "Raise the first kumquat limit to one"));
        world.send(&commit(&two, "Raise the second kumquat limit to one"));
        world.send(&one.stop("The first is done."));
        world.send(&two.stop("The second is done."));
        world.drain().await;
        world.assert_all_is_stored();

        let prompts = "select host_session_id || ': ' || text from prompts, sessions \
                       where sessions.id = session_id order by 1";
        let expected = ["s1: Look at the first", "s2: Look at the second"];
        assert_eq!(world.memory(prompts), expected);
        assert_eq!(world.count(world.home.memory(), "projects"), 1);
        assert_eq!(world.count(world.home.memory(), "summaries"), 2);
        let astray = "observations, json_each(observations.events) as it, events \
                      where it.value = events.id and observations.session_id <> events.session_id";
        assert_eq!(world.count(world.home.memory(), astray), 0);
        if world.asks_a_model() {
            let titles = "select host_session_id || ': ' || observations.title \
                          from observations, sessions where sessions.id = session_id order by 1";
            assert_eq!(world.memory(titles), ["s1: What s1 did", "s2: What s2 did"]);
            let questions = world.model.questions();
            assert_eq!(questions.len(), 2);
            for question in questions {
                let first = question.contains("first-a.txt");
                assert_ne!(first, question.contains("second-a.txt"));
            }
        }
    }
}

#[tokio::test]
async fn a_subagents_work_lands_with_its_parent_marked() {
    for world in worlds() {
        let host = world.host("s1");
        world.send(&host.prompt("Have the check looked at"));
        let mut input = host.bash("sh check.sh", "ok");
        input["agent_id"] = "agent-7".into();
        input["agent_type"] = "general-purpose".into();
        world.send(&input);
        world.send(&host.bash("git status --short", " M limit.txt"));
        world.send(&host.stop("It was looked at."));
        world.drain().await;
        world.assert_all_is_stored();

        assert_eq!(world.memory("select host_session_id from sessions"), ["s1"]);
        let marked = "select event ->> '$.tool_name' || ' ' || \
                      coalesce(event ->> '$.agent_id', 'itself') from events \
                      where kind = 'tool_use' order by at, row";
        assert_eq!(world.memory(marked), ["Bash agent-7", "Bash itself"]);
        if world.asks_a_model() {
            let question = &world.model.questions()[0];
            assert_eq!(question.matches("Bash, by a subagent").count(), 1);
            assert_eq!(question.matches(" Bash\n").count(), 1);
        }
    }
}

#[tokio::test]
async fn resume_and_compact_go_on_while_clear_and_fork_begin() {
    for world in worlds() {
        let turns = [
            ("s1", "startup", "Begin"),
            ("s1", "resume", "Go on"),
            ("s1", "compact", "Go on further"),
            ("s2", "clear", "Begin anew"),
            // A fork starts like a resume, with an id of its own.
            ("s3", "resume", "Go elsewhere"),
        ];
        for (session, source, prompt) in turns {
            let mut host = world.host(session);
            host.prompt = format!("{session}-{source}");
            world.send(&host.start(source));
            world.send(&host.prompt(prompt));
            let mut edit = host.edit(&format!("{source}.txt"), "0", "1");
            edit["tool_use_id"] = format!("{session}-{source}-call").into();
            world.send(&edit);
            let subject = format!("Raise the kumquat limit after a {source} of {session}");
            world.send(&commit(&host, &subject));
            world.send(&host.stop(&format!("Done after {source}.")));
            let mut end = host.end();
            // The same end sent twice within seconds is one event.
            end["reason"] = format!("after {source}").into();
            world.send(&end);
            world.drain().await;
        }
        world.assert_all_is_stored();

        let prompts = "select host_session_id || ' ' || number || ' ' || text from prompts, sessions \
                       where sessions.id = session_id order by host_session_id, number";
        let expected = [
            "s1 1 Begin",
            "s1 2 Go on",
            "s1 3 Go on further",
            "s2 1 Begin anew",
            "s3 1 Go elsewhere",
        ];
        assert_eq!(world.memory(prompts), expected);
        assert_eq!(world.count(world.home.memory(), "summaries"), 5);
        if world.asks_a_model() {
            // The question about a continued session has its earlier observations; that of a new one has none.
            let questions = world.model.questions();
            let known = questions
                .iter()
                .filter(|it| !it.contains(OVER))
                .map(|it| it.contains("Known before this"));
            let known: Vec<bool> = known.collect();
            assert_eq!(known, [false, true, true, false, false]);
        }
    }
}

#[tokio::test]
async fn a_turn_without_a_stop_still_gets_its_summary() {
    for world in worlds() {
        let host = |session: &str, prompt: &str| {
            let mut host = world.host(session);
            host.prompt = format!("{session}-{prompt}");
            host
        };
        let work = |host: &Host| {
            world.send(&host.prompt("Raise the limit"));
            let mut edit = host.edit("limit.txt", "6", "7");
            edit["tool_use_id"] = format!("{}-call", host.prompt).into();
            world.send(&edit);
            let subject = format!("Raise the kumquat limit for {}", host.prompt);
            world.send(&commit(host, &subject));
        };
        // The next prompt comes, as after an interrupt.
        work(&host("s1", "first"));
        work(&host("s1", "second"));
        world.send(&host("s1", "second").stop("The limit is 7."));
        // The session ends.
        work(&host("s2", "only"));
        world.send(&host("s2", "only").end());
        // Nothing more comes.
        work(&host("s3", "only"));
        world.drain().await;
        world.assert_all_is_stored();

        let summed_up = "select host_prompt_id || ' by ' || provider from prompts \
                         join summaries on summaries.prompt_id = prompts.id order by 1";
        let by = |prompt: &str| format!("{prompt} by {}", world.config.provider);
        let expected = ["s1-first", "s1-second", "s2-only", "s3-only"].map(by);
        assert_eq!(world.memory(summed_up), expected);
    }
}

#[tokio::test]
async fn an_outage_is_waited_for_longer_each_time_and_then_all_is_stored() {
    let world = World::new("");
    world.send_turn("s1");
    let mut outages = 2;
    world.model.answer(move |_| {
        outages -= 1;
        match outages {
            0.. => Err(Failure::new(FailureKind::Outage, "no")),
            _ => Ok(observed("Back again")),
        }
    });
    assert_eq!(world.drain().await, 0);
    world.assert_all_is_stored();
    let pauses = "select cast(retry_at - at as text) from ledger where retry_at is not null";
    assert_eq!(world.memory(pauses), ["2000", "4000"]);
    assert_eq!(world.model.questions().len(), 3);
    assert_eq!(world.providers("observations"), ["anthropic"]);
}

#[tokio::test]
async fn after_a_pause_a_turn_that_has_stopped_waits_for_nothing_else() {
    let world = World::new("");
    world.send_turn("s1");
    let mut calls = 0;
    world.model.answer(move |_| {
        calls += 1;
        match calls {
            1 => Err(Failure::new(FailureKind::Outage, "no")),
            _ => Ok(observed("Back again")),
        }
    });
    world.run(Until::Idle).await;
    world.assert_all_is_stored();
    let waited = world.memory("select cast(max(at) - min(at) as text) from ledger");
    assert_eq!(waited, ["2000"]);
}

#[tokio::test]
async fn no_kind_of_failure_costs_an_event() {
    use FailureKind as Kind;
    let wait = [
        Kind::Auth,
        Kind::Billing,
        Kind::RateLimit,
        Kind::Model,
        Kind::Missing,
        Kind::Outage,
    ];
    for kind in wait {
        let world = World::new("");
        world.send_turn("s1");
        world.fails(kind);
        assert_eq!(world.drain().await, 5, "{kind}");
        world.assert_nothing_is_missing();
        let counted = "events where attempts + crashes + due_at > 0";
        assert_eq!(world.count(world.home.queue(), counted), 0, "{kind}");
        world.answers_well();
        assert_eq!(world.drain().await, 0, "{kind}");
        world.assert_all_is_stored();
    }
    let stand_in = [
        (Kind::TooLong, 2),
        (Kind::CutOff, 2),
        (Kind::Refusal, 1),
        (Kind::Empty, 2),
        (Kind::Prose, 2),
        (Kind::Schema, 2),
        (Kind::Request, 1),
        (Kind::Timeout, 3),
        (Kind::Broken, 3),
    ];
    for (kind, calls) in stand_in {
        let world = World::new("");
        world.send_turn("s1");
        world.fails(kind);
        assert_eq!(world.drain().await, 0, "{kind}");
        world.assert_all_is_stored();
        assert_eq!(world.model.questions().len(), calls, "{kind}");
        assert_eq!(world.providers("observations"), ["offline"], "{kind}");
        let why = world.memory("select note from ledger where provider = 'offline'");
        assert!(why.iter().all(|why| why.ends_with("no")), "{kind} {why:?}");
        // The next turn is asked about again.
        world.answers_well();
        let_pass(HOUR);
        world.send_turn("s2");
        assert_eq!(world.drain().await, 0, "{kind}");
        world.assert_all_is_stored();
        assert_eq!(world.providers("observations"), ["anthropic", "offline"]);
    }
}

/// The numbers, titles and marks of all observations.
const MARKED: &str = "select '#' || id || ' ' || title || ' | ' || coalesce(superseded_by, '') || ' | ' \
                      || coalesce(retracted, '') from observations order by id";

#[tokio::test]
async fn a_model_is_shown_what_it_knows_of_the_files_by_number_and_can_correct_it() {
    let world = World::new("");
    world.model.answer(|_| {
        let files = "<files_modified><file>limit.txt</file></files_modified></observation>";
        Ok(observed("Kumquat limit raised to seven").replace("</observation>", files))
    });
    world.send_turn("s1");
    world.drain().await;
    world.send_turn("s2");
    let number: i64 = world.memory("select cast(id as text) from observations")[0]
        .parse()
        .unwrap();
    world.model.answer(move |_| {
        let marks = format!("<supersedes>#{number}</supersedes>\n</observation>");
        let answer = observed("Kumquat limit lowered to five").replace("</observation>", &marks);
        Ok(format!(
            "{answer}\n<retract>#{number} it is five</retract>\n<retract>#999 why not</retract>"
        ))
    });
    world.drain().await;
    world.assert_all_is_stored();
    let question = &world.model.questions()[1];
    let known =
        format!("#{number} bugfix: Kumquat limit raised to seven\n  - limit.txt holds the limit\n");
    assert!(question.contains(&known), "{question}");
    let new: i64 = world.memory("select cast(max(id) as text) from observations")[0]
        .parse()
        .unwrap();
    let expected = [
        format!("#{number} Kumquat limit raised to seven | {new} | it is five"),
        format!("#{new} Kumquat limit lowered to five |  | "),
    ];
    assert_eq!(world.memory(MARKED), expected);
}

#[tokio::test]
async fn a_few_words_wait_for_the_next_turn() {
    let world = World::new("");
    let mut host = world.host("s1");
    world.send(&host.prompt("Which limit would you raise?"));
    world.send(&host.stop("The one in limit.txt. Shall I?"));
    world.drain().await;
    world.assert_all_is_stored();
    assert_eq!(world.model.questions(), [] as [&str; 0]);

    host.prompt = "second".into();
    world.send(&host.prompt("yes"));
    world.send(&host.edit("limit.txt", "6", "7"));
    world.send(&host.stop(RAISED));
    world.drain().await;
    world.assert_all_is_stored();
    let question = &world.model.questions()[0];
    let before = "prompt 1: Which limit would you raise?\nthe agent's last words: The one in limit.txt. Shall I?\n";
    assert!(question.contains(before), "{question}");

    // "yes" is told with the words that it answers, also if a few words came in between.
    host.prompt = "thanks".into();
    world.send(&host.prompt("Thanks. And the other limit?"));
    world.send(&host.stop("I can raise it in other.txt."));
    host.prompt = "agreed".into();
    world.send(&host.prompt("yes"));
    world.send(&host.stop("OK."));
    world.drain().await;
    assert_eq!(world.model.questions().len(), 1);
    host.prompt = "go".into();
    world.send(&host.prompt("go on then"));
    let mut edit = host.edit("other.txt", "6", "7");
    edit["tool_use_id"] = "go".into();
    world.send(&edit);
    world.send(&host.stop("Both limits are 7."));
    world.drain().await;
    world.assert_all_is_stored();
    let question = &world.model.questions()[1];
    let before = format!(
        "prompt 2: yes\nthe agent's last words: {RAISED}\n\
         prompt 3: Thanks. And the other limit?\nthe agent's last words: I can raise it in other.txt.\n\
         prompt 4: yes\nthe agent's last words: OK.\n"
    );
    assert!(question.contains(&before), "{question}");

    // Words that lay something down are asked about.
    host.prompt = "third".into();
    world.send(&host.prompt("From now on never raise a limit without asking me first."));
    world.send(&host.stop("Understood."));
    world.drain().await;
    assert_eq!(world.model.questions().len(), 3);
}

#[tokio::test]
async fn a_turn_that_a_model_fails_on_is_offline_whole() {
    let world = World::new("[worker]\nbatch_max = 2");
    world
        .model
        .answer(|_| Ok("I would rather talk about the weather.".to_owned()));
    world.send_turn("s1");
    world.drain().await;
    world.assert_all_is_stored();
    // Of three batches, the first was asked about.
    assert_eq!(world.model.questions().len(), 2);
    assert_eq!(world.providers("observations"), ["offline"]);
    assert_eq!(world.providers("summaries"), ["offline"]);

    let alone = World::of("offline", "");
    alone.send_turn("s1");
    alone.drain().await;
    for sql in [
        "select title || subtitle || facts || narrative from observations order by title",
        "select request || learned || completed || next_steps from summaries",
        DIGEST,
    ] {
        assert_eq!(world.memory(sql), alone.memory(sql), "{sql}");
    }
}

#[tokio::test]
async fn the_summary_is_offline_if_only_that_of_the_model_cannot_be_used() {
    let world = World::new("[worker]\nbatch_max = 3");
    let dropped = "<summary><request>Make the check pass</request>\
                   <completed>The wish of the user; the result, in one sentence</completed></summary>";
    world.model.answer(move |_| {
        let answer = observed("Kumquat limit raised to seven");
        let (observation, _) = answer.split_once("<summary>").unwrap();
        Ok(format!("{observation}{dropped}"))
    });
    world.send_turn("s1");
    world.drain().await;
    world.assert_all_is_stored();
    assert_eq!(world.providers("observations"), ["anthropic"]);
    assert_eq!(world.providers("summaries"), ["offline"]);

    // It is that of the whole turn.
    let alone = World::of("offline", "");
    alone.send_turn("s1");
    alone.drain().await;
    let summary = "select request || learned || completed || next_steps from summaries";
    assert_eq!(world.memory(summary), alone.memory(summary));
}

#[tokio::test]
async fn a_question_that_is_too_long_is_asked_with_shorter_texts() {
    let world = World::new("");
    world.model.answer(|question| {
        if question.len() > 3_000 {
            return Err(Failure::new(FailureKind::TooLong, "no"));
        }
        Ok(observed("Kumquat limit raised to seven"))
    });
    let host = world.host("s1");
    world.send(&host.prompt("Make the check pass"));
    world.send(&host.bash("cat limit.txt", &"7 kumquats\n".repeat(400)));
    world.send(&host.stop(RAISED));
    world.drain().await;
    world.assert_all_is_stored();
    assert_eq!(world.model.questions().len(), 2);
    assert_eq!(world.providers("observations"), ["anthropic"]);
}

#[tokio::test]
async fn a_model_of_which_no_answer_can_be_used_costs_little_and_writes_nothing() {
    for file in ["plain", "grammar", "observation", "short", "json"] {
        let world = World::of("openai", "[openai]\nmodel = \"tiny\"");
        as_it_was_asked(&world.home.prompts());
        let answers = answers(file);
        let mut at = 0;
        world.model.answer(move |_| {
            at += 1;
            Ok(answers[at % answers.len()].clone())
        });
        for turn in 0..22 {
            world.send_turn(&format!("s{turn}"));
            world.drain().await;
        }
        world.assert_all_is_stored();
        for table in ["observations", "summaries", "processed_events"] {
            assert_eq!(world.providers(table), ["offline"], "{file} {table}");
        }
        assert_eq!(world.model.questions().len(), 4, "{file}");
        let unfit = "only 0 of the last 4 answers of openai (tiny) could be used";
        let why = world.memory("select note from ledger where provider = 'offline'");
        assert_eq!((why.len(), why[21].as_str()), (22, unfit), "{file}");
        let notice = format!(
            "Foreword: {unfit}, so memory is made without it for now; `foreword status` says more"
        );
        assert_eq!(notice::take(&world.home), Some(notice));

        // Hours later it is asked about one turn, and a good answer brings it back.
        let_pass(6 * HOUR);
        world.answers_well();
        for turn in ["later", "last"] {
            world.send_turn(turn);
            world.drain().await;
        }
        world.assert_all_is_stored();
        assert_eq!(world.model.questions().len(), 6, "{file}");
        assert_eq!(world.providers("observations"), ["offline", "openai"]);
    }
}

#[tokio::test]
async fn another_model_is_not_judged_by_the_answers_of_the_one_before() {
    let mut world = World::of("openai", "[openai]\nmodel = \"tiny\"");
    world.model.answer(|_| Ok("Sure!".to_owned()));
    for turn in 0..5 {
        world.send_turn(&format!("s{turn}"));
        world.drain().await;
    }
    assert_eq!(world.model.questions().len(), 4);
    world.config.openai.model = "large".to_owned();
    world.answers_well();
    world.send_turn("later");
    world.drain().await;
    world.assert_all_is_stored();
    assert_eq!(world.providers("observations"), ["offline", "openai"]);
}

#[tokio::test]
async fn the_calls_about_a_turn_are_counted_across_workers_that_die() {
    let world = World::new("");
    world.send_turn("s1");
    for _ in 0..2 {
        // A worker that is killed during a call leaves it open.
        let killed = Worker::come_up(&world.home, &world.config, Until::Drained).unwrap();
        let entry = foreword_core::ledger::Entry {
            at: now(),
            provider: "anthropic",
            model: &world.config.anthropic.model,
            host_session_id: "s1",
            turn: Some(&world.host("s1").prompt),
            events: 5,
            raw_tokens: 1,
        };
        let _ = killed
            .deriver
            .store
            .ask(&entry, &Default::default())
            .unwrap();
    }
    world.model.answer(|_| Ok("It was a fine turn.".to_owned()));
    world.drain().await;
    assert_eq!(world.model.questions().len(), 1);
    assert_eq!(world.events().waiting, 0);
    assert_eq!(world.providers("observations"), ["offline"]);
}

#[tokio::test]
async fn what_only_a_person_can_mend_is_tried_again_when_a_person_asks() {
    let world = World::new("");
    world.send_turn("s1");
    world.fails(FailureKind::Auth);
    assert_eq!((world.drain().await, world.drain().await), (5, 5));
    world.assert_nothing_is_missing();
    assert_eq!(world.model.questions().len(), 2);
    world.answers_well();
    assert_eq!(world.drain().await, 0);
    world.assert_all_is_stored();
}

#[tokio::test]
async fn a_worker_does_not_stay_for_what_only_a_person_can_mend() {
    let world = World::new("");
    world.send_turn("s1");
    world.fails(FailureKind::Auth);
    assert_eq!(world.run(Until::Idle).await, WorkerEnd::Done { left: 5 });
    // The next worker does not ask either while the pause lasts.
    assert_eq!(world.run(Until::Idle).await, WorkerEnd::Done { left: 5 });
    assert_eq!(world.model.questions().len(), 1);
    world.assert_nothing_is_missing();
}

#[tokio::test]
async fn after_an_hour_memory_goes_on_offline_and_says_so() {
    let world = World::new("");
    world.send_turn("s1");
    world.fails(FailureKind::Auth);
    world.drain().await;
    let_pass(HOUR - 60_000);
    world.drain().await;
    assert_eq!(world.events().waiting, 5);
    let_pass(60_000);
    assert_eq!(world.run(Until::Idle).await, WorkerEnd::Done { left: 0 });
    world.assert_all_is_stored();
    for table in ["observations", "summaries", "processed_events"] {
        assert_eq!(world.providers(table), ["offline"], "{table}");
    }
    let why = world.memory("select note from ledger where provider = 'offline'");
    assert_eq!(why, ["anthropic is paused: no"]);
}

#[tokio::test]
async fn a_week_without_a_model_is_told_once_and_over_when_it_answers() {
    let world = World::new("");
    world.model.answer(|_| {
        let mut overloaded = Failure::new(FailureKind::RateLimit, "no");
        overloaded.retry_at = Some(now() + 120_000);
        Err(overloaded)
    });
    world.send_turn("s1");
    world.drain().await;
    assert_eq!(world.events().waiting, 5);
    assert_eq!(notice::take(&world.home), None);
    let mut notices = Vec::new();
    for day in 1..=7 {
        let_pass(24 * HOUR);
        world.send_turn(&format!("day {day}"));
        // The first question of a day is asked again; while that is paused, offline goes on.
        world.drain().await;
        assert_eq!(world.drain().await, 0, "day {day}");
        notices.extend(notice::take(&world.home));
    }
    world.assert_all_is_stored();
    let expected = "Foreword: anthropic has not answered for long, so memory is made without it for now; \
                `foreword status` says more";
    assert_eq!(notices, [expected]);
    let sessions = "select host_session_id from sessions join summaries s on s.session_id = sessions.id order by s.id";
    assert_eq!(world.memory(sessions)[..3], ["s1", "day 1", "day 2"]);

    world.answers_well();
    let_pass(HOUR);
    world.send_turn("afterwards");
    assert_eq!(world.drain().await, 0);
    let by = "select distinct provider from observations where session_id = \
              (select id from sessions where host_session_id = 'afterwards')";
    assert_eq!(world.memory(by), ["anthropic"]);
    // The next outage causes a notice again.
    world.fails(FailureKind::Auth);
    world.send_turn("later");
    world.drain().await;
    let expected = "Foreword: anthropic cannot be asked (auth) until you change something; \
                `foreword status` says more";
    assert_eq!(notice::take(&world.home).as_deref(), Some(expected));
    world.answers_well();
    world.drain().await;
    let notices = std::fs::read_dir(world.home.dir().join("notices")).unwrap();
    assert_eq!(notices.count(), 0);
}

#[tokio::test]
async fn an_answer_that_was_no_use_hours_ago_does_not_make_an_outage_older() {
    let world = World::new("");
    world
        .model
        .answer(|_| Ok("Sure, happy to help!".to_owned()));
    let host = world.host("s1");
    world.send(&host.prompt("Make the check pass"));
    world.send(&host.edit("limit.txt", "6", "7"));
    world.drain().await;
    let_pass(2 * HOUR);
    let before = world.events();

    world.fails(FailureKind::Auth);
    world.send_turn("s2");
    world.drain().await;
    let all_wait = Events {
        waiting: 5,
        ..before
    };
    assert_eq!(world.events(), all_wait, "{:?}", world.memory(LEDGER));
    world.assert_nothing_is_missing();
}

#[tokio::test]
async fn when_the_budget_is_used_up_nobody_is_asked() {
    let world = World::new("[budget]\ndaily_usd = 0.0");
    world.send_turn("s1");
    world.drain().await;
    world.assert_all_is_stored();
    assert!(world.model.questions().is_empty());
    assert_eq!(world.providers("observations"), ["offline"]);
    let why = world.memory("select note from ledger");
    assert_eq!(why, ["the daily budget of $0.00 is used up"]);
}

#[tokio::test]
async fn what_a_model_told_is_not_told_again_when_offline_goes_on() {
    let mut world = World::new("");
    let host = world.host("s1");
    world.send(&host.prompt("Make the check pass"));
    world.send(&host.bash_failed("sh check.sh", "Exit code 3\nerror: the limit is 6, not 7"));
    world.send(&host.edit("limit.txt", "6", "7"));
    world.send(&commit(&host, "Raise the kumquat limit to seven"));
    world.drain().await;
    world.config.budget.daily_usd = 0.0;
    world.send(&host.stop(RAISED));
    world.drain().await;
    world.assert_all_is_stored();
    assert_eq!(world.providers("observations"), ["anthropic"]);
    assert_eq!(world.providers("summaries"), ["anthropic"]);

    // The next turn is derived offline.
    world.send_turn("s2");
    world.drain().await;
    assert_eq!(world.model.questions().len(), 1);
    assert_eq!(world.providers("observations"), ["anthropic", "offline"]);
}

#[tokio::test]
async fn a_very_long_turn_is_summed_up_on_the_way() {
    let world = World::new("");
    world
        .model
        .answer(|_| Ok("<nothing>only parts</nothing>".to_owned()));
    let host = world.host("s1");
    world.send(&host.prompt("Look at everything"));
    for number in 0..130 {
        world.send(&host.bash(&format!("cat part{number}"), "x"));
    }
    world.drain().await;
    let questions = world.model.questions();
    let sums_up: Vec<bool> = questions
        .iter()
        .map(|it| it.contains("<summary>"))
        .collect();
    assert_eq!(sums_up, [false, false, true, true]);
    world.assert_all_is_stored();
}

#[tokio::test]
async fn a_model_that_is_too_slow_for_a_turn_is_asked_about_half_of_it() {
    let world = World::new("");
    world.model.answer(|question| {
        if question.contains("[4]") {
            Err(Failure::new(FailureKind::Timeout, "no"))
        } else {
            Ok(observed("In two parts"))
        }
    });
    world.send_turn("s1");
    world.drain().await;
    world.assert_all_is_stored();
    let failures = "select coalesce(failure, 'none') from ledger";
    assert_eq!(world.memory(failures), ["timeout", "none", "none"]);
}

#[tokio::test]
async fn what_a_model_summed_up_stays_when_a_background_task_reports() {
    let world = World::new("");
    world.send_turn("s1");
    world.drain().await;
    let host = world.host("s1");
    let mut report = host.prompt("<task-notification>task 7 is done</task-notification>");
    report["prompt_id"] = "s1-task".into();
    world.send(&report);
    world.drain().await;
    world.assert_all_is_stored();
    assert_eq!(world.providers("summaries"), ["anthropic"]);
}

#[tokio::test]
async fn a_worker_ends_after_its_idle_time_and_not_before() {
    let world = World::new("[worker]\nidle_seconds = 900");
    world.send_turn("s1");
    let begun = now();
    assert_eq!(world.run(Until::Idle).await, WorkerEnd::Done { left: 0 });
    assert!(now() >= begun + 900_000, "{}", now() - begun);
    world.assert_all_is_stored();
}
