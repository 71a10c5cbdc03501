//! The context: one rank's place in its world, with its memory, its lane and its progress thread.

use crate::bootstrap::environment::other_launcher;
use crate::bootstrap::{Bootstrap, Handed, World};
use crate::core::background::Background;
use crate::core::blocking::{Blocking, patience, poll_wire};
use crate::core::handler_thread::HandlerThread;
use crate::core::poster::Poster;
use crate::core::progress_thread::{Parts, ProgressThread};
use crate::core::region::{Regions, Wanted};
use crate::core::region_handle::{Handles, RegionHandle};
use crate::core::wait_fd::Notifier;
use crate::engine::completion::{in_callback, must_not_be_in_callback};
use crate::engine::lane::{Execution, Lane};
use crate::engine::messages::dispatch::{Dispatcher, HandlerMode};
use crate::engine::messages::sender::AmSender;
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::address::RANKS;
use crate::transport::imports::OwnTable;
use crate::transport::memory::message_sender::MessageSender;
use crate::transport::memory::segment::Segment;
use crate::transport::port::{Port, Reach};
use crate::transport::waiters::Waiters;
use crate::util::config::Config;
use crate::util::cores::Cores;
use crate::util::counters::Counters;
use crate::util::fork::ZeroInChild;
use crate::util::pin;
use crate::util::reserve;
use crate::util::status::{Error, Result};
use crate::util::sync::AtomicPtr;
use once_cell::race::OnceBox;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// See the head of the file. Any thread may use every part of it.
pub struct Context {
    /// The data of the short paths.
    pub(super) quick: Quick,
    pub(super) routes: Arc<Routes>,
    pub(super) lane: Arc<Lane>,
    pub(super) post: Arc<AmSender>,
    pub(super) poster: Arc<Poster>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) handler_thread: HandlerThread,
    pub(super) regions: Arc<Regions>,
    pub(super) bootstrap: Arc<Bootstrap>,
    pub(super) progress: ProgressThread,
    pub(super) background: Arc<Background>,
    pub(super) handles: Handles,
    pub(super) notifier: Notifier,
    config: Config,
    /// See [`Context::set_final_address`].
    quick_in_child: OnceBox<ZeroInChild>,
}

/// How long build() waits for the end of the progress thread if a later step fails.
const STARTED: Duration = Duration::from_secs(1);

/// The data of the short paths of reads, writes and messages, in one place, so that a short path
/// follows no chain of pointers.
pub(super) struct Quick {
    /// The number of peers that the caller may reach itself: 0 in offload mode and during finalize,
    /// else all.
    pub(super) peers: AtomicU32,
    ports: *const OnceBox<Port>,
    pub(super) own: OwnTable,
    waiters: *const Waiters,
    short_senders: *const AtomicPtr<MessageSender<'static>>,
    pub(super) counts: *const Counters,
}

// SAFETY: the pointers lead into the routes, and into the control area that they keep; the context
// keeps them, and any thread may use both.
unsafe impl Send for Quick {}
// SAFETY: as above.
unsafe impl Sync for Quick {}

impl Quick {
    /// Whether the caller may reach a peer itself.
    #[inline(always)]
    pub(super) fn has(&self, peer: u32) -> bool {
        peer < self.peers.load(Ordering::Relaxed)
    }

    /// The port to a peer whose mapped memory the caller may access itself. Peer and flags are one
    /// number, with the flags in the upper half; a flag makes it larger than every rank.
    #[inline(always)]
    pub(super) fn port(&self, peer: u64) -> Option<&Port> {
        if peer >= u64::from(self.peers.load(Ordering::Relaxed)) {
            return None;
        }
        // SAFETY: there are at least `peers` ports, and the context keeps the routes.
        unsafe { &*self.ports.add(peer as usize) }.get()
    }

