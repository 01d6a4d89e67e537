//! The model's numbers on disk: a safetensors file.
//!
//! Eight bytes say how long the header is; the header is JSON and says of each tensor its
//! shape and where it lies. A tensor is read when it is asked for, with the shape that is
//! expected of it, so a file that lies about itself costs an error and no memory.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ModelError;

/// Ten times what the model's header takes.
const HEADER_MAX: u64 = 128 * 1024;

pub struct Weights {
    path: PathBuf,
    file: File,
    header: Value,
    /// Where the tensors begin, and where the file ends.
    start: u64,
    end: u64,
}

impl Weights {
    pub fn open(path: &Path) -> Result<Weights, ModelError> {
        let io = |error| reading(path, error);
        let file = File::open(path).map_err(io)?;
        let mut weights = Weights {
            path: path.to_owned(),
            end: file.metadata().map_err(io)?.len(),
            header: Value::Null,
            start: 8,
            file,
        };
        let mut length = [0; 8];
        weights.read(&mut length, 0, "its beginning")?;
        let length = u64::from_le_bytes(length);
        if length > HEADER_MAX {
            return Err(weights.damaged("it does not begin like such a file"));
        }
        let mut header = vec![0; length as usize];
        weights.read(&mut header, 8, "its header")?;
        weights.header = serde_json::from_slice(&header)
            .map_err(|_| weights.damaged("its header is not JSON"))?;
        weights.start += length;
        Ok(weights)
    }

    /// The tensor of this name, row by row. It must have this shape.
    pub fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let entry = &self.header[name];
        if entry["dtype"] != "F32" || entry["shape"] != json!(shape) {
            return Err(self.damaged(&format!("{name} is not there or of another shape")));
        }
        let bytes_wanted = 4 * shape.iter().product::<usize>();
        let offsets = &entry["data_offsets"];
        let place = || {
            let (from, to) = (offsets[0].as_u64()?, offsets[1].as_u64()?);
            let at = self.start.checked_add(from)?;
            (to.checked_sub(from)? == bytes_wanted as u64).then_some(at)
        };
        let at = place().ok_or_else(|| self.damaged(&format!("{name} has no place in it")))?;
        let mut bytes = vec![0; bytes_wanted];
        self.read(&mut bytes, at, name)?;
        let (numbers, _) = bytes.as_chunks();
        let numbers: Vec<f32> = numbers.iter().map(|it| f32::from_le_bytes(*it)).collect();
        match numbers.iter().all(|number| number.is_finite()) {
            true => Ok(numbers),
            false => Err(self.damaged(&format!("{name} has something that is no number"))),
        }
    }

    fn read(&self, bytes: &mut [u8], at: u64, what: &str) -> Result<(), ModelError> {
        if self
            .end
            .checked_sub(at)
            .is_none_or(|left| left < bytes.len() as u64)
        {
            return Err(self.damaged(&format!("{what} is cut off")));
        }
        let read = self.file.read_exact_at(bytes, at);
        read.map_err(|error| reading(&self.path, error))
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
        std::io::ErrorKind::NotFound => ModelError::Missing(path),
        _ => ModelError::Io { path, error },
    }
}
