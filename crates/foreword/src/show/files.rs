//! Formats results about files: backups, recoveries, sizes, the sentence model.

use std::path::Path;

use foreword_core::safety::backup::Backup;
use foreword_core::safety::recover::Restored;
use foreword_core::text::{count, size};

use crate::service::sentence_model::{self, Files};

pub fn restored(name: &str, restored: &Restored) -> String {
    let Restored {
        came_back, gone, ..
    } = restored;
    let aside = restored.aside.file_name().unwrap_or_default();
    format!(
        "restored from {name}: {} back, {} gone that came after it\nthe memory as it was is {}\n",
        count(*came_back, "item came", "items came"),
        count(*gone, "item is", "items are"),
        aside.to_string_lossy(),
    )
}

pub fn backed_up(backup: &Backup) -> String {
    format!("{} ({})\n", backup.path.display(), size(backup.size))
}

pub fn vacuumed(file: &str, before: u64, after: u64) -> String {
    format!("{file}: {} before, {} now\n", size(before), size(after))
}

pub fn model_status(folder: &Path, files: &Files, embedded: Option<f64>) -> String {
    let files = match files {
        Files::Good => format!("{}, SHA-256 checked", size(sentence_model::bytes())),
        Files::None => "not installed; `foreword model install` gets it".to_owned(),
        Files::Bad(wrong) => format!("{wrong}; `foreword model install` gets it anew"),
    };
    let embedded =
        embedded.map(|share| format!("embedded  {:.0} % of the memory\n", share * 100.0));
    format!(
        "model     {}\nfolder    {}\nfiles     {files}\n{}",
        sentence_model::NAME,
        folder.display(),
        embedded.unwrap_or_default()
    )
}
