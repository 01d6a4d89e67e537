//! Links the program without PIE on Linux with glibc, and compiles in the commit it is built from.
//!
//! A hook runs for about a millisecond, and most of that is page faults: relocating a
//! position-independent image touches hundreds of pages. Linking without PIE took a quarter off a
//! hook's time when it was measured. The price is address-space randomisation of the program's own image
//! (libraries, heap and stack keep theirs), as ARCHITECTURE.md states. On other systems, and in the
//! static archive (`scripts/dist`, which sets its own flags), the linker's default stays.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let linux_gnu = var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ENV") == "gnu";
    let is_static = var("CARGO_CFG_TARGET_FEATURE").contains("crt-static");
    if linux_gnu && !is_static {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    set_commit();
}

/// Sets `FOREWORD_COMMIT` for the compiler. Does nothing without git, or in an unpacked archive,
/// even if that lies inside some other repository.
fn set_commit() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let same = |a: &Path, b: &Path| a.canonicalize().ok() == b.canonicalize().ok();
    if !git(&["rev-parse", "--show-toplevel"]).is_some_and(|root| same(Path::new(&root), &top)) {
        return;
    }
    // HEAD changes with the branch, its log with each commit.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file])
            && Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    if let Some(commit) = git(&["rev-parse", "--short=7", "HEAD"]) {
        println!("cargo:rustc-env=FOREWORD_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
