//! MPI as a wire of libllcl (llcl_wire.h): frames by MPI_Isend and receives from anybody that are
//! posted before, a tag for each class, on a communicator of its own. And as the launcher: what
//! mpirun has started needs no code of its own to become ranks of libllcl.
//!
//! The module uses the MPI that it is linked to, which is the program's own where the program has
//! one. It takes MPI_THREAD_MULTIPLE only, since threads of libllcl call MPI beside the program's.

mod lane;
mod mpi;
mod remote;
mod requests;
mod serving;
mod table;

use lane::{Lane, Shared};
use mpi::Communicator;
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::time::Duration;
use table::{Caps, Card, Host, Key, Open, Status, Table};

/// One network as one rank uses it.
pub struct Wire {
    shared: Arc<Shared>,
    /// What tells of MPI_Finalize.
    ending: mpi::Ending,
}

fn guarded(host: *const Host, call: impl FnOnce() -> Result<(), (i32, String)>) -> i32 {
    match call() {
        Ok(()) => Status::OK,
        Err((status, why)) => {
            say(host, &why);
            status
        }
    }
}

/// Leaves a sentence with libllcl.
fn say(host: *const Host, why: &str) {
    let why = CString::new(why).unwrap_or_default();
    // SAFETY: libllcl's, valid as long as the wire.
    unsafe { ((*host).log)((*host).host, 0, why.as_ptr()) };
}

unsafe extern "C" fn probe(_: *const Host, why: *mut c_char, size: usize) -> i32 {
    let Err(sentence) = mpi::usable() else { return Status::OK };
    let bytes = &sentence.as_bytes()[..sentence.len().min(size.saturating_sub(1))];
    // SAFETY: `why` has `size` bytes.
    unsafe {
        why.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        why.add(bytes.len()).write(0);
    }
    Status::ERR_UNSUPPORTED
}

unsafe extern "C" fn open(host: *const Host, how: *const Open, wire: *mut *mut Wire) -> i32 {
    guarded(host, || {
        // SAFETY: libllcl's, valid during the call; `foreign` is NULL or leads to a number.
        let (rank, size, handle) =
            unsafe { ((*how).rank, (*how).size, (*how).foreign.cast::<i64>().as_ref()) };
        let communicator = Communicator::open(rank, size, handle.copied().unwrap_or_default())?;
        let shared = Arc::new(Shared::new(Lane::new(communicator, host)?));
        let told = shared.clone();
        let ending = mpi::Ending::tell(move || told.end())?;
        let opened = Box::new(Wire { shared, ending });
        // SAFETY: the place of a pointer.
        unsafe { wire.write(Box::into_raw(opened)) };
        Ok(())
    })
}

unsafe extern "C" fn close(wire: *mut Wire, drain_ns: i64) -> i32 {
    // SAFETY: open() has made it, and it is closed once.
    let wire = *unsafe { Box::from_raw(wire) };
    wire.ending.forget();
    wire.shared.lane().close(Duration::from_nanos(drain_ns.max(0) as u64))
}

unsafe extern "C" fn caps(_: *mut Wire, caps: *mut Caps) -> i32 {
    // SAFETY: libllcl's; of this major version it has all these fields.
    let caps = unsafe { &mut *caps };
    caps.read = 1;
    caps.write = 1;
    caps.frame = 1;
    caps.two_sided = 1;
    caps.frame_most = lane::FRAME_MOST as u32;
    caps.message_most = remote::LARGEST;
    caps.card_bytes = size_of::<Card>() as u32;
    caps.depth = lane::DEPTH as u32;
    caps.lanes = 1;
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
    // SAFETY: the wire is open; `key` is the place of one.
    unsafe { key.write((*wire).shared.lane().remote.register(memory as u64, size)) };
    Status::OK
}

unsafe extern "C" fn deregister(wire: *mut Wire, key: *const Key) -> i32 {
    // SAFETY: the wire is open; the key is of register().
    unsafe { (*wire).shared.deregister((*key).wire[0]) }
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
        // SAFETY: places of numbers.
        unsafe { (rank.write(place.0), size.write(place.1)) };
        Ok(())
    })
}

unsafe extern "C" fn allgather(mine: *const c_void, size: usize, all: *mut c_void) -> i32 {
    // SAFETY: libllcl's: so many bytes, and room for those of all ranks.
    unsafe { mpi::allgather(mine, size, all) }
}

unsafe extern "C" fn abort(code: i32) {
    mpi::abort(code);
}

unsafe extern "C" fn end() {
    mpi::end();
}

/// The table; its functions are in `table` and here.
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
        describe: None,
        launch,
        allgather,
        abort,
        end,
    };
    &TABLE
}
