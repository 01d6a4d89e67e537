//! Redaction leaves ordinary code alone: counts the lines that it changes without a secret.
//!
//! Measured on this repository and on the sources of everything it is built from (they
//! are on every machine that builds it): several hundred thousand lines of code and
//! documentation that nobody wrote with Foreword in mind.
#![expect(
    clippy::disallowed_macros,
    reason = "the rate is shown with `--nocapture`"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use foreword_core::redact::thorough;

/// Every line that redaction changes, in files with these extensions below a folder.
fn changed(folder: &Path, lines: &mut usize, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let skipped = ["target", ".git", "node_modules", "testdata"].contains(&name.as_str());
            if !skipped {
                changed(&path, lines, found);
            }
            continue;
        }
        let kinds = [
            "rs", "toml", "md", "c", "h", "py", "sh", "sql", "json", "yml",
        ];
        let is_source = path
            .extension()
            .is_some_and(|it| kinds.contains(&it.to_string_lossy().as_ref()));
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if !is_source {
            continue;
        }
        *lines += text.lines().count();
        if thorough(&text).count > 0 {
            for line in text.lines().filter(|line| thorough(line).count > 0) {
                found.push(format!("{name}: {}", line.trim()));
            }
        }
    }
}

/// Where cargo keeps the sources of our dependencies.
fn dependencies() -> Vec<PathBuf> {
    let version = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .filter(|package| !package["source"].is_null())
        .map(|package| {
            Path::new(package["manifest_path"].as_str().unwrap())
                .parent()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
#[cfg_attr(not(feature = "full-tests"), ignore = "slow; scripts/test runs it")]
fn at_most_one_line_in_ten_thousand_of_ordinary_code_is_changed() {
    let (mut lines, mut found) = (0, Vec::new());
    for folder in dependencies() {
        changed(&folder, &mut lines, &mut found);
    }
    let rate = found.len() as f64 * 10_000.0 / lines as f64;
    println!("{} of {lines} lines, {rate:.2} in 10,000", found.len());
    for line in &found {
        println!("  {}", foreword_core::text::shorten(line, 160));
    }
    assert!(lines > 200_000, "only {lines} lines were looked at");
    assert!(rate <= 1.0, "{rate:.2} lines in 10,000 were changed");
}

#[test]
fn this_repository_is_left_alone() {
    let (mut lines, mut found) = (0, Vec::new());
    changed(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
        &mut lines,
        &mut found,
    );
    println!("{} of {lines} lines", found.len());
    // Examples of secrets in the documents and tests, which are meant to be replaced.
    let meant = |line: &String| {
        ["rivate>", "://", "PRIVATE KEY"]
            .iter()
            .any(|it| line.contains(it))
    };
    let by_mistake: Vec<_> = found.iter().filter(|line| !meant(line)).collect();
    assert_eq!(by_mistake, Vec::<&String>::new());
}
