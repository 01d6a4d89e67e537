//! Files are read by `foreword_core::files` alone, which neither blocks nor reads without a limit.
//!
//! `std::fs::read` and the like wait for ever at a pipe and fill the memory from a device. A cloned
//! project can have either in the place of any file.

use std::path::Path;

use crate::floors::{rust_files, without_tests};

/// What reads or opens a file without a limit.
const BARE: [&str; 6] = [
    "fs::read(",
    "fs::read_to_string",
    "File::open(",
    "fs::copy(",
    ".read(true)",
    ".read_to_end(",
];

/// The exceptions: how many there are in a file, and why.
#[rustfmt::skip] // A table is read in lines.
const ALLOWED: [(&str, usize, &str); 13] = [
    ("foreword-core/src/files.rs", 2, "this is the reader"),
    ("foreword-core/src/db.rs", 1, "syncs a copy that was just written"),
    ("foreword-core/src/safety/recover.rs", 2, "mends a damaged database; copies and syncs a backup that was checked before"),
    ("foreword-embed/src/weights.rs", 1, "a file of the installed sentence model, bounded"),
    ("foreword-embed/src/wordpiece.rs", 2, "a file of the installed sentence model, bounded"),
    ("foreword/src/cli/notes.rs", 1, "standard input, bounded"),
    ("foreword/src/cli/restore.rs", 1, "copies our own databases, which were looked at before"),
    ("foreword/src/config/policy.rs", 1, "a project's policy: opened in the same way, inside the project, bounded"),
    ("foreword/src/not_kept.rs", 1, "the counters in the data directory, of a fixed size"),
    ("foreword/src/install/sentence_model.rs", 1, "syncs a file that was just written"),
    ("foreword/src/notes/synthesize/files.rs", 1, "opens a folder, to lock it"),
    ("foreword/src/platform.rs", 6, "the worker's lock; folders; files of the kernel; a program's output, bounded"),
    ("foreword/src/service/embed_client.rs", 1, "the worker's answer, bounded"),
];

#[test]
fn files_are_read_by_one_function() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for name in ["foreword-core", "foreword-embed", "foreword"] {
        for file in rust_files(&crates.join(name).join("src")) {
            let relative = file.strip_prefix(&crates).unwrap().to_str().unwrap();
            if relative.contains("/tests") {
                continue;
            }
            let code = without_tests(&std::fs::read_to_string(&file).unwrap());
            let count = BARE.iter().map(|it| code.matches(it).count()).sum();
            if count > 0 {
                found.push((relative.to_owned(), count));
            }
        }
    }
    found.sort();
    let mut allowed: Vec<_> = ALLOWED
        .iter()
        .map(|(file, count, _)| ((*file).to_owned(), *count))
        .collect();
    allowed.sort();
    assert_eq!(
        found, allowed,
        "read files with foreword_core::files, or name the exception and its reason here"
    );
}
