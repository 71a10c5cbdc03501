//! The sender's side: tickets that this rank has taken, and the frames that wait for them.

use super::area::{Area, PEERS};
use super::{Place, SLOTS, SMALL, Use, Waiting, fits};
use crate::transport::wire::grants::{Line, Out, Packet};
use crate::transport::wire::packet::{OwnedFrame, bytes_of};
use crate::transport::wire::{CLASS_RMA, Command, Event, Piece, WireLane};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

mod commands;
use commands::{Begun, What, reserve};

/// Of a tag of this; with the bit above it is one of `remote::Posted`.
const TICKETS: u64 = 1 << 62;
const POSTED: u64 = 1 << 63;
/// Frames of a line to one peer that wait, and to all.
const DEPTH: usize = 16;
const WAITING: usize = 256;
/// Most commands that are posted at a time.
const BATCH: usize = 16;
/// How long this rank waits before it reads again how many slots are free: first, and at most.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// The state of one line at a peer.
#[derive(Default)]
struct Held {
    waiting: VecDeque<OwnedFrame>,
    /// Tickets that were taken and not used.
    tickets: std::ops::Range<u64>,
    /// The first ticket without a slot, as far as is known.
    limit: u64,
    /// The ticket behind the last that was used, of those since the last offer.
    used: u64,
    /// A fetch-and-add is under way; a read of RecvCNT.
    taking: bool,
    looking: bool,
    /// When RecvCNT may be read again, and how much later the time after that.
    again: Option<Instant>,
    pause: Duration,
}

impl Held {
    /// Whether frames that come now should wait here, and not knock.
    fn is_busy(&self) -> bool {
        self.taking || !self.tickets.is_empty() || !self.waiting.is_empty()
    }

    /// Whether all that was written was taken from its slot.
    fn is_delivered(&self) -> bool {
        !self.is_busy() && (self.used == 0 || self.limit >= self.used.saturating_add(SLOTS))
    }
}

/// A peer whose slots this rank may use.
struct Record {
    number: u64,
    place: Place,
    lines: [Held; SMALL],
    /// Frames that were written, or will be.
    sent: u64,
    /// Commands that have not ended.
    under_way: usize,
    /// One of them uses the place that each peer has for itself.
    has_place: bool,
    /// No further ticket may be used; that was answered.
    revoked: bool,
    released: bool,
    /// Somebody waits until all is delivered.
    asked: bool,
}

/// See the head of the file.
#[derive(Default)]
pub struct Taker {
    records: BTreeMap<u32, Record>,
    waiting: [usize; SMALL],
    begun: BTreeMap<u64, Begun>,
    /// Commands that were not posted, by peer; no queue is empty.
    queues: BTreeMap<u32, VecDeque<u64>>,
    /// Peers with a line that waits for slots, for a place, or for a time.
    ready: BTreeSet<u32>,
    /// The peer that gets a place first, and its line.
    turn: u32,
    line: Line,
    /// Places in use that are for all peers.
    shared: usize,
    tags: u64,
}

impl Taker {
    /// Whether this is a tag of a command of this.
    pub fn is_tag(tag: u64) -> bool {
        tag & (TICKETS | POSTED) == TICKETS
    }

    /// Whether a frame goes by a ticket: it fits, the peer's slots may be used, and other frames
    /// are under way there. `knocks`: a knock is.
    pub fn takes(&self, to: u32, line: Line, size: usize, knocks: bool) -> bool {
        let may = |record: &Record| !record.revoked && (knocks || record.lines[line].is_busy());
        fits(line, size) && self.records.get(&to).is_some_and(may)
    }

    /// Whether one more frame of which takes() is true may wait.
    pub fn has_room(&self, to: u32, line: Line) -> bool {
        let room = |record: &Record| record.lines[line].waiting.len() < DEPTH;
        self.waiting[line] < WAITING && self.records.get(&to).is_some_and(room)
    }

