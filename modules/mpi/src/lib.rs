//! A wire module (llcl_wire.h) that carries libllcl's traffic over MPI. The module splits a
//! communicator of its own off the program's. It sends each frame by MPI_Isend, with the frame's
//! class as the tag, and keeps receives for any rank and class posted.
//!
//! The module also offers MPI's launcher to libllcl: a program that mpirun has started becomes
//! ranks of libllcl without any code for MPI.
//!
//! The module is linked to one MPI. A program that uses MPI itself has loaded that MPI already, and
//! both then share it. With MPI_THREAD_MULTIPLE any thread of libllcl calls MPI. With
//! MPI_THREAD_FUNNELED and MPI_THREAD_SERIALIZED only the thread that has initialised MPI does, in
//! its calls of libllcl; what other threads post waits for it (`lane`). So with
//! MPI_THREAD_SERIALIZED no other thread of the program may call MPI while that one is inside a
//! call of libllcl.

mod asked;
mod calls;
mod failures;
mod fences;
mod finalize;
mod frames;
mod lane;
mod message;
mod mpi;
mod places;
mod remote;
mod requests;
mod serving;
mod sleeps;
mod table;
mod unsent;

use lane::{MpiLane, Shared};
use mpi::Communicator;
use requests::{FRAME_MOST, MESSAGE_MOST, RECEIVES};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::time::Duration;
use table::{Caps, Card, Host, Key, Open, Status, Table};

/// What open() returns to libllcl: the wire of one rank.
pub struct Wire {
    shared: Arc<Shared>,
    /// Tells `shared` when the program calls MPI_Finalize.
    ending: mpi::Ending,
}

/// Makes a call's status of its result, and hands the sentence of an error to libllcl.
fn guarded(host: *const Host, call: impl FnOnce() -> Result<(), (i32, String)>) -> i32 {
    match call() {
        Ok(()) => Status::OK,
        Err((status, why)) => {
            say(host, &why);
            status
        }
    }
}

/// Gives libllcl the sentence that llcl_last_error() returns for the call under way.
fn say(host: *const Host, why: &str) {
    let why = CString::new(why).unwrap_or_default();
    // SAFETY: libllcl keeps its host valid as long as the wire.
    unsafe { ((*host).log)((*host).host, 0, why.as_ptr()) };
}

/// Writes a sentence to a text of `size` bytes, as much as fits before the 0.
///
/// # Safety
/// `text` has `size` bytes.
unsafe fn write_text(sentence: &str, text: *mut c_char, size: usize) {
    let Some(room) = size.checked_sub(1) else { return };
    let bytes = &sentence.as_bytes()[..sentence.len().min(room)];
    // SAFETY: as the caller promises.
    unsafe {
        text.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        text.add(bytes.len()).write(0);
    }
}

unsafe extern "C" fn probe(_: *const Host, why: *mut c_char, size: usize) -> i32 {
    let Err(sentence) = mpi::usable() else { return Status::OK };
    // SAFETY: `why` has `size` bytes.
    unsafe { write_text(&sentence, why, size) };
    Status::ERR_UNSUPPORTED
}

/// What a wire of this module allocates for messages that may come, and what MPI has for deaths.
fn description() -> String {
    let deaths = match failures::exist() {
        true => "reports deaths (ULFM) under a launcher that lets the job go on",
        false => "reports no deaths",
    };
    format!(
        "memory of a rank: {RECEIVES} receives of {FRAME_MOST} bytes for all peers, {} KiB; none for \
         each peer, but a box for each knock that is not answered, of its size if there are many, and \
         for at most {} requests of a peer with large reads and writes that wait, about {MESSAGE_MOST} \
         bytes each. MPI {deaths}",
        RECEIVES * FRAME_MOST / 1024,
        remote::LONG_WINDOW
    )
}

unsafe extern "C" fn describe(_: *mut Wire, text: *mut c_char, size: usize) -> i32 {
    // SAFETY: `text` has `size` bytes.
    unsafe { write_text(&description(), text, size) };
    Status::OK
}

unsafe extern "C" fn open(host: *const Host, how: *const Open, wire: *mut *mut Wire) -> i32 {
    guarded(host, || {
        // SAFETY: `how` is valid during the call; `foreign` is NULL or points to an i64.
        let (rank, size, handle) =
            unsafe { ((*how).rank, (*how).size, (*how).foreign.cast::<i64>().as_ref()) };
        let communicator = Communicator::open(rank, size, handle.copied().unwrap_or_default())?;
        let shared = Arc::new(Shared::new(MpiLane::new(communicator, host)?));
        let ended = shared.clone();
        let ending = mpi::Ending::notify(move || ended.end())?;
        let opened = Box::new(Wire { shared, ending });
        // SAFETY: libllcl passes the place of a pointer.
        unsafe { wire.write(Box::into_raw(opened)) };
        Ok(())
    })
}

