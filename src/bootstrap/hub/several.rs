//! The hub of one machine of several: a request that concerns all ranks goes through the log, and
//! is applied when it comes back.

use super::{Event, Hub};
use crate::bootstrap::log::{Entry, Log};
use crate::bootstrap::protocol::Request;
use crate::bootstrap::rules::Verdict;

/// Whether a request concerns the ranks of all machines. The others are served by the rank's hub
/// alone.
pub(super) fn concerns_all(request: &Request) -> bool {
    match request {
        Request::Join { .. } | Request::Publish { .. } | Request::Lookup { .. } => false,
        Request::Exchange { .. } | Request::Fence | Request::Leave | Request::Abort { .. } => true,
    }
}

impl Hub {
    /// Enters a request of a rank of this machine, which lies in the buffer, into the log.
    pub(super) fn submit(
        &mut self,
        rank: u32,
        request: Request,
        size: usize,
        events: &mut Vec<Event>,
    ) -> Verdict {
        if self.is_gone(rank) {
            return Verdict::ProtocolError("a request out of turn");
        }
        let packet = self.buffer[..size].to_vec();
        self.enter(Entry { rank, packet }, events);
        match request {
            Request::Leave => {
                self.departed[rank as usize] = true;
                self.forget_process(rank);
            }
            // The ranks of this machine end at once, even if the hub of rank 0 does not answer.
            Request::Abort { code, grace_ms } => return Verdict::Abort { code, grace_ms },
            _ => {}
        }
        Verdict::Fine
    }

    /// Enters the death of a rank of this machine into the log, once.
    pub(super) fn submit_death(&mut self, rank: u32) {
        if !self.is_gone(rank) {
            self.departed[rank as usize] = true;
            self.enter(Entry { rank, packet: Vec::new() }, &mut Vec::new());
        }
    }

    fn enter(&mut self, entry: Entry, events: &mut Vec<Event>) {
        let now = self.log.as_mut().map(|log| log.submit(entry)).unwrap_or_default();
        self.apply(now, events);
    }

    /// A packet of the hub of another machine has come.
    pub fn relayed(&mut self, from: u32, packet: &[u8]) -> Vec<Event> {
        let (now, mut events) = (self.log.as_mut().map(|log| log.take(from, packet)), Vec::new());
        self.apply(now.unwrap_or_default(), &mut events);
        self.dispatch();
        events
    }

    /// The process of `rank` has ended, or the wire cannot reach it any more. If it has run the hub
    /// of another machine, the ranks there count as dead. If that hub has decided on the order of
    /// the log, this one cannot go on.
    pub fn lost(&mut self, rank: u32) {
        let Some(log) = &mut self.log else { return };
        let lost = log.ranks_of(rank);
        // Those of its own ranks this hub notices itself.
        if log.decides() && !log.is_near(rank) {
            log.forget(rank);
            for rank in lost {
                self.enter(Entry { rank, packet: Vec::new() }, &mut Vec::new());
            }
            self.dispatch();
        } else if lost.contains(&0) && !log.decides() {
            log.cut_off();
        }
    }

    /// This hub ends. The ranks that it leaves behind cannot reach those of other machines any
    /// more. They count as left, since they may live on in other contexts. If this hub decides on
    /// the order of the log, the log ends.
    pub fn say_end(&mut self) {
        let ranks = 0..self.departed.len() as u32;
        let near = |rank| self.log.as_ref().is_some_and(|log| log.is_near(rank));
        let left: Vec<u32> = ranks.filter(|rank| near(*rank) && !self.is_gone(*rank)).collect();
        let Some(log) = self.log.as_mut().filter(|log| !log.is_cut_off()) else { return };
        // Nothing is applied here: the ranks of this machine notice the end of the hub.
        for rank in left {
            log.submit(Entry { rank, packet: Request::Leave.encode(0) });
        }
        if log.decides() {
            log.submit(Entry { rank: log.me(), packet: Vec::new() });
        }
    }

    /// The cards of ranks of other machines, by rank.
    pub fn far_cards(&mut self, cards: &[Vec<u8>]) {
        self.rules.far_cards(cards);
        self.dispatch();
    }

    /// Packets for the hubs of other machines, each with the rank in whose process the hub runs.
    pub fn take_relays(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.log.as_mut().map(Log::take_outgoing).unwrap_or_default()
    }

    /// The hubs with which this one exchanges packets, and which have not ended.
    pub fn others(&self) -> Vec<u32> {
        self.log.as_ref().map(Log::others).unwrap_or_default()
    }

    /// The hubs of other machines that have ended since the last call.
    pub fn take_ended(&mut self) -> Vec<u32> {
        self.log.as_mut().map(Log::take_ended).unwrap_or_default()
    }

    /// The hubs that get a pulse from this one. When all ranks of this machine have left, the
    /// deciding hub gets none: it may end before the pulse arrives.
    pub fn pulsed(&self) -> Vec<u32> {
        let leaves =
            |log: &Log| !log.decides() && self.all_near_ones(log, |rank| self.is_gone(rank));
        if self.log.as_ref().is_some_and(leaves) { Vec::new() } else { self.others() }
    }

    /// Whether the log says that all ranks of this machine have left or have died.
    pub(super) fn near_ones_are_gone(&self, log: &Log) -> bool {
        self.all_near_ones(log, |rank| self.rules.is_gone(rank))
    }

    /// Whether something holds for all ranks of this machine.
    fn all_near_ones(&self, log: &Log, holds: impl Fn(u32) -> bool) -> bool {
        (0..self.departed.len() as u32).all(|rank| !log.is_near(rank) || holds(rank))
    }

    fn apply(&mut self, entries: Vec<Entry>, events: &mut Vec<Event>) {
        let (any, mut wrong) = (!entries.is_empty(), Vec::new());
        for Entry { rank, packet } in entries {
            if packet.is_empty() {
                let ends = self.rules.is_gone(rank);
                let log = self.log.as_mut().filter(|log| ends && log.is_deciding(rank));
                log.into_iter().for_each(Log::cut_off);
                self.rules.gone(rank, false);
                continue;
            }
            // Its own hub has understood it.
            let Some((token, request)) = Request::decode(&packet) else { continue };
            let near = self.log.as_ref().is_some_and(|log| log.is_near(rank));
            match self.rules.handle(rank, token, request, None) {
                Verdict::Abort { code, grace_ms } if !near => {
                    events.push(Event::Abort { rank, code, grace_ms });
                }
                Verdict::ProtocolError(what) if near => {
                    events.push(Event::ProtocolError { rank, what });
                    wrong.push(rank);
                }
                _ => {}
            }
        }
        // Only now: so the deaths follow all of these entries at every hub.
        wrong.into_iter().for_each(|rank| self.disconnect(rank));
        if let Some(log) = self.log.as_mut().filter(|log| any && log.decides()) {
            log.retire(|rank| self.rules.is_gone(rank));
        }
    }
}
