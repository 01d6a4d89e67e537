//! What others may ask of a running worker, over a datagram socket in the data
//! directory: to look at the queue (`wake`), and to do everything now and say when
//! it is done (`drain`).

use std::io;
use std::os::unix::net::UnixDatagram as Datagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixDatagram;

use crate::home::Home;
use crate::platform::{self, Lock};

const DRAIN: &[u8] = b"drain";

/// The worker's end.
pub struct Requests {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Drop for Requests {
    fn drop(&mut self) {
        // Still under the lock: the socket cannot be a successor's.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Someone who wants to hear when everything is done.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting {
    address: PathBuf,
}

impl Requests {
    /// Only the holder of the lock may call this: a socket that is there is a dead worker's.
    pub fn bind(path: &Path) -> io::Result<Requests> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Requests {
            socket: UnixDatagram::bind(path)?,
            path: path.to_owned(),
        })
    }

    /// Waits for a message. A wake-up needs no answer; someone who drains does.
    pub async fn next(&self) -> Option<Waiting> {
        let mut message = [0; 16];
        let Ok((length, sender)) = self.socket.recv_from(&mut message).await else {
            // Not worth an end: the worker looks at the queue anyway. But do not spin.
            tokio::time::sleep(Duration::from_millis(100)).await;
            return None;
        };
        // One look at the queue answers all wake-ups that have piled up.
        if &message[..length] != DRAIN {
            return None;
        }
        let address = sender.as_pathname()?.to_owned();
        Some(Waiting { address })
    }

    /// Tells everyone who waited how much is left.
    pub async fn answer(&self, waiting: &mut Vec<Waiting>, left: u64) {
        for Waiting { address } in waiting.drain(..) {
            let _ = self
                .socket
                .send_to(left.to_string().as_bytes(), address)
                .await;
        }
    }
}

/// Whether a worker has come up far enough to be asked something.
pub fn is_heard(home: &Home) -> bool {
    // The socket of a dead worker refuses.
    Datagram::unbound().is_ok_and(|socket| socket.connect(home.socket()).is_ok())
}

/// Has the running worker do everything now. None if it is gone before it answered.
///
/// Asks again while it waits: the worker that was asked may have ended, and another
/// one taken its place, which never heard the question.
pub fn ask_to_drain(home: &Home, say_that_we_wait: impl Fn()) -> io::Result<Option<u64>> {
    const A_WHILE: Option<Duration> = Some(Duration::from_millis(200));
    let folder = tempfile::Builder::new().prefix("foreword-").tempdir()?;
    let socket = Datagram::bind(folder.path().join("answer"))?;
    socket.set_read_timeout(A_WHILE)?;
    socket.set_write_timeout(A_WHILE)?;
    let is_timeout = |error: &io::Error| {
        let kind = error.kind();
        kind == io::ErrorKind::WouldBlock || kind == io::ErrorKind::TimedOut
    };
    let mut answer = [0; 32];
    for turn in 0.. {
        if turn == 25 {
            say_that_we_wait();
        }
        match socket.send_to(DRAIN, home.socket()) {
            // A full socket holds a question of ours, or wake-ups enough.
            Err(error) if !is_timeout(&error) => return Ok(None),
            _ => {}
        }
        match socket.recv(&mut answer) {
            Ok(length) => {
                return Ok(std::str::from_utf8(&answer[..length])
                    .ok()
                    .and_then(|text| text.parse().ok()));
            }
            Err(error) if is_timeout(&error) => match Lock::holder(&home.lock())? {
                None => return Ok(None),
                Some(pid) if platform::is_halted(pid) => {
                    return Err(io::Error::other(format!(
                        "the worker is halted; `kill -CONT {pid}` has it go on"
                    )));
                }
                Some(_) => {}
            },
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
