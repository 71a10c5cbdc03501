//! Peers behind a wire: messages travel over it, and so do reads and writes where the wire reaches
//! the memory of peers; else a peer's memory is touched by its owner only.

use super::Fabric;
use crate::bootstrap::{Bootstrap, Card};
use crate::fail;
use crate::transport::address::Address;
use crate::transport::carrier::{Carrier, Peer};
use crate::transport::frame::{Class, Frame};
use crate::transport::memory::control::Control;
use crate::transport::memory::message_sender::MessageSender;
use crate::transport::memory::segment::Segment;
use crate::transport::port::{Port, Reach};
use crate::transport::remote::{Posting, Stopped};
use crate::transport::requests::{frame_of, frame_of_reply};
use crate::transport::wire::Wire;
use crate::transport::wire::endpoint::{Endpoint, News, Unreachable};
use crate::transport::wire::module::{self, Module};
#[cfg(feature = "simulated")]
use crate::transport::wire::simulated::{Nature, Simulated};
use crate::transport::{Access, Message, Pair, Posted, Reply, Transport};
use crate::util::counters::Counters;
use crate::util::shared_object::has_symbol;
use crate::util::status::{Error, Result, Status};
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the node's part of a card.
const NODE: usize = 16;

/// The variable that names the wire.
const TRANSPORT: &str = "LLCL_TRANSPORT";

/// Of `Caps::atomics`.
const COMPARE_SWAP: u64 = 1 << 4;

/// The wire that is used where the environment asks for none and the ranks run on several machines.
const DEFAULT: &str = "mpi";

#[cfg(all(test, feature = "simulated"))]
thread_local! {
    static SEED: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// Contexts that this thread makes reach their peers by a simulated wire with this seed.
#[cfg(all(test, feature = "simulated"))]
pub fn simulate(seed: Option<u64>) {
    SEED.set(seed);
}

/// The wire that the environment asks for.
fn wanted() -> Option<String> {
    #[cfg(all(test, feature = "simulated"))]
    if SEED.get().is_some() {
        return Some("simulated".into());
    }
    let name = std::env::var_os(TRANSPORT).filter(|name| !name.is_empty())?;
    Some(name.to_string_lossy().into_owned())
}

/// Whether the environment asks for a wire.
pub(super) fn is_forced() -> bool {
    wanted().is_some()
}

/// A wire's name, and why it is wanted.
fn needed(several: bool) -> Option<(String, String)> {
    let several = several.then(|| {
        let why = format!("the ranks run on several machines, and {TRANSPORT} names no other wire");
        (DEFAULT.to_owned(), why)
    });
    wanted().map(|name| (name.clone(), format!("{TRANSPORT} is {name}"))).or(several)
}

/// The module for MPI: of the one that is in the process, else of the one whose launcher's
/// variables are there.
fn mpi_module() -> Result<&'static str> {
    /// Module, a symbol of the MPI's, a variable of its launcher's.
    const MPIS: [(&str, &CStr, &str); 2] = [
        ("mpi-openmpi", c"ompi_mpi_comm_world", "OMPI_COMM_WORLD_SIZE"),
        ("mpi-mpich", c"MPIR_Dup_fn", "PMI_SIZE"),
    ];
    let here = MPIS.iter().find(|(_, symbol, _)| has_symbol(symbol));
    let started = || MPIS.iter().find(|(_, _, variable)| std::env::var_os(variable).is_some());
    match here.or_else(started) {
        Some((module, _, _)) => Ok(module),
        None => fail!(
            ERR_UNSUPPORTED,
            "neither Open MPI nor MPICH is in this process, nor has mpirun or mpiexec started it"
        ),
    }
}

fn module(name: &str) -> Result<Module> {
    Module::find(if name == "mpi" { mpi_module()? } else { name })
}

