//! The numbers of a rank's message area, from which its layout follows.

use super::{
    ANSWERS, KINDS, LARGE, LARGE_ANSWERS, LARGE_LIB, LARGE_RESPONSES, LIB, Policy, REPLIES,
    RESPONSES,
};
use crate::transport::frame::LARGEST;
use crate::transport::{CHUNK, CHUNKS, SMALL_REPLY, SMALL_REQUEST};
use crate::util::config::Config;
use crate::util::counters::SHARES;
use crate::util::sync::{AtomicU64, Ordering};

/// Number of near places of a share. A power of two, and at least twice as many as the slots that a
/// receiver gives back at a time.
const NEAR: usize = 64;

/// The numbers, in the header of the control area.
#[repr(C, align(128))]
pub struct Numbers {
    policy: AtomicU64,
    slots: AtomicU64,
    medium: AtomicU64,
    shares: AtomicU64,
    requests: AtomicU64,
    chunks: AtomicU64,
    lib: AtomicU64,
    answers: AtomicU64,
}

/// A checked copy of the numbers.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// How senders take slots.
    pub policy: Policy,
    /// Number of slots for requests, in all shares together.
    pub slots: usize,
    /// Most bytes of payload of such a slot.
    pub medium: usize,
    /// Number of shares for requests.
    pub shares: usize,
    /// Most requests of this rank that wait for their replies; number of slots for replies.
    pub requests: usize,
    /// Number of slots of LARGE, and of LARGE_RESPONSES.
    pub chunks: usize,
    /// Number of slots for requests to this rank as the owner of memory.
    pub lib: usize,
    /// Number of slots for answers of owners: two for each operation that may wait for an answer,
    /// since a rank that dies may leave a slot claimed and not published.
    pub answers: usize,
}

impl Sizes {
    /// The numbers that follow from the configuration, for a world of `size` ranks.
    pub fn configured(config: &Config, size: u32) -> Sizes {
        let policy = match config.am_policy {
            0 => Policy::Acquire,
            1 => Policy::Limit,
            _ => Policy::Distributed,
        };
        let slots = config.am_slots as usize;
        // At least two slots for each share: with one, no sender could write while the receiver
        // reads.
        let most = (slots / 2).max(1).min(1 << size.max(1).ilog2());
        let shares = match policy {
            Policy::Distributed => most.min(config.am_shares as usize),
            _ => 1,
        };
        let (medium, requests) = (config.am_medium as usize, config.am_requests as usize);
        let (chunks, lib) = (config.am_chunks as usize, config.request_slots as usize);
        let answers = 2 * (config.in_flight as usize).next_power_of_two();
        Sizes { policy, slots, medium, shares, requests, chunks, lib, answers }
    }

    /// The numbers that the card of a peer behind a wire has; nobody uses the others. None: they
    /// are not valid.
    pub fn of_far(policy: u32, slots: u32, medium: u32) -> Option<Sizes> {
        let policy = Policy::of(policy.into())?;
        let (slots, medium) = (slots as usize, medium as usize);
        let (shares, requests, chunks, lib, answers) = (1, 1, 1, 1, 1);
        let sizes = Sizes { policy, slots, medium, shares, requests, chunks, lib, answers };
        sizes.are_sane().then_some(sizes)
    }

    /// Number of slots of one share.
    pub fn slots_of(&self, share: usize) -> usize {
        match share {
            REPLIES => self.requests,
            RESPONSES => self.slots,
            LARGE | LARGE_RESPONSES => self.chunks,
            LIB => self.lib,
            ANSWERS => self.answers,
            LARGE_LIB | LARGE_ANSWERS => CHUNKS,
            _ => self.slots / self.shares,
        }
    }

    /// The index of a share's first slot among all slots. The order is: the shares for requests,
    /// REPLIES, RESPONSES, LARGE, LARGE_RESPONSES, LIB, ANSWERS, LARGE_LIB, LARGE_ANSWERS.
    pub fn first_of(&self, share: usize) -> usize {
        match share {
            REPLIES => self.slots,
            RESPONSES => self.slots + self.requests,
            LARGE => 2 * self.slots + self.requests,
            LARGE_RESPONSES => 2 * self.slots + self.requests + self.chunks,
            LIB => self.of_messages(),
            ANSWERS => self.of_messages() + self.lib,
            LARGE_LIB => self.of_messages() + self.lib + self.answers,
            LARGE_ANSWERS => self.of_messages() + self.lib + self.answers + CHUNKS,
            _ => share * self.slots_of(share),
        }
    }

    /// Most bytes of payload of a share's slots.
    #[inline(always)]
    pub fn payload_of(&self, share: usize) -> usize {
        match share {
            LIB => SMALL_REQUEST,
            ANSWERS => SMALL_REPLY,
            LARGE_LIB | LARGE_ANSWERS => CHUNK,
            LARGE | LARGE_RESPONSES => LARGEST,
            _ => self.medium,
        }
    }

