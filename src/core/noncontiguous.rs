//! Reads and writes of many pieces: boxes with strides, and lists. If all of the memory is mapped,
//! the caller copies it in the call. Otherwise the request becomes one command in the queue, see
//! `engine::pieces`.

use crate::core::context::Context;
use crate::core::poster::Poster;
use crate::core::submit::{
    Accepted, FLAG_DEFER, FLAG_DONE, RMA_FLAGS, check_completion, check_flags,
};
use crate::engine::atomic::kind;
use crate::engine::by_caller::{self, Local, Word, check_signal};
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
use list_copy::copy_spans;
use lists::walk;
pub use lists::{List, Span, sum};
use parked::Parked;
pub use row::Row;
pub use strided::{DIMENSIONS, Strided};

mod list_copy;
mod lists;
mod parked;
mod quickly;
mod row;
mod strided;

/// The pieces.
#[allow(clippy::large_enum_variant, reason = "an allocation would cost as much as a small box")]
#[derive(Clone)]
pub enum Shape {
    /// A box on both sides.
    Strided(Strided),
    /// Two lists of as many bytes, the local one and the peer's. They are copies, because the user
    /// may change its own lists after the call.
    Lists(Vec<Span>, Vec<Span>),
}

/// A read or a write of many pieces.
pub struct Many {
    /// Op::READ or Op::WRITE.
    op: Op,
    /// The peer's rank.
    peer: u32,
    /// The caller's flags.
    flags: u32,
    /// The pieces.
    shape: Shape,
    /// For a write: the word that changes after all bytes were written.
    signal: Option<Signal>,
    /// Fires when all pieces have ended.
    on_complete: Completion,
}

/// A word of the peer's, and how it changes.
#[derive(Clone, Copy)]
pub struct Signal {
    /// Where it is.
    pub place: Address,
    /// The atomic operation.
    pub op: u8,
    /// Its operand.
    pub value: u64,
}

impl Many {
    /// Makes a request. `op`: Op::READ or Op::WRITE. `signal`: only for a write.
    ///
    /// # Safety
    /// From each submission of the request until its end, local memory of the pieces that is in no
    /// region is valid for the operation, and the user keeps what the completion names.
    pub unsafe fn new(
        (op, peer, flags): (Op, u32, u32),
        shape: Shape,
        signal: Option<Signal>,
        on_complete: Completion,
    ) -> Many {
        Many { op, peer, flags, shape, signal, on_complete }
    }

    fn total(&self) -> u64 {
        match &self.shape {
            Shape::Strided(strided) => strided.total,
            Shape::Lists(ours, _) => ours.iter().map(|span| span.size as u64).sum(),
        }
    }
}

/// Calls `find` for each span of a list and returns whether all calls have returned true. An error
/// names the span.
fn each_span(
    list: &[Span],
    name: &str,
    mut find: impl FnMut(&Span) -> Result<bool>,
) -> Result<bool> {
    list.iter().enumerate().try_fold(true, |all, (at, span)| match find(span) {
        Ok(is) => Ok(is && all),
        Err(error) if error.status.is_retry() => Err(error),
        Err(error) => Err(Error::new(error.status, format!("{name}[{at}]: {}", error.message()))),
    })
}

impl Context {
    /// Executes, queues or parks the request; an error says why it was not accepted.
    pub fn submit_many(&self, many: &Many) -> Result<Accepted> {
        self.accept(many.flags, || Parked::of(&self.poster, many), || self.poster.submit_many(many))
    }

