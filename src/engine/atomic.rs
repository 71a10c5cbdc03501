//! The atomic operations on a mapped word. Callers, executors and owners all use this one
//! implementation, so all atomics on a word are totally ordered, whichever rank or path executes
//! them.

use crate::util::status::Status;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicI8, AtomicI16, AtomicI32, AtomicI64};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// Operations, with the numbers of the C interface.
pub mod op {
    #![allow(missing_docs)]
    pub const LOAD: u8 = 1;
    pub const STORE: u8 = 2;
    pub const SWAP: u8 = 3;
    pub const COMPARE_SWAP: u8 = 4;
    pub const ADD: u8 = 5;
    pub const SUB: u8 = 6;
    pub const AND: u8 = 7;
    pub const OR: u8 = 8;
    pub const XOR: u8 = 9;
    pub const MIN: u8 = 10;
    pub const MAX: u8 = 11;
    pub const PROD: u8 = 12;
}

/// Types, with the numbers of the C interface.
pub mod kind {
    #![allow(missing_docs)]
    pub const I32: u8 = 1;
    pub const U32: u8 = 2;
    pub const I64: u8 = 3;
    pub const U64: u8 = 4;
    pub const F32: u8 = 5;
    pub const F64: u8 = 6;
    pub const I8: u8 = 7;
    pub const U8: u8 = 8;
    pub const I16: u8 = 9;
    pub const U16: u8 = 10;
}

/// The names of operations in the C interface behind LLCL_OP_, from number 1 on.
const OPS: [&str; 15] = [
    "LOAD",
    "STORE",
    "SWAP",
    "COMPARE_SWAP",
    "ADD",
    "SUB",
    "AND",
    "OR",
    "XOR",
    "MIN",
    "MAX",
    "PROD",
    "USER",
    "MINLOC",
    "MAXLOC",
];

/// The names of types in the C interface behind LLCL_TYPE_, from number 1 on.
const TYPES: [&str; 25] = [
    "I32",
    "U32",
    "I64",
    "U64",
    "F32",
    "F64",
    "I8",
    "U8",
    "I16",
    "U16",
    "BYTES",
    "BOOL",
    "F16",
    "BF16",
    "LONG_DOUBLE",
    "COMPLEX_F32",
    "COMPLEX_F64",
    "F32_I32",
    "F64_I32",
    "I32_I32",
    "I64_I32",
    "I64_I64",
    "F64_I64",
    "I16_I32",
    "LONG_DOUBLE_I32",
];

/// The name of an operation in the C interface, for messages; its number, if there is no such one.
pub fn op_name(op: u64) -> String {
    named("LLCL_OP_", &OPS, op)
}

/// Like op_name(), for a type.
pub fn type_name(kind: u64) -> String {
    named("LLCL_TYPE_", &TYPES, kind)
}

fn named(prefix: &str, names: &[&str], number: u64) -> String {
    let index = usize::try_from(number.wrapping_sub(1)).unwrap_or(usize::MAX);
    names.get(index).map_or_else(|| number.to_string(), |name| format!("{prefix}{name}"))
}

/// Bytes of a word of this type. None: there is no such type.
pub fn width(kind: u8) -> Option<usize> {
    match kind {
        kind::I8 | kind::U8 => Some(1),
        kind::I16 | kind::U16 => Some(2),
        kind::I32 | kind::U32 | kind::F32 => Some(4),
        kind::I64 | kind::U64 | kind::F64 => Some(8),
        _ => None,
    }
}

/// Whether the type has the operation. Floating-point numbers have no AND, OR and XOR.
pub fn supported(op: u8, kind: u8) -> bool {
    let floating = matches!(kind, kind::F32 | kind::F64);
    width(kind).is_some()
        && match op {
            op::AND | op::OR | op::XOR => !floating,
            op::LOAD..=op::PROD => true,
            _ => false,
        }
}

/// Whether a supported operation is one instruction of the processor; else it is a loop around a
/// compare-and-swap.
pub fn is_one_instruction(op: u8, kind: u8) -> bool {
    match op {
        op::LOAD..=op::COMPARE_SWAP => true,
        op::ADD | op::SUB => !matches!(kind, kind::F32 | kind::F64),
        // apply() returns the old value. x86 has an instruction that returns it for ADD and SUB
        // (xadd), and none for AND, OR and XOR.
        op::AND | op::OR | op::XOR => !cfg!(target_arch = "x86_64"),
        _ => false,
    }
}

