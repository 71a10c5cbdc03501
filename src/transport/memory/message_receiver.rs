//! The receiving side of active messages: the shares of this rank, one after the other. The thread
//! that has a MessageReceiver is the one receiver of its shares.

use crate::transport::frame::{Arrived, Class, Envelope, HEADER};
use crate::transport::memory::lookout::Lookout;
use crate::transport::memory::message_area::{
    ANSWERS, Door, LARGE, LARGE_ANSWERS, LARGE_LIB, LARGE_RESPONSES, LIB, MessageArea, Policy,
    REPLIES, RESPONSES,
};
use crate::transport::memory::message_sender::INLINE_BYTES;
use crate::transport::memory::segment::Segment;
use crate::transport::memory::slots::{FIRST, Slot, SlotShare, mark};
use crate::util::counters::Counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Messages taken from one share before the next has its turn.
const BATCH: u32 = 32;
/// Looks without result between two looks at what others have begun: some tens of microseconds of a
/// thread that does nothing else. Each of those reads the claims of all slots, and costs the
/// senders hand-overs.
const LOOKS: u32 = 1024;
/// Looks without result after which a sender that sleeps for credit is woken: about a microsecond.
const QUIET: u32 = 32;
/// Of so many looks without result one is at all shares of messages; the others are at the share of
/// the last message. Shares of large payloads are waited for less often than a look costs.
const ASKEW: u32 = 8;
/// Looks after which another one is woken, since nothing comes from that one: longer than it takes
/// to wake.
const AGAIN: u32 = 4096;

mod asides;
mod idle;
mod run;

use asides::Aside;
pub use run::Consumer;

/// Where one share stands.
struct Stand {
    number: usize,
    share: SlotShare<'static>,
    /// The ticket to be taken next.
    next: u64,
    /// Up to where slots were given back.
    returned: u64,
    /// Of those that are to be given back, how many nobody has sent.
    unsent: u64,
    /// How many are given back at a time.
    lot: u64,
    /// The most messages that were ever found waiting.
    most: u64,
    /// Since when the next ticket has been taken but not been published.
    unfinished: Option<Instant>,
    /// Looks in vain since a message was taken, or since the last look at the claims.
    misses: u32,
}

impl Stand {
    /// Whether a sender has begun with the next ticket or a later one.
    fn is_begun(&self) -> bool {
        self.share.is_begun(self.next)
    }
}

/// What a receiver asks of whatever knows the other ranks.
pub trait Peers: Send + Sync {
    /// Rings for the threads that run a rank's handlers; None: those of all ranks that are known.
    fn ring_handlers(&self, rank: Option<u32>);
    /// Rings for a rank's progress thread, which is contacted for it if need be; None: as above.
    fn ring_progress(&self, rank: Option<u32>);
}

/// See the head of the file.
pub struct MessageReceiver {
    class: Class,
    /// Of the segment below, which outlives it here.
    message_area: MessageArea<'static>,
    _own: Arc<Segment>,
    lookout: Arc<Lookout>,
    dead: Arc<[AtomicBool]>,
    peers: Arc<dyn Peers>,
    counts: Arc<Counters>,
    stands: Box<[Stand]>,
    /// Below their number.
    at: usize,
    /// Where the present share's next message will be, and how that is marked: all that a look
    /// needs.
    slot: &'static Slot,
    awaited: u64,
    /// See ASKEW; for the lane, which looks seldom, 1.
    askew: u32,
    /// How many looks may still be in vain before more is to be done, and how many there were.
    spare: u32,
    granted: u32,
    batch: u32,
    /// Slots freed since sleeping senders were looked for.
    freed: u64,
    /// Looks without result since a message was taken.
    quiet: u32,
    /// Messages that are passed over until they come, and which of them `slot` is of.
    asides: Vec<Aside>,
    present_aside: Option<usize>,
    /// Policy limit: since when credits have been out while no message is under way.
    astray: Option<Instant>,
}

// SAFETY: as for MessageSender; the thread that holds the MessageReceiver is the one receiver.
unsafe impl Send for MessageReceiver {}

