//! The sender's side: the frames that wait for grants, and knocks.

use super::*;
use crate::transport::frame::Frame;
use crate::transport::wire::buffers::Buffers;

/// What a sender keeps of a peer and a line to which a knock is under way.
pub(super) struct Sending {
    /// Empty for most knocks, which bring the only frame.
    waiting: Vec<Bundle>,
    /// How many frames these have: at most DEPTH and one more, and those that tickets have left.
    count: usize,
    /// The number of the knock.
    knock: u64,
}

impl Sending {
    /// How many of its frames use places that all peers share.
    pub fn beside_the_first(&self) -> usize {
        self.count.saturating_sub(1)
    }

    /// Adds a frame.
    fn add(&mut self, line: Line, (class, frame): (Class, &Frame), frames: &mut Buffers) {
        if !self.waiting.last().is_some_and(|last| last.takes(frame, most_of(line), frames)) {
            self.waiting.push(Bundle::new(line, class, frames));
        }
        self.waiting.last_mut().into_iter().for_each(|last| last.add(frame, frames));
        self.count += 1;
    }

    /// For how many frames a knock asks: all, or those of the first bundles that may be granted at
    /// a time, so that a bundle is seldom split. No further frames are added to these.
    fn demand(&mut self, line: Line) -> usize {
        let mut demand = 0;
        for bundle in &mut self.waiting {
            if demand > 0 && demand + bundle.count() > most_of(line) {
                break;
            }
            demand += bundle.count();
            bundle.close();
        }
        demand
    }

    /// So many of the first frames.
    fn take(&mut self, count: usize) -> std::vec::Drain<'_, Bundle> {
        self.count -= count;
        let (mut bundles, mut left) = (0, count);
        while left > 0 {
            if self.waiting[bundles].count() > left {
                let rest = self.waiting[bundles].split_off(left);
                self.waiting.insert(bundles + 1, rest);
            }
            left -= self.waiting[bundles].count();
            bundles += 1;
        }
        self.waiting.drain(..bundles)
    }

    /// The first frame.
    fn take_first(&mut self) -> OwnedFrame {
        self.count -= 1;
        let first = self.waiting[0].take_first();
        if self.waiting[0].count() == 0 {
            self.waiting.remove(0);
        }
        first
    }
}

impl Grants {
    /// Whether one more frame to a peer would be taken.
    pub fn has_room(&self, to: u32, line: Line) -> bool {
        match self.sending.get((to, line)) {
            Some(peer) => self.has_room_behind(line, peer.count),
            None => self.dead.contains(&to) || self.open[line] < SENDING[line / (LINES / 2)],
        }
    }

    /// Whether one more frame may wait behind so many for the same peer.
    fn has_room_behind(&self, line: Line, count: usize) -> bool {
        let left = SHARED[line / (LINES / 2)].saturating_sub(self.waiting[line]);
        count <= DEPTH.min(left.div_ceil(2))
    }

    /// Takes a frame behind those that wait for a peer's grants. Some(false): there is no room.
    /// None: the peer was not sent a knock.
    #[inline]
    pub fn send_behind(
        &mut self,
        to: (u32, Line),
        message: (Class, &Frame),
        frames: &mut Buffers,
    ) -> Option<bool> {
        let at = self.sending.find(to)?;
        let count = self.sending.at(at).count;
        let has_room = self.has_room_behind(to.1, count);
        if has_room {
            self.add(at, to.1, message, frames);
        }
        Some(has_room)
    }

    fn add(&mut self, at: usize, line: Line, message: (Class, &Frame), frames: &mut Buffers) {
        let peer = self.sending.at(at);
        self.waiting[line] += usize::from(peer.count > 0);
        peer.add(line, message, frames);
    }

