//! The receiving side of messages: a [`MessageReceiver`] takes the messages of one class from this
//! rank's shares, one share after the other. The thread that holds it is the only receiver of these
//! shares.

use crate::transport::frame::{Arrived, Class};
use crate::transport::memory::arrival_hint::ArrivalHint;
use crate::transport::memory::message_area::{
    ANSWERS, LARGE, LARGE_ANSWERS, LARGE_LIB, LARGE_RESPONSES, LIB, MessageArea, Policy, REPLIES,
    RESPONSES, WakeFlag,
};
use crate::transport::memory::segment::Segment;
use crate::transport::memory::slots::{FIRST, Slot, SlotShare, mark};
use crate::util::counters::Counters;
use crate::util::sync::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

/// Most messages that the receiver takes from one share before it turns to the next.
const BATCH: u32 = 32;
/// Polls without a message after which the receiver reads the claims of a share, in search of dead
/// or slow senders: some tens of microseconds of a thread that only polls. Each search reads the
/// claims of all slots, and so takes their cache lines from the senders.
const LOOKS: u32 = 1024;
/// Polls without a message after which the receiver wakes a sender that sleeps for credit: about a
/// microsecond.
const QUIET: u32 = 32;
/// One of so many polls without a message is at all shares; the others are at the share of the last
/// message. Messages with large payloads, in a share of their own, wait a little longer for this. A
/// power of two, so that a poll need not divide.
const ALL_SHARES: u32 = 8;
/// Polls without a message after which the receiver wakes another sender, since the one that it
/// woke has sent nothing: longer than a wake-up takes.
const AGAIN: u32 = 4096;

mod asides;
mod idle;
mod run;

use asides::Aside;
pub use run::Consumer;

/// The receiver's state of one share.
struct ShareState {
    number: usize,
    share: SlotShare<'static>,
    /// The next ticket to consume.
    next: u64,
    /// The first ticket whose slot was not given back.
    returned: u64,
    /// Number of tickets from `returned` to `next` that contained no message.
    unsent: u64,
    /// How many slots the receiver gives back at a time.
    lot: u64,
    /// The largest number of messages that were ever waiting.
    most: u64,
    /// Since when the next ticket is claimed and not published.
    unfinished: Option<Instant>,
    /// Polls without a message since the last message, or since the last search of the claims.
    misses: u32,
}

impl ShareState {
    /// Whether a sender has claimed the next ticket or a later one.
    fn is_begun(&self) -> bool {
        self.share.is_begun(self.next)
    }
}

/// Wakes threads of other ranks that wait for free slots of this one.
pub trait Peers: Send + Sync {
    /// Rings the bell of the threads that run a rank's handlers, if it is connected.
    fn ring_handlers(&self, rank: u32);
    /// Rings the bell of a rank's progress thread, and connects to the rank first if necessary.
    fn ring_progress(&self, rank: u32);
}

/// The receiver of one class of messages.
pub struct MessageReceiver {
    class: Class,
    /// Lies in the segment `_own`.
    message_area: MessageArea<'static>,
    _own: Arc<Segment>,
    arrival_hint: Arc<ArrivalHint>,
    dead: Arc<[AtomicBool]>,
    peers: Arc<dyn Peers>,
    counts: Arc<Counters>,
    states: Box<[ShareState]>,
    /// The index of the current share in `states`.
    at: usize,
    /// The slot of the current share's next message, and its mark: all that a poll needs.
    slot: &'static Slot,
    awaited: u64,
    /// See ALL_SHARES; 1 for the lane, which polls seldom.
    all_shares: u32,
    /// How many further polls may be without a message before search() must run, and the value from
    /// which this number counts down.
    polls_left: u32,
    polls_granted: u32,
    /// Messages that were taken from the current share in its turn.
    batch: u32,
    /// Slots that were given back since the receiver last looked for sleeping senders.
    freed: u64,
    /// Polls without a message since the last message.
    quiet: u32,
    /// Messages that were set aside, and the index of the one in `slot`, if any.
    asides: Vec<Aside>,
    current_aside: Option<usize>,
    /// Policy limit: since when the counters differ although no message is in the slots.
    mismatch: Option<Instant>,
}

// SAFETY: as for MessageSender; `&mut self` makes the holder the only receiver.
unsafe impl Send for MessageReceiver {}