    /// Takes a frame of which takes() is true. pump() begins what it needs.
    pub fn send(&mut self, to: u32, line: Line, frame: OwnedFrame) {
        if let Some(record) = self.records.get_mut(&to) {
            record.lines[line].waiting.push_back(frame);
            self.waiting[line] += 1;
            self.ready.insert(to);
        }
    }

    /// Whether a tag is that of a write.
    pub fn is_write(&self, tag: u64) -> bool {
        self.begun.get(&tag).is_some_and(|begun| matches!(begun.what, What::Write(_)))
    }

    /// A peer offers its slots. False: too many do.
    pub fn accept(&mut self, from: u32, number: u64, place: Place) -> bool {
        // An offer behind another says that the other was closed.
        let over = self.records.get(&from).is_none_or(|record| record.released);
        if !over || !self.records.contains_key(&from) && self.records.len() >= PEERS {
            return false;
        }
        let record = Record {
            number,
            place,
            lines: Default::default(),
            sent: 0,
            under_way: 0,
            has_place: false,
            revoked: false,
            released: false,
            asked: false,
        };
        self.records.insert(from, record);
        true
    }

    /// The sender may use no further ticket. Returns the waiting frames, which go by grants.
    pub fn revoked(&mut self, from: u32, number: u64, out: &mut Out) -> Vec<Waiting> {
        let Some(record) = self.records.get_mut(&from).filter(|it| it.number == number) else {
            return Vec::new();
        };
        record.revoked = true;
        let mut left = Vec::new();
        for (held, line) in record.lines.iter_mut().zip(0..) {
            held.tickets = 0..0;
            self.waiting[line] -= held.waiting.len();
            left.extend(held.waiting.drain(..).map(|frame| (line, frame)));
        }
        record.release(from, out);
        left
    }

    /// All that was sent there was taken.
    pub fn closed(&mut self, from: u32, number: u64) {
        if self.records.get(&from).is_some_and(|it| it.number == number && it.released) {
            self.records.remove(&from);
            self.ready.remove(&from);
        }
    }

    /// The sender sends nothing to the peer any more. Posted commands end by themselves.
    pub fn discard(&mut self, area: &mut Area, peer: u32) {
        self.drop_waiting(area, peer);
        self.records.remove(&peer);
    }

    /// The sender sends no more frames to a living peer, since one is lost. It reports this to the
    /// peer when nothing is under way, so that other senders can go on.
    pub fn lose(&mut self, area: &mut Area, peer: u32, out: &mut Out) {
        self.drop_waiting(area, peer);
        if let Some(record) = self.records.get_mut(&peer) {
            record.revoked = true;
            record.release(peer, out);
        }
    }

    /// Drops frames for a peer that were not posted.
    fn drop_waiting(&mut self, area: &mut Area, peer: u32) {
        self.ready.remove(&peer);
        for tag in self.queues.remove(&peer).into_iter().flatten() {
            let Some(begun) = self.begun.remove(&tag) else { continue };
            self.give_up_place(area, &begun);
            if let Some(record) = self.records.get_mut(&peer).filter(|it| it.number == begun.number)
            {
                record.under_way -= 1;
                record.sent -= u64::from(matches!(begun.what, What::Write(_)));
            }
        }
        if let Some(record) = self.records.get_mut(&peer) {
            for (held, waiting) in record.lines.iter_mut().zip(&mut self.waiting) {
                held.tickets = 0..0;
                *waiting -= held.waiting.len();
                held.waiting.clear();
            }
        }
    }

    fn give_up_place(&mut self, area: &mut Area, begun: &Begun) {
        let Some(place) = begun.place else { return };
        area.release(place.at);
        let Begun { peer, number, .. } = begun;
        if !place.is_own {
            self.shared -= 1;
        } else if let Some(record) = self.records.get_mut(peer).filter(|it| it.number == *number) {
            record.has_place = false;
        }
    }

