//! The receiver's side: received knocks and frames, and the buffers that are granted for them.

use super::carrying::{Lines, bit, first_of};
use super::*;
use std::cell::LazyCell;

/// What a receiver keeps of a peer.
#[derive(Default)]
pub(super) struct Receiving {
    /// Granted and not come.
    pub out: [usize; LINES],
    /// The last knock that was answered, and the grants for it.
    answered: [u64; LINES],
    granted: [u64; LINES],
    /// There are answers that the peer does not know.
    pub news: bool,
    /// Some of these grant frames.
    grants: bool,
    /// The peer has not confirmed a message of grants that asks for it.
    pub reporting: bool,
    /// Lines for which a granted frame has brought a knock that was not answered.
    pub knocks: [bool; LINES],
    /// Lines whose last knock was answered without grants, which the peer does not know.
    quiet: Lines,
    /// Since when there is such a line; None: see [`Grants::fresh`].
    pub since: Option<Instant>,
    /// Lines of `quiet` whose answer a knock of this rank has carried as well. The peer has not
    /// answered that knock, whose number is in `along`.
    carried: Lines,
    along: [u64; LINES],
}

impl Receiving {
    fn has_come(&self) -> bool {
        self.out == [0; LINES]
    }

    pub fn forget_quiet(&mut self) {
        (self.quiet, self.since, self.carried) = (0, None, 0);
    }

    /// The last knock of a line was answered without grants, which the peer does not know.
    pub fn be_quiet(&mut self, line: Line) {
        self.quiet |= bit(line);
    }

    /// Whether there is such a line.
    pub fn is_quiet(&self) -> bool {
        self.quiet != 0
    }

    /// Whether there is such a line, and its time has not begun.
    pub fn is_fresh(&self) -> bool {
        self.is_quiet() && self.since.is_none()
    }

    /// The peer knows the answer of a line.
    fn told(&mut self, line: Line) {
        self.quiet &= !bit(line);
        self.carried &= !bit(line);
        if !self.is_quiet() {
            self.since = None;
        }
    }

    /// When the peer must be told the answers by a message of their own.
    pub fn due(&self, ride: Duration) -> Option<Instant> {
        let untold = self.quiet & !self.carried != 0;
        let limit = || if untold { ride } else { ride.saturating_mul(ALONG) };
        self.since.and_then(|since| since.checked_add(limit()))
    }

    pub fn is_needed(&self) -> bool {
        self.news
            || self.reporting
            || self.knocks != [false; LINES]
            || self.is_quiet()
            || !self.has_come()
    }
}

/// A knock that was not answered.
pub(super) struct Knocking {
    pub from: u32,
    pub knock: Knock,
    /// The frame of the wire that it lies in; None: a granted frame has brought it.
    pub frame: Option<u64>,
}

/// What a line has beyond its own buffers, since granted frames do not come.
#[derive(Clone, Copy, Default)]
pub(super) struct Loan {
    pub buffers: usize,
    /// Since when knocks wait though no received frame does.
    since: Option<Instant>,
}

impl Grants {
    /// Takes a packet in, which has come in this frame of the wire; of a packet that no rank sends
    /// what is wrong with it.
    pub fn take(
        &mut self,
        from: u32,
        packet: Packet,
        frame: u64,
        out: &mut Out,
    ) -> Result<Taken, String> {
        self.served_all = false;
        match packet {
            Packet::Frame(None, owned) => return Ok(Taken::Aside(owned)),
            Packet::Frame(Some(line), owned) => {
                self.granted_frame(from, line)?;
                self.come[line].push_back((from, owned));
            }
            Packet::More(line, Knock { number, demand, first }) => {
                if std::mem::replace(&mut self.granted_frame(from, line)?.knocks[line], true) {
                    // The frame is dropped.
                    self.free[line] += 1;
                    return Err(format!("a second knock of line {line}"));
                }
                self.come[line].extend(first.map(|owned| (from, owned)));
                let knock = Knock { number, demand, first: None };
                self.knocking[line].push_back(Knocking { from, knock, frame: None });
            }
            Packet::Knock(line, knock) => {
                self.knocking[line].push_back(Knocking { from, knock, frame: Some(frame) });
                return Ok(Taken::Held);
            }
            Packet::Queued(line, owned) => {
                let knock = Knock { number: 0, demand: 0, first: Some(owned) };
                self.knocking[line].push_back(Knocking { from, knock, frame: Some(frame) });
                return Ok(Taken::Held);
            }
            Packet::Grants(answered, granted, asks) => {
                for line in 0..LINES {
                    self.granted(from, line, (answered[line], granted[line]), out);
                }
                out.extend(asks.then_some((from, Packet::Taken)));
            }
            Packet::Taken => {
                if let Some(peer) = self.receiving.get_mut(from) {
                    peer.reporting = false;
                }
            }
            Packet::Granted(_)
            | Packet::Asked
            | Packet::Delivered
            | Packet::Use(..)
            | Packet::Relayed(_) => {
                return Err("no packet of grants".into());
            }
        }
        Ok(Taken::Copied)
    }

