//! Everything that depends on the operating system: locks, waiting, detaching, signals, file
//! systems.
//!
//! All `unsafe` code of this crate is here, each block around a few system calls; other crates have
//! their own (core: `search/rank.rs`, `search/vectors.rs`, `fault.rs`; foreword-embed:
//! `forward.rs`). Only Linux is tested. The calls are POSIX; where one is not, a comment describes
//! what happens on other systems.
#![expect(unsafe_code, reason = "system calls that std does not offer")]

pub mod deadline;

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use foreword_core::text::if_there;

/// From now on, files that this process creates can be read by the user alone.
pub fn make_files_private() {
    // SAFETY: umask only sets a number in the kernel.
    unsafe { libc::umask(0o077) };
}

/// Takes others' permissions of a file away, if it exists and is ours. Errors are ignored: `doctor`
/// reports a file that stays open.
pub fn close_to_others(file: &Path) {
    if let Ok(metadata) = std::fs::symlink_metadata(file)
        && metadata.is_file()
        && metadata.mode() & 0o077 != 0
    {
        let closed = Permissions::from_mode(metadata.mode() & 0o700);
        let _ = std::fs::set_permissions(file, closed);
    }
}

/// Runs `work` with private files, then restores the umask that was set before.
pub fn keep_umask<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: as above.
    let before = unsafe { libc::umask(0o077) };
    let result = work();
    // SAFETY: as above.
    unsafe { libc::umask(before) };
    result
}

/// The number of the user whose rights this process has.
pub fn effective_user() -> u32 {
    // SAFETY: returns a number and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether some users of this machine have no number here, as in a container without root's rights.
pub fn is_in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let all = ["0", "0", "4294967295"];
    !map.is_empty() && !map.split_whitespace().eq(all)
}

/// A short path to a folder, for sockets, whose paths are short. It holds in this process, which keeps
/// the folder open until it ends. None on systems other than Linux.
pub fn short_path(folder: &Path) -> Option<PathBuf> {
    static OPEN: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());
    if !cfg!(target_os = "linux") {
        return None;
    }
    let mut open = OPEN.lock().ok()?;
    let known = open.iter().position(|(path, _)| path == folder);
    let position = match known {
        Some(position) => position,
        None => {
            open.push((folder.to_owned(), File::open(folder).ok()?));
            open.len() - 1
        }
    };
    let descriptor = open[position].1.as_raw_fd();
    Some(PathBuf::from(format!("/proc/self/fd/{descriptor}")))
}

/// Whether this user may create files in a folder.
pub fn may_write(folder: &Path) -> bool {
    let Ok(folder) = CString::new(folder.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: the string outlives the call.
    unsafe { libc::access(folder.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// The width of the terminal in columns; none if standard output is not a terminal.
pub fn terminal_width() -> Option<usize> {
    // SAFETY: the struct outlives the call, and is only read if it succeeded.
    unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        let status = libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size);
        (status == 0 && size.ws_col > 0).then(|| usize::from(size.ws_col))
    }
}

/// Finds a program by its name on the PATH, or by its path.
pub fn find_program(command: &str) -> Option<PathBuf> {
    let path = Path::new(command);
    if path.components().count() > 1 {
        return path.is_file().then(|| path.to_owned());
    }
    on_path(command).into_iter().next()
}

/// All programs of a name on the PATH, in its order.
pub fn on_path(name: &str) -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .filter(|program| program.is_file())
        .collect()
}

/// The path of the running program, and whether another file has replaced it since. On systems other
/// than Linux a replacement is not noticed.
pub fn program() -> io::Result<(PathBuf, bool)> {
    let path = std::env::current_exe()?;
    // Linux adds this suffix if the file was deleted or replaced.
    let Some(deleted) = path.as_os_str().as_bytes().strip_suffix(b" (deleted)") else {
        return Ok((path, false));
    };
    let path = PathBuf::from(OsStr::from_bytes(deleted));
    let replaced = path.exists();
    Ok((path, replaced))
}

/// A lock on a file, held by the running worker among others. The kernel releases it when the
/// holding process ends.
///
/// It is a POSIX record lock. Its holder can be read without taking the lock, so a hook that checks
/// for a worker never gets in the way of one that starts. It is not inherited, so no child keeps it.
/// Closing *any* descriptor of the file in the holding process releases it, so only this type may
/// open the file.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, or returns the id of the process that holds it (see `holder`).
    pub fn acquire(path: &Path) -> io::Result<Result<Lock, u32>> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        let mut request = whole_file(libc::F_WRLCK);
        // SAFETY: the descriptor is open and the struct outlives the call.
        let taken = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw mut request) };
        if taken == 0 {
            return Ok(Ok(Lock { _file: file }));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EAGAIN) => Ok(Err(holder_of(&file)?.unwrap_or(0))),
            _ => Err(error),
        }
    }

    /// The id of the process that holds the lock; 0 if that process is in another container. Must
    /// not be called by the holding process, whose lock it would release.
    pub fn holder(path: &Path) -> io::Result<Option<u32>> {
        match if_there(File::open(path))? {
            Some(file) => holder_of(&file),
            None => Ok(None),
        }
    }
}

