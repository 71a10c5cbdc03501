//! Wire modules: shared objects that implement a wire by the function table of `llcl_wire.h`. So
//! libllcl does not depend on the library of any network. It looks for a module and loads it when
//! the environment or the job needs a wire; it refuses a module that does not fit with a message
//! that says why. A loaded module is never unloaded, since its library's threads may run in it.

use super::table::{self, ArmedTable, CapsTable, LaneHandle, OpenTable, Table, WireHandle, text};
use super::{Armed, CARD, Caps, Command, Event, Key, Wire, WireLane};
use crate::fail;
use crate::util::shared_object::{self, SharedObject};
use crate::util::status::{Error, Result, Status};
use crate::util::trusted;
use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

mod describe;
mod host;

use host::Host;

/// `access` of register_: peers may read (1) and write (2).
const READ_WRITE: u32 = 3;
/// The variable that names other folders for modules.
pub const MODULES: &str = "LLCL_MODULES";

/// The folders in which this library looks for modules, in this order.
pub fn folders() -> Vec<PathBuf> {
    if let Some(listed) = trusted::variable(MODULES) {
        return std::env::split_paths(&listed).collect();
    }
    let Some(own) = shared_object::own_folder() else { return Vec::new() };
    // `llcl` beside the shared library, or, for a program in `bin` that contains the library, in
    // the folder `lib` beside `bin`.
    let mut folders = vec![own.join("llcl")];
    folders.extend(own.parent().map(|above| above.join("lib/llcl")));
    folders.dedup();
    folders
}

/// The file name of a module.
pub fn file_name(name: &str) -> String {
    format!("libllcl-{name}.so")
}

/// The modules in a folder, sorted by name.
pub fn files(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_module = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libllcl-") && name.ends_with(".so")
    };
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(is_module).collect();
    found.sort();
    found
}

/// A loaded module of this version: a copy of its table.
#[derive(Clone, Copy)]
pub struct Module(Table);

