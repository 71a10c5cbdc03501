//! Copies by the kernel between this process and a peer's: `process_vm_readv`, `process_vm_writev`.

use crate::fail;
use crate::transport::{PAIRS, Pair};
use crate::util::status::{Error, Result, Status};

/// The owner of the memory. The kernel finds a process by the number of any of its threads that has
/// not ended.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The number of the process, which is that of its first thread.
    pub process: u32,
    /// A thread that exists as long as the rank. The first thread may have ended by pthread_exit.
    pub resident: u32,
}

/// Copies `theirs` in `owner` to `ours`, of each pair.
///
/// # Safety
/// Our sides are valid for writing.
pub unsafe fn read(owner: Owner, pairs: &[Pair]) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe { copy(owner, pairs, libc::process_vm_readv, "process_vm_readv") }
}

/// Copies `ours` to `theirs` in `owner`, of each pair.
///
/// # Safety
/// Our sides are valid for reading.
pub unsafe fn write(owner: Owner, pairs: &[Pair]) -> Result<()> {
    // SAFETY: as the caller promises; the call only reads.
    unsafe { copy(owner, pairs, libc::process_vm_writev, "process_vm_writev") }
}

/// Permits other processes of this user to copy if Yama's `ptrace_scope` is 1 (Ubuntu's default):
/// only ancestors may then copy, unless the process says otherwise. If the kernel refuses, peers
/// find that out and send messages.
pub fn permit() {
    let scope = std::fs::read("/proc/sys/kernel/yama/ptrace_scope");
    if scope.is_ok_and(|scope| scope.first() == Some(&b'1')) {
        // SAFETY: plain numbers; the call only changes who may trace this process.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    }
}

/// Tries whether the kernel copies 16 bytes from `theirs` in `owner`, and whether they equal those
/// at `expected`. Returns 0, or the errno of the refusal.
///
/// # Safety
/// `expected` is valid for reading 16 bytes.
pub unsafe fn probe(owner: Owner, theirs: u64, expected: *const u8) -> i32 {
    let mut seen = [0u8; 16];
    for thread in [owner.process, owner.resident] {
        let local = libc::iovec { iov_base: seen.as_mut_ptr().cast(), iov_len: seen.len() };
        let remote = libc::iovec { iov_base: theirs as *mut libc::c_void, iov_len: seen.len() };
        // SAFETY: one vector on each side; the kernel checks the remote one.
        let count =
            unsafe { libc::process_vm_readv(thread as libc::pid_t, &local, 1, &remote, 1, 0) };
        if count == seen.len() as isize {
            // SAFETY: as the caller promises.
            let same = seen == unsafe { expected.cast::<[u8; 16]>().read() };
            // The bytes differ: the number means another process in our namespace.
            return if same { 0 } else { libc::ESRCH };
        }
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        if errno != libc::ESRCH {
            return errno;
        }
    }
    libc::ESRCH
}

/// Tries whether a sandbox refuses only writes: the kernel allows both directions or none, but a
/// filter sees the call. It copies no bytes, so that nothing is written. Returns 0, or the errno of
/// the refusal.
pub fn probe_write(owner: Owner) -> i32 {
    let none = std::ptr::null();
    // SAFETY: no vectors on either side.
    let count =
        unsafe { libc::process_vm_writev(owner.process as libc::pid_t, none, 0, none, 0, 0) };
    match std::io::Error::last_os_error().raw_os_error() {
        Some(errno @ (libc::EPERM | libc::ENOSYS)) if count < 0 => errno,
        _ => 0,
    }
}

type Call = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> isize;

/// Copies all pairs. The kernel moves at most about 2 GiB in a call and may stop early, also inside
/// a pair, so the call is repeated. ERR_UNSUPPORTED: the kernel refuses the call, and nothing was
/// copied.
unsafe fn copy(owner: Owner, pairs: &[Pair], call: Call, name: &str) -> Result<()> {
    let mut thread = owner.process;
    let (mut at, mut within, mut begun) = (0, 0, false);
    // A single pair, which most calls have, needs no list.
    let mut one;
    let mut many = [Vec::new(), Vec::new()];
    loop {
        while pairs.get(at).is_some_and(|pair| within == pair.size) {
            (at, within) = (at + 1, 0);
        }
        let left = &pairs[at..pairs.len().min(at + PAIRS)];
        let sides = |(nth, pair): (usize, &Pair)| {
            let skip = if nth == 0 { within } else { 0 };
            let side = |base: *mut u8| libc::iovec {
                iov_base: base.wrapping_add(skip).cast(),
                iov_len: pair.size - skip,
            };
            [side(pair.ours), side(pair.theirs as *mut u8)]
        };
        let [ours, theirs] = match left {
            [] => return Ok(()),
            [pair] => {
                one = sides((0, pair)).map(|side| [side]);
                [&one[0][..], &one[1][..]]
            }
            _ => {
                for (which, list) in many.iter_mut().enumerate() {
                    list.clear();
                    list.extend(left.iter().enumerate().map(|pair| sides(pair)[which]));
                }
                [&many[0][..], &many[1][..]]
            }
        };
        let (pid, count) = (thread as libc::pid_t, left.len() as libc::c_ulong);
        // SAFETY: as many vectors on each side; the local ones are valid as the caller promises,
        // and the kernel checks the remote ones.
        match unsafe { call(pid, ours.as_ptr(), count, theirs.as_ptr(), count, 0) } {
            moved if moved > 0 => {
                begun = true;
                let mut moved = moved as usize;
                while moved > 0 && at < pairs.len() {
                    let step = moved.min(pairs[at].size - within);
                    (moved, within) = (moved - step, within + step);
                    if within == pairs[at].size {
                        (at, within) = (at + 1, 0);
                    }
                }
            }
            _ => match std::io::Error::last_os_error() {
                errno if errno.raw_os_error() == Some(libc::ESRCH) => {
                    if thread == owner.resident || owner.resident == 0 {
                        fail!(ERR_PEER_DEAD, "process {} has ended", owner.process)
                    }
                    thread = owner.resident;
                }
                errno if errno.raw_os_error() == Some(libc::EFAULT) => {
                    // SAFETY: the pair is that of the failed call, which has copied nothing.
                    return Err(unsafe { fault(owner, &pairs[at], within, name) });
                }
                errno
                    if !begun
                        && matches!(errno.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) =>
                {
                    fail!(ERR_UNSUPPORTED, "{name}: {errno}")
                }
                _ => return Err(Error::system(name)),
            },
        }
    }
}

/// The error of a copy whose first byte, at `within` of a pair, one of the two sides refuses. The
/// kernel does not say which, so this tries ours by itself.
///
/// # Safety
/// The copy may change our side if it is a read.
#[cold]
unsafe fn fault(owner: Owner, pair: &Pair, within: usize, name: &str) -> Error {
    let reads = name == "process_vm_readv";
    let (mut scratch, ours) = (0u8, pair.ours.wrapping_add(within));
    // A read writes our side, so the byte is copied onto itself.
    let to = if reads { ours } else { &raw mut scratch };
    let [to, from] = [to, ours].map(|at| libc::iovec { iov_base: at.cast(), iov_len: 1 });
    // SAFETY: one vector on each side, and the kernel checks both; a read may write our side.
    let count = unsafe { libc::process_vm_readv(libc::getpid(), &to, 1, &from, 1, 0) };
    let fault = std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT);
    let failed = |status, text: String| Error::new(status, text);
    if count < 0 && fault {
        let what = if reads { "written" } else { "read" };
        let text = format!("memory at {ours:p} of this rank does not exist, or may not be {what}");
        return failed(Status::ERR_INVALID, text);
    }
    let what = if reads { "read" } else { "written" };
    let text = format!(
        "memory at {:#x}+{within} of process {} is not there any more, or may not be {what}",
        pair.theirs, owner.process
    );
    failed(Status::ERR_KEY, text)
}
