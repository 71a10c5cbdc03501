//! What a control area holds for active messages: the numbers that senders must know, the doors at
//! which they knock, the counters, and where claims, slots and payloads lie.

use crate::transport::frame::IDS;
use crate::transport::memory::slots::{FIRST, Slot, SlotShare};
use crate::util::bell::Bell;
use crate::util::counters::SHARES;
use crate::util::fence::{heavy_fence, light_fence};
use crate::util::sync::{AtomicU32, AtomicU64, Ordering, fence};

mod sizes;
mod wishes;

pub(super) use sizes::Numbers;
pub use sizes::Sizes;
pub use wishes::Wishes;

#[cfg(all(test, loom))]
mod models;

/// Which share holds the replies to this rank's requests.
pub const REPLIES: usize = SHARES;
/// Which one holds responses: messages that answer this rank's and run a handler here.
pub const RESPONSES: usize = SHARES + 1;
/// Which ones hold messages and responses whose payload is larger than `medium`, in few slots with
/// much room.
pub const LARGE: usize = SHARES + 2;
/// See LARGE.
pub const LARGE_RESPONSES: usize = SHARES + 3;
/// Which one holds requests to this rank's agent, for memory that only it can reach.
pub const LIB: usize = SHARES + 4;
/// Which one holds the answers to this rank's own requests of that kind.
pub const ANSWERS: usize = SHARES + 5;
/// Which ones hold such requests and answers that bring many bytes.
pub const LARGE_LIB: usize = SHARES + 6;
/// See LARGE_LIB.
pub const LARGE_ANSWERS: usize = SHARES + 7;
/// Shares of all kinds.
pub const KINDS: usize = SHARES + 8;

/// How senders take this rank's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A ticket of the one share is a slot.
    Acquire,
    /// A counter bounds how many messages are under way.
    Limit,
    /// Several shares, whose SendCNT lie with several ranks.
    Distributed,
}

/// A word on a line of its own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Line(pub AtomicU64);

/// Where a sender learns whether it must ring.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Door {
    asleep: AtomicU32,
    bell: Bell,
}

/// The words of active messages in a control area's header.
#[repr(C)]
pub struct MessageHead {
    /// Which handlers exist: one bit each.
    handlers: [AtomicU64; IDS / 64],
    /// Of the thread that runs handlers.
    pub requests: Door,
    /// Of the thread that completes requests.
    pub replies: Door,
    /// Of the lane's progress thread, which sleeps on the control area's bell.
    pub lane: Door,
    /// Senders that sleep until slots are free.
    pub credit: Credit,
    /// Ranks that want to be rung when slots for responses are free.
    pub wishes: Wishes,
    /// Ranks whose progress threads want to be rung when slots for requests are free.
    pub request_wishes: Wishes,
    /// Policy limit: messages that were sent, and that were consumed.
    pub sent: Line,
    /// See `sent`.
    pub consumed: Line,
    /// SendCNTs that lie here: for each share that of the rank to which this one is host; behind
    /// them those of our own other shares.
    pub(super) hosted: [Line; KINDS],
    /// Our own RecvCNTs.
    pub(super) received: [Line; KINDS],
}

/// Senders that sleep for want of credit.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Credit {
    /// How many sleep; above, in which epoch they are counted; above, how many ever came. See
    /// wake_one().
    wanted: AtomicU64,
    bell: Bell,
    /// Whose turn it is: 1 + the rank that was woken last and has not slept since, or WOKEN before
    /// it runs; 0: nobody's.
    turn: AtomicU32,
}

/// The three numbers in `Credit::wanted`.
const SLEEPERS: u64 = EPOCH - 1;
const EPOCH: u64 = 1 << 24;
const EPOCHS: u64 = ARRIVAL - EPOCH;
const ARRIVAL: u64 = 1 << 40;
/// See `Credit::turn`.
const WOKEN: u32 = u32::MAX;

impl MessageHead {
    /// Makes fresh counters empty, whomever they will count for.
    pub(super) fn reset_counters(&self) {
        for line in self.hosted.iter().chain(&self.received).chain([&self.sent, &self.consumed]) {
            line.0.store(FIRST, Ordering::Relaxed);
        }
    }

    /// Whether there is a handler with this number.
    #[inline(always)]
    pub fn has_handler(&self, id: u32) -> bool {
        let word = self.handlers.get(id as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (id % 64) & 1 == 1)
    }

