//! MPI as a library: initialising and finalising it, its errors as sentences, the module's
//! communicator. Sends and receives are in `requests`.

use crate::finalize;
use crate::table::Status;
use mpi_sys as ffi;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a call fails: a status of libllcl, and the sentence for the user.
pub type Failure = (i32, String);

/// MPI's own sentence for an error code.
fn words(code: i32) -> String {
    let (mut text, mut size) = ([0_u8; 1024], 0);
    // SAFETY: MPI writes at most MPI_MAX_ERROR_STRING bytes: 256 in Open MPI, 512 in MPICH.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut size) };
    String::from_utf8_lossy(&text[..(size.max(0) as usize).min(text.len())]).into_owned()
}

/// Makes a failure of any code but MPI_SUCCESS. `what`: the function of MPI that returned it.
#[inline]
pub fn check(what: &str, code: i32) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(failure(what, code)) }
}

#[cold]
fn failure(what: &str, code: i32) -> Failure {
    (Status::ERR_SYSTEM, format!("{what}: {}", words(code)))
}

fn flag(call: unsafe extern "C" fn(*mut i32) -> i32) -> bool {
    let mut flag = 0;
    // SAFETY: MPI_Initialized and MPI_Finalized may be called at any time, by any thread.
    unsafe { call(&mut flag) };
    flag != 0
}

/// Whether MPI_Finalize has been called.
pub fn is_finalized() -> bool {
    flag(ffi::MPI_Finalized)
}

fn level_name(level: i32) -> &'static str {
    // SAFETY: constants of the MPI that the module was built for.
    unsafe {
        if level == ffi::RSMPI_THREAD_FUNNELED {
            "MPI_THREAD_FUNNELED"
        } else {
            "MPI_THREAD_SERIALIZED"
        }
    }
}

/// Returns why MPI cannot be used in this process, if that is known already. Before MPI is
/// initialised nothing is known against it.
pub fn usable() -> Result<(), String> {
    if is_finalized() {
        return Err(
            "MPI_Finalize was called before; call llcl_finalize first, and llcl_init before it"
                .into(),
        );
    }
    if !flag(ffi::MPI_Initialized) {
        return Ok(());
    }
    may_use().map(drop)
}

/// Which threads of this process may call MPI beside the program's own calls; or why none may. MPI
/// is initialised.
pub fn may_use() -> Result<Threads, String> {
    let (mut level, mut is_main) = (0, 0);
    // SAFETY: MPI is initialised; constants of the MPI that the module was built for.
    unsafe {
        ffi::MPI_Query_thread(&mut level);
        ffi::MPI_Is_thread_main(&mut is_main);
        if level >= ffi::RSMPI_THREAD_MULTIPLE {
            return Ok(Threads::Any);
        }
        if level < ffi::RSMPI_THREAD_FUNNELED {
            return Err(
                "MPI gives MPI_THREAD_SINGLE: ask MPI_Init_thread for MPI_THREAD_MULTIPLE, \
                        or for MPI_THREAD_FUNNELED, with which the library makes progress only \
                        inside its calls by the thread that has initialised MPI"
                    .into(),
            );
        }
    }
    if is_main == 0 {
        let given = level_name(level);
        return Err(format!(
            "MPI gives {given}, so llcl_init must be called by the thread that has called \
             MPI_Init_thread: call it there, or ask MPI_Init_thread for MPI_THREAD_MULTIPLE"
        ));
    }
    Ok(Threads::One(this_thread()))
}

/// The number of the calling thread. std::thread::current() would panic in an exit handler.
fn this_thread() -> libc::pthread_t {
    // SAFETY: it takes nothing, and cannot fail.
    unsafe { libc::pthread_self() }
}

/// Which threads may call MPI.
#[derive(Clone, Copy)]
pub enum Threads {
    /// MPI_THREAD_MULTIPLE.
    Any,
    /// MPI_THREAD_FUNNELED and MPI_THREAD_SERIALIZED: the thread that has initialised MPI. A call
    /// by another one might coincide with one of the program's, of which the module does not know.
    /// For the same reason no other thread of the program may call MPI while this one is inside a
    /// call of libllcl.
    One(libc::pthread_t),
}

impl Threads {
    /// Whether the calling thread may.
    pub fn have_this(self) -> bool {
        match self {
            Threads::Any => true,
            Threads::One(id) => this_thread() == id,
        }
    }
}

