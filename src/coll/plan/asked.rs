//! What one rank asks for when it makes a plan, and what can be said about it without the others.

use crate::coll::problem::{Block, Operation};
use crate::coll::reduction::{self, Op, Type};
use crate::coll::runner::shared::{Combiner, Reduction};
use crate::core::services::{Own, Services};
use crate::engine::completion::Completion;
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::Result;
use std::ffi::c_void;

/// Whether each rank's block has a length of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All blocks are of the same length.
    Even,
    /// The counts and offsets of the v forms.
    Varied,
}

/// The input lies in the output buffer.
pub const IN_PLACE: u32 = 1;

/// The parameters, as the user gave them.
#[derive(Clone)]
pub struct Asked {
    /// What is to be done.
    pub operation: Operation,
    /// Which form of it.
    pub form: Form,
    /// The input.
    pub send: Address,
    /// The output.
    pub receive: Address,
    /// Elements.
    pub count: u64,
    /// Their type, as in the C interface.
    pub kind: u32,
    /// How they are combined, as in the C interface.
    pub op: u32,
    /// The root's rank in the team.
    pub root: u32,
    /// 0: as configured; else the engine plus one.
    pub engine: u32,
    /// The caller's flags.
    pub flags: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Counts and offsets of the input's blocks, by rank; empty where none were given.
    pub send_blocks: Vec<Block>,
    /// The same of the output's.
    pub receive_blocks: Vec<Block>,
    /// The user's reduction.
    pub function: Option<Reduction>,
    /// Its last argument.
    pub function_data: *mut c_void,
    /// An algorithm by name.
    pub algorithm: Option<String>,
    /// Fires at the end of every round.
    pub on_complete: Completion,
}

/// What has been found to be right.
pub struct Checked {
    /// Bytes of an element.
    pub width: u64,
    /// How they are combined.
    pub combiner: Option<Combiner>,
    /// Only an order of ranks that is kept gives the right result.
    pub ordered: bool,
    /// The input: bytes, and where they lie.
    pub send: (u64, Option<Own>),
    /// The output.
    pub receive: (u64, Option<Own>),
}

impl Asked {
    /// An operation without data.
    pub fn nothing(operation: Operation, form: Form) -> Asked {
        let nowhere = Address { offset: 0, key: 0 };
        Asked {
            operation,
            form,
            send: nowhere,
            receive: nowhere,
            count: 0,
            kind: 0,
            op: 0,
            root: 0,
            engine: 0,
            flags: 0,
            reserved: 0,
            send_blocks: Vec::new(),
            receive_blocks: Vec::new(),
            function: None,
            function_data: std::ptr::null_mut(),
            algorithm: None,
            on_complete: Completion::NOTHING,
        }
    }

    /// Whether the input lies in the output at rank `me`.
    pub fn is_in_place(&self, me: usize) -> bool {
        use Operation::{Gather, Reduce, Scatter};
        let rooted = matches!(self.operation, Reduce | Gather | Scatter);
        self.flags & IN_PLACE != 0 && (!rooted || me == self.root as usize)
    }

    /// Whether the operation has a root.
    pub fn has_root(&self) -> bool {
        use Operation::{Broadcast, Gather, Reduce, Scatter};
        matches!(self.operation, Broadcast | Reduce | Gather | Scatter)
    }

    /// Whether the operation combines elements.
    pub fn combines(&self) -> bool {
        use Operation::{Allreduce, Reduce, ReduceScatter, Scan};
        matches!(self.operation, Reduce | Allreduce | ReduceScatter | Scan)
    }

