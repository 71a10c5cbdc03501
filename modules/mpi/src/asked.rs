//! MPI_Testsome and MPI_Test with their errors. After a peer's death (see `failures`) an error may
//! belong to single requests, and others may have ended well.

use crate::calls::is_null;
use crate::failures::Failures;
use crate::mpi::{self, Failure};
use mpi_sys as ffi;
use std::mem::MaybeUninit;

/// How MPI has ended a request.
pub enum End {
    /// The status of a message, or of a receive that was cancelled.
    Well(ffi::MPI_Status),
    /// The peer has died.
    Dead,
}

/// Asks MPI whether a request has ended. None: it has not.
///
/// A receive from any rank that had the error of a death, and later receives a message, returns
/// that error with the message's status in Open MPI 5, which does not free the request then.
#[inline(always)]
pub fn test(
    handle: &mut ffi::MPI_Request,
    failures: &mut Failures,
) -> Result<Option<End>, Failure> {
    let (mut ended, mut status) = (0, MaybeUninit::uninit());
    // SAFETY: a request that MPI has not ended.
    let code = unsafe { ffi::MPI_Test(handle, &mut ended, status.as_mut_ptr()) };
    let ended = ended != 0;
    if let Err(failure) = mpi::check("MPI_Test", code)
        && let Some(end) = end_of_failed(handle, ended, failure, failures)?
    {
        return Ok(end);
    }
    // SAFETY: MPI writes a status for a request that has ended.
    Ok(ended.then(|| End::Well(unsafe { status.assume_init() })))
}

/// What an error of MPI_Test says of the request: that it has ended well in spite of the error
/// (None), that it is still under way (`Some(None)`), or that the peer has died.
#[cold]
fn end_of_failed(
    handle: &mut ffi::MPI_Request,
    ended: bool,
    failure: Failure,
    failures: &mut Failures,
) -> Result<Option<Option<End>>, Failure> {
    let freed = is_null(*handle);
    if !failures.excuse(ended || freed) {
        return Err(failure);
    }
    if freed || !ended {
        return Ok(Some(freed.then_some(End::Dead)));
    }
    // SAFETY: a request that has ended.
    unsafe { ffi::MPI_Request_free(handle) };
    Ok(None)
}

/// Requests about which MPI_Testsome is asked. The arrays are kept for their memory.
#[derive(Default)]
pub struct Asked {
    pub handles: Vec<ffi::MPI_Request>,
    indices: Vec<i32>,
    statuses: Vec<MaybeUninit<ffi::MPI_Status>>,
}

impl Asked {
    /// Asks MPI which of `handles` have ended. Returns their indices in rising order. MPI changes
    /// the handles also if it returns an error.
    pub fn ask(&mut self, failures: &mut Failures) -> Result<Vec<(usize, End)>, Failure> {
        let (count, mut ended) = (self.handles.len(), 0);
        self.indices.resize(count, 0);
        self.statuses.resize(count, MaybeUninit::uninit());
        // SAFETY: arrays of `count` places each.
        let code = unsafe {
            ffi::MPI_Testsome(
                count as i32,
                self.handles.as_mut_ptr(),
                &mut ended,
                self.indices.as_mut_ptr(),
                self.statuses.as_mut_ptr().cast(),
            )
        };
        // MPI_UNDEFINED, which is negative, means that no request was active.
        let ended = ended.max(0) as usize;
        let failed = mpi::check("MPI_Testsome", code).err();
        if let Some(failure) = &failed
            && !failures.excuse(ended > 0)
        {
            return Err(failure.clone());
        }
        let mut ends = Vec::with_capacity(ended);
        for (index, status) in self.indices[..ended].iter().zip(&self.statuses) {
            let index = *index as usize;
            // SAFETY: MPI has written a status for each index.
            let status = unsafe { status.assume_init_ref() };
            // Without an error MPI need not write the field MPI_ERROR.
            let end = match failed.is_some() && status.MPI_ERROR != 0 {
                false => Some(End::Well(*status)),
                true if is_null(self.handles[index]) => Some(End::Dead),
                true => test(&mut self.handles[index], failures)?,
            };
            ends.extend(end.map(|end| (index, end)));
        }
        if failed.is_some() {
            // Open MPI frees all requests with errors, also those that it does not name.
            let named = &self.indices[..ended];
            let freed = |index: &usize| is_null(self.handles[*index]);
            let unnamed = |index: &usize| freed(index) && !named.contains(&(*index as i32));
            ends.extend((0..count).filter(unnamed).map(|index| (index, End::Dead)));
        }
        ends.sort_unstable_by_key(|(index, _)| *index);
        Ok(ends)
    }
}
