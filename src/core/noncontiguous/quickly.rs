//! The short path of many pieces, like that of `core::rma`: all memory is mapped, and no lock,
//! queue or allocation is needed. A request that these functions refuse takes the long path, which
//! also reports errors.

use super::Signal;
use super::list_copy::copy_lists;
use super::lists::List;
use super::row::Row;
use super::strided::Strided;
use crate::core::context::Context;
use crate::engine::atomic;
use crate::transport::address::Address;
use crate::transport::port::Port;
use crate::util::pin::{pin, pin_if_known};

impl Context {
    /// Calls `copy` while this thread is pinned, and then changes the signal word. False: `copy`
    /// has returned false, or was not called.
    #[inline(always)]
    fn copy_quickly(
        &self,
        peer: u32,
        signal: Option<Signal>,
        copy: impl FnOnce(&Port) -> bool,
    ) -> bool {
        let Some(port) = self.quick.port(peer.into()) else { return false };
        let _pinned = pin();
        let word = match signal {
            Some(signal) => match port.find_word(signal.place) {
                Some(word) => Some((signal, word)),
                None => return false,
            },
            None => None,
        };
        if !copy(port) {
            return false;
        }
        if let Some((Signal { place, op, value }, word)) = word {
            // SAFETY: the look-up vouches for an aligned word while we are pinned. The change is a
            // release, so it is never seen before the data.
            unsafe { atomic::apply(word, op, atomic::kind::U64, value, 0) };
            port.waiters().touched(place, 8);
        }
        true
    }

    /// Copies a box of one dimension, without a signal. It does not use copy_quickly(), since the
    /// compiler would store the numbers in memory for the closure.
    #[inline(always)]
    pub fn row_quickly(
        &self,
        peer: u32,
        (local, remote): (Address, Address),
        row: Row,
        is_read: bool,
    ) -> bool {
        let Some([near, far]) = row.spans(is_read) else { return false };
        let Some(port) = self.quick.port(peer.into()) else { return false };
        let Some(_pinned) = pin_if_known() else { return false };
        let Some(ours) = self.quick.own.find(local, near) else { return false };
        let Some(theirs) = port.find(remote, far) else { return false };
        // SAFETY: the look-ups vouch for the spans while we are pinned.
        unsafe { row.merged().copy(ours, theirs, is_read) };
        if !is_read {
            port.waiters().touched(remote, far);
        }
        true
    }

    /// Copies a box.
    #[inline]
    pub fn box_quickly(
        &self,
        peer: u32,
        strided: &Strided,
        is_read: bool,
        signal: Option<Signal>,
    ) -> bool {
        let Strided { local, remote, spans, .. } = strided;
        self.copy_quickly(peer, signal, |port| {
            let Some(ours) = self.quick.own.find(*local, spans[0]) else { return false };
            let Some(theirs) = port.find(*remote, spans[1]) else { return false };
            // SAFETY: the look-ups vouch for the spans while we are pinned.
            unsafe { strided.copy(ours, theirs, is_read) };
            if !is_read {
                port.waiters().touched(*remote, spans[1]);
            }
            true
        })
    }

    /// Copies from one list to the other. False: it may have copied some pieces.
    #[inline(always)]
    pub fn lists_quickly(
        &self,
        peer: u32,
        ours: List,
        theirs: List,
        is_read: bool,
        signal: Option<Signal>,
    ) -> bool {
        self.copy_quickly(peer, signal, |port| {
            let (near, far) = (|key| self.quick.own.region(key), |key| port.region(key));
            // SAFETY: the pin keeps what is found.
            unsafe {
                match is_read {
                    true => copy_lists((theirs, far), (ours, near), None),
                    false => copy_lists((ours, near), (theirs, far), Some(port.waiters())),
                }
            }
        })
    }
}
