//! System calls that only benches make: waiting for a child with its page faults, and handling Ctrl-C.
#![expect(unsafe_code, reason = "system calls that std does not offer")]

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

/// How a child ended, and its page faults.
#[derive(Debug, Clone, Copy)]
pub struct ChildExit {
    pub status: ExitStatus,
    /// Pages that the kernel mapped for the child without reading them from disk.
    pub minor_faults: u64,
}

/// Waits for a child and returns what the kernel counted for it. The child's pipes must be closed before.
pub fn wait_counting(child: &Child) -> io::Result<ChildExit> {
    let pid = i32::try_from(child.id()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut status = 0;
    // SAFETY: all zeroes is a valid rusage; both it and the status outlive the call.
    let (ended, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let ended = loop {
            let ended = libc::wait4(pid, &raw mut status, 0, &raw mut usage);
            if ended >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break ended;
            }
        };
        (ended, usage)
    };
    if ended < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(ChildExit {
        status: ExitStatus::from_raw(status),
        minor_faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
    })
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl-C only set a flag, and a closed pipe an ordinary error: a bench must end its processes
/// and remove its folders first.
pub fn note_interrupts() {
    extern "C" fn note(_signal: libc::c_int) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler does nothing but store to an atomic, which a handler may.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGINT, note as *const () as libc::sighandler_t);
        libc::signal(libc::SIGTERM, note as *const () as libc::sighandler_t);
    }
}

/// Whether Ctrl-C or SIGTERM arrived since `note_interrupts`.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