/// The module has called MPI_Init_thread, so it must call MPI_Finalize as well.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Initialises MPI if the program has not. Returns this process's rank in MPI_COMM_WORLD, and the
/// number of ranks.
pub fn begin() -> Result<(u32, u32), Failure> {
    if !flag(ffi::MPI_Initialized) {
        let mut level = 0;
        // SAFETY: MPI allows NULL for the arguments, and is not initialised yet.
        let code = unsafe {
            let multiple = ffi::RSMPI_THREAD_MULTIPLE;
            ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), multiple, &mut level)
        };
        check("MPI_Init_thread", code)?;
        BEGUN.store(true, Ordering::Relaxed);
    }
    // SAFETY: MPI is initialised, so MPI_COMM_WORLD is a communicator.
    unsafe { place_in(ffi::RSMPI_COMM_WORLD) }
}

/// This process's rank in a communicator, and the number of its ranks.
///
/// # Safety
/// MPI is initialised, and `communicator` is a communicator.
pub unsafe fn place_in(communicator: ffi::MPI_Comm) -> Result<(u32, u32), Failure> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: as the caller promises.
    unsafe {
        check("MPI_Comm_rank", ffi::MPI_Comm_rank(communicator, &mut rank))?;
        check("MPI_Comm_size", ffi::MPI_Comm_size(communicator, &mut size))?;
    }
    Ok((rank as u32, size as u32))
}

/// Gathers `size` bytes of each rank of MPI_COMM_WORLD. Returns MPI's code.
///
/// # Safety
/// `mine` has `size` bytes, `all` has room for `size` bytes of each rank.
pub unsafe fn allgather(mine: *const c_void, size: usize, all: *mut c_void) -> i32 {
    // SAFETY: as the caller promises; MPI is initialised.
    unsafe {
        let (count, byte) = (size as i32, ffi::RSMPI_UINT8_T);
        ffi::MPI_Allgather(mine, count, byte, all, count, byte, ffi::RSMPI_COMM_WORLD)
    }
}

/// Whether Open MPI sends messages over UCX: then it has the variables of that component. It closes
/// the components that it does not use, and forgets their variables. MPI is initialised.
pub fn is_over_ucx() -> bool {
    let (mut level, mut index) = (0, 0);
    // SAFETY: a program may begin and end MPI's interface for tools as often as it likes.
    unsafe {
        if ffi::MPI_T_init_thread(ffi::RSMPI_THREAD_MULTIPLE, &mut level) != 0 {
            return false;
        }
        let found = ffi::MPI_T_cvar_get_index(c"pml_ucx_priority".as_ptr(), &mut index) == 0;
        ffi::MPI_T_finalize();
        found
    }
}

/// Ends the job by MPI_Abort.
pub fn abort(code: i32) {
    // SAFETY: MPI is initialised.
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
}

/// Calls MPI_Finalize if the module has initialised MPI. Open MPI's needs no stop of all ranks
/// before it, and there the stop would fail if a rank had died (ULFM).
pub fn end() {
    if BEGUN.swap(false, Ordering::Relaxed) && !is_finalized() {
        if env!("LLCL_MPI_BUILT_FOR").starts_with("mpich") {
            finalize::stop_polling();
        }
        // SAFETY: the module has initialised MPI, and has no operation under way.
        unsafe { ffi::MPI_Finalize() };
    }
}

/// The module's own communicators. Their ranks have the numbers that they have in libllcl.
pub struct Communicator {
    pub handle: ffi::MPI_Comm,
    /// For the bytes of large operations.
    pub large: ffi::MPI_Comm,
    /// This process's rank.
    pub rank: u32,
    pub threads: Threads,
    /// open() has initialised MPI, so close() finalises it.
    began: bool,
}

