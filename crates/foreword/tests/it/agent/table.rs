//! Every failure of a call to a model, with its kind and its effect on the events: none is lost,
//! none is stored without a result, none is skipped, and when the model answers well again, it is
//! asked again.

use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::world::{Agent, Events, LEDGER, Provider, answer};
use crate::support::{signal, wait_until};

const ALL: &[Provider] = &[Provider::Claude, Provider::Anthropic, Provider::OpenAi];
const HTTP: &[Provider] = &[Provider::Anthropic, Provider::OpenAi];
const CLAUDE: &[Provider] = &[Provider::Claude];
const ANTHROPIC: &[Provider] = &[Provider::Anthropic];
const OPENAI: &[Provider] = &[Provider::OpenAi];

struct Case {
    name: &'static str,
    providers: &'static [Provider],
    fault: Fault,
    kind: &'static str,
    then: Then,
}

/// The cause of a failure.
enum Fault {
    /// The model answers every question like this.
    Reply(Value),
    /// The model does not answer in time.
    Silence,
    /// No server listens.
    Gone,
    /// A setting is changed.
    Set(&'static str, &'static str),
    /// A shell script in place of the client.
    Client(&'static str),
}

/// The expected effect on the events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// They wait, and no attempt is counted for them.
    Wait,
    /// They are derived offline, after three calls at most.
    StandIn,
}

#[rustfmt::skip] // A table is read row by row.
fn cases() -> Vec<Case> {
    use Fault::{Client, Gone, Reply, Set, Silence};
    use Then::{StandIn, Wait};
    let case = |name, providers, fault, kind, then| Case {
        name,
        providers,
        fault,
        kind,
        then,
    };
    let no_credit = "Your credit balance is too low to access the API.";
    let too_long = "prompt is too long: 210000 tokens > 200000 maximum";
    let half = "<observation><type>bugfix</type><title>Half of";
    let wait = json!({"status": 429, "type": "rate_limit_error", "message": "Slow down.", "headers": {"retry-after": "120"}});
    let quota = json!({"status": 429, "code": "insufficient_quota", "message": "You exceeded your current quota."});
    vec![
        case("400, no credit", ALL, error(400, "invalid_request_error", no_credit), "billing", Wait),
        case("429, no credit", OPENAI, Reply(json!({"error": quota})), "billing", Wait),
        case("401", ALL, error(401, "authentication_error", "invalid x-api-key"), "auth", Wait),
        case("403", ALL, error(403, "permission_error", "not allowed"), "auth", Wait),
        case("no key", ANTHROPIC, Set("ANTHROPIC_API_KEY", ""), "auth", Wait),
        case("404, no such model", ALL, error(404, "not_found_error", "model: no-such-model"), "model", Wait),
        case("no such program", CLAUDE, Set("FOREWORD_CLAUDE_COMMAND", "/no/such/claude"), "missing", Wait),
        case("no address", OPENAI, Set("FOREWORD_OPENAI_BASE_URL", ""), "missing", Wait),
        case("429 with a time", ALL, Reply(json!({"error": wait})), "rate_limit", Wait),
        case("429", ALL, error(429, "rate_limit_error", "Slow down."), "rate_limit", Wait),
        case("500", ALL, error(500, "api_error", "Internal server error"), "outage", Wait),
        case("529", ALL, error(529, "overloaded_error", "Overloaded"), "outage", Wait),
        case("an error with status 200", HTTP, error(200, "overloaded_error", "Overloaded"), "outage", Wait),
        case("connection refused", ALL, Gone, "outage", Wait),
        case("no answer in time", ALL, Silence, "timeout", Wait),
        case("closed without an answer", ALL, Reply(json!({"disconnect": "before"})), "broken", Wait),
        case("closed in the middle", ALL, Reply(json!({"disconnect": "middle", "text": half})), "broken", Wait),
        case("an error in the middle", CLAUDE, Reply(json!({"text": half, "stream_error": {"type": "overloaded_error", "message": "Overloaded"}})), "broken", Wait),
        case("the process exits", CLAUDE, Client("exit 1"), "broken", Wait),
        case("the process is killed", CLAUDE, Client("kill -9 $$"), "broken", Wait),
        case("413", ALL, error(413, "request_too_large", "Request exceeds the maximum size"), "too_long", StandIn),
        case("400, prompt too long", ALL, error(400, "invalid_request_error", too_long), "too_long", StandIn),
        case("400, anything else", ALL, error(400, "invalid_request_error", "messages: not so"), "request", StandIn),
        case("an answer cut off", ALL, Reply(json!({"text": half, "stop_reason": "max_tokens"})), "cut_off", StandIn),
        case("a refusal", ALL, Reply(json!({"text": "I cannot help.", "stop_reason": "refusal"})), "refusal", StandIn),
        case("an empty answer", ALL, Reply(json!("")), "empty", StandIn),
        case("prose", ALL, Reply(json!("Sure, happy to help!")), "prose", StandIn),
        case("an error's text as the answer", HTTP, Reply(json!("API Error: 529 Overloaded")), "prose", StandIn),
        case("a block with nothing in it", HTTP, Reply(json!("<observation></observation>")), "schema", StandIn),
    ]
}

