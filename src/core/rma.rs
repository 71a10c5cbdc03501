//! The short path of reads and writes: the caller copies mapped memory itself, without a lock, a
//! queue or an allocation. All other operations take the long path, through `core::submit`.
//!
//! Budget of a word: a look-up on each side, two plain stores for the pin, the copy, and one load
//! to see whether a thread sleeps on the word. The functions for a word call no other function, so
//! that the compiler needs no stack frame. If a call is necessary, the caller makes it as its last
//! step.

use crate::core::context::Context;
use crate::engine::atomic;
use crate::engine::by_caller::copy;
use crate::fail;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::transport::port::{Port, Reach};
use crate::util::pin::{pin, pin_if_known};
use crate::util::status::{Result, Status};
use std::sync::atomic::{AtomicU64, Ordering};

/// The result of an attempt on a word.
pub enum Quick<'a> {
    /// The operation is done.
    Done,
    /// The operation is done, and a thread may sleep on the word: the caller must wake it by the
    /// port's waiters.
    Wake(&'a Port),
    /// Nothing is done: the caller must take another path.
    No,
}

impl Context {
    /// Reads an aligned word. The addresses are closures, which are called where an address is
    /// needed, so that no register must be saved to keep one.
    #[inline(always)]
    pub fn read_word(
        &self,
        peer: u64,
        from: impl Fn() -> Address,
        to: impl Fn() -> Address,
    ) -> bool {
        let Some(pinned) = pin_if_known() else { return false };
        let Some(port) = self.quick.port(peer) else { return false };
        let _pinned = pinned;
        // One side after the other, for the same reason.
        let Some(theirs) = port.find_word(from()) else { return false };
        // SAFETY: the look-up vouches for an aligned word while we are pinned.
        let value = unsafe { AtomicU64::from_ptr(theirs.cast()) }.load(Ordering::Acquire);
        let Some(ours) = self.quick.own.find_word(to()) else { return false };
        // SAFETY: as above. Release: as in copy_word().
        unsafe { AtomicU64::from_ptr(ours.cast()) }.store(value, Ordering::Release);
        true
    }

