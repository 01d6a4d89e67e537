//! The machine and the program that were measured, as far as they explain the numbers, without
//! names and paths.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::Serialize;

#[derive(Serialize)]
pub struct Machine {
    pub cores: usize,
    pub cpu: String,
    pub kernel: String,
}

#[derive(Serialize)]
pub struct Program {
    #[serde(skip)]
    pub path: PathBuf,
    pub version: &'static str,
    pub linkage: Linkage,
    pub bytes: u64,
}

/// How a program finds its libraries: a dynamic one pays for that at every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Linkage {
    Static,
    #[serde(rename = "plain")]
    Dynamic,
}

/// The machine that this process runs on.
pub fn this() -> Machine {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown", |rest| rest.trim_start_matches(['\t', ' ', ':']))
        .to_owned();
    Machine {
        cores: std::thread::available_parallelism().map_or(1, Into::into),
        cpu,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
    }
}

/// The program `foreword` that lies in the folder of this one.
pub fn beside() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("foreword");
    ensure!(
        program.exists(),
        "there is no {}: `cargo build` builds both programs (with --release, those of target/release)",
        program.display()
    );
    Ok(program)
}

/// The program that is measured: the one beside this, unless another is named.
pub fn program(named: Option<&Path>) -> anyhow::Result<Program> {
    let path = match named {
        Some(path) => std::fs::canonicalize(path).context("there is no such program")?,
        None => beside()?,
    };
    let image =
        std::fs::read(&path).with_context(|| format!("could not read {}", path.display()))?;
    Ok(Program {
        version: env!("CARGO_PKG_VERSION"),
        linkage: linkage(&image),
        bytes: image.len() as u64,
        path,
    })
}

/// A dynamic program names its loader (`/lib64/ld-…`) in its first bytes.
fn linkage(image: &[u8]) -> Linkage {
    let beginning = &image[..image.len().min(4096)];
    match memchr::memmem::find(beginning, b"/ld-") {
        Some(_) => Linkage::Dynamic,
        None => Linkage::Static,
    }
}
