//! The fabric's part for peers behind a wire: which wire a job uses, its endpoint, and the
//! [`Transport`] over it. Messages travel over the wire. If the wire reads and writes the memory of
//! peers, operations on that memory are posted to it; else they are requests to the owner.

#[cfg(all(test, feature = "simulated"))]
pub mod made;

use super::Fabric;
use crate::bootstrap::{Bootstrap, Card};
use crate::fail;
use crate::transport::address::Address;
use crate::transport::carrier::{Bytes, Carrier, Peer, Sleeper};
use crate::transport::frame::{Class, Frame};
use crate::transport::memory::control::Control;
use crate::transport::memory::message_sender::MessageSender;
use crate::transport::memory::segment::Segment;
use crate::transport::port::{Port, Reach};
use crate::transport::remote::{Posting, Stopped};
use crate::transport::requests::{frame_of, frame_of_reply};
use crate::transport::wire::Wire;
use crate::transport::wire::endpoint::{Endpoint, News, Signalled, Unreachable};
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
use std::time::Duration;

/// Size of the part of a card that `node::card` makes; the wire's part follows it.
const NODE: usize = 16;

/// The variable that names the wire.
pub const TRANSPORT: &str = "LLCL_TRANSPORT";

/// The bit of `LLCL_OP_COMPARE_SWAP` in `Caps::atomics`.
const COMPARE_SWAP: u64 = 1 << 4;

/// The wire of a job on several machines if the environment names none.
const DEFAULT: &str = "mpi";

/// The wire that the environment names.
fn wanted() -> Option<String> {
    #[cfg(all(test, feature = "simulated"))]
    if made::made().is_some() {
        return Some("simulated".into());
    }
    let name = std::env::var_os(TRANSPORT).filter(|name| !name.is_empty())?;
    Some(name.to_string_lossy().into_owned())
}

/// Whether the environment names a wire.
pub(super) fn is_forced() -> bool {
    wanted().is_some()
}

/// The name of the wire that the job needs, and why it needs it; None: it needs no wire. `several`:
/// the ranks run on several machines.
fn needed(several: bool) -> Option<(String, String)> {
    let several = several.then(|| {
        let why = format!("the ranks run on several machines, and {TRANSPORT} names no other wire");
        (DEFAULT.to_owned(), why)
    });
    wanted().map(|name| (name.clone(), format!("{TRANSPORT} is {name}"))).or(several)
}

/// The module for the MPI that this process has loaded, or else for the MPI whose launcher has
/// started it.
fn mpi_module() -> Result<&'static str> {
    /// Module, a symbol of this MPI's library, an environment variable of its launcher.
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
            "this process has loaded neither Open MPI nor MPICH, and neither mpirun nor mpiexec \
             has started it"
        ),
    }
}

fn module(name: &str) -> Result<Module> {
    Module::find(if name == "mpi" { mpi_module()? } else { name })
}

/// Opens a wire by its name. Collective over all ranks.
fn open(name: &str, (me, size): (u32, u32), foreign: i64) -> Result<Box<dyn Wire>> {
    #[cfg(all(test, feature = "simulated"))]
    if let Some(make) = made::made() {
        return make(me, size);
    }
    #[cfg(feature = "simulated")]
    if name == "simulated" {
        return Ok(Box::new(Simulated::new(me, Nature::from_environment()?)?));
    }
    Ok(Box::new(module(name)?.open(me, size, foreign)?))
}

/// Puts in front of an error why the job needs the wire that has failed.
fn because(why: &str) -> impl Fn(Error) -> Error {
    move |error| Error::new(error.status, format!("{why}, but {}", error.message()))
}

/// For `llcl-info`: each file in the folders of modules. The lines have the module's version and
/// whether it is used, and what it says of its memory; or why this library refuses it. The last
/// entry says why the wire that is asked for has no module, if so.
pub fn modules() -> Vec<(String, Vec<String>)> {
    let used = wanted().map(|name| match &*name {
        "mpi" => mpi_module().map_or(name, str::to_owned),
        _ => name,
    });
    let paths = module::folders().into_iter().flat_map(module::files);
    let describe = |path: PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let described = Module::load(&path).and_then(|module| {
            let [_, version, built_for] = module.names();
            module.probe()?;
            let use_ = match used.as_ref().is_some_and(|name| module::file_name(name) == file) {
                true => format!("used: {TRANSPORT} asks for it"),
                false => format!("not used: {TRANSPORT} does not ask for it"),
            };
            let line = format!("{version}, built for {built_for}; {use_}");
            Ok([Some(line), module.describe()].into_iter().flatten().collect())
        });
        let lines = described.unwrap_or_else(|error| vec![format!("not used: {error}")]);
        (path.display().to_string(), lines)
    };
    // The simulated wire is no module.
    let asked = wanted().filter(|name| name != "simulated");
    let missing = asked.and_then(|name| Some((name.clone(), module(&name).err()?)));
    let missing =
        missing.map(|(name, error)| (format!("{TRANSPORT} is {name}"), vec![error.to_string()]));
    paths.map(describe).chain(missing).collect()
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

