//! A user with a certain provider: a sandbox, and the model that the provider asks.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::server::{Question, Server};
use crate::support::{Host, Sandbox, claude_client};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    Claude,
    Anthropic,
    OpenAi,
    Offline,
}

impl Provider {
    pub fn name(self) -> &'static str {
        match self {
            Provider::Claude => "claude",
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Offline => "offline",
        }
    }

    fn server(self) -> Option<Server> {
        match self {
            Provider::Claude | Provider::Anthropic => {
                Some(Server::start("claude-code/fake_anthropic.py"))
            }
            Provider::OpenAi => Some(Server::start("fake_openai.py")),
            Provider::Offline => None,
        }
    }
}

pub struct Agent {
    pub provider: Provider,
    server: Option<Server>,
    pub sandbox: Sandbox,
    pub project: PathBuf,
    /// The inputs that were sent to hooks; one that is sent again counts once.
    sent: RefCell<BTreeSet<String>>,
}

/// The number of sent events in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    pub stored: i64,
    pub waiting: i64,
    pub skipped: i64,
}

impl Agent {
    /// Its model answers every question well, with one observation and a summary. No
    /// worker runs before a test has one run.
    pub fn new(provider: Provider) -> Agent {
        let mut sandbox = Sandbox::new();
        let server = provider.server();
        sandbox.set("FOREWORD_PROVIDER", provider.name());
        sandbox.set("FOREWORD_WORKER_BATCH_WAIT_SECONDS", "0");
        if let Some(server) = &server {
            server.script(&json!({"then": answer("Kumquat limit raised to seven")}));
            let address = format!("http://127.0.0.1:{}", server.port);
            match provider {
                Provider::Claude => {
                    sandbox.set("FOREWORD_CLAUDE_COMMAND", claude_client());
                    sandbox.set("CLAUDE_CONFIG_DIR", sandbox.user_home().join(".claude"));
                    sandbox.set("ANTHROPIC_BASE_URL", address);
                    sandbox.set("ANTHROPIC_API_KEY", "sk-test");
                }
                Provider::Anthropic => {
                    sandbox.set("FOREWORD_ANTHROPIC_BASE_URL", address);
                    sandbox.set("ANTHROPIC_API_KEY", "sk-test");
                }
                Provider::OpenAi => {
                    sandbox.set("FOREWORD_OPENAI_BASE_URL", format!("{address}/v1"));
                    sandbox.set("FOREWORD_OPENAI_MODEL", "test-model");
                }
                Provider::Offline => {}
            }
        }
        let project = sandbox.project("app");
        sandbox.keep_workers_away();
        Agent {
            provider,
            server,
            sandbox,
            project,
            sent: RefCell::default(),
        }
    }

    pub fn server_mut(&mut self) -> &mut Server {
        self.server.as_mut().expect("offline has no server")
    }

    pub fn asks_a_model(&self) -> bool {
        self.server.is_some()
    }

    /// Every request to the model so far; none offline.
    pub fn questions(&self) -> Vec<Question> {
        self.server
            .as_ref()
            .map(Server::questions)
            .unwrap_or_default()
    }

    pub fn script(&self, script: &Value) {
        if let Some(server) = &self.server {
            server.script(script);
        }
    }

    pub fn host(&self, session: &str) -> Host {
        Host::new(session, &self.project)
    }

    pub fn send(&self, input: &Value) {
        let hook = match input["hook_event_name"].as_str().unwrap() {
            "SessionStart" => "context",
            "UserPromptSubmit" => "new",
            "Stop" | "StopFailure" => "summary",
            "SessionEnd" => "cleanup",
            _ => "save",
        };
        self.sandbox.run_hook(hook, &self.project, input);
        self.sent.borrow_mut().insert(input.to_string());
    }

    /// Sends a turn that breaks something and repairs it, of which the offline provider also makes
    /// an observation.
    pub fn send_turn(&self, host: &Host) {
        self.send(&host.prompt("Make the check pass"));
        let error = "Exit code 3\nerror: the kumquat limit is 6, not 7";
        self.send(&host.bash_failed("sh check.sh", error));
        self.send(&host.edit("limit.txt", "6", "7"));
        self.send(&host.bash("sh check.sh", "ok"));
        self.send(&host.stop("The limit is 7 now."));
    }

    /// A worker in the foreground, to be ended by the test.
    pub fn worker(&self) -> Child {
        let mut command = self.sandbox.command(&["worker", "run"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    /// Counts events without receipts, which the start of a session may add.
    pub fn events(&self) -> Events {
        let queued = |state: &str| {
            let sql = format!("select count(*) from events where {state}");
            self.sandbox.count("queue.db", &sql)
        };
        Events {
            stored: self.count("processed_events") - self.count("events where kind = 'receipt'"),
            waiting: queued("state <> 'skipped' and kind <> 'receipt'"),
            skipped: queued("state = 'skipped'"),
        }
    }

    /// The number of rows of a table of memory.db, given as `table` or `table where …`.
    pub fn count(&self, rows: &str) -> i64 {
        let sql = format!("select count(*) from {rows}");
        self.sandbox.count("memory.db", &sql)
    }

    /// The texts of one column of a query on memory.db.
    pub fn column(&self, sql: &str) -> Vec<String> {
        let memory = self.sandbox.database("memory.db");
        let mut statement = memory.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, Option<String>>(0));
        rows.unwrap()
            .map(|row| row.unwrap().unwrap_or_default())
            .collect()
    }

    /// Expects every sent event to be stored, waiting or skipped, and the ledger to have every request of the server.
    #[track_caller]
    pub fn assert_nothing_is_missing(&self) {
        let Events {
            stored,
            waiting,
            skipped,
        } = self.events();
        assert_eq!(self.sandbox.spooled(), 0);
        assert_eq!(
            stored + waiting + skipped,
            self.sent.borrow().len() as i64,
            "{stored} stored, {waiting} waiting, {skipped} skipped"
        );
        let in_ledger = self
            .sandbox
            .count("memory.db", "select coalesce(sum(requests), 0) from ledger");
        let asked = self.questions().len() as i64;
        assert_eq!(in_ledger, asked, "{:?}", self.column(LEDGER));
    }

    /// The same, and nothing is left to be done.
    #[track_caller]
    pub fn assert_all_is_stored(&self) {
        self.assert_nothing_is_missing();
        let Events {
            waiting, skipped, ..
        } = self.events();
        assert_eq!((waiting, skipped), (0, 0));
        let doubled = "(select key from events group by key having count(*) > 1)";
        assert_eq!(self.count(doubled), 0);
        assert_eq!(self.count("events"), self.count("processed_events"));
    }
}

/// The ledger in short, for the message of a failed test.
pub const LEDGER: &str = "select state || ' ' || coalesce(failure, '') || ' ' || requests || ' of ' || events || ' ' || coalesce(note, '') from ledger order by id";

/// A correct answer of a model.
pub fn answer(title: &str) -> Value {
    format!(
        "<observation><type>bugfix</type><title>{title}</title><subtitle>The check passes</subtitle>\
         <facts><fact>limit.txt holds the kumquat limit</fact></facts>\
         <narrative>The check wants 7 where a &lt; b.</narrative>\
         <concepts><concept>limits</concept></concepts></observation>\n\
         <summary><request>Make the check pass</request><investigated></investigated><learned></learned>\
         <completed>{title}</completed><next_steps></next_steps><files_read></files_read>\
         <files_edited></files_edited><notes></notes></summary>"
    )
    .into()
}
