//! Received frames that go into a slot at once, without a copy of their bytes here. Each kind has a
//! question, whether that may be, and a note for behind it.

use super::*;

/// Of knocks behind which no frame waits.
impl Grants {
    /// Whether the message of such a knock may go into a slot at once: no other frame of the line
    /// waits for one, there is a place for the record of the answer, and that may wait for a
    /// packet.
    pub fn may_pass(&self, from: u32, line: Line) -> bool {
        self.knocking[line].is_empty()
            && self.come[line].is_empty()
            && self.streaming[line] != Some(from)
            && (self.receiving.len() < RECORDS || self.receiving.contains(from))
    }

    /// The message of such a knock lies in a slot.
    #[inline(always)]
    pub fn passed(&mut self, from: u32, line: Line, number: u64) {
        if number != 0 && !self.dead.contains(&from) {
            let peer = self.answer(from, (line, number), 0);
            peer.be_quiet(line);
            if peer.is_fresh() {
                if self.fresh.is_some_and(|other| other != from) {
                    self.begin_time(Instant::now());
                }
                self.fresh = Some(from);
            }
        }
    }
}

/// Of the time for which an answer waits for a packet.
impl Grants {
    /// Whether an answer of a knock is due that has waited for a packet. `came`: this rank has
    /// events to handle. Usually their messages carry the answer or say that the peer knows it, so
    /// the clock is seldom read for a new answer before a round without events. Later rounds
    /// without events read it seldom, too: the next one finds the message that a rank waits for so
    /// much sooner.
    #[inline]
    pub fn is_late(&mut self, came: bool) -> bool {
        if self.fresh.is_none() && self.due.is_none() {
            return false;
        }
        self.unread += 1;
        if self.unread < SELDOM && (came || self.fresh.is_none()) {
            return false;
        }
        self.unread = 0;
        self.is_due()
    }

    /// This rank has slept: is_late() reads the clock.
    pub fn has_slept(&mut self) {
        self.unread = SELDOM;
    }

    /// Out of line, since most looks do not get here.
    #[inline(never)]
    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        self.begin_time(now);
        self.due.is_some_and(|due| now >= due)
    }

    /// The time of the newest answer that waits for a packet begins, if it still waits.
    fn begin_time(&mut self, now: Instant) {
        let fresh = self.fresh.take().and_then(|from| self.receiving.get_mut(from));
        if let Some(peer) = fresh.filter(|peer| peer.is_fresh()) {
            peer.since = Some(now);
            let due = peer.due(self.ride);
            self.due = self.due.into_iter().chain(due).min();
        }
    }
}

/// Of granted frames.
impl Grants {
    /// How many granted frames may go into slots at once: none if another frame of the line waits
    /// for one, or if take() would not accept the frame. `knocks`: it brings a knock.
    pub fn may_pass_granted(&self, from: u32, line: Line, knocks: bool) -> usize {
        let accepted = |peer: &Receiving| match knocks && peer.knocks[line] {
            true => 0,
            false => peer.out[line],
        };
        let waits = !self.come[line].is_empty();
        if waits { 0 } else { self.receiving.get(from).map_or(0, accepted) }
    }

    /// So many of these frames lie in slots. `knock`: the number of the knock that the last one has
    /// brought, and how many frames wait behind it. Returns whether serve() must run: it answers
    /// this knock, or others that wait for the buffers of these frames.
    pub fn passed_granted(
        &mut self,
        from: u32,
        line: Line,
        count: usize,
        knock: Option<(u64, usize)>,
    ) -> bool {
        let Some(peer) = self.receiving.get_mut(from) else { return false };
        peer.out[line] -= count;
        self.free[line] += count;
        if let Some((number, demand)) = knock {
            peer.knocks[line] = true;
            let knock = Knock { number, demand, first: None };
            self.knocking[line].push_back(Knocking { from, knock, frame: None });
        } else if !peer.is_needed() {
            self.receiving.discard(from);
        }
        let serves = !self.is_idle(line);
        self.served_all &= !serves;
        serves
    }
}
