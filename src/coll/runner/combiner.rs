//! What a step that combines does with elements.

use crate::coll::reduction::Kernel;
use crate::util::rounding::Environment;
use std::ffi::c_void;

/// A reduction of the user's: left, right, result, elements, data.
pub type Reduction =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, u64, *mut c_void);

/// How elements are combined.
#[derive(Clone, Copy)]
pub enum Combiner {
    /// By one of the library's loops; in this environment, if the result depends on it.
    Kernel(Kernel, Option<Environment>),
    /// By the user's function, with its data, in this environment.
    User(Reduction, *mut c_void, Environment),
}

impl Combiner {
    /// Combines elements.
    ///
    /// # Safety
    /// As Kernel says; the user's function is what its type says.
    pub(super) unsafe fn apply(
        &self,
        left: *const u8,
        right: *const u8,
        to: *mut u8,
        elements: u64,
    ) {
        // SAFETY: as the caller promises.
        let loops = |kernel: &Kernel| unsafe { kernel(left, right, to, elements as usize) };
        match self {
            Combiner::Kernel(kernel, None) => loops(kernel),
            Combiner::Kernel(kernel, Some(environment)) => environment.around(|| loops(kernel)),
            Combiner::User(function, data, environment) => environment.around(|| {
                // SAFETY: as above.
                unsafe { function(left.cast(), right.cast(), to.cast(), elements, *data) }
            }),
        }
    }
}