// SAFETY: the table is constant, and llcl_wire.h lets any thread call its functions.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads the module `name` from the first folder that has it.
    pub fn find(name: &str) -> Result<Module> {
        let (file, folders) = (file_name(name), folders());
        let found = folders.iter().map(|folder| folder.join(&file)).find(|path| path.exists());
        let Some(path) = found else {
            let places: Vec<_> = folders.iter().map(|at| at.display().to_string()).collect();
            fail!(
                ERR_UNSUPPORTED,
                "there is no {file} in {} ({MODULES} names other folders); in the sources, `make mpi \
                 MPICC=...` builds that of an MPI",
                places.join(" or ")
            );
        };
        Module::load(&path)
    }

    /// Loads the module in a file.
    pub fn load(path: &Path) -> Result<Module> {
        let refuse = |why: String| {
            Error::new(Status::ERR_UNSUPPORTED, format!("module {}: {why}", path.display()))
        };
        let object = SharedObject::open(path).map_err(refuse)?;
        let symbol = object.symbol(c"llcl_wire_module");
        let Some(symbol) = symbol else {
            return Err(refuse(
                "it has no symbol llcl_wire_module, so it is no wire module".into(),
            ));
        };
        // SAFETY: llcl_wire.h gives the symbol of this name this type.
        let table = unsafe { std::mem::transmute::<*mut c_void, table::Symbol>(symbol) };
        // SAFETY: the function takes any numbers.
        let table = unsafe { table(table::MAJOR, size_of::<Table>() as u64) };
        if table.is_null() {
            return Err(refuse("its llcl_wire_module() returns no table".into()));
        }
        // SAFETY: tables of all versions begin with these two fields, and are never freed.
        let (major, size) = unsafe { ((*table).major, (*table).struct_size as usize) };
        if major != table::MAJOR {
            let ours = table::MAJOR;
            return Err(refuse(format!("it is of version {major}, this library takes {ours}")));
        }
        if size < table::NEEDED {
            let needed = table::NEEDED;
            return Err(refuse(format!("its table has {size} bytes, expected {needed} or more")));
        }
        // SAFETY: the table has `size` bytes, which is at least NEEDED.
        let table = unsafe { Table::copied(table, size) };
        if let Some(missing) = table.missing() {
            return Err(refuse(format!("its table has no {missing}")));
        }
        Ok(Module(table))
    }

    /// Its name, its version, and the library for which it was built.
    pub fn names(self) -> [String; 3] {
        // SAFETY: a module's strings are terminated and never freed.
        [self.0.name, self.0.version, self.0.built_for].map(|it| unsafe { text(it) })
    }

    /// Asks the module whether it can be used in this process. Err: its reason.
    pub fn probe(self) -> Result<()> {
        let (host, mut why) = (Host::new(), [0 as c_char; 512]);
        let Some(probe) = self.0.probe else { return Ok(()) };
        // SAFETY: host table and text live through the call.
        match unsafe { probe(&*host.table, why.as_mut_ptr(), why.len() - 1) } {
            0 => Ok(()),
            _ => {
                // SAFETY: the last byte of `why` stays 0.
                let why = unsafe { text(why.as_ptr()) };
                fail!(ERR_UNSUPPORTED, "wire {}: {why}", self.0.name())
            }
        }
    }

    /// Starts the network's library under its own launcher (such as mpirun) and returns this
    /// process's rank and the number of ranks.
    pub fn launch(self) -> Result<(u32, u32)> {
        let name = self.0.name();
        let (Some(launch), true) = (self.0.launch, self.0.allgather.is_some()) else {
            fail!(ERR_UNSUPPORTED, "wire {name} has no launcher of its own");
        };
        self.probe()?;
        let (host, mut rank, mut size) = (Host::new(), 0, 0);
        // SAFETY: host table and numbers live through the call.
        match unsafe { launch(&*host.table, &mut rank, &mut size) } {
            0 => Ok((rank, size)),
            status => {
                let said = host.said.lock().unwrap_or_else(PoisonError::into_inner);
                Err(Error::new(Status(status), format!("wire {name}: {said}")))
            }
        }
    }

    /// The bootstrap's Allgather, by the network's launcher. Only after launch().
    pub fn allgather(self, mine: &[u8], all: &mut [u8]) -> i32 {
        let (mine, size, all) = (mine.as_ptr().cast(), mine.len(), all.as_mut_ptr().cast());
        // SAFETY: `all` has room for the bytes of every rank.
        self.0.allgather.map_or(-1, |call| unsafe { call(mine, size, all) })
    }

    /// Ends the job with an exit code. Only after launch().
    pub fn abort(self, code: i32) {
        if let Some(call) = self.0.abort {
            // SAFETY: the function takes any number.
            unsafe { call(code) };
        }
    }

    /// Ends the network's library that launch() has started. The wire must be closed.
    pub fn end(self) {
        if let Some(call) = self.0.end {
            // SAFETY: the wire is closed, so nobody uses the network any more.
            unsafe { call() };
        }
    }

    /// Opens the wire of one rank. Collective over all ranks. `foreign`: the number that the
    /// program has passed in `llcl_bootstrap_t.foreign`, such as an MPI communicator; 0: none.
    pub fn open(self, rank: u32, size: u32, foreign: i64) -> Result<Opened> {
        self.probe()?;
        let (mut handle, mut wire) = (Handle::new(self.0), std::ptr::null_mut());
        let struct_size = size_of::<OpenTable>() as u64;
        let (node, reserved, foreign) = (0, 0, (&raw const foreign).cast());
        let open = OpenTable { struct_size, rank, size, node, reserved, foreign };
        let function = self.0.open;
        // SAFETY: the structs live through the call, and the host as long as the wire.
        let open = || unsafe { function.map(|call| call(&*handle.host.table, &open, &mut wire)) };
        handle.call("open", open)?;
        handle.wire = wire;
        Ok(Opened(Arc::new(handle)))
    }
}

/// An open wire.
struct Handle {
    table: Table,
    /// Null before open() has succeeded.
    wire: *mut WireHandle,
    host: Host,
    /// close() was called: the module is told once.
    closed: AtomicBool,
}