impl MessageReceiver {
    /// The receiver of messages of a class; each to be made once.
    pub fn new(
        own: Arc<Segment>,
        (dead, peers): (Arc<[AtomicBool]>, Arc<dyn Peers>),
        counts: Arc<Counters>,
        class: Class,
    ) -> MessageReceiver {
        // SAFETY: the control area stays mapped where it is as long as the segment, which is kept.
        let message_area = unsafe {
            std::mem::transmute::<MessageArea<'_>, MessageArea<'static>>(
                own.control().own_message_area(),
            )
        };
        let shares: Vec<usize> = match class {
            Class::Requests => (0..message_area.sizes.shares).chain([LARGE]).collect(),
            Class::Replies => vec![REPLIES],
            Class::Responses => vec![RESPONSES, LARGE_RESPONSES],
            Class::Lib => vec![LIB, LARGE_LIB],
            Class::Answers => vec![ANSWERS, LARGE_ANSWERS],
        };
        let stand = |number: usize| {
            // A reply's slot is free before its request is forgotten, see
            // `engine::messages::sender`.
            let lot = match class {
                Class::Replies | Class::Answers => 1,
                _ => (message_area.sizes.slots_of(number) as u64 / 4).clamp(1, 32),
            };
            // The receiver asks for SendCNT only where it lies here.
            let share = message_area.share(number, message_area.head);
            let (next, returned) = (FIRST, FIRST);
            Stand {
                number,
                share,
                next,
                returned,
                unsent: 0,
                lot,
                most: 0,
                unfinished: None,
                misses: 0,
            }
        };
        let stands: Box<[Stand]> = shares.into_iter().map(stand).collect();
        let slot = stands[0].share.slot(FIRST);
        let shares: Vec<_> = stands.iter().map(|stand| stand.share).collect();
        MessageReceiver {
            class,
            message_area,
            lookout: Arc::new(Lookout::new(own.clone(), &shares)),
            _own: own,
            dead,
            peers,
            counts,
            stands,
            at: 0,
            slot,
            awaited: mark(FIRST),
            askew: if matches!(class, Class::Lib | Class::Answers) { 1 } else { ASKEW },
            spare: 0,
            granted: 0,
            batch: 0,
            freed: 0,
            quiet: 0,
            asides: Vec::new(),
            present_aside: None,
            astray: None,
        }
    }

    /// By which threads that do not hold this receiver see whether it has something to take.
    pub fn lookout(&self) -> Arc<Lookout> {
        self.lookout.clone()
    }