/// Ranks that the launcher of a network has started (mpirun). Dropping the last clone ends the
/// network's library.
#[derive(Clone)]
pub struct Launch(Arc<Started>);

impl Launch {
    /// This rank's number, and the number of ranks.
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

/// Opens this rank's endpoint, if the job needs a wire, and appends its card to `card`, which has
/// the node's part.
pub(super) fn join(
    own: &Arc<Segment>,
    bootstrap: &Arc<Bootstrap>,
    mut card: Vec<u8>,
) -> Result<(Option<Endpoint>, Vec<u8>)> {
    let several = bootstrap.has_several_machines();
    let Some((name, why)) = needed(several) else { return Ok((None, card)) };
    let (me, size) = (bootstrap.rank(), bootstrap.size());
    let medium = own.control().message_sizes().medium;
    // SAFETY: `deliver` keeps the segment and is the only user of the sender.
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
    let owner = hub.clone();
    let relayed = Box::new(move |from: u32, packet: Vec<u8>| {
        if let Some(bootstrap) = hub.upgrade() {
            bootstrap.relayed(from, packet);
        }
    });
    let failed = Box::new(move || {
        if let Some(bootstrap) = owner.upgrade() {
            bootstrap.wire_failed();
        }
    });
    let opened = open(&name, (me, size), bootstrap.foreign()).map_err(because(&why))?;
    let wire =
        Endpoint::join((me, size), opened.into(), medium, deliver, News { relayed, failed })?;
    bootstrap.carry_by(wire.relay(&bootstrap.other_hubs()));
    wire.set_ring(Box::new(move |sleeper| match sleeper {
        Sleeper::Progress => rung.control().bell().ring(),
        Sleeper::Handlers => rung.control().message_head().requests.bell().ring(),
        Sleeper::Program => rung.control().waiters().touched_word(room_of(rung.control()) as u64),
    }));
    card.extend(wire.card());
    Ok((Some(wire), card))
}

/// A word of this rank that stands for room at the wire. Nobody writes to it.
pub(super) fn room_of(control: &Control) -> *const u64 {
    std::ptr::from_ref(control.message_head()).cast()
}

impl Fabric {
    /// Checks, before anything collective begins, that this rank can open the wire that it needs:
    /// the module exists and its probe succeeds. `several`: the ranks run on several machines.
    pub fn can_join(several: bool) -> Result<()> {
        match needed(several) {
            #[cfg(feature = "simulated")]
            Some((name, _)) if name == "simulated" => Ok(()),
            Some((name, why)) => module(&name).and_then(Module::probe).map_err(because(&why)),
            None => Ok(()),
        }
    }

    /// Joins the ranks that the launcher of the wire's network has started. Collective over them.
    pub fn launch() -> Result<Launch> {
        let (name, _) = needed(true).unwrap_or_default();
        let module = module(&name)?;
        let (rank, size) = module.launch()?;
        Ok(Launch(Arc::new(Started { module, rank, size })))
    }

    /// The error with which the wire has failed, if it has.
    pub fn failure(&self) -> Option<Error> {
        self.wire.as_ref().and_then(Endpoint::failure)
    }

    pub(super) fn wire_to(&self, peer: u32) -> Option<&Endpoint> {
        self.wire.as_ref().filter(|_| self.node.is_far(peer))
    }

    /// Takes the wire's part off a card, connects the wire to the peer if the wire leads there, and
    /// returns the rest.
    pub(super) fn connect_wire(&self, peer: u32, mut card: Card, reach: Reach) -> Result<Card> {
        if let Some(wire) = &self.wire {
            let rest = card.blob.split_off(NODE.min(card.blob.len()));
            // Even to ranks of this node, if regions with LLCL_REGION_DEVICE_ATOMICS exist: only
            // the adapter of the owner executes atomics there.
            if reach == Reach::Wire || self.device_atomics() != 0 {
                wire.connect(peer, &rest)?;
            }
        }
        Ok(card)
    }

    /// See [`Endpoint::slots_retired`].
    pub fn slots_retired(&self) -> u64 {
        self.wire.as_ref().map_or(0, |wire| wire.slots_retired() as u64)
    }

    /// Sets the callback for peers that the wire does not reach any more.
    pub fn on_unreachable(&self, report: Unreachable) {
        if let Some(wire) = &self.wire {
            wire.on_unreachable(report);
        }
    }

