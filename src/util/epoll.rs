//! Waits for many descriptors at once, in a time that does not grow with their number.

use crate::util::status::{Error, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The most descriptors that one wait reports.
const MOST: usize = 64;

/// A set of descriptors, each with a key that its events carry.
pub struct Epoll(OwnedFd);

/// An event: the key of the descriptor, and `libc::EPOLL*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    pub key: u64,
    pub events: u32,
}

impl Epoll {
    /// An empty set.
    pub fn new() -> Result<Epoll> {
        // SAFETY: epoll_create1 takes an integer only.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            return Err(Error::system("epoll_create1"));
        }
        // SAFETY: the kernel has just made it and nothing else owns it.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(epoll) }))
    }

    /// Adds a descriptor that is not in the set. `events` are reported with `key`, level-triggered.
    pub fn add(&self, fd: BorrowedFd<'_>, events: i32, key: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, key)
    }

    /// Waits for other events of a descriptor in the set.
    pub fn change(&self, fd: BorrowedFd<'_>, events: i32, key: u64) -> Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, key)
    }

    /// Removes a descriptor from the set, if it is there. Without this call a closed descriptor
    /// stays in the set as long as another process holds the open file.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    fn control(&self, what: i32, fd: BorrowedFd<'_>, events: i32, key: u64) -> Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: key };
        // SAFETY: `event` is valid for reads; both descriptors are open.
        match unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd.as_raw_fd(), &mut event) } {
            0 => Ok(()),
            _ => Err(Error::system("epoll_ctl")),
        }
    }

    /// Waits at most `timeout_ms` (-1: without limit) and returns the events. After a signal there
    /// are none.
    pub fn wait(&self, timeout_ms: i32) -> Result<Vec<Ready>> {
        let mut ready = [libc::epoll_event { events: 0, u64: 0 }; MOST];
        // SAFETY: `ready` is valid for writes of the number of entries given.
        let count = unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), ready.as_mut_ptr(), MOST as i32, timeout_ms)
        };
        if count < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Err(Error::system("epoll_wait"));
        }
        let ready = &ready[..count.max(0) as usize];
        Ok(ready.iter().map(|event| Ready { key: event.u64, events: event.events }).collect())
    }
}

impl AsFd for Epoll {
    /// Readable when something is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::socket::Wake;

    #[test]
    fn what_is_ready_is_told_until_it_is_taken_out() {
        let (epoll, wakes) = (Epoll::new().unwrap(), [Wake::new().unwrap(), Wake::new().unwrap()]);
        for (key, wake) in (7..).zip(&wakes) {
            epoll.add(wake.as_fd(), libc::EPOLLIN, key).unwrap();
        }
        assert_eq!(epoll.wait(0).unwrap(), []);
        wakes[1].wake();
        for _ in 0..2 {
            let events = libc::EPOLLIN as u32;
            assert_eq!(epoll.wait(-1).unwrap(), [Ready { key: 8, events }]);
        }
        epoll.remove(wakes[1].as_fd());
        assert_eq!(epoll.wait(0).unwrap(), []);
    }
}