    /// Notes that a granted frame of a peer has come.
    fn granted_frame(&mut self, from: u32, line: Line) -> Result<&mut Receiving, String> {
        let peer = self.receiving.get_mut(from).filter(|peer| peer.out[line] > 0);
        let peer = peer.ok_or_else(|| format!("a frame of line {line} that was not granted"))?;
        peer.out[line] -= 1;
        Ok(peer)
    }

    /// Gives received frames to `deliver`, which answers whether a slot was free, and grants free
    /// buffers. Frames that the wire gets back are added to `back`.
    pub fn serve(
        &mut self,
        mut deliver: impl FnMut(u32, &OwnedFrame) -> bool,
        out: &mut Out,
        back: &mut Vec<u64>,
    ) {
        if self.receiving.len() >= RECORDS {
            (0..LINES).for_each(|line| self.decline_knocks(line));
        }
        for line in 0..LINES {
            if self.is_idle(line) {
                continue;
            }
            self.lend(line);
            loop {
                // First: each makes a buffer free, and a knock is answered with all that are free.
                while let Some((from, frame)) = self.come[line].front()
                    && deliver(*from, frame)
                {
                    self.come[line].pop_front();
                    self.free[line] += 1;
                }
                let waiting = self.come[line].len();
                self.answer_knocks(line, back);
                // What a knock has brought does not wait for the next round.
                if self.come[line].len() == waiting {
                    break;
                }
            }
        }
        self.due = None;
        let now = LazyCell::new(Instant::now);
        self.fresh = None;
        for (number, peer) in self.receiving.iter_mut() {
            if peer.is_fresh() {
                peer.since = Some(*now);
            }
            let due = peer.due(self.ride);
            peer.news |= due.is_some_and(|due| due <= *now);
            if peer.news && !peer.reporting {
                peer.news = false;
                peer.reporting = !std::mem::take(&mut peer.grants);
                peer.forget_quiet();
                out.push((number, Packet::Grants(peer.answered, peer.granted, peer.reporting)));
            } else if !peer.news {
                self.due = self.due.into_iter().chain(due).min();
            }
        }
        self.receiving.retain(Receiving::is_needed);
        self.served_all = (0..LINES).all(|line| self.is_idle(line));
    }

    /// Whether serve() has nothing to do until a packet comes, or is_late().
    pub fn has_served_all(&self) -> bool {
        self.served_all
    }

    /// The answer of a knock that a packet to a peer carries; it counts as sent, see also
    /// carries_perhaps().
    pub fn ride(&mut self, to: u32, packet: &Packet) -> Option<Answered> {
        self.ride_by(to, Carrying::of(packet)?)
    }

    /// See ride().
    #[inline(always)]
    pub fn ride_by(&mut self, to: u32, packet: Carrying) -> Option<Answered> {
        let at = self.receiving.find(to)?;
        let peer = self.receiving.at(at);
        if let Some(line) = first_of(peer.quiet & packet.carries()) {
            let answered = (line, peer.answered[line]);
            peer.told(line);
            if !peer.is_needed() {
                self.receiving.discard_at(at);
            }
            return Some(answered);
        }
        let Carrying::Knock(_, number) = packet else { return None };
        let line = first_of(peer.quiet & !peer.carried & packet.carries_perhaps())?;
        peer.carried |= bit(line);
        peer.along[line] = number;
        Some((line, peer.answered[line]))
    }

    /// A peer has answered a knock of this rank, and so knows the answer that the knock carried.
    pub(super) fn has_read(&mut self, from: u32, knock: u64) {
        let Some(at) = self.receiving.find(from) else { return };
        let peer = self.receiving.at(at);
        if peer.carried == 0 {
            return;
        }
        let carried = |line: &Line| peer.carried & bit(*line) != 0 && peer.along[*line] == knock;
        if let Some(line) = (0..LINES).find(carried) {
            peer.told(line);
            if !peer.is_needed() {
                self.receiving.discard_at(at);
            }
        }
    }

