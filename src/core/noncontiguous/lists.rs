//! Lists of spans on both sides.

use crate::engine::by_caller::copy;
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::Result;

/// An address and a number of bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Span {
    /// Where.
    pub place: Address,
    /// How many bytes.
    pub size: usize,
}

impl Span {
    const NOTHING: Span = Span { place: Address { offset: 0, key: 0 }, size: 0 };

    /// What is left of it behind its first bytes.
    #[inline(always)]
    fn behind(self, size: usize) -> Span {
        let Address { offset, key } = self.place;
        let place = Address { offset: offset.wrapping_add(size as u64), key };
        Span { place, size: self.size - size }
    }
}

/// The sum of a list's sizes.
pub fn sum(list: &[Span], name: &str) -> Result<u64> {
    match list.iter().try_fold(0u64, |sum, span| sum.checked_add(span.size as u64)) {
        Some(sum) => Ok(sum),
        None => fail!(ERR_RANGE, "the sizes of {name} add up to more than 2 to the 64th"),
    }
}

/// Looks spans up. The spans of a list mostly lie in one region, so the region of the last look-up
/// is kept.
struct Finder<R> {
    region: R,
    key: u64,
    /// Where the region of `key` begins, and its length; before the first look-up and where there
    /// is no such region, none.
    found: Option<(*mut u8, u64)>,
}

impl<R: Fn(u64) -> Option<(*mut u8, u64)>> Finder<R> {
    fn new(region: R) -> Finder<R> {
        Finder { region, key: 0, found: None }
    }

    #[inline(always)]
    fn find(&mut self, place: Address, size: u64) -> Option<*mut u8> {
        if place.key != self.key {
            self.key = place.key;
            self.found = (self.region)(place.key);
        }
        let (base, length) = self.found?;
        let is_inside = size <= length && place.offset <= length - size;
        is_inside.then(|| base.wrapping_add(place.offset as usize))
    }
}

/// A list whose spans all lie in regions that are known here.
pub(super) struct Known<'a> {
    spans: &'a [Span],
    /// The sum of their sizes.
    pub total: u64,
    /// Where the region begins in which all of them lie; None: there are several.
    only: Option<*mut u8>,
}

impl<'a> Known<'a> {
    /// None where a span lies in no region that `region` knows, or the sum is no number. `region`:
    /// the begin and the length of the region of a key.
    #[inline(always)]
    pub fn of(
        spans: &'a [Span],
        region: impl Fn(u64) -> Option<(*mut u8, u64)>,
    ) -> Option<Known<'a>> {
        let mut finder = Finder::new(region);
        let (mut total, mut several) = (0u64, 0);
        let key = spans.first().map_or(0, |span| span.place.key);
        for span in spans {
            let size = span.size as u64;
            finder.find(span.place, size)?;
            total = total.checked_add(size)?;
            several |= span.place.key ^ key;
        }
        let only = finder.found.map(|(base, _)| base).filter(|_| several == 0);
        Some(Known { spans, total, only })
    }
}

/// Calls `each` for each piece of two lists of the same sum, with our address, the peer's address
/// and the size, as long as it answers Ok.
#[inline(always)]
pub(super) fn walk<E>(
    ours: &[Span],
    theirs: &[Span],
    mut each: impl FnMut(Address, Address, u64) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let (mut left, mut right) = (ours.iter(), theirs.iter());
    let (mut near, mut far) = (Span::NOTHING, Span::NOTHING);
    loop {
        while near.size == 0 {
            let Some(next) = left.next() else { return Ok(()) };
            near = *next;
        }
        while far.size == 0 {
            let Some(next) = right.next() else { return Ok(()) };
            far = *next;
        }
        let size = near.size.min(far.size);
        each(near.place, far.place, size as u64)?;
        (near, far) = (near.behind(size), far.behind(size));
    }
}

/// Copies a piece. The usual sizes of elements need no call.
///
/// # Safety
/// As of copy().
#[inline(always)]
unsafe fn copy_piece(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match size {
            4 => std::ptr::copy(from, to, 4),
            16 => std::ptr::copy(from, to, 16),
            _ => copy(from, to, size),
        }
    }
}

