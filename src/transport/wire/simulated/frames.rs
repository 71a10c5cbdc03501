//! Frames of a simulated lane. On a network with a shared queue a frame waits at its sender until a
//! receive of the peer takes it: its command ends then, and a lane takes only `WAIT` such frames
//! for each peer and class. On another network the command ends soon after the frame has left,
//! wherever the frame is.

use super::{Card, Comes, DEPTH, SimulatedLane, lock};
use crate::transport::wire::{CLASSES, Command, Event, Piece};
use crate::util::status::Status;
use std::sync::Arc;

/// Most frames for one peer and class that no receive has taken, with a shared queue.
const WAIT: usize = 8;

/// A frame that the lane has taken, and whose bytes it has not read.
pub(super) struct Leaving {
    pub(super) peer: u32,
    to: Arc<Card>,
    class: u32,
    tag: u64,
    address: *const u8,
    size: u64,
    crossings: u64,
}

// SAFETY: the bytes stay valid until the end of the command, whichever thread polls.
unsafe impl Send for Leaving {}

impl SimulatedLane {
    /// How many of `commands` the lane has room for.
    pub(super) fn room(&self, peer: u32, class: u32, commands: &[Command]) -> usize {
        let frames = commands.first().is_some_and(|command| command.op == Command::FRAME);
        match self.nature.caps.shared_queue && frames {
            true => {
                let to = (peer, class);
                WAIT - self.waiting.values().filter(|(of, _)| *of == to).count()
            }
            false => DEPTH - self.under_way,
        }
    }

    /// Takes a frame. Its bytes are read now, or when it leaves.
    ///
    /// # Safety
    /// As for post().
    pub(super) unsafe fn send(&mut self, peer: u32, class: u32, to: &Arc<Card>, command: &Command) {
        // SAFETY: the caller passes one valid piece.
        let Piece { address, size, .. } = unsafe { *command.piece };
        let (tag, crossings) = (command.tag, self.card.traffic.frame());
        self.serial += 1;
        let number = self.serial;
        match self.nature.caps.shared_queue {
            true => _ = self.waiting.insert(number, ((peer, class), tag)),
            false => self.under_way += 1,
        }
        let leaving = Leaving { peer, to: to.clone(), class, tag, address, size, crossings };
        self.leaving.insert(number, leaving);
        match self.nature.late {
            true => self.put_own(Comes::Leaves(number)),
            false => self.leave(number),
        }
    }

    /// Sends a frame on its way. Its command ends later.
    pub(super) fn leave(&mut self, number: u64) {
        let Some(frame) = self.leaving.remove(&number) else { return };
        let Leaving { peer, to, class, tag, address, size, crossings } = frame;
        // SAFETY: post() was told that the bytes are valid until the end of the command, which
        // comes behind this, or until close(), which leaves none in `leaving`.
        let bytes = unsafe { std::slice::from_raw_parts(address, size as usize) }.into();
        let (from, answer_to) = (self.me, self.card.clone());
        let waits = self.nature.caps.shared_queue.then_some(number);
        let done = match waits {
            Some(number) => Comes::Taken { number, peer, crossings: 0 },
            None => Comes::Done { tag, peer, status: Status::OK, fetched: 0, crossings: 0 },
        };
        let frame = Comes::Frame { from, answer_to, class, bytes, crossings, waits };
        // A peer that is gone takes no frame.
        if !self.put(&to, frame) || waits.is_none() {
            self.put_own(done);
        }
    }

    /// Sends all frames on their way, since the network may not read them later.
    pub(super) fn leave_all(&mut self) {
        let mut numbers: Vec<u64> = self.leaving.keys().copied().collect();
        numbers.sort_unstable();
        numbers.into_iter().for_each(|number| self.leave(number));
    }

    /// A receive has taken a frame of a peer.
    pub(super) fn take(
        &mut self,
        (from, answer_to): (u32, Arc<Card>),
        (class, bytes): (u32, Box<[u8]>),
        (crossings, waits): (u64, Option<u64>),
    ) -> Event {
        self.card.traffic.came(crossings);
        if let Some(number) = waits {
            self.end(&answer_to, number, crossings + 1);
        }
        self.peers.entry(from).or_insert(answer_to);
        self.serial += 1;
        let (frame, size) = (self.serial, bytes.len() as u64);
        let of = (class as usize).min(CLASSES - 1);
        self.held[of] += 1;
        let bytes = self.given.entry(frame).or_insert((of, bytes)).1.as_ptr();
        Event { frame, bytes, size, class, ..Event::about(Event::FRAME, from) }
    }

    /// Ends the command of a frame that has waited for a receive of this rank.
    fn end(&mut self, sender: &Card, number: u64, crossings: u64) {
        self.put(sender, Comes::Taken { number, peer: self.me, crossings });
    }

    /// Takes no further arrival, and ends the commands of the frames that wait for a receive.
    pub(super) fn refuse_all(&mut self) {
        let mut arrivals = lock(&self.card.arrivals);
        arrivals.over = true;
        let coming = std::mem::take(&mut arrivals.coming);
        drop(arrivals);
        for comes in coming.into_iter().flat_map(std::collections::BTreeMap::into_values) {
            if let Comes::Frame { answer_to, waits: Some(number), .. } = comes {
                self.end(&answer_to, number, 0);
            }
        }
    }
}