impl Communicator {
    /// Splits the module's communicators off the program's; collective over all ranks. `foreign` is
    /// the Fortran handle of the program's communicator, or 0 for MPI_COMM_WORLD.
    pub fn open(rank: u32, size: u32, foreign: i64) -> Result<Communicator, Failure> {
        let began = !flag(ffi::MPI_Initialized);
        begin()?;
        let threads = may_use().map_err(|why| (Status::ERR_UNSUPPORTED, why))?;
        let mut handle = MaybeUninit::uninit();
        // SAFETY: MPI is initialised; the program promises that its handle is a communicator's.
        unsafe {
            let (name, of) = match foreign {
                0 => ("MPI_COMM_WORLD", ffi::RSMPI_COMM_WORLD),
                handle => ("the communicator", ffi::RSMPI_Comm_f2c(handle as _)),
            };
            let place = place_in(of)?;
            if place != (rank, size) {
                let why = format!(
                    "this is rank {} of {} of {name}, expected {rank} of {size} as llcl_init has it",
                    place.0, place.1
                );
                return Err((Status::ERR_UNSUPPORTED, why));
            }
            let code = ffi::MPI_Comm_split(of, 0, rank as i32, handle.as_mut_ptr());
            check("MPI_Comm_split", code)?;
            let handle = handle.assume_init();
            ffi::MPI_Comm_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            let large = ffi::RSMPI_COMM_NULL;
            let mut made = Communicator { handle, large, rank, threads, began };
            // The duplicate has the error handler of the original.
            let code = ffi::MPI_Comm_dup(handle, &mut made.large);
            if let Err(failure) = check("MPI_Comm_dup", code) {
                made.large = large;
                made.close();
                return Err(failure);
            }
            Ok(made)
        }
    }

    /// Frees the communicators, and finalises MPI if open() has initialised it. Collective.
    pub fn close(&mut self) -> i32 {
        // SAFETY: a constant of the MPI that the module was built for.
        if self.handle == unsafe { ffi::RSMPI_COMM_NULL } {
            return Status::OK;
        }
        // SAFETY: MPI is not finalised; the caller has ended its operations on the communicators.
        let code = unsafe {
            let freed =
                self.large == ffi::RSMPI_COMM_NULL || ffi::MPI_Comm_free(&mut self.large) == 0;
            if freed { ffi::MPI_Comm_free(&mut self.handle) } else { 1 }
        };
        if self.began {
            end();
        }
        if code == 0 { Status::OK } else { Status::ERR_SYSTEM }
    }
}

/// Calls a function when the program calls MPI_Finalize. MPI_Finalize first deletes the attributes
/// of MPI_COMM_SELF; the function is the delete callback of such an attribute, and may still call
/// MPI.
pub struct Ending {
    key: i32,
    call: Arc<Call>,
}

struct Call {
    function: Box<dyn Fn() + Send + Sync>,
    /// The function was called, or forget() has withdrawn it.
    over: AtomicBool,
}

unsafe extern "C" fn copy(
    _: ffi::MPI_Comm,
    _: i32,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    copied: *mut i32,
) -> i32 {
    // SAFETY: MPI passes the place of a number.
    unsafe { copied.write(0) };
    0
}

unsafe extern "C" fn delete(_: ffi::MPI_Comm, _: i32, call: *mut c_void, _: *mut c_void) -> i32 {
    // SAFETY: notify() gave this reference to MPI, and MPI deletes the attribute once.
    let call = unsafe { Arc::from_raw(call.cast::<Call>()) };
    if !call.over.swap(true, Ordering::Relaxed) {
        (call.function)();
    }
    0
}

impl Ending {
    /// Registers `function`. MPI calls it at most once, and never after forget().
    pub fn notify(function: impl Fn() + Send + Sync + 'static) -> Result<Ending, Failure> {
        let over = AtomicBool::new(false);
        let (mut key, call) = (0, Arc::new(Call { function: Box::new(function), over }));
        let given = Arc::into_raw(call.clone()).cast_mut().cast();
        // SAFETY: MPI is initialised; the reference that it is given stays until delete().
        unsafe {
            let code =
                ffi::MPI_Comm_create_keyval(Some(copy), Some(delete), &mut key, ptr::null_mut());
            check("MPI_Comm_create_keyval", code)?;
            check("MPI_Comm_set_attr", ffi::MPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, given))?;
        }
        Ok(Ending { key, call })
    }

    /// Withdraws the function.
    pub fn forget(mut self) {
        if self.call.over.swap(true, Ordering::Relaxed) {
            return;
        }
        // SAFETY: MPI is not finalised: MPI_Finalize would have called delete(), which sets `over`.
        unsafe {
            ffi::MPI_Comm_delete_attr(ffi::RSMPI_COMM_SELF, self.key);
            ffi::MPI_Comm_free_keyval(&mut self.key);
        }
    }
}
