//! Deaths that MPI itself reports: User-Level Failure Mitigation (ULFM), which Open MPI 5 has under
//! `mpirun --with-ft ulfm`. There a process's death does not end the job. Calls of MPI that concern
//! the dead process return an error. A receive from any rank does so until the death is
//! acknowledged.
//!
//! The functions are extensions of MPI, so the module looks them up when it runs.

use crate::requests::RECEIVES;
use mpi_sys as ffi;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// MPIX_Comm_failure_ack.
type Acknowledge = unsafe extern "C" fn(ffi::MPI_Comm) -> i32;
/// MPIX_Comm_failure_get_acked.
type Acknowledged = unsafe extern "C" fn(ffi::MPI_Comm, *mut ffi::MPI_Group) -> i32;

/// Most errors that receives from any rank return for a death that is known already.
const LATE_ERRORS: usize = 4 * RECEIVES;

/// The dead ranks that MPI knows of.
pub struct Failures {
    communicator: ffi::MPI_Comm,
    functions: Option<(Acknowledge, Acknowledged)>,
    dead: BTreeSet<u32>,
    /// Dead ranks that take() has not returned yet.
    news: Vec<u32>,
    /// How many errors had no other reason than a death that was known already.
    late: usize,
}

/// Looks a function of this module's MPI up.
fn find(name: &CStr) -> Option<*mut libc::c_void> {
    // SAFETY: a name that ends with 0. The search includes the libraries that the module needs.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// This MPI's functions, if it has them. MPICH 4's abort the process.
fn functions() -> Option<(Acknowledge, Acknowledged)> {
    if !env!("LLCL_MPI_BUILT_FOR").starts_with("openmpi") {
        return None;
    }
    let both = find(c"MPIX_Comm_failure_ack").zip(find(c"MPIX_Comm_failure_get_acked"));
    // SAFETY: functions of these types, as the proposal to the MPI Forum specifies them.
    both.map(|(acknowledge, acknowledged)| unsafe {
        (
            std::mem::transmute::<*mut libc::c_void, Acknowledge>(acknowledge),
            std::mem::transmute::<*mut libc::c_void, Acknowledged>(acknowledged),
        )
    })
}

/// Whether this MPI has the functions.
pub fn exist() -> bool {
    functions().is_some()
}

impl Failures {
    /// No deaths are known.
    pub fn new(communicator: ffi::MPI_Comm) -> Failures {
        Failures {
            communicator,
            functions: functions(),
            dead: BTreeSet::new(),
            news: Vec::new(),
            late: 0,
        }
    }

    /// A call of MPI has returned an error: asks MPI for deaths in the communicator, and
    /// acknowledges them. Returns whether there are any that were not known before.
    pub fn look(&mut self) -> bool {
        let Some((acknowledge, acknowledged)) = self.functions else { return false };
        let mut group = MaybeUninit::uninit();
        // SAFETY: the communicator is not freed; the second call writes the group.
        let dead = unsafe {
            if acknowledge(self.communicator) != 0
                || acknowledged(self.communicator, group.as_mut_ptr()) != 0
            {
                return false;
            }
            ranks_of(group.assume_init(), self.communicator)
        };
        let before = self.news.len();
        self.news.extend(dead.into_iter().filter(|rank| self.dead.insert(*rank)));
        self.news.len() > before
    }

    /// A call of MPI has returned an error. Whether its reason is a death, after which MPI can be
    /// used as before. `ended`: MPI has ended a request with that error; otherwise a receive from
    /// any rank has it, and goes on. Some of these return the error after the acknowledgement; so
    /// the errors of this kind are limited.
    pub fn excuse(&mut self, ended: bool) -> bool {
        if self.look() || ended && !self.dead.is_empty() {
            return true;
        }
        self.late += 1;
        self.late <= LATE_ERRORS * self.dead.len()
    }

    /// Whether MPI has reported this peer's death.
    pub fn has(&self, peer: u32) -> bool {
        self.dead.contains(&peer)
    }

    /// Whether take() would return any.
    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// The ranks whose deaths were reported since the last call.
    pub fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.news)
    }
}

/// The ranks in the communicator of a group's processes. Frees the group.
///
/// # Safety
/// Both are MPI's, and not freed.
unsafe fn ranks_of(mut group: ffi::MPI_Group, communicator: ffi::MPI_Comm) -> Vec<u32> {
    let (mut size, mut all) = (0, MaybeUninit::uninit());
    // SAFETY: as the caller promises; arrays of `size` places.
    unsafe {
        ffi::MPI_Group_size(group, &mut size);
        let from: Vec<i32> = (0..size).collect();
        let mut ranks = vec![-1; from.len()];
        if ffi::MPI_Comm_group(communicator, all.as_mut_ptr()) == 0 {
            let mut all = all.assume_init();
            ffi::MPI_Group_translate_ranks(group, size, from.as_ptr(), all, ranks.as_mut_ptr());
            ffi::MPI_Group_free(&mut all);
        }
        ffi::MPI_Group_free(&mut group);
        ranks.into_iter().filter_map(|rank| u32::try_from(rank).ok()).collect()
    }
}
