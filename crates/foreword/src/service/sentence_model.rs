//! Checks whether the sentence model's files in the data directory are the published ones.
//! `install/sentence_model.rs` puts them there.

use std::io::ErrorKind;
use std::path::Path;

use foreword_core::files;
use foreword_embed::{TOKENIZER, WEIGHTS};
use sha2::{Digest as _, Sha256};

pub use crate::home::SENTENCE_MODEL as NAME;

/// A file of the published model, by which an installed one is checked.
pub struct Published {
    pub name: &'static str,
    pub bytes: u64,
    sha256: &'static str,
}

/// The files of the model. The small one comes first: if it cannot be downloaded, the large one is
/// not tried.
pub const FILES: [Published; 2] = [
    Published {
        name: TOKENIZER,
        bytes: 466_247,
        sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    Published {
        name: WEIGHTS,
        bytes: 90_868_376,
        sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    },
];

/// The size of both files.
pub fn bytes() -> u64 {
    FILES.iter().map(|file| file.bytes).sum()
}

/// The result of checking the files.
#[derive(Debug, PartialEq, Eq)]
pub enum Files {
    Good,
    None,
    /// With what is wrong, as text for people.
    Bad(String),
}

/// Checks the SHA-256 of both files, which takes a good part of a second.
pub fn check(folder: &Path) -> Files {
    if !folder.exists() {
        return Files::None;
    }
    let problem = FILES.iter().find_map(|file| file.problem(folder));
    problem.map_or(Files::Good, Files::Bad)
}

impl Published {
    /// What is wrong with this file in a folder; none if it is the published one.
    fn problem(&self, folder: &Path) -> Option<String> {
        let mut hash = Sha256::new();
        let opened = files::open(&folder.join(self.name)).map_err(std::io::Error::from);
        let read = opened.and_then(|(mut file, _)| std::io::copy(&mut file, &mut hash));
        match read {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Some(format!("{} is missing", self.name))
            }
            Err(error) => Some(format!("{} cannot be read: {error}", self.name)),
            Ok(_) if format!("{:x}", hash.finalize()) != self.sha256 => Some(format!(
                "{} is not the published one: its SHA-256 differs",
                self.name
            )),
            Ok(_) => None,
        }
    }
}
