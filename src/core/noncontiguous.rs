//! Reads and writes of many pieces: boxes with strides, and lists. Where all of it is mapped, the
//! caller copies it in the call; otherwise it becomes one command in the queue, see
//! `engine::pieces`.

use crate::core::context::Context;
use crate::core::poster::Poster;
use crate::core::submit::{
    Accepted, FLAG_DEFER, FLAG_DONE, RMA_FLAGS, check_completion, check_flags,
};
use crate::engine::by_caller::{Local, copy};
use crate::engine::command::{Command, Op};
use crate::engine::completion::{self, Completion};
use crate::engine::lane::Execution;
use crate::engine::pieces::{Piece, Pieces, discard};
use crate::fail;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::transport::port::Port;
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use kept::Kept;

mod kept;

/// Most dimensions of a box.
pub const DIMENSIONS: usize = 8;

/// A place and how many bytes lie there.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Span {
    /// Where.
    pub place: Address,
    /// How many bytes.
    pub size: usize,
}

/// A box, as [`Strided::new`] has checked and simplified it.
#[derive(Clone, Debug)]
pub struct Strided {
    local: Address,
    remote: Address,
    /// Bytes of a contiguous piece; 0: there is none.
    size: u64,
    /// Number of pieces and bytes from one to the next, locally and at the peer; the innermost
    /// first.
    dimensions: Vec<[u64; 3]>,
    /// Bytes from the first to behind the last, locally and at the peer.
    spans: [u64; 2],
    total: u64,
}

/// Bytes from the first to behind the last of a box; None: more than a number holds.
fn span(size: u64, dimensions: &[[u64; 3]], side: usize) -> Option<u64> {
    dimensions.iter().try_fold(size, |span, dimension| {
        span.checked_add((dimension[0] - 1).checked_mul(dimension[side])?)
    })
}

impl Strided {
    /// `given`: extents, and strides of both sides; the innermost first. `to`: the side that is
    /// written, 1 the local one and 2 the peer's.
    pub fn new(
        (local, remote): (Address, Address),
        size: u64,
        given: &[[u64; 3]],
        to: usize,
    ) -> Result<Strided> {
        if size == 0 || given.iter().any(|dimension| dimension[0] == 0) {
            let (dimensions, spans) = (Vec::new(), [0; 2]);
            return Ok(Strided { local, remote, size: 0, dimensions, spans, total: 0 });
        }
        let all = given.iter().try_fold(size, |all, dimension| all.checked_mul(dimension[0]));
        let (Some(total), Some(ours), Some(theirs)) =
            (all, span(size, given, 1), span(size, given, 2))
        else {
            fail!(ERR_RANGE, "extents and strides reach further than 2 to the 64th bytes");
        };
        let spans = [ours, theirs];
        if total > spans[to - 1] {
            let there = spans[to - 1];
            fail!(
                ERR_INVALID,
                "{total} bytes are to be written into {there} bytes, expected pieces that do not overlap there"
            );
        }
        let (mut piece, mut dimensions) = (size, Vec::<[u64; 3]>::with_capacity(given.len()));
        for [extent, ours, theirs] in given.iter().copied().filter(|it| it[0] > 1) {
            match dimensions.last_mut() {
                None if ours == piece && theirs == piece => piece *= extent,
                // Exact: the product of the extents is at most the total.
                Some([inner, a, b])
                    if a.checked_mul(*inner) == Some(ours)
                        && b.checked_mul(*inner) == Some(theirs) =>
                {
                    *inner *= extent;
                }
                _ => dimensions.push([extent, ours, theirs]),
            }
        }
        Ok(Strided { local, remote, size: piece, dimensions, spans, total })
    }

