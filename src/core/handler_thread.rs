//! The thread that runs handlers of active messages when no waiting thread does. It is not the
//! progress thread, so that a long handler does not delay the requests of other ranks. It is
//! started when the first handler is registered. With polled handlers it runs none: it wakes the
//! threads of the program that sleep in the library, so that one of them runs the handler.

use crate::core::progress_thread::{AbortOnPanic, SLEEP, STACK};
use crate::engine::messages::dispatch::{Dispatcher, NAP};
use crate::engine::routes::Routes;
use crate::util::backoff::Backoff;
use crate::util::cores::Cores;
use crate::util::status::Result;
use crate::util::thread::{Thread, spawn_quiet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The thread, once it is started and until it is stopped.
pub struct HandlerThread {
    stop: Arc<AtomicBool>,
    routes: Arc<Routes>,
    dispatcher: Arc<Dispatcher>,
    spin: Duration,
    cores: Option<Cores>,
    thread: Mutex<Option<Thread>>,
}

impl HandlerThread {
    /// A thread that is not started. It will run on `cores` and stay awake for `spin` after its
    /// last message.
    pub fn new(
        routes: Arc<Routes>,
        dispatcher: Arc<Dispatcher>,
        spin: Duration,
        cores: Option<Cores>,
    ) -> HandlerThread {
        let (stop, thread) = (Arc::default(), Mutex::default());
        HandlerThread { stop, routes, dispatcher, spin, cores, thread }
    }

    /// Starts the thread, once.
    pub fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (stop, routes, dispatcher) =
                (self.stop.clone(), self.routes.clone(), self.dispatcher.clone());
            let (spin, cores) = (self.spin, self.cores);
            let run = move || {
                // An error is ignored: the progress thread has entered these cores before, so the
                // machine has them.
                let _ = cores.map(Cores::enter);
                match dispatcher.is_polled() {
                    true => wake_sleepers(&stop, &routes),
                    false => run(&stop, &routes, &dispatcher, spin),
                }
            };
            *thread = Some(spawn_quiet("llcl-handlers", STACK, run)?);
        }
        Ok(())
    }

    /// Ends the thread and waits for it. False: at `limit` it was still in a function of the user.
    pub fn stop(&self, limit: Instant) -> bool {
        // Release: pairs with the Acquire in run().
        self.stop.store(true, Ordering::Release);
        self.routes.fabric().own_words().requests.bell().ring();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.is_none_or(|thread| thread.join_until(limit))
    }
}

/// The thread with polled handlers: when a sender rings, it wakes the sleeping threads, which look
/// for messages.
fn wake_sleepers(stop: &AtomicBool, routes: &Routes) {
    let _abort = AbortOnPanic;
    let bell = routes.fabric().own_words().requests.bell();
    loop {
        // The ticket is taken before the sleepers are woken, so that a later ring ends the wait.
        let ticket = bell.ticket();
        // Acquire: pairs with the Release in stop().
        if stop.load(Ordering::Acquire) {
            return;
        }
        routes.waiters().touched_anything();
        bell.wait(ticket, Some(SLEEP));
    }
}

fn run(stop: &AtomicBool, routes: &Routes, dispatcher: &Dispatcher, spin: Duration) {
    let _abort = AbortOnPanic;
    let bell = routes.fabric().own_words().requests.bell();
    let (mut backoff, mut seen) = (Backoff::new(spin), 0);
    loop {
        // The ticket is taken before the look for work, so that later work ends the sleep.
        let ticket = bell.ticket();
        // Acquire: pairs with the Release in stop().
        if stop.load(Ordering::Acquire) {
            // After the fences of finalize() no rank sends a message, so this handles the last
            // ones.
            while dispatcher.poll_requests() > 0 {}
            dispatcher.notify_sleepers();
            return;
        }
        // While a waiting thread handles messages, this thread naps, because it would only take a
        // core that senders need.
        if dispatcher.nap_while_others_help(&mut seen) {
            dispatcher.notify_sleepers();
            bell.wait(ticket, Some(NAP));
            dispatcher.unpark_handling();
            continue;
        }
        if dispatcher.poll_requests() > 0 {
            backoff.renew();
            continue;
        }
        dispatcher.notify_sleepers();
        if backoff.pause() {
            continue;
        }
        let longest = dispatcher.park_handling(&mut seen, SLEEP);
        let rung = bell.wait(ticket, Some(longest));
        dispatcher.unpark_handling();
        if rung {
            backoff.renew();
        }
    }
}
