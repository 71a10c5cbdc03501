//! The deadline of a thread that runs handlers while it waits.

use std::cell::Cell;
use std::time::Instant;

/// Tells a waiting thread between two handlers whether it must give up. To read the clock takes as
/// long as a short handler, so has_passed() does so only when the kernel's tick, which is cheaper
/// to read, has changed: each 1 to 10 ms.
pub(super) struct Deadline {
    end: Option<Instant>,
    /// The tick of the kernel's clock at the last look at the other clock.
    tick: Cell<i64>,
    passed: Cell<bool>,
}

impl Deadline {
    /// `end`: None for a wait without a limit.
    pub(super) fn new(end: Option<Instant>) -> Deadline {
        Deadline { end, tick: Cell::new(0), passed: Cell::new(false) }
    }

    /// Whether the deadline has passed, up to a tick ago. Once true, it stays so.
    #[inline]
    pub(super) fn has_passed(&self) -> bool {
        let Some(end) = self.end else { return false };
        let tick = tick();
        if tick != self.tick.replace(tick) && Instant::now() >= end {
            self.passed.set(true);
        }
        self.passed.get()
    }
}

/// The time of the kernel's last tick, in ns: without a system call, and without a hardware clock.
fn tick() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    time.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec)
}
