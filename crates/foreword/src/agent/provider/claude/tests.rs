//! Tests with the real client and a scripted model, and with programs that are not a client.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use foreword_core::model::FailureKind;
use serde_json::{Value, json};

use super::*;
use crate::agent::provider::Usage;

/// A user: a home, a scripted model, and a `claude` that uses only these.
///
/// The tests run in one process and must not change its environment; so `claude` is a
/// script that sets what the user's shell would have set, and then becomes the client.
struct User {
    dir: tempfile::TempDir,
    model: Option<Model>,
}

struct Model {
    server: Child,
    port: String,
    log: PathBuf,
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl User {
    fn without_client() -> User {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("user/.claude")).unwrap();
        User { dir, model: None }
    }

    /// A user with the real client, whose model answers everything with this.
    fn new(reply: &Value) -> User {
        let mut user = User::without_client();
        user.model = Some(Model::start(user.dir.path(), reply));
        user.log_in("export ANTHROPIC_API_KEY=key");
        user
    }

    fn log_in(&self, line: &str) {
        let port = &self.model.as_ref().unwrap().port;
        let (home, client) = (self.home(), client());
        self.write_client(&format!(
            "export HOME='{home}' CLAUDE_CONFIG_DIR='{home}/.claude' TMPDIR='{home}'\n\
             unset ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN\n\
             export ANTHROPIC_BASE_URL=http://127.0.0.1:{port}\n{line}\n\
             exec '{client}' \"$@\"",
            home = home.display(),
            client = client.display(),
        ));
    }

