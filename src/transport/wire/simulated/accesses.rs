//! Reads, writes and atomics of a simulated lane, from the post to the completion.

use super::memory::{Access, Notice};
use super::{Card, Comes, SimulatedLane, lock};
use crate::transport::wire::{Command, Event};
use crate::util::status::Status;
use std::sync::Arc;

/// The writer that waits for an answer, and the number of its write.
pub(super) type Answers = (Arc<Card>, u64);

/// A read, a write or an atomic that the lane has taken and not executed.
pub(super) struct Begun {
    pub(super) tag: u64,
    pub(super) peer: u32,
    pub(super) to: Arc<Card>,
    pub(super) access: Access,
    pub(super) local: *mut u8,
    pub(super) size: u64,
    /// It was executed, and waits for the peer's answer.
    pub(super) executed: bool,
    /// How many crossings of the network lie behind it at the peer.
    crossings: u64,
    /// The bytes of a write that were read at the post, to which `local` points.
    _copy: Option<Box<[u8]>>,
}

// SAFETY: the local buffer stays valid until the completion, whichever thread polls.
unsafe impl Send for Begun {}

impl SimulatedLane {
    /// The event of a notice. Its words stay until the next poll(). A rank whose notices bring no
    /// words gets none.
    pub(super) fn notice(
        &mut self,
        from: u32,
        (number, words): Notice,
        answers: Option<Answers>,
    ) -> Event {
        let words = words.filter(|_| self.nature.caps.notice_words > 0);
        let mut event = Event { tag: number.into(), ..Event::about(Event::NOTICE, from) };
        if let Some(words) = words.map(Box::<[u64]>::from) {
            (event.bytes, event.size) = (words.as_ptr().cast(), size_of_val(&*words) as u64);
            self.words.push(words);
        }
        if let Some(answers) = answers {
            self.serial += 1;
            event.frame = self.serial;
            self.unanswered.insert(self.serial, answers);
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
        let (is_write, late) = (command.op == Command::WRITE, self.nature.late);
        if command.op != Command::ATOMIC {
            // SAFETY: the caller passes one valid piece.
            let piece = unsafe { &*command.piece };
            local = piece.address.cast_mut();
            let keyless = inline || !self.nature.caps.needs_local_key;
            let covered = lock(&self.card.registered).covers(piece.local, local as u64, size);
            assert!(keyless || covered, "the local buffer of a command is not registered");
        }
        assert!(!inline || size <= self.nature.caps.inline_most as u64, "{size} bytes inline");
        if inline || is_write && !late {
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
        let executed = false;
        let begun = Begun { tag, peer, to, access, local, size, executed, crossings, _copy: copy };
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
            let (from, crossings, to) = (self.me, begun.crossings, begun.to.clone());
            let answered = self.nature.caps.answers && notice.1.is_some();
            let answers = answered.then(|| (self.card.clone(), number));
            self.put(&to, Comes::Notice { from, notice, crossings, answers });
            if answered {
                self.accesses.insert(number, Begun { executed: true, ..begun });
                return;
            }
        }
        let (tag, peer, crossings) = (begun.tag, begun.peer, begun.crossings + 1);
        self.put_own(Comes::Done { tag, peer, status, fetched, crossings });
    }

    /// Sends the writes that are not executed on their way, as data of a rank that is gone.
    pub(super) fn send_writes(&mut self) {
        let writes = std::mem::take(&mut self.accesses);
        for Begun { to, access, local, size, executed, .. } in writes.into_values() {
            if access.is_write() && !executed {
                // SAFETY: the local buffer is valid until close() returns, which calls this.
                let bytes = unsafe { std::slice::from_raw_parts(local, size as usize) };
                self.put(&to, Comes::Late { from: self.me, access, bytes: bytes.into() });
            }
        }
    }

    /// Sends the answer to the write of a notice.
    pub(super) fn send_answer(&mut self, notice: u64, status: Status, fetched: u64) {
        if let Some((writer, number)) = self.unanswered.remove(&notice) {
            let (peer, crossings) = (self.me, self.card.traffic.reply());
            self.put(&writer, Comes::Answered { number, peer, status, fetched, crossings });
        }
    }

    /// A peer has answered a write. None: a fence has ended the command.
    pub(super) fn answered(
        &mut self,
        number: u64,
        peer: u32,
        (Status(status), fetched): (Status, u64),
    ) -> Option<Event> {
        let tag = self.accesses.remove(&number)?.tag;
        self.under_way -= 1;
        Some(Event { tag, status, fetched, ..Event::about(Event::DONE, peer) })
    }
}
