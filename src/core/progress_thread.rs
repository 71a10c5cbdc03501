//! The progress thread advances the lane, the replies and the tasks of a context while no other
//! thread does. It sleeps in the kernel when there is no work.

use crate::core::background::{Background, Nap};
use crate::engine::handover::Turn;
use crate::engine::lane::Lane;
use crate::engine::messages::dispatch::Dispatcher;
use crate::engine::routes::Routes;
use crate::fail;
use crate::util::backoff::Backoff;
use crate::util::cores::{Cores, PROGRESS_CPUS};
use crate::util::status::Result;
use crate::util::thread::{Thread, spawn_quiet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The first and the longest nap, while an operation cannot go on and nothing rings when it can:
/// the in-flight table is full, a sender has not finished a message, or the kernel has no fence.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// How long the thread sleeps at most. A sender may be stopped (not killed) between its store of a
/// message and its ring; this limit lets the thread find the message.
pub(super) const SLEEP: Duration = Duration::from_secs(1);

/// The size of the thread's stack, on which callbacks run. Only the pages that they use take
/// memory.
pub(super) const STACK: usize = 1 << 20;

/// The parts of a context that the thread advances.
pub struct Parts {
    /// Requests and answers.
    pub lane: Arc<Lane>,
    /// Replies to active messages.
    pub dispatcher: Arc<Dispatcher>,
    /// Tasks of the layers above.
    pub background: Arc<Background>,
}

/// The thread, until it is stopped.
pub struct ProgressThread {
    stop: Arc<AtomicBool>,
    routes: Arc<Routes>,
    thread: Mutex<Option<Thread>>,
}

impl ProgressThread {
    /// Starts the thread on `cores`. It stays awake for `spin` after its last work, and for `alert`
    /// after its last work for a task.
    pub fn start(
        routes: Arc<Routes>,
        parts: Parts,
        (spin, alert): (Duration, Duration),
        cores: Option<Cores>,
    ) -> Result<ProgressThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, bell) = (stop.clone(), routes.clone());
        let resident = Arc::new((Mutex::new(None), Condvar::new()));
        let begun = resident.clone();
        let run = move || {
            let entered = cores.map_or(Ok(()), Cores::enter);
            let ends = entered.is_err();
            bell.set_resident();
            *begun.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(entered);
            begun.1.notify_one();
            if ends {
                return;
            }
            run(&stopped, &bell, &parts, (spin, alert));
        };
        let thread = spawn_quiet("llcl-progress", STACK, run)?;
        // set_resident() has noted the thread, by which the kernel finds this process when the
        // first thread has ended. So this waits until the thread has begun.
        let begins = resident.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = resident.1.wait_while(begins, |begun| begun.is_none());
        if let Some(Err(error)) = begun.unwrap_or_else(PoisonError::into_inner).take() {
            thread.join();
            fail!(
                ERR_INVALID,
                "{PROGRESS_CPUS} lists no processor of this machine for it: {error}"
            );
        }
        Ok(ProgressThread { stop, routes, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the thread and waits for it. False: at `limit` it was still in a function of the user.
    pub fn stop(&self, limit: Instant) -> bool {
        // Release: pairs with the Acquire in run().
        self.stop.store(true, Ordering::Release);
        self.routes.bell().ring();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.is_none_or(|thread| thread.join_until(limit))
    }
}

fn run(stop: &AtomicBool, routes: &Routes, parts: &Parts, (spin, alert): (Duration, Duration)) {
    let _abort = AbortOnPanic;
    let Parts { lane, dispatcher, background } = parts;
    let (mut backoff, mut alertness) = (Backoff::new(spin), Backoff::new(alert));
    let (mut nap, mut tasks_nap, mut seen) = (NAPS.0, Nap::new(), 0);
    // Whether the thread has worked for a task since it last slept.
    let mut lately = false;
    loop {
        // The ticket comes before the look for work, so that later work ends the sleep.
        let ticket = routes.bell().ticket();
        // Acquire: pairs with the Release in stop().
        if stop.load(Ordering::Acquire) {
            return;
        }
        let replies = dispatcher.poll_all_replies();
        let tasks = background.turn(lately);
        if tasks {
            lately = true;
            alertness.renew();
            tasks_nap.renew();
        }
        match lane.turn() {
            Turn::Idle if tasks => continue,
            Turn::Idle if replies == 0 => {}
            turn => {
                if turn == Turn::Stretched {
                    // The thread yields here and not in the middle of a batch, because here it does
                    // not have the role.
                    std::thread::yield_now();
                }
                backoff.renew();
                backoff.expect_more();
                nap = NAPS.0;
                continue;
            }
        }
        // The thread also stays awake between two rounds of a program that computes, since the next
        // round begins soon.
        if alertness.pause() || backoff.pause() {
            continue;
        }
        let asleep = lane.park();
        let longest = dispatcher.park_progress(&mut seen, if asleep { SLEEP } else { nap });
        let rung = match background.park(&mut tasks_nap, longest) {
            Some(longest) => routes.bell().wait(ticket, Some(longest)),
            None => true,
        };
        let stays = background.unpark(&mut tasks_nap);
        lately = false;
        dispatcher.unpark_progress();
        lane.unpark();
        nap = if asleep { NAPS.0 } else { (nap * 2).min(NAPS.1) };
        if rung {
            backoff.renew();
        }
        if rung || stays {
            alertness.renew();
        }
    }
}

/// Ends the process if a thread of the library panics. Without that thread this rank would hang,
/// and other ranks would wait for it.
pub(super) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
