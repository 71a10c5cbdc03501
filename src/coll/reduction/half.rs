//! 16-bit floating-point numbers: IEEE binary16 (F16), and the upper half of binary32 (Bf16).
//!
//! A sum or product is computed in binary32 and then rounded to nearest, ties to even. The result
//! is equal to that of a single rounding: binary32 has 24 bits, at least twice the bits of either
//! format (11, 8) plus two (Figueroa 1995), and products are exact in it or smaller than half of
//! the smallest number. The callers must run in the default floating-point environment, since the
//! conversions use denormal numbers and rounding to nearest.

use std::marker::PhantomData;
use std::ops::{Add, Mul};

/// A format of 16 bits.
pub trait Format: Copy {
    /// The number with these bits.
    fn widen(bits: u16) -> f32;
    /// The bits of the nearest number.
    fn narrow(number: f32) -> u16;
}

/// IEEE binary16.
#[derive(Clone, Copy, Debug)]
pub enum F16 {}

/// The upper half of binary32.
#[derive(Clone, Copy, Debug)]
pub enum Bf16 {}

/// The bits of the binary32 number 2^exponent.
const fn power(exponent: i32) -> u32 {
    ((127 + exponent) as u32) << 23
}

const INFINITY: u32 = power(128);

impl Format for F16 {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
        // The exponents differ by 112; the multiplication also shifts denormal numbers.
        let scaled = (f32::from_bits(rest << 13) * f32::from_bits(power(112))).to_bits();
        let special = rest << 13 | INFINITY;
        f32::from_bits(sign | if rest >= 0x7c00 { special } else { scaled })
    }

    #[inline(always)]
    fn narrow(number: f32) -> u16 {
        let bits = number.to_bits();
        let (sign, rest) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
        // Adds half of the last bit less one, and one more if the last bit is odd, and then cuts
        // the lower bits off.
        let odd = rest >> 13 & 1;
        let normal = rest.wrapping_sub(power(112) - power(0)).wrapping_add(0xfff + odd) >> 13;
        // The last bit of 0.5 has the value of the smallest number, so this addition rounds to
        // multiples of it.
        let small = (f32::from_bits(rest) + 0.5).to_bits().wrapping_sub(power(-1));
        let special = if rest > INFINITY { 0x7e00 } else { 0x7c00 };
        let large = if rest >= power(16) { special } else { normal };
        sign | if rest < power(-14) { small } else { large } as u16
    }
}

impl Format for Bf16 {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f32::from_bits(u32::from(bits) << 16)
    }

    #[inline(always)]
    fn narrow(number: f32) -> u16 {
        let bits = number.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        let quiet = bits >> 16 | 0x40;
        (if bits & 0x7fff_ffff > INFINITY { quiet } else { rounded }) as u16
    }
}

/// A number of one of these formats.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Half<F>(pub u16, PhantomData<F>);

impl<F: Format> Half<F> {
    /// The number nearest to this one.
    #[inline(always)]
    pub fn nearest(number: f32) -> Half<F> {
        Half(F::narrow(number), PhantomData)
    }

    /// The number with these bits.
    #[cfg(test)]
    pub fn from_bits(bits: u16) -> Half<F> {
        Half(bits, PhantomData)
    }

    /// This number as a binary32, exactly.
    #[inline(always)]
    pub fn widen(self) -> f32 {
        F::widen(self.0)
    }

    /// The smaller number; of a number and a NaN the number.
    #[inline(always)]
    pub fn min(self, other: Half<F>) -> Half<F> {
        let (left, right) = (self.widen(), other.widen());
        if right < left || left.is_nan() { other } else { self }
    }

    /// The larger number; of a number and a NaN the number.
    #[inline(always)]
    pub fn max(self, other: Half<F>) -> Half<F> {
        let (left, right) = (self.widen(), other.widen());
        if right > left || left.is_nan() { other } else { self }
    }
}

impl<F: Format> Add for Half<F> {
    type Output = Half<F>;
    #[inline(always)]
    fn add(self, other: Half<F>) -> Half<F> {
        Half::nearest(self.widen() + other.widen())
    }
}

impl<F: Format> Mul for Half<F> {
    type Output = Half<F>;
    #[inline(always)]
    fn mul(self, other: Half<F>) -> Half<F> {
        Half::nearest(self.widen() * other.widen())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the format that is nearest to `exact`, in a tie the one with the even last
    /// bit. From half a step above the largest number on the result is infinite.
    fn rounded<F: Format>(exact: f64, bits: u16, ulp_above_largest: f64) -> u16 {
        if exact.is_nan() {
            return bits;
        }
        let value = |bits: u16| match F::widen(bits) {
            wide if wide.is_infinite() => f64::from(wide.signum()) * ulp_above_largest,
            wide => f64::from(wide),
        };
        let near = [bits.wrapping_sub(1), bits, bits.wrapping_add(1)];
        let near = near.into_iter().filter(|near| near & 0x8000 == bits & 0x8000);
        let near = near.filter(|near| !F::widen(*near).is_nan());
        let limit = exact.clamp(-ulp_above_largest, ulp_above_largest);
        near.min_by(|a, b| {
            let far = |bits: u16| (value(bits) - limit).abs();
            far(*a).total_cmp(&far(*b)).then((a & 1).cmp(&(b & 1)))
        })
        .unwrap()
    }

    fn every_pair_of_a_sample<F: Format>(infinity: u16, ulp_above_largest: f64) {
        for bits in 0..=u16::MAX {
            let number = F::widen(bits);
            let is_nan = bits & 0x7fff > infinity;
            assert_eq!(number.is_nan(), is_nan, "{bits:#x}");
            assert!(is_nan || F::narrow(number) == bits, "{bits:#x} is {number}");
            assert!(!is_nan || F::widen(F::narrow(number)).is_nan(), "{bits:#x}");
        }
        let mut state = 1u64;
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (a, mut b) = ((state >> 48) as u16, (state >> 32) as u16);
            if state >> 20 & 1 == 0 {
                // Close to each other, so that the bits of both matter.
                b = a.wrapping_add(b % 0x1800);
            }
            let (left, right) = (Half::<F>::from_bits(a), Half::<F>::from_bits(b));
            let (x, y) = (f64::from(left.widen()), f64::from(right.widen()));
            for (exact, got) in [(x + y, left + right), (x * y, left * right)] {
                let want = rounded::<F>(exact, got.0, ulp_above_largest);
                let both_nan = exact.is_nan() && got.widen().is_nan();
                let zeros = exact == 0.0 && got.widen() == 0.0;
                let infinite = exact.is_infinite() && f64::from(got.widen()) == exact;
                assert!(
                    both_nan || zeros || infinite || !exact.is_nan() && want == got.0,
                    "{a:#x} and {b:#x}: {exact} became {:#x}, expected {want:#x}",
                    got.0
                );
            }
        }
    }

    #[test]
    fn a_combination_of_16_bits_is_rounded_once() {
        every_pair_of_a_sample::<F16>(0x7c00, 65536.0);
        every_pair_of_a_sample::<Bf16>(0x7f80, 2f64.powi(128));
    }
}
