//! The loops that combine elements.
//!
//! Other processes map the memory of the operands, so the kernels use raw pointers and never
//! references. User buffers need not be aligned. A kernel reads a block of 64 bytes whole before it
//! writes it, so the compiler can use vector instructions without checks whether ranges are equal.
//! On machines with AVX2 the library uses a second copy of each kernel, compiled for AVX2: the
//! common subset of x86-64 has no vector instructions for comparisons and products of 64-bit
//! integers.

use super::extended::Extended;
use super::half::{Bf16, F16, Half};
use super::pair::{Padded, Pair, Short, WidelyPadded};
use super::{Op, Type};

/// Stores `left op right` at `to`, for `elements` elements: `(left, right, to, elements)`.
///
/// # Safety
/// All three ranges are mapped, the last one for writing. While the kernel runs no other thread
/// writes to the inputs or accesses the output. Each input is the output or does not overlap it. No
/// range need be aligned.
pub type Kernel = unsafe fn(*const u8, *const u8, *mut u8, usize);

/// The kernel of a type and an operation. None: the type does not have the operation, the user's
/// function combines, or it is a long double of unknown format.
pub fn kernel(kind: Type, op: Op) -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return wide(kind, op);
    }
    plain(kind, op)
}

/// Runs `f` on all elements; see [`Kernel`]. Reads each block of `N` elements whole before writing
/// it.
#[inline(always)]
unsafe fn combine<T: Copy, const N: usize>(
    left: *const u8,
    right: *const u8,
    to: *mut u8,
    elements: usize,
    f: impl Fn(T, T) -> T,
) {
    let (left, right, to) = (left.cast::<T>(), right.cast::<T>(), to.cast::<T>());
    let whole = elements - elements % N;
    for i in (0..whole).step_by(N) {
        // SAFETY: the caller promises `elements` elements at each of the three.
        unsafe {
            let mut block = left.add(i).cast::<[T; N]>().read_unaligned();
            let other = right.add(i).cast::<[T; N]>().read_unaligned();
            for (left, right) in block.iter_mut().zip(other) {
                *left = f(*left, right);
            }
            to.add(i).cast::<[T; N]>().write_unaligned(block);
        }
    }
    for i in whole..elements {
        // SAFETY: as above.
        unsafe {
            let result = f(left.add(i).read_unaligned(), right.add(i).read_unaligned());
            to.add(i).write_unaligned(result);
        }
    }
}

