//! Pairs of a value and its index, in the layout of a C struct of the two.

use super::extended::Extended;

/// A value.
pub trait Value: Copy {
    /// Whether this value precedes the other one in a search for the smallest value. A number
    /// precedes a NaN.
    fn is_less(self, other: Self) -> bool;
    /// Like `is_less`, in a search for the greatest value.
    fn is_greater(self, other: Self) -> bool;
}

/// An index, followed by the padding of the C compiler.
pub trait Index: Copy {
    /// The index as a number.
    fn at(self) -> i64;
}

/// A 4-byte index behind an 8-byte value, and 4 bytes of padding, which are copied with the pair.
pub type Padded = [i32; 2];

/// A 4-byte index behind a 16-byte value, and 12 bytes of padding.
pub type WidelyPadded = [i32; 4];

/// A 2-byte value before a 4-byte index, and 2 bytes of padding.
pub type Short = [i16; 2];

/// A value and its index.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pair<V, I> {
    value: V,
    index: I,
}

macro_rules! values {
    ($($integer:ty),*; $($float:ty),*) => {
        $(impl Value for $integer {
            #[inline(always)]
            fn is_less(self, other: $integer) -> bool {
                self < other
            }
            #[inline(always)]
            fn is_greater(self, other: $integer) -> bool {
                self > other
            }
        })*
        $(impl Value for $float {
            #[inline(always)]
            fn is_less(self, other: $float) -> bool {
                self < other || other.is_nan() & !self.is_nan()
            }
            #[inline(always)]
            fn is_greater(self, other: $float) -> bool {
                self > other || other.is_nan() & !self.is_nan()
            }
        })*
    };
}

values!(i32, i64; f32, f64);

impl Value for Short {
    #[inline(always)]
    fn is_less(self, other: Short) -> bool {
        self[0] < other[0]
    }
    #[inline(always)]
    fn is_greater(self, other: Short) -> bool {
        self[0] > other[0]
    }
}

impl Value for Extended {
    #[inline(always)]
    fn is_less(self, other: Extended) -> bool {
        !self.is_nan() && (other.is_nan() || self.key() < other.key())
    }
    #[inline(always)]
    fn is_greater(self, other: Extended) -> bool {
        !self.is_nan() && (other.is_nan() || self.key() > other.key())
    }
}

impl Index for i32 {
    #[inline(always)]
    fn at(self) -> i64 {
        self.into()
    }
}

impl Index for i64 {
    #[inline(always)]
    fn at(self) -> i64 {
        self
    }
}

impl Index for Padded {
    #[inline(always)]
    fn at(self) -> i64 {
        self[0].into()
    }
}

impl Index for WidelyPadded {
    #[inline(always)]
    fn at(self) -> i64 {
        self[0].into()
    }
}

impl<V: Value, I: Index> Pair<V, I> {
    /// The pair with the smallest value; of equal values the one with the lower index.
    #[inline(always)]
    pub fn least(self, other: Pair<V, I>) -> Pair<V, I> {
        let lower = other.index.at() < self.index.at() && !self.value.is_less(other.value);
        if other.value.is_less(self.value) || lower { other } else { self }
    }

    /// The pair with the greatest value; of equal values the one with the lower index.
    #[inline(always)]
    pub fn greatest(self, other: Pair<V, I>) -> Pair<V, I> {
        let lower = other.index.at() < self.index.at() && !self.value.is_greater(other.value);
        if other.value.is_greater(self.value) || lower { other } else { self }
    }
}