    /// Takes a frame for a peer, if has_room(). The frame waits for grants, or the sender knocks.
    /// False: the peer is dead, and nothing is sent to it.
    pub fn send(
        &mut self,
        (to, line): (u32, Line),
        (class, frame): (Class, &Frame),
        frames: &mut Buffers,
        out: &mut Out,
    ) -> bool {
        if let Some(at) = self.sending.find((to, line)) {
            self.add(at, line, (class, frame), frames);
            return true;
        }
        if self.dead.contains(&to) {
            return false;
        }
        self.open[line] += 1;
        self.sending.add((to, line), Sending { waiting: Vec::new(), count: 0, knock: 0 });
        let at = self.sending.len() - 1;
        if frame.header.len() + frame.payload.len() <= KNOCK {
            self.knock(at, Some(OwnedFrame::of(class, frame)), out);
        } else {
            self.add(at, line, (class, frame), frames);
            self.knock(at, None, out);
        }
        true
    }

    /// Begins a knock that brings the only frame for a living peer to which none is under way, of
    /// so many bytes, and returns its number. None: send() must take the frame, if has_room().
    pub fn begin_alone(&mut self, to: u32, line: Line, size: usize) -> Option<u64> {
        if size > KNOCK || self.open[line] >= SENDING[line / (LINES / 2)] {
            return None;
        }
        self.open[line] += 1;
        self.knocks += 1;
        let alone = Sending { waiting: Vec::new(), count: 0, knock: self.knocks };
        self.sending.add((to, line), alone);
        Some(self.knocks)
    }

    /// Whether a knock to a peer is under way.
    pub fn knocks(&self, to: u32, line: Line) -> bool {
        self.sending.contains((to, line))
    }

    /// Whether a peer has been sent all that was taken for it.
    pub fn has_sent_all(&self, to: u32) -> bool {
        self.sending.keys().all(|(peer, _)| peer != to)
    }

    /// Knocks for the frames that wait, with the one before them, if that is small. `at`: the index
    /// of the peer and line in `sending`.
    fn knock(&mut self, at: usize, first: Option<OwnedFrame>, out: &mut Out) {
        self.knocks += 1;
        let (to, line) = self.sending.key(at);
        let peer = self.sending.at(at);
        peer.knock = self.knocks;
        let knock = Knock { number: self.knocks, demand: peer.demand(line), first };
        out.push((to, Packet::Knock(line, knock)));
    }

    /// A packet has brought the answer of a knock.
    #[inline]
    pub fn answered(&mut self, from: u32, (line, number): Answered, out: &mut Out) {
        self.granted(from, line, (number, 0), out);
    }

    /// A knock was answered. If it is the one under way, sends the frames that have grants.
    #[inline]
    pub(super) fn granted(
        &mut self,
        to: u32,
        line: Line,
        (answered, granted): (u64, u64),
        out: &mut Out,
    ) {
        let Some(at) = self.sending.find((to, line)) else { return };
        let peer = self.sending.at(at);
        if peer.knock != answered {
            return;
        }
        if peer.count == 0 {
            self.open[line] -= 1;
            self.sending.remove_at(at);
        } else {
            self.send_granted((to, line), at, granted, out);
        }
        self.has_read(to, answered);
    }

    /// Sends frames behind a knock, as many as were granted, and knocks for the others. `at`: the
    /// index of the peer and line in `sending`.
    #[inline(never)]
    fn send_granted(&mut self, (to, line): (u32, Line), at: usize, granted: u64, out: &mut Out) {
        let peer = self.sending.at(at);
        self.waiting[line] -= peer.beside_the_first();
        if granted == 0 {
            let is_small = peer.waiting[0].first_size() <= KNOCK;
            let first = is_small.then(|| peer.take_first());
            self.waiting[line] += peer.beside_the_first();
            return self.knock(at, first, out);
        }
        let begin = out.len();
        let bundles = peer.take(peer.count.min(granted as usize));
        out.extend(bundles.map(|bundle| (to, Packet::Granted(bundle))));
        self.waiting[line] += peer.beside_the_first();
        let demand = peer.demand(line);
        if demand == 0 {
            self.open[line] -= 1;
            self.sending.discard_at(at);
        } else if let (_, Packet::Granted(first)) = &mut out[begin] {
            // In the first bundle: the answer comes while the others are under way.
            self.knocks += 1;
            peer.knock = self.knocks;
            first.carry_knock(self.knocks, demand);
        }
    }
}