impl MessageReceiver {
    /// The receiver of messages of a class. Called once for each class.
    pub fn new(
        own: Arc<Segment>,
        (dead, peers): (Arc<[AtomicBool]>, Arc<dyn Peers>),
        counts: Arc<Counters>,
        class: Class,
    ) -> MessageReceiver {
        // SAFETY: the control area stays mapped at its address as long as the segment, which
        // `_own` keeps.
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
        let state = |number: usize| {
            // The slot of a reply or an answer must be free before its requester reserves it again
            // for another request, see `engine::messages::sender`.
            let lot = match class {
                Class::Replies | Class::Answers => 1,
                _ => (message_area.sizes.slots_of(number) as u64 / 4).clamp(1, 32),
            };
            // With the own head for SendCNT, whoever hosts it: the receiver reads SendCNT only in
            // shares whose SendCNT lies here.
            let share = message_area.share(number, message_area.head);
            let (next, returned) = (FIRST, FIRST);
            ShareState {
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
        let states: Box<[ShareState]> = shares.into_iter().map(state).collect();
        let slot = states[0].share.slot(FIRST);
        let shares: Vec<_> = states.iter().map(|state| state.share).collect();
        MessageReceiver {
            class,
            message_area,
            arrival_hint: Arc::new(ArrivalHint::new(own.clone(), &shares)),
            _own: own,
            dead,
            peers,
            counts,
            states,
            at: 0,
            slot,
            awaited: mark(FIRST),
            all_shares: if matches!(class, Class::Lib | Class::Answers) { 1 } else { ALL_SHARES },
            polls_left: 0,
            polls_granted: 0,
            batch: 0,
            freed: 0,
            quiet: 0,
            asides: Vec::new(),
            current_aside: None,
            mismatch: None,
        }
    }

    /// The hint, by which threads without this receiver see whether a message waits.
    pub fn arrival_hint(&self) -> Arc<ArrivalHint> {
        self.arrival_hint.clone()
    }

    fn wake_flag(&self) -> &'static WakeFlag {
        match self.class {
            Class::Replies => &self.message_area.head.replies,
            Class::Requests | Class::Responses => &self.message_area.head.requests,
            Class::Lib | Class::Answers => &self.message_area.head.lane,
        }
    }

    #[inline(always)]
    fn current(&mut self) -> &mut ShareState {
        // SAFETY: `at` stays below the number of states.
        unsafe { self.states.get_unchecked_mut(self.at) }
    }

    /// Sets `slot` and `awaited` to the next ticket of the current share.
    #[inline(always)]
    fn set_next(&mut self) {
        let state = self.current();
        (self.slot, self.awaited) = (state.share.slot(state.next), mark(state.next));
        self.current_aside = None;
    }

    /// Makes another share the current one.
    fn turn_to(&mut self, at: usize) {
        self.at = at;
        self.arrival_hint.set_current(at);
        self.set_next();
    }

    /// Whether the receiver has taken BATCH messages from the current share.
    #[inline(always)]
    pub fn has_had_its_turn(&self) -> bool {
        self.batch >= BATCH
    }

    /// The next message. It stays in its slot until done().
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

    /// Whether a message waits. Without a message it mostly reads one mark and nothing else:
    /// waiting threads call it all the time, and its duration delays the next message.
    #[inline(always)]
    pub fn has_come(&mut self) -> bool {
        if self.is_ready() {
            return true;
        }
        if self.polls_left > 0 {
            self.polls_left -= 1;
            if self.polls_left & (self.all_shares - 1) != 0 {
                return false;
            }
        }
        self.has_come_anywhere()
    }

    /// Whether a message waits in any share.
    #[inline(never)]
    pub fn has_come_anywhere(&mut self) -> bool {
        if self.polls_left > 0 && self.asides.is_empty() && !self.arrival_hint.has_come() {
            return false;
        }
        self.search();
        self.grant_polls();
        self.is_ready()
    }

    /// Whether the message in `slot` is published.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.slot.holds(self.awaited)
    }

    /// After a search() without a message: computes how many polls the receiver may do before the
    /// next search of the claims or the next wake-up of a sender is due.
    fn grant_polls(&mut self) {
        let misses = self.states.iter().map(|state| state.misses).max().unwrap_or(0);
        let until_waking = QUIET.wrapping_sub(self.quiet) % AGAIN;
        self.polls_granted = (LOOKS - 1).saturating_sub(misses).min(until_waking);
        self.polls_left = self.polls_granted;
    }

