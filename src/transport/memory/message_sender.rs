//! The sending side of messages towards one peer: takes a credit by the peer's policy, writes the
//! slot, and rings the peer's bell if the peer sleeps. Any thread may call; there is no lock and no
//! queue.

use crate::transport::frame::{Envelope, Frame, HEADER};
use crate::transport::memory::message_area::{
    ANSWERS, KINDS, LARGE, LARGE_ANSWERS, LARGE_LIB, LARGE_RESPONSES, LIB, MessageArea,
    MessageHead, Policy, REPLIES, RESPONSES, WakeFlag,
};
use crate::transport::memory::slots::{BODY_WORDS, SlotShare, Taken, Tally};
use crate::transport::{SMALL_REPLY, SMALL_REQUEST};
use crate::util::admission::{Admission, SHARE};
use crate::util::bell::Bell;
use crate::util::copy::copy_few;
use crate::util::counters::{Counters, SHARES};
use crate::util::once::Once;
use crate::util::status::{Result, Status};
use crate::util::sync::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicBool, AtomicI32};

/// Words of a slot's body in front of header and payload.
pub const ENVELOPE_WORDS: usize = size_of::<Envelope>() / 8;
/// Bytes of a slot for the header, rounded up to words, and the payload. If the two do not fit, the
/// payload lies outside.
pub const INLINE_BYTES: usize = (BODY_WORDS - ENVELOPE_WORDS) * 8;
/// Messages after which a sender that uses another share than its nearest tries the nearest again.
const AWAY: u32 = 64;

mod by_class;
mod far;
mod short;
mod tally;
mod turns;

pub use short::{Short, ShortMessage, Small};
use tally::{Counted, Uncounted};
pub use turns::Watched;

/// The sending state of this process towards one peer.
pub struct MessageSender<'a> {
    message_area: MessageArea<'a>,
    /// This rank, which the claims name.
    me: u32,
    /// Envelope::origin() of the rank that the envelopes name as the sender; an endpoint sets it to
    /// that of a remote sender.
    origin: u64,
    /// The owner of the slots.
    peer: u32,
    /// The first share, whose counters all lie with the peer, and its RecvCNT as last read.
    first: SlotShare<'a>,
    first_cached: CachePadded<AtomicU64>,
    /// The other shares of the policy `distributed`.
    further: Box<[CachedShare<'a>]>,
    /// The shares from REPLIES on, whose counters lie with the peer.
    others: [CachedShare<'a>; KINDS - SHARES],
    /// The share whose host is nearest, the share in use, and for how many messages it stays in
    /// use.
    home: usize,
    current: AtomicU32,
    away: AtomicU32,
    /// Policy limit: the peer's `consumed` as last read.
    consumed: CachePadded<AtomicU64>,
    /// The bell on which the peer's progress thread sleeps; it takes replies and answers.
    progress: &'a Bell,
    /// Threads of this process that wait for credit, except the one that watches for it.
    pub room: CachePadded<Admission>,
    /// A thread of this process watches for credit.
    watched: AtomicBool,
    /// Messages to this peer that the lane has accepted and not sent. Threads sleep on the word.
    pub deferred: std::sync::atomic::AtomicU64,
    /// How many messages are left of this process's turn; below 0, minus the number of refusals.
    /// Concurrent threads may lose updates, which only makes a turn longer.
    left: CachePadded<AtomicI32>,
}

// SAFETY: threads access slots and payloads only by the protocol of SlotShare; all else that they
// share are atomics.
unsafe impl Send for MessageSender<'_> {}
// SAFETY: as above.
unsafe impl Sync for MessageSender<'_> {}

/// A share, with its RecvCNT as last read.
struct CachedShare<'a> {
    /// Set when the host's memory is mapped; None: the host cannot be reached.
    share: Once<Option<SlotShare<'a>>>,
    cached: CachePadded<AtomicU64>,
}

impl CachedShare<'_> {
    fn new(cached: u64) -> Self {
        CachedShare { share: Once::new(), cached: CachePadded::new(AtomicU64::new(cached)) }
    }
}

