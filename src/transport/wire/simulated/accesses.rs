//! Reads, writes and atomics of a simulated lane, from the post to the completion.

use super::memory::{Access, Notice};
use super::{Card, Comes, Lane, lock};
use crate::transport::wire::{Command, Event};
use crate::util::status::Status;
use std::sync::Arc;

/// A read, a write or an atomic that the lane has taken and not executed.
pub(super) struct Begun {
    pub(super) tag: u64,
    pub(super) peer: u32,
    pub(super) to: Arc<Card>,
    pub(super) access: Access,
    pub(super) local: *mut u8,
    pub(super) size: u64,
    /// How many crossings of the network lie behind it at the peer.
    crossings: u64,
    /// The bytes of an inline write, to which `local` points.
    _copy: Option<Box<[u8]>>,
}

// SAFETY: the local buffer stays valid until the completion, whichever thread polls.
unsafe impl Send for Begun {}

impl Lane {
    /// The event of a notice. Its words stay until the next poll(). A rank whose notices bring no
    /// words gets none.
    pub(super) fn notice(&mut self, from: u32, (number, words): Notice) -> Event {
        let words = words.filter(|_| self.nature.caps.notice_words > 0);
        let mut event = Event { tag: number.into(), ..Event::about(Event::NOTICE, from) };
        if let Some(words) = words.map(Box::<[u64]>::from) {
            (event.bytes, event.size) = (words.as_ptr().cast(), size_of_val(&*words) as u64);
            self.words.push(words);
        }
        event
    }

    /// Takes a read, a write or an atomic.
    ///
    /// # Safety
    /// As for post().
    pub(super) unsafe fn begin(&mut self, peer: u32, to: &Arc<Card>, command: &Command) {
        let (mut local, size) = (std::ptr::null_mut(), command.size);
        let (mut copy, inline) = (None, command.flags & Command::INLINE != 0);
        if command.op != Command::ATOMIC {
            // SAFETY: the caller passes one valid piece.
            let piece = unsafe { &*command.piece };
            local = piece.address.cast_mut();
            let keyless = inline || !self.nature.caps.needs_local_key;
            let covered = lock(&self.card.registered).covers(piece.local, local as u64, size);
            assert!(keyless || covered, "the local buffer of a command is not registered");
        }
        if inline {
            assert!(size <= self.nature.caps.inline_most as u64, "{size} bytes inline");
            // SAFETY: the bytes of a valid piece are valid.
            let mut bytes: Box<[u8]> =
                unsafe { std::slice::from_raw_parts(local, size as usize) }.into();
            local = bytes.as_mut_ptr();
            copy = Some(bytes);
        }
        self.serial += 1;
        self.under_way += 1;
        let (number, access, to) = (self.serial, Access::of(command), to.clone());
        let (tag, crossings) = (command.tag, self.card.traffic.access());
        let begun = Begun { tag, peer, to, access, local, size, crossings, _copy: copy };
        self.accesses.insert(number, begun);
        self.put_own(Comes::Due(number));
    }

    /// Executes an access that is due. An access to a rank that has closed its lane stays pending
    /// until the fence completes it.
    pub(super) fn execute(&mut self, number: u64) {
        let Some(begun) = self.accesses.remove(&number) else { return };
        let registered = lock(&begun.to.registered);
        if registered.over {
            drop(registered);
            self.accesses.insert(number, begun);
            return;
        }
        // SAFETY: the local buffer is valid until the completion; registered memory is valid until
        // deregister(), which takes the same lock.
        let (status, fetched) =
            unsafe { registered.execute(&begun.access, begun.local, begun.size) };
        drop(registered);
        if let Some(notice) = begun.access.notice.filter(|_| status == Status::OK) {
            // The bytes are there.
            let (from, crossings) = (self.me, begun.crossings);
            self.put(&begun.to, Comes::Notice { from, notice, crossings });
        }
        let (tag, peer, crossings) = (begun.tag, begun.peer, begun.crossings + 1);
        self.put_own(Comes::Done { tag, peer, status, fetched, crossings });
    }
}