/// Opens a wire by its name. Collective.
fn open(name: &str, (me, size): (u32, u32), foreign: i64) -> Result<Box<dyn Wire>> {
    #[cfg(all(test, feature = "simulated"))]
    if let Some(seed) = SEED.get() {
        return Ok(Box::new(Simulated::new(me, Nature::of(seed))?));
    }
    #[cfg(feature = "simulated")]
    if name == "simulated" {
        return Ok(Box::new(Simulated::new(me, Nature::from_environment()?)?));
    }
    Ok(Box::new(module(name)?.open(me, size, foreign)?))
}

/// Says why a wire is wanted that cannot be used.
fn because(why: &str) -> impl Fn(Error) -> Error {
    move |error| Error::new(error.status, format!("{why}, but {}", error.message()))
}

/// What is in the folders of modules, by file: what it is, or why it is refused; and whether it is
/// used.
pub fn modules() -> Vec<(String, String)> {
    let used = wanted().map(|name| match &*name {
        "mpi" => mpi_module().map_or(name, str::to_owned),
        _ => name,
    });
    let paths = module::folders().into_iter().flat_map(module::files);
    let tell = |path: PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let told = Module::load(&path).and_then(|module| {
            let [_, version, built_for] = module.names();
            module.probe()?;
            let use_ = match used.as_ref().is_some_and(|name| module::file_name(name) == file) {
                true => format!("used: {TRANSPORT} asks for it"),
                false => format!("not used: {TRANSPORT} does not ask for it"),
            };
            Ok(format!("{version}, built for {built_for}; {use_}"))
        });
        (path.display().to_string(), told.unwrap_or_else(|error| format!("not used: {error}")))
    };
    paths.map(tell).collect()
}

struct Started {
    module: Module,
    rank: u32,
    size: u32,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.module.end();
    }
}

/// Ranks that another launcher has started. What its network has begun for them ends with the last
/// of these.
#[derive(Clone)]
pub struct Launch(Arc<Started>);

impl Launch {
    /// This rank's number, and how many there are.
    pub fn place(&self) -> (u32, u32) {
        (self.0.rank, self.0.size)
    }

    /// See `bootstrap::Handed`.
    pub fn allgather(&self, mine: &[u8], all: &mut [u8]) -> i32 {
        self.0.module.allgather(mine, all)
    }

    /// Ends the job.
    pub fn abort(&self, code: i32) {
        self.0.module.abort(code);
    }
}

/// This rank's end, if the environment asks for it, and its card behind the node's.
pub(super) fn join(
    own: &Arc<Segment>,
    bootstrap: &Arc<Bootstrap>,
    mut card: Vec<u8>,
) -> Result<(Option<Endpoint>, Vec<u8>)> {
    let several = bootstrap.has_several_machines();
    let Some((name, why)) = needed(several) else { return Ok((None, card)) };
    let (me, size) = (bootstrap.rank(), bootstrap.size());
    let medium = own.control().message_sizes().medium;
    // SAFETY: the closure keeps the segment, and the sender is used in it only.
    let control: &'static Control = unsafe { &*std::ptr::from_ref(own.control()) };
    let sender = MessageSender::new(control.own_message_area(), (me, me), 0, control.bell());
    let (sender, own, counts) = (Mutex::new(sender), own.clone(), Counters::default());
    let rung = own.clone();
    let deliver = move |source: u32, class: Class, frame: &Frame| {
        let _kept = &own;
        let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.set_source(source);
        let host = |share| match share {
            0 => Ok(sender.head()),
            _ => Err(Error::bare(Status::ERR_PEER_DEAD)),
        };
        sender.put(class, frame, host, &counts)
    };
    let (deliver, hub) = (Box::new(deliver), Arc::downgrade(bootstrap));
    let told = hub.clone();
    let relayed = Box::new(move |from: u32, packet: Vec<u8>| {
        if let Some(bootstrap) = hub.upgrade() {
            bootstrap.relayed(from, packet);
        }
    });
    let failed = Box::new(move || {
        if let Some(bootstrap) = told.upgrade() {
            bootstrap.wire_failed();
        }
    });
    let opened = open(&name, (me, size), bootstrap.foreign()).map_err(because(&why))?;
    let wire =
        Endpoint::join((me, size), opened.into(), medium, deliver, News { relayed, failed })?;
    bootstrap.carry_by(wire.relay());
    wire.set_ring(Box::new(move || rung.control().bell().ring()));
    card.extend(wire.card());
    Ok((Some(wire), card))
}

