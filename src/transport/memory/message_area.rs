//! The message area of a control area: the numbers that senders must know, the words by which
//! senders wake sleeping receivers ([`WakeFlag`]) and receivers wake sleeping senders ([`Credit`],
//! [`WakeRequests`]), the counters of the shares, and the places of claims, slots and payloads.

use crate::transport::frame::IDS;
use crate::transport::memory::slots::{FIRST, Slot, SlotShare};
use crate::util::bell::Bell;
use crate::util::counters::SHARES;
use crate::util::fence::{heavy_fence, light_fence};
use crate::util::sync::{AtomicU32, AtomicU64, Ordering, fence};

mod places;
mod sizes;
mod wake_requests;

pub(super) use sizes::Numbers;
pub use sizes::Sizes;
pub use wake_requests::WakeRequests;

#[cfg(all(test, loom))]
mod models;

/// The share of replies to this rank's requests. (Shares below `SHARES` are for requests.)
pub const REPLIES: usize = SHARES;
/// The share of responses: messages that answer this rank's messages and run a handler here.
pub const RESPONSES: usize = SHARES + 1;
/// The share of requests whose payload is larger than `medium`; it has few slots with large
/// payloads.
pub const LARGE: usize = SHARES + 2;
/// The share of responses whose payload is larger than `medium`.
pub const LARGE_RESPONSES: usize = SHARES + 3;
/// The share of requests to this rank as the owner of memory that only it can access.
pub const LIB: usize = SHARES + 4;
/// The share of owners' answers to this rank's requests.
pub const ANSWERS: usize = SHARES + 5;
/// As LIB, for requests with more bytes than SMALL_REQUEST.
pub const LARGE_LIB: usize = SHARES + 6;
/// As ANSWERS, for answers with more bytes than SMALL_REPLY.
pub const LARGE_ANSWERS: usize = SHARES + 7;
/// Number of shares of all kinds.
pub const KINDS: usize = SHARES + 8;

/// How senders take this rank's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One share; a ticket is the credit.
    Acquire,
    /// One share; in addition a counter limits the number of messages that are sent and not
    /// consumed.
    Limit,
    /// Several shares, whose SendCNTs lie in the memory of several ranks.
    Distributed,
}

/// A word on a cache line of its own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Line(pub AtomicU64);

/// What the receiver of a share tells its senders, on a cache line of its own.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Received {
    /// RecvCNT.
    pub(super) count: AtomicU64,
    /// The number of messages that are set aside and were not taken yet.
    pub(super) asides: AtomicU64,
}

/// Tells senders whether the receiver sleeps, so that they ring its bell only then. A receiver that
/// is about to sleep arms the flag. A sender that finds it armed after it has published a message
/// clears it and rings.
#[repr(C)]
#[derive(Debug, Default)]
pub struct WakeFlag {
    armed: AtomicU32,
    bell: Bell,
}

/// The head of a message area, in the header of the control area.
#[repr(C)]
pub struct MessageHead {
    /// A bit for each number of a handler: whether there is one.
    handlers: [AtomicU64; IDS / 64],
    /// For the thread that runs handlers.
    pub requests: WakeFlag,
    /// For the thread that takes replies.
    pub replies: WakeFlag,
    /// For the progress thread, which sleeps on the control area's bell.
    pub lane: WakeFlag,
    /// Senders that sleep until request slots are free.
    pub credit: Credit,
    /// Ranks whose handler threads wait for free slots for responses.
    pub response_wakes: WakeRequests,
    /// Ranks whose progress threads wait for free slots for requests.
    pub request_wakes: WakeRequests,
    /// Ranks whose progress threads wait for free slots for requests to the owner.
    pub owner_wakes: WakeRequests,
    /// Policy limit: number of messages that senders have counted.
    pub sent: Line,
    /// Policy limit: number of messages that the receiver has consumed.
    pub consumed: Line,
    /// The SendCNTs that lie with this rank, by share: of a request share, that of the rank for
    /// which this one is the host; of other shares, this rank's own.
    pub(super) hosted: [Line; KINDS],
    /// This rank's RecvCNTs.
    pub(super) received: [Received; KINDS],
}