fn error(status: u16, kind: &str, message: &str) -> Fault {
    Fault::Reply(json!({"error": {"status": status, "type": kind, "message": message}}))
}

/// The number of events in a case: a prompt and an edit.
const TOLD: i64 = 2;

impl Case {
    /// Runs the case from the failure to the repair; returns its row of the table.
    fn run(&self, provider: Provider) -> [String; 5] {
        let mut agent = Agent::new(provider);
        agent.sandbox.drain();
        agent.sandbox.keep_workers_away();
        let host = agent.host("s1");
        agent.send(&host.prompt("Make the check pass"));
        agent.send(&host.edit("limit.txt", "6", "7"));

        let mended = self.fault.befall(&mut agent);
        match self.then {
            Then::Wait => first_attempt(&agent),
            Then::StandIn => agent.sandbox.drain(),
        }
        let kinds =
            "select distinct coalesce(failure, 'none') from ledger where provider <> 'offline'";
        assert_eq!(
            agent.column(kinds),
            [self.kind],
            "{:?}",
            agent.column(LEDGER)
        );
        assert_eq!(agent.count("processed_events where outcome = 'nothing'"), 0);
        let after_failure = agent.events();
        let what = match self.then {
            Then::Wait => waits(&agent),
            Then::StandIn => stands_in(&agent),
        };

        mended(&mut agent);
        agent.assert_nothing_is_missing();
        if self.then == Then::StandIn {
            agent.sandbox.keep_workers_away();
            let next = agent.host("s2");
            agent.send(&next.prompt("Raise the limit again"));
            agent.send(&next.bash("sed -i s/7/8/ limit.txt", ""));
        }
        agent.sandbox.drain();
        agent.assert_all_is_stored();
        assert_eq!(agent.count("observations where provider <> 'offline'"), 1);
        assert_eq!(agent.count("summaries where provider <> 'offline'"), 1);
        [
            self.name.to_owned(),
            provider.name().to_owned(),
            self.kind.to_owned(),
            what.to_owned(),
            in_words(after_failure),
        ]
    }
}

type Mend = Box<dyn FnOnce(&mut Agent)>;

impl Fault {
    /// Causes the failure; returns a function that ends it.
    fn befall(&self, agent: &mut Agent) -> Mend {
        match self {
            Fault::Reply(reply) => {
                agent.script(&json!({"then": reply}));
                Box::new(answer_well)
            }
            Fault::Silence => {
                agent.script(&json!({"then": {"hang_ms": 60_000}}));
                // The client takes a while until it asks at all.
                let seconds = match agent.provider {
                    Provider::Claude => "4",
                    _ => "1",
                };
                let mend = set(agent, "FOREWORD_MODEL_TIMEOUT_SECONDS", seconds.into());
                Box::new(|agent| {
                    mend(agent);
                    answer_well(agent);
                })
            }
            Fault::Gone => {
                agent.server_mut().end();
                Box::new(|agent| {
                    agent.server_mut().start_again();
                    answer_well(agent);
                })
            }
            Fault::Set(name, value) => set(agent, name, (*value).into()),
            Fault::Client(script) => {
                let path = agent.sandbox.user_home().join("claude");
                std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, mode).unwrap();
                set(agent, "FOREWORD_CLAUDE_COMMAND", path.into())
            }
        }
    }
}

fn answer_well(agent: &mut Agent) {
    agent.script(&json!({"then": answer("Kumquat limit raised to seven")}));
}

fn set(agent: &mut Agent, name: &'static str, value: std::ffi::OsString) -> Mend {
    let before = agent.sandbox.set(name, value);
    Box::new(move |agent| match before {
        Some(before) => drop(agent.sandbox.set(name, before)),
        None => agent.sandbox.unset(name),
    })
}

/// Has a worker try once, and ends it while it waits before asking again.
fn first_attempt(agent: &Agent) {
    let mut worker = agent.worker();
    wait_until("the call has failed, and its events are free", || {
        let claimed = "select count(*) from events where state = 'claimed'";
        agent.count("ledger where state = 'failed'") > 0
            && agent.sandbox.count("queue.db", claimed) == 0
    });
    signal(worker.id(), "TERM");
    assert!(worker.wait().unwrap().success());
}