impl Fabric {
    /// Whether this rank can join others, and others on `several` machines, as far as can be said
    /// before: its wire is there.
    pub fn can_join(several: bool) -> Result<()> {
        match needed(several) {
            #[cfg(feature = "simulated")]
            Some((name, _)) if name == "simulated" => Ok(()),
            Some((name, why)) => module(&name).and_then(Module::probe).map_err(because(&why)),
            None => Ok(()),
        }
    }

    /// The ranks of another launcher, of which the module of a wire knows. Collective over them.
    pub fn launch() -> Result<Launch> {
        let (name, _) = needed(true).unwrap_or_default();
        let module = module(&name)?;
        let (rank, size) = module.launch()?;
        Ok(Launch(Arc::new(Started { module, rank, size })))
    }

    /// Why the wire has failed, if it has.
    pub fn failure(&self) -> Option<Error> {
        self.wire.as_ref().and_then(Endpoint::failure)
    }

    pub(super) fn wire_to(&self, peer: u32) -> Option<&Endpoint> {
        self.wire.as_ref().filter(|_| self.node.is_far(peer))
    }

    /// For a thread that waits: takes in what has come by a wire that wakes nobody. False: nothing
    /// has.
    #[inline]
    pub fn help_wire(&self) -> bool {
        self.wire.as_ref().is_some_and(Endpoint::help)
    }

    /// Whether threads that wait should call help_wire().
    #[inline]
    pub fn has_silent_wire(&self) -> bool {
        self.wire.as_ref().is_some_and(Endpoint::wakes_nobody)
    }

    /// Shows the wire its part of a card, if it leads to the peer; answers the node's.
    pub(super) fn connect_wire(&self, peer: u32, mut card: Card, reach: Reach) -> Result<Card> {
        if let Some(wire) = &self.wire {
            let rest = card.blob.split_off(NODE.min(card.blob.len()));
            // The words of devices are changed by the adapter of their owner, for its neighbours
            // too.
            if reach == Reach::Wire || self.device_atomics() != 0 {
                wire.connect(peer, &rest)?;
            }
        }
        Ok(card)
    }

    /// Places for frames that were granted to ranks that have died, and that nobody else may use
    /// yet.
    pub fn kept_aside(&self) -> u64 {
        self.wire.as_ref().map_or(0, |wire| wire.kept_aside() as u64)
    }

    /// Who is told of peers that the wire does not reach any more.
    pub fn on_unreachable(&self, tell: Unreachable) {
        if let Some(wire) = &self.wire {
            wire.on_unreachable(tell);
        }
    }

    /// The wire, where it reads and writes the memory of peers.
    pub(super) fn remote(&self) -> Option<&Endpoint> {
        self.wire.as_ref().filter(|wire| wire.memory().caps().remote)
    }

    /// The atomics of regions with LLCL_REGION_DEVICE_ATOMICS, a bit for each that the wire has; 0:
    /// there are no such regions. With a compare-and-swap the rest is a loop, see
    /// `engine::by_device`.
    pub fn device_atomics(&self) -> u64 {
        let atomics = self.remote().map_or(0, |wire| wire.memory().caps().atomics);
        if atomics & COMPARE_SWAP != 0 { atomics } else { 0 }
    }

    /// The way to one's own adapter.
    pub(super) fn connect_own(&self) -> Result<()> {
        match self.remote().filter(|_| self.device_atomics() != 0) {
            Some(wire) => wire.connect(self.me, wire.card()),
            None => Ok(()),
        }
    }

    /// Whether peers may write to this rank's memory without anything here being told.
    pub fn has_silent_writes(&self) -> bool {
        self.remote().is_some()
    }

