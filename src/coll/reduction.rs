//! The arithmetic of collectives: `to[i] = left[i] op right[i]`, one [`Kernel`] for each type and
//! operation, looked up once per plan.
//!
//! Other processes map the same memory, so the kernels use raw pointers only, never references;
//! user buffers need not be aligned. A kernel takes blocks of 64 bytes and reads a block whole
//! before it writes it: so the compiler makes vector instructions of it without asking which ranges
//! are the same. Where the machine has AVX2 a second copy of each kernel, compiled for that, is
//! taken: the common subset of x86-64 compares and multiplies 64-bit integers one by one.

use crate::engine::atomic::{kind, op};
use crate::fail;
use crate::util::status::Result;

/// Types of elements, numbered as in the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Type {
    I32 = kind::I32,
    U32 = kind::U32,
    I64 = kind::I64,
    U64 = kind::U64,
    F32 = kind::F32,
    F64 = kind::F64,
    I8 = 7,
    U8 = 8,
    I16 = 9,
    U16 = 10,
}

impl Type {
    /// All of them.
    pub const ALL: [Type; 10] = {
        use Type::*;
        [I32, U32, I64, U64, F32, F64, I8, U8, I16, U16]
    };

    /// The type of this number.
    pub fn from_code(code: u32) -> Option<Type> {
        Type::ALL.into_iter().find(|kind| *kind as u32 == code)
    }

    /// Bytes of an element.
    pub fn width(self) -> u64 {
        match self {
            Type::I8 | Type::U8 => 1,
            Type::I16 | Type::U16 => 2,
            Type::I32 | Type::U32 | Type::F32 => 4,
            Type::I64 | Type::U64 | Type::F64 => 8,
        }
    }

    /// Whether it is a number that arithmetic rounds.
    pub fn is_floating(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }
}

/// Operations, numbered as in the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// The sum; integers wrap around.
    Add = op::ADD,
    /// Bitwise and, of integers.
    And = op::AND,
    /// Bitwise or, of integers.
    Or = op::OR,
    /// Bitwise exclusive or, of integers.
    Xor = op::XOR,
    /// The smaller one; of a number and a NaN the number.
    Min = op::MIN,
    /// The larger one; of a number and a NaN the number.
    Max = op::MAX,
    /// The product; integers wrap around.
    Prod = 12,
    /// The user's own function, which is no kernel.
    User = 13,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 8] = {
        use Op::*;
        [Add, And, Or, Xor, Min, Max, Prod, User]
    };

    /// The operation of this number.
    pub fn from_code(code: u32) -> Option<Op> {
        Op::ALL.into_iter().find(|op| *op as u32 == code)
    }
}

/// Whether the operation makes sense for the type: bits of floating-point numbers are not combined.
pub fn check(kind: Type, op: Op) -> Result<()> {
    if kind.is_floating() && matches!(op, Op::And | Op::Or | Op::Xor) {
        fail!(ERR_UNSUPPORTED, "op is {op:?}, which is for integers; type is {kind:?}");
    }
    Ok(())
}

/// Stores `left op right` at `to`, for `elements` elements: `(left, right, to, elements)`.
///
/// # Safety All three ranges are mapped, the last for writing, and nobody writes to the inputs or
/// touches the output meanwhile. Each input is the output or does not overlap it. Nothing need be
/// aligned.
pub type Kernel = unsafe fn(*const u8, *const u8, *mut u8, usize);

/// The kernel of a type and an operation; None for the user's function and for what [`check`]
/// refuses.
pub fn kernel(kind: Type, op: Op) -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return wide(kind, op);
    }
    plain(kind, op)
}

/// Runs `f` over all elements; see [`Kernel`]. Blocks of `N` elements are read whole before they
/// are written.
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
        // SAFETY: the caller vouches for `elements` elements at each of the three.
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

