//! Where and what was measured, as far as it explains the numbers. No names, no paths.

use std::path::Path;

use anyhow::Context as _;

pub struct Machine {
    pub cores: usize,
    pub cpu: String,
    pub kernel: String,
}

pub struct Program {
    pub version: &'static str,
    pub linkage: Linkage,
    pub bytes: u64,
}

/// How a program finds its libraries: a dynamic one pays for that at every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linkage {
    Static,
    Dynamic,
}

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

pub fn program(path: &Path) -> anyhow::Result<Program> {
    let image =
        std::fs::read(path).with_context(|| format!("could not read {}", path.display()))?;
    Ok(Program {
        version: env!("CARGO_PKG_VERSION"),
        linkage: linkage(&image),
        bytes: image.len() as u64,
    })
}

/// A 64-bit ELF image without an interpreter needs nobody to load its libraries.
fn linkage(image: &[u8]) -> Linkage {
    const INTERPRETER: u32 = 3;
    let field = |at: usize, length: usize| {
        let bytes = image.get(at..at + length)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, &byte| number << 8 | usize::from(byte)),
        )
    };
    let headers = || {
        let (table, size, count) = (field(32, 8)?, field(54, 2)?, field(56, 2)?);
        (0..count)
            .map(|number| field(table + number * size, 4))
            .collect::<Option<Vec<_>>>()
    };
    let is_elf64 = image.starts_with(b"\x7fELF\x02");
    match headers().filter(|_| is_elf64) {
        Some(kinds) if !kinds.contains(&(INTERPRETER as usize)) => Linkage::Static,
        _ => Linkage::Dynamic,
    }
}