    /// Most bytes of an operation that is posted.
    pub fn remote_most(&self) -> u64 {
        match self.remote().map_or(0, |wire| wire.memory().caps().message_most) {
            0 => u64::MAX,
            most => most,
        }
    }

    /// Lets peers behind the wire reach a region's memory by the wire, if it can.
    pub fn register(&self, key: u64, address: *mut u8, size: usize) -> Result<()> {
        self.wire.as_ref().map_or(Ok(()), |wire| wire.memory().register(key, address, size))
    }

    /// Ends register(): nothing lands there over the wire any more.
    pub fn deregister(&self, key: u64) -> Result<()> {
        self.wire.as_ref().map_or(Ok(()), |wire| wire.memory().deregister(key))
    }

    /// Posts operations for one peer at once; see Endpoint::post().
    ///
    /// # Safety
    /// The bytes of what was taken are valid until its end, those of reads are nobody else's.
    pub unsafe fn post_remote(&self, peer: u32, wanted: &[Posting]) -> (usize, Stopped) {
        let Some(wire) = self.remote() else { return (0, Stopped::NeedsOwner) };
        // SAFETY: passed on to the caller.
        unsafe { wire.post(peer, wanted) }
    }

    /// See Endpoint::posts().
    #[cfg(all(test, feature = "simulated"))]
    pub fn posts(&self) -> usize {
        self.wire.as_ref().map_or(0, Endpoint::posts)
    }

    /// Keeps bytes that were posted, and whose end nobody waits for, as long as the wire.
    pub fn keep(&self, bytes: Box<[u8]>) {
        if let Some(wire) = &self.wire {
            wire.keep(bytes);
        }
    }

    fn put_by_wire(&self, port: &Port, class: Class, frame: &Frame) -> bool {
        self.wire_to(port.peer).is_some_and(|wire| wire.put(port.peer, class, frame, 0))
    }
}

impl Carrier for Endpoint {
    fn has_credit(&self, to: &Peer, class: Class) -> bool {
        Endpoint::has_credit(self, to.peer(), class)
    }

    fn put(&self, to: &Peer, class: Class, frame: &Frame, counts: &Counters) -> bool {
        let taken = Endpoint::put(self, to.peer(), class, frame, to.medium());
        match class {
            Class::Requests if taken => counts.message_sent(0),
            Class::Responses | Class::Replies if taken => counts.replies.up(),
            _ => {}
        }
        taken
    }
}

/// To a peer behind the wire.
impl Transport for Fabric {
    fn locate(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        match self.locate_far(port, address, size) {
            // The holder of the lane's role sends the question, and this thread may be the holder:
            // a callback that tries until it is accepted would wait for itself. The owner checks
            // each access anyway.
            Err(error) if error.status == Status::RETRY_CONNECTING && (self.in_callback)() => {
                Ok(Access::Message(0))
            }
            access => access,
        }
    }

    fn registered_access(&self, _: &Port) -> Access {
        if self.remote().is_some() { Access::Posted(0) } else { Access::Message(0) }
    }

    fn kernel_refusals(&self, _: &Port) -> (i32, i32) {
        (0, 0)
    }

    unsafe fn kernel_read(&self, _: &Port, _: &[Pair]) -> Result<()> {
        Err(Error::bare(Status::ERR_UNSUPPORTED))
    }

    unsafe fn kernel_write(&self, _: &Port, _: &[Pair]) -> Result<()> {
        Err(Error::bare(Status::ERR_UNSUPPORTED))
    }

    fn post(&self, port: &Port, message: &Message, bytes: &[u8]) -> Posted {
        match self.put_by_wire(port, Class::Lib, &frame_of(message, bytes)) {
            true => Posted::Taken,
            false => Posted::Full,
        }
    }

    fn reply(&self, port: &Port, reply: Reply, bytes: &[u8]) {
        self.put_by_wire(port, Class::Answers, &frame_of_reply(&reply, bytes));
    }

    fn mark_dead(&self, peer: u32) -> bool {
        Fabric::mark_dead(self, peer)
    }
}
