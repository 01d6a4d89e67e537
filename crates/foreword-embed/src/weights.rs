//! Reads the model's weights: a safetensors file.
//!
//! The first eight bytes are the length of the header; the header is JSON with the shape and the
//! offsets of each tensor. A tensor is read on demand and must have the expected shape, so a
//! wrong header causes an error and no large allocation.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ModelError;

/// The largest header that is read, ten times the size of the model's.
const HEADER_MAX: u64 = 128 * 1024;
/// The size of the buffer for reading tensors.
const BUFFER: usize = 64 * 1024;

pub struct Weights {
    path: PathBuf,
    file: File,
    header: Value,
    /// Where the tensors begin in the file.
    start: u64,
    /// The length of the file.
    end: u64,
}

impl Weights {
    pub fn open(path: &Path) -> Result<Weights, ModelError> {
        let io = |error| reading(path, error);
        let mut file = File::open(path).map_err(io)?;
        let end = file.metadata().map_err(io)?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(io)?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_MAX {
            return Err(damaged(path, "it is not a safetensors file"));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(io)?;
        let header = serde_json::from_slice(&header);
        Ok(Weights {
            path: path.to_owned(),
            file,
            header: header.map_err(|_| damaged(path, "its header is not JSON"))?,
            start: 8 + length,
            end,
        })
    }

    /// Passes each row of a tensor, which must have this shape, to `take`. Row by row, since the
    /// caller packs them: the largest tensor is never in memory as a whole.
    pub fn rows(
        &self,
        name: &str,
        shape: &[usize],
        mut take: impl FnMut(usize, &[f32]),
    ) -> Result<(), ModelError> {
        let entry = &self.header[name];
        if entry["dtype"] != "F32" || entry["shape"] != json!(shape) {
            return Err(self.damaged(&format!("{name} is missing or has another shape")));
        }
        let length = 4 * shape.iter().product::<usize>() as u64;
        let offsets = &entry["data_offsets"];
        let place = || {
            let (from, to) = (offsets[0].as_u64()?, offsets[1].as_u64()?);
            let (at, end) = (self.start.checked_add(from)?, self.start.checked_add(to)?);
            (end.checked_sub(at)? == length && end <= self.end).then_some(at)
        };
        let at = place().ok_or_else(|| self.damaged(&format!("{name} is cut off")))?;
        let io = |error| reading(&self.path, error);
        let mut file = BufReader::with_capacity(BUFFER, &self.file);
        file.seek(SeekFrom::Start(at)).map_err(io)?;
        let width = shape.last().copied().unwrap_or(1);
        let mut bytes = vec![0; 4 * width];
        let mut row = vec![0.0; width];
        for number in 0..length as usize / bytes.len() {
            file.read_exact(&mut bytes).map_err(io)?;
            for (number, bytes) in row.iter_mut().zip(bytes.as_chunks().0) {
                *number = f32::from_le_bytes(*bytes);
            }
            if !row.iter().all(|number| number.is_finite()) {
                return Err(self.damaged(&format!("{name} has a value that is not a number")));
            }
            take(number, &row);
        }
        Ok(())
    }

    /// A whole tensor, row after row.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let mut numbers = Vec::with_capacity(shape.iter().product());
        self.rows(name, shape, |_, row| numbers.extend_from_slice(row))?;
        Ok(numbers)
    }

    fn damaged(&self, what: &str) -> ModelError {
        damaged(&self.path, what)
    }
}

pub fn damaged(path: &Path, what: &str) -> ModelError {
    ModelError::Damaged {
        path: path.to_owned(),
        what: what.to_owned(),
    }
}

pub fn reading(path: &Path, error: std::io::Error) -> ModelError {
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::NotFound => ModelError::Missing(path),
        ErrorKind::UnexpectedEof => damaged(&path, "it is cut off"),
        _ => ModelError::Io { path, error },
    }
}
