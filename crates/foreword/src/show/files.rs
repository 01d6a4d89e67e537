//! Words on the files themselves: backups, recoveries, sizes.

use std::fmt::Write as _;
use std::path::Path;

use foreword_core::backup::Backup;
use foreword_core::recover::{Recovered, Restored};
use foreword_core::text::{count, one_line};

use crate::model_files::{self, Files};

/// One line on a database that was damaged and is whole again.
pub fn recovered(file: &str, recovered: &Recovered) -> String {
    let damage = recovered.damage.as_deref().unwrap_or("found earlier");
    let mut line = format!("{file} was damaged ({}): ", one_line(damage));
    if let Some(backup) = &recovered.backup {
        let _ = write!(line, "restored from backups/{}, ", backup.name());
    }
    let it = recovered.salvaged;
    let _ = write!(
        line,
        "{} recovered, {} known to be lost",
        count(it.rows, "row", "rows"),
        count(it.lost, "row", "rows"),
    );
    if it.tables > 0 {
        let tables = count(it.tables, "table", "tables");
        let _ = write!(line, ", {tables} could not be read whole");
    }
    let aside = recovered.aside.file_name().unwrap_or_default();
    let _ = write!(line, "; the damaged file is {}", aside.to_string_lossy());
    line
}

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
        Files::Good => format!("{}, SHA-256 checked", size(model_files::bytes())),
        Files::None => "not installed; `foreword model install` gets it".to_owned(),
        Files::Bad(wrong) => format!("{wrong}; `foreword model install` gets it anew"),
    };
    let embedded =
        embedded.map(|share| format!("embedded  {:.0} % of the memory\n", share * 100.0));
    format!(
        "model     {}\nfolder    {}\nfiles     {files}\n{}",
        model_files::NAME,
        folder.display(),
        embedded.unwrap_or_default()
    )
}

pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