    /// Senders that cannot know take every number for one of a handler.
    pub fn set_all_handlers(&self) {
        self.handlers.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    }

    /// Tells senders that there is one, or none any more. Callers exclude one another.
    pub fn set_handler(&self, id: u32, exists: bool) {
        let Some(word) = self.handlers.get(id as usize / 64) else { return };
        match exists {
            true => word.fetch_or(1 << (id % 64), Ordering::Release),
            false => word.fetch_and(!(1 << (id % 64)), Ordering::Release),
        };
    }
}

impl Door {
    /// To be called when something has been brought. True: somebody slept and the caller, alone,
    /// has to ring.
    #[inline(always)]
    pub fn knock(&self) -> bool {
        self.may_be_closed() && self.asleep.swap(0, Ordering::AcqRel) != 0
    }

    /// The look of knock() alone: where it says no, knock() would do nothing.
    #[inline(always)]
    pub fn may_be_closed(&self) -> bool {
        // Keeps the compiler from looking before what was brought is published; the processor is
        // held back by the sleeper's global fence.
        light_fence();
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// Announces that its owner will sleep; to be called before the last look at what may have been
    /// brought. False: a sender may miss it, so the owner must only nap.
    pub fn close(&self) -> bool {
        self.asleep.store(1, Ordering::SeqCst);
        heavy_fence()
    }

    /// knock() at a door that was closed by close_fenced().
    #[inline(always)]
    pub fn knock_fenced(&self) -> bool {
        // Between what was brought and the look; pairs with the fence in close_fenced().
        fence(Ordering::SeqCst);
        self.knock()
    }

    /// close() without a call of the kernel, for an owner that sleeps often. All senders that knock
    /// call knock_fenced().
    pub fn close_fenced(&self) {
        self.asleep.store(1, Ordering::Relaxed);
        // Between the word and the owner's last look; pairs with the fence in knock_fenced().
        fence(Ordering::SeqCst);
    }

    /// Its owner is awake.
    pub fn open(&self) {
        if self.asleep.load(Ordering::Relaxed) != 0 {
            self.asleep.store(0, Ordering::Relaxed);
        }
    }

    /// Whether it is closed and nobody has knocked since.
    pub fn is_closed(&self) -> bool {
        self.asleep.load(Ordering::Relaxed) != 0
    }

    /// What its owner sleeps on.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }
}

impl Credit {
    /// One is counted that was killed in its sleep.
    #[cfg(all(test, loom))]
    pub fn with_a_dead_sleeper() -> Credit {
        Credit { wanted: AtomicU64::new(ARRIVAL | 1), ..Credit::default() }
    }

    /// Whether anybody sleeps.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.sleepers() != 0
    }

    /// How many sleep.
    #[inline(always)]
    pub fn sleepers(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed) & SLEEPERS
    }

    /// Sleeps, behind the senders that sleep already, until it is woken, or `limit` is over, unless
    /// `enough` already.
    pub fn wait(&self, me: u32, limit: std::time::Duration, over: bool, enough: impl Fn() -> bool) {
        // After its turn a sender wakes the next one itself, so that the system may let that one
        // run where this one has run, and not where the receiver runs.
        if over {
            self.wake_one();
        } else {
            let _ = self.turn.compare_exchange(me + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        let ticket = self.bell.ticket();
        // Release: the ticket is older; pairs with wake_one().
        let epoch = self.wanted.fetch_add(ARRIVAL | 1, Ordering::SeqCst) & EPOCHS;
        light_fence();
        if !enough() && self.bell.wait(ticket, Some(limit)) {
            self.turn.store(me + 1, Ordering::Relaxed);
        }
        let leave = |seen| (seen & EPOCHS == epoch && seen & SLEEPERS != 0).then(|| seen - 1);
        let _ = self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, leave);
    }

    /// Many slots were freed: wakes the sender that has slept longest, if no sender that slept
    /// before sends.
    #[inline(always)]
    pub fn freed(&self) {
        if self.is_wanted() && self.turn.load(Ordering::Relaxed) == 0 {
            self.wake_one();
        }
    }

    /// Nothing comes: wakes the sender that has slept longest, if it is nobody's turn, or where
    /// `another` shall have it. False: somebody has it, and may need the core. Both look for
    /// sleepers without a fence; one that is overlooked is seen the next time.
    #[inline(always)]
    pub fn idle(&self, another: bool) -> bool {
        if !self.is_wanted() {
            return true;
        }
        let free = another || self.turn.load(Ordering::Relaxed) == 0;
        if free {
            self.wake_one();
        }
        free
    }

    #[cold]
    fn wake_one(&self) {
        // Acquire: a sender that is counted has its ticket, and does not sleep once the bell has
        // been rung.
        let seen = self.wanted.load(Ordering::Acquire);
        self.turn.store(WOKEN, Ordering::Relaxed);
        if self.bell.ring_one() {
            return;
        }
        // The senders that are counted are awake, or were killed in their sleep: a new epoch
        // begins, in which senders that leave are not counted. Not if somebody has come since, whom
        // nobody would wake.
        let next = (seen & !EPOCHS & !SLEEPERS) | (seen.wrapping_add(EPOCH) & EPOCHS);
        let _ = self.wanted.compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed);
        self.turn.store(0, Ordering::Relaxed);
    }
}

