use super::*;
use crate::transport::frame::Envelope;
use crate::transport::memory::control::Control;
use crate::transport::memory::message_sender::{Short, ShortMessage};
use crate::util::admission::REFUSALS;
use crate::util::backoff::share_core;
use crate::util::config::Config;
use crate::util::counters::Counters;
use crate::util::memory::MemoryFile;
use crate::util::sync::AtomicBool;

const LONG: Duration = Duration::from_secs(60);

struct Message(Counters);

impl ShortMessage for Message {
    fn id(&self) -> u32 {
        1
    }
    fn counts(&self) -> &Counters {
        &self.0
    }
    fn envelope(&self, origin: u64) -> Envelope {
        Envelope::bare(origin, 0, 1, 0)
    }
    unsafe fn write(&self, _: *mut u64) {}
}

/// A thread that has its turn must not send more slowly than one that is alone: 15 threads would
/// then not reach .9 of the rate of one. A message that finds no slot is none of its turn.
#[test]
fn a_thread_in_its_turn_sends_short_messages_while_others_wait() {
    let file = MemoryFile::create().unwrap();
    let own = Control::create(&file, &Config::from_environment().unwrap(), 2).unwrap();
    let area = own.own_message_area();
    let head = area.head;
    head.set_handler(1, true);
    let sender = &MessageSender::new(area, (0, 1), 0, own.bell());
    let (message, stop) = (&Message(Counters::default()), &AtomicBool::new(false));
    // There is no receiver, so the sender gives the slots back.
    let sends = move || {
        let next = head.hosted[0].0.load(Ordering::Relaxed);
        head.received[0].count.store(next, Ordering::Relaxed);
        sender.first_cached.store(next, Ordering::Relaxed);
        !matches!(sender.send_short(message, 0), Short::Refused)
    };
    // No slot is given back, so most of these messages find none.
    let fills = move || {
        let tries = (0..2 * SHARE).map(|_| sender.send_short(message, 0));
        tries.filter(|end| !matches!(end, Short::Refused)).count() as i32
    };
    let check = move || {
        for sent in [fills(), 0] {
            assert!((0..SHARE - sent).all(|_| sends()), "the turn");
            assert!((0..2 * REFUSALS).all(|_| !sends()), "the turn is over, and no refusal counts");
            assert!((0..REFUSALS).all(|_| !sender.admits(true)));
        }
        assert!((0..SHARE).all(|_| sender.admits(false)));
        assert!(!sender.admits(false));
    };
    for waits in [
        // Another thread of this process waits, then the sender of another process.
        &|| {
            let stopped = || stop.load(Ordering::Relaxed).then_some(());
            sender.room.wait_asleep(LONG, stopped).unwrap_or_default()
        },
        &|| head.credit.wait(1, LONG, false, || stop.load(Ordering::Relaxed)),
    ] as [&(dyn Fn() + Sync); 2]
    {
        stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(waits);
            while !sender.room.is_wanted() && !head.credit.is_wanted() {
                std::thread::yield_now();
            }
            // A thread of its own has a share of its own.
            let end = scope.spawn(check).join();
            stop.store(true, Ordering::Relaxed);
            sender.room.announce();
            while head.credit.is_wanted() {
                head.credit.idle(true);
            }
            end.unwrap();
        });
    }
}

/// On a shared core the receiver frees no slot while the sender looks. A thread for which others of
/// its process wait yields, too: without that it slept each time.
#[test]
fn a_sender_on_a_shared_core_yields_at_once_for_credit() {
    let file = MemoryFile::create().unwrap();
    let own = Control::create(&file, &Config::from_environment().unwrap(), 2).unwrap();
    let sender = &MessageSender::new(own.own_message_area(), (0, 1), 0, own.bell());
    let attempts = |shared: bool| {
        let count = std::cell::Cell::new(0);
        let attempt = || {
            count.set(count.get() + 1);
            // A yield would make this thread's core shared, or not.
            share_core(shared);
            None::<()>
        };
        share_core(shared);
        sender.watch(Duration::ZERO, attempt, || {});
        share_core(false);
        count.get()
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope
            .spawn(|| sender.room.wait_asleep(LONG, || stop.load(Ordering::Relaxed).then_some(())));
        while !sender.room.is_wanted() {
            std::thread::yield_now();
        }
        let ends = [attempts(true), attempts(false)];
        stop.store(true, Ordering::Relaxed);
        sender.room.announce();
        assert_eq!(ends[0], YIELDS);
        assert!(ends[1] > 2 * YIELDS);
    });
}