/// Executes a supported operation and returns the old value of the word, in the low-order bytes.
///
/// # Safety
/// `word` is mapped, aligned to the type's width, and changed by atomic operations only.
#[inline]
pub unsafe fn apply(word: *mut u8, op: u8, kind: u8, operand: u64, compare: u64) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        match kind {
            kind::U64 => on_u64(word.cast(), op, operand, compare),
            kind::I64 => on_i64(word.cast(), op, operand, compare),
            kind::U32 => on_u32(word.cast(), op, operand as u32, compare as u32).into(),
            kind::I32 => on_i32(word.cast(), op, operand as u32, compare as u32).into(),
            kind::U16 => on_u16(word.cast(), op, operand as u16, compare as u16).into(),
            kind::I16 => on_i16(word.cast(), op, operand as u16, compare as u16).into(),
            kind::U8 => on_u8(word, op, operand as u8, compare as u8).into(),
            kind::I8 => on_i8(word.cast(), op, operand as u8, compare as u8).into(),
            kind::F32 => {
                let number = |bits: u32| f32::from_bits(bits);
                let combine = |a, b| combine_f32(op, number(a), number(b)).to_bits();
                match op {
                    op::ADD | op::SUB | op::MIN | op::MAX | op::PROD => {
                        let word = AtomicU32::from_ptr(word.cast());
                        let next = |old| Some(combine(old, operand as u32));
                        word.fetch_update(AcqRel, Acquire, next).unwrap_or_default().into()
                    }
                    _ => on_u32(word.cast(), op, operand as u32, compare as u32).into(),
                }
            }
            _ => {
                let number = |bits: u64| f64::from_bits(bits);
                let combine = |a, b| combine_f64(op, number(a), number(b)).to_bits();
                match op {
                    op::ADD | op::SUB | op::MIN | op::MAX | op::PROD => {
                        let word = AtomicU64::from_ptr(word.cast());
                        let next = |old| Some(combine(old, operand));
                        word.fetch_update(AcqRel, Acquire, next).unwrap_or_default()
                    }
                    _ => on_u64(word.cast(), op, operand, compare),
                }
            }
        }
    }
}

macro_rules! on_integer {
    ($name:ident, $atomic:ty, $bits:ty, $number:ty) => {
        /// The operations on one integer type. Operands and result are bit patterns of that type.
        #[inline]
        unsafe fn $name(word: *mut $number, op: u8, operand: $bits, compare: $bits) -> $bits {
            // SAFETY: the caller of apply() vouches for the word.
            let word = unsafe { <$atomic>::from_ptr(word) };
            let (operand, compare) = (operand as $number, compare as $number);
            let old = match op {
                op::LOAD => word.load(Acquire),
                // apply() returns the old value of a store, too.
                op::STORE | op::SWAP => word.swap(operand, AcqRel),
                op::COMPARE_SWAP => {
                    match word.compare_exchange(compare, operand, AcqRel, Acquire) {
                        Ok(old) | Err(old) => old,
                    }
                }
                op::ADD => word.fetch_add(operand, AcqRel),
                op::SUB => word.fetch_sub(operand, AcqRel),
                op::AND => word.fetch_and(operand, AcqRel),
                op::OR => word.fetch_or(operand, AcqRel),
                op::XOR => word.fetch_xor(operand, AcqRel),
                op::MIN => word.fetch_min(operand, AcqRel),
                op::PROD => {
                    let next = |old: $number| Some(old.wrapping_mul(operand));
                    word.fetch_update(AcqRel, Acquire, next).unwrap_or_default()
                }
                _ => word.fetch_max(operand, AcqRel),
            };
            old as $bits
        }
    };
}

on_integer!(on_u64, AtomicU64, u64, u64);
on_integer!(on_i64, AtomicI64, u64, i64);
on_integer!(on_u32, AtomicU32, u32, u32);
on_integer!(on_i32, AtomicI32, u32, i32);
on_integer!(on_u16, AtomicU16, u16, u16);
on_integer!(on_i16, AtomicI16, u16, i16);
on_integer!(on_u8, AtomicU8, u8, u8);
on_integer!(on_i8, AtomicI8, u8, i8);

