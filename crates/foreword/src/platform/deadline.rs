//! Ends this process at a given time, whatever it is doing then, and leaves something behind.
//!
//! A hook must end in time even if a disk does not answer, a pipe stays open or a text takes long to
//! read. Checks between its steps would not help while one step hangs, so a timer of the kernel
//! interrupts it. The signal handler may only make system calls, since the interrupted code may
//! hold any lock, that of the allocator too. So everything that it writes is prepared before, as a
//! `Parting`, and replaced whenever the hook gets further.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::FromRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;

/// What a process leaves behind if it is ended: nothing, by default.
#[derive(Default)]
pub struct Parting {
    /// What is printed.
    pub answer: &'static str,
    pub file: Option<PartingFile>,
    /// Written if there is no file, or if it could not be written; so is `count`.
    pub line: Option<PartingLine>,
    pub count: Option<PartingCount>,
    pub exit_code: i32,
}

/// A file that is written under another name and then renamed, so that it is complete.
#[derive(Debug)]
pub struct PartingFile {
    folders: Vec<CString>,
    partial: CString,
    path: CString,
    bytes: &'static [u8],
}

impl PartingFile {
    /// None if a path has a zero byte. `folders` are created if they do not exist, in this order.
    pub fn new(
        folders: &[&Path],
        [partial, path]: [&Path; 2],
        bytes: &'static [u8],
    ) -> Option<PartingFile> {
        Some(PartingFile {
            folders: folders.iter().map(|it| c_path(it)).collect::<Option<_>>()?,
            partial: c_path(partial)?,
            path: c_path(path)?,
            bytes,
        })
    }
}

/// A line that is added to a file, with the number of bytes that were read until then in it.
#[derive(Debug)]
pub struct PartingLine {
    folders: Vec<CString>,
    path: CString,
    before: String,
    after: &'static str,
}

impl PartingLine {
    /// As for `PartingFile`. The number stands between `before` and `after`; there is none if
    /// `after` is empty.
    pub fn new(
        folders: &[&Path],
        path: &Path,
        before: String,
        after: &'static str,
    ) -> Option<PartingLine> {
        Some(PartingLine {
            folders: folders.iter().map(|it| c_path(it)).collect::<Option<_>>()?,
            path: c_path(path)?,
            before,
            after,
        })
    }
}

/// A file of counters, and the function that counts in it the number of bytes that were read. The function
/// may only make system calls.
pub struct PartingCount {
    folders: Vec<CString>,
    path: CString,
    add: Box<dyn Fn(File, usize)>,
}

impl PartingCount {
    /// As for `PartingFile`.
    pub fn new(
        folders: &[&Path],
        path: &Path,
        add: Box<dyn Fn(File, usize)>,
    ) -> Option<PartingCount> {
        Some(PartingCount {
            folders: folders.iter().map(|it| c_path(it)).collect::<Option<_>>()?,
            path: c_path(path)?,
            add,
        })
    }
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

static PARTING: AtomicPtr<Parting> = AtomicPtr::new(ptr::null_mut());
static BYTES_READ: AtomicUsize = AtomicUsize::new(0);
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// After the deadline the handler itself has this long; then the process ends in any case.
const GRACE: Duration = Duration::from_millis(250);

/// From now on, this is left behind. The one before is never freed, since the handler may just use it.
pub fn leave(parting: Parting) {
    PARTING.store(Box::into_raw(Box::new(parting)), Ordering::SeqCst);
}

/// How much of the input was read so far.
pub fn note_read(bytes: usize) {
    BYTES_READ.store(bytes, Ordering::Relaxed);
}

/// Ends this process after `limit`.
pub fn start(limit: Duration) {
    // SAFETY: the set and the handler are valid; the calls only change numbers in the kernel. A
    // parent may have blocked the signal, and a blocked signal is inherited.
    unsafe {
        handle(libc::SIGALRM, end);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGALRM);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
    }
    set_timer(limit, GRACE);
}

/// Takes the deadline back.
pub fn stop() {
    set_timer(Duration::ZERO, Duration::ZERO);
}

/// No signal changes the exit code of this process from now on. After those that ask it to end or that
/// report a limit it goes on; after those that a defect causes it ends like at the deadline.
/// Programs that it starts do not inherit this.
pub fn outlive_signals() {
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGXCPU,
        libc::SIGXFSZ,
    ] {
        handle(signal, go_on);
    }
    for signal in [libc::SIGABRT, libc::SIGBUS, libc::SIGSEGV] {
        handle(signal, end);
    }
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: all zeroes is a valid sigaction, and the handlers make only calls that are allowed
    // in one. `SA_NODEFER`, because the timer must end a handler that hangs.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_NODEFER;
        // After an overflow of the stack there is only the small one that std has set up.
        if matches!(signal, libc::SIGSEGV | libc::SIGBUS) {
            action.sa_flags |= libc::SA_ONSTACK;
        }
        libc::sigaction(signal, &raw const action, ptr::null_mut());
    }
}

