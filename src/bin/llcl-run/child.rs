//! How a rank is started: its place in the world, its group, its streams, its processor.

use crate::relay::{Relay, Target};
use crate::{Bind, Options, report};
use llcl::bootstrap::environment;
use llcl::fail;
use llcl::util::cores::PROGRESS_CPUS;
use llcl::util::socket;
use llcl::util::status::{Error, Result};
use llcl::util::thread::spawn_quiet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::ptr;
use std::time::Duration;

/// A rank that was started. When it ends it stays a zombie until [`reap`], so that the kernel does
/// not reuse the numbers of its process and its group.
pub struct Rank {
    pub pid: u32,
    /// Readable when it has ended.
    pub process: OwnedFd,
    pub ended: bool,
}

/// Where the dynamic linker looks.
const SEARCH_PATH: &str = "LD_LIBRARY_PATH";

/// The search path, with the folder of the library beside this launcher appended; None: there is no
/// library beside it. Programs without an RPATH find the library in this way. Programs with a
/// RUNPATH take it as well, so that library and launcher are of one release.
fn libraries() -> Option<OsString> {
    let own = std::env::current_exe().ok()?;
    let folder = own.parent()?.parent()?.join("lib");
    if !folder.join("libllcl.so").exists() {
        return None;
    }
    let mut path = std::env::var_os(SEARCH_PATH).unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(folder);
    Some(path)
}

/// The settings of all ranks.
pub struct Setup {
    launcher: libc::pid_t,
    mask: libc::sigset_t,
    files: libc::rlimit,
    processors: Vec<usize>,
    /// The value of LLCL_PROGRESS_CPUS for the ranks.
    others: Option<String>,
    /// The value of LD_LIBRARY_PATH for the ranks.
    libraries: Option<OsString>,
    guard: RawFd,
}

impl Setup {
    pub fn new(options: &Options, mask: libc::sigset_t, guard: RawFd) -> Result<Setup> {
        let processors = match options.bind {
            Bind::None => Vec::new(),
            Bind::Core => allowed_processors()?,
        };
        let others = others(&processors, options.ranks as usize);
        let files = raise_open_files()?;
        if let Err(e) = socket::process(std::process::id()) {
            fail!(
                ERR_SYSTEM,
                "pidfd_open: {e}; expected Linux 5.3 or newer, and no sandbox without it"
            );
        }
        // SAFETY: getpid has no preconditions.
        let launcher = unsafe { libc::getpid() };
        let libraries = libraries();
        Ok(Setup { launcher, mask, files, processors, others, libraries, guard })
    }