    /// See `Tickets::all_delivered`.
    pub fn all_delivered(&mut self) -> bool {
        let mut all = true;
        for (peer, record) in &mut self.records {
            record.asked = !record.is_delivered();
            all &= !record.asked;
            if record.has_work() {
                self.ready.insert(*peer);
            }
        }
        all
    }

    /// Whether frames have tickets and are not posted.
    #[cfg(all(test, feature = "simulated"))]
    pub fn holds_writes(&self) -> bool {
        self.queues.values().flatten().any(|tag| self.is_write(*tag))
    }

    /// Whether something waits for slots, for a place, or for the lane.
    pub fn is_stuck(&self) -> bool {
        !self.queues.is_empty() || !self.ready.is_empty()
    }
}

impl Record {
    /// Whether the receiver has taken all that was sent.
    fn is_delivered(&self) -> bool {
        !self.revoked && self.under_way == 0 && self.lines.iter().all(Held::is_delivered)
    }

    /// Whether advance() may begin something though no command ends.
    fn has_work(&self) -> bool {
        let waits = |it: &Held| !it.tickets.is_empty() || !it.waiting.is_empty() && !it.taking;
        !self.revoked && (self.asked || self.lines.iter().any(waits))
    }

    /// Tells the receiver, once, that nothing is under way any more.
    fn release(&mut self, to: u32, out: &mut Out) {
        if self.revoked && !self.released && self.under_way == 0 {
            self.released = true;
            out.push((to, Packet::Use(self.number, Use::Released(self.sent))));
        }
    }
}

/// Commands.
impl Taker {
    /// Begins what a line waits for: writes where tickets have slots, further tickets, a look.
    fn advance(&mut self, area: &mut Area, peer: u32, line: Line, now: Instant) {
        let Taker { records, waiting, begun, queues, tags, shared, .. } = self;
        let Some(record) = records.get_mut(&peer).filter(|record| !record.revoked) else { return };
        let (number, held) = (record.number, &mut record.lines[line]);
        let queue = queues.entry(peer).or_default();
        let mut begin = |what, place| {
            *tags += 1;
            let tag = TICKETS | *tags & (TICKETS - 1);
            begun.insert(tag, Begun { peer, number, line, what, place });
            queue.push_back(tag);
            record.under_way += 1;
        };
        let mut reserve = |area: &mut Area| reserve(area, &mut record.has_place, shared);
        while held.tickets.start < held.tickets.end.min(held.limit)
            && !held.waiting.is_empty()
            && let Some(mut place) = reserve(area)
            && let Some(frame) = held.waiting.pop_front()
            && let Some(ticket) = held.tickets.next()
        {
            waiting[line] -= 1;
            let packet = bytes_of(&Packet::Frame(Some(line), frame));
            place.size = area.fill(place.at, ticket, &packet);
            begin(What::Write(ticket), Some(place));
            (held.used, record.sent) = (ticket + 1, record.sent + 1);
        }
        let takes = held.tickets.is_empty() && !held.waiting.is_empty() && !held.taking;
        if takes {
            held.taking = true;
            begin(What::Take(held.waiting.len() as u64), None);
        }
        let full = held.tickets.start < held.tickets.end && held.tickets.start >= held.limit;
        let asked = record.asked && !held.is_delivered();
        let time = held.again.is_none_or(|again| now >= again);
        if (takes || (full || asked) && time)
            && !held.looking
            && let Some(place) = reserve(area)
        {
            held.looking = true;
            begin(What::Look, Some(place));
        }
        if queue.is_empty() {
            queues.remove(&peer);
        }
    }

