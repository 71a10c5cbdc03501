use crate::core::context::{Context, Place};
use crate::engine::command::{Command, Op};
use crate::engine::completion::{CALL, Completion};
use crate::util::admission::{REFUSALS, SHARE};
use crate::util::config::Config;
use crate::util::status::{Error, Status};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// States of the word of occupy().
const OCCUPIED: u64 = 1;
const FREE: u64 = 2;

/// Occupies the progress thread until the word is FREE.
unsafe extern "C-unwind" fn occupy(word: *mut c_void, _: Status) {
    // SAFETY: the test's word.
    let word = unsafe { &*word.cast::<AtomicU64>() };
    word.store(OCCUPIED, Ordering::Relaxed);
    while word.load(Ordering::Relaxed) != FREE {
        std::thread::yield_now();
    }
}

/// A thread's share is what it has put into the queue: a command that finds the queue full takes
/// nothing of it. A refusal counts once for each call, although offload() is not its last attempt.
#[test]
fn a_command_that_finds_the_queue_full_takes_nothing_of_the_share() {
    let mut config = Config::from_environment().expect("a configuration");
    config.execution = 1;
    let context = Context::create(Ok(config), Place::Environment).expect("a world of one");
    let (lane, word) = (&context.lane, AtomicU64::new(0));
    let mut flush = Command::new(Op::FLUSH, 0);
    flush.on_complete = Completion {
        kind: CALL,
        call: occupy as *const c_void,
        target: word.as_ptr().cast(),
        ..Completion::NOTHING
    };
    // SAFETY: the word exists until the context has ended.
    let asleep = unsafe { lane.put(&flush, &[]) }.expect("room");
    lane.wake_executor(asleep);
    while word.load(Ordering::Relaxed) != OCCUPIED {
        std::thread::yield_now();
    }
    let offloads = || {
        // SAFETY: the command has no completions, and needs no memory.
        let posted = unsafe { lane.offload(&Command::new(Op::FLUSH, 0)) };
        posted.map(|posted| lane.offloaded(posted)).is_some()
    };
    let fails = || lane.put_in_turn::<()>(|| Err(Error::bare(Status::RETRY_QUEUE_FULL))).is_err();
    let puts = || lane.put_in_turn(|| Ok(())).is_ok();
    let ended = || (word.load(Ordering::Relaxed) == FREE).then_some(());
    std::thread::scope(|scope| {
        scope.spawn(|| lane.room().wait_asleep(Duration::from_secs(60), ended));
        while !lane.room().is_wanted() {
            std::thread::yield_now();
        }
        // A thread of its own has a share of its own.
        let sender = scope.spawn(|| {
            let put = (0..2 * SHARE).filter(|_| offloads()).count() as i32;
            assert!(put > 0 && put < SHARE, "{put}");
            assert!((0..2 * SHARE).all(|_| fails()));
            assert!((put..SHARE).all(|_| puts()), "{put} found room before");
            assert!((0..2 * REFUSALS).all(|_| !offloads()));
            assert!((0..REFUSALS).all(|_| !puts()), "the share is used up");
            assert!(puts(), "a new share");
        });
        let end_of_sender = sender.join();
        word.store(FREE, Ordering::Relaxed);
        lane.room().announce();
        end_of_sender.expect("a share of commands");
    });
    context.finalize(None).status.expect("the end");
}
