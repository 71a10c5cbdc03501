//! Single calls of MPI for one request or its status.

use crate::mpi::{self, Failure};
use mpi_sys as ffi;
use std::mem::MaybeUninit;
use std::time::Instant;

/// Begins to receive a message.
///
/// # Safety
/// The bytes are valid, and nobody else uses them, until MPI has ended the receive.
pub unsafe fn begin_receive(
    communicator: ffi::MPI_Comm,
    (source, tag): (i32, i32),
    bytes: *mut u8,
    size: usize,
) -> Result<ffi::MPI_Request, Failure> {
    let mut handle = MaybeUninit::uninit();
    // SAFETY: as the caller promises.
    let code = unsafe {
        ffi::MPI_Irecv(
            bytes.cast(),
            size as i32,
            ffi::RSMPI_UINT8_T,
            source,
            tag,
            communicator,
            handle.as_mut_ptr(),
        )
    };
    mpi::check("MPI_Irecv", code)?;
    // SAFETY: MPI_Irecv() has written it.
    Ok(unsafe { handle.assume_init() })
}

/// Cancels a receive that MPI has not ended.
pub fn cancel(handle: &mut ffi::MPI_Request) {
    if !is_null(*handle) {
        // SAFETY: a request that MPI has not ended.
        unsafe { ffi::MPI_Cancel(handle) };
    }
}

/// Waits until `limit` for MPI to end a receive. Returns whether it has.
pub fn is_over_by(limit: Instant, handle: &mut ffi::MPI_Request) -> bool {
    let mut ended = 0;
    if is_null(*handle) {
        return true;
    }
    // SAFETY: a request that MPI has not ended.
    unsafe {
        while ffi::MPI_Test(handle, &mut ended, ffi::RSMPI_STATUS_IGNORE) == 0 {
            if ended != 0 || Instant::now() >= limit {
                break;
            }
            std::thread::yield_now();
        }
    }
    ended != 0
}

/// The bytes of a message that a receive has brought.
pub fn size_of(status: &ffi::MPI_Status) -> usize {
    let mut size = 0;
    // SAFETY: MPI has written the status of a receive.
    unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut size) };
    size.max(0) as usize
}

/// Whether the request was cancelled before MPI had matched it.
pub fn is_cancelled(status: &ffi::MPI_Status) -> bool {
    let mut cancelled = 0;
    // SAFETY: MPI has written the status of a request.
    unsafe { ffi::MPI_Test_cancelled(status, &mut cancelled) };
    cancelled != 0
}

/// Whether MPI has freed the request.
pub fn is_null(handle: ffi::MPI_Request) -> bool {
    // SAFETY: a constant of the MPI that the module was built for.
    handle == unsafe { ffi::RSMPI_REQUEST_NULL }
}
