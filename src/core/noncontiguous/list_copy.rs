//! The copy from one list to another in mapped memory.

use super::lists::{List, Place, Span, read_once, walk};
use super::row::{copy_piece, copy_sized, unforeseen};
use crate::transport::address::Address;
use crate::transport::waiters::Waiters;
use crate::util::fence::light_fence;
use crate::util::sync::{AtomicU32, Ordering};

/// The begin and the length of a region.
type Found = (*mut u8, u64);

/// The first byte of a span in a region; None: the region does not hold the span.
#[inline(always)]
fn inside((base, length): Found, span: Span) -> Option<*mut u8> {
    let last = length.checked_sub(span.size as u64)?;
    (span.place.offset <= last).then(|| base.wrapping_add(span.place.offset as usize))
}

/// The error for a span that no region holds.
struct Missing;

/// A place in mapped memory, and its address in the region.
#[derive(Clone, Copy)]
struct Both(*mut u8, Address);

impl Place for Both {
    #[inline(always)]
    fn behind(self, size: usize) -> Both {
        Both(self.0.wrapping_add(size), self.1.behind(size))
    }
}

/// Copies from one list to the other. It looks each span up right before it copies the span. False:
/// a span lies in no region that the functions find, or the lists have not the same number of
/// bytes; the pieces before that were copied. `waiters`: the sleeping threads of the rank that is
/// written to; each piece wakes those that sleep on its words.
///
/// # Safety
/// The memory of the regions that the functions find is valid until the end.
#[inline(always)]
pub(super) unsafe fn copy_lists(
    (from, source): (List, impl Fn(u64) -> Option<Found>),
    (to, destination): (List, impl Fn(u64) -> Option<Found>),
    waiters: Option<&Waiters>,
) -> bool {
    // SAFETY: passed on to the caller.
    let Some(at) = (unsafe { copy_pairs((from, &source), (to, &destination), waiters) }) else {
        return false;
    };
    if at == from.count && at == to.count {
        return true;
    }
    let (from, to) = (from.behind(at).each(), to.behind(at).each());
    // SAFETY: passed on to the caller.
    unsafe { copy_spans((from, source), (to, destination), waiters) }
}

/// Does what copy_lists() does, with spans of any sizes on both sides.
///
/// # Safety
/// As of copy_lists().
pub(super) unsafe fn copy_spans(
    (from, source): (impl Iterator<Item = Span>, impl Fn(u64) -> Option<Found>),
    (to, destination): (impl Iterator<Item = Span>, impl Fn(u64) -> Option<Found>),
    waiters: Option<&Waiters>,
) -> bool {
    let found = |span: Span, region: Option<Found>| match inside(region.ok_or(Missing)?, span) {
        Some(place) => Ok((Both(place, span.place), span.size)),
        None => Err(Missing),
    };
    let from = from.map(|span| found(span, source(span.place.key)));
    let to = to.map(|span| found(span, destination(span.place.key)));
    let copied = walk(from, to, |Both(from, _), Both(to, address), size| {
        // SAFETY: found, and as the caller promises.
        unsafe { copy_piece(from, to, size) };
        if let Some(waiters) = waiters {
            waiters.touched(address, size as u64);
        }
    });
    matches!(copied, Ok(true))
}

/// Copies the first entries of both lists as long as their sizes are equal. In most lists all are.
/// Returns the number of entries. None: a span lies in no region, and those before it were copied.
///
/// # Safety
/// As of copy_lists().
#[inline(always)]
unsafe fn copy_pairs(
    (from, source): (List, impl Fn(u64) -> Option<Found>),
    (to, destination): (List, impl Fn(u64) -> Option<Found>),
    waiters: Option<&Waiters>,
) -> Option<usize> {
    let most = from.count.min(to.count);
    if most == 0 {
        return Some(0);
    }
    let next = (from.entry(0), to.entry(0));
    let mut pairs = Pairs { from, to, most, at: 0, next, waiters };
    // The spans of most lists lie in one region and have one size. One look-up and one choice of
    // the loop then do for all of them.
    while pairs.at < most && pairs.next.0.size == pairs.next.1.size {
        let keys = pairs.keys();
        let regions = (source(keys.0)?, destination(keys.1)?);
        // SAFETY: found, and as the caller promises.
        unsafe {
            pairs.copy_one_size(regions)?;
            let (a, b) = pairs.next;
            if pairs.at < most && pairs.keys() == keys && a.size == b.size {
                pairs.copy_run::<ANY>(regions)?;
            }
        }
    }
    Some(pairs.at)
}

/// The `SIZE` of copy_run() for spans of any size.
const ANY: usize = 0;

/// Two lists whose entries are copied pair by pair.
struct Pairs<'a> {
    from: List,
    to: List,
    /// The number of pairs.
    most: usize,
    /// The next pair's index, up to `most`.
    at: usize,
    /// The next pair, which was read and is not read again.
    next: (Span, Span),
    waiters: Option<&'a Waiters>,
}

