//! What a repository asks Foreword not to do, by `.foreword.toml`, and the user for one project.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::agent::world::{Agent, Provider};
use crate::mcp::Client;
use crate::support::{Host, Sandbox};

/// A project with something in its memory.
struct Repository {
    sandbox: Sandbox,
    project: PathBuf,
}

impl Repository {
    fn new() -> Repository {
        let sandbox = Sandbox::new();
        let project = sandbox.project("app");
        let repository = Repository { sandbox, project };
        repository.session("first");
        assert_eq!(repository.prompts(), 1);
        repository
    }

    fn policy(&self, text: &str) {
        fs::write(self.project.join(".foreword.toml"), text).unwrap();
    }

    /// A session with an edit of `src/a.rs` and of `secrets/key.txt`; returns what hooks printed.
    fn session(&self, id: &str) -> String {
        let host = Host::new(id, &self.project);
        let send = |hook: &str, input: &Value| self.sandbox.run_hook(hook, &self.project, input);
        let printed = send("context", &host.start("startup"))
            + &send("new", &host.prompt("Remember the canary"));
        send("save", &host.edit("src/a.rs", "1", "2"));
        send("save", &host.edit("secrets/key.txt", "3", "4"));
        let printed = printed + &send("summary", &host.stop("Done with the canary."));
        self.sandbox.drain();
        printed
    }

    fn prompts(&self) -> i64 {
        let prompts = "select count(*) from prompts";
        self.sandbox.count("memory.db", prompts)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = self.sandbox.command(arguments);
        let output = command.current_dir(&self.project).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn is_off(&self) -> bool {
        let status: Value = serde_json::from_str(&self.run(&["status", "--json"])).unwrap();
        status["off"] == true
    }
}

#[test]
fn a_repository_switches_foreword_off_and_the_user_is_told() {
    let repository = Repository::new();
    assert!(!repository.is_off());
    repository.policy("off = true\n");
    let printed = repository.session("second");
    let answer: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        answer["systemMessage"],
        "Foreword is off here: .foreword.toml of this project switches it off."
    );
    assert_eq!(
        answer.as_object().unwrap().len(),
        1,
        "nothing for the agent"
    );
    assert_eq!(
        repository.prompts(),
        1,
        "what was kept stays, and nothing is added"
    );
    assert!(repository.is_off());
    let status = repository.run(&["status"]);
    assert!(
        status.contains("here: .foreword.toml of this project switches it off"),
        "{status}"
    );
    let mut client = Client::new(&repository.sandbox, &repository.project);
    let refused = client.call("search", serde_json::json!({"query": "canary"}));
    assert_eq!(refused["isError"], true);
    client.end();

    // It restricts what comes from now on. Without the file all is as before.
    fs::remove_file(repository.project.join(".foreword.toml")).unwrap();
    assert!(repository.session("third").contains("canary"));
    assert_eq!(repository.prompts(), 2);
}

#[test]
fn paths_that_a_repository_or_the_user_excludes_are_not_stored() {
    let stored = |repository: &Repository| {
        let sql = "select count(*) from events where event ->> '$.payload.input.file_path' like ?1";
        let memory = repository.sandbox.database("memory.db");
        ["%/src/a.rs", "%/secrets/key.txt"].map(|path| {
            memory
                .query_row(sql, [path], |row| row.get::<_, i64>(0))
                .unwrap()
        })
    };
    let repository = Repository::new();
    assert_eq!(stored(&repository), [1, 1]);
    repository.policy("exclude_paths = [\"secrets\"]\n");
    repository.session("second");
    assert_eq!(stored(&repository), [2, 1]);
    assert!(
        repository
            .run(&["status"])
            .contains(".foreword.toml not stored: secrets")
    );

    fs::remove_file(repository.project.join(".foreword.toml")).unwrap();
    let key = repository.project.display();
    let config = format!("[projects.\"{key}\"]\nexclude_paths = [\"*.rs\"]\n");
    fs::write(repository.sandbox.home().join("config.toml"), config).unwrap();
    repository.session("third");
    assert_eq!(stored(&repository), [2, 2]);
    let config = format!("[projects.\"{key}\"]\noff = true\n");
    fs::write(repository.sandbox.home().join("config.toml"), config).unwrap();
    assert_eq!(repository.session("fourth"), "");
    assert!(repository.is_off());
    // A restriction that is not understood restricts.
    let config = format!("[projects.\"{key}\"]\nof = true\n");
    fs::write(repository.sandbox.home().join("config.toml"), config).unwrap();
    let prompt = Host::new("fifth", &repository.project).prompt("Remember the canary");
    let project = &repository.project;
    assert_eq!(repository.sandbox.run_hook("new", project, &prompt), "");
    fs::remove_file(repository.sandbox.home().join("config.toml")).unwrap();
    repository.sandbox.drain();
    assert_eq!(repository.prompts(), 3);
}

