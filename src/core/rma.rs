//! Reads and writes on mapped memory, done by the caller: the short way, which takes no lock, no
//! queue and no allocation. Budget for 8 bytes: a look-up on each side, two plain stores for the
//! pin, the copy, and one load to see whether somebody sleeps on the word. What does not fit goes
//! the long way, through `core::submit`.

use crate::core::context::Context;
use crate::engine::atomic;
use crate::engine::direct::copy;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::util::pin::pin;
use crate::util::status::Result;
use std::sync::atomic::Ordering;

impl Context {
    /// Reads; false: it takes the long way.
    #[inline(always)]
    pub fn read_quickly(&self, peer: u32, from: Address, to: Address, size: u64) -> bool {
        if !self.direct.load(Ordering::Relaxed) {
            return false;
        }
        let Some(port) = self.routes.known(peer) else { return false };
        let _pinned = pin();
        let Some(theirs) = port.find(from, size) else { return false };
        let Some(ours) = self.routes.own().find(to, size) else { return false };
        // SAFETY: both look-ups vouch for `size` bytes while we are pinned.
        unsafe { copy(theirs, ours, size as usize) };
        true
    }

    /// Writes from a region; false: it takes the long way.
    #[inline(always)]
    pub fn write_quickly(&self, peer: u32, from: Address, to: Address, size: u64) -> bool {
        if !self.direct.load(Ordering::Relaxed) {
            return false;
        }
        let Some(port) = self.routes.known(peer) else { return false };
        let _pinned = pin();
        let Some(ours) = self.routes.own().find(from, size) else { return false };
        let Some(theirs) = port.find(to, size) else { return false };
        // SAFETY: both look-ups vouch for `size` bytes while we are pinned.
        unsafe { copy(ours, theirs, size as usize) };
        port.waiters().touched(to, size);
        true
    }

    /// Writes from the caller's memory; false: it takes the long way.
    ///
    /// # Safety
    /// `from` is valid for reading `size` bytes.
    #[inline(always)]
    pub unsafe fn write_bytes_quickly(
        &self,
        peer: u32,
        from: *const u8,
        to: Address,
        size: u64,
    ) -> bool {
        if !self.direct.load(Ordering::Relaxed) {
            return false;
        }
        let Some(port) = self.routes.known(peer) else { return false };
        let _pinned = pin();
        let Some(theirs) = port.find(to, size) else { return false };
        // SAFETY: the look-up vouches for `size` bytes while we are pinned, the caller for his.
        unsafe { copy(from, theirs, size as usize) };
        port.waiters().touched(to, size);
        true
    }

    /// Writes from a region and then changes the signal word; false: it takes the long way.
    #[inline(always)]
    pub fn write_signal_quickly(
        &self,
        peer: u32,
        (from, to, size): (Address, Address, u64),
        (signal, code, value): (Address, u32, u64),
    ) -> bool {
        if !self.direct.load(Ordering::Relaxed) {
            return false;
        }
        let Some(port) = self.routes.known(peer) else { return false };
        let Ok(op) = atomic::signal_op(code.min(255) as u8) else { return false };
        let _pinned = pin();
        let Some(ours) = self.routes.own().find(from, size) else { return false };
        let Some(theirs) = port.find(to, size) else { return false };
        let Some(word) = port.find(signal, 8) else { return false };
        if !(word as usize).is_multiple_of(8) || signal.offset % 8 != 0 {
            return false;
        }
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

    /// Where a peer's memory is mapped here, for loads and stores of the caller's own; null where
    /// it is not mapped.
    pub fn remote_pointer(&self, peer: u32, remote: Address, size: u64) -> Result<*mut u8> {
        self.must_be_open()?;
        let port = self.routes.port(peer)?;
        if self.routes.locate(port, remote, size)? != Access::Mapped {
            return Ok(std::ptr::null_mut());
        }
        let _pinned = pin();
        Ok(port.find(remote, size).unwrap_or(std::ptr::null_mut()))
    }
}