/// Senders that sleep until they have credit.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Credit {
    /// Three fields: bits 0-23 the number of sleeping senders, bits 24-39 the epoch in which they
    /// are counted, bits 40-63 a count of all arrivals (wraps). wake_one() says why.
    wanted: AtomicU64,
    bell: Bell,
    /// The rank that was woken last and has not slept since, plus 1; WOKEN until that rank runs; 0:
    /// it is nobody's turn.
    turn: AtomicU32,
}

/// The fields of `Credit::wanted`.
const SLEEPERS: u64 = EPOCH - 1;
const EPOCH: u64 = 1 << 24;
const EPOCHS: u64 = ARRIVAL - EPOCH;
const ARRIVAL: u64 = 1 << 40;
/// See `Credit::turn`.
const WOKEN: u32 = u32::MAX;

impl MessageHead {
    /// Sets all counters to their first value, also the SendCNTs of other ranks' shares.
    pub(super) fn reset_counters(&self) {
        for line in self.hosted.iter().chain([&self.sent, &self.consumed]) {
            line.0.store(FIRST, Ordering::Relaxed);
        }
        self.received.iter().for_each(|it| it.count.store(FIRST, Ordering::Relaxed));
    }

    /// Whether there is a handler with this number.
    #[inline(always)]
    pub fn has_handler(&self, id: u32) -> bool {
        let word = self.handlers.get(id as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (id % 64) & 1 == 1)
    }

    /// Makes has_handler() true for every number, for peers whose handlers this rank does not know.
    pub fn set_all_handlers(&self) {
        self.handlers.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    }

    /// Tells senders whether there is a handler with this number. The callers hold a lock.
    pub fn set_handler(&self, id: u32, exists: bool) {
        let Some(word) = self.handlers.get(id as usize / 64) else { return };
        match exists {
            true => word.fetch_or(1 << (id % 64), Ordering::Release),
            false => word.fetch_and(!(1 << (id % 64)), Ordering::Release),
        };
    }
}

impl WakeFlag {
    /// Call it after publishing a message. True: the flag was armed and is clear now, and this
    /// caller must ring.
    #[inline(always)]
    pub fn take(&self) -> bool {
        self.may_be_armed() && self.armed.swap(0, Ordering::AcqRel) != 0
    }

    /// Whether take() must be called.
    #[inline(always)]
    pub fn may_be_armed(&self) -> bool {
        // Keeps the compiler from moving the load before the publication; the receiver's heavy
        // fence in arm() orders the processor.
        light_fence();
        self.armed.load(Ordering::Relaxed) != 0
    }

    /// Arms the flag: the receiver will sleep. The receiver then checks for messages once more.
    /// False: the kernel has no fence, so a sender may miss this, and the receiver must limit its
    /// sleep.
    pub fn arm(&self) -> bool {
        self.armed.store(1, Ordering::SeqCst);
        heavy_fence()
    }

    /// take() of a flag that was armed by arm_fenced().
    #[inline(always)]
    pub fn take_fenced(&self) -> bool {
        // Between the publication and the load; pairs with the fence in arm_fenced().
        fence(Ordering::SeqCst);
        self.take()
    }

    /// arm() without a system call, for a receiver that sleeps often. All its senders call
    /// take_fenced().
    pub fn arm_fenced(&self) {
        self.armed.store(1, Ordering::Relaxed);
        // Between the store and the receiver's last check; pairs with the fence in take_fenced().
        fence(Ordering::SeqCst);
    }

    /// Clears the flag: the receiver is awake.
    pub fn disarm(&self) {
        if self.armed.load(Ordering::Relaxed) != 0 {
            self.armed.store(0, Ordering::Relaxed);
        }
    }

    /// Whether it is armed, and no sender has taken it since.
    pub fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed) != 0
    }

    /// The flag's own bell. Only `requests` uses it: the other receivers sleep on the bell of the
    /// control area.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }
}

impl Credit {
    /// A value that counts one sender, which was killed in its sleep.
    #[cfg(all(test, loom))]
    pub fn with_a_dead_sleeper() -> Credit {
        Credit { wanted: AtomicU64::new(ARRIVAL | 1), ..Credit::default() }
    }

