//! What is asked of MPI, with its errors as sentences.

use crate::table::Status;
use mpi_sys as ffi;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A status of libllcl and a sentence.
pub type Failure = (i32, String);

/// MPI's own words for a code.
fn words(code: i32) -> String {
    let (mut text, mut size) = ([0_u8; 1024], 0);
    // SAFETY: MPI_MAX_ERROR_STRING is at most 1024 in the MPIs there are.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut size) };
    String::from_utf8_lossy(&text[..(size.max(0) as usize).min(text.len())]).into_owned()
}

/// An error for a code other than MPI_SUCCESS.
pub fn check(what: &str, code: i32) -> Result<(), Failure> {
    match code {
        0 => Ok(()),
        _ => Err((Status::ERR_SYSTEM, format!("{what}: {}", words(code)))),
    }
}

fn flag(call: unsafe extern "C" fn(*mut i32) -> i32) -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time, by any thread.
    unsafe { call(&mut flag) };
    flag != 0
}

/// Whether MPI is over.
pub fn is_finalized() -> bool {
    flag(ffi::MPI_Finalized)
}

fn level_name(level: i32) -> &'static str {
    // SAFETY: constants of the MPI that was built for.
    unsafe {
        if level == ffi::RSMPI_THREAD_SINGLE {
            "MPI_THREAD_SINGLE"
        } else if level == ffi::RSMPI_THREAD_FUNNELED {
            "MPI_THREAD_FUNNELED"
        } else {
            "MPI_THREAD_SERIALIZED"
        }
    }
}

/// Whether MPI can be used here, as far as can be said before it is initialised; else why not.
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
    let mut level = 0;
    // SAFETY: MPI is initialised.
    unsafe { ffi::MPI_Query_thread(&mut level) };
    enough(level)
}

fn enough(level: i32) -> Result<(), String> {
    // SAFETY: a constant of the MPI that was built for.
    if level >= unsafe { ffi::RSMPI_THREAD_MULTIPLE } {
        return Ok(());
    }
    let given = level_name(level);
    Err(format!(
        "MPI gives {given}, but this library's threads call it beside the program's: ask \
         MPI_Init_thread for MPI_THREAD_MULTIPLE"
    ))
}

/// MPI_Init_thread was called here, and MPI_Finalize has to be.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Initialises MPI where the program has not; this process's number in MPI_COMM_WORLD, and how many
/// there are.
pub fn begin() -> Result<(u32, u32), Failure> {
    if !flag(ffi::MPI_Initialized) {
        let mut level = 0;
        // SAFETY: no arguments; it was not initialised before.
        let code = unsafe {
            let multiple = ffi::RSMPI_THREAD_MULTIPLE;
            ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), multiple, &mut level)
        };
        check("MPI_Init_thread", code)?;
        BEGUN.store(true, Ordering::Relaxed);
        enough(level).map_err(|why| (Status::ERR_UNSUPPORTED, why))?;
    }
    // SAFETY: MPI is initialised; the world is a communicator.
    unsafe { place_in(ffi::RSMPI_COMM_WORLD) }
}

unsafe fn place_in(communicator: ffi::MPI_Comm) -> Result<(u32, u32), Failure> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: as the caller promises.
    unsafe {
        check("MPI_Comm_rank", ffi::MPI_Comm_rank(communicator, &mut rank))?;
        check("MPI_Comm_size", ffi::MPI_Comm_size(communicator, &mut size))?;
    }
    Ok((rank as u32, size as u32))
}

/// Gathers the bytes of all ranks of MPI_COMM_WORLD; MPI's code.
///
/// # Safety
/// `mine` has `size` bytes, `all` room for as many of each rank.
pub unsafe fn allgather(mine: *const c_void, size: usize, all: *mut c_void) -> i32 {
    // SAFETY: as the caller promises; MPI is initialised.
    unsafe {
        let (count, byte) = (size as i32, ffi::RSMPI_UINT8_T);
        ffi::MPI_Allgather(mine, count, byte, all, count, byte, ffi::RSMPI_COMM_WORLD)
    }
}

