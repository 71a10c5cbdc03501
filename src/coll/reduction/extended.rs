//! long double on x86-64, where it is the x87 format of 80 bits, stored in 16 bytes. Elsewhere the
//! library moves long double and passes it to the user's functions, but cannot combine it.

use std::ops::{Add, Mul};

/// A number of 80 bits. The bytes that follow it have no meaning, and are 0 in results.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Extended {
    mantissa: u64,
    /// Sign, and 15 bits of exponent.
    above: u16,
    gap: [u16; 3],
}

impl Extended {
    /// Whether long double has this format here.
    pub const IS_KNOWN: bool = cfg!(target_arch = "x86_64");

    /// Whether it is a NaN.
    #[inline(always)]
    pub fn is_nan(self) -> bool {
        self.above & 0x7fff == 0x7fff && self.mantissa << 1 != 0
    }

    /// An integer with the same order as the numbers, NaN excepted.
    #[inline(always)]
    pub fn key(self) -> i128 {
        let size = i128::from(self.above & 0x7fff) << 64 | i128::from(self.mantissa);
        if self.above & 0x8000 != 0 { -size } else { size }
    }

    #[inline(always)]
    fn alone(self) -> Extended {
        Extended { gap: [0; 3], ..self }
    }

    /// The smaller number; of a number and a NaN the number.
    #[inline(always)]
    pub fn min(self, other: Extended) -> Extended {
        let takes = self.is_nan() || !other.is_nan() && other.key() < self.key();
        if takes { other.alone() } else { self.alone() }
    }

    /// The larger number; of a number and a NaN the number.
    #[inline(always)]
    pub fn max(self, other: Extended) -> Extended {
        let takes = self.is_nan() || !other.is_nan() && other.key() > self.key();
        if takes { other.alone() } else { self.alone() }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! x87 {
    ($left:expr, $right:expr, $instruction:literal) => {{
        let (left, right) = ($left, $right);
        let mut result = left.alone();
        // SAFETY: reads 10 bytes of each operand and writes 10 bytes of the result. The x87
        // registers are declared as clobbered, so they are empty before, and the code leaves them
        // empty.
        unsafe {
            std::arch::asm!(
                "fld tbyte ptr [{left}]",
                "fld tbyte ptr [{right}]",
                $instruction,
                "fstp tbyte ptr [{to}]",
                left = in(reg) &raw const left,
                right = in(reg) &raw const right,
                to = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack)
            );
        }
        result
    }};
}

/// On other machines this type has no kernels.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! x87 {
    ($left:expr, $right:expr, $instruction:literal) => {{
        let _ = $right;
        $left.alone()
    }};
}

impl Add for Extended {
    type Output = Extended;
    #[inline(always)]
    fn add(self, other: Extended) -> Extended {
        x87!(self, other, "faddp st(1), st")
    }
}

impl Mul for Extended {
    type Output = Extended;
    #[inline(always)]
    fn mul(self, other: Extended) -> Extended {
        x87!(self, other, "fmulp st(1), st")
    }
}
