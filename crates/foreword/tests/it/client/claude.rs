//! A user of the real Claude Code: a private home, two repositories, a scripted
//! model, and Foreword connected by its own `install`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::model::{Model, Request};
use crate::support::{Sandbox, checkout, claude_client};

const ALLOWED: &str =
    "--allowedTools=Write,Edit,Bash,Read,mcp__foreword__search,mcp__foreword__get_observations";

pub struct Claude {
    // The order of the fields is the order of their end: the sandbox stops the worker last.
    pub model: Model,
    pub sandbox: Sandbox,
    /// Two repositories that share nothing but their folder's name.
    pub app: PathBuf,
    pub other_app: PathBuf,
}

/// One run of the client, from its start to its end.
pub struct Run {
    pub session: String,
    pub reply: String,
    /// The requests to the main model during the run.
    pub requests: Vec<Request>,
}

impl Claude {
    /// A user whose model answers with these turns, given where `app` is.
    pub fn new(turns: impl Fn(&Path) -> Value) -> Claude {
        Claude::scripted(|app| json!({"turns": turns(app)}))
    }

    /// A user whose models answer by this script, given where `app` is.
    pub fn scripted(script: impl Fn(&Path) -> Value) -> Claude {
        let sandbox = Sandbox::new();
        let app = repository(&sandbox, "a/app");
        let other_app = repository(&sandbox, "b/app");
        let server = "testdata/claude-code/fake_anthropic.py";
        let model = Model::scripted(server, &sandbox.user_home().join("model"), &script(&app));
        let claude = Claude {
            model,
            sandbox,
            app,
            other_app,
        };
        claude.install(&[]);
        claude
    }

    /// Connects Foreword, again with other arguments if it is connected already.
    pub fn install(&self, arguments: &[&str]) {
        let installed = self
            .sandbox
            .command(&[&["install"], arguments].concat())
            .env("CLAUDE_CONFIG_DIR", self.config_dir())
            .output()
            .unwrap();
        assert!(installed.status.success(), "{installed:?}");
    }

    pub fn config_dir(&self) -> PathBuf {
        self.sandbox.user_home().join(".claude")
    }

    /// Takes one of Foreword's hooks out of the settings again.
    pub fn unhook(&self, name: &str) {
        let path = self.config_dir().join("settings.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut settings: Value = serde_json::from_str(&text).unwrap();
        let mut removed = 0;
        for groups in settings["hooks"].as_object_mut().unwrap().values_mut() {
            let groups = groups.as_array_mut().unwrap();
            let before = groups.len();
            groups.retain(|group| group["hooks"][0]["args"] != json!([name]));
            removed += before - groups.len();
        }
        assert!(removed > 0, "{name} was not connected: {text}");
        std::fs::write(path, settings.to_string()).unwrap();
    }

    /// The client in print mode, ready to be changed and given to `run`.
    pub fn command(&self, project: &Path, arguments: &[&str]) -> Command {
        self.command_allowing(project, ALLOWED, arguments)
    }

    /// The same with other allowed tools.
    pub fn command_allowing(&self, project: &Path, allowed: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(checkout().join("testdata/claude-code/run_client"));
        command
            .arg(self.model.port())
            .arg(self.sandbox.user_home())
            // One word: an option that takes a list would take the prompt, too.
            .args(["-p", allowed])
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("CLAUDE_BIN", claude_client())
            .env("FOREWORD_HOME", self.sandbox.home())
            // Also on a busy machine.
            .env("FOREWORD_SHOW_WITHIN_MS", "60000")
            .current_dir(project)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the client to its end; it must succeed.
    pub fn run(&self, command: &mut Command) -> Run {
        let before = self.model.requests().len();
        let output = command.args(["--output-format", "json"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["is_error"], false, "{result}");
        Run {
            session: result["session_id"].as_str().unwrap().to_owned(),
            reply: result["result"].as_str().unwrap().to_owned(),
            requests: self.model.requests().split_off(before),
        }
    }

    /// A session of one prompt.
    pub fn ask(&self, project: &Path, prompt: &str) -> Run {
        self.run(&mut self.command(project, &[prompt]))
    }

    /// A session that stays open from prompt to prompt.
    pub fn talk(&self, project: &Path) -> Talk<'_> {
        self.talk_allowing(project, ALLOWED, &[])
    }

    pub fn talk_allowing(&self, project: &Path, allowed: &str, more: &[&str]) -> Talk<'_> {
        let streams = [
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
        ];
        let arguments = [&streams, more].concat();
        let mut command = self.command_allowing(project, allowed, &arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        Talk {
            claude: self,
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }
}

pub struct Talk<'a> {
    claude: &'a Claude,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Talk<'_> {
    /// Sends a prompt and waits for the end of the turn; returns the requests to the model in it.
    pub fn say(&mut self, text: &str) -> Vec<Request> {
        let before = self.claude.model.requests().len();
        let message = json!({"type": "user", "message": {"role": "user", "content": text}});
        writeln!(self.stdin, "{message}").unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.stdout.read_line(&mut line).unwrap();
            assert!(length > 0, "the client ended in the middle of a turn");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["type"] == "result" {
                assert_eq!(message["is_error"], false, "{message}");
                return self.claude.model.requests().split_off(before);
            }
        }
    }

    /// Ends the session; the client must succeed.
    pub fn end(self) {
        drop(self.stdin);
        drop(self.stdout);
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

/// A git repository with one commit, in which `sh check.sh` fails until the limit is 7.
fn repository(sandbox: &Sandbox, name: &str) -> PathBuf {
    let project = sandbox.project(name);
    let check = "[ \"$(cat limit.toml)\" = 7 ] && exit 0\n\
                 echo \"error: the kumquat limit is $(cat limit.toml), not 7\"\n\
                 exit 3\n";
    std::fs::write(project.join("check.sh"), check).unwrap();
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "check.sh"],
        &["commit", "--quiet", "--message", "Add the check"],
    ] {
        let output = Command::new("git")
            .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", sandbox.user_home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(&project)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    }
    project
}