    /// The offset of the payload of slot `index` of a share among all payloads. LIB and ANSWERS
    /// have no payloads outside of their slots.
    pub(super) fn payload_at(&self, share: usize, index: usize) -> usize {
        let at = self.first_of(share) + index;
        let (small, large) = (2 * self.slots + self.requests, self.of_messages());
        let chunks = at.saturating_sub(self.first_of(LARGE_LIB));
        small.min(at) * self.medium
            + (at.min(large).saturating_sub(small)) * LARGEST
            + chunks * CHUNK
    }

    /// Number of near places of a share, each of `medium` bytes; see [`SlotShare::is_near`].
    ///
    /// [`SlotShare::is_near`]: crate::transport::memory::slots::SlotShare::is_near
    #[inline(always)]
    pub fn near_of(&self, share: usize) -> usize {
        if share <= RESPONSES && self.slots > NEAR { NEAR } else { 0 }
    }

    /// The offset of the near place of a ticket among all payloads. The near places lie behind the
    /// other payloads: those of the shares for requests, REPLIES, RESPONSES.
    #[inline(always)]
    pub(super) fn near_at(&self, share: usize, ticket: u64) -> usize {
        let order = if share < REPLIES { share } else { self.shares + share - REPLIES };
        self.payload_at(LARGE_LIB, 2 * CHUNKS)
            + (order * NEAR + (ticket as usize & (NEAR - 1))) * self.medium
    }

    /// Number of slots of active messages.
    pub fn of_messages(&self) -> usize {
        2 * (self.slots + self.chunks) + self.requests
    }

    /// Number of slots of all shares.
    pub fn all(&self) -> usize {
        self.first_of(LARGE_LIB) + 2 * CHUNKS
    }

    /// Size of all payloads in bytes.
    pub fn payloads(&self) -> usize {
        self.payload_at(LARGE_LIB, 2 * CHUNKS) + self.near_bytes()
    }

    /// Size of the payloads of active messages in bytes.
    pub fn payloads_of_messages(&self) -> usize {
        self.payload_at(0, self.of_messages()) + self.near_bytes()
    }

    /// Size of all near places in bytes.
    fn near_bytes(&self) -> usize {
        (self.shares + 2) * self.near_of(RESPONSES) * self.medium
    }

    /// The numbers of all shares in use.
    pub fn each_share(&self) -> impl Iterator<Item = usize> {
        (0..self.shares).chain(REPLIES..KINDS)
    }

    fn are_sane(&self) -> bool {
        let power = |value: usize, most: usize| value.is_power_of_two() && value <= most;
        power(self.slots, 1 << 16)
            && power(self.shares, SHARES)
            && self.shares <= self.slots
            && power(self.requests, 1 << 12)
            && power(self.chunks, 1 << 12)
            && power(self.lib, 1 << 16)
            && power(self.answers, 1 << 13)
            && (64..=1 << 16).contains(&self.medium)
            && self.medium.is_multiple_of(64)
    }
}

impl Policy {
    fn of(number: u64) -> Option<Policy> {
        [Policy::Acquire, Policy::Limit, Policy::Distributed].get(number as usize).copied()
    }
}

impl Numbers {
    pub(in crate::transport) fn write(&self, sizes: &Sizes) {
        self.policy.store(sizes.policy as u64, Ordering::Relaxed);
        self.slots.store(sizes.slots as u64, Ordering::Relaxed);
        self.medium.store(sizes.medium as u64, Ordering::Relaxed);
        self.shares.store(sizes.shares as u64, Ordering::Relaxed);
        self.requests.store(sizes.requests as u64, Ordering::Relaxed);
        self.chunks.store(sizes.chunks as u64, Ordering::Relaxed);
        self.lib.store(sizes.lib as u64, Ordering::Relaxed);
        self.answers.store(sizes.answers as u64, Ordering::Relaxed);
    }

    /// Reads and checks the numbers. None: they are not valid.
    pub(in crate::transport) fn read(&self) -> Option<Sizes> {
        let number = |word: &AtomicU64| word.load(Ordering::Relaxed) as usize;
        let policy = Policy::of(self.policy.load(Ordering::Relaxed))?;
        let (slots, medium) = (number(&self.slots), number(&self.medium));
        let (shares, requests) = (number(&self.shares), number(&self.requests));
        let (chunks, lib, answers) =
            (number(&self.chunks), number(&self.lib), number(&self.answers));
        let sizes = Sizes { policy, slots, medium, shares, requests, chunks, lib, answers };
        sizes.are_sane().then_some(sizes)
    }
}