    /// Writes an aligned word from a region. The addresses are closures as in read_word().
    #[inline(always)]
    pub fn write_word(
        &self,
        peer: u64,
        from: impl Fn() -> Address,
        to: impl Fn() -> Address,
    ) -> Quick<'_> {
        let Some(pinned) = pin_if_known() else { return Quick::No };
        let Some(port) = self.quick.port(peer) else { return Quick::No };
        {
            let _pinned = pinned;
            // One side after the other, for the same reason.
            let Some(ours) = self.quick.own.find_word(from()) else { return Quick::No };
            // SAFETY: the look-up vouches for an aligned word while we are pinned.
            let value = unsafe { AtomicU64::from_ptr(ours.cast()) }.load(Ordering::Acquire);
            let Some(theirs) = port.find_word(to()) else { return Quick::No };
            // SAFETY: as above. Release: as in copy_word().
            unsafe { AtomicU64::from_ptr(theirs.cast()) }.store(value, Ordering::Release);
        }
        if port.waiters().any_at(to()) { Quick::Wake(port) } else { Quick::Done }
    }

    /// Writes an aligned word whose value the caller gives.
    #[inline(always)]
    pub fn write_value(&self, peer: u64, value: u64, to: Address) -> Quick<'_> {
        let Some(port) = self.quick.port(peer) else { return Quick::No };
        {
            let Some(_pinned) = pin_if_known() else { return Quick::No };
            let Some(theirs) = port.find_word(to) else { return Quick::No };
            // SAFETY: the look-up vouches for an aligned word while we are pinned.
            let word = unsafe { AtomicU64::from_ptr(theirs.cast()) };
            // Release: as in copy_word().
            word.store(value, Ordering::Release);
        }
        if port.waiters().any_at(to) { Quick::Wake(port) } else { Quick::Done }
    }

    /// Reads. False: the read must take the long path.
    #[inline(always)]
    pub fn read_quickly(&self, peer: u32, from: Address, to: Address, size: u64) -> bool {
        self.quick.near_port(peer).is_some_and(|port| self.read_near(port, from, to, size))
    }

    #[inline(never)]
    fn read_near(&self, port: &Port, from: Address, to: Address, size: u64) -> bool {
        let _pinned = pin();
        let Some(theirs) = port.find(from, size) else { return false };
        let Some(ours) = self.quick.own.find(to, size) else { return false };
        // SAFETY: both look-ups vouch for `size` bytes while we are pinned.
        unsafe { copy(theirs, ours, size as usize) };
        true
    }

    /// Writes from a region. False: the write must take the long path.
    #[inline]
    pub fn write_quickly(&self, peer: u32, from: Address, to: Address, size: u64) -> bool {
        let Some(port) = self.quick.near_port(peer) else { return false };
        let _pinned = pin();
        let Some(ours) = self.quick.own.find(from, size) else { return false };
        let Some(theirs) = port.find(to, size) else { return false };
        // SAFETY: both look-ups vouch for `size` bytes while we are pinned.
        unsafe { copy(ours, theirs, size as usize) };
        port.waiters().touched(to, size);
        true
    }

    /// Writes from the caller's memory. False: the write must take the long path.
    ///
    /// # Safety
    /// `from` is valid for reading `size` bytes.
    #[inline]
    pub unsafe fn write_bytes_quickly(
        &self,
        peer: u32,
        from: *const u8,
        to: Address,
        size: u64,
    ) -> bool {
        let Some(port) = self.quick.near_port(peer) else { return false };
        let _pinned = pin();
        let Some(theirs) = port.find(to, size) else { return false };
        // SAFETY: the look-up vouches for `size` bytes while we are pinned, and the caller for the
        // source.
        unsafe { copy(from, theirs, size as usize) };
        port.waiters().touched(to, size);
        true
    }

    /// Writes from a region and then changes the signal word. False: the write must take the long
    /// path.
    #[inline]
    pub fn write_signal_quickly(
        &self,
        peer: u32,
        (from, to, size): (Address, Address, u64),
        (signal, code, value): (Address, u32, u64),
    ) -> bool {
        let Some(port) = self.quick.near_port(peer) else { return false };
        let Ok(op) = atomic::signal_op(code.min(255) as u8) else { return false };
        let _pinned = pin();
        let Some(ours) = self.quick.own.find(from, size) else { return false };
        let Some(theirs) = port.find(to, size) else { return false };
        let Some(word) = port.find_word(signal) else { return false };
        // SAFETY: the look-ups vouch for `size` bytes and an aligned word while we are pinned. The
        // change of the word is a release, so it is never seen before the data.
        unsafe {
            copy(ours, theirs, size as usize);
            atomic::apply(word, op, atomic::kind::U64, value, 0);
        }
        port.waiters().touched(to, size);
        port.waiters().touched(signal, 8);
        true
    }

    /// The address at which a peer's memory is mapped here.
    pub fn remote_pointer(&self, peer: u32, remote: Address, size: u64) -> Result<*mut u8> {
        let port = match self.port(peer) {
            Err(error) if error.status == Status::RETRY_CONNECTING => fail!(
                ERR_STATE,
                "rank {peer} was not contacted before, and a callback may not wait for that"
            ),
            port => port?,
        };
        if port.reach == Reach::Wire {
            fail!(
                ERR_UNSUPPORTED,
                "memory of rank {peer}, which a network leads to, is not mapped here"
            );
        }
        if self.routes.locate(port, remote, size)? != Access::Mapped {
            fail!(ERR_UNSUPPORTED, "registered memory of rank {peer} is not mapped here");
        }
        let _pinned = pin();
        match port.find(remote, size) {
            Some(pointer) => Ok(pointer),
            None => fail!(ERR_KEY, "key {:#x} names no live region of rank {peer}", remote.key),
        }
    }
}
