//! A private world for one test: a data directory, a user's home, a project.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub struct Sandbox {
    dir: tempfile::TempDir,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let dir = tempfile::Builder::new()
            .prefix("foreword-test-")
            .tempdir()
            .unwrap();
        let sandbox = Sandbox { dir };
        std::fs::create_dir_all(sandbox.user_home()).unwrap();
        sandbox
    }

    /// What the program is told is the user's home directory.
    pub fn user_home(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    /// Foreword's data directory; not made before the program makes it.
    pub fn home(&self) -> PathBuf {
        self.user_home().join(".foreword")
    }

    /// A folder that counts as a project.
    pub fn project(&self, name: &str) -> PathBuf {
        let project = self.user_home().join("work").join(name);
        std::fs::create_dir_all(&project).unwrap();
        std::fs::canonicalize(project).unwrap()
    }

    /// The program, in a clean environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foreword"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.user_home())
            .env("FOREWORD_HOME", self.home())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end and gives what it printed; it must succeed.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a hook with this input, as the host does.
    pub fn hook(&self, name: &str, project: &Path, input: &[u8]) -> Output {
        let mut command = self.command(&[name]);
        command
            .env("CLAUDE_PROJECT_DIR", project)
            .stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A hook that does not read its input to the end closes the pipe early.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// Runs a hook with a JSON input and expects the one exit code that there is.
    pub fn told(&self, name: &str, project: &Path, input: &Value) -> String {
        let output = self.hook(name, project, input.to_string().as_bytes());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn drain(&self) {
        assert_eq!(self.run(&["worker", "drain"]), "everything is processed\n");
    }

    pub fn status(&self) -> Value {
        serde_json::from_str(&self.run(&["status", "--json"])).unwrap()
    }

    /// One number out of a database, behind the program's back.
    pub fn count(&self, database: &str, sql: &str) -> i64 {
        let path = self.home().join(database);
        #[expect(clippy::disallowed_methods, reason = "tests look from outside")]
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // A worker that a hook started must not outlive the test.
        let _ = self.command(&["worker", "stop"]).output();
    }
}

/// Builds the inputs of one session as Claude Code sends them.
pub struct Host {
    pub session: String,
    pub prompt: String,
    pub project: PathBuf,
    calls: std::cell::Cell<u32>,
}

impl Host {
    pub fn new(session: &str, project: &Path) -> Host {
        Host {
            session: session.to_owned(),
            prompt: format!("{session}-prompt"),
            project: project.to_owned(),
            calls: std::cell::Cell::new(0),
        }
    }

    fn input(&self, event: &str, own: Value) -> Value {
        let mut input = serde_json::json!({
            "session_id": self.session,
            "transcript_path": format!("/transcripts/{}.jsonl", self.session),
            "cwd": self.project,
            "hook_event_name": event,
        });
        for (name, value) in own.as_object().unwrap() {
            input[name] = value.clone();
        }
        input
    }

    pub fn start(&self, source: &str) -> Value {
        self.input("SessionStart", serde_json::json!({"source": source}))
    }

    pub fn prompt(&self, text: &str) -> Value {
        self.input(
            "UserPromptSubmit",
            serde_json::json!({"prompt_id": self.prompt, "prompt": text}),
        )
    }

    /// A tool use that went well. Each call has an id of its own.
    pub fn tool(&self, tool: &str, input: Value, response: Value) -> Value {
        self.calls.set(self.calls.get() + 1);
        let id = format!("{}-call-{}", self.session, self.calls.get());
        self.input(
            "PostToolUse",
            serde_json::json!({
                "prompt_id": self.prompt, "tool_use_id": id,
                "tool_name": tool, "tool_input": input, "tool_response": response,
            }),
        )
    }

    pub fn bash(&self, command: &str, stdout: &str) -> Value {
        let response = serde_json::json!({"stdout": stdout, "stderr": "", "interrupted": false});
        self.tool("Bash", serde_json::json!({"command": command}), response)
    }

    pub fn bash_failed(&self, command: &str, error: &str) -> Value {
        let mut input = self.tool("Bash", serde_json::json!({"command": command}), Value::Null);
        input["hook_event_name"] = "PostToolUseFailure".into();
        input["error"] = error.into();
        input.as_object_mut().unwrap().remove("tool_response");
        input
    }

    /// An edit of one line, made on disk too.
    pub fn edit(&self, path: &str, old: &str, new: &str) -> Value {
        let file = self.project.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("{new}\n")).unwrap();
        let patch = serde_json::json!([{"lines": [format!("-{old}"), format!("+{new}")]}]);
        self.tool(
            "Edit",
            serde_json::json!({"file_path": file, "old_string": old, "new_string": new}),
            serde_json::json!({"filePath": file, "structuredPatch": patch}),
        )
    }

    pub fn stop(&self, reply: &str) -> Value {
        self.input(
            "Stop",
            serde_json::json!({"prompt_id": self.prompt, "last_assistant_message": reply}),
        )
    }

    pub fn end(&self) -> Value {
        self.input("SessionEnd", serde_json::json!({"reason": "other"}))
    }
}
