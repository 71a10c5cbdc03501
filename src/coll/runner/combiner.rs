//! How a combining step combines elements.

use crate::coll::reduction::Kernel;
use crate::util::rounding::Environment;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A user's reduction function: left, right, result, elements, data.
pub type Reduction =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, u64, *mut c_void);

/// A user's function and its last argument. If the cache keeps the plan, each call sets both
/// between two rounds. Only threads of this rank call the function, and the start of the round
/// publishes both to them.
pub struct UserFunction {
    function: AtomicPtr<c_void>,
    data: AtomicPtr<c_void>,
}

impl UserFunction {
    /// This function with this last argument.
    pub fn new(function: Reduction, data: *mut c_void) -> UserFunction {
        UserFunction { function: AtomicPtr::new(function as *mut c_void), data: data.into() }
    }

    /// Sets function and data for the next rounds. No round may be under way.
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
    /// A loop of the library, run in the given environment if the result depends on it.
    Kernel(Kernel, Option<Environment>),
    /// The user's function, run in this environment.
    User(Arc<UserFunction>, Environment),
}

impl Combiner {
    /// Combines elements.
    ///
    /// # Safety
    /// See Kernel for the ranges; the user's function must do what its type says.
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
