//! Lists of spans on both sides.

use super::row::copy_piece;
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

/// A list in memory of the user. The user promises not to change it during the call; if another
/// thread of the program does so all the same, the list must not lead out of the regions. So the
/// library uses only values that it has checked, and checks an entry again if it reads it again.
#[derive(Clone, Copy)]
pub struct List {
    first: *const Span,
    count: usize,
}

impl List {
    /// The list of `count` entries at `first`.
    ///
    /// # Safety
    /// The entries can be read as long as the list is in use.
    pub unsafe fn new(first: *const Span, count: usize) -> List {
        List { first, count }
    }

    /// The list of a slice, which it does not outlive.
    pub(super) fn of(spans: &[Span]) -> List {
        List { first: spans.as_ptr(), count: spans.len() }
    }

    /// Its entries, each read once.
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

    /// The entry of an index below the count.
    #[inline(always)]
    fn entry(self, at: usize) -> Span {
        // SAFETY: an entry of the list, as new() was promised.
        unsafe { read_once(self.first.wrapping_add(at)) }
    }

    /// The entries behind the first ones.
    fn behind(self, at: usize) -> List {
        List { first: self.first.wrapping_add(at), count: self.count - at }
    }

    /// A copy of it.
    pub fn captured(self, name: &str) -> Result<Vec<Span>> {
        let mut copy = Vec::new();
        if copy.try_reserve_exact(self.count).is_err() {
            fail!(ERR_NO_MEMORY, "no memory for a copy of {name}, {} entries", self.count);
        }
        copy.extend(self.each());
        Ok(copy)
    }
}

