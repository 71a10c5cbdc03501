//! Threads that wait for room in a full queue. They sleep, because a spinning thread could occupy
//! the core of the thread that makes the room. They also take turns. Otherwise the thread that is
//! awake would post until the scheduler preempts it, while the others sleep.
//!
//! While threads wait, a thread may post a share of commands. After that its posts are refused, as
//! if the queue were full, until it has waited in the line: it wakes the first thread of the line
//! and goes to the end. The line is the kernel's: threads that sleep on one word are woken in the
//! order in which they came.

use crate::util::bell::Bell;
use crate::util::own_word::own_word;
use std::ptr::without_provenance;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a thread sleeps at most. The thread that empties the queue looks for sleepers without a
/// fence, so one look may miss a sleeper. It looks again after each batch of commands, so it finds
/// most sleepers earlier.
const LONGEST: Duration = Duration::from_millis(1);
/// Like `LONGEST`, for a thread that waits for its turn. It is long, since a turn comes only after
/// the turns of all other threads.
const LONGEST_TURN: Duration = Duration::from_millis(50);

/// How often a thread looks before it sleeps, and how many pauses lie between two looks: some 3 us
/// in all.
const LOOKS: usize = 16;
const PAUSES: usize = 16;

/// Commands that a thread may post, and messages that a process may send, while others wait.
pub const SHARE: i32 = 8192;
/// How often a thread, or a process, is refused after its share if it does not wait in the line.
/// Then it gets a new share, so a thread that only calls try functions becomes slower but is not
/// locked out.
pub const REFUSALS: i32 = 8;

own_word! {
    /// The number of commands that the thread has posted of its share, as an address; each refusal
    /// behind the share counts as one more.
    posted, "rs_llcl_posted", u8
}

/// How many commands of this thread's share are left; below 0 it counts the refusals.
#[inline(always)]
fn left() -> i32 {
    SHARE - posted::get().addr() as i32
}

#[inline(always)]
fn set_left(left: i32) {
    posted::set(without_provenance((SHARE - left) as usize));
}

/// Threads that wait for room.
#[derive(Default)]
pub struct Admission {
    waiting: AtomicU32,
    bell: Bell,
}

impl Admission {
    /// Waits until there may be room, unless `attempt` succeeds. While a thread empties the queue
    /// there is room within a microsecond, so this looks a few times before it sleeps.
    pub fn wait<T>(&self, attempt: impl Fn() -> Option<T>) -> Option<T> {
        look(&attempt).or_else(|| self.wait_asleep(LONGEST, attempt))
    }

    /// Like `wait`, but sleeps at once, at most for `longest`. It is for a thread that knows that
    /// another thread already looks for room.
    pub fn wait_asleep<T>(&self, longest: Duration, attempt: impl Fn() -> Option<T>) -> Option<T> {
        let ticket = self.bell.ticket();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let end = attempt();
        if end.is_none() {
            self.bell.wait(ticket, Some(longest));
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        set_left(SHARE);
        end
    }

    /// Whether the calling thread may post now. If the post then finds no room, call give_back(): a
    /// thread's share is what it has posted.
    #[inline]
    pub fn admits(&self, refusal: Refusal) -> bool {
        !self.is_wanted() || spend(refusal)
    }

    /// The beginning of admits(), in few steps, for a caller that has seen threads wait. False: the
    /// thread's share is used up, and nothing has changed.
    #[inline(always)]
    pub fn admits_in_share(&self) -> bool {
        let left = left();
        if left > 0 {
            set_left(left - 1);
        }
        left > 0
    }

    /// The post that admits() has admitted has found no room: it does not count.
    pub fn give_back(&self) {
        if self.is_wanted() {
            set_left((left() + 1).min(SHARE));
        }
    }

    /// If the calling thread has used its share: wakes the first thread of the line and waits at
    /// the end of the line. False: it has not used it.
    pub fn wait_for_turn(&self) -> bool {
        if !self.is_wanted() || left() > 0 {
            return false;
        }
        self.announce();
        let ticket = self.bell.ticket();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.bell.wait(ticket, Some(LONGEST_TURN));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        set_left(SHARE);
        true
    }

    /// Whether any thread waits.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.waiting() != 0
    }

    /// How many wait.
    #[inline(always)]
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// There is room: wakes the thread that has waited longest. It wakes only one, since further
    /// threads would find the room taken. They look again after LONGEST at the latest.
    pub fn announce(&self) {
        self.bell.ring_one();
    }
}

/// Repeats `attempt` for some 3 us, or until it succeeds.
pub fn look<T>(attempt: impl Fn() -> Option<T>) -> Option<T> {
    (0..LOOKS).find_map(|_| {
        (0..PAUSES).for_each(|_| std::hint::spin_loop());
        attempt()
    })
}

/// What a refusal of an attempt does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing: the call has another attempt.
    Free,
    /// It is counted.
    Counts,
    /// It is counted, and the last of REFUSALS brings a new share.
    Renews,
}

/// The rest of a share after one more attempt; `left` is the rest before. A negative number counts
/// refusals.
pub fn after_one(left: i32, refusal: Refusal) -> i32 {
    if left <= 0 && refusal == Refusal::Free {
        return left;
    }
    let left = (left - 1).max(-REFUSALS);
    if left == -REFUSALS && refusal == Refusal::Renews { SHARE } else { left }
}

/// Takes one command of the thread's share. False: the share is used up.
#[inline(never)]
fn spend(refusal: Refusal) -> bool {
    let left = left();
    set_left(after_one(left, refusal));
    left > 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_waiting_thread_is_woken_and_tries_again() {
        let (room, free) = (Admission::default(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let attempt = || free.load(Ordering::SeqCst).then_some(7);
                loop {
                    if let Some(end) = room.wait(attempt) {
                        return end;
                    }
                }
            });
            while !room.is_wanted() {
                std::thread::yield_now();
            }
            free.store(true, Ordering::SeqCst);
            room.announce();
            assert_eq!(waiter.join().unwrap(), 7);
        });
        assert!(!room.is_wanted());
    }

    #[test]
    fn a_thread_behind_its_share_is_refused_for_a_while_if_others_wait() {
        let room = Admission::default();
        for _ in 0..2 * SHARE {
            assert!(room.admits(Refusal::Renews));
        }
        room.waiting.store(1, Ordering::Relaxed);
        for _ in 0..2 {
            assert!(!room.wait_for_turn(), "it has not had its share");
            assert!((0..SHARE).all(|_| room.admits(Refusal::Renews)));
            assert!((0..REFUSALS).all(|_| !room.admits(Refusal::Renews)));
        }
    }

    #[test]
    fn refusals_bring_a_new_share_only_where_they_may() {
        use Refusal::{Counts, Free, Renews};
        let after = |count: i32, refusal| (0..count).fold(SHARE, |it, _| after_one(it, refusal));
        assert_eq!([Free, Counts, Renews].map(|refusal| after(SHARE, refusal)), [0; 3]);
        assert_eq!(after(SHARE + REFUSALS, Renews), SHARE);
        assert_eq!(after(SHARE + 5 * REFUSALS, Counts), -REFUSALS);
        assert_eq!(after(SHARE + 5 * REFUSALS, Free), 0);
        assert_eq!(after_one(after(SHARE + 5 * REFUSALS, Counts), Renews), SHARE);
    }
}
