//! The benches that kill processes and that last, and the crash tests on the same harness.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bench;
mod crash;

use std::path::{Path, PathBuf};

/// The program `foreword`, which lies beside `foreword-bench`. Cargo builds it before any test of the
/// workspace runs, but not for the tests of this package alone.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_foreword-bench")).with_file_name("foreword");
    assert!(
        program.exists(),
        "there is no {}: run `cargo build` first, or `cargo test --workspace`",
        program.display()
    );
    program
}