macro_rules! combine {
    ($name:ident, $number:ty) => {
        /// The operations on floating-point numbers; min and max ignore a NaN.
        fn $name(op: u8, old: $number, operand: $number) -> $number {
            match op {
                op::ADD => old + operand,
                op::SUB => old - operand,
                op::PROD => old * operand,
                op::MIN => old.min(operand),
                _ => old.max(operand),
            }
        }
    };
}

combine!(combine_f32, f32);
combine!(combine_f64, f64);

/// Stores a fetched value at the user's address `result`, unless that is null.
///
/// # Safety
/// `result` is null or valid for writing the type's width.
#[inline]
pub unsafe fn deliver(result: *mut u8, kind: u8, old: u64) {
    if result.is_null() {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe {
        match width(kind) {
            Some(1) => result.write(old as u8),
            Some(2) => result.cast::<u16>().write_unaligned(old as u16),
            Some(4) => result.cast::<u32>().write_unaligned(old as u32),
            _ => result.cast::<u64>().write_unaligned(old),
        }
    }
}

/// The atomic operation of a signal. `code` is the C interface's number of the signal's kind.
pub fn signal_op(code: u8) -> Result<u8, Status> {
    match code {
        1 => Ok(op::STORE),
        2 => Ok(op::ADD),
        _ => Err(Status::ERR_INVALID),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_names_of_the_header() {
        let header = include_str!("../../include/llcl.h");
        let defines = |prefix| header.matches(&format!("\n#define {prefix}")).count();
        assert_eq!([defines("LLCL_OP_"), defines("LLCL_TYPE_")], [OPS.len(), TYPES.len()]);
        let has = |name: String, number| header.contains(&format!("\n#define {name} {number}u\n"));
        assert!((1..=OPS.len() as u64).all(|number| has(op_name(number), number)));
        assert!((1..=TYPES.len() as u64).all(|number| has(type_name(number), number)));
        assert_eq!(
            [op_name(0), op_name(16), type_name(u64::MAX)],
            ["0", "16", "18446744073709551615"]
        );
    }

    fn once(op: u8, kind: u8, word: u64, operand: u64, compare: u64) -> (u64, u64) {
        let mut place = word;
        // SAFETY: place is an aligned word of this frame.
        let old = unsafe { apply((&raw mut place).cast(), op, kind, operand, compare) };
        (old, place)
    }

    #[test]
    fn signs_widths_and_wrap_around_are_those_of_the_type() {
        let minus = -5i64 as u64;
        assert_eq!(once(op::MIN, kind::I64, 3, minus, 0), (3, minus));
        assert_eq!(once(op::MIN, kind::U64, 3, minus, 0), (3, 3));
        assert_eq!(once(op::ADD, kind::U64, u64::MAX, 2, 0), (u64::MAX, 1));
        assert_eq!(once(op::ADD, kind::U32, 0xffff_ffff, 1, 0), (0xffff_ffff, 0));
        assert_eq!(once(op::MAX, kind::I32, 0xffff_fffe, 1, 0), (0xffff_fffe, 1));
        assert_eq!(once(op::PROD, kind::I8, 0xff05, 0xfe, 0), (5, 0xfff6));
        assert_eq!(once(op::MIN, kind::I16, 0x1_0003, 0xffff, 0), (3, 0x1_ffff));
        assert_eq!(once(op::COMPARE_SWAP, kind::U64, 7, 9, 7), (7, 9));
        assert_eq!(once(op::COMPARE_SWAP, kind::U64, 7, 9, 8), (7, 7));
    }

    #[test]
    fn floating_point_adds_and_compares_as_numbers() {
        let bits = |x: f64| x.to_bits();
        assert_eq!(once(op::ADD, kind::F64, bits(1.5), bits(2.0), 0), (bits(1.5), bits(3.5)));
        assert_eq!(once(op::MAX, kind::F64, bits(-1.0), bits(-2.0), 0).1, bits(-1.0));
        let single = |x: f32| u64::from(x.to_bits());
        assert_eq!(once(op::SUB, kind::F32, single(1.0), single(3.0), 0).1, single(-2.0));
        assert!(!supported(op::AND, kind::F64));
        assert!(supported(op::COMPARE_SWAP, kind::F32));
        assert!(!supported(0, kind::U64) && !supported(13, kind::U64) && !supported(5, 11));
    }
}
