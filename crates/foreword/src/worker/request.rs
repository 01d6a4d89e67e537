//! Requests to a running worker, over a datagram socket in the data directory: look at the queue
//! (`wake`), or do everything now and answer when it is done (`drain`).

use std::io;
use std::os::unix::net::UnixDatagram as Datagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixDatagram;

use crate::home::Home;
use crate::platform::{self, Lock};

const DRAIN: &[u8] = b"drain";

/// The worker's end of the socket.
pub struct Requests {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Drop for Requests {
    fn drop(&mut self) {
        // The worker still holds the lock, so this is not the socket of the next worker.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A command that waits until everything is done.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting {
    address: PathBuf,
}

impl Requests {
    /// Only the holder of the lock may call this: it removes an existing socket, which must be a dead
    /// worker's.
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

    /// Waits for a message. Returns the sender of a `drain`; a `wake` needs no answer.
    pub async fn next(&self) -> Option<Waiting> {
        let mut message = [0; 16];
        let Ok((length, sender)) = self.socket.recv_from(&mut message).await else {
            // The worker goes on, since it looks at the queue anyway; the sleep avoids a busy loop.
            tokio::time::sleep(Duration::from_millis(100)).await;
            return None;
        };
        if &message[..length] != DRAIN {
            return None;
        }
        let address = sender.as_pathname()?.to_owned();
        Some(Waiting { address })
    }

    /// Sends the number of events left to all that wait.
    pub async fn answer(&self, waiting: &mut Vec<Waiting>, left: u64) {
        for Waiting { address } in waiting.drain(..) {
            let _ = self
                .socket
                .send_to(left.to_string().as_bytes(), address)
                .await;
        }
    }
}

/// Whether a worker is listening on its socket.
pub fn is_listening(home: &Home) -> bool {
    // The socket of a dead worker refuses.
    Datagram::unbound().is_ok_and(|socket| socket.connect(home.socket()).is_ok())
}

/// Has the running worker do everything now. None if it is gone before it answered.
///
/// The request is repeated while waiting, because another worker may have replaced the one that got
/// it.
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
            // A timeout means that the socket is full: an earlier request is still in it.
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
                        "the worker is halted (SIGSTOP); `kill -CONT {pid}` continues it"
                    )));
                }
                Some(_) => {}
            },
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