    /// Whether a sender sleeps.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        self.sleepers() != 0
    }

    /// Number of sleeping senders.
    #[inline(always)]
    pub fn sleepers(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed) & SLEEPERS
    }

    /// Sleeps, behind the senders that sleep already, until the sender is woken or `limit` is over.
    /// Does not sleep if `enough` is true. `over`: the turn of rank `me` is over.
    pub fn wait(&self, me: u32, limit: std::time::Duration, over: bool, enough: impl Fn() -> bool) {
        // After its turn a sender wakes the next one itself, so that the kernel can run the next
        // one on the core that becomes free now, not on the receiver's.
        if over {
            self.wake_one();
        } else {
            let _ = self.turn.compare_exchange(me + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
        let ticket = self.bell.ticket();
        // Release: the bell's ticket was read before; pairs with wake_one().
        let epoch = self.wanted.fetch_add(ARRIVAL | 1, Ordering::SeqCst) & EPOCHS;
        light_fence();
        if !enough() && self.bell.wait(ticket, Some(limit)) {
            self.turn.store(me + 1, Ordering::Relaxed);
        }
        let leave = |seen| (seen & EPOCHS == epoch && seen & SLEEPERS != 0).then(|| seen - 1);
        let _ = self.wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, leave);
    }

    /// Called by the receiver when many slots are free: wakes the sender that has slept longest, if
    /// it is nobody's turn.
    #[inline(always)]
    pub fn freed(&self) {
        if self.is_wanted() && self.turn.load(Ordering::Relaxed) == 0 {
            self.wake_one();
        }
    }

    /// Called by the receiver when no message arrives: wakes the sender that has slept longest, if
    /// it is nobody's turn, or if the turn passes to `another`. False: a sender that has its turn
    /// may need the core. Like freed(), this reads without a fence; it sees a sender that it misses
    /// at the next call.
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
        // Acquire: a counted sender has read the bell's ticket before, so it does not sleep after
        // the ring.
        let seen = self.wanted.load(Ordering::Acquire);
        self.turn.store(WOKEN, Ordering::Relaxed);
        if self.bell.ring_one() {
            return;
        }
        // The bell woke nobody: the counted senders are awake, or were killed in their sleep. So a
        // new epoch begins with the count 0; senders of the old epoch do not decrement it when they
        // leave. If a sender has arrived since `seen` was read, the compare-and-swap fails, since
        // the count would miss that sender.
        let next = (seen & !EPOCHS & !SLEEPERS) | (seen.wrapping_add(EPOCH) & EPOCHS);
        let _ = self.wanted.compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed);
        self.turn.store(0, Ordering::Relaxed);
    }
}

/// The message area of a receiver, as one process has it mapped.
#[derive(Clone, Copy)]
pub struct MessageArea<'a> {
    /// The head.
    pub head: &'a MessageHead,
    /// The numbers of the layout.
    pub sizes: Sizes,
    /// The claims of all slots, in the order of [`Sizes::first_of`].
    pub claims: &'a [AtomicU64],
    /// The slots, in the same order.
    pub slots: &'a [Slot],
    /// The payloads that do not fit into slots.
    pub payloads: *mut u8,
}

impl<'a> MessageArea<'a> {
    /// A share of the receiver; its SendCNT lies in `host`.
    pub fn share(&self, share: usize, host: &'a MessageHead) -> SlotShare<'a> {
        let (first, count) = (self.sizes.first_of(share), self.sizes.slots_of(share));
        SlotShare {
            send: &host.hosted[share].0,
            recv: &self.head.received[share].count,
            asides: &self.head.received[share].asides,
            claims: &self.claims[first..first + count],
            slots: &self.slots[first..first + count],
        }
    }

    /// A share without slots, for a peer behind a wire.
    pub fn no_slots(&self) -> SlotShare<'a> {
        let (send, received) = (&self.head.hosted[0].0, &self.head.received[0]);
        let (recv, asides) = (&received.count, &received.asides);
        SlotShare { send, recv, asides, claims: &[], slots: &[] }
    }
}

/// The distance from the owner's rank to that of the host of a share. The distances spread the
/// hosts evenly over the world, for every number of shares. They are the same for every owner, so
/// no rank hosts two counters with one share number.
fn step_of(share: usize, size: u32) -> u64 {
    let spread = (share as u64).reverse_bits() >> (u64::BITS - SHARES.ilog2());
    spread * u64::from(size) / SHARES as u64
}

/// The rank that hosts the SendCNT of a share of `owner`. The owner hosts that of its first share.
pub fn host_of(owner: u32, share: usize, size: u32) -> u32 {
    ((u64::from(owner) + step_of(share, size)) % u64::from(size)) as u32
}

/// The share of `owner` whose host is the last one up to `sender`, counted from the owner upwards.
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