    /// Starts `rank` with its `end` of the hub's sockets.
    pub fn start(
        &self,
        options: &Options,
        rank: u32,
        end: &OwnedFd,
        relay: &mut Relay,
    ) -> io::Result<Rank> {
        let mut command = Command::new(&options.program[0]);
        command.args(&options.program[1..]).process_group(0);
        command.env(environment::RANK, rank.to_string());
        command.env(environment::SIZE, options.ranks.to_string());
        command.env(environment::HUB, end.as_raw_fd().to_string());
        // A rank's group is not the terminal's, so reading the terminal would stop it.
        let from_terminal = rank == 0 && io::stdin().is_terminal();
        command.stdin(match rank {
            0 if from_terminal => Stdio::piped(),
            0 => Stdio::inherit(),
            _ => Stdio::null(),
        });
        if let Some(path) = &self.libraries {
            command.env(SEARCH_PATH, path);
        }
        if let Some(others) = &self.others {
            command.env(PROGRESS_CPUS, others);
        }
        if options.tag_output {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        self.prepare(&mut command, rank, end);
        let mut child = command.spawn()?;
        let process = match socket::process(child.id()) {
            Ok(process) => process,
            Err(e) => {
                discard(&mut child);
                return Err(e);
            }
        };
        if let Err(e) = attach(&mut child, rank, relay) {
            discard(&mut child);
            return Err(e);
        }
        Ok(Rank { pid: child.id(), process, ended: false })
    }

    /// Sets the steps of the new process between fork and exec.
    fn prepare(&self, command: &mut Command, rank: u32, end: &OwnedFd) {
        let (launcher, mask, files) = (self.launcher, self.mask, self.files);
        let processor = match self.processors.as_slice() {
            [] => None,
            all => Some(all[rank as usize % all.len()]),
        };
        let (end, guard) = (end.as_raw_fd(), self.guard);
        let prepare = move || {
            // SAFETY: system calls on integers and on values that this closure owns; all of them
            // are async-signal-safe. `end` is open: the launcher closes it after the spawn.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // The launcher may have died before the line above.
                if libc::getppid() != launcher {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                // The guard gets the group before the program can start a process that would
                // outlive the launcher. If the guard was killed, the write fails, and only the
                // parent-death signal remains.
                let group = libc::getpid();
                let size = mem::size_of_val(&group);
                libc::send(guard, (&raw const group).cast(), size, libc::MSG_NOSIGNAL);
                let end = BorrowedFd::borrow_raw(end);
                socket::set_close_on_exec(end, false)?;
                if let Some(processor) = processor {
                    let mut set: libc::cpu_set_t = mem::zeroed();
                    libc::CPU_SET(processor, &mut set);
                    check(libc::sched_setaffinity(0, mem::size_of_val(&set), &set))?;
                }
                check(libc::setrlimit(libc::RLIMIT_NOFILE, &files))?;
                check(libc::sigprocmask(libc::SIG_SETMASK, &mask, ptr::null_mut()))
            }
        };
        // SAFETY: the closure allocates nothing and takes no lock: an error made of an errno is
        // plain data.
        unsafe { command.pre_exec(prepare) };
    }
}

/// Kills a child that could not become a rank.
fn discard(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn check(answer: i32) -> io::Result<()> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Connects the streams that are pipes.
fn attach(child: &mut Child, rank: u32, relay: &mut Relay) -> io::Result<()> {
    if let Some(stdout) = child.stdout.take() {
        relay.add(rank, Target::Out, stdout.into())?;
    }
    if let Some(stderr) = child.stderr.take() {
        relay.add(rank, Target::Err, stderr.into())?;
    }
    if let Some(stdin) = child.stdin.take() {
        let copy = move || copy_terminal(stdin);
        if let Err(e) = spawn_quiet("llcl-stdin", 128 << 10, copy) {
            report(&format!("rank 0 gets no input: {e}"));
        }
    }
    Ok(())
}

/// Copies terminal input to rank 0, until either ends.
fn copy_terminal(mut to: ChildStdin) {
    // SAFETY: descriptor 0 is a terminal, as was checked; it is never closed by this program.
    let from = unsafe { BorrowedFd::borrow_raw(0) };
    let Ok(from) = from.try_clone_to_owned() else { return };
    let mut from = File::from(from);
    let mut bytes = [0; 4096];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(size) => {
                if to.write_all(&bytes[..size]).is_err() {
                    return;
                }
            }
            // In the background of the terminal: with the signal blocked, the read fails instead.
            Err(e) if e.raw_os_error() == Some(libc::EIO) => {
                std::thread::sleep(Duration::from_millis(500));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// How a rank has ended: the exit code of llcl-run for it, and a text. None: it has not ended.
pub fn outcome(pid: u32) -> Option<(u8, String)> {
    // SAFETY: `info` is valid for the write of this call. WNOWAIT: the zombie stays.
    let info = unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        if libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) != 0 {
            let gone = io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD);
            return gone.then(|| (1, "has ended, its exit status is unknown".to_owned()));
        }
        info
    };
    // SAFETY: waitid has filled the members of a child's report, or left all at zero.
    let (reported, status) = unsafe { (info.si_pid(), info.si_status()) };
    match (reported, info.si_code) {
        (0, _) => None,
        (_, libc::CLD_EXITED) => Some((status as u8, format!("ended with exit code {status}"))),
        _ => {
            let name = crate::signals::describe(status);
            Some((128u8.wrapping_add(status as u8), format!("was killed by signal {name}")))
        }
    }
}

/// Sends a signal to a rank and to all processes of its group.
pub fn signal(rank: &Rank, signal: i32) {
    // SAFETY: killpg takes integers only; the group's number is held by the unreaped rank.
    unsafe { libc::killpg(rank.pid as libc::pid_t, signal) };
}

/// Lets the stopped processes of a rank's group go on, so that they handle the signal that asks
/// them to end.
pub fn resume(rank: &Rank) {
    signal(rank, libc::SIGCONT);
}

/// Frees the number of a rank that has ended.
pub fn reap(rank: &Rank) {
    // SAFETY: waits for a child of this process that has ended; no status is asked for.
    unsafe { libc::waitpid(rank.pid as libc::pid_t, ptr::null_mut(), 0) };
}

/// The processors that no rank gets. If there are none, it is all of them, and each rank's library
/// excludes the rank's own processor. None: the user has set the variable, or there is only one
/// processor.
fn others(processors: &[usize], ranks: usize) -> Option<String> {
    if std::env::var_os(PROGRESS_CPUS).is_some_and(|set| !set.is_empty()) || processors.len() < 2 {
        return None;
    }
    let left = match processors.get(ranks..) {
        Some(left) if !left.is_empty() => left,
        _ => processors,
    };
    Some(left.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
}

fn allowed_processors() -> Result<Vec<usize>> {
    // SAFETY: `set` is valid for the write of its own size; CPU_ISSET reads inside it.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        if libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) != 0 {
            return Err(Error::system("sched_getaffinity"));
        }
        Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect())
    }
}

/// Raises the limit on open files: the hub needs some descriptors per rank. Returns the limit as it
/// was, which the ranks get.
fn raise_open_files() -> Result<libc::rlimit> {
    // SAFETY: the limits are valid for the reads and writes of these calls.
    unsafe {
        let mut original: libc::rlimit = mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut original) != 0 {
            return Err(Error::system("getrlimit"));
        }
        let raised = libc::rlimit { rlim_cur: original.rlim_max, ..original };
        // Where this is refused, small jobs work all the same.
        libc::setrlimit(libc::RLIMIT_NOFILE, &raised);
        Ok(original)
    }
}

impl AsFd for Rank {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}
