//! Local packet sockets by which processes connect that have no common launcher. A socket has a
//! name in the kernel's abstract name space, which needs no file. Every process of the machine can
//! use such a name, so each end checks the user of the other end.

use crate::fail;
use crate::util::socket::process;
use crate::util::status::{Error, Result};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Random bytes that only the ranks of a world know.
pub type Secret = [u8; 16];

/// A new secret from the kernel.
pub fn secret() -> Result<Secret> {
    let mut bytes = Secret::default();
    // SAFETY: `bytes` has room for as many bytes as are asked for.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match usize::try_from(got) {
        Ok(got) if got == bytes.len() => Ok(bytes),
        _ => Err(Error::system("getrandom")),
    }
}

/// The user of this process.
pub fn user() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

fn socket(flags: i32) -> Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags;
    // SAFETY: socket takes integers only.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(Error::system("socket"));
    }
    // SAFETY: the kernel has just made it and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The address of a name, and its length.
fn address(name: &Secret) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: all-zero is a valid address.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The first byte is 0: the name is one of the abstract space.
    let text =
        "llcl-".bytes().chain(name.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    let mut length = mem::offset_of!(libc::sockaddr_un, sun_path) + 1;
    for (place, byte) in address.sun_path[1..].iter_mut().zip(text) {
        *place = byte as libc::c_char;
        length += 1;
    }
    (address, length as libc::socklen_t)
}

/// Makes a socket that listens under `name`; accept() on it does not block.
pub fn listen(name: &Secret, backlog: u32) -> Result<OwnedFd> {
    let listener = socket(libc::SOCK_NONBLOCK)?;
    let (address, length) = address(name);
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    // SAFETY: `address` holds `length` bytes of an address.
    let done = unsafe {
        libc::bind(listener.as_raw_fd(), (&raw const address).cast(), length) == 0
            && libc::listen(listener.as_raw_fd(), backlog) == 0
    };
    if done { Ok(listener) } else { Err(Error::system("bind or listen")) }
}

/// The next connection; WouldBlock: there is none. A connection of another user's process is closed
/// and skipped.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    loop {
        let null = std::ptr::null_mut::<libc::sockaddr>();
        let flags = libc::SOCK_CLOEXEC;
        // SAFETY: null asks for no address.
        let fd = unsafe { libc::accept4(listener.as_raw_fd(), null, std::ptr::null_mut(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made it and nothing else owns it.
        let connection = unsafe { OwnedFd::from_raw_fd(fd) };
        if user_of(connection.as_fd()) == Some(user()) {
            return Ok(connection);
        }
    }
}

/// A connection to the process of this user that listens under `name`. None: no process of this
/// network namespace listens there.
pub fn connect(name: &Secret) -> Result<Option<OwnedFd>> {
    let end = socket(0)?;
    let (address, length) = address(name);
    // SAFETY: `address` holds `length` bytes of an address.
    while unsafe { libc::connect(end.as_raw_fd(), (&raw const address).cast(), length) } != 0 {
        match io::Error::last_os_error().kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::ConnectionRefused => return Ok(None),
            _ => return Err(Error::system("connect")),
        }
    }
    match user_of(end.as_fd()) {
        Some(other) if other == user() => Ok(Some(end)),
        other => {
            fail!(ERR_SYSTEM, "the other end belongs to user {other:?}, expected {}", user())
        }
    }
}

/// The process at the other end of a connection.
#[derive(Debug)]
pub enum OtherEnd {
    /// A descriptor that becomes readable when it has ended, even if a child of it holds the
    /// connection.
    Process(OwnedFd),
    Ended,
    /// It is this process, or cannot be watched.
    Unwatched,
}

/// The process at the other end: the one that connected, began to listen, or made the pair.
pub fn process_of(end: BorrowedFd<'_>) -> OtherEnd {
    let Some(who) = other_end(end) else { return OtherEnd::Unwatched };
    if who.pid as u32 == std::process::id() {
        return OtherEnd::Unwatched;
    }
    let mut fd = -1;
    match option(end, libc::SO_PEERPIDFD, &mut fd) {
        // SAFETY: the kernel has just made it and nothing else owns it.
        Ok(()) => OtherEnd::Process(unsafe { OwnedFd::from_raw_fd(fd) }),
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => OtherEnd::Ended,
        // Linux before 6.5, or before 6.14 if the process has ended. The number may belong to
        // another process by now.
        Err(_) => by_number(who.pid as u32),
    }
}

/// The process with this number, which is 0 for one of another name space.
fn by_number(pid: u32) -> OtherEnd {
    match process(pid) {
        Ok(process) => OtherEnd::Process(process),
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => OtherEnd::Ended,
        Err(_) => OtherEnd::Unwatched,
    }
}

fn user_of(end: BorrowedFd<'_>) -> Option<u32> {
    other_end(end).map(|who| who.uid)
}

/// Number and user of the process at the other end, as they were when it connected, began to
/// listen, or made the pair.
fn other_end(end: BorrowedFd<'_>) -> Option<libc::ucred> {
    // SAFETY: all-zero is a valid struct of numbers.
    let mut who: libc::ucred = unsafe { mem::zeroed() };
    option(end, libc::SO_PEERCRED, &mut who).ok().map(|()| who)
}

/// Reads an option of a socket, which is a struct of numbers.
fn option<T>(end: BorrowedFd<'_>, option: i32, value: &mut T) -> io::Result<()> {
    let mut size = mem::size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_mut(value).cast();
    // SAFETY: `value` and `size` are valid for the writes of this call.
    let done =
        unsafe { libc::getsockopt(end.as_raw_fd(), libc::SOL_SOCKET, option, value, &mut size) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::socket::{Room, receive, send};

    #[test]
    fn a_caller_with_the_name_meets_the_listener_and_no_other_does() {
        let (name, other) = (secret().unwrap(), secret().unwrap());
        assert_ne!(name, other);
        let listener = listen(&name, 4).unwrap();
        assert!(listen(&name, 4).is_err());
        assert_eq!(accept(listener.as_fd()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(connect(&other).unwrap().is_none());
        let near = connect(&name).unwrap().unwrap();
        let far = accept(listener.as_fd()).unwrap();
        assert_eq!((user_of(near.as_fd()), user_of(far.as_fd())), (Some(user()), Some(user())));
        send(near.as_fd(), b"hello", None, Room::Now).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(receive(far.as_fd(), &mut buffer).unwrap().0, 5);
        drop(listener);
        assert!(connect(&name).unwrap().is_none());
    }

    #[test]
    fn an_ended_process_is_told_from_one_that_cannot_be_watched() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(matches!(by_number(child.id()), OtherEnd::Ended));
        assert!(matches!(by_number(0), OtherEnd::Unwatched));
        assert!(matches!(by_number(std::process::id()), OtherEnd::Process(_)));
        let (near, _far) = crate::util::socket::pair().unwrap();
        assert!(matches!(process_of(near.as_fd()), OtherEnd::Unwatched));
    }
}
