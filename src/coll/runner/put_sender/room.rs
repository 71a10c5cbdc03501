//! Flow control of a plan's control messages: how many bytes were posted and not answered, and
//! which queues wait for room, or for the end of a write in place.

use crate::coll::schedule::QUEUES;
use crate::util::status::Status;
use crate::util::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// The most bytes of a plan that may be posted and not answered at one time.
const WINDOW: u64 = 1 << 20;
/// The bytes for which a shorter control message counts.
const LEAST: u64 = 512;

/// States of a queue's write in place: there is none, or it is under way. Else it has ended, and
/// ENDED minus the state is its status.
const NO_WRITE: u32 = 0;
const WRITES: u32 = 1;
const ENDED: u32 = u32::MAX;

/// The room of a plan; see the head of the file.
#[derive(Default)]
pub struct Room {
    under_way: AtomicU64,
    /// A bit for each queue that waits for room or for its write.
    stalled: AtomicU32,
    /// The state of each queue's write in place.
    writes: [AtomicU32; QUEUES],
}

fn cost(bytes: usize) -> u64 {
    (bytes as u64).max(LEAST)
}

impl Room {
    fn has(&self, bytes: usize) -> bool {
        let under_way = self.under_way.load(Ordering::Relaxed);
        under_way == 0 || under_way + cost(bytes) <= WINDOW
    }

    /// Takes room for so many bytes. False: there is none, and the queue is marked as waiting for
    /// room.
    pub fn try_take(&self, bytes: usize, queue: usize) -> bool {
        if !self.has(bytes) {
            self.stalled.fetch_or(1 << queue, Ordering::Relaxed);
            // Orders the mark before the second look; pairs with the fence in ended().
            fence(Ordering::SeqCst);
            if !self.has(bytes) {
                return false;
            }
            self.stalled.fetch_and(!(1 << queue), Ordering::Relaxed);
        }
        self.take_always(bytes);
        true
    }

    /// Takes room even if there is none.
    fn take_always(&self, bytes: usize) {
        self.under_way.fetch_add(cost(bytes), Ordering::Relaxed);
    }

    /// The control message for which room was taken was not posted.
    pub fn give_back(&self, bytes: usize) {
        self.under_way.fetch_sub(cost(bytes), Ordering::Relaxed);
    }

    /// A control message was answered. True: queues wait for room, and the caller must call the
    /// progress thread, which looks at all queues.
    pub fn ended(&self, bytes: usize) -> bool {
        self.give_back(bytes);
        fence(Ordering::SeqCst);
        let waited = self.stalled.load(Ordering::Relaxed) != 0;
        if waited {
            // If a queue sets its bit between the load and this store, the call that follows finds
            // it too.
            self.stalled.store(0, Ordering::Release);
        }
        waited
    }

    /// A queue begins a write in place, and has none under way.
    pub fn begin_write(&self, queue: usize) {
        self.writes[queue].store(WRITES, Ordering::Relaxed);
    }

    /// The write that begin_write() has announced was not posted.
    pub fn no_write(&self, queue: usize) {
        self.writes[queue].store(NO_WRITE, Ordering::Relaxed);
    }

    /// A write in place has ended; ended() follows.
    pub fn write_ended(&self, queue: usize, status: Status) {
        // Release: pairs with take_write().
        self.writes[queue].store(ENDED.wrapping_add_signed(status.0), Ordering::Release);
    }

    /// Whether a queue's write in place is under way.
    pub fn writes(&self, queue: usize) -> bool {
        self.writes[queue].load(Ordering::Relaxed) == WRITES
    }

    /// Whether a queue has begun a write in place, whose end finish_write() has not returned yet.
    pub fn has_write(&self, queue: usize) -> bool {
        self.writes[queue].load(Ordering::Relaxed) != NO_WRITE
    }

    /// The status of a queue's write in place, once. None: it is under way, and the queue is marked
    /// as waiting.
    pub fn finish_write(&self, queue: usize) -> Option<Status> {
        let ended = self.take_write(queue);
        if ended.is_some() {
            return ended;
        }
        self.stalled.fetch_or(1 << queue, Ordering::Relaxed);
        // As in try_take().
        fence(Ordering::SeqCst);
        let ended = self.take_write(queue);
        if ended.is_some() {
            self.stalled.fetch_and(!(1 << queue), Ordering::Relaxed);
        }
        ended
    }

    fn take_write(&self, queue: usize) -> Option<Status> {
        // Acquire: pairs with write_ended(). What the network has read may change now.
        let state = self.writes[queue].load(Ordering::Acquire);
        if state == WRITES {
            return None;
        }
        self.writes[queue].store(NO_WRITE, Ordering::Relaxed);
        Some(Status(state.wrapping_sub(ENDED) as i32))
    }

    /// Whether a queue waits for room or for its write: its next step cannot be run now.
    pub fn is_stalled(&self, queue: usize) -> bool {
        // Acquire: pairs with ended().
        self.stalled.load(Ordering::Acquire) & 1 << queue != 0
    }
}

/// Models of queues that find no room while answers come. Planted faults that both models found: no
/// fence in try_take(), no fence in ended(), and an ended() that does not look.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::util::sync::Arc;
    use loom::thread;

    const ALL: usize = WINDOW as usize;

    /// An answer; the thread that is called looks at the queues afterwards.
    fn answer(room: &Room, calls: &AtomicU32) {
        if room.ended(ALL) {
            calls.fetch_add(1, Ordering::Release);
        }
    }

    #[test]
    fn loom_a_queue_that_waits_for_room_is_called() {
        loom::model(|| {
            let (room, calls) = (Arc::new(Room::default()), Arc::new(AtomicU32::new(0)));
            assert!(room.try_take(ALL, 0));
            let (other, called) = (room.clone(), calls.clone());
            let answers = thread::spawn(move || answer(&other, &called));
            let found = room.try_take(ALL, 0);
            answers.join().unwrap();
            assert!(found || calls.load(Ordering::Acquire) == 1);
            assert!(found || room.try_take(ALL, 0));
        });
    }

    #[test]
    fn loom_a_queue_that_waits_for_its_write_is_called() {
        loom::model(|| {
            let (room, calls) = (Arc::new(Room::default()), Arc::new(AtomicU32::new(0)));
            room.begin_write(3);
            room.take_always(0);
            let (other, called) = (room.clone(), calls.clone());
            let end = thread::spawn(move || {
                other.write_ended(3, Status::ERR_KEY);
                if other.ended(0) {
                    called.fetch_add(1, Ordering::Release);
                }
            });
            let found = room.finish_write(3);
            end.join().unwrap();
            assert!(found.is_some() || calls.load(Ordering::Acquire) == 1);
            assert_eq!(found.or_else(|| room.finish_write(3)), Some(Status::ERR_KEY));
            assert!(!room.has_write(3) && !room.is_stalled(3));
        });
    }

    #[test]
    fn loom_one_of_two_queues_finds_the_room_and_the_other_is_called_or_waits() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let (room, calls) = (Arc::new(Room::default()), Arc::new(AtomicU32::new(0)));
            room.take_always(ALL);
            let take = |queue: usize| {
                let room = room.clone();
                thread::spawn(move || room.try_take(ALL, queue))
            };
            let queues = [take(0), take(1)];
            answer(&room, &calls);
            let found = queues.map(|queue| queue.join().unwrap());
            let called = calls.load(Ordering::Acquire) > 0;
            // A queue that was not called yet is called by the next answer.
            assert!((0..2).all(|queue| found[queue] || called || room.is_stalled(queue)));
            assert!(found.contains(&true) || called);
        });
    }
}
