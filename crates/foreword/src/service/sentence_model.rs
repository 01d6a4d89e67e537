//! The sentence model's files in the data directory, and whether they are the published ones.
//! `install/sentence_model.rs` puts them there.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use foreword_embed::{TOKENIZER, WEIGHTS};
use sha2::{Digest as _, Sha256};

pub use crate::home::SENTENCE_MODEL as NAME;

/// A file as it is published.
pub struct Published {
    pub name: &'static str,
    pub bytes: u64,
    sha256: &'static str,
}

/// The small one first: who cannot get it does not get the other either.
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

/// Of both.
pub fn bytes() -> u64 {
    FILES.iter().map(|file| file.bytes).sum()
}

/// What a look at the files says.
#[derive(Debug, PartialEq, Eq)]
pub enum Files {
    Good,
    None,
    /// And what is wrong with them.
    Bad(String),
}

/// Reads every byte, which takes a good part of a second.
pub fn check(folder: &Path) -> Files {
    if !folder.exists() {
        return Files::None;
    }
    let wrong = FILES.iter().find_map(|file| file.wrong(folder));
    wrong.map_or(Files::Good, Files::Bad)
}

impl Published {
    fn wrong(&self, folder: &Path) -> Option<String> {
        let mut hash = Sha256::new();
        let read = File::open(folder.join(self.name))
            .and_then(|mut file| std::io::copy(&mut file, &mut hash));
        match read {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Some(format!("{} is missing", self.name))
            }
            Err(error) => Some(format!("{} cannot be read: {error}", self.name)),
            Ok(_) if format!("{:x}", hash.finalize()) != self.sha256 => Some(format!(
                "{} is not the published one: its SHA-256 is another",
                self.name
            )),
            Ok(_) => None,
        }
    }
}
