//! A rank's session of a plan, in a region that all ranks of the plan map. It holds the steps, the
//! number of the next step of each queue, and the signal words that its owner stores and other
//! ranks read. (A network card with session-mode queues has the same state.) The plan's own buffers
//! follow.
//!
//! ```text
//! header | ends | queue 0 | queue 1 ... | records | buffers
//! ``` The owner writes header and records before it sends the place of the session to other ranks.

use crate::coll::arena::count_left;
use crate::coll::runner::queue::{Head, NO_TAIL, Queue, RANKS};
use crate::coll::runner::record::{Record, RecordRef};
use crate::coll::runner::round_end::RoundEnd;
use crate::coll::schedule::{Program, QUEUES};
use crate::util::status::Status;
use crate::util::sync::AtomicU8;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering, fence};

/// The beginning of a session.
#[repr(C, align(64))]
struct Header {
    /// The status with which the plan failed, or 0. Threads that run steps stop when it is set.
    failed: AtomicI32,
    /// How many other ranks have freed the plan and no longer access this session.
    left: AtomicU32,
    /// Whether the owner's progress thread sleeps: a deliverer that needs it must then ring.
    asleep: AtomicU32,
    /// How many queues there are.
    queues: AtomicU32,
    /// How many other ranks have opened this session.
    users: AtomicU32,
    /// The number of the first record of each queue; the last entry is the number of records.
    firsts: [AtomicU32; QUEUES + 1],
    /// The polled word of each queue; see runner::queue.
    polled: [AtomicU8; QUEUES],
}

// Loom's atomics are larger.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Header>() == 64 && size_of::<RoundEnd>() == 64);

/// Bytes before the first queue.
const HEADS: usize = size_of::<Header>() + size_of::<RoundEnd>();

/// Lines of a queue with `words` signal words.
fn lines(words: usize) -> usize {
    (size_of::<Head>() + words * size_of::<AtomicU32>()).div_ceil(64)
}

/// Bytes of a session without the buffers. `words`: the number of signal words of each queue.
pub fn size(words: &[usize], records: usize) -> usize {
    let lines = words.iter().map(|words| lines(*words)).sum::<usize>();
    HEADS + 64 * lines + records * size_of::<Record>()
}

/// How many signal words fit into one line.
const LINE: usize = 16;

/// The number of signal words of each queue of a program. No two ranks that the queue signals share
/// a word: in a team of up to LINE ranks each rank has one, in a larger team the number is their
/// modulus().
pub fn words(program: &Program, ranks: usize) -> Vec<usize> {
    let signals = program.queues.iter().flatten().filter_map(|step| step.signal);
    let signals = signals.filter(|signal| signal.cell.is_none()).collect::<Vec<_>>();
    let to = |queue: usize| {
        let mut to =
            signals.iter().filter(|signal| signal.queue == queue).map(|signal| signal.rank);
        if ranks <= LINE { ranks } else { modulus(&to.by_ref().collect::<BTreeSet<_>>(), ranks) }
    };
    (0..program.queues.len()).map(to).collect()
}

/// The least number, at most `ranks`, by which the ranks in `of` leave different remainders.
pub fn modulus(of: &BTreeSet<usize>, ranks: usize) -> usize {
    let differ = |number: &usize| {
        let mut seen = vec![false; *number];
        of.iter().all(|rank| !std::mem::replace(&mut seen[rank % number], true))
    };
    (of.len().max(1)..ranks).find(differ).unwrap_or(ranks)
}

/// A session as one process sees it.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    base: *mut u8,
    queues: u32,
    /// The first step of the tail of queue 0; other queues have no tail.
    tail: u32,
    /// As in Header. This field, like all others, was read once and checked. Peers can write to the
    /// header, so it is not read again.
    firsts: [u32; QUEUES + 1],
    /// The line in which each queue begins; after the last queue, the line in which the records
    /// begin.
    starts: [u16; QUEUES + 1],
    /// The number of signal words of each queue; at least one.
    words: [u16; QUEUES],
}