fn set_timer(first: Duration, then: Duration) {
    let time = |it: Duration| libc::timeval {
        tv_sec: it.as_secs() as libc::time_t,
        tv_usec: libc::suseconds_t::from(it.subsec_micros() as i32),
    };
    let timer = libc::itimerval {
        it_value: time(first),
        it_interval: time(then),
    };
    // SAFETY: the struct outlives the call.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

extern "C" fn go_on(_: libc::c_int) {}

extern "C" fn end(_: libc::c_int) {
    // SAFETY: a parting is never freed, and `write` makes only system calls that are allowed in a
    // signal handler, as does `_exit`.
    unsafe {
        let parting = PARTING.load(Ordering::SeqCst).as_ref();
        if !IS_ENDING.swap(true, Ordering::SeqCst)
            && let Some(parting) = parting
        {
            parting.write();
        }
        libc::_exit(parting.map_or(0, |it| it.exit_code));
    }
}

impl Parting {
    /// The answer comes first: what hangs is probably a disk.
    unsafe fn write(&self) {
        // SAFETY: see each function.
        unsafe {
            print(self.answer);
            let written = self.file.as_ref().is_some_and(|it| it.write());
            if written {
                return;
            }
            if let Some(count) = &self.count {
                count.write();
            }
            if let Some(line) = &self.line {
                line.write();
            }
        }
    }
}

/// Prints to standard output if that does not block.
unsafe fn print(answer: &str) {
    let mut poll = libc::pollfd {
        fd: libc::STDOUT_FILENO,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: one pollfd, which outlives the call; the pointer and length are those of a string.
    unsafe {
        if !answer.is_empty() && libc::poll(&raw mut poll, 1, 0) > 0 {
            libc::write(libc::STDOUT_FILENO, answer.as_ptr().cast(), answer.len());
        }
    }
}

impl PartingFile {
    /// Whether the file is complete.
    unsafe fn write(&self) -> bool {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NOFOLLOW;
        // SAFETY: the paths end in a zero byte and outlive the calls.
        unsafe {
            make(&self.folders);
            let file = libc::open(self.partial.as_ptr(), flags, 0o600);
            file >= 0
                && write_all(file, self.bytes)
                && libc::rename(self.partial.as_ptr(), self.path.as_ptr()) == 0
        }
    }
}

impl PartingCount {
    unsafe fn write(&self) {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        // SAFETY: the path ends in a zero byte and outlives the call; the descriptor is new.
        unsafe {
            make(&self.folders);
            let file = libc::open(self.path.as_ptr(), flags, 0o600);
            if file >= 0 {
                (self.add)(File::from_raw_fd(file), BYTES_READ.load(Ordering::Relaxed));
            }
        }
    }
}

impl PartingLine {
    unsafe fn write(&self) {
        let mut line = [0; 512];
        let mut length = 0;
        let mut push = |bytes: &[u8]| {
            let count = bytes.len().min(line.len() - length);
            line[length..length + count].copy_from_slice(&bytes[..count]);
            length += count;
        };
        push(self.before.as_bytes());
        if !self.after.is_empty() {
            let mut digits = [b'0'; 20];
            let mut at = digits.len();
            let mut number = BYTES_READ.load(Ordering::Relaxed);
            while number > 0 || at == digits.len() {
                at -= 1;
                digits[at] = b'0' + (number % 10) as u8;
                number /= 10;
            }
            push(&digits[at..]);
            push(self.after.as_bytes());
        }
        push(b"\n");
        let flags =
            libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        // SAFETY: the path ends in a zero byte and outlives the call.
        unsafe {
            make(&self.folders);
            let file = libc::open(self.path.as_ptr(), flags, 0o600);
            let _ = file >= 0 && write_all(file, &line[..length]);
        }
    }
}

unsafe fn make(folders: &[CString]) {
    for folder in folders {
        // SAFETY: the path ends in a zero byte. It fails if the folder exists.
        unsafe { libc::mkdir(folder.as_ptr(), 0o700) };
    }
}

unsafe fn write_all(file: libc::c_int, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: the pointer and length are those of the slice.
        let count = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count @ 1..) => bytes = &bytes[count..],
            _ => return false,
        }
    }
    true
}
