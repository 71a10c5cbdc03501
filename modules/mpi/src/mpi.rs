//! What is asked of MPI, with its errors as sentences.

use crate::table::Status;
use mpi_sys as ffi;
use std::mem::MaybeUninit;
use std::ptr;

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

/// A communicator of the module's own, whose ranks are those of libllcl.
pub struct Communicator {
    /// MPI's handle.
    pub handle: ffi::MPI_Comm,
    /// This rank.
    pub rank: u32,
    /// The module has initialised MPI.
    began: bool,
}

impl Communicator {
    /// Collective over all ranks.
    pub fn open(rank: u32, size: u32) -> Result<Communicator, Failure> {
        let began = !flag(ffi::MPI_Initialized);
        if began {
            let mut level = 0;
            // SAFETY: no arguments; it was not initialised before.
            let code = unsafe {
                let multiple = ffi::RSMPI_THREAD_MULTIPLE;
                ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), multiple, &mut level)
            };
            check("MPI_Init_thread", code)?;
            enough(level).map_err(|why| (Status::ERR_UNSUPPORTED, why))?;
        }
        let (mut ranks, mut handle) = (0, MaybeUninit::uninit());
        // SAFETY: MPI is initialised; the world is a communicator.
        unsafe {
            let world = ffi::RSMPI_COMM_WORLD;
            check("MPI_Comm_size", ffi::MPI_Comm_size(world, &mut ranks))?;
            if ranks as u32 != size {
                let why =
                    format!("MPI_COMM_WORLD has {ranks} ranks, expected {size} as llcl_init has");
                return Err((Status::ERR_UNSUPPORTED, why));
            }
            let code = ffi::MPI_Comm_split(world, 0, rank as i32, handle.as_mut_ptr());
            check("MPI_Comm_split", code)?;
            let handle = handle.assume_init();
            ffi::MPI_Comm_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            Ok(Communicator { handle, rank, began })
        }
    }

    /// Lets go of the communicator, and of MPI where the module has begun it. Collective.
    pub fn close(mut self) -> i32 {
        // SAFETY: MPI is not over, and nothing is under way on the communicator.
        unsafe {
            let code = ffi::MPI_Comm_free(&mut self.handle);
            let ended = if self.began { ffi::MPI_Finalize() } else { 0 };
            if code == 0 && ended == 0 { Status::OK } else { Status::ERR_SYSTEM }
        }
    }
}
