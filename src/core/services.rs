//! The services of a context for the layers above. They hold references to the parts of the
//! context, so a layer may keep them. It must not use them after the context has ended.

use crate::bootstrap::Bootstrap;
use crate::core::background::Background;
use crate::core::blocking::{Blocking, patience};
use crate::core::context::Context;
use crate::core::poster::{Later, Poster};
use crate::core::progress_thread::{AbortOnPanic, STACK};
use crate::core::region::{Made, Regions, Wanted};
use crate::core::submit::check_completion;
use crate::engine::command::Command;
use crate::engine::completion::{Completion, must_not_be_in_callback, set_library_thread};
use crate::engine::control_messages::{self, ControlMessage, Ended, Words, Write};
use crate::engine::lane::Lane;
use crate::engine::messages::dispatch::Dispatcher;
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::address::{ANY, Address, Key};
use crate::transport::waiters::Awaited;
use crate::util::config::Config;
use crate::util::counters::Counters;
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use crate::util::thread::{Thread, spawn_quiet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// See the head of the file.
pub struct Services {
    /// The paths to the peers.
    pub routes: Arc<Routes>,
    /// The tasks of the progress thread.
    pub background: Arc<Background>,
    /// The configuration in force.
    pub config: Config,
    /// The counters of the context.
    pub counts: Arc<Counters>,
    regions: Arc<Regions>,
    bootstrap: Arc<Bootstrap>,
    lane: Arc<Lane>,
    dispatcher: Arc<Dispatcher>,
    poster: Arc<Poster>,
    /// See leave().
    leaving: AtomicBool,
}

/// One of this rank's own buffers.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Its first byte, here.
    pub pointer: *mut u8,
    /// Whether peers map it.
    pub mapped: bool,
}

impl Context {
    /// The services of this context.
    pub fn services(&self) -> Services {
        Services {
            routes: self.routes.clone(),
            background: self.background.clone(),
            config: self.config().clone(),
            counts: self.post.counts.clone(),
            regions: self.regions.clone(),
            bootstrap: self.bootstrap.clone(),
            lane: self.lane.clone(),
            dispatcher: self.dispatcher.clone(),
            poster: self.poster.clone(),
            leaving: AtomicBool::new(false),
        }
    }
}

