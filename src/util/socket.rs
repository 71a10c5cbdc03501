//! Wrappers of system calls: local packet sockets, which may carry descriptors, `poll`, eventfds
//! and signals.

use crate::util::status::{Error, Result};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Both ends of a connection without a name, close-on-exec, that keeps packet boundaries.
pub fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for the two descriptors that the kernel writes.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(Error::system("socketpair"));
    }
    // SAFETY: the kernel has just made both descriptors and nothing else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Whether this is an end of a connection as [`pair`] makes them.
pub fn is_local_seqpacket(fd: BorrowedFd<'_>) -> bool {
    let option = |name| {
        let mut value: libc::c_int = 0;
        let mut size = mem::size_of_val(&value) as libc::socklen_t;
        // SAFETY: `value` and `size` are valid for the writes of this call.
        let done = unsafe {
            let value = (&raw mut value).cast();
            libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, name, value, &mut size)
        };
        (done == 0).then_some(value)
    };
    option(libc::SO_DOMAIN) == Some(libc::AF_UNIX)
        && option(libc::SO_TYPE) == Some(libc::SOCK_SEQPACKET)
}

/// Sets or clears close-on-exec. Async-signal-safe: also used between fork and exec.
pub fn set_close_on_exec(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let flag = if on { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: F_SETFD takes an integer and touches no memory of ours.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, flag) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Makes reads and writes of this descriptor answer `WouldBlock` instead of waiting.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: F_GETFL and F_SETFL take integers and touch no memory of ours.
    let done = unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Room for the control message that carries one descriptor, aligned as `cmsghdr` wants it.
#[repr(C, align(8))]
struct Control([u8; 32]);

/// How long a send is tried again while too many descriptors of this user are in flight: sent, and
/// not yet received, by all processes. The kernel's limit for a user is the sender's limit of open
/// files; it does not tell when there is room again.
pub const IN_FLIGHT_PATIENCE: Duration = Duration::from_secs(10);
/// The time between two tries.
pub const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(2);

/// Whether the error says that too many descriptors are in flight.
pub fn is_in_flight(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ETOOMANYREFS)
}

/// Whether [`send`] may wait for room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Wait until the packet fits, and IN_FLIGHT_PATIENCE until its descriptor may be in flight.
    Wait,
    /// Answer `WouldBlock` when it does not fit.
    Now,
}

/// Sends one packet, with a descriptor if there is one. Never raises SIGPIPE.
pub fn send(
    to: BorrowedFd<'_>,
    bytes: &[u8],
    fd: Option<BorrowedFd<'_>>,
    room: Room,
) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 32]);
    // SAFETY: all-zero is a valid msghdr (null pointers, zero lengths).
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if let Some(fd) = fd {
        message.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: `control` is aligned and larger than CMSG_SPACE of one descriptor, so the header
        // and the descriptor written behind it stay inside; CMSG_FIRSTHDR is not null for it.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(mem::size_of::<i32>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(mem::size_of::<i32>() as u32) as _;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(fd.as_raw_fd());
        }
    }
    let wait = if room == Room::Now { libc::MSG_DONTWAIT } else { 0 };
    let mut until = None;
    loop {
        // SAFETY: `message` points to `part` and `control`, which live until the call returns; the
        // kernel only reads through them.
        let sent = unsafe { libc::sendmsg(to.as_raw_fd(), &message, libc::MSG_NOSIGNAL | wait) };
        if sent >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if is_in_flight(&error) && room == Room::Wait {
            let now = Instant::now();
            if now >= *until.get_or_insert(now + IN_FLIGHT_PATIENCE) {
                return Err(error);
            }
            std::thread::sleep(IN_FLIGHT_PAUSE);
        } else if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Receives one packet if one is there (else `WouldBlock`). Returns its size, which is 0 at the end
/// of the connection, and the descriptor that came with it, close-on-exec.
pub fn receive(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    loop {
        match receive_once(from, buffer) {
            // The kernel answers this once if the peer has closed its end without reading all
            // packets. The packets that it had sent are still queued.
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => continue,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => return other,
        }
    }
}

fn receive_once(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = Control([0; 32]);
    // SAFETY: all-zero is a valid msghdr (null pointers, zero lengths).
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    // CMSG_LEN and not CMSG_SPACE: the padding would have room for a second descriptor.
    // SAFETY: CMSG_LEN only computes.
    message.msg_controllen = unsafe { libc::CMSG_LEN(mem::size_of::<i32>() as u32) } as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: `message` points to `part` (over `buffer`) and `control`, valid for the writes of
    // this call with the lengths given.
    let got = unsafe { libc::recvmsg(from.as_raw_fd(), &mut message, flags) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut fd = None;
    // SAFETY: the kernel has filled `control` up to msg_controllen; CMSG_FIRSTHDR answers null or
    // a header inside it, and a header of SCM_RIGHTS is followed by a descriptor that is now ours.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        if !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
        {
            let raw = libc::CMSG_DATA(header).cast::<i32>().read_unaligned();
            fd = Some(OwnedFd::from_raw_fd(raw));
        }
    }
    Ok((got as usize, fd))
}

/// A descriptor and its events, for [`poll`].
pub fn interest(fd: BorrowedFd<'_>, events: i16) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }
}

/// Sleeps until one of `waits` is ready or `timeout_ms` is over (-1: without limit). After a signal
/// it returns 0.
pub fn poll(waits: &mut [libc::pollfd], timeout_ms: i32) -> Result<usize> {
    // SAFETY: `waits` is valid for reads and writes of its own length.
    let ready = unsafe { libc::poll(waits.as_mut_ptr(), waits.len() as libc::nfds_t, timeout_ms) };
    match ready {
        0.. => Ok(ready as usize),
        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(0),
        _ => Err(Error::system("poll")),
    }
}

/// Like poll(), with a limit that may be shorter than a millisecond.
pub fn poll_for(waits: &mut [libc::pollfd], limit: Duration) -> Result<usize> {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
    };
    let count = waits.len() as libc::nfds_t;
    // SAFETY: as in poll(); the limit is read only, and no signal mask is given.
    let ready = unsafe { libc::ppoll(waits.as_mut_ptr(), count, &limit, std::ptr::null()) };
    match ready {
        0.. => Ok(ready as usize),
        _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(0),
        _ => Err(Error::system("ppoll")),
    }
}

