//! The progress thread: everything advances when nobody else does it, and it sleeps in the kernel
//! when there is nothing to do.

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

/// How long it naps at first, and at most, while something cannot go on: no free slot at a peer, a
/// table of operations in flight without room, a message that its sender has not finished.
const NAPS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
/// How long it sleeps at most. A peer that is stopped, not killed, between sending and ringing is
/// the one case in which nobody rings.
pub(super) const SLEEP: Duration = Duration::from_secs(1);

/// Callbacks run on this stack; memory is taken as they use it.
pub(super) const STACK: usize = 1 << 20;

/// What the thread works for.
pub struct Crew {
    /// Requests and answers.
    pub lane: Arc<Lane>,
    /// Replies to active messages.
    pub dispatcher: Arc<Dispatcher>,
    /// What the layers above have under way.
    pub background: Arc<Background>,
}

/// The thread, until it is stopped.
pub struct ProgressThread {
    stop: Arc<AtomicBool>,
    routes: Arc<Routes>,
    thread: Mutex<Option<Thread>>,
}

impl ProgressThread {
    /// Starts the thread on `cores`; it stays awake for `spin` after its last work, and for `alert`
    /// after its last work for a task.
    pub fn start(
        routes: Arc<Routes>,
        crew: Crew,
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
            run(&stopped, &bell, &crew, (spin, alert));
        };
        let thread = spawn_quiet("llcl-progress", STACK, run)?;
        // Peers reach this process by that thread where its first one has left.
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

    /// Ends the thread and waits for it. False: at `limit` it was in a function of the user still.
    pub fn stop(&self, limit: Instant) -> bool {
        // Release: pairs with the Acquire in run().
        self.stop.store(true, Ordering::Release);
        self.routes.bell().ring();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.is_none_or(|thread| thread.join_until(limit))
    }
}

fn run(stop: &AtomicBool, routes: &Routes, crew: &Crew, (spin, alert): (Duration, Duration)) {
    let _abort = AbortOnPanic;
    let Crew { lane, dispatcher, background } = crew;
    let (mut backoff, mut alertness) = (Backoff::new(spin), Backoff::new(alert));
    let (mut nap, mut tasks_nap, mut seen) = (NAPS.0, Nap::new(), 0);
    // It has worked for a task since it last slept.
    let mut lately = false;
    loop {
        // Before the look for work, so that what comes after it ends the sleep.
        let ticket = routes.bell().ticket();
        // Acquire: pairs with the Release in stop().
        if stop.load(Ordering::Acquire) {
            return;
        }
        let replies = dispatcher.poll_replies();
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
                    // Without the role: better here than in the middle of a batch.
                    std::thread::yield_now();
                }
                backoff.renew();
                nap = NAPS.0;
                continue;
            }
        }
        // Also between two rounds of a program that computes: the next one begins soon.
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

/// Without one of its threads a rank would hang, and with it all others; so it ends, loudly.
pub(super) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