    /// Calls `each` with the offset of each piece, locally and at the peer.
    #[inline(always)]
    fn for_each(&self, mut each: impl FnMut(u64, u64)) {
        if self.size == 0 {
            return;
        }
        let (inner, outer) = match self.dimensions.split_first() {
            Some((inner, outer)) => (*inner, outer),
            None => ([1, 0, 0], &[][..]),
        };
        let (mut at, mut row) = ([0u64; DIMENSIONS], [0u64; 2]);
        loop {
            let [mut ours, mut theirs] = row;
            for _ in 0..inner[0] {
                each(ours, theirs);
                // The last addition may leave the box, and is not used.
                ours = ours.wrapping_add(inner[1]);
                theirs = theirs.wrapping_add(inner[2]);
            }
            let mut level = 0;
            loop {
                let Some([extent, a, b]) = outer.get(level) else { return };
                at[level] += 1;
                if at[level] < *extent {
                    row = [row[0] + a, row[1] + b];
                    break;
                }
                at[level] = 0;
                row = [row[0] - a * (extent - 1), row[1] - b * (extent - 1)];
                level += 1;
            }
        }
    }
}

/// Which pieces.
pub enum Shape<'a> {
    /// A box on both sides.
    Strided(Strided),
    /// Lists of as many bytes, ours and the peer's.
    Lists(&'a [Span], &'a [Span]),
}

/// A read or a write of many pieces.
pub struct Many<'a> {
    /// Op::READ or Op::WRITE.
    pub op: Op,
    /// With whom.
    pub peer: u32,
    /// The caller's flags.
    pub flags: u32,
    /// Which pieces.
    pub shape: Shape<'a>,
    /// Fires at the end of all.
    pub on_complete: Completion,
}

/// The sum of a list's sizes.
pub fn sum(list: &[Span], name: &str) -> Result<u64> {
    match list.iter().try_fold(0u64, |sum, span| sum.checked_add(span.size as u64)) {
        Some(sum) => Ok(sum),
        None => fail!(ERR_RANGE, "the sizes of {name} add up to more than 2 to the 64th"),
    }
}

/// Calls `each` with our place, the peer's, and the bytes of each piece of two lists of the same
/// sum.
fn walk(
    ours: &[Span],
    theirs: &[Span],
    mut each: impl FnMut(Address, Address, u64) -> Result<()>,
) -> Result<()> {
    let some = |span: &&Span| span.size > 0;
    let (mut left, mut right) = (ours.iter().filter(some), theirs.iter().filter(some));
    let (mut a, mut b) = (left.next().copied(), right.next().copied());
    while let (Some(near), Some(far)) = (&mut a, &mut b) {
        let size = near.size.min(far.size);
        each(near.place, far.place, size as u64)?;
        for (span, list) in [(&mut a, &mut left), (&mut b, &mut right)] {
            if let Some(it) = span {
                it.place.offset = it.place.offset.wrapping_add(size as u64);
                it.size -= size;
                if it.size == 0 {
                    *span = list.next().copied();
                }
            }
        }
    }
    Ok(())
}

/// Copies a piece; sizes of usual elements need no call.
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

impl Many<'_> {
    fn total(&self) -> u64 {
        match &self.shape {
            Shape::Strided(strided) => strided.total,
            Shape::Lists(ours, _) => ours.iter().map(|span| span.size as u64).sum(),
        }
    }

    /// # Safety
    /// Both sides are valid for `size` bytes.
    #[inline(always)]
    unsafe fn copy(&self, ours: *mut u8, theirs: *mut u8, size: u64) {
        // SAFETY: passed on to the caller.
        unsafe {
            match self.op {
                Op::READ => copy_piece(theirs, ours, size as usize),
                _ => copy_piece(ours, theirs, size as usize),
            }
        }
    }
}

impl Context {
    /// Accepts the request, or says why not.
    pub fn submit_many(&self, many: &Many) -> Result<Accepted> {
        self.accept(many.flags, || Kept::of(many), || self.poster.submit_many(many))
    }

    /// Tries until the request is accepted.
    pub fn submit_many_until_accepted(&self, many: &Many) -> Result<Accepted> {
        self.may_block()?;
        self.blocking().until_accepted(|| self.submit_many(many))
    }

    /// Does the request and waits for its end.
    pub fn submit_many_and_wait(&self, many: &mut Many) -> Result<Accepted> {
        let users = many.on_complete;
        self.until_ended([&users, &Completion::NOTHING], |ended| {
            many.on_complete = ended;
            many.flags |= FLAG_DONE;
            self.submit_many_until_accepted(many)
        })?;
        Ok(Accepted::Fires)
    }
}

