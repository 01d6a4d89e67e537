//! Reads files that somebody else may have made: a project's `.git` and `_memory`, a host's
//! settings and transcripts, archives, files that a tool named.
//!
//! A cloned or unpacked project may have a pipe, a device, a link to `/dev/zero` or a file of
//! terabytes where a small text is expected. Reading one of these must neither block nor fill the
//! memory. So only regular files are read, opened without waiting, no larger than the caller
//! allows, and no further than the size that the file had when it was opened: files in `/proc`,
//! which have no size and may never end, count as empty. Everything that this program reads goes
//! through here; the test `reading` lists the exceptions.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The most that is read of a settings file, and of the small files in the data directory.
pub const SMALL_MAX: u64 = 4 << 20;

/// No system call takes a longer path, in bytes.
pub const PATH_MAX: usize = 4096;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it does not exist")]
    Missing,
    #[error("it is larger than {}", size(*.0))]
    TooLarge(u64),
    #[error("this is not a regular file")]
    NotRegular,
    #[error("it leads out of {0}")]
    Outside(PathBuf),
    #[error("it is not UTF-8")]
    NotText,
    #[error(transparent)]
    Io(io::Error),
}

/// Reads a whole file of at most `max` bytes.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>, ReadError> {
    let (file, metadata) = open(path)?;
    read_up_to(file, &metadata, max)
}

/// Reads a whole file of at most `max` bytes that is inside a folder, also after links are
/// followed. The folder's path has no links.
pub fn read_in(folder: &Path, path: &Path, max: u64) -> Result<Vec<u8>, ReadError> {
    let (file, metadata) = open(path)?;
    if !real_path(&file, path)?.starts_with(folder) {
        return Err(ReadError::Outside(folder.to_owned()));
    }
    read_up_to(file, &metadata, max)
}

/// Reads a whole text file of at most `max` bytes.
pub fn read_text(path: &Path, max: u64) -> Result<String, ReadError> {
    read(path, max).and_then(text)
}

/// The text of a file's bytes.
pub fn text(bytes: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(bytes).map_err(|_| ReadError::NotText)
}

/// None if the file does not exist.
pub fn if_there<T>(result: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match result {
        Err(ReadError::Missing) => Ok(None),
        result => result.map(Some),
    }
}

/// Opens a regular file to read it in parts.
pub fn open(path: &Path) -> Result<(File, Metadata), ReadError> {
    // Opening some devices has an effect, so look first.
    regular(std::fs::metadata(path)?)?;
    let file = OpenOptions::new()
        .read(true)
        // If it has become a pipe or a terminal meanwhile, opening it neither waits nor takes it over.
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let metadata = regular(file.metadata()?)?;
    Ok((file, metadata))
}

fn regular(metadata: Metadata) -> Result<Metadata, ReadError> {
    let is_file = metadata.is_file();
    is_file.then_some(metadata).ok_or(ReadError::NotRegular)
}

fn read_up_to(file: File, metadata: &Metadata, max: u64) -> Result<Vec<u8>, ReadError> {
    let size = metadata.len();
    if size > max {
        return Err(ReadError::TooLarge(max));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    if size > 0 {
        file.take(size).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The path of an open file without links. Linux knows it; elsewhere the links are followed again.
fn real_path(file: &File, path: &Path) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .or_else(|_| path.canonicalize())
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        use io::ErrorKind::{InvalidFilename, IsADirectory, NotADirectory, NotFound};
        match error.kind() {
            // A name or path that is too long belongs to no file.
            NotFound | NotADirectory | InvalidFilename => ReadError::Missing,
            IsADirectory => ReadError::NotRegular,
            _ => ReadError::Io(error),
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        let kind = match &error {
            ReadError::Io(error) => error.kind(),
            ReadError::Missing => io::ErrorKind::NotFound,
            ReadError::TooLarge(_) => io::ErrorKind::FileTooLarge,
            ReadError::NotText => io::ErrorKind::InvalidData,
            ReadError::NotRegular | ReadError::Outside(_) => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}

/// A limit in words: `1 MB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{} kB", bytes >> 10),
        _ => format!("{} MB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let outcome = |path: &Path| match read(path, 5) {
            Ok(bytes) => String::from_utf8(bytes).unwrap(),
            Err(error) => error.to_string(),
        };
        fs::write(at("small"), "12345").unwrap();
        fs::write(at("large"), "123456").unwrap();
        let sparse = File::create(at("sparse")).unwrap();
        sparse.set_len(3 << 30).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let made = Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        for (name, target) in [
            ("to zero", "/dev/zero"),
            ("to small", "small"),
            ("to pipe", "pipe"),
            ("to nothing", "nothing"),
            ("loop", "loop"),
            ("to proc", "/proc/self/mountinfo"),
        ] {
            symlink(target, at(name)).unwrap();
        }
        let long = "a/".repeat(100_000);
        for (name, expected) in [
            ("small", "12345"),
            ("to small", "12345"),
            ("large", "it is larger than 5 bytes"),
            ("sparse", "it is larger than 5 bytes"),
            ("folder", "this is not a regular file"),
            ("pipe", "this is not a regular file"),
            ("to pipe", "this is not a regular file"),
            ("to zero", "this is not a regular file"),
            ("to proc", ""),
            ("nothing", "it does not exist"),
            ("to nothing", "it does not exist"),
            ("small/below", "it does not exist"),
            (long.as_str(), "it does not exist"),
        ] {
            assert_eq!(
                outcome(&at(name)),
                expected,
                "{}",
                &name[..name.len().min(20)]
            );
        }
        assert!(matches!(read(&at("loop"), 5), Err(ReadError::Io(_))));
    }

    #[test]
    fn a_link_may_lead_within_the_folder_and_not_out_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let tree = root.join("tree");
        fs::create_dir_all(tree.join("deep")).unwrap();
        fs::write(tree.join("in"), "in").unwrap();
        fs::write(root.join("out"), "out").unwrap();
        symlink("../in", tree.join("deep/to-in")).unwrap();
        symlink("../../out", tree.join("deep/to-out")).unwrap();
        symlink("/proc/self/fd/1", tree.join("deep/to-stdout")).unwrap();
        symlink("..", tree.join("up")).unwrap();
        let outcome = |path: &str| read_in(&tree, &tree.join(path), 9);
        assert_eq!(outcome("deep/to-in").unwrap(), b"in");
        for path in ["deep/to-out", "deep/to-stdout", "up/out", "../out"] {
            let refused = matches!(
                outcome(path),
                Err(ReadError::Outside(_) | ReadError::NotRegular)
            );
            assert!(refused, "{path}");
        }
    }
}