unsafe extern "C" fn close(wire: *mut Wire, drain_ns: i64) -> i32 {
    // SAFETY: open() has made the wire, and libllcl closes it once.
    let wire = *unsafe { Box::from_raw(wire) };
    if !wire.shared.may_close() {
        // MPI_Finalize ends the lane, by `ending`.
        std::mem::forget(wire);
        return Status::ERR_STATE;
    }
    wire.ending.forget();
    wire.shared.lane().close(Duration::from_nanos(drain_ns.max(0) as u64))
}

unsafe extern "C" fn caps(wire: *mut Wire, caps: *mut Caps) -> i32 {
    // SAFETY: libllcl passes a struct that begins with its size.
    let struct_size = unsafe { caps.cast::<u64>().read() };
    // SAFETY: the wire is open.
    let lane = unsafe { (*wire).shared.lane() };
    let own = Caps {
        struct_size,
        read: 1,
        write: 1,
        frame: 1,
        two_sided: 1,
        frame_most: lane.requests.frame_most as u32,
        message_most: remote::LARGEST,
        card_bytes: size_of::<Card>() as u32,
        depth: lane::DEPTH as u32,
        lanes: 1,
        threads: lane.threads(),
        notice_bits: u32::BITS,
        notice_words: message::NOTICE_WORDS as u32,
        ..Caps::default()
    };
    // The struct of an older libllcl is shorter.
    let size = size_of::<Caps>().min(struct_size as usize);
    // SAFETY: the struct has `struct_size` bytes.
    unsafe { caps.cast::<u8>().copy_from_nonoverlapping((&raw const own).cast(), size) };
    Status::OK
}

unsafe extern "C" fn card(wire: *mut Wire, bytes: *mut c_void, size: usize) -> i32 {
    if size != size_of::<Card>() {
        return Status::ERR_INVALID;
    }
    // SAFETY: the wire is open; `bytes` has `size` bytes.
    unsafe { bytes.cast::<Card>().write_unaligned((*wire).shared.lane().card()) };
    Status::OK
}

unsafe extern "C" fn register(
    wire: *mut Wire,
    memory: *mut c_void,
    size: u64,
    _access: u32,
    key: *mut Key,
) -> i32 {
    // SAFETY: the wire is open; `key` is the place of a key.
    unsafe { key.write((*wire).shared.lane().remote.register(memory as u64, size)) };
    Status::OK
}

unsafe extern "C" fn deregister(wire: *mut Wire, key: *const Key, patience_ns: i64) -> i32 {
    let patience = Duration::from_nanos(patience_ns.max(0) as u64);
    // SAFETY: the wire is open; register() has written the key.
    unsafe { (*wire).shared.deregister((*key).wire[0], patience) }
}

unsafe extern "C" fn lane_of(wire: *mut Wire, number: u32, lane: *mut *const Shared) -> i32 {
    if number != 0 {
        return Status::ERR_UNSUPPORTED;
    }
    // SAFETY: the wire is open; `lane` is the place of a pointer.
    unsafe { lane.write(Arc::as_ptr(&(*wire).shared)) };
    Status::OK
}

unsafe extern "C" fn launch(host: *const Host, rank: *mut u32, size: *mut u32) -> i32 {
    guarded(host, || {
        let place = mpi::begin()?;
        // SAFETY: libllcl passes the places of two numbers.
        unsafe { (rank.write(place.0), size.write(place.1)) };
        Ok(())
    })
}

unsafe extern "C" fn allgather(mine: *const c_void, size: usize, all: *mut c_void) -> i32 {
    // SAFETY: `mine` has `size` bytes, `all` has room for those of every rank (llcl_wire.h).
    unsafe { mpi::allgather(mine, size, all) }
}

unsafe extern "C" fn abort(code: i32) {
    mpi::abort(code);
}

unsafe extern "C" fn end() {
    mpi::end();
}

/// The module's one symbol (llcl_wire.h). The functions of a lane are in `table`, all others here.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_wire_module(_host_major: u32, _host_size: u64) -> *const Table {
    static TABLE: Table = Table {
        major: table::MAJOR,
        reserved: 0,
        struct_size: size_of::<Table>() as u64,
        name: c"mpi".as_ptr(),
        version: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast(),
        built_for: concat!(env!("LLCL_MPI_BUILT_FOR"), "\0").as_ptr().cast(),
        probe,
        open,
        close,
        caps,
        card,
        register,
        deregister,
        lane: lane_of,
        connect: table::connect,
        post: table::post,
        poll: table::poll,
        give_back: table::give_back,
        arm: table::arm,
        disarm: table::disarm,
        fence: table::fence,
        describe,
        launch,
        allgather,
        abort,
        end,
        answer: table::answer,
    };
    &TABLE
}