impl Poster {
    /// Copies the pieces, or puts them into the queue as one command, or says why not.
    fn submit_many(&self, many: &Many) -> Result<Accepted> {
        let Many { flags, on_complete, .. } = many;
        let defer = flags & FLAG_DEFER != 0;
        check_flags(*flags, RMA_FLAGS)?;
        check_completion(on_complete, "on_complete")?;
        if on_complete.kind == completion::CALL && !completion::has_room(1) {
            return Err(Error::bare(Status::RETRY_QUEUE_FULL));
        }
        let port = self.routes.port(many.peer)?;
        let later = self.lane.execution() == Execution::Offload || defer;
        if later {
            self.is_mapped(port, &many.shape)?;
        } else if self.copy_mapped(port, many)? {
            if flags & FLAG_DONE != 0 {
                return Ok(Accepted::Done);
            }
            on_complete.fire(Status::OK, self.routes.waiters());
            return Ok(Accepted::Fires);
        }
        if later && !self.lane.room().admits() {
            return Err(Error::bare(Status::RETRY_QUEUE_FULL));
        }
        // Asked before: the list of the pieces is made in vain where the queue has no room.
        if self.lane.is_full() && (defer || !self.lane.relieve()) {
            return Err(Error::bare(Status::RETRY_QUEUE_FULL));
        }
        self.queue_many(many)
    }

    /// Whether all of the peer's side is mapped; Err: some of it is not there.
    fn is_mapped(&self, port: &Port, shape: &Shape) -> Result<bool> {
        let is_mapped = |place, size| Ok(self.routes.locate(port, place, size)? == Access::Mapped);
        match shape {
            Shape::Strided(strided) => is_mapped(strided.remote, strided.spans[1]),
            Shape::Lists(_, theirs) => theirs
                .iter()
                .try_fold(true, |all, span| Ok(is_mapped(span.place, span.size as u64)? && all)),
        }
    }

    /// Checks all of our side. The caller is pinned.
    fn check_ours(&self, ours: &[Span]) -> Result<()> {
        ours.iter().try_for_each(|span| {
            Local::Region(span.place).resolve(&self.routes, span.size as u64).map(drop)
        })
    }

    /// Copies everything if all of the peer's side is mapped. What is known here is looked up once;
    /// else the owner's directory is asked, and what it knows is found at the second attempt.
    fn copy_mapped(&self, port: &Port, many: &Many) -> Result<bool> {
        Ok(self.copy_now(port, many)?
            || self.is_mapped(port, &many.shape)? && self.copy_now(port, many)?)
    }

    /// Copies everything; false: some of the peer's side is not known here. Nothing was copied
    /// then, unless the owner is freeing it at this moment.
    fn copy_now(&self, port: &Port, many: &Many) -> Result<bool> {
        let _pinned = pin();
        match &many.shape {
            Shape::Strided(strided) => {
                let Strided { local, remote, size, spans, .. } = strided;
                let Some(theirs) = port.find(*remote, spans[1]) else { return Ok(false) };
                let ours = Local::Region(*local).resolve(&self.routes, spans[0])?;
                strided.for_each(|a, b| {
                    // SAFETY: the look-ups vouch for the spans while we are pinned, and each piece
                    // lies in them.
                    unsafe { many.copy(ours.add(a as usize), theirs.add(b as usize), *size) };
                });
                if many.op == Op::WRITE {
                    port.waiters().touched(*remote, spans[1]);
                }
            }
            Shape::Lists(ours, theirs) => {
                // All of them before the first is copied: what is refused changes nothing.
                if theirs.iter().any(|it| port.find(it.place, it.size as u64).is_none()) {
                    return Ok(false);
                }
                self.check_ours(ours)?;
                let mut found = true;
                walk(ours, theirs, |near, far, size| {
                    let Some(theirs) = port.find(far, size) else {
                        found = false;
                        return Ok(());
                    };
                    let ours = Local::Region(near).resolve(&self.routes, size)?;
                    // SAFETY: the look-ups vouch for `size` bytes while we are pinned.
                    unsafe { many.copy(ours, theirs, size) };
                    if many.op == Op::WRITE {
                        port.waiters().touched(far, size);
                    }
                    Ok(())
                })?;
                return Ok(found);
            }
        }
        Ok(true)
    }