/// A receiver's shares as one process has them mapped.
#[derive(Clone, Copy)]
pub struct MessageArea<'a> {
    /// Its words.
    pub head: &'a MessageHead,
    /// Its numbers.
    pub sizes: Sizes,
    /// Claims of all slots, replies behind requests.
    pub claims: &'a [AtomicU64],
    /// The slots, likewise.
    pub slots: &'a [Slot],
    /// Their payloads.
    pub payloads: *mut u8,
}

impl<'a> MessageArea<'a> {
    /// A share of the receiver, with the SendCNT that `host` keeps for it.
    pub fn share(&self, share: usize, host: &'a MessageHead) -> SlotShare<'a> {
        let (first, count) = (self.sizes.first_of(share), self.sizes.slots_of(share));
        SlotShare {
            send: &host.hosted[share].0,
            recv: &self.head.received[share].0,
            claims: &self.claims[first..first + count],
            slots: &self.slots[first..first + count],
        }
    }

    /// A share of a peer that is not mapped.
    pub fn no_slots(&self) -> SlotShare<'a> {
        let (send, recv) = (&self.head.hosted[0].0, &self.head.received[0].0);
        SlotShare { send, recv, claims: &[], slots: &[] }
    }

    /// Where the payload of slot `index` of a share lies.
    #[inline(always)]
    pub fn payload(&self, share: usize, index: usize) -> *mut u8 {
        self.payloads.wrapping_add(self.sizes.payload_at(share, index))
    }
}

/// How many ranks after the owner the host of a share comes: spread evenly over the world, however
/// many shares there are, and the same for every owner, so that no rank keeps two counters of one
/// share.
fn step_of(share: usize, size: u32) -> u64 {
    let spread = (share as u64).reverse_bits() >> (u64::BITS - SHARES.ilog2());
    spread * u64::from(size) / SHARES as u64
}

/// The rank that keeps the SendCNT of a share of `owner`'s; the first share's is the owner itself.
pub fn host_of(owner: u32, share: usize, size: u32) -> u32 {
    ((u64::from(owner) + step_of(share, size)) % u64::from(size)) as u32
}

/// The share of `owner`'s whose host comes before `sender` in the order of ranks.
pub fn nearest_share(owner: u32, sender: u32, shares: usize, size: u32) -> usize {
    let distance = (u64::from(sender) + u64::from(size) - u64::from(owner)) % u64::from(size);
    (0..shares)
        .filter(|share| step_of(*share, size) <= distance)
        .max_by_key(|share| step_of(*share, size))
        .unwrap_or(0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_receiver_lie_with_different_ranks_and_everybody_is_near_one() {
        for size in [4, 5, 16, 64] {
            for owner in 0..size {
                let hosts: Vec<u32> = (0..4).map(|share| host_of(owner, share, size)).collect();
                assert_eq!(hosts[0], owner);
                assert!((1..4).all(|i| !hosts[..i].contains(&hosts[i])), "{hosts:?}");
                let mut senders = [0; 4];
                for sender in 0..size {
                    senders[nearest_share(owner, sender, 4, size)] += 1;
                }
                let (least, most) = (senders.iter().min(), senders.iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1, "{senders:?}");
                assert!((0..4).all(|share| nearest_share(owner, hosts[share], 4, size) == share));
            }
        }
    }
}