// SAFETY: the memory is shared by design: atomics, records that are written before they are shared,
// and buffers whose accesses the schedule orders.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    /// Lays out a session in fresh zeroed memory. `words`: signal words of each queue; `lengths`:
    /// records of each queue; `tail`: the first step of the tail of queue 0.
    ///
    /// # Safety
    /// `base` is aligned to a line and valid for size() bytes as long as the session is used.
    pub unsafe fn create(base: *mut u8, words: &[usize], lengths: &[usize], tail: u32) -> Session {
        let mut firsts = [0; QUEUES + 1];
        for (at, length) in lengths.iter().enumerate() {
            firsts[at + 1] = firsts[at] + *length as u32;
        }
        let mut session = Session { firsts, ..Session::empty(base) };
        session.tail = tail;
        for (at, count) in words.iter().enumerate() {
            session.add(*count);
            // SAFETY: the layout has a head there.
            let head = unsafe { &*session.head(at) };
            head.words.store(*count as u32, Ordering::Relaxed);
            head.tail.store(tail, Ordering::Relaxed);
            session.queue(at).take_tail();
        }
        let header = session.header();
        header.queues.store(words.len() as u32, Ordering::Relaxed);
        for (place, first) in header.firsts.iter().zip(firsts) {
            place.store(first, Ordering::Relaxed);
        }
        session
    }

    /// Opens a session that a peer has laid out. None: the memory does not hold a valid session of
    /// `bytes` bytes.
    ///
    /// # Safety
    /// As create(), for `bytes` bytes.
    pub unsafe fn open(base: *mut u8, bytes: usize) -> Option<Session> {
        if bytes < HEADS || !(base as usize).is_multiple_of(64) {
            return None;
        }
        let mut session = Session::empty(base);
        let header = session.header();
        let queues = header.queues.load(Ordering::Relaxed) as usize;
        let mut firsts = [0; QUEUES + 1];
        for (first, said) in firsts.iter_mut().zip(header.firsts.get(..=queues)?) {
            *first = said.load(Ordering::Relaxed);
        }
        session.firsts = firsts;
        for at in 0..queues {
            if session.offset(at) + size_of::<Head>() > bytes {
                return None;
            }
            // SAFETY: there is room for a head.
            let head = unsafe { &*session.head(at) };
            let words = head.words.load(Ordering::Relaxed) as usize;
            if !(1..=RANKS).contains(&words) {
                return None;
            }
            if at == 0 {
                session.tail = head.tail.load(Ordering::Relaxed);
            }
            session.add(words);
        }
        let end = session.offset(queues) + firsts[queues] as usize * size_of::<Record>();
        let sound = firsts[0] == 0 && firsts[..=queues].is_sorted() && end <= bytes;
        sound.then_some(session)
    }

    /// A session without queues, for tests that do not access it.
    #[cfg(test)]
    pub fn nowhere() -> Session {
        Session::empty(std::ptr::null_mut())
    }

    fn empty(base: *mut u8) -> Session {
        let mut starts = [0; QUEUES + 1];
        starts[0] = (HEADS / 64) as u16;
        let (firsts, words) = ([0; QUEUES + 1], [1; QUEUES]);
        Session { base, queues: 0, tail: NO_TAIL, firsts, starts, words }
    }

    fn add(&mut self, words: usize) {
        let at = self.queues();
        self.words[at] = words as u16;
        self.starts[at + 1] = self.starts[at] + lines(words) as u16;
        self.queues += 1;
    }

    fn head(&self, at: usize) -> *const Head {
        self.base.wrapping_add(self.offset(at)).cast()
    }

    fn header(&self) -> &Header {
        // SAFETY: create() and open() were promised the memory; a header is made of atomics.
        unsafe { &*self.base.cast() }
    }

    /// The words that end the owner's rounds.
    #[inline(always)]
    pub fn round_end(&self) -> &RoundEnd {
        // SAFETY: as in header(); it follows the header.
        unsafe { &*self.base.add(size_of::<Header>()).cast() }
    }

    /// How many queues there are.
    pub fn queues(&self) -> usize {
        self.queues as usize
    }

    /// For each queue that has steps: its number, and how many rounds it has counted as finished.
    #[inline(always)]
    pub fn finished(&self) -> impl Iterator<Item = (usize, u32)> {
        let queues = (0..self.queues()).filter(|queue| !self.records(*queue).is_empty());
        queues.map(|queue| (queue, self.queue(queue).control().finished()))
    }

    /// The numbers of the records of queue `at`, which must exist.
    #[inline(always)]
    pub fn records(&self, at: usize) -> std::ops::Range<u32> {
        let at = at & (QUEUES - 1);
        self.firsts[at]..self.firsts[at + 1]
    }

    /// Bytes from the beginning of the session to the control word of queue `at`.
    #[inline(always)]
    pub fn offset(&self, at: usize) -> usize {
        usize::from(self.starts[at]) * 64
    }

    /// Queue `at`, which must exist.
    #[inline(always)]
    pub fn queue(&self, at: usize) -> Queue<'_> {
        debug_assert!(at < self.queues());
        let at = at & (QUEUES - 1);
        let head = self.head(at);
        // SAFETY: the layout has a head there and behind it so many signal words, all atomics.
        unsafe {
            let sent = std::slice::from_raw_parts(head.add(1).cast(), self.words[at].into());
            let tail = if at == 0 { self.tail } else { NO_TAIL };
            let polled = &self.header().polled[at];
            Queue { head: &*head, polled, tail, sent }
        }
    }

    fn place(&self, number: u32) -> *mut Record {
        let records = self.base.wrapping_add(self.offset(self.queues())).cast::<Record>();
        records.wrapping_add(number as usize)
    }

    /// Record `number`, which must exist. The caller checks its contents.
    #[inline(always)]
    pub fn record(&self, number: u32) -> RecordRef {
        // SAFETY: the layout has the record. It was written before the session was shared, or is
        // written by the owner while no other rank runs the owner's steps.
        unsafe { RecordRef::new(self.place(number)) }
    }

    /// Writes all records.
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

    /// Marks the plan as failed: a thread that runs steps of this session stops after its present
    /// step.
    pub fn fail(&self, status: Status) {
        let (ok, bad) = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = self.header().failed.compare_exchange(0, status.0, ok, bad);
    }

    /// The owner's progress thread calls this before it sleeps, and after it has woken up.
    pub fn set_asleep(&self, asleep: bool) {
        self.header().asleep.store(asleep.into(), Ordering::Relaxed);
        // Pairs with is_asleep(): the deliverer sees that this thread sleeps, or this thread sees
        // the deliverer's stores.
        fence(Ordering::SeqCst);
    }

    /// Publish the work first, then call this: a full fence inside orders the two. Returns whether
    /// the owner's progress thread must be rung.
    pub fn is_asleep(&self) -> bool {
        fence(Ordering::SeqCst);
        self.header().asleep.load(Ordering::Relaxed) != 0
    }

    /// The offset in a session of `left`, a word of 4 bytes.
    pub const LEFT: u64 = 4;

    /// The caller, a rank other than the owner, has opened this session.
    pub fn enter(&self) {
        self.header().users.fetch_add(1, Ordering::Relaxed);
    }

    /// How many other ranks have opened this session. It does not change after the plan was made.
    pub fn users(&self) -> u32 {
        self.header().users.load(Ordering::Relaxed)
    }

    /// The caller, which has called enter(), will not access this session again.
    pub fn leave(&self) {
        count_left(&self.header().left);
    }
}
