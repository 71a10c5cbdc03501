//! Parameters of boxes and lists as requests: how each kind is read, and how it is done at once.

use crate::api::completion::llcl_completion_t;
use crate::api::noncontiguous::{
    LLCL_STRIDED_DIMENSIONS, llcl_strided_params_t, llcl_vector_params_t,
};
use crate::api::pieces::{Described, list, signal};
use crate::core::context::Context;
use crate::core::noncontiguous::{DIMENSIONS, List, Many, Row, Shape, Signal, Strided, sum};
use crate::engine::command::Op;
use crate::fail;
use crate::util::status::Result;

impl llcl_strided_params_t {
    fn strided(&self, op: Op) -> Result<Strided> {
        let dimensions = self.dimensions;
        if dimensions == 0 || dimensions > LLCL_STRIDED_DIMENSIONS {
            fail!(
                ERR_INVALID,
                "dimensions is {dimensions}, expected 1 to {LLCL_STRIDED_DIMENSIONS}"
            );
        }
        let mut given = [[0; 3]; DIMENSIONS];
        for (at, it) in given[..dimensions as usize].iter_mut().enumerate() {
            *it = [self.extents[at], self.local_strides[at], self.remote_strides[at]];
        }
        let to = if op == Op::READ { 1 } else { 2 };
        let places = (self.local.address(), self.remote.address());
        Strided::new(places, self.size as u64, &given[..dimensions as usize], to)
    }

    /// Does the request, which has one dimension and no signal, at once if possible.
    #[inline(always)]
    fn do_row(&self, context: &Context, op: Op) -> bool {
        let places = (self.local.address(), self.remote.address());
        let (size, count) = (self.size as u64, self.extents[0]);
        let row = Row { size, count, near: self.local_strides[0], far: self.remote_strides[0] };
        context.row_quickly(self.peer, places, row, op == Op::READ)
    }

    /// As do_row(), for every request.
    #[inline(never)]
    fn do_box(&self, context: &Context, op: Op) -> bool {
        let (Ok(strided), Ok(signal)) = (self.strided(op), self.signal(op)) else { return false };
        context.box_quickly(self.peer, &strided, op == Op::READ, signal)
    }

    fn signal(&self, op: Op) -> Result<Option<Signal>> {
        signal(op, self.signal, self.signal_op, self.signal_value)
    }
}

impl Described for llcl_strided_params_t {
    unsafe fn many(&self, op: Op) -> Result<Many> {
        let shape = Shape::Strided(self.strided(op)?);
        let signal = self.signal(op)?;
        let on_complete = *self.on_complete.as_engine();
        // SAFETY: as the caller promises.
        Ok(unsafe { Many::new((op, self.peer, self.flags), shape, signal, on_complete) })
    }

    #[inline(always)]
    unsafe fn do_quickly(&self, context: &Context, op: Op) -> bool {
        match self.signal_op {
            0 if self.dimensions == 1 => self.do_row(context, op),
            _ => self.do_box(context, op),
        }
    }

    fn flags(&self) -> u32 {
        self.flags
    }

    fn on_complete(&self) -> &llcl_completion_t {
        &self.on_complete
    }
}

impl llcl_vector_params_t {
    /// The lists, ours and the peer's.
    ///
    /// # Safety
    /// They are what the user promises.
    #[inline(always)]
    unsafe fn lists(&self) -> Result<(List, List)> {
        // SAFETY: as the caller promises.
        unsafe {
            Ok((
                list(self.locals, self.local_count, "locals")?,
                list(self.remotes, self.remote_count, "remotes")?,
            ))
        }
    }

    #[inline(always)]
    fn signal(&self, op: Op) -> Result<Option<Signal>> {
        signal(op, self.signal, self.signal_op, self.signal_value)
    }
}

impl Described for llcl_vector_params_t {
    unsafe fn many(&self, op: Op) -> Result<Many> {
        // SAFETY: as the caller promises.
        let (ours, theirs) = unsafe { self.lists() }?;
        let (ours, theirs) = (ours.captured("locals")?, theirs.captured("remotes")?);
        let (here, there) = (sum(&ours, "locals")?, sum(&theirs, "remotes")?);
        if here != there {
            fail!(
                ERR_INVALID,
                "locals have {here} bytes and remotes {there}, expected the same number"
            );
        }
        if self.reserved != 0 {
            fail!(ERR_INVALID, "reserved is {}, expected 0", self.reserved);
        }
        let signal = self.signal(op)?;
        let on_complete = *self.on_complete.as_engine();
        let shape = Shape::Lists(ours, theirs);
        // SAFETY: as the caller promises.
        Ok(unsafe { Many::new((op, self.peer, self.flags), shape, signal, on_complete) })
    }

    #[inline(always)]
    unsafe fn do_quickly(&self, context: &Context, op: Op) -> bool {
        // SAFETY: as the caller promises.
        match (unsafe { self.lists() }, self.signal(op)) {
            (Ok((ours, theirs)), Ok(signal)) if self.reserved == 0 => {
                context.lists_quickly(self.peer, ours, theirs, op == Op::READ, signal)
            }
            _ => false,
        }
    }

    fn flags(&self) -> u32 {
        self.flags
    }

    fn on_complete(&self) -> &llcl_completion_t {
        &self.on_complete
    }
}
