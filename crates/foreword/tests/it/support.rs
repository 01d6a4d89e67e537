//! A sandbox for one test: a data directory, a user's home, a project.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "../support/host.rs"]
mod host;
pub use host::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_foreword");

pub struct Sandbox {
    dir: tempfile::TempDir,
    environment: BTreeMap<String, OsString>,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let dir = tempfile::Builder::new()
            .prefix("foreword-test-")
            .tempdir()
            .unwrap();
        let sandbox = Sandbox {
            dir,
            environment: BTreeMap::from([
                // Else a hook on a busy machine would leave a reminder out.
                ("FOREWORD_SHOW_WITHIN_MS".into(), "60000".into()),
                // Else a hook on a busy machine would be ended before it is done.
                ("FOREWORD_HOOK_WITHIN_MS".into(), "60000".into()),
                // People read local time, which must be the same on every machine.
                ("TZ".into(), "UTC".into()),
                // No test asks the real model hub; some start one on loopback.
                ("FOREWORD_MODEL_HUB".into(), "".into()),
            ]),
        };
        std::fs::create_dir_all(sandbox.user_home()).unwrap();
        sandbox
    }

    /// Sets a variable for all later commands; returns its value before.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) -> Option<OsString> {
        self.environment.insert(name.to_owned(), value.into())
    }

    /// Removes a variable for all later commands.
    pub fn unset(&mut self, name: &str) {
        self.environment.remove(name);
    }

    /// The user's home directory, for the program.
    pub fn user_home(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    /// Foreword's data directory, which the program makes itself.
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
        let mut command = Command::new(PROGRAM);
        command.args(arguments);
        self.isolate(&mut command);
        command
    }

    /// The program, started by a line of shell: `"$0" "$@"` is the program and its arguments.
    pub fn shell(&self, line: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line, PROGRAM]).args(arguments);
        self.isolate(&mut command);
        command
    }

    /// The program without root's power to read and write everything.
    pub fn as_anyone(&self, arguments: &[&str]) -> Command {
        let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        if !is_root {
            return self.command(arguments);
        }
        let powers = "-dac_override,-dac_read_search";
        let drop = format!("setpriv --bounding-set={powers} --inh-caps={powers}");
        self.shell(&format!("exec {drop} \"$0\" \"$@\""), arguments)
    }

    /// Gives a command this sandbox's environment, and nothing of the test's own.
    pub fn isolate(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.user_home())
            .env("FOREWORD_HOME", self.home())
            .envs(&self.environment)
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// Runs a command, which must succeed; returns its output.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a hook as the host does. Its input is still to be written.
    pub fn hook_command(&self, name: &str, project: &Path) -> Command {
        let mut command = self.command(&[name]);
        command
            .env("CLAUDE_PROJECT_DIR", project)
            .stdin(Stdio::piped());
        command
    }

    /// Runs a hook with this input, as the host does.
    pub fn hook(&self, name: &str, project: &Path, input: &[u8]) -> Output {
        feed(self.hook_command(name, project), input)
    }

    /// Runs a hook with a JSON input; it must exit with 0 and write no error. Returns its answer.
    pub fn run_hook(&self, name: &str, project: &Path, input: &Value) -> String {
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

    /// Reads one number from a database directly.
    pub fn count(&self, database: &str, sql: &str) -> i64 {
        let connection = self.database(database);
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Opens one of the databases directly.
    pub fn database(&self, name: &str) -> rusqlite::Connection {
        #[expect(clippy::disallowed_methods, reason = "tests look from outside")]
        let connection = rusqlite::Connection::open(self.home().join(name)).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }

    /// Writes the stamp of a worker that just failed for the tenth time, so that hooks start none.
    /// A worker that starts removes the stamp.
    pub fn keep_workers_away(&self) {
        std::fs::create_dir_all(self.home()).unwrap();
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        std::fs::write(self.home().join("worker.starting"), format!("10 {now}")).unwrap();
    }

    /// The process that holds the worker's lock, from /proc/locks.
    pub fn worker_pid(&self) -> Option<u32> {
        let inode = std::fs::metadata(self.home().join("worker.lock"))
            .ok()?
            .ino();
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().find_map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let ours = fields.get(5)?.rsplit(':').next()?.parse() == Ok(inode);
            (ours && fields[3] == "WRITE").then(|| fields[4].parse().unwrap())
        })
    }

    /// Workers of this home that were started in the background, living ones only.
    pub fn background_workers(&self) -> Vec<u32> {
        let mut pids = self.processes();
        pids.retain(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.ends_with(b"\0worker\0run\0--detached\0")
        });
        pids
    }

    /// All processes of this home: workers, and those that they have started.
    pub fn processes(&self) -> Vec<u32> {
        let home = [b"FOREWORD_HOME=", self.home().as_os_str().as_bytes()].concat();
        let of_this_home = |pid: &u32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment_of(&environ).any(|it| it == home)
        };
        let names = std::fs::read_dir("/proc").unwrap().flatten();
        names
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(of_this_home)
            .collect()
    }

    /// The program at another place, as after a move.
    pub fn moved_program(&self) -> PathBuf {
        let moved = self.user_home().join("moved/foreword");
        std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
        // Across devices there are no hard links.
        std::fs::hard_link(PROGRAM, &moved)
            .or_else(|_| std::fs::copy(PROGRAM, &moved).map(drop))
            .unwrap();
        moved
    }

    /// The content of one of the program's log files.
    pub fn log(&self, name: &str) -> String {
        let log = std::fs::read_to_string(self.home().join("logs").join(name));
        log.unwrap_or_default().trim_start().to_owned()
    }

    /// Every file of the data directory, however deep, with its bytes.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![self.home()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let bytes = std::fs::read(&path).unwrap();
                    files.push((path, bytes));
                }
            }
        }
        files
    }

    /// The number of events in the spool.
    pub fn spooled(&self) -> usize {
        let Ok(entries) = std::fs::read_dir(self.home().join("spool")) else {
            return 0;
        };
        let is_event = |path: PathBuf| path.extension().is_some_and(|it| it == "json");
        entries
            .filter(|entry| is_event(entry.as_ref().unwrap().path()))
            .count()
    }
}

