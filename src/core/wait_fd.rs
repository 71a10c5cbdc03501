//! A descriptor for the event loop of a program. It becomes readable when the event for which it
//! was armed has happened. Peers wake threads by words in shared memory, for which the kernel
//! offers no descriptor. So a thread of the library sleeps on the words and then writes to an
//! eventfd.
//!
//! The first arming starts the thread. It does not help with progress: it only reads the words and
//! sleeps.

use crate::core::background::Background;
use crate::core::blocking::Blocking;
use crate::core::poster::Poster;
use crate::core::progress_thread::{AbortOnPanic, STACK};
use crate::core::region::Regions;
use crate::core::watch::{Changer, Loss, Watch, Watched, position};
use crate::engine::lane::Lane;
use crate::engine::messages::dispatch::Dispatcher;
use crate::engine::routes::Routes;
use crate::transport::waiters::Awaited;
use crate::util::status::{Error, Result};
use crate::util::thread::{Thread, spawn_quiet};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The parts of a context that the thread looks at.
#[allow(missing_docs)]
pub(super) struct Parts {
    pub routes: Arc<Routes>,
    pub lane: Arc<Lane>,
    pub dispatcher: Arc<Dispatcher>,
    pub poster: Arc<Poster>,
    pub regions: Arc<Regions>,
    pub background: Arc<Background>,
    pub spin: Duration,
}

/// The events for which the descriptor is armed.
struct Armed {
    /// Address and value of each word, and the ranks that may change it. The program keeps the
    /// words valid until the thread has stopped using them.
    words: Vec<(usize, u64, Changer)>,
    messages: bool,
    /// How many handlers had run at the arming thread's last look.
    known: u64,
}

#[derive(Default)]
struct State {
    armed: Option<Armed>,
    /// Whether the thread uses the words of an arming.
    looking: bool,
    /// The context ends.
    over: bool,
}

struct Shared {
    parts: Parts,
    event: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
    /// Counts the events that make the thread stop using the words of an arming: another arming,
    /// and the end of the context.
    recalls: AtomicU64,
}

/// The descriptor of a context, from the first arming on.
#[derive(Default)]
pub(super) struct Notifier(Mutex<Option<(Arc<Shared>, Thread)>>);

fn start(parts: Parts) -> Result<(Arc<Shared>, Thread)> {
    // SAFETY: takes two numbers.
    let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if event < 0 {
        return Err(Error::system("eventfd"));
    }
    let shared = Arc::new(Shared {
        parts,
        // SAFETY: new, and no other code has it.
        event: unsafe { OwnedFd::from_raw_fd(event) },
        state: Mutex::default(),
        changed: Condvar::new(),
        recalls: AtomicU64::new(0),
    });
    let its = shared.clone();
    let thread = spawn_quiet("llcl-wait-fd", STACK, move || its.run())?;
    Ok((shared, thread))
}

impl Notifier {
    /// Arms the descriptor and returns its number. The events are those that end a wait for these
    /// words, and with `messages` also that a handler runs. `known`: the number of handlers that
    /// had run at the caller's last look.
    pub(super) fn arm(
        &self,
        parts: impl FnOnce() -> Parts,
        words: &[Watched<'_>],
        messages: bool,
        known: u64,
    ) -> Result<RawFd> {
        let mut notifier = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (shared, _) = match &mut *notifier {
            Some(started) => started,
            none => none.insert(start(parts())?),
        };
        let words = words.iter().map(|it| (it.word.as_ptr() as usize, it.at_least, it.changer));
        shared.arm(Armed { words: words.collect(), messages, known });
        Ok(shared.event.as_raw_fd())
    }

    /// Ends the thread and waits for it. False: at `limit` it had not ended.
    pub(super) fn stop(&self, limit: Instant) -> bool {
        let notifier = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        notifier.is_none_or(|(shared, thread)| {
            shared.recall(|state| state.over = true);
            thread.join_until(limit)
        })
    }
}

impl Shared {
    fn watch(&self) -> Watch<'_> {
        let Parts { routes, lane, dispatcher, poster, regions, background, spin } = &self.parts;
        let blocking = Blocking { lane, dispatcher, poster, spin: *spin };
        Watch { blocking, routes, regions, background }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and makes the thread stop using the words of an earlier arming.
    fn recall(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        // SeqCst: this comes before touched_anything() looks for sleeping threads, and a thread
        // that falls asleep reads the count once more.
        self.recalls.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_all();
        drop(state);
        self.parts.routes.waiters().touched_anything();
    }

    fn arm(&self, armed: Armed) {
        self.recall(|state| state.armed = None);
        let state = self.state();
        let mut state = self
            .changed
            .wait_while(state, |state| state.looking)
            .unwrap_or_else(PoisonError::into_inner);
        let mut count = 0u64;
        // Clears the event of an earlier arming.
        // SAFETY: the descriptor is open, and 8 bytes fit.
        unsafe { libc::read(self.event.as_raw_fd(), (&raw mut count).cast(), 8) };
        if !armed.words.is_empty() || armed.messages {
            state.armed = Some(armed);
            self.changed.notify_all();
        }
    }

    fn run(&self) {
        let _abort = AbortOnPanic;
        let mut state = self.state();
        loop {
            state = self
                .changed
                .wait_while(state, |state| state.armed.is_none() && !state.over)
                .unwrap_or_else(PoisonError::into_inner);
            let Some(armed) = state.armed.take().filter(|_| !state.over) else { return };
            state.looking = true;
            let recalls = self.recalls.load(Ordering::Relaxed);
            drop(state);
            let happened = self.look(&armed, || self.recalls.load(Ordering::SeqCst) != recalls);
            state = self.state();
            if happened {
                let one = 1u64;
                // SAFETY: the descriptor is open, and 8 bytes are read.
                unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
            }
            state.looking = false;
            self.changed.notify_all();
        }
    }

    /// Sleeps until one of the events has happened; false: `recalled` has ended the sleep.
    fn look(&self, armed: &Armed, recalled: impl Fn() -> bool) -> bool {
        let watch = self.watch();
        let dispatcher = watch.blocking.dispatcher;
        let polled = armed.messages && dispatcher.is_polled();
        let words = armed.words.iter().map(|(word, at_least, changer)| Watched {
            // SAFETY: aligned, and the program keeps it until this look is over.
            word: unsafe { AtomicU64::from_ptr(*word as *mut u64) },
            at_least: *at_least,
            changer: *changer,
        });
        let words = words.collect::<Vec<_>>();
        let done =
            || position(&words).is_some() || armed.messages && dispatcher.handled() != armed.known;
        let mut loss = Loss::default();
        loop {
            if recalled() {
                return false;
            }
            if done()
                || polled && dispatcher.has_message()
                || watch.lost(&mut loss, &words).is_some()
            {
                return true;
            }
            let enough = || done() || recalled() || watch.has_news_of_deaths(&loss);
            let sleep = |awaited: &[Awaited], limit: Option<Duration>| match polled {
                // The dispatcher counts the sleeper, so that a sender rings when it has stored a
                // message.
                true => watch.blocking.sleep_any(awaited, limit, enough),
                false => self.parts.routes.sleep(awaited, limit, enough),
            };
            watch.sleep(&words, loss.next_look(), sleep);
        }
    }
}