    /// The endpoint, if its wire reads and writes the memory of peers.
    pub(super) fn remote(&self) -> Option<&Endpoint> {
        self.wire.as_ref().filter(|wire| wire.memory().caps().remote)
    }

    /// The atomics that the wire executes in regions with LLCL_REGION_DEVICE_ATOMICS, see
    /// `Caps::atomics`. 0: such regions cannot be made, since the wire has no compare-and-swap,
    /// from which `engine::by_device` builds the missing ones.
    pub fn device_atomics(&self) -> u64 {
        let atomics = self.remote().map_or(0, |wire| wire.memory().caps().atomics);
        if atomics & COMPARE_SWAP != 0 { atomics } else { 0 }
    }

    /// Connects the wire to this rank itself, if atomics on own words go to the own adapter.
    pub(super) fn connect_own(&self) -> Result<()> {
        match self.remote().filter(|_| self.device_atomics() != 0) {
            Some(wire) => wire.connect(self.me, wire.card()),
            None => Ok(()),
        }
    }

    /// Whether peers may write to this rank's memory without waking threads that sleep on a word of
    /// it: the wire writes there.
    pub fn has_silent_writes(&self) -> bool {
        self.remote().is_some()
    }

    /// Most bytes of a read or write that is posted to the wire.
    pub fn remote_most(&self) -> u64 {
        match self.remote().map_or(0, |wire| wire.memory().caps().message_most) {
            0 => u64::MAX,
            most => most,
        }
    }

    /// Sets the callback for signals that come with writes; see [`Endpoint::on_signal`].
    pub fn on_signal(&self, change: Signalled) {
        if let Some(wire) = &self.wire {
            wire.on_signal(change);
        }
    }

    /// Registers a region's memory with the wire, if the wire reads and writes memory.
    pub fn register(&self, key: u64, address: *mut u8, size: usize) -> Result<()> {
        self.wire.as_ref().map_or(Ok(()), |wire| wire.memory().register(key, address, size))
    }

    /// Ends register(). Waits up to `patience` for the transfers of a wire that are under way. Ok:
    /// nobody reaches the memory over the wire any more. Err: a peer may, so it must stay valid.
    pub fn deregister(&self, key: u64, patience: Duration) -> Result<()> {
        self.wire.as_ref().map_or(Ok(()), |wire| wire.memory().deregister(key, patience))
    }

    /// Posts operations for one peer in one batch; see [`Endpoint::post`].
    ///
    /// # Safety
    /// As for Endpoint::post().
    #[inline(always)]
    pub unsafe fn post_remote(&self, peer: u32, wanted: &[Posting]) -> (usize, Stopped) {
        let Some(wire) = self.remote() else { return (0, Stopped::NeedsOwner) };
        // SAFETY: the caller keeps the contract of Endpoint::post().
        unsafe { wire.post(peer, wanted) }
    }

    /// See Endpoint::posts().
    #[cfg(all(test, feature = "simulated"))]
    pub fn posts(&self) -> usize {
        self.wire.as_ref().map_or(0, Endpoint::posts)
    }

    /// Keeps a buffer of posted operations, for which nobody waits any more, as long as the wire.
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
    fn has_credit(&self, to: &Peer, class: Class, bytes: Bytes) -> bool {
        Endpoint::has_credit(self, (to.peer(), to.medium()), class, bytes)
    }

    fn ask_wake(&self, to: &Peer, class: Class, bytes: Bytes, sleeper: Sleeper) -> bool {
        Endpoint::ask_wake(self, (to.peer(), to.medium()), class, bytes, sleeper)
    }

    fn put(&self, to: &Peer, class: Class, frame: &Frame, counts: &Counters) -> bool {
        let taken = Endpoint::put(self, to.peer(), class, frame, to.medium());
        match class {
            Class::Requests if taken => counts.message_sent(0),
            Class::Responses | Class::Replies if taken => counts.replied(),
            _ => {}
        }
        taken
    }
}

/// The transport to peers behind the wire.
impl Transport for Fabric {
    fn locate(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        match self.locate_far(port, address, size) {
            // The holder of the lane's role sends the question for the key. This callback may run
            // on the holder, and would wait for itself if it tried again until the key is known. So
            // the access goes to the owner, which checks each access anyway.
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

    fn reply(&self, port: &Port, reply: Reply, bytes: &[u8]) -> bool {
        self.put_by_wire(port, Class::Answers, &frame_of_reply(&reply, bytes))
    }

    fn mark_dead(&self, peer: u32) -> bool {
        Fabric::mark_dead(self, peer)
    }
}
