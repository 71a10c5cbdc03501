//! A plan's session: one for each rank, in a region of that rank which all ranks of the plan map. It
//! holds what a network card would hold in its session-mode queues: the steps, how far they have got, and the
//! signal words that its owner stores, which let others' steps go on; and behind them the plan's own buffers.
//!
//! ```text
//! header | queue 0 | queue 1 ... | records | buffers
//! ```
//! Header and records are written at init, before the other ranks are told of them.

use crate::coll::arena::say_left;
use crate::coll::runner::queue::{Head, Queue};
use crate::coll::runner::record::Record;
use crate::coll::schedule::QUEUES;
use crate::util::status::Status;
use crate::util::sync::AtomicU8;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering, fence};

/// The beginning of a session.
#[repr(C, align(64))]
struct Header {
    /// A status, once the plan has failed: whoever runs steps stops.
    failed: AtomicI32,
    /// How many other ranks have freed the plan and touch this session no more.
    left: AtomicU32,
    /// The owner's progress thread sleeps: who needs it must ring.
    asleep: AtomicU32,
    /// How many queues there are.
    queues: AtomicU32,
    /// Where the records of each queue begin, and where the last one's end.
    firsts: [AtomicU32; QUEUES + 1],
    /// Of each queue: who looks at it all the time.
    attended: [AtomicU8; QUEUES],
}

// Loom's atomics are larger.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Header>() == 64);

/// Bytes of a queue for a plan of `ranks`: whole lines.
pub fn stride(ranks: usize) -> usize {
    (size_of::<Head>() + ranks * size_of::<AtomicU32>()).next_multiple_of(64)
}

/// Bytes of a session without the buffers.
pub fn size(ranks: usize, queues: usize, records: usize) -> usize {
    size_of::<Header>() + queues * stride(ranks) + records * size_of::<Record>()
}

/// A session as one process sees it.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    base: *mut u8,
    ranks: usize,
    queues: usize,
    /// Where the records of each queue begin, and where the last one's end. Read once and checked: peers can
    /// write the header, and what it says later is not believed.
    firsts: [u32; QUEUES + 1],
}

// SAFETY: the memory is shared by design: atomics, records that are written before they are shared, and
// buffers whose accesses the schedule orders.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    /// Lays out a session in fresh zeroed memory: `lengths` has the number of records of each queue.
    ///
    /// # Safety
    /// `base` is aligned to a line and valid for size() bytes as long as the session is used.
    pub unsafe fn create(base: *mut u8, ranks: usize, lengths: &[usize]) -> Session {
        let mut firsts = [0; QUEUES + 1];
        for (at, length) in lengths.iter().enumerate() {
            firsts[at + 1] = firsts[at] + *length as u32;
        }
        let session = Session { base, ranks, queues: lengths.len(), firsts };
        let header = session.header();
        header.queues.store(lengths.len() as u32, Ordering::Relaxed);
        for (place, first) in header.firsts.iter().zip(firsts) {
            place.store(first, Ordering::Relaxed);
        }
        session
    }

    /// A session that a peer has laid out; None where its header cannot be true of `bytes` bytes.
    ///
    /// # Safety
    /// As create(), for `bytes` bytes.
    pub unsafe fn open(base: *mut u8, ranks: usize, bytes: usize) -> Option<Session> {
        if bytes < size_of::<Header>() || !(base as usize).is_multiple_of(64) {
            return None;
        }
        let session = Session { base, ranks, queues: 0, firsts: [0; QUEUES + 1] };
        let header = session.header();
        let queues = header.queues.load(Ordering::Relaxed) as usize;
        if queues > QUEUES {
            return None;
        }
        let mut firsts = [0; QUEUES + 1];
        for (first, said) in firsts.iter_mut().zip(&header.firsts[..=queues]) {
            *first = said.load(Ordering::Relaxed);
        }
        let records = firsts[queues] as usize;
        let sound = firsts[0] == 0 && firsts[..=queues].is_sorted();
        let session = Session { queues, firsts, ..session };
        (sound && bytes >= size(ranks, queues, records)).then_some(session)
    }

    fn header(&self) -> &Header {
        // SAFETY: whoever made this vouches for the memory; a header is made of atomics.
        unsafe { &*self.base.cast() }
    }

    /// How many queues there are.
    pub fn queues(&self) -> usize {
        self.queues
    }

    /// The numbers of the records of queue `at`, which there is.
    #[inline(always)]
    pub fn records(&self, at: usize) -> std::ops::Range<u32> {
        let at = at & (QUEUES - 1);
        self.firsts[at]..self.firsts[at + 1]
    }

    /// Bytes from the session's beginning to queue `at`, whose first word is its control word.
    #[inline(always)]
    pub fn offset(&self, at: usize) -> usize {
        size_of::<Header>() + at * stride(self.ranks)
    }

    /// Queue `at`, which there is.
    #[inline(always)]
    pub fn queue(&self, at: usize) -> Queue<'_> {
        debug_assert!(at < self.queues);
        let head = self.base.wrapping_add(self.offset(at)).cast::<Head>();
        // SAFETY: the layout has a head and a signal word for each rank there, all atomics.
        unsafe {
            let sent = std::slice::from_raw_parts(head.add(1).cast(), self.ranks);
            Queue { head: &*head, attended: &self.header().attended[at & (QUEUES - 1)], sent }
        }
    }

    fn place(&self, number: u32) -> *mut Record {
        let records = self.base.wrapping_add(self.offset(self.queues)).cast::<Record>();
        records.wrapping_add(number as usize)
    }

    /// Record `number`, which there is, as it was at one moment. What stands in it is the caller's to check.
    #[inline(always)]
    pub fn record(&self, number: u32) -> Record {
        // SAFETY: the layout has it; it was written before the session was shared, or by the owner while
        // nobody else runs its steps. Volatile: what is checked is what is used, whoever writes there meanwhile.
        unsafe { self.place(number).read_volatile() }
    }

    /// Writes the records.
    ///
    /// # Safety
    /// There is room for them, and nobody reads them at the same time.
    pub unsafe fn write(&self, records: &[Record]) {
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(records.as_ptr(), self.place(0), records.len()) };
    }

    /// The status with which the plan has failed.
    #[inline(always)]
    pub fn failed(&self) -> Option<Status> {
        // Acquire: pairs with fail().
        let status = self.header().failed.load(Ordering::Acquire);
        (status != 0).then_some(Status(status))
    }

    /// The plan has failed: who runs steps of this session stops after the present one.
    pub fn fail(&self, status: Status) {
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = self.header().failed.compare_exchange(0, status.0, ok, bad);
    }

    /// The owner's progress thread is about to sleep, or awake.
    pub fn set_asleep(&self, asleep: bool) {
        self.header().asleep.store(asleep.into(), Ordering::Relaxed);
        // Pairs with is_asleep(): either the other sees that this sleeps, or this sees what it did.
        fence(Ordering::SeqCst);
    }

    /// To be asked after what the owner's progress thread is to see.
    pub fn is_asleep(&self) -> bool {
        fence(Ordering::SeqCst);
        self.header().asleep.load(Ordering::Relaxed) != 0
    }

    /// Where in a session the others count that they have left: a word of 4 bytes.
    pub const LEFT: u64 = 4;

    /// The caller, another rank than the owner, touches this session no more.
    pub fn leave(&self) {
        say_left(&self.header().left);
    }
}
