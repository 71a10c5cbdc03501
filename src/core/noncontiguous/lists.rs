//! Lists of spans on both sides.

use crate::fail;
use crate::transport::address::Address;
use crate::util::status::Result;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// An address and a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Span {
    /// Where.
    pub place: Address,
    /// How many bytes.
    pub size: usize,
}

/// A list in memory of the user, who promises not to change it during the call. If a thread of the
/// program changes it nevertheless, the library must not access memory outside the regions. So it
/// uses only values that it has checked, and checks an entry again if it reads the entry again.
#[derive(Clone, Copy)]
pub struct List {
    pub(super) first: *const Span,
    pub(super) count: usize,
}

impl List {
    /// The list of `count` entries at `first`.
    ///
    /// # Safety
    /// The entries can be read as long as the list is in use.
    pub unsafe fn new(first: *const Span, count: usize) -> List {
        List { first, count }
    }

    /// The entries. Each is read once.
    #[inline(always)]
    pub(super) fn each(self) -> impl Iterator<Item = Span> {
        let mut at = self.first;
        let end = at.wrapping_add(self.count);
        std::iter::from_fn(move || {
            if at == end {
                return None;
            }
            // SAFETY: an entry of the list, as new() was promised.
            let span = unsafe { read_once(at) };
            at = at.wrapping_add(1);
            Some(span)
        })
    }

    /// The entry of index `at`, which is below the count.
    #[inline(always)]
    pub(super) fn entry(self, at: usize) -> Span {
        // SAFETY: an entry of the list, as new() was promised.
        unsafe { read_once(self.first.wrapping_add(at)) }
    }

    /// The list without its first `at` entries.
    pub(super) fn behind(self, at: usize) -> List {
        List { first: self.first.wrapping_add(at), count: self.count - at }
    }

    /// A copy of the list. `name`: its name in an error.
    pub fn captured(self, name: &str) -> Result<Vec<Span>> {
        let mut copy = Vec::new();
        if copy.try_reserve_exact(self.count).is_err() {
            fail!(ERR_NO_MEMORY, "no memory for a copy of {name}, {} entries", self.count);
        }
        copy.extend(self.each());
        Ok(copy)
    }
}

/// An entry in memory of the user.
///
/// # Safety
/// The entry can be read.
#[inline(always)]
pub(super) unsafe fn read_once(entry: *const Span) -> Span {
    let entry = entry.cast_mut();
    // SAFETY: as the caller promises. Nothing is written, and a relaxed load of a word may also
    // read memory that cannot be written. The loads are atomic, so that the compiler neither
    // repeats one nor assumes that a value stays.
    unsafe {
        let offset = AtomicU64::from_ptr(&raw mut (*entry).place.offset).load(Ordering::Relaxed);
        let key = AtomicU64::from_ptr(&raw mut (*entry).place.key).load(Ordering::Relaxed);
        let size = AtomicUsize::from_ptr(&raw mut (*entry).size).load(Ordering::Relaxed);
        Span { place: Address { offset, key }, size }
    }
}

/// The sum of a list's sizes.
pub fn sum(list: &[Span], name: &str) -> Result<u64> {
    match list.iter().try_fold(0u64, |sum, span| sum.checked_add(span.size as u64)) {
        Some(sum) => Ok(sum),
        None => fail!(ERR_RANGE, "the sizes of {name} add up to more than 2 to the 64th"),
    }
}

/// A place that walk() advances.
pub(super) trait Place: Copy {
    /// The place that is `size` bytes further.
    fn behind(self, size: usize) -> Self;
}

impl Place for *mut u8 {
    #[inline(always)]
    fn behind(self, size: usize) -> *mut u8 {
        self.wrapping_add(size)
    }
}

impl Place for Address {
    #[inline(always)]
    fn behind(self, size: usize) -> Address {
        Address { offset: self.offset.wrapping_add(size as u64), key: self.key }
    }
}

/// Calls `each` for each piece of two lists, with its place on both sides and its size, which may
/// be 0. An entry is a place and a size; it is taken from its list right before its first piece. An
/// entry that is an error ends the walk. False: the lists have not the same number of bytes.
#[inline(always)]
pub(super) fn walk<A: Place, B: Place, E>(
    mut ours: impl Iterator<Item = std::result::Result<(A, usize), E>>,
    mut theirs: impl Iterator<Item = std::result::Result<(B, usize), E>>,
    mut each: impl FnMut(A, B, usize),
) -> std::result::Result<bool, E> {
    loop {
        let ((mut a, mut left), (mut b, mut right)) = match (ours.next(), theirs.next()) {
            (Some(a), Some(b)) => (a?, b?),
            (a, b) => return Ok(are_empty(a, ours)? && are_empty(b, theirs)?),
        };
        // In most lists the sizes are equal.
        while left != right {
            if left < right {
                each(a, b, left);
                (b, right) = (b.behind(left), right - left);
                let Some(next) = ours.next() else { return Ok(false) };
                (a, left) = next?;
            } else {
                each(a, b, right);
                (a, left) = (a.behind(right), left - right);
                let Some(next) = theirs.next() else { return Ok(false) };
                (b, right) = next?;
            }
        }
        each(a, b, left);
    }
}

/// Whether the rest of a list has no bytes.
fn are_empty<A, E>(
    first: Option<std::result::Result<(A, usize), E>>,
    rest: impl Iterator<Item = std::result::Result<(A, usize), E>>,
) -> std::result::Result<bool, E> {
    for entry in first.into_iter().chain(rest) {
        if entry?.1 != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn span(key: u64, offset: u64, size: usize) -> Span {
        Span { place: Address { offset, key }, size }
    }

    fn taken(list: &[Span]) -> impl Iterator<Item = std::result::Result<(Address, usize), ()>> {
        list.iter().map(|span| Ok((span.place, span.size)))
    }

    #[test]
    fn lists_meet_piece_by_piece_whatever_the_sizes_of_their_spans() {
        let ours = [span(1, 10, 0), span(1, 0, 3), span(1, 20, 5), span(1, 9, 0)];
        let theirs = [span(2, 0, 1), span(2, 8, 2), span(2, 30, 4), span(2, 7, 0), span(2, 50, 1)];
        let mut seen = Vec::new();
        let ended = walk(taken(&ours), taken(&theirs), |near, far, size| {
            if size > 0 {
                seen.push((near.offset, far.offset, size));
            }
        });
        assert_eq!(ended, Ok(true));
        assert_eq!(seen, [(0, 0, 1), (1, 8, 2), (20, 30, 4), (24, 50, 1)]);
    }

    #[test]
    fn lists_of_different_sums_are_told() {
        let ends = |ours: &[Span], theirs: &[Span]| walk(taken(ours), taken(theirs), |_, _, _| ());
        let (nothing, eight) = (span(1, 0, 0), span(1, 0, 8));
        assert_eq!(ends(&[], &[]), Ok(true));
        assert_eq!(ends(&[], &[nothing, nothing]), Ok(true));
        assert_eq!(ends(&[eight, nothing], &[nothing, eight]), Ok(true));
        for (ours, theirs) in
            [(&[eight][..], &[][..]), (&[eight, eight], &[eight]), (&[nothing, eight], &[nothing])]
        {
            assert_eq!(ends(ours, theirs), Ok(false));
            assert_eq!(ends(theirs, ours), Ok(false));
        }
    }
}