    /// See `Tickets::pump`.
    pub fn pump(&mut self, area: &mut Area, lane: &mut dyn WireLane) -> Vec<(u32, String)> {
        if self.records.is_empty() && self.queues.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        // In turn, since all peers share the other places.
        let turn = self.turn;
        let peers: Vec<u32> =
            self.ready.range(turn..).chain(self.ready.range(..turn)).copied().collect();
        self.turn = peers.first().map_or(0, |peer| peer.wrapping_add(1));
        self.line = (self.line + 1) % SMALL;
        let lines = self.line..self.line + SMALL;
        for peer in peers {
            lines.clone().for_each(|line| self.advance(area, peer, line % SMALL, now));
            if !self.records.get(&peer).is_some_and(Record::has_work) {
                self.ready.remove(&peer);
            }
        }
        let mut refused = Vec::new();
        let peers = self.queues.range(turn..).chain(self.queues.range(..turn));
        let peers: Vec<u32> = peers.map(|(peer, _)| *peer).collect();
        for peer in peers {
            if let Err(why) = self.post(area, lane, peer) {
                refused.push((peer, why));
            }
        }
        refused
    }

    /// Posts the commands that wait for one peer.
    fn post(&mut self, area: &Area, lane: &mut dyn WireLane, peer: u32) -> Result<(), String> {
        while let Some(queue) = self.queues.get_mut(&peer) {
            let tags: Vec<u64> = queue.iter().copied().take(BATCH).collect();
            let at = |tag: &u64| Some((*tag, self.begun.get(tag)?));
            let begun: Vec<(u64, &Begun)> = tags.iter().filter_map(at).collect();
            let pieces: Vec<Piece> = begun.iter().map(|(_, begun)| begun.piece(area)).collect();
            let place = self.records.get(&peer).map(|record| record.place);
            let Some(place) = place else { return Ok(()) };
            let command =
                |((tag, begun), piece): (&(u64, &Begun), _)| begun.command(*tag, &place, piece);
            let commands: Vec<Command> = begun.iter().zip(&pieces).map(command).collect();
            // SAFETY: the pieces live through the call; the area lives until the lane is closed,
            // and a place is used by one command until its end.
            let (count, why) = unsafe { lane.post(peer, CLASS_RMA, &commands) };
            let (count, tried) = (count.min(commands.len()), commands.len());
            queue.drain(..count);
            if queue.is_empty() {
                self.queues.remove(&peer);
            }
            if count < tried {
                return if why.is_retry() { Ok(()) } else { Err(format!("{why:?}")) };
            }
        }
        Ok(())
    }

    /// See `Tickets::done`.
    pub fn done(&mut self, area: &mut Area, event: &Event, out: &mut Out) -> Vec<Waiting> {
        let Some(begun) = self.begun.remove(&event.tag) else { return Vec::new() };
        let seen = begun.place.map_or(0, |place| area.read(place.at));
        self.give_up_place(area, &begun);
        let Begun { peer, number, line, what, .. } = begun;
        let Some(record) = self.records.get_mut(&peer).filter(|it| it.number == number) else {
            return Vec::new();
        };
        record.under_way -= 1;
        if event.status != 0 {
            record.sent -= u64::from(matches!(what, What::Write(_)));
            // The receiver or its memory is gone. The frames go by a knock, which finds that out.
            return self.revoked(peer, number, out);
        }
        let (held, now) = (&mut record.lines[line], Instant::now());
        match what {
            What::Take(count) => {
                held.taking = false;
                if !record.revoked {
                    held.tickets = event.fetched..event.fetched.saturating_add(count);
                }
            }
            What::Look => {
                held.looking = false;
                let limit = seen.saturating_add(SLOTS);
                held.pause = match limit > held.limit {
                    true => FIRST_PAUSE,
                    false => (held.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE),
                };
                held.limit = held.limit.max(limit);
                held.again = Some(now + held.pause);
            }
            What::Write(_) => {}
        }
        record.asked &= !record.is_delivered();
        record.release(peer, out);
        self.ready.insert(peer);
        Vec::new()
    }
}

#[cfg(all(test, feature = "simulated", not(loom)))]
mod tests;
