//! The sending side of active messages towards one peer: takes a credit by the peer's policy,
//! writes the slot, and knocks if the peer sleeps. Any thread, no lock, no queue.

use crate::transport::frame::{Envelope, Frame, HEADER};
use crate::transport::memory::message_area::{
    ANSWERS, Door, KINDS, LARGE, LARGE_ANSWERS, LARGE_LIB, LARGE_RESPONSES, LIB, MessageArea,
    MessageHead, Policy, REPLIES, RESPONSES,
};
use crate::transport::memory::slots::{BODY_WORDS, SlotShare, Taken, Tally};
use crate::transport::{SMALL_REPLY, SMALL_REQUEST};
use crate::util::admission::Admission;
use crate::util::bell::Bell;
use crate::util::counters::{Counters, SHARES};
use crate::util::memory::copy_short;
use crate::util::once::Once;
use crate::util::status::{Result, Status};
use crate::util::sync::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicBool, AtomicI32};
use std::time::{Duration, Instant};

/// Words of a slot's body before its bytes.
pub const ENVELOPE_WORDS: usize = size_of::<Envelope>() / 8;
/// Bytes that travel in the slot itself: the header, rounded up to words, and then the payload, if
/// both fit.
pub const INLINE_BYTES: usize = (BODY_WORDS - ENVELOPE_WORDS) * 8;
/// Messages after which a sender that has moved to another share tries its own again.
const AWAY: u32 = 64;

mod by_class;
mod far;
mod short;
mod tally;
mod turns;

pub use short::{Short, ShortMessage};
use tally::{Toll, Uncounted};
use turns::TURN;
pub use turns::Watched;

/// One peer as the senders of this process see it.
pub struct MessageSender<'a> {
    message_area: MessageArea<'a>,
    /// This rank, by whose name tickets are taken.
    me: u32,
    /// The rank that the envelopes name as the sender.
    source: u32,
    /// See Envelope::of_short(), of this source.
    of_short: u64,
    /// Whose slots they are.
    peer: u32,
    /// The first share, whose counters all lie with the peer, and what was last seen of its
    /// RecvCNT.
    first: SlotShare<'a>,
    first_cached: CachePadded<AtomicU64>,
    /// The other shares of policy `distributed`: whose counters are known, and likewise.
    further: Box<[Near<'a>]>,
    /// What is known of the shares whose counters lie with the peer: from REPLIES on.
    others: [Near<'a>; KINDS - SHARES],
    /// The share whose host is nearest, the one in use, and for how many messages still.
    home: usize,
    current: AtomicU32,
    away: AtomicU32,
    /// Policy limit: what was last seen of the messages that were consumed.
    consumed: CachePadded<AtomicU64>,
    /// What the peer's progress thread sleeps on, which takes replies in.
    progress: &'a Bell,
    /// Threads of this process that wait for credit, but for the one that watches for it.
    pub room: CachePadded<Admission>,
    watched: AtomicBool,
    /// Messages to this peer that the lane has accepted and not sent. Threads sleep on the word.
    pub deferred: std::sync::atomic::AtomicU64,
    /// What is left of this process's turn; below 0 the refusals, counted. Threads that meet here
    /// may lose some.
    left: CachePadded<AtomicI32>,
}

// SAFETY: slots and payloads are reached by the protocol of `share` only, and the counters are
// atomics.
unsafe impl Send for MessageSender<'_> {}
// SAFETY: as above.
unsafe impl Sync for MessageSender<'_> {}

struct Near<'a> {
    /// None: its host cannot be reached.
    share: Once<Option<SlotShare<'a>>>,
    cached: CachePadded<AtomicU64>,
}

impl Near<'_> {
    fn new(cached: u64) -> Self {
        Near { share: Once::new(), cached: CachePadded::new(AtomicU64::new(cached)) }
    }
}