impl Services {
    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.routes.own().peer
    }

    /// An error once finalize has begun.
    #[inline]
    pub fn must_be_open(&self) -> Result<()> {
        self.routes.gate().must_be_open()
    }

    /// Tells the threads of the layers above that the context ends: they must end, and wait for no
    /// other rank.
    pub fn leave(&self) {
        // Relaxed: it publishes nothing, and waiting threads read it again and again.
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// An error once leave() has been called. Threads that wait for other ranks call it.
    pub fn must_stay(&self) -> Result<()> {
        if self.leaving.load(Ordering::Relaxed) {
            fail!(ERR_CANCELED, "the context is being finalized");
        }
        Ok(())
    }

    /// Starts a thread of the library. It does not run polled handlers.
    pub fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<Thread> {
        spawn_quiet(name, STACK, move || {
            let _abort = AbortOnPanic;
            set_library_thread();
            run();
        })
    }

    /// An error inside a callback. Functions that wait call it.
    pub fn may_block(&self) -> Result<()> {
        must_not_be_in_callback()?;
        self.must_be_open()
    }

    /// Gathers `mine` of every rank of the world.
    pub fn exchange(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.bootstrap.exchange(mine, all)
    }

    /// A region of fresh zeroed memory that peers map. It stays until the context ends.
    pub fn allocate(&self, size: usize) -> Result<Made> {
        self.regions.make(Wanted::FRESH, size)
    }

    /// Looks `size` bytes of this rank's own memory up.
    pub fn own(&self, local: Address, size: u64, name: &str) -> Result<Own> {
        if Key(local.key) == ANY {
            return match self.routes.own().find_near(local, size) {
                Some(pointer) => Ok(Own { pointer, mapped: false }),
                None => fail!(ERR_RANGE, "{name} has {size} bytes, more than the address space"),
            };
        }
        let Some(length) = self.routes.own().length(Key(local.key)) else {
            fail!(ERR_KEY, "{name}.key {:#x} names no live region of this rank", local.key);
        };
        if let Err(error) = local.check(size, length) {
            return Err(Error::new(error.status, format!("{name}: {}", error.message())));
        }
        // This comes before pin(), since it takes a lock.
        let mapped = !self.regions.is_registered(Key(local.key));
        let _pinned = pin();
        match self.routes.own().find(local, size) {
            Some(pointer) => Ok(Own { pointer, mapped }),
            None => fail!(ERR_KEY, "{name}.key {:#x} names no live region of this rank", local.key),
        }
    }

    /// The address by which peers name a word of this process. None: peers do not map the word, or
    /// it has several addresses.
    pub fn shared_word(&self, word: usize) -> Option<Address> {
        let name = self.regions.name_of(word).ok()??;
        (!self.regions.is_registered(Key(name.key))).then_some(name)
    }

    /// An error for a completion that is not valid.
    pub fn check_completion(&self, completion: &Completion, name: &str) -> Result<()> {
        check_completion(completion, name)
    }

    /// How long a waiting thread stays awake.
    pub fn spin(&self) -> Duration {
        patience(self.config.spin_us, &self.routes)
    }

    /// Contacts all these ranks at the same time, and waits for all contacts.
    pub fn connect(&self, peers: impl Iterator<Item = u32> + Clone) -> Result<()> {
        self.blocking().connect(peers, || self.must_be_open())
    }

    fn blocking(&self) -> Blocking<'_> {
        let Services { lane, dispatcher, poster, .. } = self;
        Blocking { lane, dispatcher, poster, spin: self.spin() }
    }

    /// Helps with other progress for one round. True: there was work.
    pub fn help_others(&self) -> bool {
        self.blocking().help_others()
    }

    /// Sleeps until `enough`, or until an operation or a peer may have changed the word at `word`,
    /// which no completion changes. True: it may have changed.
    pub fn sleep(&self, word: Address, limit: Option<Duration>, enough: impl Fn() -> bool) -> bool {
        self.blocking().sleep(Awaited { name: Some(word), local: None }, limit, enough)
    }

    /// Like `sleep`, for a word of this process's own as well.
    pub fn sleep_on(
        &self,
        word: Address,
        own: &AtomicU64,
        limit: Duration,
        enough: impl Fn() -> bool,
    ) -> bool {
        let word = Awaited { name: Some(word), local: None };
        self.blocking().sleep_any(&[word, Awaited::private(own.as_ptr())], Some(limit), enough)
    }

    /// Accepts a control message; see engine::control_messages. RETRY_QUEUE_FULL: it was not
    /// accepted.
    pub fn send_control(&self, message: &ControlMessage, ends: &Arc<dyn Ended>) -> Result<()> {
        put_control(&self.lane, || control_messages::command(message, ends))
    }

    /// Sends a control message without bytes whose end nobody awaits. If it finds no room, it is
    /// parked.
    pub fn send_control_or_park(&self, peer: u32, name: u64, words: Words) {
        let unsent = Unsent { peer, name, words };
        if unsent.send(&self.lane).is_err() {
            self.poster.park_always(unsent);
        }
    }

    /// Accepts a control message behind the bytes of a write, as send_control() does. `write` finds
    /// the bytes; this thread is pinned meanwhile.
    ///
    /// # Safety
    /// As of control_messages::write(). Bytes in a region are valid while this thread is pinned.
    pub unsafe fn write_with_control(
        &self,
        message: &ControlMessage,
        write: impl Fn() -> Result<Write>,
        ends: &Arc<dyn Ended>,
    ) -> Result<()> {
        // SAFETY: as the caller promises.
        put_control(&self.lane, || unsafe { control_messages::write(message, write()?, ends) })
    }

    /// Fires a completion.
    ///
    /// # Safety
    /// As of Completion::fire().
    pub unsafe fn fire(&self, completion: &Completion, status: Status) {
        // SAFETY: as the caller promises.
        unsafe { completion.fire(status, self.routes.waiters()) };
    }
}

/// Puts the command of a control message, which `make` makes for each try.
fn put_control(lane: &Lane, make: impl Fn() -> Result<Command>) -> Result<()> {
    let put = || {
        // The pin keeps a region until the command is in the queue, where a flush finds it.
        let _pinned = pin();
        let command = make()?;
        // SAFETY: no other thread has the command, and it is put once. After an error only this
        // function has it.
        unsafe {
            let put = lane.put(&command, &[]);
            put.inspect_err(|_| control_messages::take_back(&command))
        }
    };
    let put = put().or_else(|error| match error.status {
        Status::RETRY_QUEUE_FULL if lane.make_room() => put(),
        _ => Err(error),
    });
    put.map(|asleep| lane.wake_executor(asleep))
}

/// See Services::send_control_or_park().
struct Unsent {
    peer: u32,
    name: u64,
    words: Words,
}

impl Unsent {
    /// RETRY_QUEUE_FULL: it was not accepted.
    fn send(&self, lane: &Lane) -> Result<()> {
        let Unsent { peer, name, words } = *self;
        let message = ControlMessage { peer, name, words, keep: false, bytes: &[] };
        let ends: Arc<dyn Ended> = Arc::new(Nobody);
        put_control(lane, || control_messages::command(&message, &ends))
    }
}

impl Later for Unsent {
    fn peer(&self) -> u32 {
        self.peer
    }

    fn post(&self, poster: &Poster) -> Result<()> {
        self.send(&poster.lane)
    }

    fn completions(&self) -> [Completion; 2] {
        [Completion::NOTHING; 2]
    }
}

/// Awaits no end.
pub(crate) struct Nobody;

impl Ended for Nobody {
    fn ended(&self, _: u32, _: usize, _: Status) {}
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests;