    /// Checks what can be checked by this rank alone.
    pub fn check(&self, services: &Services, me: usize, ranks: usize) -> Result<Checked> {
        if self.flags & !IN_PLACE != 0 {
            fail!(ERR_INVALID, "flags is {:#x}, expected 0 or LLCL_COLL_IN_PLACE", self.flags);
        }
        if self.engine > 2 {
            fail!(ERR_INVALID, "engine is {}, expected LLCL_ENGINE_*", self.engine);
        }
        if self.reserved != 0 {
            fail!(ERR_INVALID, "reserved is {}, expected 0", self.reserved);
        }
        if self.has_root() && self.root as usize >= ranks {
            fail!(ERR_INVALID, "root is {}, expected a rank below {ranks}", self.root);
        }
        services.check_completion(&self.on_complete, "on_complete")?;
        if self.operation == Operation::Barrier {
            let nothing = (0, None);
            let (combiner, ordered) = (None, false);
            return Ok(Checked { width: 1, combiner, ordered, send: nothing, receive: nothing });
        }
        let Some(kind) = Type::from_code(self.kind) else {
            fail!(ERR_INVALID, "type is {}, expected LLCL_TYPE_*", self.kind);
        };
        let (combiner, ordered) = self.combiner(kind)?;
        self.check_blocks(me, ranks)?;
        let width = kind.width();
        let Some((send, receive)) = self.elements(me, ranks) else {
            fail!(ERR_RANGE, "count is {}, too much for {ranks} ranks", self.count);
        };
        let bytes = |elements: u64, name: &str| match elements.checked_mul(width) {
            Some(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
            _ => fail!(ERR_RANGE, "{name} has {elements} elements of {width} bytes, too much"),
        };
        let (send, receive) = (bytes(send, "send")?, bytes(receive, "receive")?);
        let find = |place: Address, size: u64, name: &str| match size {
            0 => Ok((0, None)),
            _ => services.own(place, size, name).map(|own| (size, Some(own))),
        };
        let sides = (find(self.send, send, "send")?, find(self.receive, receive, "receive")?);
        if let ((_, Some(from)), (_, Some(to))) = sides {
            let (from, to) = (from.pointer as u64, to.pointer as u64);
            if from < to + receive && to < from + send {
                fail!(ERR_INVALID, "send and receive overlap, expected LLCL_COLL_IN_PLACE");
            }
        }
        Ok(Checked { width, combiner, ordered, send: sides.0, receive: sides.1 })
    }

    /// The v forms need counts and offsets where data is split or put together.
    fn check_blocks(&self, me: usize, ranks: usize) -> Result<()> {
        use Operation::{Allgather, Alltoall, Gather, ReduceScatter, Scatter};
        let root = me == self.root as usize;
        let (send, receive) = match self.operation {
            Gather => (false, root),
            Scatter => (root, false),
            Allgather | ReduceScatter => (false, true),
            Alltoall => (self.flags & IN_PLACE == 0, true),
            _ => (false, false),
        };
        let lacking = |needed: bool, blocks: &[Block]| needed && blocks.len() != ranks;
        if self.form == Form::Varied && lacking(send, &self.send_blocks) {
            fail!(ERR_INVALID, "send_counts or send_offsets is NULL, expected {ranks} numbers");
        }
        if self.form == Form::Varied && lacking(receive, &self.receive_blocks) {
            fail!(
                ERR_INVALID,
                "receive_counts or receive_offsets is NULL, expected {ranks} numbers"
            );
        }
        Ok(())
    }

    fn combiner(&self, kind: Type) -> Result<(Option<Combiner>, bool)> {
        if !self.combines() {
            return Ok((None, false));
        }
        let Some(op) = Op::from_code(self.op) else {
            fail!(ERR_INVALID, "op is {}, expected one that combines elements", self.op);
        };
        reduction::check(kind, op)?;
        if op != Op::User {
            return Ok((reduction::kernel(kind, op).map(Combiner::Kernel), false));
        }
        match self.function {
            Some(function) => Ok((Some(Combiner::User(function, self.function_data)), true)),
            None => fail!(ERR_INVALID, "function is NULL, expected one for LLCL_OP_USER"),
        }
    }

    /// Elements of input and output at this rank.
    fn elements(&self, me: usize, ranks: usize) -> Option<(u64, u64)> {
        use Operation::*;
        let root = me == self.root as usize;
        let all = self.count.checked_mul(ranks as u64);
        let (send, receive) = match (self.operation, self.form) {
            (Barrier, _) => (0, 0),
            (Broadcast, _) => (0, self.count),
            (Reduce, _) => (self.count, if root { self.count } else { 0 }),
            (Allreduce | Scan, _) => (self.count, self.count),
            (Gather, Form::Even) => (self.count, if root { all? } else { 0 }),
            (Gather, _) => (self.count, if root { extent(&self.receive_blocks)? } else { 0 }),
            (Scatter, Form::Even) => (if root { all? } else { 0 }, self.count),
            (Scatter, _) => (if root { extent(&self.send_blocks)? } else { 0 }, self.count),
            (Allgather, Form::Even) => (self.count, all?),
            (Allgather, _) => (self.count, extent(&self.receive_blocks)?),
            (Alltoall, Form::Even) => (all?, all?),
            (Alltoall, _) => (extent(&self.send_blocks)?, extent(&self.receive_blocks)?),
            (ReduceScatter, Form::Even) => (all?, self.count),
            (ReduceScatter, _) => {
                let sizes = self.receive_blocks.iter().map(|block| block.size);
                let all = sizes.clone().try_fold(0u64, |sum, size| sum.checked_add(size))?;
                (all, sizes.clone().nth(me)?)
            }
        };
        Some(match self.operation {
            Scatter if self.is_in_place(me) => (send, 0),
            ReduceScatter if self.is_in_place(me) => (0, send.max(receive)),
            _ if self.is_in_place(me) => (0, receive),
            _ => (send, receive),
        })
    }
}

/// Where the last block ends; None: too far for a number.
fn extent(blocks: &[Block]) -> Option<u64> {
    blocks.iter().try_fold(0u64, |end, block| Some(end.max(block.offset.checked_add(block.size)?)))
}
