//! The short way of many pieces, as that of `core::rma`: all of the memory is mapped, there is no
//! signal, and no lock, queue or allocation is needed. What is refused here takes the long way,
//! which also reports errors.

use super::lists::{Known, Span, copy_lists};
use super::row::Row;
use super::strided::Strided;
use super::touched_lists;
use crate::core::context::Context;
use crate::transport::address::Address;
use crate::util::pin::pin;

impl Context {
    /// Copies a box of one dimension.
    #[inline]
    pub fn row_quickly(
        &self,
        peer: u32,
        (local, remote): (Address, Address),
        row: Row,
        is_read: bool,
    ) -> bool {
        let Some(port) = self.quick.port(peer.into()) else { return false };
        let Some([near, far]) = row.spans(is_read) else { return false };
        let _pinned = pin();
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
    pub fn box_quickly(&self, peer: u32, strided: &Strided, is_read: bool) -> bool {
        let Strided { local, remote, spans, .. } = strided;
        let Some(port) = self.quick.port(peer.into()) else { return false };
        let _pinned = pin();
        let Some(ours) = self.quick.own.find(*local, spans[0]) else { return false };
        let Some(theirs) = port.find(*remote, spans[1]) else { return false };
        // SAFETY: the look-ups vouch for the spans while we are pinned.
        unsafe { strided.copy(ours, theirs, is_read) };
        if !is_read {
            port.waiters().touched(*remote, spans[1]);
        }
        true
    }

    /// Copies from one list to the other.
    #[inline]
    pub fn lists_quickly(&self, peer: u32, ours: &[Span], theirs: &[Span], is_read: bool) -> bool {
        let Some(port) = self.quick.port(peer.into()) else { return false };
        let (near, far) = (|key| self.quick.own.region(key), |key| port.region(key));
        let _pinned = pin();
        // All spans are looked up before the first is copied, as on the long way.
        let Some(here) = Known::of(ours, near) else { return false };
        let Some(there) = Known::of(theirs, far) else { return false };
        if here.total != there.total {
            return false;
        }
        // SAFETY: the pin keeps what is found.
        let copied = unsafe {
            match is_read {
                true => copy_lists((&there, far), (&here, near)),
                false => copy_lists((&here, near), (&there, far)),
            }
        };
        if !is_read {
            touched_lists(port, theirs);
        }
        copied
    }
}
