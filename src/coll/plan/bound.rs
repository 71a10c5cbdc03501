//! The owner's part of plans of which each start may name other buffers. `runner/binding` is the
//! part that other ranks read.
//!
//! If peers do not map a buffer, a block of the arena takes its place, which the plan keeps. The
//! starting thread copies the input there before other ranks can know of the round. The output is
//! copied back before the round's end is reported to the user.

use crate::coll::arena::Block;
use crate::coll::plan::asked::sides;
use crate::coll::plan::{Bounce, Plan};
use crate::coll::problem;
use crate::coll::runner::members::Memory;
use crate::coll::runner::shared::{Combiner, Reduction};
use crate::coll::touched::Touched;
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::{Result, Status};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The buffers of one plan. The starting thread writes all words between two rounds, and the thread
/// that ends the round reads them. The counters of rounds order these accesses.
pub(super) struct Bound {
    touched: Touched,
    sides: [Side; 2],
    /// Whether the present places have been checked and bound.
    checked: AtomicBool,
}

/// The place of the user's input or output, and its copy.
struct Side {
    key: AtomicU64,
    offset: AtomicU64,
    /// Whether peers use the copy, since they do not map the user's buffer.
    copied: AtomicBool,
    /// From Box::into_raw; null: there is none. It changes only between two rounds, while no other
    /// thread uses it.
    copy: AtomicPtr<Block>,
}

impl Side {
    /// The copy, if there is one.
    fn copy(&self) -> Option<Block> {
        // SAFETY: null, or the box of keep_copy(), which no thread frees while another one looks.
        // Acquire: pairs with keep_copy().
        unsafe { self.copy.load(Ordering::Acquire).as_ref() }.copied()
    }

    fn keep_copy(&self, copy: Block) {
        self.copy.store(Box::into_raw(Box::new(copy)), Ordering::Release);
    }

    fn take_copy(&self) -> Option<Block> {
        let copy = self.copy.swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: keep_copy() has boxed it, and the swap gives it to one thread only.
        (!copy.is_null()).then(|| *unsafe { Box::from_raw(copy) })
    }

    fn place(&self) -> Address {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Address { key: load(&self.key), offset: load(&self.offset) }
    }

    fn is_copied(&self) -> bool {
        self.copied.load(Ordering::Relaxed)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.take_copy();
    }
}

impl Bound {
    /// For buffers that lie at `places` at first.
    pub(super) fn new(touched: Touched, places: [Address; 2]) -> Bound {
        let sides = places.map(|place| Side {
            key: AtomicU64::new(place.key),
            offset: AtomicU64::new(place.offset),
            copied: AtomicBool::new(false),
            copy: AtomicPtr::default(),
        });
        Bound { touched, sides, checked: AtomicBool::new(false) }
    }

    /// The user's buffers of the last round.
    #[inline]
    pub(super) fn places(&self) -> [Address; 2] {
        [self.sides[0].place(), self.sides[1].place()]
    }

    /// Bytes of the copies, which the plan keeps.
    pub(super) fn copied(&self) -> u64 {
        self.sides.iter().filter_map(Side::copy).map(|copy| copy.bytes).sum()
    }
}

impl Plan {
    /// The user's buffers of the last round, if each start may name others.
    pub fn places(&self) -> Option<[Address; 2]> {
        self.bound.as_ref().map(Bound::places)
    }

    /// Starts the next round with input and output at these places. Refused unless the plan was
    /// made with LLCL_COLL_REBIND.
    #[inline]
    pub fn start_with(&self, places: [Address; 2]) -> Result<()> {
        let Some(bound) = &self.bound else {
            fail!(
                ERR_INVALID,
                "the plan's buffers are fixed, expected a plan made with LLCL_COLL_REBIND"
            );
        };
        // Steps of a round that is under way use the present places.
        if !self.is_settled(self.round()) {
            fail!(ERR_STATE, "the plan's previous round has not been waited for");
        }
        // Places that were checked before are not checked again: if a region was freed since, the
        // first step that accesses it fails.
        if !bound.checked.load(Ordering::Relaxed) || bound.places() != places {
            self.bind(bound, places)?;
        }
        if bound.sides.iter().any(Side::is_copied) {
            self.copy_in(bound).or_else(|error| self.pass_failure_on().and(Err(error)))?;
        }
        self.begin()
    }

    /// Sets the user's function for the next rounds. Does nothing while a round is under way.
    pub fn use_function(&self, function: Reduction, data: *mut c_void) {
        if let Some(Combiner::User(user, _)) = &self.stage.combiner
            && self.is_settled(self.round())
        {
            user.set(function, data);
        }
    }

    /// Checks the places and binds them, or the copies in their place.
    #[cold]
    fn bind(&self, bound: &Bound, places: [Address; 2]) -> Result<()> {
        self.pass_failure_on()?;
        let found = sides(&self.services, &bound.touched, places)?;
        let copied = found.map(|(_, own)| own.is_some_and(|own| !own.mapped));
        for at in (0..2).filter(|at| copied[*at]) {
            let side = &bound.sides[at];
            if side.copy().is_none() {
                side.keep_copy(self.arena.allocate(found[at].0, 0)?);
            }
        }
        // From here on nothing fails.
        let own = &self.stage.members[self.stage.me].memory;
        for (at, side) in bound.sides.iter().enumerate() {
            side.key.store(places[at].key, Ordering::Relaxed);
            side.offset.store(places[at].offset, Ordering::Relaxed);
            side.copied.store(copied[at], Ordering::Relaxed);
            let copy = side.copy().filter(|_| copied[at]);
            if let Memory::Bound(binding, _) = own[at] {
                // SAFETY: the binding lies in this rank's block, which stays as long as the plan.
                unsafe { &*binding }.store(copy.map_or(places[at], |copy| copy.place));
            }
        }
        bound.checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn copy_in(&self, bound: &Bound) -> Result<()> {
        let touched = &bound.touched;
        for (side, blocks) in bound.sides.iter().zip([&touched.send, &touched.held]) {
            self.copy_side(side, blocks, true)?;
        }
        Ok(())
    }

    /// Copies the output to the user's buffer, if peers have written to the copy.
    #[inline]
    pub(super) fn copy_out(&self) -> Result<()> {
        match &self.bound {
            Some(bound) if bound.sides[1].is_copied() => {
                self.copy_side(&bound.sides[1], &bound.touched.written, false)
            }
            _ => Ok(()),
        }
    }

    /// Copies blocks between the user's buffer and its copy; nothing if there is no copy.
    fn copy_side(&self, side: &Side, blocks: &[problem::Block], inwards: bool) -> Result<()> {
        let Some(copy) = side.is_copied().then(|| side.copy()).flatten() else { return Ok(()) };
        let bounce = |block: &problem::Block| Bounce::of(side.place(), copy.address, block);
        if !self.bounce(blocks.iter().map(bounce), inwards) {
            fail!(ERR_KEY, "the region of a buffer was freed");
        }
        Ok(())
    }

    /// Frees the copies. The next start allocates those that it needs. Does nothing while a round
    /// is under way, and after a failed round, since a thread of another rank may still access
    /// them.
    pub fn discard_copies(&self) {
        let ended_well =
            self.outcome.load(Ordering::Relaxed) == Status::OK.0 && self.trouble().is_none();
        let Some(bound) = self.bound.as_ref().filter(|_| ended_well && self.may_start()) else {
            return;
        };
        bound.checked.store(false, Ordering::Relaxed);
        bound.sides.iter().filter_map(Side::take_copy).for_each(|copy| self.arena.discard(copy));
    }
}