// SAFETY: llcl_wire.h lets any thread use a wire, and one thread at a time each lane.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    fn new(table: Table) -> Handle {
        let (wire, host) = (std::ptr::null_mut(), Host::new());
        Handle { table, wire, host, closed: AtomicBool::new(false) }
    }

    /// Calls a function of the module. Makes an error of a status other than 0, with the text that
    /// the module has logged on this thread during the call. A text of another call says nothing
    /// about this one, and that of a successful call is dropped.
    fn call(&self, what: &str, function: impl FnOnce() -> Option<i32>) -> Result<()> {
        let (status, said) = host::listen(function);
        if status == Some(0) {
            return Ok(());
        }
        let status = Status(status.unwrap_or(Status::ERR_INTERNAL.0));
        let why = if said.is_empty() { format!("{status:?}") } else { said };
        let name = self.table.name();
        Err(Error::new(status, format!("wire {name}: {what}: {why}")))
    }

    /// Closes the wire. After an error the module may still use the host.
    fn close(&self, drain: Duration) -> Result<()> {
        self.closed.store(true, Ordering::Relaxed);
        let (function, drain) = (self.table.close, drain.as_nanos() as i64);
        // SAFETY: the wire is open, and nobody uses its lane any more.
        self.call("close", || unsafe { function.map(|call| call(self.wire, drain)) })
    }
}

impl Drop for Handle {
    /// Closes a wire of which no endpoint could be made: the module may have given its address to
    /// others, as that for MPI has to MPI_Finalize. The host of a wire that does not close stays.
    fn drop(&mut self) {
        let is_open = !self.wire.is_null() && !*self.closed.get_mut();
        if is_open && self.close(Duration::ZERO).is_err() {
            std::mem::forget(std::mem::replace(&mut self.host, Host::new()));
        }
    }
}

/// `threads` of a wire on which only calls of the thread that has opened it make progress.
const OPENER: u32 = 2;

/// See [`Module::open`].
pub struct Opened(Arc<Handle>);

impl Opened {
    fn caps_table(&self) -> CapsTable {
        let mut caps = CapsTable::default();
        caps.struct_size = size_of::<CapsTable>() as u64;
        // SAFETY: the wire is open.
        let status = unsafe { self.0.table.caps.map(|call| call(self.0.wire, &mut caps)) };
        if status == Some(0) { caps } else { CapsTable::default() }
    }
}

impl Wire for Opened {
    fn caps(&self) -> Caps {
        let caps = self.caps_table();
        let frame_most = if caps.frame == 0 { 0 } else { caps.frame_most as usize };
        let table = &self.0.table;
        let registers = table.register.is_some() && table.deregister.is_some();
        Caps {
            frame_most,
            remote: caps.read != 0 && caps.write != 0 && registers,
            inline_most: caps.inline_most as usize,
            needs_local_key: caps.needs_local_key != 0,
            message_most: caps.message_most,
            atomics: caps.atomics[0],
            notice_bits: caps.notice_bits,
            shared_queue: caps.shared_queue != 0,
            notice_words: caps.notice_words,
            answers: table.answer.is_some(),
            opener_polls: caps.threads == OPENER,
        }
    }

    fn card(&self) -> Result<Vec<u8>> {
        let size = self.caps_table().card_bytes as usize;
        if size > CARD {
            fail!(ERR_UNSUPPORTED, "the wire's card has {size} bytes, expected at most {CARD}");
        }
        let mut card = vec![0_u8; size];
        let (function, wire) = (self.0.table.card, self.0.wire);
        // SAFETY: the wire is open, and the card has `size` bytes.
        let fill = || unsafe { function.map(|call| call(wire, card.as_mut_ptr().cast(), size)) };
        self.0.call("card", fill).map(|()| card)
    }

    fn register(&self, address: *mut u8, size: u64) -> Result<Key> {
        let (mut key, function) = (Key::default(), self.0.table.register);
        let wire = self.0.wire;
        let register = || {
            // SAFETY: the wire is open; Key is llcl_wire_key_t.
            unsafe { function.map(|call| call(wire, address.cast(), size, READ_WRITE, &mut key)) }
        };
        self.0.call("register", register).map(|()| key)
    }

