//! Tests every kernel against the definition of its operation.

use super::half::{Bf16, F16, Format};
use super::kernels::plain;
use super::*;

/// What kind of arithmetic a type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Integer,
    Floating,
    Complex,
    Logical,
    Pair,
    Nothing,
}

fn class(kind: Type) -> Class {
    use Type::*;
    match kind {
        I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64 => Class::Integer,
        LongDouble if cfg!(not(target_arch = "x86_64")) => Class::Nothing,
        F16 | Bf16 | F32 | F64 | LongDouble => Class::Floating,
        ComplexF32 | ComplexF64 => Class::Complex,
        Bool => Class::Logical,
        LongDoubleI32 if cfg!(not(target_arch = "x86_64")) => Class::Nothing,
        I16I32 | LongDoubleI32 => Class::Pair,
        F32I32 | F64I32 | I32I32 | I64I32 | I64I64 | F64I64 => Class::Pair,
        Bytes => Class::Nothing,
    }
}

/// Whether the type has the operation, the user's function excepted.
fn has(kind: Type, op: Op) -> bool {
    use Op::*;
    match class(kind) {
        Class::Integer => matches!(op, Add | Prod | Min | Max | And | Or | Xor),
        Class::Floating => matches!(op, Add | Prod | Min | Max),
        Class::Complex => matches!(op, Add | Prod),
        Class::Logical => matches!(op, And | Or | Xor),
        Class::Pair => matches!(op, MinLoc | MaxLoc),
        Class::Nothing => false,
    }
}

/// The types of a pair's value and index, and the offset of the index; for a complex number those
/// of its parts.
fn parts(kind: Type) -> (Type, Type, usize) {
    use Type::*;
    match kind {
        F32I32 => (F32, I32, 4),
        I32I32 => (I32, I32, 4),
        F64I32 => (F64, I32, 8),
        I64I32 => (I64, I32, 8),
        I64I64 => (I64, I64, 8),
        F64I64 => (F64, I64, 8),
        I16I32 => (I16, I32, 4),
        LongDoubleI32 => (LongDouble, I32, 16),
        ComplexF32 => (F32, F32, 4),
        ComplexF64 => (F64, F64, 8),
        _ => panic!("{kind:?} has no parts"),
    }
}

fn width(kind: Type) -> usize {
    kind.width().unwrap_or(1) as usize
}

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
    let half = || u16::from_le_bytes(bytes.try_into().unwrap());
    match kind {
        Type::F16 => F16::widen(half()).into(),
        Type::Bf16 => Bf16::widen(half()).into(),
        Type::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
        Type::LongDouble => from_extended(bytes),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}

/// The bytes of the nearest number of the type.
fn bytes(kind: Type, number: f64) -> Vec<u8> {
    match kind {
        Type::F16 => F16::narrow(number as f32).to_le_bytes().to_vec(),
        Type::Bf16 => Bf16::narrow(number as f32).to_le_bytes().to_vec(),
        Type::F32 => (number as f32).to_le_bytes().to_vec(),
        Type::LongDouble => extended(number),
        _ => number.to_le_bytes().to_vec(),
    }
}

/// The 80 bits of a number that is 0, normal, infinite or NaN, followed by six bytes of 0.
fn extended(number: f64) -> Vec<u8> {
    let bits = number.to_bits();
    let (sign, exponent, fraction) = (bits >> 63, bits >> 52 & 0x7ff, bits << 12 >> 1);
    let (exponent, mantissa) = match exponent {
        0 => (0, 0),
        0x7ff => (0x7fff, 1 << 63 | fraction),
        _ => (exponent + 16383 - 1023, 1 << 63 | fraction),
    };
    let above = (sign << 15 | exponent) as u16;
    [&mantissa.to_le_bytes()[..], &above.to_le_bytes(), &[0; 6]].concat()
}

/// The inverse of extended(), for numbers with no more bits than f64.
fn from_extended(bytes: &[u8]) -> f64 {
    let mantissa = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let above = u16::from_le_bytes(bytes[8..10].try_into().unwrap());
    let size = match above & 0x7fff {
        0x7fff if mantissa << 1 == 0 => f64::INFINITY,
        0x7fff => f64::NAN,
        exponent => mantissa as f64 * 2f64.powi(i32::from(exponent) - 16383 - 63),
    };
    if above & 0x8000 != 0 { -size } else { size }
}