/// Copies from one list to the other. False: a region has vanished since it was found, and the
/// piece there and those behind it were not copied.
///
/// # Safety
/// The memory of `from` and `to`, and of the regions that the functions find, is valid until the
/// end.
#[inline(always)]
pub(super) unsafe fn copy_lists(
    (from, source): (&Known, impl Fn(u64) -> Option<(*mut u8, u64)>),
    (to, destination): (&Known, impl Fn(u64) -> Option<(*mut u8, u64)>),
) -> bool {
    if let (Some(source), Some(destination)) = (from.only, to.only) {
        let copied = walk(from.spans, to.spans, |from, to, size| {
            let from = source.wrapping_add(from.offset as usize);
            let to = destination.wrapping_add(to.offset as usize);
            // SAFETY: inside of what was found, and as the caller promises.
            unsafe { copy_piece(from, to, size as usize) };
            Ok::<_, ()>(())
        });
        return copied.is_ok();
    }
    let (mut source, mut destination) = (Finder::new(source), Finder::new(destination));
    let copied = walk(from.spans, to.spans, |from, to, size| {
        let found = source.find(from, size).zip(destination.find(to, size));
        // SAFETY: found, and as the caller promises.
        found.map(|(from, to)| unsafe { copy_piece(from, to, size as usize) }).ok_or(())
    });
    copied.is_ok()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn span(key: u64, offset: u64, size: usize) -> Span {
        Span { place: Address { offset, key }, size }
    }

    #[test]
    fn lists_meet_piece_by_piece_whatever_the_sizes_of_their_spans() {
        let ours = [span(1, 10, 0), span(1, 0, 3), span(1, 20, 5), span(1, 9, 0)];
        let theirs = [span(2, 0, 1), span(2, 8, 2), span(2, 30, 4), span(2, 7, 0), span(2, 50, 1)];
        let mut seen = Vec::new();
        walk(&ours, &theirs, |near, far, size| {
            seen.push((near.offset, far.offset, size));
            Ok::<_, ()>(())
        })
        .unwrap();
        assert_eq!(seen, [(0, 0, 1), (1, 8, 2), (20, 30, 4), (24, 50, 1)]);
    }

    #[test]
    fn spans_are_measured_if_their_regions_hold_them() {
        let mut memory = [0u8; 64];
        let base = memory.as_mut_ptr();
        let region = |key| [None, Some((base, 64)), Some((base, 8))][key as usize];
        let of = |list: &[Span]| Known::of(list, region).map(|it| (it.total, it.only.is_some()));
        assert_eq!(of(&[]), Some((0, false)));
        assert_eq!(of(&[span(1, 0, 64), span(1, 60, 4)]), Some((68, true)));
        assert_eq!(
            of(&[span(1, 0, 64), span(2, 4, 4), span(1, 64, 0), span(1, 1, 2)]),
            Some((70, false))
        );
        // The key 0 is that of no region, also as the first one.
        assert_eq!(of(&[span(0, 0, 0)]), None);
        for wrong in [span(1, 1, 64), span(2, 9, 0), span(1, u64::MAX, 2), span(0, 0, 1)] {
            assert_eq!(of(&[span(1, 0, 1), wrong]), None);
        }
    }

    #[test]
    fn a_copy_stops_where_a_region_has_vanished() {
        let (mut from, mut to) = ([7u8; 16], [0u8; 16]);
        let (left, right) = (from.as_mut_ptr(), to.as_mut_ptr());
        let gone = Cell::new(0);
        let near = |key| (key == 1).then_some((left, 16));
        let far = |key| (key > 1 && key != gone.get()).then_some((right, 16));
        let copied = |theirs: &[Span], vanishes| {
            let ours = [span(1, 0, 4), span(1, 8, 8)];
            let (from, to) = (Known::of(&ours, near).unwrap(), Known::of(theirs, far).unwrap());
            gone.set(vanishes);
            // SAFETY: both arrays are there until the end of the test.
            unsafe { copy_lists((&from, near), (&to, far)) }
        };
        let seen = || {
            // SAFETY: as above.
            unsafe { right.cast::<[u8; 16]>().read() }
        };
        assert!(!copied(&[span(2, 13, 3), span(3, 0, 1), span(2, 0, 8)], 3));
        assert_eq!(seen(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7]);
        // In several regions, and in one.
        assert!(copied(&[span(2, 0, 1), span(4, 2, 3), span(2, 5, 8)], 0));
        assert_eq!(seen(), [7, 0, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
        assert!(copied(&[span(2, 1, 1), span(2, 2, 3), span(2, 5, 8)], 0));
        assert_eq!(seen(), [7; 16]);
    }
}