/// The fields `first` with `first_cached`, `further`, `others` and `consumed`.
type Known<'a> = (
    (SlotShare<'a>, CachePadded<AtomicU64>),
    Box<[CachedShare<'a>]>,
    [CachedShare<'a>; KINDS - SHARES],
    u64,
);

/// Finds the message head of the rank that hosts a share.
pub trait FindHost<'a>: Fn(usize) -> Result<&'a MessageHead> + Copy {}

impl<'a, T: Fn(usize) -> Result<&'a MessageHead> + Copy> FindHost<'a> for T {}

impl<'a> MessageSender<'a> {
    /// The sender from rank `me` to `peer`, the owner of `message_area`, whose progress thread
    /// sleeps on `progress`. `home`: the share whose host is nearest.
    pub fn new(
        message_area: MessageArea<'a>,
        (me, peer): (u32, u32),
        home: usize,
        progress: &'a Bell,
    ) -> MessageSender<'a> {
        // Acquire: pairs with give_back(), as the later loads of RecvCNT do.
        let known = |share: usize| {
            CachedShare::new(message_area.head.received[share].count.load(Ordering::Acquire))
        };
        let consumed = message_area.head.consumed.0.load(Ordering::Acquire);
        let others = std::array::from_fn(|at| {
            let (number, known) = (REPLIES + at, known(REPLIES + at));
            let _ = known.share.set(Some(message_area.share(number, message_area.head)));
            known
        });
        let first = (message_area.share(0, message_area.head), known(0).cached);
        let further = (1..message_area.sizes.shares).map(known).collect();
        let known = (first, further, others, consumed);
        Self::with(message_area, (me, peer), home, known, progress)
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
            origin: Envelope::origin(me),
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
            left: CachePadded::new(AtomicI32::new(SHARE)),
        }
    }

    /// The receiver.
    #[inline(always)]
    pub fn peer(&self) -> u32 {
        self.peer
    }

    /// Most bytes of payload of a small slot of the peer, and of a reply to the peer.
    #[inline(always)]
    pub fn medium(&self) -> usize {
        self.message_area.sizes.medium
    }

    /// The head of the peer's message area.
    #[inline(always)]
    pub fn head(&self) -> &'a MessageHead {
        self.message_area.head
    }

    /// Sends a request. False: there is no credit. The functions that are not inlined get a copy of
    /// the frame, so that the compiler can keep it in registers on the inlined path.
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

    /// Sends a request by the share with number `at`.
    #[inline(always)]
    fn send_in(
        &self,
        at: usize,
        share: &SlotShare<'a>,
        cached: &AtomicU64,
        frame: &Frame,
        counts: &Counters,
    ) -> bool {
        let Taken::Ticket(ticket) = share.take(self.me, cached, &Counted(counts, at)) else {
            return false;
        };
        self.fill(share, at, ticket, frame);
        let flag = &self.message_area.head.requests;
        self.wake(flag, flag.bell(), counts);
        // After the message is published, since the receiver does not need these.
        counts.message_sent(at);
        share.fetch_ahead(ticket, cached);
        true
    }

    /// Sends a request by a share that any rank may host.
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
        let known = &self.further[further];
        let share = known.share.get().unwrap_or_else(|| self.open_share(at, find)).as_ref();
        share.is_some_and(|share| self.send_in(at, share, &known.cached, frame, counts))
    }

    /// Sends a response. False: there is no credit.
    pub fn respond(&self, frame: &Frame, counts: &Counters) -> bool {
        let large = frame.payload.len() > self.message_area.sizes.medium;
        self.send_beside(if large { LARGE_RESPONSES } else { RESPONSES }, *frame, counts)
    }

    /// Sends by a share from REPLIES on, to which no policy applies.
    #[inline(never)]
    fn send_beside(&self, at: usize, frame: Frame, counts: &Counters) -> bool {
        if !self.send_silently(at, &frame, &Counted(counts, SHARES - 1)) {
            return false;
        }
        let flag = &self.message_area.head.requests;
        self.wake(flag, flag.bell(), counts);
        match at {
            LARGE => counts.message_sent(0),
            _ => counts.replied(),
        }
        true
    }

    /// Opens a share at its first use. None: the host cannot be reached now; the share keeps this
    /// result only if the host is dead or on another node.
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

    /// Policy limit: the sender increments `sent`, and decrements it again if more messages than
    /// the limit are sent and not consumed. If a sender dies in between, the receiver corrects
    /// `sent` (`message_receiver::idle`).
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
        // Load first: an increment that must be undone moves the cache line for nothing.
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

    /// Policy distributed: tries the nearest share, and then the next ones. A sender stays at the
    /// share where it has found credit for AWAY messages, so that it uses credits of shares whose
    /// nearest ranks do not send.
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

    /// Sends a reply into a slot that the peer has reserved for it. False: no slot is free, since
    /// others' messages hold it, or since the peer did not reserve one.
    pub fn reply(&self, frame: &Frame, counts: &Counters) -> bool {
        if !self.send_silently(REPLIES, frame, &Counted(counts, SHARES - 1)) {
            return false;
        }
        counts.replied();
        self.wake(&self.message_area.head.replies, self.progress, counts);
        true
    }

    /// Sends a request to the peer as the owner of memory. False: all slots hold requests.
    pub fn ask(&self, frame: &Frame) -> bool {
        let at = if frame.payload.len() > SMALL_REQUEST { LARGE_LIB } else { LIB };
        self.send_to_lane(at, frame)
    }

    /// Sends this rank's answer to such a request of the peer, into a slot that the peer has
    /// reserved for it. False: as for reply().
    pub fn answer(&self, frame: &Frame) -> bool {
        let at = if frame.payload.len() > SMALL_REPLY { LARGE_ANSWERS } else { ANSWERS };
        self.send_to_lane(at, frame)
    }

    fn send_to_lane(&self, at: usize, frame: &Frame) -> bool {
        let sent = self.send_silently(at, frame, &Uncounted);
        if sent && self.message_area.head.lane.take_fenced() {
            self.progress.ring();
        }
        sent
    }

    /// Writes a frame into a slot of a share from REPLIES on, and wakes nobody. False: there is no
    /// credit.
    fn send_silently(&self, at: usize, frame: &Frame, tally: &impl Tally) -> bool {
        let known = &self.others[at - REPLIES];
        let Some(Some(share)) = known.share.get() else { return false };
        let Taken::Ticket(ticket) = share.take(self.me, &known.cached, tally) else {
            return false;
        };
        self.fill(share, at, ticket, frame);
        true
    }

    #[inline(always)]
    fn wake(&self, flag: &WakeFlag, bell: &Bell, counts: &Counters) {
        if flag.take() {
            counts.wake_ups.up();
            bell.ring();
        }
    }

    /// Writes the slot of a ticket and publishes it.
    #[inline(always)]
    fn fill(&self, share: &SlotShare, at: usize, ticket: u64, frame: &Frame) {
        if !frame.payload.is_empty() || frame.header.len() != 8 {
            return self.fill_with_bytes(share, at, ticket, *frame);
        }
        let body: *mut u64 = share.slot(ticket).body().with_mut(|body| body.cast());
        // SAFETY: the caller has the slot's ticket, so no other thread uses the slot until it is
        // published; the header has 8 bytes.
        unsafe {
            body.cast::<[u64; ENVELOPE_WORDS]>().write(Envelope::of(self.origin, frame).0);
            let bytes = frame.header.as_ptr().cast::<u64>().read_unaligned();
            body.add(ENVELOPE_WORDS).write(bytes);
        }
        share.publish(ticket);
    }

    /// fill() for any header and payload. Not inlined: a call of a copy function inside fill()
    /// would make the short path slower.
    #[inline(never)]
    fn fill_with_bytes(&self, share: &SlotShare, at: usize, ticket: u64, frame: Frame) {
        let (header, payload) = (frame.header, frame.payload);
        debug_assert!(header.len() <= HEADER);
        // The sum is at most HEADER + 7, so it does not overflow.
        let room = header.len().wrapping_add(7) & !7;
        let body: *mut u64 = share.slot(ticket).body().with_mut(|body| body.cast());
        let bytes: *mut u8 = body.wrapping_add(ENVELOPE_WORDS).cast();
        let mut envelope = Envelope::of(self.origin, &frame);
        let inside = room + payload.len() <= INLINE_BYTES;
        let place = match inside {
            true => bytes.wrapping_add(room),
            false => self.message_area.place_to_write(at, share, ticket, &mut envelope),
        };
        // SAFETY: as in fill(); callers have checked that the header has at most HEADER bytes, and
        // the payload at most as many as the share's slots hold.
        unsafe {
            // The payload first, which takes longest: the receiver polls the slot meanwhile, and
            // takes its cache line from this core.
            match inside {
                true => copy_few(payload, place),
                false => std::ptr::copy_nonoverlapping(payload.as_ptr(), place, payload.len()),
            }
            body.cast::<[u64; ENVELOPE_WORDS]>().write(envelope.0);
            copy_few(header, bytes);
        }
        share.publish(ticket);
        self.message_area.fetch_behind(place, &envelope);
    }
}
