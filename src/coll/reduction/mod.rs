//! The arithmetic of collectives: `to[i] = left[i] op right[i]`. There is one [`Kernel`] for each
//! type and operation; a plan looks it up once.

mod extended;
mod half;
mod kernels;
mod pair;
#[cfg(test)]
mod tests;

use crate::engine::atomic::{kind, op, op_name, type_name};
use crate::fail;
use crate::util::rounding::Environment;
use crate::util::status::Result;

pub use kernels::{Kernel, kernel};

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
    /// Elements of `element_size` bytes.
    Bytes = 11,
    Bool = 12,
    F16 = 13,
    Bf16 = 14,
    LongDouble = 15,
    ComplexF32 = 16,
    ComplexF64 = 17,
    F32I32 = 18,
    F64I32 = 19,
    I32I32 = 20,
    I64I32 = 21,
    I64I64 = 22,
    F64I64 = 23,
    I16I32 = 24,
    LongDoubleI32 = 25,
}

impl Type {
    /// All types.
    pub const ALL: [Type; 25] = {
        use Type::*;
        [
            I32,
            U32,
            I64,
            U64,
            F32,
            F64,
            I8,
            U8,
            I16,
            U16,
            Bytes,
            Bool,
            F16,
            Bf16,
            LongDouble,
            ComplexF32,
            ComplexF64,
            F32I32,
            F64I32,
            I32I32,
            I64I32,
            I64I64,
            F64I64,
            I16I32,
            LongDoubleI32,
        ]
    };

    /// The type of this number.
    pub fn from_code(code: u32) -> Option<Type> {
        Type::ALL.into_iter().find(|kind| *kind as u32 == code)
    }

    /// Bytes of an element, with the padding of the C compiler. None: the call gives the number.
    pub fn width(self) -> Option<u64> {
        use Type::*;
        Some(match self {
            I8 | U8 | Bool => 1,
            I16 | U16 | F16 | Bf16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 | ComplexF32 | F32I32 | I32I32 | I16I32 => 8,
            LongDouble | ComplexF64 | F64I32 | I64I32 | I64I64 | F64I64 => 16,
            LongDoubleI32 => 32,
            Bytes => return None,
        })
    }

    /// The floating-point environment in which the library combines elements; `own` is that of the
    /// thread that makes the plan. None: the result does not depend on it. 16-bit numbers are
    /// always rounded to nearest.
    pub fn environment(self, own: Environment) -> Option<Environment> {
        use Type::*;
        match self {
            F16 | Bf16 => Some(Environment::DEFAULT),
            F32 | F64 | LongDouble | ComplexF32 | ComplexF64 | F32I32 | F64I32 | F64I64 => {
                Some(own)
            }
            _ => None,
        }
    }
}

/// Operations, numbered as in the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// The sum; integers wrap around.
    Add = op::ADD,
    /// Bitwise and, of integers; logical and.
    And = op::AND,
    /// Bitwise or, of integers; logical or.
    Or = op::OR,
    /// Bitwise exclusive or, of integers; logical exclusive or.
    Xor = op::XOR,
    /// The smaller number; of a number and a NaN the number.
    Min = op::MIN,
    /// The larger number; of a number and a NaN the number.
    Max = op::MAX,
    /// The product; integers wrap around.
    Prod = 12,
    /// The user's function, which has no kernel.
    User = 13,
    /// The pair with the smaller value; of equal values the one with the lower index.
    MinLoc = 14,
    /// The pair with the larger value; of equal values the one with the lower index.
    MaxLoc = 15,
}

impl Op {
    /// All operations.
    pub const ALL: [Op; 10] = {
        use Op::*;
        [Add, And, Or, Xor, Min, Max, Prod, User, MinLoc, MaxLoc]
    };

    /// The operation of this number.
    pub fn from_code(code: u32) -> Option<Op> {
        Op::ALL.into_iter().find(|op| *op as u32 == code)
    }
}

/// Refuses an operation that the type does not have; every type has the user's function.
pub fn check(kind: Type, op: Op) -> Result<()> {
    let has = |op: Op| op == Op::User || kernel(kind, op).is_some();
    if !has(op) {
        let name = |op| op_name(op as u64);
        let all = Op::ALL.into_iter().filter(|op| has(*op)).map(name);
        let all = all.collect::<Vec<_>>().join(", ");
        let (op, kind) = (name(op), type_name(kind as u64));
        fail!(ERR_UNSUPPORTED, "op is {op}, type is {kind}, which has {all}");
    }
    Ok(())
}