    /// Tries until the request is accepted.
    pub fn submit_many_until_accepted(&self, many: &Many) -> Result<Accepted> {
        self.may_block_to_post()?;
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
    /// Copies the pieces, or puts them into the queue as one command.
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
            self.is_mapped(port, many)?;
        } else if self.copy_mapped(port, many)? {
            if flags & FLAG_DONE != 0 {
                return Ok(Accepted::Done);
            }
            // SAFETY: checked above, and the user keeps it valid until it has fired.
            unsafe { on_complete.fire(Status::OK, self.routes.waiters()) };
            return Ok(Accepted::Fires);
        }
        let put = || {
            // This comes before the list of pieces is made, which a full queue would refuse.
            if self.lane.is_full() && (defer || !self.lane.make_room()) {
                return Err(Error::bare(Status::RETRY_QUEUE_FULL));
            }
            self.queue_many(many)
        };
        if later { self.lane.put_in_turn(put) } else { put() }
    }

    /// Whether all of the peer's side is mapped, the signal word included. Err: an address is
    /// invalid.
    fn is_mapped(&self, port: &Port, many: &Many) -> Result<bool> {
        let is_mapped = |place, size| -> Result<bool> {
            Ok(self.routes.locate(port, place, size)? == Access::Mapped)
        };
        let signal = match many.signal {
            Some(Signal { place, .. }) => check_signal(&self.routes, port, place)?,
            None => Access::Mapped,
        };
        let bytes = match &many.shape {
            Shape::Strided(strided) => is_mapped(strided.remote, strided.spans[1])?,
            Shape::Lists(_, theirs) => {
                each_span(theirs, "remotes", |span| is_mapped(span.place, span.size as u64))?
            }
        };
        Ok(bytes && signal == Access::Mapped)
    }

    /// Fails if the local side is not in memory of this rank now.
    fn check_local(&self, shape: &Shape) -> Result<()> {
        let _pinned = pin();
        match shape {
            Shape::Strided(it) => {
                Local::Region(it.local).resolve(&self.routes, it.spans[0]).map(drop)
            }
            Shape::Lists(ours, _) => self.check_ours(ours),
        }
    }

    /// Checks all local spans. The caller is pinned.
    fn check_ours(&self, ours: &[Span]) -> Result<()> {
        each_span(ours, "locals", |span| {
            Local::Region(span.place).resolve(&self.routes, span.size as u64).map(|_| true)
        })
        .map(drop)
    }

    /// Copies everything and changes the signal word, if all of the peer's side is mapped.
    /// is_mapped() looks all places up before a byte is copied, because it may have to read the
    /// owner's directory, and may fail.
    fn copy_mapped(&self, port: &Port, many: &Many) -> Result<bool> {
        Ok(self.is_mapped(port, many)?
            && self.copy_now(port, many)?
            && self.signal_now(port, many)?)
    }

    /// Copies everything. False: the owner has freed one of the regions since is_mapped(), and some
    /// pieces may have been copied.
    fn copy_now(&self, port: &Port, many: &Many) -> Result<bool> {
        let _pinned = pin();
        match &many.shape {
            Shape::Strided(strided) => {
                let Strided { local, remote, spans, .. } = strided;
                let Some(theirs) = port.find(*remote, spans[1]) else { return Ok(false) };
                let ours = Local::Region(*local).resolve(&self.routes, spans[0])?;
                // SAFETY: the look-ups vouch for the spans while we are pinned.
                unsafe { strided.copy(ours, theirs, many.op == Op::READ) };
                if many.op == Op::WRITE {
                    port.waiters().touched(*remote, spans[1]);
                }
                Ok(true)
            }
            Shape::Lists(ours, theirs) => {
                self.check_ours(ours)?;
                let near = |key| self.routes.own().region_near(key);
                let far = |key| port.region(key);
                let (ours, theirs) = (ours.iter().copied(), theirs.iter().copied());
                // SAFETY: the pin keeps what is found.
                Ok(unsafe {
                    match many.op {
                        Op::READ => copy_spans((theirs, far), (ours, near), None),
                        _ => copy_spans((ours, near), (theirs, far), Some(port.waiters())),
                    }
                })
            }
        }
    }

    /// Changes the signal word. False: the word is not mapped any more.
    fn signal_now(&self, port: &Port, many: &Many) -> Result<bool> {
        let Some(Signal { place, op, value }) = many.signal else { return Ok(true) };
        let word = Word { address: place, op, kind: kind::U64 };
        Ok(by_caller::change(&self.routes, port, word, value, 0)?.is_some())
    }

    /// The list of pieces, with pointers to the local memory. The caller is pinned.
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
                let resolved = |span: &Span| -> Result<_> {
                    let local = Local::Region(span.place);
                    Ok((local.resolve(&self.routes, span.size as u64)?, span.size))
                };
                let theirs = theirs.iter().map(|span| Ok((span.place, span.size)));
                walk(ours.iter().map(resolved), theirs, |local, remote, size| {
                    if size > 0 {
                        list.push(Piece { remote, local, size: size as u64 });
                    }
                })?;
            }
        }
        Ok(list)
    }

    fn queue_many(&self, many: &Many) -> Result<Accepted> {
        let mut whole = Command::new(many.op, many.peer);
        whole.on_complete = many.on_complete;
        whole.size = many.total();
        if let Some(Signal { place, op, value }) = many.signal {
            whole.op = Op::WRITE_SIGNAL;
            (whole.signal, whole.code, whole.operand) = (place, op, value);
        }
        let asleep = {
            // The pin keeps the regions until the command is in the queue, where a flush finds it.
            let _pinned = pin();
            let command = Pieces::command(whole, self.list(&many.shape)?);
            // SAFETY: submit_many() has checked the completion, and the user keeps it and the local
            // memory; the command has its box. After an error only this function has it.
            unsafe { self.lane.put(&command, &[]).inspect_err(|_| discard(&command))? }
        };
        match many.flags & FLAG_DEFER {
            0 => self.lane.wake_executor(asleep),
            _ => self.lane.leave_to_others(asleep),
        }
        Ok(Accepted::Fires)
    }
}