/// The top folder of this checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The real Claude Code client. Without it the tests that drive it fail.
pub fn claude_client() -> &'static Path {
    static CLIENT: OnceLock<PathBuf> = OnceLock::new();
    CLIENT.get_or_init(|| {
        if let Some(path) = std::env::var_os("FOREWORD_TEST_CLAUDE") {
            return PathBuf::from(path);
        }
        let output = Command::new(checkout().join("scripts/client"))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "scripts/client found no client");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
    })
}

/// Records that this machine cannot run a test, for the last line of `scripts/test`; without
/// `scripts/test` the test fails.
pub fn not_run(test: &str, why: &str) {
    let list = std::env::var_os("FOREWORD_TEST_NOT_RUN");
    let list = list.unwrap_or_else(|| panic!("{test} cannot be run: {why}"));
    let mut list = std::fs::File::options().append(true).open(list).unwrap();
    writeln!(list, "{test} ({why})").unwrap();
}

/// Runs a command with `input` on its standard input, which is a pipe.
pub fn feed(mut command: Command, input: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    // A hook that does not read its input to the end closes the pipe early.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // A worker that a hook started must not outlive the test.
        let _ = self.command(&["worker", "stop"]).output();
    }
}

/// Mode and content by path.
pub type Tree = BTreeMap<PathBuf, (u32, String)>;

/// The mode of each file below a folder, with its bytes or the target of a link.
pub fn tree(folder: &Path) -> Tree {
    let mut tree = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            let kind = metadata.file_type();
            let content = if kind.is_symlink() {
                std::fs::read_link(&path).unwrap().display().to_string()
            } else if kind.is_file() {
                std::fs::read(&path).unwrap().escape_ascii().to_string()
            } else {
                String::new()
            };
            if kind.is_dir() {
                folders.push(path.clone());
            }
            tree.insert(path, (metadata.mode(), content));
        }
    }
    tree
}

/// Expects two listings of a folder to be equal.
#[track_caller]
pub fn assert_same(before: &Tree, after: &Tree) {
    let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
    let changed: BTreeSet<_> = before.keys().chain(after.keys()).filter(differs).collect();
    assert!(changed.is_empty(), "changed: {changed:#?}");
}

/// The `NAME=value` pairs of a process's environment, as /proc shows it.
pub fn environment_of(environ: &[u8]) -> impl Iterator<Item = &[u8]> {
    environ.split(|&byte| byte == 0)
}

/// Checks a condition until it holds. The only place where tests poll.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < deadline, "never so: {what}");
        #[expect(clippy::disallowed_methods, reason = "this is the place")]
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to a process that this test started.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .output()
        .unwrap();
    // Fails if the process has ended meanwhile.
    drop(sent);
}

/// A process that is killed when the test ends, also if it is stopped.
pub struct Leashed(pub Child);

impl Drop for Leashed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A text without the dates in it, such as those that an agent sees in a list.
pub fn without_dates(text: &str) -> String {
    let is_date = |word: &str| word.len() == 10 && word.parse::<jiff::civil::Date>().is_ok();
    let words = text.split_inclusive(' ');
    words.filter(|word| !is_date(word.trim_end())).collect()
}
