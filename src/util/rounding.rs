//! The floating-point environment: the state of a thread on which results depend, which is the
//! direction of rounding and whether denormal numbers count as zero. Threads of several ranks may
//! execute the reductions of a plan. All of them use the environment of the threads that made the
//! plan.
//!
//! On x86-64 it has rounding, FTZ and DAZ of MXCSR, and for long double rounding and precision of
//! the x87 control word. On AArch64 it has rounding, FZ, FZ16 and DN of FPCR. On other processors
//! it is empty. The masks and sticky flags of exceptions are not part of it.

use std::fmt;

/// The bits named above: those of the vector unit, and those of x87.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    vector: u32,
    extended: u16,
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;

    /// Rounding 13-14, FTZ 15, DAZ 6.
    pub const VECTOR: u64 = 0xe040;
    /// Rounding 10-11, precision 8-9.
    pub const EXTENDED: u16 = 0xf00;
    /// To nearest, with denormal numbers, and 64 bits of precision.
    pub const DEFAULT: super::Environment = super::Environment { vector: 0, extended: 0x300 };
    pub const ROUNDING: (u32, [&str; 4]) = (13, ["to nearest", "down", "up", "to zero"]);
    pub const FLUSH: [(u32, &str); 2] = [(1 << 15, "FTZ"), (1 << 6, "DAZ")];

    #[inline(always)]
    pub fn vector() -> u64 {
        let mut word = 0u32;
        // SAFETY: stores four bytes at `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack)) };
        word.into()
    }

    #[inline(always)]
    pub fn set_vector(word: u64) {
        let word = word as u32;
        // SAFETY: the value is one that was read, with defined bits changed.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
    }

    #[inline(always)]
    pub fn extended() -> u16 {
        let mut word = 0u16;
        // SAFETY: stores two bytes at `word`.
        unsafe { asm!("fnstcw word ptr [{}]", in(reg) &raw mut word, options(nostack)) };
        word
    }

    /// The x87 bits of a program that has set its rounding by fesetround().
    pub fn usual(vector: u32) -> u16 {
        0x300 | ((vector >> 13 & 3) as u16) << 10
    }

    #[inline(always)]
    pub fn set_extended(word: u16) {
        // SAFETY: the value is one that was read, with defined bits changed.
        unsafe { asm!("fldcw word ptr [{}]", in(reg) &raw const word, options(nostack)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use std::arch::asm;

    /// DN 25, FZ 24, rounding 22-23, FZ16 19.
    pub const VECTOR: u64 = 0x3c8_0000;
    pub const EXTENDED: u16 = 0;
    pub const DEFAULT: super::Environment = super::Environment { vector: 0, extended: 0 };
    pub const ROUNDING: (u32, [&str; 4]) = (22, ["to nearest", "up", "down", "to zero"]);
    pub const FLUSH: [(u32, &str); 3] = [(1 << 24, "FZ"), (1 << 19, "FZ16"), (1 << 25, "DN")];

    #[inline(always)]
    pub fn vector() -> u64 {
        let word: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nostack)) };
        word
    }

    #[inline(always)]
    pub fn set_vector(word: u64) {
        // SAFETY: the value is one that was read, with defined bits changed.
        unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack)) };
    }

    #[inline(always)]
    pub fn extended() -> u16 {
        0
    }

    #[inline(always)]
    pub fn set_extended(_: u16) {}

    pub fn usual(_: u32) -> u16 {
        0
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    pub const VECTOR: u64 = 0;
    pub const EXTENDED: u16 = 0;
    pub const DEFAULT: super::Environment = super::Environment { vector: 0, extended: 0 };
    pub const ROUNDING: (u32, [&str; 4]) = (0, ["unknown"; 4]);
    pub const FLUSH: [(u32, &str); 0] = [];
    pub fn vector() -> u64 {
        0
    }
    pub fn set_vector(_: u64) {}
    pub fn extended() -> u16 {
        0
    }
    pub fn set_extended(_: u16) {}
    pub fn usual(_: u32) -> u16 {
        0
    }
}

impl Environment {
    /// The environment of a new process: rounding to nearest, with denormal numbers.
    pub const DEFAULT: Environment = machine::DEFAULT;

    /// The calling thread's environment.
    pub fn mine() -> Environment {
        let vector = (machine::vector() & machine::VECTOR) as u32;
        Environment { vector, extended: machine::extended() & machine::EXTENDED }
    }

    /// Runs `work` in this environment on the calling thread, and then restores the thread's own,
    /// unless both are equal. `work` must not unwind.
    #[inline(always)]
    pub fn around<T>(self, work: impl FnOnce() -> T) -> T {
        let (vector, extended) = (machine::vector(), machine::extended());
        let own = vector & machine::VECTOR == self.vector.into()
            && extended & machine::EXTENDED == self.extended;
        if own { work() } else { self.set_around(work, vector, extended) }
    }

    #[cold]
    #[inline(never)]
    fn set_around<T>(self, work: impl FnOnce() -> T, vector: u64, extended: u16) -> T {
        machine::set_vector(vector & !machine::VECTOR | u64::from(self.vector));
        machine::set_extended(extended & !machine::EXTENDED | self.extended);
        let result = work();
        machine::set_extended(extended);
        machine::set_vector(vector);
        result
    }

    /// The environment as a number, which ranks compare.
    pub fn number(self) -> u64 {
        u64::from(self.vector) << 16 | u64::from(self.extended)
    }

    /// The environment of a number.
    pub fn from_number(number: u64) -> Environment {
        Environment { vector: (number >> 16) as u32, extended: number as u16 }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shift, names) = machine::ROUNDING;
        write!(to, "rounding {}", names[(self.vector >> shift & 3) as usize])?;
        for (bit, name) in machine::FLUSH {
            if self.vector & bit != 0 {
                write!(to, " with {name}")?;
            }
        }
        match self.extended == machine::usual(self.vector) {
            true => Ok(()),
            false => write!(to, " (x87 control {:#x})", self.extended),
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn work_runs_in_the_environment_and_the_thread_keeps_its_own() {
        let own = Environment::mine();
        let flushing = Environment { vector: 0x8040, ..own };
        let upwards = Environment { vector: 2 << 13, ..own };
        let halved = || black_box(f64::MIN_POSITIVE) / black_box(2.0);
        let sum = || black_box(1.0f64) + black_box(1e-20);
        assert_eq!((flushing.around(halved), own.around(halved)), (0.0, f64::MIN_POSITIVE / 2.0));
        assert_eq!((upwards.around(sum), own.around(sum)), (1.0 + f64::EPSILON, 1.0));
        assert_eq!(upwards.around(Environment::mine), upwards);
        assert_eq!(Environment::mine(), own);
        assert_eq!(Environment::from_number(upwards.number()), upwards);
        assert_eq!(Environment::DEFAULT, own);
        let upwards = Environment { extended: 0xb00, ..upwards };
        assert_eq!(upwards.to_string(), "rounding up");
        let short = Environment { extended: 0x200, ..own };
        assert_eq!(short.to_string(), "rounding to nearest (x87 control 0x200)");
        assert_eq!(flushing.to_string(), "rounding to nearest with FTZ with DAZ");
    }
}