    /// Turns to the next share that has a message, or, if none has, back to the current one.
    #[inline(never)]
    fn search(&mut self) {
        let in_vain = self.polls_granted - self.polls_left;
        (self.polls_granted, self.polls_left) = (0, 0);
        self.quiet = self.quiet.wrapping_add(in_vain);
        self.states.iter_mut().for_each(|state| state.misses += in_vain);
        if !self.asides.is_empty() && self.search_asides() {
            return;
        }
        for _ in 0..self.states.len() {
            self.batch = 0;
            self.settle();
            self.missed();
            self.turn_to(if self.at + 1 == self.states.len() { 0 } else { self.at + 1 });
            if self.is_ready() {
                return;
            }
        }
        if self.quiet % AGAIN == QUIET {
            self.wake_a_sender(self.quiet != QUIET);
        }
        self.quiet = self.quiet.wrapping_add(1);
    }

    /// Wakes a sender that sleeps for credit: no message arrives, so all slots are free.
    fn wake_a_sender(&self, another: bool) {
        if self.class == Class::Requests && !self.message_area.head.credit.idle(another) {
            std::thread::yield_now();
        }
    }

    /// Counts a poll without a message at the current share, and searches its claims if due.
    #[inline]
    fn missed(&mut self) {
        let state = &mut self.states[self.at];
        state.misses += 1;
        if state.misses >= LOOKS {
            self.handle_unfinished();
        }
    }

    /// Ends the message that peek() has returned: its slot can be given back.
    #[inline(always)]
    pub fn done(&mut self) {
        if let Some(found) = self.current_aside {
            return self.aside_done(found);
        }
        let state = self.current();
        state.next = state.next.wrapping_add(1);
        state.unfinished = None;
        state.misses = 0;
        let lot_is_full = state.next.wrapping_sub(state.returned) >= state.lot;
        // More messages are likely: search() does not run during the next QUIET polls.
        (self.quiet, self.polls_granted, self.polls_left) = (0, QUIET, QUIET);
        self.set_next();
        self.arrival_hint.set_next(self.slot, self.awaited);
        if lot_is_full {
            self.settle();
        }
    }

    /// Gives back the consumed slots of the current share, and wakes senders that wait for slots.
    #[inline(never)]
    fn settle(&mut self) {
        let state = &mut self.states[self.at];
        let owed = state.next.wrapping_sub(state.returned);
        if owed == 0 {
            return;
        }
        state.share.give_back(state.next);
        state.returned = state.next;
        if self.class == Class::Responses {
            self.message_area.head.response_wakes.ring_all(|rank| self.peers.ring_handlers(rank));
        }
        let requests = self.class == Class::Requests;
        if state.most == 0 && requests {
            state.most = 1;
            self.counts.slots_high_water.raise(1);
        }
        if requests && state.share.is_ready(state.next.wrapping_add(state.most)) {
            Self::note_backlog(state, &self.counts);
        }
        if self.message_area.sizes.policy == Policy::Limit && requests && state.number != LARGE {
            let consumed = &self.message_area.head.consumed.0;
            // A load and a store, since only the receiver writes `consumed`.
            let sent = owed.wrapping_sub(std::mem::take(&mut state.unsent));
            let now = consumed.load(Ordering::Relaxed).wrapping_add(sent);
            consumed.store(now, Ordering::Release);
        }
        // Sleeping senders are woken only when half of the slots are free, so that a wake-up pays.
        self.freed += owed;
        if self.freed >= self.message_area.sizes.slots as u64 / 2 && requests {
            self.freed = 0;
            self.message_area.head.credit.freed();
        }
        let head = self.message_area.head;
        let wakes = match self.class {
            Class::Requests => &head.request_wakes,
            Class::Lib => &head.owner_wakes,
            _ => return,
        };
        wakes.ring_all(|rank| self.peers.ring_progress(rank));
    }

    /// Counts the messages that wait; there are more than ever before.
    #[cold]
    fn note_backlog(state: &mut ShareState, counts: &Counters) {
        let all = state.share.slots.len() as u64;
        while state.most < all && state.share.is_ready(state.next.wrapping_add(state.most)) {
            state.most += 1;
        }
        counts.slots_high_water.raise(state.most);
    }

    /// The next ticket to consume, of a receiver with one share. Messages with earlier tickets may
    /// be set aside.
    pub fn next_ticket(&self) -> u64 {
        self.states[0].next
    }
}