    fn write_client(&self, script: &str) {
        let path = self.dir.path().join("claude");
        // Written elsewhere first, because a fork of another test may hold a file open for writing.
        let staged = path.with_extension("staged");
        let status = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 700 \"$0\""])
            .arg(&staged)
            .stdin(Stdio::from(written(&format!("#!/bin/sh\n{script}\n"))))
            .status()
            .unwrap();
        assert!(status.success());
        std::fs::rename(staged, path).unwrap();
    }

    /// The user's home directory.
    fn home(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    fn foreword(&self) -> Home {
        Home::at(self.home().join(".foreword"))
    }

    fn claude(&self) -> Claude {
        let settings = config::ClaudeSection {
            command: self.dir.path().join("claude").display().to_string(),
            model: "haiku".into(),
        };
        Claude::new(&settings, &self.foreword())
    }

    async fn ask(&self, text: &str) -> ModelCall {
        self.ask_patiently(text, Duration::from_secs(50)).await
    }

    async fn ask_patiently(&self, text: &str, patience: Duration) -> ModelCall {
        let question = Question {
            system: "You compress.",
            text,
            patience,
            answer_max: 4096,
            schema: None,
            now: 1_700_000_000_000,
        };
        self.claude().ask(&question, None).await
    }

    fn requests(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.model.as_ref().unwrap().log).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// A file with this text, open at its start.
fn written(text: &str) -> std::fs::File {
    use std::io::{Seek as _, Write as _};
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

impl Model {
    fn start(folder: &Path, reply: &Value) -> Model {
        let (script, log) = (folder.join("script.json"), folder.join("requests.jsonl"));
        std::fs::write(&script, json!({"then": reply}).to_string()).unwrap();
        let mut server = Command::new("python3")
            .arg(repository().join("testdata/claude-code/fake_anthropic.py"))
            .arg("--script")
            .arg(script)
            .arg("--log")
            .arg(&log)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the scripted model needs python3");
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        assert!(line.starts_with("READY "), "{line:?}");
        Model { server, port, log }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The real client. Without it these tests prove nothing, so they fail.
fn client() -> &'static Path {
    static CLIENT: OnceLock<PathBuf> = OnceLock::new();
    CLIENT.get_or_init(|| {
        if let Some(path) = std::env::var_os("FOREWORD_TEST_CLAUDE") {
            return PathBuf::from(path);
        }
        let output = Command::new(repository().join("scripts/client"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "scripts/client found no client");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
    })
}

fn error(status: u16, kind: &str, message: &str) -> Value {
    json!({"error": {"status": status, "type": kind, "message": message}})
}

#[tokio::test]
async fn an_answer_comes_with_what_it_cost() {
    let reply = json!({"text": "<nothing>why</nothing>", "usage": {
        "input_tokens": 100, "output_tokens": 7,
        "cache_creation_input_tokens": 20, "cache_read_input_tokens": 3,
    }});
    let user = User::new(&reply);
    let call = user.ask("What was done?").await;
    assert_eq!(call.answer, Ok("<nothing>why</nothing>".to_owned()));
    let usage = Usage {
        input: 123,
        output: 7,
        cache_read: 3,
        cache_write: 20,
    };
    assert_eq!((call.requests, call.usage), (1, usage));
    assert!(call.model.unwrap().starts_with("claude-haiku-"));
    assert!(call.cost_usd.unwrap() > 0.0);

    let requests = user.requests();
    assert_eq!(requests.len(), 1);
    let body = &requests[0]["body"];
    assert_eq!(body["max_tokens"], 4096);
    assert_eq!(body["tools"], json!([]));
    assert_eq!(body["thinking"], Value::Null);
    assert_eq!(body["system"][2]["text"], "You compress.");
    assert!(body.to_string().len() < 2_000, "{body:#}");
}

/// Asks a model that always answers like this, and asserts the failure and the number of requests.
async fn fails(reply: &Value, kind: FailureKind, requests: usize) -> Failure {
    let user = User::new(reply);
    let call = user.ask("What was done?").await;
    let failure = call.answer.clone().expect_err("this cannot have worked");
    assert_eq!(failure.kind, kind, "{failure:?}");
    assert_eq!(user.requests().len(), requests, "{failure:?}");
    assert_eq!(call.requests as usize, requests, "{failure:?}");
    failure
}

#[tokio::test]
async fn a_login_that_is_refused_is_asked_for_once() {
    let reply = error(401, "authentication_error", "invalid x-api-key");
    fails(&reply, FailureKind::Auth, 1).await;
    let reply = error(403, "permission_error", "no permission");
    fails(&reply, FailureKind::Auth, 1).await;
}

#[tokio::test]
async fn without_a_login_nothing_is_asked() {
    let user = User::new(&json!("never"));
    user.log_in("");
    let call = user.ask("What was done?").await;
    let failure = call.answer.unwrap_err();
    assert_eq!((failure.kind, call.requests), (FailureKind::Auth, 0));
    assert!(failure.text.contains("/login"), "{failure:?}");
    assert_eq!(user.requests().len(), 0);
}

#[tokio::test]
async fn requests_that_are_refused_have_a_kind() {
    let reply = error(
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API.",
    );
    fails(&reply, FailureKind::Billing, 1).await;
    let reply = error(
        400,
        "invalid_request_error",
        "prompt is too long: 210000 tokens > 200000 maximum",
    );
    fails(&reply, FailureKind::TooLong, 1).await;
    let reply = error(413, "request_too_large", "too large");
    fails(&reply, FailureKind::TooLong, 1).await;
    let reply = error(400, "invalid_request_error", "something else");
    fails(&reply, FailureKind::Request, 1).await;
    let reply = error(404, "not_found_error", "model: haiku");
    fails(&reply, FailureKind::Model, 2).await;
}

#[tokio::test]
async fn a_model_that_is_not_there_is_an_outage() {
    fails(&error(500, "api_error", "boom"), FailureKind::Outage, 1).await;
    let reply = error(529, "overloaded_error", "Overloaded");
    fails(&reply, FailureKind::Outage, 1).await;

    let user = User::new(&json!("never"));
    user.log_in("export ANTHROPIC_API_KEY=key ANTHROPIC_BASE_URL=http://127.0.0.1:9");
    let call = user.ask("What was done?").await;
    assert_eq!(call.answer.unwrap_err().kind, FailureKind::Outage);
    assert_eq!(call.requests, 0);
}

#[tokio::test]
async fn too_many_requests_are_a_limit() {
    for wait in ["1", "3600"] {
        let mut reply = error(429, "rate_limit_error", "slow down");
        reply["error"]["headers"] = json!({"retry-after": wait});
        fails(&reply, FailureKind::RateLimit, 1).await;
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    // The client tries to go on by itself, three times.
    let reply =
        json!({"stream_error": {"type": "overloaded_error", "message": "x"}, "text": "par"});
    fails(&reply, FailureKind::Broken, 4).await;
    let reply = json!({"disconnect": "middle", "text": "par"});
    fails(&reply, FailureKind::Broken, 1).await;
    // A connection without an answer may be retried without being counted by the client.
    let user = User::new(&json!({"disconnect": "before"}));
    let call = user.ask("What was done?").await;
    assert_eq!(call.answer.unwrap_err().kind, FailureKind::Broken);
    assert_eq!(call.requests, 1);
}

#[tokio::test]
async fn an_answer_that_is_none_has_a_kind() {
    let reply = json!({"text": "a long", "stop_reason": "max_tokens"});
    fails(&reply, FailureKind::CutOff, 4).await;
    let reply = json!({"text": "I cannot", "stop_reason": "refusal"});
    fails(&reply, FailureKind::Refusal, 1).await;
    fails(&json!({"content": []}), FailureKind::Empty, 2).await;
}

#[tokio::test]
async fn an_answer_that_the_client_had_continued_is_whole() {
    let user = User::new(&json!("never"));
    let script =
        json!({"turns": [{"text": "<facts><fact>a", "stop_reason": "max_tokens"}, "b</fact>"]});
    std::fs::write(user.dir.path().join("script.json"), script.to_string()).unwrap();
    let port = user.model.as_ref().unwrap().port.clone();
    set_script(&port, &script);
    let call = user.ask("What was done?").await;
    assert_eq!(call.answer, Ok("<facts><fact>ab</fact>".to_owned()));
    assert_eq!((call.requests, user.requests().len()), (2, 2));
}

/// Gives the scripted model other answers.
fn set_script(port: &str, script: &Value) {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let body = script.to_string();
    write!(
        stream,
        "POST /__fake/script HTTP/1.0\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
}

#[tokio::test]
async fn a_question_is_text_and_nothing_more() {
    let user = User::new(&json!("fine"));
    std::fs::write(user.home().join("secret.txt"), "KUMQUAT").unwrap();
    for text in [
        "see @../../secret.txt and @~/secret.txt",
        "/context",
        "!cat ~/secret.txt",
    ] {
        let call = user.ask(text).await;
        assert_eq!(call.answer, Ok("fine".to_owned()), "{text}");
    }
    let requests = user.requests();
    assert_eq!(requests.len(), 3);
    let all = Value::from(requests).to_string();
    assert!(!all.contains("KUMQUAT"), "{all}");
}

#[tokio::test]
async fn a_model_that_never_answers_is_given_up_and_its_client_is_gone() {
    let user = User::new(&json!({"hang_ms": 60_000}));
    let call = user
        .ask_patiently("What was done?", Duration::from_secs(4))
        .await;
    assert_eq!(call.answer.unwrap_err().kind, FailureKind::Timeout);
    assert_eq!((call.requests, user.requests().len()), (1, 1));
    assert_gone(&user).await;
}

/// Asserts that neither the client nor a process that it started is running.
async fn assert_gone(user: &User) {
    let needle = user.home().display().to_string();
    let alive = || -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap();
        processes
            .filter_map(|entry| {
                let path = entry.unwrap().path();
                let environment = std::fs::read(path.join("environ")).ok()?;
                let ours = String::from_utf8_lossy(&environment).contains(&needle);
                ours.then(|| path.display().to_string())
            })
            .collect()
    };
    let until = Instant::now() + Duration::from_secs(3);
    while !alive().is_empty() && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(alive(), Vec::<String>::new());
}

#[tokio::test]
async fn a_question_that_is_dropped_leaves_no_process() {
    let user = User::without_client();
    user.write_client("sleep 100 & echo $! > \"$FOREWORD_HOME/started\"; sleep 100");
    let asking = user.ask("What was done?");
    let started = user.foreword().dir().join("started");
    tokio::select! {
        _ = asking => panic!("there is no answer"),
        () = async { while !started.exists() { tokio::time::sleep(Duration::from_millis(10)).await } } => {}
    }
    assert_gone(&user).await;
}

async fn fails_with(client: &str, kind: FailureKind, words: &str) {
    let user = User::without_client();
    user.write_client(client);
    let call = user
        .ask_patiently("What was done?", Duration::from_secs(5))
        .await;
    let failure = call.answer.unwrap_err();
    assert_eq!((failure.kind, call.requests), (kind, 0), "{failure:?}");
    assert!(failure.text.contains(words), "{failure:?}");
    assert_gone(&user).await;
}

#[tokio::test]
async fn a_client_that_is_none_is_a_failure() {
    let (broken, timeout) = (FailureKind::Broken, FailureKind::Timeout);
    fails_with(
        "echo; echo '{'; echo garbage; echo '{\"type\":7}'",
        broken,
        "without an answer",
    )
    .await;
    fails_with("echo no such option >&2; exit 1", broken, "no such option").await;
    fails_with("kill -9 $$", broken, "without an answer").await;
    fails_with("exec sleep 100", timeout, "in 5 s").await;
    fails_with(
        "head -c 9000000 /dev/zero; sleep 100",
        broken,
        "on one line",
    )
    .await;
    fails_with("sleep 100 & exit 1", broken, "without an answer").await;
}

#[tokio::test]
async fn without_the_program_it_says_what_to_do() {
    let user = User::without_client();
    let call = user.ask("What was done?").await;
    let failure = call.answer.unwrap_err();
    assert_eq!((failure.kind, call.requests), (FailureKind::Missing, 0));
    assert!(
        failure.text.contains("[claude] in config.toml"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_conversation_goes_on_in_the_same_process_or_in_the_next() {
    let usage = json!({"input_tokens": 100, "output_tokens": 7});
    let user = User::new(&json!({"text": "fine", "usage": usage}));
    let mut claude = user.claude();
    let mut conversation = Conversation::default();
    let mut costs = Vec::new();
    for (text, before) in [
        ("one", "nothing"),
        ("two", "nothing"),
        ("three", "the process is killed"),
        ("four", "the process ends"),
        ("five", "nothing"),
    ] {
        match before {
            "the process is killed" => {
                claude.alive[0].child.kill().await.unwrap();
            }
            "the process ends" => {
                assert_eq!(claude.end_unused(Millis::MAX).await, None);
                assert_gone(&user).await;
            }
            _ => {}
        }
        let question = Question {
            system: "You compress.",
            text,
            patience: Duration::from_secs(50),
            answer_max: 4096,
            schema: None,
            now: 1_700_000_000_000,
        };
        let call = claude.ask(&question, Some(&mut conversation)).await;
        assert_eq!(call.answer, Ok("fine".to_owned()), "{text}");
        assert_eq!(
            (call.requests, call.usage.input, call.usage.output),
            (1, 100, 7)
        );
        costs.push((call.cost_usd.unwrap() * 1e9).round());
    }
    // The client counts from the beginning of the conversation, the ledger each question.
    assert_eq!(costs, [costs[0]; 5]);
    let carried: Vec<usize> = user
        .requests()
        .iter()
        .map(|it| it["body"].to_string().matches("\"fine\"").count())
        .collect();
    assert_eq!(carried, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn the_folder_of_the_agent_is_private() {
    let user = User::without_client();
    user.write_client("pwd > \"$FOREWORD_HOME/pwd\"");
    user.ask("What was done?").await;
    let agent = user.foreword().agent();
    let mode = std::fs::metadata(&agent).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let pwd = std::fs::read_to_string(user.foreword().dir().join("pwd")).unwrap();
    assert_eq!(Path::new(pwd.trim_end()), agent);
}

/// Sets up everything that a user can configure; each part leaves a mark when it is used.
fn set_everything_up(user: &User) {
    let home = user.home();
    let config = home.join(".claude");
    let foreword = user.foreword();
    let ran = home.join("ran").display().to_string();
    let hook = |name: &str| {
        let command = format!("echo {name} >> '{ran}'; echo HOOK");
        json!([{"hooks": [{"type": "command", "command": command}]}])
    };
    let server = |name: &str| {
        let script = format!("echo {name} >> '{ran}'");
        json!({"mcpServers": {(name): {"command": "/bin/sh", "args": ["-c", script]}}})
    };
    let write = |path: PathBuf, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let skill = "---\nname: mine\ndescription: SKILL\n---\nbody";

    let plugin = home.join("market/memo");
    let manifest = json!({"name": "memo", "version": "1.0.0", "description": "PLUGIN"});
    write(
        plugin.join(".claude-plugin/plugin.json"),
        &manifest.to_string(),
    );
    let hooks = json!({"hooks": {"SessionStart": hook("plugin-hook")}});
    write(plugin.join("hooks/hooks.json"), &hooks.to_string());
    write(
        plugin.join(".mcp.json"),
        &server("plugin-server").to_string(),
    );
    write(plugin.join("skills/memo/SKILL.md"), skill);
    let market = json!({
        "name": "market", "owner": {"name": "x"},
        "plugins": [{"name": "memo", "source": "./memo"}],
    });
    let path = home.join("market/.claude-plugin/marketplace.json");
    write(path, &market.to_string());

    write(config.join("CLAUDE.md"), "CLAUDEMD");
    write(config.join("rules/rule.md"), "CLAUDEMD");
    write(home.join("CLAUDE.md"), "CLAUDEMD");
    write(foreword.dir().join("CLAUDE.md"), "CLAUDEMD");
    write(foreword.agent().join("CLAUDE.md"), "CLAUDEMD");
    write(config.join("skills/mine/SKILL.md"), skill);
    let style = "---\nname: loud\ndescription: loud\n---\nSTYLE";
    write(config.join("output-styles/loud.md"), style);
    write(
        config.join(".claude.json"),
        &server("user-server").to_string(),
    );
    write(
        foreword.agent().join(".mcp.json"),
        &server("project-server").to_string(),
    );
    let project = json!({"hooks": {"SessionStart": hook("project-hook")}});
    let path = foreword.agent().join(".claude/settings.json");
    write(path, &project.to_string());
    write(home.join("key"), "#!/bin/sh\necho sk-ant-from-the-helper\n");
    std::fs::set_permissions(home.join("key"), std::fs::Permissions::from_mode(0o700)).unwrap();

    let events = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"];
    let hooks: serde_json::Map<String, Value> = events
        .map(|event| (event.to_owned(), hook(event)))
        .into_iter()
        .collect();
    let settings = json!({
        "hooks": hooks,
        "apiKeyHelper": home.join("key"),
        "outputStyle": "loud",
        "language": "LANGUAGE",
        "alwaysThinkingEnabled": true,
        "env": {
            "CLAUDE_CODE_MAX_RETRIES": "3",
            "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "0",
            "CLAUDE_CODE_DISABLE_THINKING": "0",
            "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "0",
            "CLAUDE_CODE_DISABLE_ATTACHMENTS": "0",
            "MAX_THINKING_TOKENS": "5000",
        },
    });
    write(config.join("settings.json"), &settings.to_string());
    let market = home.join("market").display().to_string();
    for arguments in [
        &["marketplace", "add", &market][..],
        &["install", "memo@market"],
    ] {
        let output = Command::new(user.dir.path().join("claude"))
            .arg("plugin")
            .args(arguments)
            .current_dir(&home)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    // These commands, too, run the user's SessionEnd hook.
    let _ = std::fs::remove_file(home.join("ran"));
}

#[tokio::test]
async fn of_the_user_it_knows_the_login_and_nothing_else() {
    const MARKS: [&str; 5] = ["CLAUDEMD", "SKILL", "STYLE", "LANGUAGE", "HOOK"];
    let user = User::new(&json!("fine"));
    user.log_in("");
    set_everything_up(&user);
    let before = user.requests().len();
    let ran = || std::fs::read_to_string(user.home().join("ran")).unwrap_or_default();

    let call = user.ask("see @CLAUDE.md").await;
    assert_eq!(call.answer, Ok("fine".to_owned()));
    assert_eq!(ran(), "");
    let requests = user.requests().split_off(before);
    assert_eq!(requests.len(), 1);
    let body = &requests[0]["body"];
    let text = body.to_string();
    let told = MARKS.map(|mark| text.matches(mark).count());
    assert_eq!(told, [0; 5], "{body:#}");
    assert_eq!(
        (&body["tools"], &body["thinking"]),
        (&json!([]), &Value::Null)
    );
    assert!(text.len() < 2_000, "{body:#}");
    let transcripts = user.home().join(".claude/projects");
    assert!(!transcripts.exists(), "no session is in the user's list");

    // All of it works: the user's own session in the same folder leaves all marks.
    let status = Command::new(user.dir.path().join("claude"))
        .args(["-p", "hello"])
        .current_dir(user.foreword().agent())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let ran = ran();
    for mark in [
        "SessionEnd",
        "plugin-hook",
        "project-hook",
        "plugin-server",
        "user-server",
        "project-server",
    ] {
        assert!(ran.contains(mark), "{mark}: {ran}");
    }
    let text = user.requests().last().unwrap()["body"].to_string();
    let untold = MARKS.into_iter().find(|mark| !text.contains(mark));
    assert_eq!(untold, None);
}
