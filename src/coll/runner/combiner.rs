//! What a step that combines does with elements.

use crate::coll::reduction::Kernel;
use crate::util::rounding::Environment;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A reduction of the user's: left, right, result, elements, data.
pub type Reduction =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, u64, *mut c_void);

/// A function of the user's and its last argument. A plan that is kept for blocking calls gets
/// those of each call, between two rounds; the threads of this rank, which alone call the function,
/// see them as they see that the round has begun.
pub struct UserFunction {
    function: AtomicPtr<c_void>,
    data: AtomicPtr<c_void>,
}

impl UserFunction {
    /// This function with this last argument.
    pub fn new(function: Reduction, data: *mut c_void) -> UserFunction {
        UserFunction { function: AtomicPtr::new(function as *mut c_void), data: data.into() }
    }

    /// From the next round on this function is called. No round is under way.
    pub fn set(&self, function: Reduction, data: *mut c_void) {
        self.function.store(function as *mut c_void, Ordering::Relaxed);
        self.data.store(data, Ordering::Relaxed);
    }

    fn get(&self) -> (Reduction, *mut c_void) {
        let function = self.function.load(Ordering::Relaxed);
        // SAFETY: new() and set() have stored a function of this type.
        let function = unsafe { std::mem::transmute::<*mut c_void, Reduction>(function) };
        (function, self.data.load(Ordering::Relaxed))
    }
}

/// How elements are combined.
#[derive(Clone)]
pub enum Combiner {
    /// By one of the library's loops; in this environment, if the result depends on it.
    Kernel(Kernel, Option<Environment>),
    /// By the user's function, in this environment.
    User(Arc<UserFunction>, Environment),
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
            Combiner::User(user, environment) => environment.around(|| {
                let (function, data) = user.get();
                // SAFETY: as above.
                unsafe { function(left.cast(), right.cast(), to.cast(), elements, data) }
            }),
        }
    }
}