/// # Safety
/// The entry can be read.
#[inline(always)]
unsafe fn read_once(entry: *const Span) -> Span {
    let entry = entry.cast_mut();
    // SAFETY: as the caller promises. Atomic, so that the compiler neither repeats a load nor
    // assumes that the value stays.
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

/// The begin and the length of a region.
type Found = (*mut u8, u64);

/// The first byte of a span in a region; None: the region does not hold the span.
#[inline(always)]
fn inside((base, length): Found, span: Span) -> Option<*mut u8> {
    let last = length.checked_sub(span.size as u64)?;
    (span.place.offset <= last).then(|| base.wrapping_add(span.place.offset as usize))
}

/// No region holds a span.
struct Missing;

/// A place that the walk over two lists moves on.
pub(super) trait Place: Copy {
    /// The place so many bytes behind it.
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
/// be 0. An entry is a place and a size, and is taken right before its first piece. False: the
/// lists have not the same number of bytes. An entry that is an error ends the walk.
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

/// Copies from one list to the other; each span is looked up right before its bytes move. False: a
/// span lies in no region that the functions find, or the lists have not the same number of bytes.
/// The pieces before that were copied.
///
/// # Safety
/// The memory of the regions that the functions find is valid until the end.
#[inline(always)]
pub(super) unsafe fn copy_lists(
    (from, source): (List, impl Fn(u64) -> Option<Found>),
    (to, destination): (List, impl Fn(u64) -> Option<Found>),
) -> bool {
    // SAFETY: passed on to the caller.
    let Some(at) = (unsafe { copy_pairs((from, &source), (to, &destination)) }) else {
        return false;
    };
    if at == from.count && at == to.count {
        return true;
    }
    let found = |span: Span, region: Option<Found>| match inside(region.ok_or(Missing)?, span) {
        Some(place) => Ok((place, span.size)),
        None => Err(Missing),
    };
    let from = from.behind(at).each().map(|span| found(span, source(span.place.key)));
    let to = to.behind(at).each().map(|span| found(span, destination(span.place.key)));
    // SAFETY: found, and as the caller promises.
    let copied = walk(from, to, |from, to, size| unsafe { copy_piece(from, to, size) });
    matches!(copied, Ok(true))
}

/// Copies the first entries of both lists as long as the sizes are equal, which they are in most
/// lists to the end. The number of entries; None: a span lies in no region, and those before it
/// were copied.
///
/// # Safety
/// As of copy_lists().
#[inline(always)]
unsafe fn copy_pairs(
    (from, source): (List, impl Fn(u64) -> Option<Found>),
    (to, destination): (List, impl Fn(u64) -> Option<Found>),
) -> Option<usize> {
    let (most, mut at) = (from.count.min(to.count), 0);
    if most == 0 {
        return Some(0);
    }
    let (mut a, mut b) = (from.entry(0), to.entry(0));
    loop {
        // The spans of a list mostly lie in one region, so a look-up serves all that follow.
        let keys = [a.place.key, b.place.key];
        let (here, there) = (source(keys[0])?, destination(keys[1])?);
        while [a.place.key, b.place.key] == keys {
            if a.size != b.size {
                return Some(at);
            }
            let (from_place, to_place) = (inside(here, a)?, inside(there, b)?);
            // SAFETY: found, and as the caller promises.
            unsafe { copy_piece(from_place, to_place, a.size) };
            at += 1;
            if at == most {
                return Some(at);
            }
            (a, b) = (from.entry(at), to.entry(at));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

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

    /// 16 bytes on both sides: from the region 1, to any other region but the one of `gone`.
    #[test]
    fn a_copy_stops_at_a_span_that_no_region_holds() {
        let (mut from, mut to) = ([7u8; 16], [0u8; 16]);
        let (left, right) = (from.as_mut_ptr(), to.as_mut_ptr());
        let gone = Cell::new(0);
        let near = |key| (key == 1).then_some((left, 16));
        let far = |key| (key > 1 && key != gone.get()).then_some((right, 16));
        let from_to = |ours: &[Span], theirs: &[Span]| {
            // SAFETY: both arrays are there until the end of the test.
            unsafe {
                right.cast::<[u8; 16]>().write([0; 16]);
                let copied = copy_lists((List::of(ours), near), (List::of(theirs), far));
                (copied, right.cast::<[u8; 16]>().read())
            }
        };
        let copied = |theirs: &[Span]| from_to(&[span(1, 0, 4), span(1, 8, 8)], theirs);
        let first_three = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7];
        gone.set(3);
        let vanished = [span(2, 13, 3), span(3, 0, 1), span(2, 0, 8)];
        assert_eq!(copied(&vanished), (false, first_three));
        gone.set(0);
        let all = [7, 7, 7, 7, 7, 7, 7, 7, 0, 7, 7, 7, 7, 0, 0, 0];
        assert!(copied(&[span(2, 0, 1), span(4, 9, 4), span(2, 1, 7)]).0);
        assert_eq!(copied(&[span(2, 0, 1), span(4, 9, 4), span(2, 1, 7)]).1, all);
        // Behind the end by one byte, behind 64 bits, in no region, of the key 0 that none has.
        for wrong in [span(2, 16, 1), span(2, u64::MAX, 1), span(1, 0, 1), span(0, 0, 1)] {
            let list = [span(2, 13, 3), wrong, span(2, 0, 8)];
            assert_eq!(copied(&list), (false, first_three), "{wrong:?}");
        }
        for nothing in [span(2, 17, 0), span(0, 0, 0)] {
            let lists = [span(1, 0, 3), span(1, 0, 0)];
            assert_eq!(from_to(&lists, &[span(2, 13, 3), nothing]), (false, first_three));
            assert_eq!(from_to(&[], &[nothing]), (false, [0; 16]));
        }
        assert_eq!(from_to(&[], &[]), (true, [0; 16]));
        // Sizes that differ in their sum: what both have was copied.
        assert_eq!(from_to(&[span(1, 0, 9)], &[span(2, 13, 3)]), (false, first_three));
    }

    /// An entry that is changed after it was looked up, before its bytes move, has no effect.
    #[test]
    fn an_entry_is_read_once() {
        let mut memory = [1u8, 2, 3, 4, 0, 0, 0, 0];
        let base = memory.as_mut_ptr();
        let mut ours = [span(1, 0, 1), span(1, 1, 1)];
        let theirs = [span(2, 4, 1), span(3, 5, 1)];
        let entries = ours.as_mut_ptr();
        let near = |key| (key == 1).then_some((base, 4));
        // Called for the second piece when both of its entries were read.
        let far = |key| {
            if key == 3 {
                // SAFETY: the array is there until the end of the test.
                unsafe { *entries.add(1) = span(1, 2, 1) };
            }
            Some((base, 8))
        };
        // SAFETY: as above; the regions of both sides do not overlap.
        let copied = unsafe { copy_lists((List::new(entries, 2), near), (List::of(&theirs), far)) };
        assert!(copied);
        assert_eq!((memory[4], memory[5]), (1, 2));
    }
}