    /// Like port(), but None for a peer behind a wire, none of whose memory is mapped.
    #[inline(always)]
    pub(super) fn near_port(&self, peer: u32) -> Option<&Port> {
        self.port(peer.into()).filter(|port| port.reach != Reach::Wire)
    }

    /// The sender for short messages to a peer, if they may take the short path.
    #[inline(always)]
    pub(super) fn short_sender(&self, peer: u32) -> Option<&MessageSender<'static>> {
        if !self.has(peer) {
            return None;
        }
        // SAFETY: there are at least `peers` of them, and the context keeps the routes. Acquire:
        // pairs with the Release of the thread that has stored the sender.
        unsafe { (*self.short_senders.add(peer as usize)).load(Ordering::Acquire).as_ref() }
    }
}

/// The end of a time that begins now; None: never.
fn deadline_of(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

fn handler_mode(config: &Config) -> HandlerMode {
    match config.am_handlers {
        0 => HandlerMode::Serial,
        1 => HandlerMode::Parallel,
        _ => HandlerMode::Polled,
    }
}

/// The place of a context.
pub enum Place<'a> {
    /// A rank of a world of this process.
    World(&'a World, u32),
    /// A place among ranks of another launcher, which the program describes.
    Handed(Handed<'a>),
    /// The place that the launcher has given to this process. Without a launcher: a world of one
    /// rank.
    Environment,
}

impl Context {
    /// Makes the context of a place. It is collective only with Place::Handed; otherwise a peer is
    /// contacted at its first use. `config`: an error if the caller refuses this rank. Ranks that
    /// wait for this one learn it.
    pub fn create(config: Result<Config>, place: Place<'_>) -> Result<Context> {
        let config = config.and_then(|config| reserve::must_be_left().map(|()| config));
        // This comes before the process has a second thread: it then costs nothing, and later some
        // 10 ms. If the kernel refuses, sleeping threads take naps.
        let _ = pin::joins_global_fence();
        let (config, bootstrap) = match place {
            Place::World(world, rank) => (config?, Bootstrap::from_world(world, rank)?),
            Place::Handed(mut handed) => return Context::create_among(config, &mut handed),
            Place::Environment => match other_launcher().filter(|_| !Config::is_alone()) {
                Some(launcher) => return Context::create_launched(config, &launcher),
                None => (config?, Bootstrap::from_environment()?),
            },
        };
        let bootstrap = Arc::new(bootstrap);
        let created = Context::build(config, &bootstrap);
        if created.is_err() {
            // No rank has used this one yet, so for the others it leaves and does not die.
            bootstrap.leave();
        }
        created
    }

    pub(super) fn build(config: Config, bootstrap: &Arc<Bootstrap>) -> Result<Context> {
        let cores = Cores::of_progress_threads()?;
        if bootstrap.size() > RANKS {
            fail!(ERR_RANGE, "the world has {} ranks, expected at most {RANKS}", bootstrap.size());
        }
        let segment = Arc::new(Segment::create(&config, bootstrap.size())?);
        let kernel_copies = config.cma == 1;
        let routes = Routes::new(segment.clone(), bootstrap.clone(), kernel_copies)?;
        let execution = match config.execution {
            0 => Execution::Auto,
            1 => Execution::Offload,
            _ => Execution::Direct,
        };
        let (queue, in_flight) = (config.queue_entries as usize, config.in_flight as usize);
        let requests = config.am_requests as usize;
        let counts = Arc::new(Counters::default());
        let post =
            Arc::new(AmSender::new(routes.clone(), counts, requests, config.am_retained as usize));
        let offload = execution == Execution::Offload;
        let dispatcher = Arc::new(Dispatcher::new(post.clone(), handler_mode(&config), offload));
        let (polls_handlers, polls_wire) = (dispatcher.is_polled(), routes.fabric().opener_polls());
        if polls_handlers || polls_wire {
            let polled = Arc::downgrade(&dispatcher);
            let wire = Arc::downgrade(&routes);
            bootstrap.while_waiting(Box::new(move || {
                if polls_handlers && let Some(dispatcher) = polled.upgrade() {
                    dispatcher.help(&|| false);
                }
                if polls_wire && let Some(routes) = wire.upgrade() {
                    poll_wire(&routes);
                }
            }));
        }
        let lane = Lane::new(routes.clone(), post.clone(), execution, queue, in_flight)?;
        let lane = Arc::new(lane);
        let spin = match execution {
            Execution::Offload => config.progress_spin_us,
            _ => config.spin_us.min(20),
        };
        let spin = Duration::from_micros(spin);
        let background = Arc::new(Background::new(routes.clone()));
        let poster = Poster::new(
            routes.clone(),
            lane.clone(),
            post.clone(),
            background.clone(),
            config.parked,
        );
        let alert = Duration::from_micros(config.progress_spin_us);
        let parts = Parts {
            lane: lane.clone(),
            dispatcher: dispatcher.clone(),
            background: background.clone(),
        };
        let progress = ProgressThread::start(routes.clone(), parts, (spin, alert), cores)?;
        let handler_thread = HandlerThread::new(routes.clone(), dispatcher.clone(), spin, cores);
        if routes.fabric().is_networked() {
            // Ranks behind a wire do not know which handlers exist here, and learn by the
            // completion of a message that one is missing. So a thread must handle messages even
            // before a handler is registered.
            dispatcher.expect_messages();
            if let Err(error) = handler_thread.start() {
                progress.stop(Instant::now() + STARTED);
                return Err(error);
            }
        }
        let weak = Arc::downgrade(&routes);
        bootstrap.on_death(Box::new(move |peer| {
            if let Some(routes) = weak.upgrade() {
                routes.mark_dead(peer);
            }
        }));
        let places = routes.places();
        let direct = if execution == Execution::Offload { 0 } else { places.len() };
        let quick = Quick {
            peers: AtomicU32::new(direct as u32),
            ports: places.as_ptr(),
            // SAFETY: the context keeps the routes, and they keep the port where it is.
            own: unsafe { routes.own().own_table() },
            waiters: routes.waiters(),
            short_senders: routes.fabric().short_senders().as_ptr(),
            counts: Arc::as_ptr(&post.counts),
        };
        let regions = Arc::new(Regions::new(
            segment,
            routes.clone(),
            lane.clone(),
            dispatcher.clone(),
            poster.clone(),
            &config,
        ));
        let handles = Handles::new(regions.clone());
        Ok(Context {
            quick,
            routes,
            lane,
            post,
            poster,
            dispatcher,
            handler_thread,
            regions,
            bootstrap: bootstrap.clone(),
            progress,
            background,
            handles,
            notifier: Notifier::default(),
            config,
            quick_in_child: OnceBox::new(),
        })
    }

    /// Called when the context has its final address. From now on the number of peers becomes 0 in
    /// a forked child, so that no short path works there. The gate refuses the long path there.
    pub fn set_final_address(&self) -> Result<()> {
        let peers = &raw const self.quick.peers;
        // SAFETY: the field stays as long as the context, and so does the answer.
        let zero = || unsafe { ZeroInChild::new(peers) }.map(Box::new);
        self.quick_in_child.get_or_try_init(zero).map(drop)
    }

    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.routes.own().peer
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.routes.size()
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The paths to the peers.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Makes a region.
    ///
    /// # Safety
    /// Memory::Own names `size` bytes that stay valid until the region was freed.
    pub unsafe fn make_region(&self, wanted: Wanted, size: usize) -> Result<*mut RegionHandle> {
        self.must_be_open()?;
        reserve::must_be_left()?;
        self.handles.make(wanted, size)
    }

    /// Bytes that may still be allocated, as far as the kernel says.
    pub fn memory_left(&self) -> u64 {
        self.regions.memory_left()
    }

    /// The parts that a waiting thread uses.
    pub(super) fn blocking(&self) -> Blocking<'_> {
        let spin = patience(self.config.spin_us, &self.routes);
        Blocking { lane: &self.lane, dispatcher: &self.dispatcher, poster: &self.poster, spin }
    }

    /// The sleeping threads of this rank. Completions wake them.
    #[inline(always)]
    pub fn waiters(&self) -> &Waiters {
        // SAFETY: in the control area, which the routes keep, and the context them.
        unsafe { &*self.quick.waiters }
    }

    /// Contacts peers, all at the same time, and waits until each contact has succeeded or failed.
    /// None: all ranks.
    pub fn connect(&self, peers: Option<&[u32]>) -> Result<()> {
        self.may_block()?;
        if let Some(peer) = peers.unwrap_or_default().iter().find(|peer| **peer >= self.size()) {
            fail!(ERR_INVALID, "peers holds {peer}, expected ranks below {}", self.size());
        }
        let open = || self.must_be_open();
        let dead = |peer: &u32| *peer != self.rank() && self.routes.is_dead(*peer);
        let dead = match peers {
            Some(peers) => {
                self.blocking().connect(peers.iter().copied(), open)?;
                peers.iter().copied().find(dead)
            }
            None => {
                self.blocking().connect(0..self.size(), open)?;
                (0..self.size()).find(dead)
            }
        };
        // A peer may have died since an earlier contact.
        dead.map_or(Ok(()), |peer| fail!(ERR_PEER_DEAD, "rank {peer} has died or has left"))
    }

    /// The port to a peer. Contacts the peer first, if necessary; inside a callback, where waiting
    /// is not possible, it then returns RETRY_CONNECTING.
    pub fn port(&self, peer: u32) -> Result<&Port> {
        self.must_be_open()?;
        match in_callback() {
            true => self.routes.port(peer),
            false => self.blocking().port(peer, || self.must_be_open()),
        }
    }

    /// Helps with progress for one round.
    pub fn progress_once(&self) -> Result<()> {
        self.may_block()?;
        if !self.blocking().help_others() && self.routes.fabric().has_silent_wire() {
            // Programs call this in a loop, and the sender of the next frame may need the core.
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Gathers `mine` of every rank, in the order of ranks.
    pub fn exchange(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.exchange_within(mine, all, None)
    }

    /// Like `exchange`, but not for longer than `timeout`; None: for ever.
    pub fn exchange_within(
        &self,
        mine: &[u8],
        all: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.may_block()?;
        self.bootstrap.exchange_by(mine, all, deadline_of(timeout))
    }

    /// Takes part, with the error `why`, in an exchange of `size` bytes that this rank cannot do.
    pub fn exchange_refused(&self, size: usize, why: Error, timeout: Option<Duration>) -> Error {
        let refused = |()| self.bootstrap.exchange_refused(size, why, deadline_of(timeout));
        self.may_block().map_or_else(|error| error, refused)
    }

    /// Ends all processes of the job.
    pub fn abort(&self, code: i32, grace_ms: u32) {
        self.bootstrap.abort(code, grace_ms);
    }

    /// The bootstrap of this context.
    pub(super) fn bootstrap(&self) -> &Arc<Bootstrap> {
        &self.bootstrap
    }

    /// An error once finalize has begun.
    pub(super) fn must_be_open(&self) -> Result<()> {
        self.routes.gate().must_be_open()
    }

    /// Like may_block(), for functions that have a try form, which the error then names.
    pub(super) fn may_block_to_post(&self) -> Result<()> {
        self.may_block().map_err(|error| match in_callback() {
            true => Error::new(error.status, format!("{error}; use its try form")),
            false => error,
        })
    }

    /// An error inside a callback. Functions that wait call it.
    pub(super) fn may_block(&self) -> Result<()> {
        must_not_be_in_callback()?;
        self.must_be_open()
    }
}