    fn deregister(&self, key: &Key, patience: Duration) -> Result<()> {
        let (function, wire) = (self.0.table.deregister, self.0.wire);
        let patience = patience.as_nanos() as i64;
        // SAFETY: the wire is open, and the key comes from register().
        self.0.call("deregister", || unsafe { function.map(|call| call(wire, key, patience)) })
    }

    fn lane(&self) -> Result<Box<dyn WireLane>> {
        if !matches!(self.caps_table().threads, 0 | OPENER) {
            let name = self.0.table.name();
            fail!(
                ERR_UNSUPPORTED,
                "wire {name} allows one thread only (threads is not 0 or 2), expected any thread"
            );
        }
        let mut lane = std::ptr::null_mut();
        let (function, wire) = (self.0.table.lane, self.0.wire);
        // SAFETY: the wire is open.
        self.0.call("lane", || unsafe { function.map(|call| call(wire, 0, &mut lane)) })?;
        Ok(Box::new(ModuleLane { lane, of: self.0.clone() }))
    }
}

/// The lane of an open wire. load() has checked that its functions exist.
struct ModuleLane {
    lane: *mut LaneHandle,
    of: Arc<Handle>,
}

// SAFETY: llcl_wire.h lets one thread at a time use a lane.
unsafe impl Send for ModuleLane {}

// SAFETY of all calls below: the lane is open until close(), and `&mut self` keeps other threads
// out.
impl WireLane for ModuleLane {
    fn connect(&mut self, peer: u32, card: &[u8]) -> Result<()> {
        let (function, lane) = (self.of.table.connect, self.lane);
        let connect = || {
            // SAFETY: as above; the card is read during the call.
            unsafe { function.map(|call| call(lane, peer, card.as_ptr().cast(), card.len())) }
        };
        self.of.call("connect", connect)
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        let (mut why, call) = (0, self.of.table.post);
        let count = commands.len() as u32;
        // SAFETY: as above; Command is llcl_wire_command_t, and the caller vouches for the pieces.
        let taken = unsafe {
            call.map(|call| call(self.lane, peer, class, commands.as_ptr(), count, &mut why))
        };
        let taken = (taken.unwrap_or_default() as usize).min(commands.len());
        let all = taken == commands.len();
        (
            taken,
            if all {
                Status::OK
            } else if why == 0 {
                Status::RETRY_QUEUE_FULL
            } else {
                Status(why)
            },
        )
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        let call = self.of.table.poll;
        // SAFETY: as above; Event is llcl_wire_event_t.
        let count =
            unsafe { call.map(|call| call(self.lane, events.as_mut_ptr(), events.len() as u32)) };
        (count.unwrap_or_default() as usize).min(events.len())
    }

    fn give_back(&mut self, frame: u64) {
        // SAFETY: as above.
        unsafe { self.of.table.give_back.map(|call| call(self.lane, frame)) };
    }

    fn answer(&mut self, notice: u64, status: Status, value: u64) {
        // SAFETY: as above.
        unsafe { self.of.table.answer.map(|call| call(self.lane, notice, status.0, value)) };
    }

    fn arm(&mut self) -> Armed {
        let mut armed = ArmedTable::default();
        // SAFETY: as above.
        unsafe { self.of.table.arm.map(|call| call(self.lane, &mut armed)) };
        let time = Duration::from_nanos(armed.after_ns.max(0) as u64);
        match (armed.how, time) {
            (1, Duration::ZERO) => Armed::Fd(armed.fd, Duration::MAX),
            (1, time) => Armed::Fd(armed.fd, time),
            (2, time) => Armed::PollAfter(time),
            _ => Armed::PollNow,
        }
    }

    fn disarm(&mut self) {
        // SAFETY: as above.
        unsafe { self.of.table.disarm.map(|call| call(self.lane)) };
    }

    fn fence(&mut self, peer: u32) {
        // SAFETY: as above.
        unsafe { self.of.table.fence.map(|call| call(self.lane, peer)) };
    }

    fn why(&self) -> String {
        self.of.host.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn close(&mut self, drain: Duration) -> Result<()> {
        self.of.close(drain)
    }
}

#[cfg(all(test, not(loom)))]
pub mod tests;
