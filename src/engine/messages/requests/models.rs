//! Loom models of the table of requests: one entry, and all threads that may end its message.

use super::*;
use crate::util::sync::Arc;
use loom::thread::{self, JoinHandle};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// The table, and a bit for each dead rank.
struct Table {
    pending: Requests,
    dead: AtomicU64,
}

/// A table of one entry, which all requests use one after the other.
fn table() -> Arc<Table> {
    let entry = Entry {
        state: AtomicU64::new(0),
        generation: AtomicU32::new(0),
        peer: AtomicU32::new(0),
        reported_peer: AtomicU32::new(0),
        waiting: UnsafeCell::new(NOBODY),
    };
    let pending = Requests {
        free: Box::new([AtomicU64::new(1)]),
        records: Box::new([AtomicU32::new(0)]),
        entries: Box::new([entry]),
        used: AtomicBool::new(false),
        draining: Mutex::default(),
        has_draining: AtomicBool::new(false),
    };
    Arc::new(Table { pending, dead: AtomicU64::new(0) })
}

/// An entry of a message to `peer` that names no memory.
fn insert(pending: &Requests, peer: u32) -> Option<(u64, u64)> {
    // SAFETY: there is nothing to keep.
    unsafe { pending.insert(Waiting { peer, ..NOBODY }) }
}

impl Table {
    /// Ends a message as a reply does, and returns its receiver.
    fn answer(&self, tag: u64) -> Option<u32> {
        let waiting = self.pending.take(tag)?;
        self.pending.finish(tag, None, || {});
        Some(waiting.peer)
    }

    /// Like `answer`, without a reply, which may still come, up to ticket 5.
    fn cancel(&self, tag: u64) -> Option<u32> {
        let waiting = self.pending.take(tag)?;
        self.pending.finish(tag, Some(5), || {});
        Some(waiting.peer)
    }

    /// Marks a peer dead and ends the messages to it. Returns the number of messages that this has
    /// ended.
    fn mark_dead(&self, peer: u32) -> u32 {
        // The memory order of the transport.
        self.dead.fetch_or(1 << peer, Ordering::Release);
        let mut ended = 0;
        for tag in self.pending.tags(|at| at == peer) {
            if let Some(to) = self.cancel(tag) {
                assert_eq!(to, peer, "the message to another has been ended");
                ended += 1;
            }
        }
        ended
    }

    /// Makes an entry as a sender does, which then checks whether the peer is dead. Returns the
    /// tag, if there was an entry, and the number of messages that it has ended itself.
    fn begin(&self, peer: u32) -> (Option<u64>, u32) {
        let Some((tag, _)) = insert(&self.pending, peer) else { return (None, 0) };
        let dead = self.dead.load(Ordering::Relaxed) >> peer & 1 == 1;
        (Some(tag), u32::from(dead && self.answer(tag).is_some()))
    }
}

fn spawn<T: 'static>(table: &Arc<Table>, f: impl FnOnce(&Table) -> T + 'static) -> JoinHandle<T> {
    let table = table.clone();
    thread::spawn(move || f(&table))
}

#[test]
fn loom_reply_death_and_cancellation_end_a_message_once() {
    check(3, || {
        let table = table();
        let (tag, _) = insert(&table.pending, 1).unwrap();
        let reply = spawn(&table, move |table| u32::from(table.answer(tag).is_some()));
        let death = spawn(&table, |table| table.mark_dead(1));
        let cancelled = u32::from(table.cancel(tag).is_some());
        assert_eq!(reply.join().unwrap() + death.join().unwrap() + cancelled, 1);
        table.pending.consumed(5);
        assert!(table.pending.is_empty() && !table.pending.waits(tag));
        assert!(insert(&table.pending, 2).is_some(), "its entry is free");
        assert!(table.pending.take(tag).is_none(), "its tag is of the past");
    });
}

/// Either the sender sees that the peer is dead, or the thread that marks the peer dead sees the
/// sender's entry.
#[test]
fn loom_nobody_waits_for_a_peer_that_is_dead() {
    check(4, || {
        let table = table();
        let death = spawn(&table, |table| table.mark_dead(1));
        let (tag, refused) = table.begin(1);
        assert_eq!(refused + death.join().unwrap(), 1);
        assert!(!table.pending.waits(tag.unwrap()));
    });
}

/// Two threads use the entry one after the other; loom reports it if one writes while the other
/// still reads.
#[test]
fn loom_two_threads_follow_each_other_in_one_entry() {
    check(3, || {
        let table = table();
        let threads = [1, 2].map(|peer| {
            spawn(&table, move |table| {
                let (tag, _) = table.begin(peer);
                tag.is_none_or(|tag| table.answer(tag) == Some(peer))
            })
        });
        assert!(threads.map(|thread| thread.join().unwrap()) == [true, true]);
        assert!(table.pending.is_empty() && insert(&table.pending, 3).is_some());
    });
}