fn holder_of(file: &File) -> io::Result<Option<u32>> {
    let mut request = whole_file(libc::F_WRLCK);
    // SAFETY: the descriptor is open and the struct outlives the call.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut request) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let held = i32::from(request.l_type) != libc::F_UNLCK;
    Ok(held.then(|| u32::try_from(request.l_pid).unwrap_or(0)))
}

fn whole_file(kind: libc::c_int) -> libc::flock {
    // SAFETY: all zeroes is a valid flock: the whole file, from its start.
    let mut request: libc::flock = unsafe { std::mem::zeroed() };
    request.l_type = kind as libc::c_short;
    request.l_whence = libc::SEEK_SET as libc::c_short;
    request
}

/// Reads the available bytes directly into the vector's spare capacity, so that memory pages that
/// are not needed are not touched.
pub fn read_some(descriptor: RawFd, bytes: &mut Vec<u8>) -> io::Result<usize> {
    bytes.reserve((16 << 10).max(bytes.len()));
    let room = bytes.spare_capacity_mut();
    // SAFETY: the pointer and length are those of the vector's spare capacity, and its length
    // grows only by the number of bytes that the kernel wrote.
    unsafe {
        let count = libc::read(descriptor, room.as_mut_ptr().cast(), room.len());
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        bytes.set_len(bytes.len() + count);
        Ok(count)
    }
}

/// Waits until there is something to read.
pub fn wait_readable(descriptor: RawFd) {
    let mut poll = libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, which outlives the call.
    unsafe { libc::poll(&raw mut poll, 1, -1) };
}

/// Whether the process at the other end of a socket belongs to this user. Systems other than Linux
/// use `getpeereid`, which macOS and the BSDs have.
pub fn is_our_user(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: all zeroes is a valid ucred; it and its length outlive the call, and it is only
    // read if it was written. geteuid cannot fail.
    unsafe {
        let mut peer: libc::ucred = std::mem::zeroed();
        let mut length = size_of_val(&peer) as libc::socklen_t;
        let status = libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        );
        status == 0 && peer.uid == libc::geteuid()
    }
    #[cfg(not(target_os = "linux"))]
    // SAFETY: both numbers outlive the call.
    unsafe {
        let (mut user, mut group) = (0, 0);
        let status = libc::getpeereid(stream.as_raw_fd(), &raw mut user, &raw mut group);
        status == 0 && user == libc::geteuid()
    }
}

/// Lowers the priority of this thread. Does nothing on systems other than Linux, where the call
/// would lower that of the whole process.
pub fn lower_our_priority() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a number in the kernel; 0 is the calling thread.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
    }
}

/// Starts a program that outlives this process, and returns its process id. It runs in its own
/// session, with input and output on `/dev/null` and only the given environment.
///
/// It is re-parented when this process ends; a hook ends at once. The program itself then calls
/// `settle_detached` for its directory and descriptors.
pub fn spawn_detached(
    program: &Path,
    arguments: &[&str],
    environment: &[(OsString, OsString)],
) -> io::Result<u32> {
    let null = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let program = CString::new(program.as_os_str().as_bytes()).map_err(null)?;
    let mut argv = vec![program.clone()];
    for argument in arguments {
        argv.push(CString::new(*argument).map_err(null)?);
    }
    let mut envp = Vec::new();
    for (name, value) in environment {
        let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
        envp.push(CString::new(pair).map_err(null)?);
    }
    let pointers = |strings: &[CString]| {
        let mut pointers: Vec<_> = strings.iter().map(|it| it.as_ptr().cast_mut()).collect();
        pointers.push(std::ptr::null_mut());
        pointers
    };
    let (argv_pointers, envp_pointers) = (pointers(&argv), pointers(&envp));

    // SAFETY: the attribute and action objects are initialised before use and
    // destroyed after; every string and pointer array outlives the spawn.
    unsafe {
        let mut attributes: libc::posix_spawnattr_t = std::mem::zeroed();
        let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
        libc::posix_spawnattr_init(&raw mut attributes);
        libc::posix_spawn_file_actions_init(&raw mut actions);
        libc::posix_spawnattr_setflags(
            &raw mut attributes,
            libc::POSIX_SPAWN_SETSID as libc::c_short,
        );
        for descriptor in 0..3 {
            libc::posix_spawn_file_actions_addopen(
                &raw mut actions,
                descriptor,
                c"/dev/null".as_ptr(),
                libc::O_RDWR,
                0,
            );
        }
        let mut pid = 0;
        let failed = libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            &raw const actions,
            &raw const attributes,
            argv_pointers.as_ptr(),
            envp_pointers.as_ptr(),
        );
        libc::posix_spawn_file_actions_destroy(&raw mut actions);
        libc::posix_spawnattr_destroy(&raw mut attributes);
        if failed == 0 {
            Ok(u32::try_from(pid).unwrap_or(0))
        } else {
            Err(io::Error::from_raw_os_error(failed))
        }
    }
}