/// Ends the job.
pub fn abort(code: i32) {
    // SAFETY: MPI is initialised.
    unsafe { ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code) };
}

/// Ends MPI where the module has begun it.
pub fn end() {
    if BEGUN.swap(false, Ordering::Relaxed) && !is_finalized() {
        // SAFETY: initialised by the module, which has nothing under way.
        unsafe { ffi::MPI_Finalize() };
    }
}

/// A communicator of the module's own, whose ranks are those of libllcl.
pub struct Communicator {
    /// MPI's handle.
    pub handle: ffi::MPI_Comm,
    /// This rank.
    pub rank: u32,
    /// The module has initialised MPI for it.
    began: bool,
}

impl Communicator {
    /// Collective over all ranks. `foreign`: the Fortran handle of the communicator that has them;
    /// 0: MPI_COMM_WORLD.
    pub fn open(rank: u32, size: u32, foreign: i64) -> Result<Communicator, Failure> {
        let began = !flag(ffi::MPI_Initialized);
        begin()?;
        let mut handle = MaybeUninit::uninit();
        // SAFETY: MPI is initialised; the world is a communicator, and so is what the program
        // names.
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
            Ok(Communicator { handle, rank, began })
        }
    }

    /// Lets go of the communicator, and of MPI where it was begun for this one. Collective.
    pub fn close(&mut self) -> i32 {
        // SAFETY: a constant of the MPI that was built for.
        if self.handle == unsafe { ffi::RSMPI_COMM_NULL } {
            return Status::OK;
        }
        // SAFETY: MPI is not over, and nothing is under way on the communicator.
        let code = unsafe { ffi::MPI_Comm_free(&mut self.handle) };
        if self.began {
            end();
        }
        if code == 0 { Status::OK } else { Status::ERR_SYSTEM }
    }
}

/// Calls a function when the program finalises MPI, before anything of MPI has ended: MPI deletes
/// the attributes of MPI_COMM_SELF first.
pub struct Ending {
    key: i32,
    call: Arc<Call>,
}

struct Call {
    function: Box<dyn Fn() + Send + Sync>,
    /// It was called, or is not to be called any more.
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
    // SAFETY: the place of a number.
    unsafe { copied.write(0) };
    0
}

unsafe extern "C" fn delete(_: ffi::MPI_Comm, _: i32, call: *mut c_void, _: *mut c_void) -> i32 {
    // SAFETY: that of tell(), which MPI gives back once.
    let call = unsafe { Arc::from_raw(call.cast::<Call>()) };
    if !call.over.swap(true, Ordering::Relaxed) {
        (call.function)();
    }
    0
}

impl Ending {
    /// `function` is called at most once, until forget().
    pub fn tell(function: impl Fn() + Send + Sync + 'static) -> Result<Ending, Failure> {
        let over = AtomicBool::new(false);
        let (mut key, call) = (0, Arc::new(Call { function: Box::new(function), over }));
        let given = Arc::into_raw(call.clone()).cast_mut().cast();
        // SAFETY: MPI is initialised; what it is given stays until delete().
        unsafe {
            let code =
                ffi::MPI_Comm_create_keyval(Some(copy), Some(delete), &mut key, ptr::null_mut());
            check("MPI_Comm_create_keyval", code)?;
            check("MPI_Comm_set_attr", ffi::MPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, given))?;
        }
        Ok(Ending { key, call })
    }

    /// Nothing is called any more.
    pub fn forget(mut self) {
        if self.call.over.swap(true, Ordering::Relaxed) {
            return;
        }
        // SAFETY: MPI is not over: it would have called delete() before.
        unsafe {
            ffi::MPI_Comm_delete_attr(ffi::RSMPI_COMM_SELF, self.key);
            ffi::MPI_Comm_free_keyval(&mut self.key);
        }
    }
}
