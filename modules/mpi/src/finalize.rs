//! What comes before MPI_Finalize over MPICH, where the module has initialised MPI.
//!
//! Over UCX's TCP, MPICH's MPI_Finalize asks each peer for an answer, and a peer answers inside MPI
//! only. A rank that has all answers does not answer any more. So a rank that answers a question
//! before it asks itself may ask a peer that does not answer, and hangs. That is why all ranks must
//! have stopped polling before the first one asks.
//!
//! Messages of MPI cannot say so: a rank that gets the last message may find the sender's question
//! right behind it. MPI's names can: MPICH keeps them in the launcher, with which it speaks over a
//! connection of its own, so a look-up does not poll the peers. A rank has a name for each of two
//! steps until it has taken the step, rank 0 until all ranks have. Before a rank stops polling, it
//! polls until all ranks have got their last messages, of which MPI may hold a part back.

use crate::mpi::place_in;
use mpi_sys as ffi;
use std::ffi::{CStr, CString};
use std::thread;
use std::time::Duration;

/// Most ranks that use names. If 280 ranks of one host publish names at a time, MPICH 4.0.2's
/// launcher and its helper on that host wait for each other for ever.
const RANKS: u32 = 128;
/// Without names each rank waits for this time behind the last message. A rank that the kernel
/// stops for longer may hang.
const PAUSE: Duration = Duration::from_millis(100);
/// Pauses between two look-ups: the first one, and the longest one. All ranks ask one launcher.
const NAPS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(32));
/// The port of a name, which nobody uses.
const PORT: &CStr = c"llcl";
/// What each rank has a name for until it has done it.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    GetsLastMessage,
    Polls,
}

/// Bytes for a port, at least MPI_MAX_PORT_NAME.
const PORT_MOST: usize = 4096;

/// Returns when no rank polls any more. Collective. After it a rank may only call MPI_Finalize.
pub fn stop_polling() {
    // SAFETY: MPI is initialised and not finalised; arrays have the bytes that the calls name.
    unsafe {
        let Ok((rank, size)) = place_in(ffi::RSMPI_COMM_WORLD) else { return };
        if size == 1 {
            return;
        }
        // A look-up without a result is an error to MPI.
        ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_RETURN);
        ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_SELF, ffi::RSMPI_ERRORS_RETURN);
        // Other jobs may have names in the same place. 0: without names.
        let mut job = 0_u64;
        if rank == 0 && size <= RANKS {
            libc::getrandom((&raw mut job).cast(), size_of_val(&job), 0);
            job = if keeps_names(job) { job } else { 0 };
        }
        let (bytes, byte) = (size_of_val(&job) as i32, ffi::RSMPI_UINT8_T);
        ffi::MPI_Bcast((&raw mut job).cast(), bytes, byte, 0, ffi::RSMPI_COMM_WORLD);
        let steps = [Step::GetsLastMessage, Step::Polls];
        let named = job != 0 && steps.iter().all(|step| publish(&name(job, *step, rank)));
        let (own, mut all) = (i32::from(named), 0);
        let (number, least) = (ffi::RSMPI_INT32_T, ffi::RSMPI_MIN);
        let (from, to) = ((&raw const own).cast(), (&raw mut all).cast());
        let got = ffi::MPI_Allreduce(from, to, 1, number, least, ffi::RSMPI_COMM_WORLD) == 0;
        if !got || all == 0 {
            if job != 0 {
                // Ranks that have got another result wait for the end of these names.
                steps.iter().for_each(|step| drop(unpublish(&name(job, *step, rank))));
            }
            return thread::sleep(PAUSE);
        }
        for step in steps {
            let wait = |other| wait_for_the_end_of(&name(job, step, other), step);
            if rank == 0 {
                (1..size).for_each(wait);
            }
            unpublish(&name(job, step, rank));
            if rank > 0 {
                wait(0);
            }
        }
    }
}

/// The name of a rank.
fn name(job: u64, step: Step, rank: u32) -> CString {
    CString::new(format!("llcl-{job:016x}-{}-{rank}", step as u8)).unwrap_or_default()
}

/// Whether the launcher keeps names, and drops them.
fn keeps_names(job: u64) -> bool {
    let trial = name(job, Step::Polls, u32::MAX);
    publish(&trial) && exists(&trial) && unpublish(&trial) && !exists(&trial)
}

fn wait_for_the_end_of(name: &CStr, step: Step) {
    let (mut nap, longest) = NAPS;
    while exists(name) {
        if step == Step::GetsLastMessage {
            poll();
        }
        thread::sleep(nap);
        nap = (2 * nap).min(longest);
    }
}

/// Lets MPI make progress.
fn poll() {
    let mut found = 0;
    // SAFETY: MPI is initialised; constants of the MPI that the module was built for.
    unsafe {
        let (source, tag) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
        let (world, none) = (ffi::RSMPI_COMM_WORLD, ffi::RSMPI_STATUS_IGNORE);
        ffi::MPI_Iprobe(source, tag, world, &mut found, none);
    }
}

fn publish(name: &CStr) -> bool {
    // SAFETY: MPI is initialised; both texts end with 0.
    unsafe { ffi::MPI_Publish_name(name.as_ptr(), ffi::RSMPI_INFO_NULL, PORT.as_ptr()) == 0 }
}

fn unpublish(name: &CStr) -> bool {
    // SAFETY: as in publish().
    unsafe { ffi::MPI_Unpublish_name(name.as_ptr(), ffi::RSMPI_INFO_NULL, PORT.as_ptr()) == 0 }
}

fn exists(name: &CStr) -> bool {
    let mut port = [0; PORT_MOST];
    // SAFETY: as in publish(); MPI writes at most MPI_MAX_PORT_NAME bytes.
    unsafe { ffi::MPI_Lookup_name(name.as_ptr(), ffi::RSMPI_INFO_NULL, port.as_mut_ptr()) == 0 }
}