    /// The pieces one by one, our side looked up. The caller is pinned.
    fn list(&self, shape: &Shape) -> Result<Vec<Piece>> {
        let mut list = Vec::new();
        let mut room = |count: u64| match usize::try_from(count).map(|n| list.try_reserve_exact(n))
        {
            Ok(Ok(())) => Ok(()),
            _ => fail!(ERR_NO_MEMORY, "no memory for a list of {count} pieces"),
        };
        match shape {
            Shape::Strided(strided) => {
                let Strided { local, remote, size, spans, .. } = strided;
                room(strided.dimensions.iter().map(|it| it[0]).product())?;
                let first = Local::Region(*local).resolve(&self.routes, spans[0])?;
                strided.for_each(|a, b| {
                    let remote = Address { offset: remote.offset + b, key: remote.key };
                    list.push(Piece { remote, local: first.wrapping_add(a as usize), size: *size });
                });
            }
            Shape::Lists(ours, theirs) => {
                self.check_ours(ours)?;
                room((ours.len() + theirs.len()) as u64)?;
                walk(ours, theirs, |near, remote, size| {
                    let local = Local::Region(near).resolve(&self.routes, size)?;
                    list.push(Piece { remote, local, size });
                    Ok(())
                })?;
            }
        }
        Ok(list)
    }

    fn queue_many(&self, many: &Many) -> Result<Accepted> {
        let mut whole = Command::new(many.op, many.peer);
        whole.on_complete = many.on_complete;
        whole.size = many.total();
        let asleep = {
            // Until the command is in the queue, where a flush finds it, the pin keeps the regions.
            let _pinned = pin();
            let command = Pieces::command(whole, self.list(&many.shape)?);
            self.lane.put(&command, &[]).inspect_err(|_| discard(&command))?
        };
        match many.flags & FLAG_DEFER {
            0 => self.lane.wake_executor(asleep),
            _ => self.lane.leave_to_others(asleep),
        }
        Ok(Accepted::Fires)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NOWHERE: Address = Address { offset: 0, key: 0 };

    fn strided(size: u64, given: &[[u64; 3]]) -> Strided {
        Strided::new((NOWHERE, NOWHERE), size, given, 2).unwrap()
    }

    #[test]
    fn dimensions_without_gaps_on_both_sides_are_one() {
        let of = |size, given: &[[u64; 3]]| {
            let it = strided(size, given);
            (it.size, it.dimensions)
        };
        assert_eq!(of(8, &[[4, 8, 8], [3, 32, 32]]), (96, vec![]));
        assert_eq!(of(8, &[[4, 8, 8], [1, 0, 7], [3, 32, 40]]), (32, vec![[3, 32, 40]]));
        assert_eq!(of(8, &[[4, 16, 24], [3, 64, 96]]), (8, vec![[12, 16, 24]]));
        assert_eq!(of(8, &[[4, 16, 24], [3, 64, 97]]).1.len(), 2);
        assert_eq!(of(0, &[[4, 16, 24]]), (0, vec![]));
    }

    /// Their product with an extent is no number of 64 bits.
    #[test]
    fn strides_of_half_of_all_numbers_are_compared() {
        let half = 1 << 63;
        assert_eq!(strided(1, &[[2, half, 8], [2, 0, 16]]).dimensions.len(), 2);
        assert_eq!(strided(1, &[[2, 8, half], [2, 16, 0]]).dimensions.len(), 2);
    }

    #[test]
    fn each_piece_is_visited_once_the_innermost_first() {
        let mut seen = Vec::new();
        strided(2, &[[2, 4, 8], [3, 100, 50]]).for_each(|a, b| seen.push((a, b)));
        assert_eq!(seen, [(0, 0), (4, 8), (100, 50), (104, 58), (200, 100), (204, 108)]);
    }
}