    /// Whether nothing has come for a line, and nothing is lent to it.
    pub(super) fn is_idle(&self, line: Line) -> bool {
        let Loan { buffers, since } = self.loans[line];
        let lends = buffers > 0 || since.is_some();
        self.knocking[line].is_empty() && self.come[line].is_empty() && !lends
    }

    /// Lends a line a buffer if knocks have waited too long for granted frames, and takes lent
    /// buffers back when the line needs no more than its own.
    fn lend(&mut self, line: Line) {
        let all = buffers_of(line);
        let loan = &mut self.loans[line];
        if self.free[line] >= all {
            self.free[line] -= std::mem::take(&mut loan.buffers);
        }
        let waits = self.free[line] == 0 && self.come[line].is_empty() && loan.buffers < all;
        if !waits || self.knocking[line].is_empty() {
            loan.since = None;
            return;
        }
        let since = loan.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.patience {
            (loan.buffers, loan.since) = (loan.buffers + 1, None);
            self.free[line] += 1;
        }
    }

    /// Answers knocks in the order of their arrival, but none that would need one record more than
    /// there may be.
    fn answer_knocks(&mut self, line: Line, back: &mut Vec<u64>) {
        let may = |grants: &Grants, it: &Knocking| {
            it.knock.number == 0
                || grants.receiving.len() < RECORDS
                || grants.receiving.contains(it.from)
        };
        while self.free[line] > 0
            && let Some(at) = self.knocking[line].iter().position(|it| may(self, it))
        {
            let among = self.knocking[line].len();
            let Some(Knocking { from, knock, frame }) = self.knocking[line].remove(at) else {
                return;
            };
            match frame {
                Some(frame) => back.push(frame),
                None => self.has_taken_knock(from, line),
            }
            let Knock { number, demand, first } = knock;
            if let Some(first) = first {
                self.free[line] -= 1;
                self.come[line].push_back((from, first));
            }
            if number != 0 && !self.dead.contains(&from) {
                let streams = self.streaming[line] == Some(from);
                if demand > 0 {
                    self.streams.push(from);
                    self.streaming[line] = Some(from);
                } else if streams {
                    self.streaming[line] = None;
                }
                let share = (self.free[line] / among).clamp(1, most_of(line)).min(self.free[line]);
                let share = demand.min(share);
                self.free[line] -= share;
                let peer = self.answer(from, (line, number), share);
                if demand > 0 || streams {
                    peer.news = true;
                } else {
                    peer.be_quiet(line);
                }
            }
            #[cfg(test)]
            {
                let all = buffers_of(line) + self.loans[line].buffers;
                self.most[line] = self.most[line].max(all - self.free[line]);
            }
        }
    }

    /// A knock that a granted frame has brought waits no more.
    fn has_taken_knock(&mut self, from: u32, line: Line) {
        if let Some(peer) = self.receiving.get_mut(from) {
            peer.knocks[line] = false;
        }
    }

    /// Answers the knocks that granted frames have brought, and grants nothing. They use records,
    /// perhaps for long, that other peers need for lines whose frames find slots.
    #[cold]
    fn decline_knocks(&mut self, line: Line) {
        for it in std::mem::take(&mut self.knocking[line]) {
            let Knocking { from, knock: Knock { number, .. }, frame: None } = it else {
                self.knocking[line].push_back(it);
                continue;
            };
            self.has_taken_knock(from, line);
            if !self.dead.contains(&from) {
                self.answer(from, (line, number), 0).news = true;
            }
        }
    }

    /// Notes the answer of a peer's knock, and so many grants for it.
    #[inline(always)]
    pub(super) fn answer(
        &mut self,
        from: u32,
        (line, number): Answered,
        granted: usize,
    ) -> &mut Receiving {
        let peer = self.receiving.get_or_insert_with(from, Receiving::default);
        peer.out[line] += granted;
        peer.grants |= granted > 0;
        (peer.answered[line], peer.granted[line]) = (number, granted as u64);
        // It knows the answer of its last knock, since it knocks again.
        peer.told(line);
        peer
    }

    /// Whether all that a peer has sent and that was granted to it lies in slots.
    pub fn has_delivered_all(&self, from: u32) -> bool {
        self.receiving.get(from).is_none_or(Receiving::has_come)
            && self.come.iter().flatten().all(|(of, _)| *of != from)
            && self.knocking.iter().flatten().all(|knocking| knocking.from != from)
    }

    /// Whether something waits here that serve() may do later, though nothing else comes.
    pub fn is_stuck(&self) -> bool {
        self.come.iter().any(|come| !come.is_empty())
            || self.loans.iter().any(|loan| loan.since.is_some())
            || self.receiving.values().any(Receiving::is_quiet)
    }
}