/// One kernel, with the attributes of its table.
macro_rules! kernel {
    ($(#[$attribute:meta])*, $number:ty, $f:expr) => {{
        $(#[$attribute])*
        unsafe fn run(left: *const u8, right: *const u8, to: *mut u8, elements: usize) {
            const N: usize = 64 / size_of::<$number>();
            // SAFETY: by the promise of the caller.
            unsafe { combine::<$number, N>(left, right, to, elements, $f) }
        }
        Some(run as Kernel)
    }};
}

macro_rules! integer {
    ($(#[$attribute:meta])*, $number:ty, $op:expr) => {
        match $op {
            Op::Add => kernel!($(#[$attribute])*, $number, |a, b| a.wrapping_add(b)),
            Op::Prod => kernel!($(#[$attribute])*, $number, |a, b| a.wrapping_mul(b)),
            Op::Min => kernel!($(#[$attribute])*, $number, |a, b| a.min(b)),
            Op::Max => kernel!($(#[$attribute])*, $number, |a, b| a.max(b)),
            Op::And => kernel!($(#[$attribute])*, $number, |a, b| a & b),
            Op::Or => kernel!($(#[$attribute])*, $number, |a, b| a | b),
            Op::Xor => kernel!($(#[$attribute])*, $number, |a, b| a ^ b),
            _ => None,
        }
    };
}

macro_rules! floating {
    ($(#[$attribute:meta])*, $number:ty, $op:expr) => {
        match $op {
            Op::Add => kernel!($(#[$attribute])*, $number, |a, b| a + b),
            Op::Prod => kernel!($(#[$attribute])*, $number, |a, b| a * b),
            Op::Min => kernel!($(#[$attribute])*, $number, |a, b| a.min(b)),
            Op::Max => kernel!($(#[$attribute])*, $number, |a, b| a.max(b)),
            _ => None,
        }
    };
}

/// Complex numbers in the layout of C. The product follows its definition; each product and sum of
/// real numbers is rounded.
macro_rules! complex {
    ($(#[$attribute:meta])*, $number:ty, $op:expr) => {
        match $op {
            Op::Add => {
                kernel!($(#[$attribute])*, [$number; 2], |[a, b], [c, d]| [a + c, b + d])
            }
            Op::Prod => kernel!($(#[$attribute])*, [$number; 2], |[a, b], [c, d]| [
                a * c - b * d,
                a * d + b * c,
            ]),
            _ => None,
        }
    };
}

/// Any byte but 0 is true; results are 0 or 1.
macro_rules! logical {
    ($(#[$attribute:meta])*, $op:expr) => {
        match $op {
            Op::And => kernel!($(#[$attribute])*, u8, |a, b| u8::from((a != 0) & (b != 0))),
            Op::Or => kernel!($(#[$attribute])*, u8, |a, b| u8::from((a | b) != 0)),
            Op::Xor => kernel!($(#[$attribute])*, u8, |a, b| u8::from((a != 0) ^ (b != 0))),
            _ => None,
        }
    };
}

macro_rules! located {
    ($(#[$attribute:meta])*, $pair:ty, $op:expr) => {
        match $op {
            Op::MinLoc => kernel!($(#[$attribute])*, $pair, |a, b| a.least(b)),
            Op::MaxLoc => kernel!($(#[$attribute])*, $pair, |a, b| a.greatest(b)),
            _ => None,
        }
    };
}

macro_rules! table {
    ($(#[doc = $doc:literal])* fn $name:ident, $(#[$attribute:meta])*) => {
        $(#[doc = $doc])*
        pub(super) fn $name(kind: Type, op: Op) -> Option<Kernel> {
            match kind {
                Type::Bytes => None,
                Type::I8 => integer!($(#[$attribute])*, i8, op),
                Type::U8 => integer!($(#[$attribute])*, u8, op),
                Type::I16 => integer!($(#[$attribute])*, i16, op),
                Type::U16 => integer!($(#[$attribute])*, u16, op),
                Type::I32 => integer!($(#[$attribute])*, i32, op),
                Type::U32 => integer!($(#[$attribute])*, u32, op),
                Type::I64 => integer!($(#[$attribute])*, i64, op),
                Type::U64 => integer!($(#[$attribute])*, u64, op),
                Type::Bool => logical!($(#[$attribute])*, op),
                Type::F16 => floating!($(#[$attribute])*, Half<F16>, op),
                Type::Bf16 => floating!($(#[$attribute])*, Half<Bf16>, op),
                Type::F32 => floating!($(#[$attribute])*, f32, op),
                Type::F64 => floating!($(#[$attribute])*, f64, op),
                Type::LongDouble if Extended::IS_KNOWN => {
                    floating!($(#[$attribute])*, Extended, op)
                }
                Type::LongDouble => None,
                Type::ComplexF32 => complex!($(#[$attribute])*, f32, op),
                Type::ComplexF64 => complex!($(#[$attribute])*, f64, op),
                Type::F32I32 => located!($(#[$attribute])*, Pair<f32, i32>, op),
                Type::F64I32 => located!($(#[$attribute])*, Pair<f64, Padded>, op),
                Type::I32I32 => located!($(#[$attribute])*, Pair<i32, i32>, op),
                Type::I64I32 => located!($(#[$attribute])*, Pair<i64, Padded>, op),
                Type::I64I64 => located!($(#[$attribute])*, Pair<i64, i64>, op),
                Type::F64I64 => located!($(#[$attribute])*, Pair<f64, i64>, op),
                Type::I16I32 => located!($(#[$attribute])*, Pair<Short, i32>, op),
                Type::LongDoubleI32 if Extended::IS_KNOWN => {
                    located!($(#[$attribute])*, Pair<Extended, WidelyPadded>, op)
                }
                Type::LongDoubleI32 => None,
            }
        }
    };
}

table!(
    /// The kernels that run on every machine of the architecture.
    fn plain,
);

#[cfg(target_arch = "x86_64")]
table!(
    /// The kernels that run only on machines with AVX2.
    fn wide, #[target_feature(enable = "avx2")]
);
