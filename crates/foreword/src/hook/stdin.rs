//! Reads a hook's input from a pipe that may be slow, endless or never closed.
//!
//! The host writes one JSON object. Reading stops at the end of that object, at the end of the
//! pipe, at `SIZE_MAX`, or after `TIME_MAX`: a hook must not hang because a pipe was left open.

use std::fmt;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use crate::platform;

/// The longest time that a hook waits for its input.
const TIME_MAX: Duration = Duration::from_secs(1);
/// The largest input in bytes, more than any tool use has.
const SIZE_MAX: usize = 64 << 20;

#[derive(Debug)]
pub struct Input {
    pub bytes: Vec<u8>,
    pub ending: InputEnding,
}

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputEnding {
    Complete,
    Closed,
    TooLarge,
    TimeOver,
}

impl fmt::Display for InputEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputEnding::Complete => "complete",
            InputEnding::Closed => "input ended early",
            InputEnding::TooLarge => "too large",
            InputEnding::TimeOver => "not complete after one second",
        })
    }
}

pub fn read() -> Input {
    let descriptor = std::io::stdin().as_raw_fd();
    let deadline = Instant::now() + TIME_MAX;
    let mut bytes = Vec::new();
    let mut object = Object::default();
    let ending = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !platform::wait_readable(descriptor, left) {
            break InputEnding::TimeOver;
        }
        let start = bytes.len();
        match platform::read_some(descriptor, &mut bytes) {
            Ok(0) => break InputEnding::Closed,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break InputEnding::Closed,
        }
        if object.ends_in(&bytes[start..]) {
            break InputEnding::Complete;
        }
        if bytes.len() > SIZE_MAX {
            break InputEnding::TooLarge;
        }
    };
    Input { bytes, ending }
}

/// Scans for the end of a JSON value by its brackets and strings, without parsing it.
#[derive(Default)]
struct Object {
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl Object {
    /// Scans the next piece of input; true if the value ends in it.
    fn ends_in(&mut self, piece: &[u8]) -> bool {
        // Not `memchr2`: it queries the features of the processor, and under a hypervisor each
        // query costs some microseconds (measured: 8, for ten queries).
        let quote_or_escape = memchr::arch::all::memchr::Two::new(b'"', b'\\');
        let mut at = 0;
        while at < piece.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.in_string {
                let Some(next) = quote_or_escape.find(&piece[at..]) else {
                    return false;
                };
                at += next;
                match piece[at] {
                    b'"' => self.in_string = false,
                    _ => self.escaped = true,
                }
            } else {
                match piece[at] {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return true;
                        }
                    }
                    _ => {}
                }
            }
            at += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Object;

    #[test]
    fn an_object_ends_at_its_last_bracket_however_it_is_split() {
        let text = br#" {"a":"}\"]\\","b":[{"c":1}]} trailing"#;
        let end = text.iter().rposition(|&byte| byte == b'}').unwrap();
        for cut in 0..=end {
            let mut object = Object::default();
            let (first, second) = text.split_at(cut);
            assert!(!object.ends_in(first), "cut at {cut}");
            assert!(object.ends_in(second), "cut at {cut}");
        }
    }
}
