//! Repositories that were made to hang a hook, to fill its memory or to read another project's
//! memory, and hooks that are ended by their deadline or by a limit of the system.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Host, Sandbox, feed, wait_until};

const GIB: u64 = 1 << 30;

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Replaces a file by something that is not one.
fn plant(path: &Path, what: What) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir_all(path);
    match what {
        What::Pipe => {
            let made = Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }
        What::Link(target) => symlink(target, path).unwrap(),
        What::Sparse => File::create(path).unwrap().set_len(3 * GIB).unwrap(),
        What::Folder => fs::create_dir(path).unwrap(),
        What::Text(text) => fs::write(path, text).unwrap(),
        What::Repeated(text, times) => fs::write(path, text.repeat(times)).unwrap(),
    }
}

#[derive(Clone, Copy)]
enum What {
    Pipe,
    Link(&'static str),
    Sparse,
    Folder,
    Text(&'static str),
    Repeated(&'static str, usize),
}

/// A sound repository with a note, a master and a record of its synthesis.
fn sound(root: &Path) {
    let id = "0123456789abcdef0123456789abcdef01234567";
    write(&root.join(".git/HEAD"), "ref: refs/heads/main\n");
    write(&root.join(".git/refs/heads/main"), id);
    write(&root.join(".git/config"), "[core]\n\tbare = false\n");
    write(
        &root.join("_memory/conversations/s0.md"),
        "# A note\n\n## Context\n\nx\n",
    );
    write(&root.join("_memory/master.md"), "# Project memory\n");
    write(&root.join("_memory/synthesis"), "note s0 abc\n");
    write(&root.join("src.rs"), "fn main() {}\n");
}

#[rustfmt::skip] // A table is read in lines.
const LAYOUTS: [(&str, What); 46] = [
    (".git", What::Pipe),
    (".git", What::Link("/dev/zero")),
    (".git", What::Link("/proc/self/fd/0")),
    (".git", What::Link(".git")),
    (".git", What::Link("/")),
    (".git", What::Sparse),
    (".git", What::Text("gitdir: /dev/zero\n")),
    (".git", What::Text("gitdir: .git\n")),
    (".git", What::Text("gitdir: .\n")),
    (".git", What::Text("gitdir:")),
    (".git", What::Repeated("gitdir: a/", 100_000)),
    (".git/HEAD", What::Pipe),
    (".git/HEAD", What::Link("/dev/zero")),
    (".git/HEAD", What::Link("/proc/self/fd/1")),
    (".git/HEAD", What::Link("HEAD")),
    (".git/HEAD", What::Sparse),
    (".git/HEAD", What::Folder),
    (".git/HEAD", What::Text("ref: ../../../../../../dev/zero\n")),
    (".git/HEAD", What::Text("ref: refs/heads\n")),
    (".git/HEAD", What::Repeated("ref: refs/heads/", 1_000_000)),
    (".git/config", What::Pipe),
    (".git/config", What::Link("/dev/zero")),
    (".git/config", What::Sparse),
    (".git/config", What::Folder),
    (".git/config", What::Repeated("[remote \"x\"]\n\turl = h:y\n", 150_000)),
    (".git/commondir", What::Pipe),
    (".git/commondir", What::Link("/dev/random")),
    (".git/commondir", What::Text("commondir\n")),
    (".git/commondir", What::Repeated("../", 100_000)),
    (".git/packed-refs", What::Pipe),
    (".git/packed-refs", What::Sparse),
    (".git/refs/heads/main", What::Pipe),
    (".git/refs/heads/main", What::Link("/dev/zero")),
    ("_memory", What::Link("/")),
    ("_memory", What::Pipe),
    ("_memory/synthesis", What::Pipe),
    ("_memory/synthesis", What::Link("/dev/zero")),
    ("_memory/synthesis", What::Link("/proc/self/fd/1")),
    ("_memory/synthesis", What::Sparse),
    ("_memory/synthesis", What::Folder),
    ("_memory/master.md", What::Pipe),
    ("_memory/master.md", What::Link("/proc/kmsg")),
    ("_memory/conversations", What::Link("/proc/self")),
    ("_memory/conversations/s0.md", What::Pipe),
    ("src.rs", What::Pipe),
    ("src.rs", What::Link("/proc/kmsg")),
];

/// The most memory that a hook may take, in bytes.
const PEAK_MAX: u64 = 50 << 20;

#[test]
fn no_layout_of_a_repository_holds_a_hook_up_or_fills_its_memory() {
    let sandbox = Sandbox::new();
    sandbox.keep_workers_away();
    for (number, (path, what)) in LAYOUTS.into_iter().enumerate() {
        let project = sandbox.project(&format!("layout{number}"));
        sound(&project);
        plant(&project.join(path), what);
        let host = Host::new(&format!("s{number}"), &project);
        let read = host.tool(
            "Read",
            json!({"file_path": project.join("src.rs")}),
            json!({"type": "text"}),
        );
        for (hook, input) in [
            ("context", host.start("startup")),
            ("context", host.start("resume")),
            ("new", host.prompt("How does the refund work again?")),
            ("save", read),
            ("cleanup", host.end()),
        ] {
            // Without enough memory the hook would lose its event.
            let line = format!(r#"exec prlimit --data={PEAK_MAX} "$0" "$@""#);
            let mut command = sandbox.shell(&line, &[hook]);
            command.env("CLAUDE_PROJECT_DIR", &project);
            command.stdin(Stdio::piped());
            let output = feed(command, input.to_string().as_bytes());
            let code = output.status.code();
            assert_eq!(code, Some(0), "{path}, layout {number}: {hook}");
        }
    }
    // Nothing was ended by the deadline, and nothing was lost.
    assert_eq!(sandbox.log("hook.log"), "");
    sandbox.drain();
    let stored = sandbox.count("memory.db", "select count(*) from events");
    assert_eq!(stored, 5 * i64::try_from(LAYOUTS.len()).unwrap());
}

#[test]
fn a_hook_that_hangs_before_its_event_is_redacted_is_ended_and_counted() {
    let mut sandbox = Sandbox::new();
    sandbox.set("FOREWORD_HOOK_WITHIN_MS", "200");
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    // The input never ends.
    let mut child = sandbox.hook_command("save", &project).spawn().unwrap();
    let mut held_open = child.stdin.take().unwrap();
    let input = host.bash("make", "a secret").to_string();
    std::io::Write::write_all(&mut held_open, &input.as_bytes()[..input.len() - 1]).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(held_open);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, br#"{"continue":true,"suppressOutput":true}"#);
    let log = sandbox.log("hook.log");
    let size = input.len() - 1;
    let expected = format!(" save: not complete after 0.2 s; an event of {size} bytes was lost\n");
    assert!(
        log.ends_with(&expected) && log.lines().count() == 1,
        "{log}"
    );
    // Nothing of the input is anywhere.
    assert_eq!(sandbox.spooled(), 0);
    let dropped: Value = serde_json::from_str(&sandbox.run(&["dropped", "--json"])).unwrap();
    assert_eq!(dropped["lost"], 1, "{dropped}");
    assert_eq!(dropped["dropped"][0]["hooks"]["save"], 1, "{dropped}");
    assert_eq!(dropped["dropped"][0]["bytes"], size, "{dropped}");
    assert_eq!(sandbox.status()["lost"], 1);
}

#[test]
fn a_hook_that_hangs_after_its_event_is_redacted_leaves_it_in_the_spool() {
    let mut sandbox = Sandbox::new();
    sandbox.set("FOREWORD_HOOK_WITHIN_MS", "300");
    sandbox.set("FOREWORD_FAULT", "plant:queue-hangs");
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    let output = sandbox.hook(
        "save",
        &project,
        host.bash("make", "done").to_string().as_bytes(),
    );
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, br#"{"continue":true,"suppressOutput":true}"#);
    assert_eq!(sandbox.spooled(), 1);
    sandbox.unset("FOREWORD_FAULT");
    sandbox.drain();
    assert_eq!(sandbox.count("memory.db", "select count(*) from events"), 1);
}

#[test]
fn a_limit_on_the_size_of_files_costs_no_exit_code_and_is_counted() {
    for limit in [0, 512, 2048, 8192, 65536] {
        let sandbox = Sandbox::new();
        let project = sandbox.project("app");
        let host = Host::new("s1", &project);
        sandbox.run_hook("save", &project, &host.bash("ls", "a"));
        sandbox.drain();
        // Longer than the smallest limits.
        write(&sandbox.home().join("logs/hook.log"), &"\n".repeat(3000));
        sandbox.keep_workers_away();
        let before = sandbox.count("queue.db", "select count(*) from events");
        let line = format!(r#"exec prlimit --fsize={limit} "$0" "$@""#);
        for number in 0..3 {
            let mut command = sandbox.shell(&line, &["save"]);
            command
                .env("CLAUDE_PROJECT_DIR", &project)
                .stdin(Stdio::piped());
            let input = host.bash("make", &format!("{number}: {}", "x y ".repeat(300)));
            let output = feed(command, input.to_string().as_bytes());
            assert_eq!(output.status.code(), Some(0), "{limit}: {output:?}");
        }
        let queued = sandbox.count("queue.db", "select count(*) from events") - before;
        let spooled = i64::try_from(sandbox.spooled()).unwrap();
        let lost = sandbox.status()["lost"].as_i64().unwrap();
        // Where no file may have even one byte, nothing can be counted.
        let expected = if limit == 0 { 0 } else { 3 };
        let kept = queued + spooled;
        assert_eq!(kept + lost, expected, "{limit}: {queued} {spooled} {lost}");
    }
}

#[test]
fn signals_do_not_change_the_exit_code_of_a_hook() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    let host = Host::new("s1", &project);
    for (number, signal) in ["HUP", "INT", "TERM", "XCPU", "XFSZ", "PIPE"]
        .iter()
        .enumerate()
    {
        let mut child = sandbox.hook_command("save", &project).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = host.bash("make", &format!("{number}")).to_string();
        let (first, rest) = input.split_at(100);
        std::io::Write::write_all(&mut stdin, first.as_bytes()).unwrap();
        // The hook waits in a read for the rest of its input, with its handlers in place.
        let status = format!("/proc/{}/syscall", child.id());
        wait_until("the hook reads", || {
            fs::read_to_string(&status).is_ok_and(|it| it.starts_with("0 0x0 "))
        });
        crate::support::signal(child.id(), signal);
        std::io::Write::write_all(&mut stdin, rest.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}: {output:?}");
    }
    sandbox.drain();
    assert_eq!(sandbox.count("memory.db", "select count(*) from events"), 6);
}

#[test]
fn a_clone_with_very_many_notes_is_searched_at_once_and_the_rest_is_read_later() {
    let sandbox = Sandbox::new();
    let project = sandbox.project("app");
    fs::create_dir_all(project.join(".git")).unwrap();
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    // A release build copies some thousand in the time that a search has.
    let text = "The lighthouse keeper counts zebras. ".repeat(40);
    for number in 0..800 {
        let note = format!("# About {number}\n\n## Context\n\n{text}\n");
        let path = format!("_memory/conversations/n{number}.md");
        write(&project.join(path), &note);
    }
    let search = || {
        let mut command = sandbox.command(&["search", "lighthouse"]);
        let output = command.current_dir(&project).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let printed = [output.stdout, output.stderr].concat();
        String::from_utf8(printed).unwrap()
    };
    let first = search();
    assert!(first.contains("About "), "{first}");
    assert!(first.contains("notes are still being read"), "{first}");
    // The worker that the search started reads the rest.
    wait_until("all notes are copied", || {
        sandbox.count("memory.db", "select count(*) from notes") == 800
    });
    wait_until("the worker is done", || {
        !sandbox.home().join("notes-left").exists()
    });
    assert!(!search().contains("still being read"));
}