/// The result of an operation on one element, by definition.
fn model(kind: Type, op: Op, left: &[u8], right: &[u8]) -> Vec<u8> {
    match class(kind) {
        Class::Integer => model_of_integers(kind, op, left, right),
        Class::Floating => model_of_numbers(kind, op, left, right),
        Class::Complex => {
            let (part, _, at) = parts(kind);
            let of = |op, left: &[u8], right: &[u8]| model_of_numbers(part, op, left, right);
            let ((a, b), (c, d)) = (left.split_at(at), right.split_at(at));
            match op {
                Op::Add => [of(op, a, c), of(op, b, d)].concat(),
                _ => {
                    let minus = bytes(part, -number(part, &of(op, b, d)));
                    let mixed = of(Op::Add, &of(op, a, d), &of(op, b, c));
                    [of(Op::Add, &of(op, a, c), &minus), mixed].concat()
                }
            }
        }
        Class::Logical => {
            let (a, b) = (left[0] != 0, right[0] != 0);
            let result = match op {
                Op::And => a && b,
                Op::Or => a || b,
                _ => a != b,
            };
            vec![result.into()]
        }
        Class::Pair => model_of_pairs(kind, op, left, right),
        Class::Nothing => unreachable!("no kernel"),
    }
}

fn model_of_integers(kind: Type, op: Op, left: &[u8], right: &[u8]) -> Vec<u8> {
    let (a, b) = (integer(kind, left), integer(kind, right));
    let result = match op {
        Op::Add => a + b,
        Op::Prod => a.wrapping_mul(b),
        Op::Min => a.min(b),
        Op::Max => a.max(b),
        Op::And => a & b,
        Op::Or => a | b,
        _ => a ^ b,
    };
    result.to_le_bytes()[..left.len()].to_vec()
}

/// The operation in f64, then rounded, gives the result in a shorter format.
fn model_of_numbers(kind: Type, op: Op, left: &[u8], right: &[u8]) -> Vec<u8> {
    let (a, b) = (number(kind, left), number(kind, right));
    match op {
        Op::Min => if a < b || b.is_nan() { left } else { right }.to_vec(),
        Op::Max => if a > b || b.is_nan() { left } else { right }.to_vec(),
        Op::Add => bytes(kind, a + b),
        _ => bytes(kind, a * b),
    }
}

fn model_of_pairs(kind: Type, op: Op, left: &[u8], right: &[u8]) -> Vec<u8> {
    let (value, index, at) = parts(kind);
    let key = |pair: &[u8]| {
        let index = integer(index, &pair[at..at + width(index)]);
        let value = match class(value) {
            Class::Integer => integer(value, &pair[..width(value)]) as f64,
            _ => number(value, &pair[..width(value)]),
        };
        let value = if op == Op::MaxLoc { -value } else { value };
        // NaN comes last.
        (value.is_nan(), if value.is_nan() { 0.0 } else { value }, index)
    };
    let later = key(right).partial_cmp(&key(left)).unwrap().is_lt();
    if later { right } else { left }.to_vec()
}

/// Elements that include the limits of the type; for floats also infinities and NaN.
fn elements(kind: Type, count: usize, mut state: u64) -> Vec<u8> {
    let mut all = Vec::new();
    for i in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        all.extend(element(kind, i, state));
    }
    all
}

fn element(kind: Type, i: usize, state: u64) -> Vec<u8> {
    let random = (state >> 11) as i64 - (1 << 52);
    let few = (state >> 33) as usize;
    match class(kind) {
        Class::Floating => {
            let largest = match kind {
                Type::F16 => 65504.0,
                // Numbers of few bits, as below.
                Type::LongDouble => 2f64.powi(500),
                _ => number(kind, &bytes(kind, 3e38)),
            };
            let edges = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, largest, 1.0];
            let plain = match kind {
                // Numbers of few bits, so that 80 bits hold all results and f64 can represent them.
                Type::LongDouble => (few % 4001) as f64 - 2000.5,
                Type::F16 => random as f64 / 1e13,
                _ => random as f64 / 1e9,
            };
            bytes(kind, *edges.get(few % 40).unwrap_or(&plain))
        }
        Class::Complex => {
            let part = parts(kind).0;
            [element(part, i, state), element(part, i, state.rotate_left(29))].concat()
        }
        Class::Logical => vec![[0, 1, 0, 1, 2, 0x80, 0xff][few % 7]],
        Class::Pair => {
            // Equal values are frequent, and the padding bytes behind the index are random.
            let (value, index, at) = parts(kind);
            let mut pair = (state ^ 0x5555).to_le_bytes().repeat(4)[..width(kind)].to_vec();
            let few_values = [3.0, -7.0, 12.0, f64::NAN, 3.0, f64::INFINITY, 1e9];
            let chosen = few_values[few % if class(value) == Class::Integer { 3 } else { 7 }];
            match class(value) {
                Class::Integer => pair[..at].copy_from_slice(&(chosen as i64).to_le_bytes()[..at]),
                _ => pair[..at].copy_from_slice(&bytes(value, chosen)),
            }
            let number = (few as i64 % 5 - 2) * if i.is_multiple_of(3) { 1 << 30 } else { 1 };
            let wide = width(index);
            pair[at..at + wide].copy_from_slice(&number.to_le_bytes()[..wide]);
            pair
        }
        _ => {
            let edges = [0, -1, i64::MAX, i64::MIN, 1 << (width(kind) * 8 - 1)];
            let number = if i % 7 < 2 { edges[few % 5] } else { random };
            number.to_le_bytes()[..width(kind)].to_vec()
        }
    }
}

