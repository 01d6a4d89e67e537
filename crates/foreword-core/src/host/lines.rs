//! Reads the lines of a transcript, which may be very long and may be written to meanwhile.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Only this many bytes at the end of a file are read: events that hooks missed are usually there.
pub const FILE_MAX: u64 = 32 << 20;
/// A line longer than this is skipped.
const LINE_MAX: u64 = 8 << 20;

/// The lines of a file, one at a time, without those that are too long.
pub struct Lines {
    file: BufReader<File>,
    line: Vec<u8>,
}

impl Lines {
    pub fn open(path: &Path) -> io::Result<Lines> {
        // Opening a pipe would block.
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut file = File::open(path)?;
        // The first line is then incomplete; it is not JSON, and the caller skips it.
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(FILE_MAX)))?;
        Ok(Lines {
            file: BufReader::new(file),
            line: Vec::new(),
        })
    }

    /// The next line that is not too long; none at the end.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut skipping = false;
        loop {
            self.line.clear();
            let mut limited = self.file.by_ref().take(LINE_MAX);
            let length = limited.read_until(b'\n', &mut self.line)? as u64;
            if length == 0 {
                return Ok(None);
            }
            let too_long = length == LINE_MAX && !self.line.ends_with(b"\n");
            if !too_long && !skipping {
                return Ok(Some(&self.line));
            }
            skipping = too_long;
        }
    }
}