/// The entry of a message to one peer is used again for another, which dies. With three preemptions
/// the model takes minutes.
#[test]
fn loom_a_death_ends_the_messages_to_the_dead_only() {
    check(2, || {
        let table = table();
        let (first, _) = insert(&table.pending, 1).unwrap();
        let death = spawn(&table, |table| table.mark_dead(2));
        assert_eq!(table.answer(first), Some(1));
        let (second, refused) = table.begin(2);
        assert_eq!(refused + death.join().unwrap(), 1);
        assert!(!table.pending.waits(second.unwrap()));
    });
}

/// An entry whose reply may still come is freed once, after the ticket of that reply.
#[test]
fn loom_a_draining_entry_is_freed_once() {
    check(3, || {
        let table = table();
        let (tag, _) = insert(&table.pending, 1).unwrap();
        let replies = spawn(&table, |table| table.pending.consumed(5));
        assert_eq!(table.cancel(tag), Some(1));
        let (early, _) = (insert(&table.pending, 2), replies.join().unwrap());
        table.pending.consumed(5);
        assert_eq!(table.pending.is_empty(), early.is_none());
        assert_eq!(insert(&table.pending, 3).is_some(), early.is_none());
    });
}

/// A thread that has waited for the end of a message sees what the end has written.
#[test]
fn loom_a_flush_waits_until_the_user_was_told() {
    check(3, || {
        let table = table();
        let (tag, _) = insert(&table.pending, 1).unwrap();
        let place = Arc::new(UnsafeCell::new(0));
        let bytes = place.clone();
        let reply = spawn(&table, move |table| {
            if table.pending.take(tag).is_some() {
                // SAFETY: the model's reply buffer; loom reports it if the other thread reads it
                // already.
                let fire = || bytes.with_mut(|bytes| unsafe { *bytes = 7 });
                table.pending.finish(tag, None, fire);
            }
        });
        for tag in table.pending.tags(|_| true) {
            while table.pending.waits(tag) {
                thread::yield_now();
            }
        }
        // SAFETY: the message has ended.
        place.with(|bytes| unsafe { assert_eq!(*bytes, 7) });
        reply.join().unwrap();
    });
}

/// The callback of a message to rank 1 posts one to rank 2, in the same entry, which another thread
/// ends. That thread's callback returns only after the flush of rank 1. The flush waits for the
/// first callback, and for nothing else.
#[test]
fn loom_a_flush_waits_for_its_own_messages_while_their_entry_is_used_again() {
    check(2, || {
        let table = table();
        let (first, _) = insert(&table.pending, 1).unwrap();
        let (place, flushed) = (Arc::new(UnsafeCell::new(0)), Arc::new(AtomicBool::new(false)));
        let (bytes, over) = (place.clone(), flushed.clone());
        let reply = spawn(&table, move |table| {
            table.pending.take(first).unwrap();
            let mut next = None;
            table.pending.finish(first, None, || {
                next = insert(&table.pending, 2);
                // SAFETY: as in the model above.
                bytes.with_mut(|bytes| unsafe { *bytes = 7 });
            });
            let (second, _) = next.unwrap();
            table.pending.take(second).unwrap();
            table.pending.finish(second, None, || {
                while !over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            });
        });
        for tag in table.pending.tags(|peer| peer == 1) {
            assert_eq!(tag, first);
            while table.pending.waits(tag) {
                thread::yield_now();
            }
        }
        // SAFETY: the message has ended.
        place.with(|bytes| unsafe { assert_eq!(*bytes, 7) });
        flushed.store(true, Ordering::Relaxed);
        reply.join().unwrap();
        assert!(table.pending.is_empty());
    });
}

/// A message ends in the entry of another one whose completions have not all fired.
#[test]
fn loom_two_reports_of_one_entry_both_keep_a_flush_waiting() {
    check(3, || {
        let table = table();
        let places = [0, 1].map(|_| Arc::new(UnsafeCell::new(0)));
        let (first, _) = insert(&table.pending, 1).unwrap();
        table.pending.take(first).unwrap();
        let write = |place: &UnsafeCell<u32>| {
            place.with_mut(|it| {
                // SAFETY: as in the model above.
                unsafe { *it = 7 }
            })
        };
        let mut other = None;
        let places = &places;
        table.pending.finish(first, None, || {
            let (second, _) = insert(&table.pending, 2).unwrap();
            let place = places[1].clone();
            other = Some(spawn(&table, move |table| {
                table.pending.take(second).unwrap();
                table.pending.finish(second, None, || write(&place));
            }));
            write(&places[0]);
        });
        for tag in table.pending.tags(|peer| peer == 2) {
            while table.pending.waits(tag) {
                thread::yield_now();
            }
        }
        // SAFETY: the message has ended.
        places[1].with(|it| unsafe { assert_eq!(*it, 7) });
        other.unwrap().join().unwrap();
        assert!(table.pending.is_empty() && !table.pending.waits(first));
    });
}