#[test]
fn a_file_that_wants_more_than_to_restrict_gets_nothing() {
    let repository = Repository::new();
    let wanted = "provider = \"openai\"\noff = false\n[openai]\nbase_url = \"http://203.0.113.1/v1\"\n\
                  [retention]\nevents_days = 0\n[show]\nindex = false\n";
    repository.policy(wanted);
    assert!(repository.session("second").contains("canary"));
    assert_eq!(repository.prompts(), 2);
    let status: Value = serde_json::from_str(&repository.run(&["status", "--json"])).unwrap();
    assert_eq!(status["provider"], "offline");
    let doctor = repository.run(&["doctor"]);
    assert!(
        doctor.contains(".foreword.toml of this project has keys that are ignored: openai, provider, retention, show"),
        "{doctor}"
    );
    // Nor does it switch on what the user switched off.
    repository.run(&["off"]);
    assert_eq!(repository.session("third"), "");
}

#[test]
fn a_file_that_cannot_be_used_switches_off_and_holds_nothing_up() {
    let repository = Repository::new();
    let path = repository.project.join(".foreword.toml");
    let outside = repository.sandbox.user_home().join("outside.toml");
    fs::write(&outside, "no_team = true\n").unwrap();
    type Make<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Make<'_>); 6] = [
        ("larger than 8 kB", &|path| {
            fs::write(path, "# ".repeat(5_000)).unwrap();
        }),
        ("not valid TOML", &|path| fs::write(path, "off = ").unwrap()),
        ("true or false", &|path| {
            fs::write(path, "off = \"no\"").unwrap();
        }),
        ("it leads out of", &|path| symlink(&outside, path).unwrap()),
        ("not a regular file", &|path| {
            let made = Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }),
        ("not a regular file", &|path| fs::create_dir(path).unwrap()),
    ];
    for (why, make) in cases {
        make(&path);
        let printed = repository.session("second");
        assert!(
            printed.contains("cannot be used") && printed.contains(why),
            "{printed}"
        );
        assert!(repository.run(&["doctor"]).contains(why));
        assert_eq!(repository.prompts(), 1, "{why}");
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    }
    // A link within the project is its own file.
    fs::write(repository.project.join("policy.toml"), "no_team = true\n").unwrap();
    symlink("policy.toml", &path).unwrap();
    assert!(repository.session("third").contains("canary"));
    assert!(
        repository
            .run(&["status"])
            .contains(".foreword.toml no team")
    );
}

#[test]
fn a_repository_keeps_its_sessions_from_models() {
    let agent = Agent::new(Provider::OpenAi);
    fs::write(agent.project.join(".foreword.toml"), "no_model = true\n").unwrap();
    agent.send_turn(&agent.host("s1"));
    agent.sandbox.drain();
    assert_eq!(agent.questions().len(), 0);
    assert_eq!(agent.count("summaries where provider = 'offline'"), 1);
    fs::remove_file(agent.project.join(".foreword.toml")).unwrap();
    agent.send_turn(&agent.host("s2"));
    agent.sandbox.drain();
    assert_ne!(agent.questions().len(), 0);
}