/// One kernel, under the attributes of the table that it is for.
macro_rules! kernel {
    ($(#[$attribute:meta])*, $number:ty, $f:expr) => {{
        $(#[$attribute])*
        unsafe fn run(left: *const u8, right: *const u8, to: *mut u8, elements: usize) {
            const N: usize = 64 / size_of::<$number>();
            // SAFETY: passed on to the caller.
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
            Op::User => None,
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
            Op::And | Op::Or | Op::Xor | Op::User => None,
        }
    };
}

macro_rules! table {
    ($(#[doc = $doc:literal])* fn $name:ident, $(#[$attribute:meta])*) => {
        $(#[doc = $doc])*
        fn $name(kind: Type, op: Op) -> Option<Kernel> {
            match kind {
                Type::I8 => integer!($(#[$attribute])*, i8, op),
                Type::U8 => integer!($(#[$attribute])*, u8, op),
                Type::I16 => integer!($(#[$attribute])*, i16, op),
                Type::U16 => integer!($(#[$attribute])*, u16, op),
                Type::I32 => integer!($(#[$attribute])*, i32, op),
                Type::U32 => integer!($(#[$attribute])*, u32, op),
                Type::I64 => integer!($(#[$attribute])*, i64, op),
                Type::U64 => integer!($(#[$attribute])*, u64, op),
                Type::F32 => floating!($(#[$attribute])*, f32, op),
                Type::F64 => floating!($(#[$attribute])*, f64, op),
            }
        }
    };
}

table!(
    /// The kernels that run on every machine.
    fn plain,
);

#[cfg(target_arch = "x86_64")]
table!(
    /// The kernels for machines with AVX2, and for those only.
    fn wide, #[target_feature(enable = "avx2")]
);

#[cfg(test)]
mod tests {
    use super::*;

    /// An integer of the type, widened.
    fn integer(kind: Type, bytes: &[u8]) -> i128 {
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        let number = i128::from_le_bytes(all);
        let bits = bytes.len() * 8;
        match kind {
            Type::I8 | Type::I16 | Type::I32 | Type::I64 if number >> (bits - 1) != 0 => {
                number - (1 << bits)
            }
            _ => number,
        }
    }

    fn is_nan(kind: Type, bytes: &[u8]) -> bool {
        number(kind, bytes).is_nan()
    }

    fn number(kind: Type, bytes: &[u8]) -> f64 {
        match kind {
            Type::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
            _ => f64::from_le_bytes(bytes.try_into().unwrap()),
        }
    }

    /// What the operation means, for one element.
    fn model(kind: Type, op: Op, left: &[u8], right: &[u8]) -> Vec<u8> {
        if !kind.is_floating() {
            let (a, b) = (integer(kind, left), integer(kind, right));
            let result = match op {
                Op::Add => a + b,
                Op::Prod => a.wrapping_mul(b),
                Op::Min => a.min(b),
                Op::Max => a.max(b),
                Op::And => a & b,
                Op::Or => a | b,
                Op::Xor => a ^ b,
                Op::User => unreachable!("no kernel"),
            };
            return result.to_le_bytes()[..left.len()].to_vec();
        }
        let (a, b) = (number(kind, left), number(kind, right));
        let smaller = a < b || b.is_nan();
        let larger = a > b || b.is_nan();
        match op {
            Op::Min => return if smaller { left } else { right }.to_vec(),
            Op::Max => return if larger { left } else { right }.to_vec(),
            _ => {}
        }
        match (kind, op) {
            // One operation on f64 and then rounding gives what the operation on f32 gives.
            (Type::F32, Op::Add) => ((a + b) as f32).to_le_bytes().to_vec(),
            (Type::F32, _) => ((a * b) as f32).to_le_bytes().to_vec(),
            (_, Op::Add) => (a + b).to_le_bytes().to_vec(),
            _ => (a * b).to_le_bytes().to_vec(),
        }
    }

    /// Elements with the type's edges among them; for floats also infinities and NaN.
    fn elements(kind: Type, count: usize, mut state: u64) -> Vec<u8> {
        let width = kind.width() as usize;
        let mut bytes = Vec::new();
        for i in 0..count {
            state =
                state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            let random = (state >> 11) as i64 - (1 << 52);
            match kind {
                Type::F32 => {
                    let edges = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1.0];
                    let number = edges.get((state >> 33) as usize % 40);
                    bytes.extend(number.unwrap_or(&(random as f32 / 1e9)).to_le_bytes());
                }
                Type::F64 => {
                    let edges = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1.0];
                    let number = edges.get((state >> 33) as usize % 40);
                    bytes.extend(number.unwrap_or(&(random as f64 / 1e9)).to_le_bytes());
                }
                _ => {
                    let edges = [0, -1, i64::MAX, i64::MIN, 1 << (width * 8 - 1)];
                    let number = if i % 7 < 2 { edges[(state >> 33) as usize % 5] } else { random };
                    bytes.extend(&number.to_le_bytes()[..width]);
                }
            }
        }
        bytes
    }

    fn compare(kind: Type, op: Op, got: &[u8], left: &[u8], right: &[u8], note: &str) {
        let width = kind.width() as usize;
        for (i, got) in got.chunks(width).enumerate() {
            let range = i * width..(i + 1) * width;
            let want = model(kind, op, &left[range.clone()], &right[range]);
            let both_nan = kind.is_floating() && is_nan(kind, got) && is_nan(kind, &want);
            assert!(got == want || both_nan, "{kind:?} {op:?} {note}: element {i} is {got:?}");
        }
    }

    /// Runs a kernel on unaligned copies in the three ways; what lies around must stay as it is.
    fn exercise(kind: Type, op: Op, run: Kernel, count: usize) {
        let (left, right) = (elements(kind, count, 1), elements(kind, count, 2));
        let size = left.len();
        for shift in [0, 1, 3] {
            let framed = |bytes: &[u8]| {
                let mut memory = vec![0xa5u8; shift];
                memory.extend_from_slice(bytes);
                memory.extend_from_slice(&[0xa5; 9]);
                memory
            };
            let (mut a, mut b, mut c) = (framed(&left), framed(&right), framed(&vec![0; size]));
            for note in ["apart", "in place of the left", "in place of the right"] {
                // SAFETY: each pointer has `size` bytes behind it in its own vector.
                let to = unsafe {
                    let (pa, pb) = (a.as_mut_ptr().add(shift), b.as_mut_ptr().add(shift));
                    match note {
                        "apart" => {
                            run(pa, pb, c.as_mut_ptr().add(shift), count);
                            &c
                        }
                        "in place of the left" => {
                            run(pa, pb, pa, count);
                            &a
                        }
                        _ => {
                            a[shift..shift + size].copy_from_slice(&left);
                            run(a.as_ptr().add(shift), pb, pb, count);
                            &b
                        }
                    }
                };
                compare(kind, op, &to[shift..shift + size], &left, &right, note);
                let frame = to[..shift].iter().chain(&to[shift + size..]);
                assert!(frame.into_iter().all(|&byte| byte == 0xa5), "{kind:?} {op:?} {note}");
            }
        }
    }

    #[test]
    fn every_kernel_does_what_its_operation_means() {
        for kind in Type::ALL {
            for op in Op::ALL {
                let exists = op != Op::User && check(kind, op).is_ok();
                assert_eq!(kernel(kind, op).is_some(), exists, "{kind:?} {op:?}");
                assert_eq!(plain(kind, op).is_some(), exists, "{kind:?} {op:?}");
                for run in [kernel(kind, op), plain(kind, op)].into_iter().flatten() {
                    for count in [0, 1, 2, 3, 7, 31, 67, 300] {
                        exercise(kind, op, run, count);
                    }
                }
            }
        }
    }

    #[test]
    fn a_range_combined_with_itself() {
        let mut numbers = [3i64, -4, i64::MAX];
        let at = numbers.as_mut_ptr().cast::<u8>();
        // SAFETY: three numbers lie there.
        unsafe { kernel(Type::I64, Op::Add).unwrap()(at, at, at, 3) };
        assert_eq!(numbers, [6, -8, -2]);
    }

    #[test]
    fn numbers_are_those_of_the_interface() {
        let codes = [(5, Op::Add), (7, Op::And), (8, Op::Or), (9, Op::Xor), (10, Op::Min)];
        for (code, op) in codes.into_iter().chain([(11, Op::Max), (12, Op::Prod), (13, Op::User)]) {
            assert_eq!(Op::from_code(code), Some(op));
        }
        for code in (0..5).chain([6, 14, 261]) {
            assert_eq!(Op::from_code(code), None);
        }
        for (i, kind) in Type::ALL.into_iter().enumerate() {
            assert_eq!(Type::from_code(i as u32 + 1), Some(kind));
        }
        assert_eq!((Type::from_code(0), Type::from_code(11)), (None, None));
        assert!(check(Type::F64, Op::Xor).is_err() && check(Type::F64, Op::User).is_ok());
    }
}