impl Pairs<'_> {
    fn keys(&self) -> (u64, u64) {
        (self.next.0.place.key, self.next.1.place.key)
    }

    /// Copies the next pairs as far as they have the size of the first one.
    ///
    /// # Safety
    /// As of copy_run().
    #[inline(always)]
    unsafe fn copy_one_size(&mut self, regions: (Found, Found)) -> Option<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            match self.next.0.size {
                8 => self.copy_run::<8>(regions),
                16 => self.copy_run::<16>(regions),
                24 => self.copy_run::<24>(regions),
                32 => self.copy_run::<32>(regions),
                48 => self.copy_run::<48>(regions),
                64 => self.copy_run::<64>(regions),
                _ => self.copy_run::<ANY>(regions),
            }
        }
    }

    /// Copies the next pair and those behind it, as far as both sizes are `SIZE` (ANY: are equal)
    /// and the spans lie in the same regions. None: a span leaves its region; those before it were
    /// copied. It is not inlined, so that the compiler keeps all variables of the loop in
    /// registers.
    ///
    /// # Safety
    /// The regions are those of the next pair, and valid. Its sizes are both `SIZE`, or equal.
    #[inline(never)]
    unsafe fn copy_run<const SIZE: usize>(&mut self, (here, there): (Found, Found)) -> Option<()> {
        let ((mut a, mut b), keys) = (self.next, self.keys());
        let (mut from, mut to) = (self.from.behind(self.at).first, self.to.behind(self.at).first);
        let end = from.wrapping_add(self.most - self.at);
        // Without waiters the loop reads this word as the number of sleepers, so that it needs no
        // branch.
        let nobody = AtomicU32::new(0);
        let sleepers = self.waiters.map_or(&nobody, Waiters::sleepers);
        loop {
            let size = if SIZE == ANY { a.size } else { SIZE };
            let known = |span: Span| Span { size, ..span };
            let (source, place) = (inside(here, known(a))?, inside(there, known(b))?);
            // SAFETY: found, and as the caller promises.
            unsafe { copy_sized::<SIZE>(source, place, size) };
            light_fence();
            if sleepers.load(Ordering::Relaxed) != 0 {
                wake(self.waiters, b.place, size);
            }
            (from, to) = (unforeseen!(from.wrapping_add(1)), unforeseen!(to.wrapping_add(1)));
            if from == end {
                break;
            }
            // SAFETY: entries of the lists, as `from` is one.
            (a, b) = unsafe { (read_once(from), read_once(to)) };
            let fits = match SIZE {
                ANY => a.size == b.size,
                _ => a.size == SIZE && b.size == SIZE,
            };
            if !fits || (a.place.key, b.place.key) != keys {
                break;
            }
        }
        // SAFETY: both lie in one list.
        self.at = self.most - unsafe { end.offset_from(from) } as usize;
        self.next = (a, b);
        Some(())
    }
}

/// Wakes those that sleep on a word of a span.
#[cold]
#[inline(never)]
fn wake(waiters: Option<&Waiters>, place: Address, size: usize) {
    waiters.into_iter().for_each(|it| it.touched(place, size as u64));
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::transport::waiters::{Awaited, Bits};
    use std::cell::Cell;

    /// The list of a slice, which it does not outlive.
    fn of(spans: &mut [Span]) -> List {
        // SAFETY: as the caller keeps the slice.
        unsafe { List::new(spans.as_mut_ptr(), spans.len()) }
    }

    fn span(key: u64, offset: u64, size: usize) -> Span {
        Span { place: Address { offset, key }, size }
    }

    /// Both sides have 16 bytes. The source is region 1; the destination is any other region except
    /// `gone`.
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
                let (mut ours, mut theirs) = (ours.to_vec(), theirs.to_vec());
                let lists = ((of(&mut ours), near), (of(&mut theirs), far));
                let copied = copy_lists(lists.0, lists.1, None);
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

    /// An entry that another thread changes between the look-up and the copy has no effect.
    #[test]
    fn an_entry_is_read_once() {
        let mut memory = [1u8, 2, 3, 4, 0, 0, 0, 0];
        let base = memory.as_mut_ptr();
        let mut ours = [span(1, 0, 1), span(1, 1, 1)];
        let mut theirs = [span(2, 4, 1), span(3, 5, 1)];
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
        let lists = unsafe { ((List::new(entries, 2), near), (of(&mut theirs), far)) };
        // SAFETY: as above.
        let copied = unsafe { copy_lists(lists.0, lists.1, None) };
        assert!(copied);
        assert_eq!((memory[4], memory[5]), (1, 2));
    }

    /// A thread that sleeps on a word wakes when the word was written, also if the user changes the
    /// entry before the whole list was copied. The test uses lists with equal sizes, and with sizes
    /// that differ.
    #[test]
    fn a_thread_that_sleeps_on_a_written_word_wakes() {
        for sizes in [[8, 8], [12, 4]] {
            // SAFETY: all zeroes are waiters without sleepers, as in fresh shared memory.
            let waiters: Box<Waiters> = unsafe { Box::new(std::mem::zeroed()) };
            let mut bits = Bits::default();
            let awaited = Awaited { name: Some(Address { offset: 8, key: 2 }), local: None };
            bits.add(Some(awaited), 0);
            waiters.fill(0, Some(awaited), 0);
            waiters.mark(bits);
            let (before, mut memory) = (waiters.bell(0).ticket(), [0u8; 32]);
            let base = memory.as_mut_ptr();
            let mut ours = [span(1, 0, sizes[0]), span(1, 16, sizes[1])];
            let mut theirs = [span(2, 8, 8), span(3, 24, 8)];
            let entries = theirs.as_mut_ptr();
            let far = |key| {
                if key == 3 {
                    // SAFETY: the array is there until the end of the test.
                    unsafe { *entries = span(2, 16, 8) };
                }
                Some((base, 32))
            };
            // SAFETY: as above.
            let theirs = unsafe { List::new(entries, 2) };
            // SAFETY: all regions are the array.
            let copied = unsafe {
                copy_lists((of(&mut ours), |_| Some((base, 32))), (theirs, far), Some(&waiters))
            };
            assert!(copied && waiters.bell(0).ticket() != before, "{sizes:?}");
        }
    }
}