/// Called by a detached program when it starts: leaves the current directory and closes inherited
/// descriptors. On systems other than Linux the descriptors stay open.
pub fn settle_detached() {
    let _ = std::env::set_current_dir("/");
    #[cfg(target_os = "linux")]
    // SAFETY: called first thing in the process, before it opened anything itself.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
    }
}

/// Prepares a child process that does not outlive this one, in its own process group, with no
/// descriptors open but its pipes.
///
/// Start it from a thread that lives as long as this process: the kernel kills the child when that
/// thread ends. On systems other than Linux the child only sees its input end, and inherits
/// descriptors.
pub fn bind_to_us(command: &mut tokio::process::Command) {
    command.process_group(0);
    #[cfg(target_os = "linux")]
    {
        // SAFETY: getpid cannot fail. The closure runs between fork and exec, where only
        // system calls are allowed, and makes nothing else.
        unsafe {
            let parent = libc::getpid();
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != parent {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                // Marked, not closed: std still needs one of them to report that exec failed.
                let mark = libc::CLOSE_RANGE_CLOEXEC;
                libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, mark);
                Ok(())
            });
        }
    }
}

/// Completes when the parent process has ended: a server must not outlive its client, even if
/// another process holds the client's end of the pipe. Never completes on systems other than Linux.
pub async fn parent_gone() {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::{FromRawFd as _, OwnedFd};
        use tokio::io::{Interest, unix::AsyncFd};
        // SAFETY: the calls touch no memory of ours; the descriptor is new, so it is nobody
        // else's, and the `OwnedFd` that is watched keeps it open.
        let (parent, watched) = unsafe {
            let parent = libc::getppid();
            let descriptor = libc::syscall(libc::SYS_pidfd_open, parent, 0);
            let descriptor = RawFd::try_from(descriptor).ok().filter(|it| *it >= 0);
            let watch = |it| AsyncFd::register_with_interest(it, Interest::READABLE);
            let watched = descriptor.map(|it| watch(OwnedFd::from_raw_fd(it)));
            (parent, watched)
        };
        // SAFETY: as above. The parent may have ended before it was watched.
        if unsafe { libc::getppid() } != parent {
            return;
        }
        if let Some(Ok(watched)) = watched
            && watched.readable().await.is_ok()
        {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Whether a process with this id runs, of whatever user. One that ended and whose parent has not noticed
/// does not run; only Linux can tell.
pub fn is_running(pid: u32) -> bool {
    let Some(id) = i32::try_from(pid).ok().filter(|it| *it > 0) else {
        return false;
    };
    // SAFETY: signal 0 is not sent; kill touches no memory of ours.
    let found = unsafe { libc::kill(id, 0) } == 0
        || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    found && !process_state(pid).starts_with('Z')
}

/// What `/proc/PID/stat` has after the name of the program, which begins with the state of the process.
/// Empty on systems other than Linux.
fn process_state(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    state.to_owned()
}

/// Kills a process that was started by `bind_to_us` or `spawn_detached`, with its whole group.
pub fn kill_group(pid: u32) {
    if let Ok(pid) = i32::try_from(pid)
        && pid > 1
    {
        // SAFETY: kill touches no memory of ours. The kernel does not reuse the id while any
        // process is left in the group.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    }
}

/// Kills processes that a dead worker's agent left behind: a wrapper around the claude CLI dies with
/// the worker, but not the processes that it had started. Each of them has both marks
/// (`NAME=value`) in its environment. Only the holder of the worker's lock may call this, before it
/// starts an agent. Does nothing on systems other than Linux, which have no `/proc`.
pub fn kill_orphans(marks: [&[u8]; 2]) {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|it| it.parse::<i32>().ok()) else {
            continue;
        };
        let environ = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let has = |mark: &[u8]| environ.split(|&byte| byte == 0).any(|it| it == mark);
        let is_other = pid > 1 && pid.unsigned_abs() != std::process::id();
        if is_other && marks.iter().all(|mark| has(mark)) {
            // SAFETY: kill touches no memory of ours.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// The most that is read of a program's output, in bytes.
const OUTPUT_MAX: u64 = 16 << 20;

/// Runs a program with this input and returns its output and how it ended; none if it cannot be run
/// or does not close its output in time. It is killed after its output was read.
pub fn output_within(
    command: &mut Command,
    input: &str,
    limit: Duration,
) -> Option<(String, ExitStatus)> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // The program may end without reading its input.
    let _ = child.stdin.take()?.write_all(input.as_bytes());
    let output = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(OUTPUT_MAX).read_to_end(&mut bytes);
        sender.send(read.map(|_| bytes))
    });
    let bytes = receiver.recv_timeout(limit);
    let _ = child.kill();
    let ended = child.wait().ok()?;
    let text = String::from_utf8_lossy(&bytes.ok()?.ok()?).into_owned();
    Some((text, ended))
}

/// Whether a child process exited with code 0; none while it runs.
pub fn child_ended(pid: u32) -> Option<bool> {
    let pid = i32::try_from(pid).ok()?;
    let mut status = 0;
    // SAFETY: the status outlives the call, and is only read if it was written.
    let ended = unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == pid;
    ended.then_some(status == 0)
}

/// Whether a process is stopped by a signal, so that it keeps its locks and does nothing. Always
/// false on systems other than Linux.
pub fn is_halted(pid: u32) -> bool {
    process_state(pid).starts_with(['T', 't'])
}

/// Whether a process runs the same program file as this one. Always false on systems other than
/// Linux, where each running worker is taken for one of another version.
pub fn runs_this_program(pid: u32) -> bool {
    let file = |of: &str| {
        let file = std::fs::metadata(format!("/proc/{of}/exe")).ok()?;
        Some((file.dev(), file.ino()))
    };
    file("self").is_some_and(|this| file(&pid.to_string()) == Some(this))
}

/// Sends a process the signal to end.
pub fn terminate(pid: u32) -> io::Result<()> {
    // 0 would signal our whole process group; `Lock::holder` returns it for a process in another
    // container.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0);
    let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: kill touches no memory of ours; the caller took the pid from a lock's holder.
    let sent = unsafe { libc::kill(pid, libc::SIGTERM) };
    if sent == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The name of the network or synced file system that a directory is on, where SQLite's write-ahead
/// log is not safe; none if it is safe.
pub fn unsafe_filesystem(path: &Path) -> Option<&'static str> {
    network_filesystem(path).or_else(|| synced_folder(path))
}

/// The name of the program that copies a folder to other machines, file by file.
fn synced_folder(path: &Path) -> Option<&'static str> {
    let named = path.components().find_map(|part| {
        let name = part.as_os_str().to_str()?;
        match name {
            "Dropbox" => Some("Dropbox"),
            "Google Drive" | "GoogleDrive" | "My Drive" => Some("Google Drive"),
            "iCloud Drive" | "Mobile Documents" => Some("iCloud Drive"),
            "Nextcloud" => Some("Nextcloud"),
            _ if name == "OneDrive" || name.starts_with("OneDrive - ") => Some("OneDrive"),
            _ => None,
        }
    });
    // Syncthing puts this folder into each folder that it copies.
    let marked = || path.ancestors().any(|dir| dir.join(".stfolder").exists());
    named.or_else(|| marked().then_some("Syncthing"))
}

/// The free bytes on the file system of a directory.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the struct outlives the call, and is only read if it succeeded.
    let stat = unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut stat) == 0).then_some(stat)
    }?;
    #[expect(clippy::useless_conversion, reason = "narrower on some systems")]
    Some(u64::from(stat.f_bavail) * u64::from(stat.f_frsize))
}

#[cfg(target_os = "linux")]
fn network_filesystem(path: &Path) -> Option<&'static str> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the struct outlives the call, and is only read if it succeeded.
    let kind = unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        (libc::statfs(path.as_ptr(), &raw mut stat) == 0).then_some(stat.f_type)
    }?;
    match kind {
        0x6969 => Some("NFS"),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => Some("SMB"),
        0x0102_1997 => Some("9p"),
        0x5346_414f => Some("AFS"),
        0x00c3_6400 => Some("Ceph"),
        _ => None,
    }
}

/// On systems other than Linux no network file system is recognised.
#[cfg(not(target_os = "linux"))]
fn network_filesystem(_path: &Path) -> Option<&'static str> {
    None
}