fn compare(kind: Type, op: Op, got: &[u8], left: &[u8], right: &[u8], note: &str) {
    let width = width(kind);
    for (i, got) in got.chunks(width).enumerate() {
        let range = i * width..(i + 1) * width;
        let want = model(kind, op, &left[range.clone()], &right[range]);
        let both_nan = |kind, got: &[u8], want: &[u8]| is_nan(kind, got) && is_nan(kind, want);
        let same = got == want
            || match class(kind) {
                Class::Floating => both_nan(kind, got, &want),
                Class::Complex => {
                    let (part, _, at) = parts(kind);
                    let mut pairs = got.chunks(at).zip(want.chunks(at));
                    pairs.all(|(got, want)| got == want || both_nan(part, got, want))
                }
                _ => false,
            };
        assert!(same, "{kind:?} {op:?} {note}: element {i} is {got:?}, expected {want:?}");
    }
}

/// Runs a kernel on unaligned copies in the three permitted ways; the bytes around must not change.
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
            let exists = has(kind, op);
            assert_eq!(kernel(kind, op).is_some(), exists, "{kind:?} {op:?}");
            assert_eq!(plain(kind, op).is_some(), exists, "{kind:?} {op:?}");
            assert_eq!(check(kind, op).is_ok(), exists || op == Op::User, "{kind:?} {op:?}");
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
#[cfg(target_arch = "x86_64")]
fn long_double_has_all_its_bits() {
    let one = extended(1.0);
    let mut last = extended(1.0);
    last[8] -= 63;
    let mut sum = [0u8; 16];
    let run = |op, left: &[u8], right: &[u8], to: &mut [u8; 16]| {
        // SAFETY: an element lies at each of the three.
        unsafe {
            kernel(Type::LongDouble, op).unwrap()(left.as_ptr(), right.as_ptr(), to.as_mut_ptr(), 1)
        }
    };
    run(Op::Add, &one, &last, &mut sum);
    assert_eq!(sum[..10], [1, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f]);
    // Far beyond the exponents of f64, and the bytes behind the number are 0.
    let (mut large, mut product) = (extended(1.0), [0xa5u8; 16]);
    (large[9], large[15]) = (0x5f, 9);
    run(Op::Prod, &large, &large, &mut product);
    assert_eq!(product, [0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x7f, 0, 0, 0, 0, 0, 0].map(|b: u8| b));
}

#[test]
fn numbers_are_those_of_the_interface() {
    let codes = [(5, Op::Add), (7, Op::And), (8, Op::Or), (9, Op::Xor), (10, Op::Min)];
    let more = [(11, Op::Max), (12, Op::Prod), (13, Op::User), (14, Op::MinLoc), (15, Op::MaxLoc)];
    for (code, op) in codes.into_iter().chain(more) {
        assert_eq!(Op::from_code(code), Some(op));
    }
    for code in (0..5).chain([6, 16, 261]) {
        assert_eq!(Op::from_code(code), None);
    }
    for (i, kind) in Type::ALL.into_iter().enumerate() {
        assert_eq!(Type::from_code(i as u32 + 1), Some(kind));
    }
    assert_eq!((Type::from_code(0), Type::from_code(26)), (None, None));
    let error = check(Type::F64, Op::Xor).unwrap_err();
    assert_eq!(
        error.message(),
        "op is LLCL_OP_XOR, type is LLCL_TYPE_F64, which has LLCL_OP_ADD, LLCL_OP_MIN, \
         LLCL_OP_MAX, LLCL_OP_PROD, LLCL_OP_USER"
    );
}