    fn door(&self) -> &'static Door {
        match self.class {
            Class::Replies => &self.message_area.head.replies,
            Class::Requests | Class::Responses => &self.message_area.head.requests,
            Class::Lib | Class::Answers => &self.message_area.head.lane,
        }
    }

    #[inline(always)]
    fn present(&mut self) -> &mut Stand {
        // SAFETY: there is one at least, and `at` stays below their number.
        unsafe { self.stands.get_unchecked_mut(self.at) }
    }

    /// The next ticket of the present share is another one.
    #[inline(always)]
    fn aim(&mut self) {
        let stand = self.present();
        (self.slot, self.awaited) = (stand.share.slot(stand.next), mark(stand.next));
        self.present_aside = None;
    }

    /// Another share is the present one.
    fn turn_to(&mut self, at: usize) {
        self.at = at;
        self.lookout.turned_to(at);
        self.aim();
    }

    /// Whether the present share has had its turn.
    #[inline(always)]
    pub fn has_had_its_turn(&self) -> bool {
        self.batch >= BATCH
    }

    /// The next message, which stays in its slot until done() is called.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<Arrived> {
        if self.has_had_its_turn() {
            self.search();
        }
        if !self.has_come() {
            return None;
        }
        self.batch += 1;
        Some(self.read())
    }

    /// Whether there is a next message. While there is none this is in most cases a look at a mark
    /// and nothing else: what a waiting thread does most, and what a message waits for.
    #[inline(always)]
    pub fn has_come(&mut self) -> bool {
        if self.is_ready() {
            return true;
        }
        if self.spare > 0 {
            self.spare -= 1;
            if !self.spare.is_multiple_of(self.askew) {
                return false;
            }
        }
        self.has_come_anywhere()
    }

    /// Whether there is a message in any share.
    #[inline(never)]
    pub fn has_come_anywhere(&mut self) -> bool {
        if self.spare > 0 && self.asides.is_empty() && !self.lookout.has_come() {
            return false;
        }
        self.search();
        self.grant();
        self.is_ready()
    }

    /// Whether there is a message at the place of the last look.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.slot.holds(self.awaited)
    }

    /// Nothing has come, and search() has done all that is due now: there is nothing to do but to
    /// look until the next thing is due.
    fn grant(&mut self) {
        let misses = self.stands.iter().map(|stand| stand.misses).max().unwrap_or(0);
        let until_waking = QUIET.wrapping_sub(self.quiet) % AGAIN;
        self.granted = (LOOKS - 1).saturating_sub(misses).min(until_waking);
        self.spare = self.granted;
    }

    /// Goes on to the next share that has a message; if none has, to where it began.
    #[inline(never)]
    fn search(&mut self) {
        let in_vain = self.granted - self.spare;
        (self.granted, self.spare) = (0, 0);
        self.quiet = self.quiet.wrapping_add(in_vain);
        self.stands.iter_mut().for_each(|stand| stand.misses += in_vain);
        if !self.asides.is_empty() && self.search_asides() {
            return;
        }
        for _ in 0..self.stands.len() {
            self.batch = 0;
            self.settle();
            self.missed();
            self.turn_to(if self.at + 1 == self.stands.len() { 0 } else { self.at + 1 });
            if self.is_ready() {
                return;
            }
        }
        if self.quiet % AGAIN == QUIET {
            self.wake_a_sender(self.quiet != QUIET);
        }
        self.quiet = self.quiet.wrapping_add(1);
    }

    /// Nothing comes: a sender that sleeps for credit finds all of it.
    fn wake_a_sender(&self, another: bool) {
        if self.class == Class::Requests && !self.message_area.head.credit.idle(another) {
            std::thread::yield_now();
        }
    }

    /// The present share has nothing, or has had its turn.
    #[inline]
    fn missed(&mut self) {
        let stand = &mut self.stands[self.at];
        stand.misses += 1;
        if stand.misses >= LOOKS {
            self.look_after_the_unfinished();
        }
    }

    #[inline(always)]
    fn read(&self) -> Arrived {
        let (mut envelope, header) = run::envelope(self.slot);
        let room = |it: &Envelope| (it.header_size() + 7) & !7;
        let outside = |it: &Envelope| room(it) + it.payload_size() > INLINE_BYTES;
        let mut payload = header.wrapping_add(room(&envelope));
        if outside(&envelope) || envelope.header_size() > HEADER {
            envelope = envelope.bounded(self.largest_payload());
            payload = match outside(&envelope) {
                true => self.payload(),
                false => header.wrapping_add(room(&envelope)),
            };
        }
        if envelope.is_absent() {
            payload = std::ptr::null();
            if envelope.payload_size() != 0 {
                envelope = envelope.bounded(0);
            }
        }
        Arrived { envelope, header, payload, response: self.class == Class::Responses }
    }

    /// Most bytes of a payload in the present share.
    fn largest_payload(&self) -> usize {
        self.message_area.sizes.payload_of(self.stands[self.at].number)
    }

    /// Where the next message's payload lies, if not in its slot.
    fn payload(&self) -> *const u8 {
        let stand = &self.stands[self.at];
        self.message_area.payload(stand.number, stand.share.index(self.aimed_ticket()))
    }

    /// The message that peek() gave has been consumed.
    #[inline(always)]
    pub fn done(&mut self) {
        if let Some(found) = self.present_aside {
            return self.aside_done(found);
        }
        let stand = self.present();
        stand.next = stand.next.wrapping_add(1);
        stand.unfinished = None;
        stand.misses = 0;
        let lot_is_full = stand.next.wrapping_sub(stand.returned) >= stand.lot;
        // More will come soon: nothing else is done for so many looks.
        (self.quiet, self.granted, self.spare) = (0, QUIET, QUIET);
        self.aim();
        self.lookout.moved(self.slot, self.awaited);
        if lot_is_full {
            self.settle();
        }
    }

    /// Gives back what the present share owes.
    #[inline(never)]
    fn settle(&mut self) {
        let stand = &mut self.stands[self.at];
        let owed = stand.next.wrapping_sub(stand.returned);
        if owed == 0 {
            return;
        }
        stand.share.give_back(stand.next);
        stand.returned = stand.next;
        if self.class == Class::Responses {
            self.message_area.head.wishes.grant(|rank| self.peers.ring_handlers(rank));
        }
        let requests = self.class == Class::Requests;
        if stand.most == 0 && requests {
            stand.most = 1;
            self.counts.slots_high_water.raise(1);
        }
        if requests && stand.share.is_ready(stand.next.wrapping_add(stand.most)) {
            Self::note_backlog(stand, &self.counts);
        }
        if self.message_area.sizes.policy == Policy::Limit && requests && stand.number != LARGE {
            let consumed = &self.message_area.head.consumed.0;
            // The receiver alone writes it.
            let sent = owed.wrapping_sub(std::mem::take(&mut stand.unsent));
            let now = consumed.load(Ordering::Relaxed).wrapping_add(sent);
            consumed.store(now, Ordering::Release);
        }
        // A sender that sleeps for want of credit is woken when there is much of it.
        self.freed += owed;
        if self.freed >= self.message_area.sizes.slots as u64 / 2 && requests {
            self.freed = 0;
            self.message_area.head.credit.freed();
        }
        if requests {
            self.message_area.head.request_wishes.grant(|rank| self.peers.ring_progress(rank));
        }
    }

    /// More messages wait than ever before: counts them.
    #[cold]
    fn note_backlog(stand: &mut Stand, counts: &Counters) {
        let all = stand.share.slots.len() as u64;
        while stand.most < all && stand.share.is_ready(stand.next.wrapping_add(stand.most)) {
            stand.most += 1;
        }
        counts.slots_high_water.raise(stand.most);
    }

    /// The ticket that is taken next, of a MessageReceiver with one share.
    pub fn next_ticket(&self) -> u64 {
        self.stands[0].next
    }
}