/// What is known of a peer's counters: the first share, the further ones, the others, and
/// `consumed`.
type Known<'a> =
    ((SlotShare<'a>, CachePadded<AtomicU64>), Box<[Near<'a>]>, [Near<'a>; KINDS - SHARES], u64);

/// Finds the words of a rank that hosts a share.
pub trait FindHost<'a>: Fn(usize) -> Result<&'a MessageHead> + Copy {}

impl<'a, T: Fn(usize) -> Result<&'a MessageHead> + Copy> FindHost<'a> for T {}

impl<'a> MessageSender<'a> {
    /// The message_sender of rank `me` to `peer`, the owner of `message_area`, whose progress
    /// thread sleeps on `progress`.
    pub fn new(
        message_area: MessageArea<'a>,
        (me, peer): (u32, u32),
        home: usize,
        progress: &'a Bell,
    ) -> MessageSender<'a> {
        // Acquire: pairs with give_back(); what is known from the beginning is known in full.
        let near =
            |share: usize| Near::new(message_area.head.received[share].0.load(Ordering::Acquire));
        let consumed = message_area.head.consumed.0.load(Ordering::Acquire);
        let others = std::array::from_fn(|at| {
            let (number, near) = (REPLIES + at, near(REPLIES + at));
            let _ = near.share.set(Some(message_area.share(number, message_area.head)));
            near
        });
        let first = (message_area.share(0, message_area.head), near(0).cached);
        let further = (1..message_area.sizes.shares).map(near).collect();
        let near = (first, further, others, consumed);
        Self::with(message_area, (me, peer), home, near, progress)
    }

    fn with(
        message_area: MessageArea<'a>,
        (me, peer): (u32, u32),
        home: usize,
        ((first, first_cached), further, others, consumed): Known<'a>,
        progress: &'a Bell,
    ) -> Self {
        MessageSender {
            message_area,
            me,
            source: me,
            of_short: Envelope::of_short(me, short::WORD),
            peer,
            first,
            first_cached,
            further,
            others,
            home,
            current: AtomicU32::new(home as u32),
            away: AtomicU32::new(0),
            consumed: CachePadded::new(AtomicU64::new(consumed)),
            progress,
            room: CachePadded::default(),
            watched: AtomicBool::new(false),
            deferred: std::sync::atomic::AtomicU64::new(0),
            left: CachePadded::new(AtomicI32::new(TURN)),
        }
    }

    /// Whose slots they are.
    #[inline(always)]
    pub fn peer(&self) -> u32 {
        self.peer
    }

    /// Most bytes of a payload that travels in one of many slots, and of a reply.
    #[inline(always)]
    pub fn medium(&self) -> usize {
        self.message_area.sizes.medium
    }

    /// The peer's words.
    #[inline(always)]
    pub fn head(&self) -> &'a MessageHead {
        self.message_area.head
    }

    /// Sends a message. False: there is no credit. What is not the short way gets a copy of the
    /// frame, so that the short one need not have it in memory.
    #[inline(always)]
    pub fn send(&self, frame: &Frame, find: impl FindHost<'a>, counts: &Counters) -> bool {
        if frame.payload.len() > self.message_area.sizes.medium {
            return self.send_beside(LARGE, *frame, counts);
        }
        match self.message_area.sizes.policy {
            Policy::Acquire => self.send_in(0, &self.first, &self.first_cached, frame, counts),
            Policy::Limit => self.send_limited(*frame, counts),
            Policy::Distributed => self.send_distributed(*frame, find, counts),
        }
    }

    /// Sends with a ticket of the share number `at`.
    #[inline(always)]
    fn send_in(
        &self,
        at: usize,
        share: &SlotShare<'a>,
        cached: &AtomicU64,
        frame: &Frame,
        counts: &Counters,
    ) -> bool {
        let Taken::Ticket(ticket) = share.take(self.me, cached, &Toll(counts, at)) else {
            return false;
        };
        self.fill(share, at, ticket, frame);
        let door = &self.message_area.head.requests;
        self.knock(door, door.bell(), counts);
        // What the message need not wait for.
        counts.message_sent(at);
        share.fetch_ahead(ticket, cached);
        true
    }

    /// Sends with a ticket of a share that any rank may host.
    fn send_by(
        &self,
        at: usize,
        frame: &Frame,
        find: impl FindHost<'a>,
        counts: &Counters,
    ) -> bool {
        let Some(further) = at.checked_sub(1) else {
            return self.send_in(0, &self.first, &self.first_cached, frame, counts);
        };
        let near = &self.further[further];
        let share = match near.share.get() {
            Some(share) => share,
            None => self.open_share(at, find),
        };
        let share = share.as_ref();
        share.is_some_and(|share| self.send_in(at, share, &near.cached, frame, counts))
    }

    /// Sends a response. False: there is no credit.
    pub fn respond(&self, frame: &Frame, counts: &Counters) -> bool {
        let large = frame.payload.len() > self.message_area.sizes.medium;
        self.send_beside(if large { LARGE_RESPONSES } else { RESPONSES }, *frame, counts)
    }

    /// Sends with a ticket of a share that no policy governs.
    #[inline(never)]
    fn send_beside(&self, at: usize, frame: Frame, counts: &Counters) -> bool {
        let near = &self.others[at - REPLIES];
        let Some(Some(share)) = near.share.get() else { return false };
        let Taken::Ticket(ticket) = share.take(self.me, &near.cached, &Toll(counts, SHARES - 1))
        else {
            return false;
        };
        self.fill(share, at, ticket, &frame);
        let door = &self.message_area.head.requests;
        self.knock(door, door.bell(), counts);
        match at {
            LARGE => counts.message_sent(0),
            _ => counts.replies.up(),
        }
        true
    }

    /// The first use of a share. None of a host that cannot be opened now is kept, but where it is
    /// dead, or of another node.
    #[cold]
    fn open_share(&self, at: usize, find: impl FindHost<'a>) -> &Option<SlotShare<'a>> {
        let out_of_reach = [Status::ERR_PEER_DEAD, Status::ERR_UNSUPPORTED];
        let share = match find(at) {
            Ok(host) => Some(self.message_area.share(at, host)),
            Err(error) if out_of_reach.contains(&error.status) => None,
            Err(_) => return &None,
        };
        self.further[at - 1].share.get_or_init(|| share)
    }

    /// Policy limit: an addition tells how many messages are under way; where they are too many it
    /// is taken back. A sender that dies in between leaves a credit out, which the receiver finds
    /// (`message_receiver`).
    #[inline(never)]
    fn send_limited(&self, frame: Frame, counts: &Counters) -> bool {
        let head = self.message_area.head;
        let limit = self.message_area.sizes.slots as i64;
        let full = |number: u64| {
            let is_full = |seen: u64| number.wrapping_sub(seen) as i64 >= limit;
            is_full(self.consumed.load(Ordering::Relaxed)) && {
                counts.credit_reads.up();
                let seen = head.consumed.0.load(Ordering::Relaxed);
                self.consumed.store(seen, Ordering::Relaxed);
                is_full(seen)
            }
        };
        // A look first: an addition that has to be taken back costs everybody.
        if full(head.sent.0.load(Ordering::Relaxed)) {
            return false;
        }
        if full(head.sent.0.fetch_add(1, Ordering::Relaxed)) {
            head.sent.0.fetch_sub(1, Ordering::Relaxed);
            counts.update_lost(0);
            return false;
        }
        let sent = self.send_in(0, &self.first, &self.first_cached, &frame, counts);
        if !sent {
            head.sent.0.fetch_sub(1, Ordering::Relaxed);
            counts.update_lost(0);
        }
        sent
    }

    /// Policy distributed: the nearest share; where it is empty the next ones. A sender stays where
    /// it found credit for a while, so that credits that nobody near them uses serve senders that
    /// lack some.
    #[inline(never)]
    fn send_distributed(&self, frame: Frame, find: impl FindHost<'a>, counts: &Counters) -> bool {
        let count = 1 + self.further.len();
        let mut first = self.current.load(Ordering::Relaxed) as usize;
        if first != self.home && self.away.fetch_sub(1, Ordering::Relaxed) == 0 {
            first = self.home;
            self.away.store(AWAY, Ordering::Relaxed);
        }
        for step in 0..count {
            let at = (first + step) & (count - 1);
            if self.send_by(at, &frame, find, counts) {
                if at as u32 != self.current.load(Ordering::Relaxed) {
                    self.away.store(AWAY, Ordering::Relaxed);
                    self.current.store(at as u32, Ordering::Relaxed);
                }
                return true;
            }
        }
        false
    }

    /// Sends a reply into a slot that the peer has set aside. False: there is none, so it is no
    /// request of this peer's that is answered.
    pub fn reply(&self, frame: &Frame, counts: &Counters) -> bool {
        let toll = Toll(counts, SHARES - 1);
        let Some((share, ticket)) = self.ticket_set_aside(REPLIES, &toll) else { return false };
        self.fill(share, REPLIES, ticket, frame);
        counts.replies.up();
        self.knock(&self.message_area.head.replies, self.progress, counts);
        true
    }

    /// Asks the peer's agent. False: all slots hold requests.
    pub fn ask(&self, frame: &Frame) -> bool {
        let at = if frame.payload.len() > SMALL_REQUEST { LARGE_LIB } else { LIB };
        let near = &self.others[at - REPLIES];
        let Some(Some(share)) = near.share.get() else { return false };
        let Taken::Ticket(ticket) = share.take(self.me, &near.cached, &Uncounted) else {
            return false;
        };
        self.fill(share, at, ticket, frame);
        self.knock_at_lane();
        true
    }

    /// Answers what the peer has asked this rank's agent. False: it has set no slot aside, so it
    /// has not asked.
    pub fn answer(&self, frame: &Frame) -> bool {
        let at = if frame.payload.len() > SMALL_REPLY { LARGE_ANSWERS } else { ANSWERS };
        let Some((share, ticket)) = self.ticket_set_aside(at, &Uncounted) else {
            return false;
        };
        self.fill(share, at, ticket, frame);
        self.knock_at_lane();
        true
    }

    fn knock_at_lane(&self) {
        if self.message_area.head.lane.knock_fenced() {
            self.progress.ring();
        }
    }

    /// The share and the ticket of a reply or an answer. There is always one, but where ours was
    /// passed over because we were preempted, and its slot has not been given back.
    fn ticket_set_aside(&self, at: usize, tally: &impl Tally) -> Option<(&SlotShare<'a>, u64)> {
        /// A reply is given up after so long: its asker has died, or is stopped, within a few
        /// instructions.
        const LONGEST: Duration = Duration::from_millis(100);
        let near = &self.others[at - REPLIES];
        let share = near.share.get()?.as_ref()?;
        let mut since = None;
        loop {
            match share.take(self.me, &near.cached, tally) {
                Taken::Ticket(ticket) => return Some((share, ticket)),
                Taken::Full => {
                    if since.get_or_insert_with(Instant::now).elapsed() > LONGEST {
                        return None;
                    }
                    std::thread::yield_now();
                }
            }
        }
    }

    #[inline(always)]
    fn knock(&self, door: &Door, bell: &Bell, counts: &Counters) {
        if door.knock() {
            counts.wake_ups.up();
            bell.ring();
        }
    }

    /// Writes the slot of a ticket and publishes it.
    #[inline(always)]
    fn fill(&self, share: &SlotShare, at: usize, ticket: u64, frame: &Frame) {
        if !frame.payload.is_empty() || frame.header.len() != 8 {
            return self.fill_with_bytes(*share, at, ticket, *frame);
        }
        let body: *mut u64 = share.slot(ticket).body().with_mut(|body| body.cast());
        // SAFETY: the slot is the caller's until it is published, see SlotShare; the header has as
        // many bytes.
        unsafe {
            body.cast::<[u64; ENVELOPE_WORDS]>().write(Envelope::of(frame, self.source).0);
            let bytes = frame.header.as_ptr().cast::<u64>().read_unaligned();
            body.add(ENVELOPE_WORDS).write(bytes);
        }
        share.publish(ticket);
    }

    /// Likewise, where bytes are to be copied: apart, since a call in between makes everything
    /// else slower.
    #[inline(never)]
    fn fill_with_bytes(&self, share: SlotShare, at: usize, ticket: u64, frame: Frame) {
        let (header, payload) = (frame.header, frame.payload);
        debug_assert!(header.len() <= HEADER);
        // At most HEADER, so nothing overflows.
        let room = header.len().wrapping_add(7) & !7;
        let body: *mut u64 = share.slot(ticket).body().with_mut(|body| body.cast());
        let bytes: *mut u8 = body.wrapping_add(ENVELOPE_WORDS).cast();
        let place = match room + payload.len() > INLINE_BYTES {
            true => self.message_area.payload(at, share.index(ticket)),
            false => bytes.wrapping_add(room),
        };
        // SAFETY: as in fill(); the header was checked to be at most HEADER bytes, the payload at
        // most what the share's slots hold.
        unsafe {
            // First what takes long: the receiver, which looks at the slot, takes its line away
            // meanwhile.
            copy_short(payload, place);
            body.cast::<[u64; ENVELOPE_WORDS]>().write(Envelope::of(&frame, self.source).0);
            copy_short(header, bytes);
        }
        share.publish(ticket);
    }
}
