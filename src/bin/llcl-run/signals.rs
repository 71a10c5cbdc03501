//! Signals as a descriptor to poll, and their names.

use llcl::util::status::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::ptr;

/// The signals that `llcl-run` passes on to the ranks.
const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Those of them that ask a process to end.
pub const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// A descriptor that reads the forwarded signals, which are blocked.
pub struct Signals {
    file: File,
    /// Reads SIGCHLD, which is blocked, too.
    children: File,
    /// The signal mask of before, which the ranks get.
    pub original: libc::sigset_t,
}

impl Signals {
    pub fn take() -> Result<Signals> {
        // The process that started llcl-run may ignore it, and then the kernel would not keep the
        // ends of the ranks.
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        // SAFETY: the sets are filled by the calls before they are read, and live through them.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            let mut original: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in FORWARDED {
                libc::sigaddset(&mut set, signal);
            }
            let mut child: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&mut child);
            libc::sigaddset(&mut child, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut original);
            libc::pthread_sigmask(libc::SIG_BLOCK, &child, ptr::null_mut());
            Ok(Signals { file: reader(&set)?, children: reader(&child)?, original })
        }
    }

    /// The next signal that has arrived, if any.
    pub fn next(&mut self) -> Option<i32> {
        read_one(&mut self.file)
    }

    /// Readable when a child may have stopped.
    pub fn of_children(&self) -> BorrowedFd<'_> {
        self.children.as_fd()
    }

    /// The children that have stopped since the last call, each with the signal that stopped it.
    pub fn stopped(&mut self) -> Vec<(u32, i32)> {
        while read_one(&mut self.children).is_some() {}
        std::iter::from_fn(next_stopped).collect()
    }
}

/// A descriptor that reads these signals.
fn reader(set: &libc::sigset_t) -> Result<File> {
    // SAFETY: `set` is valid for reads.
    let fd = unsafe { libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(Error::system("signalfd"));
    }
    // SAFETY: the kernel has just made it and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn read_one(from: &mut File) -> Option<i32> {
    let mut record = [0; mem::size_of::<libc::signalfd_siginfo>()];
    from.read_exact(&mut record).ok()?;
    // ssi_signo is the first member.
    let number = record.first_chunk().copied().map(u32::from_ne_bytes)?;
    i32::try_from(number).ok()
}

fn next_stopped() -> Option<(u32, i32)> {
    // SAFETY: `info` is valid for the write of this call, which fills the members of a child's
    // report, or leaves all at zero. Without WEXITED no child is reaped.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let done = libc::waitid(libc::P_ALL, 0, &mut info, libc::WSTOPPED | libc::WNOHANG);
        (done == 0 && info.si_pid() != 0).then(|| (info.si_pid() as u32, info.si_status()))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Blocks every signal in this thread.
pub fn block_all() {
    // SAFETY: the set is filled before it is used; the old mask is not asked for.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, ptr::null_mut());
    }
}

/// "9 (SIGKILL)".
pub fn describe(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTTIN => "SIGTTIN",
        libc::SIGTTOU => "SIGTTOU",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return signal.to_string(),
    };
    format!("{signal} ({name})")
}