/// Ends a connection, also for processes that have copies of this end.
pub fn shut_down(end: BorrowedFd<'_>) {
    // SAFETY: shutdown takes integers only. It fails only where the connection has ended.
    unsafe { libc::shutdown(end.as_raw_fd(), libc::SHUT_RDWR) };
}

/// A descriptor that becomes readable by [`Wake::wake`], and stays so until [`Wake::clear`].
pub struct Wake(OwnedFd);

impl Wake {
    /// A descriptor that is not readable.
    pub fn new() -> Result<Wake> {
        // SAFETY: eventfd takes integers only.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(Error::system("eventfd"));
        }
        // SAFETY: the kernel has just made it and nothing else owns it.
        Ok(Wake(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes it readable.
    pub fn wake(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from `one`. It can fail only by an overflow, and then the
        // descriptor is readable already.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Makes it unreadable until the next wake().
    pub fn clear(&self) {
        take_count(&self.0);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes a descriptor that counts, as an eventfd or a timerfd, unreadable.
fn take_count(fd: &OwnedFd) {
    let mut count = 0u64;
    // SAFETY: eight bytes are written to `count`. If it is not readable, the read fails and changes
    // nothing.
    unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// A descriptor that becomes readable when a time has passed, once.
pub struct Timer(OwnedFd);

impl Timer {
    /// A timer that is not set.
    pub fn new() -> Result<Timer> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: timerfd_create takes integers only.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if fd < 0 {
            return Err(Error::system("timerfd_create"));
        }
        // SAFETY: the kernel has just made it and nothing else owns it.
        Ok(Timer(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes it readable after this time, which is less than a second.
    pub fn set(&self, after: Duration) {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let after =
            libc::timespec { tv_sec: 0, tv_nsec: libc::c_long::from(after.subsec_nanos() as i32) };
        let setting = libc::itimerspec { it_interval: never, it_value: after };
        // SAFETY: `setting` is valid for reads; the old setting is not asked for. It cannot fail.
        unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &setting, std::ptr::null_mut()) };
    }

    /// Makes it unreadable until it is set again.
    pub fn clear(&self) {
        take_count(&self.0);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A descriptor that becomes readable when the process `pid` has ended.
pub fn process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes integers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Kills a process, by a descriptor of process(). It does nothing if the process has ended.
pub fn kill(process: BorrowedFd<'_>) {
    signal(process, libc::SIGKILL);
}

/// Sends a signal to a process, by a descriptor of process(). It does nothing if the process has
/// ended.
pub fn signal(process: BorrowedFd<'_>, signal: i32) {
    let no_info = std::ptr::null_mut::<libc::siginfo_t>();
    // SAFETY: pidfd_send_signal takes integers and a null pointer.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, no_info, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_bounds_and_carry_descriptors() {
        let (a, b) = pair().unwrap();
        let mut buffer = [0; 16];
        let none = receive(b.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);

        let wake = Wake::new().unwrap();
        send(a.as_fd(), b"one", None, Room::Wait).unwrap();
        send(a.as_fd(), b"three", Some(wake.as_fd()), Room::Now).unwrap();
        let (size, fd) = receive(b.as_fd(), &mut buffer).unwrap();
        assert_eq!((&buffer[..size], fd.is_none()), (&b"one"[..], true));
        let (size, fd) = receive(b.as_fd(), &mut buffer).unwrap();
        assert_eq!(&buffer[..size], b"three");

        let fd = fd.unwrap();
        assert_eq!(poll(&mut [interest(fd.as_fd(), libc::POLLIN)], 0).unwrap(), 0);
        wake.wake();
        assert_eq!(poll(&mut [interest(fd.as_fd(), libc::POLLIN)], 0).unwrap(), 1);
        // SAFETY: F_GETFD touches no memory.
        let flags = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFD) };
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    }

    #[test]
    fn a_last_packet_survives_a_close_with_something_unread() {
        let (a, b) = pair().unwrap();
        send(b.as_fd(), b"never read", None, Room::Wait).unwrap();
        send(a.as_fd(), b"goodbye", None, Room::Wait).unwrap();
        drop(a);
        let mut buffer = [0; 16];
        let (size, _) = receive(b.as_fd(), &mut buffer).unwrap();
        assert_eq!(&buffer[..size], b"goodbye");
        assert_eq!(receive(b.as_fd(), &mut buffer).unwrap().0, 0);
        assert!(send(b.as_fd(), b"to nobody", None, Room::Wait).is_err());
    }

    #[test]
    fn only_local_packet_sockets_are_taken_for_one() {
        let (a, _b) = pair().unwrap();
        assert!(is_local_seqpacket(a.as_fd()));
        assert!(!is_local_seqpacket(Wake::new().unwrap().as_fd()));
        let (stream, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(!is_local_seqpacket(stream.as_fd()));
    }
}