/// Expects that all events wait and no attempt is counted; returns a text for how long.
fn waits(agent: &Agent) -> &'static str {
    let all_wait = Events {
        waiting: TOLD,
        ..Events::default()
    };
    assert_eq!(agent.events(), all_wait, "{:?}", agent.column(LEDGER));
    let counted = "select count(*) from events where attempts + crashes + due_at > 0";
    assert_eq!(agent.sandbox.count("queue.db", counted), 0);
    let pause = "select (min(retry_at) - min(at)) / 1000 from ledger";
    match agent.sandbox.count("memory.db", pause) {
        // As long as the call took, and two seconds.
        ..60 => "waits, for seconds at first",
        110..200 => "waits as long as the answer asked for",
        280.. => "waits, for minutes",
        other => panic!("a pause of {other} s"),
    }
}

/// Expects that all events are derived offline, and that the ledger says why; returns a text for the
/// number of calls.
fn stands_in(agent: &Agent) -> &'static str {
    let all_stored = Events {
        stored: TOLD,
        ..Events::default()
    };
    assert_eq!(agent.events(), all_stored, "{:?}", agent.column(LEDGER));
    let by = "select distinct provider from processed_events";
    assert_eq!(agent.column(by), ["offline"]);
    let why = "ledger where provider = 'offline' and note <> ''";
    assert_eq!(agent.count(why), 1);
    match agent.count("ledger where provider <> 'offline'") {
        1 => "offline",
        2 => "asked once more, then offline",
        calls => panic!("{calls} calls: {:?}", agent.column(LEDGER)),
    }
}

fn in_words(events: Events) -> String {
    let Events {
        stored,
        waiting,
        skipped,
    } = events;
    let parts = [
        (stored, "stored"),
        (waiting, "waiting"),
        (skipped, "skipped"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let words: Vec<_> = parts
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    words.join(", ")
}

#[test]
fn a_failure_costs_no_event_whatever_it_is() {
    let cases = cases();
    let runs: Vec<_> = cases
        .iter()
        .flat_map(|case| case.providers.iter().map(move |provider| (case, *provider)))
        .filter(|(case, provider)| is_wanted(case, *provider))
        .collect();
    let rows = Mutex::new(vec![None; runs.len()]);
    // Most of a case is waiting, so several are gone through at once; but a client that
    // starts is busy, and more of them than there are cores only wait for each other.
    let (claude, http): (Vec<usize>, Vec<usize>) =
        (0..runs.len()).partition(|at| runs[*at].1 == Provider::Claude);
    let (next_claude, next_http) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let lanes = [(&claude, &next_claude, 3), (&http, &next_http, 4)];
    std::thread::scope(|scope| {
        for (lane, next, at_once) in lanes {
            for _ in 0..at_once {
                scope.spawn(|| {
                    while let Some(at) = lane.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let (case, provider) = runs[*at];
                        let row = catch_unwind(AssertUnwindSafe(|| case.run(provider)));
                        if row.is_err() {
                            eprintln!("^ in the case “{}” with {}", case.name, provider.name());
                        }
                        rows.lock().unwrap()[*at] = row.ok();
                    }
                });
            }
        }
    });
    let rows = rows.into_inner().unwrap();
    let failed = rows.iter().filter(|row| row.is_none()).count();
    assert_eq!(failed, 0, "of {} cases", runs.len());
    let table = table(&rows.into_iter().flatten().collect::<Vec<_>>());
    println!("{table}");
    if std::env::var_os(ONLY).is_none() {
        insta::assert_snapshot!("failure-table", table);
    }
}

/// Runs only the cases whose name or provider contains this.
const ONLY: &str = "FOREWORD_TEST_CASE";

fn is_wanted(case: &Case, provider: Provider) -> bool {
    match std::env::var(ONLY) {
        Ok(part) => format!("{} {}", case.name, provider.name()).contains(&part),
        Err(_) => true,
    }
}

fn table(rows: &[[String; 5]]) -> String {
    let head = ["case", "provider", "kind", "what happens", "events"].map(str::to_owned);
    let widths: Vec<usize> = (0..head.len())
        .map(|at| {
            rows.iter()
                .chain([&head])
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let rule = widths
        .iter()
        .map(|width| "-".repeat(*width))
        .collect::<Vec<_>>();
    let line = |cells: &[String]| {
        let cells = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let head = [line(&head), line(&rule)].concat();
    rows.iter().fold(head, |table, row| table + &line(row))
}
