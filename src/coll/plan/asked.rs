//! The parameters with which one rank makes a plan, and the checks that the rank can make alone.

use crate::coll::algorithms::vectors::CACHED;
use crate::coll::problem::{Block, MOST_SEGMENTS, Operation, Problem, Row, Varied};
use crate::coll::reduction::{self, Op, Type};
use crate::coll::runner::shared::{Combiner, Reduction, UserFunction};
use crate::coll::schedule::QUEUES;
use crate::coll::select;
use crate::coll::tables::{Given, rows};
use crate::coll::touched::{Touched, extent, overlap, touched};
use crate::core::services::{Own, Services};
use crate::engine::atomic::op_name;
use crate::engine::completion::Completion;
use crate::fail;
use crate::transport::address::Address;
use crate::util::config::Config;
use crate::util::rounding::Environment;
use crate::util::status::Result;
use std::ffi::c_void;
use std::sync::Arc;

/// Whether the blocks of the ranks have lengths of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All blocks have the same length.
    Even,
    /// A v form, with counts and offsets.
    Varied,
}

/// The input lies in the output buffer.
pub const IN_PLACE: u32 = 1;
/// Several threads may call the user's function at the same time.
pub const CONCURRENT: u32 = 2;
/// Each start may name other buffers.
pub const REBIND: u32 = 4;

/// Most rounds of a plan that may be under way.
pub const DEPTH: u32 = 64;

/// The most bytes of a rank's input or output, times the ranks of the team: scratch memory may have
/// a slot of a block for each rank, in two copies.
const MOST: u64 = 1 << 61;

/// The parameters of the call.
#[derive(Clone)]
pub struct Asked {
    /// The operation.
    pub operation: Operation,
    /// Its form.
    pub form: Form,
    /// The input.
    pub send: Address,
    /// The output.
    pub receive: Address,
    /// Number of elements.
    pub count: u64,
    /// Their type, an LLCL_TYPE_* value.
    pub kind: u32,
    /// How they are combined, an LLCL_OP_* value.
    pub op: u32,
    /// The root's rank in the team.
    pub root: u32,
    /// 0: the configured engine; else the Engine plus 1.
    pub engine: u32,
    /// The flags of the call.
    pub flags: u32,
    /// Bytes of an element of type Bytes; else 0.
    pub element_size: u32,
    /// How many rounds may be under way; 0 counts as 1.
    pub depth: u32,
    /// Why the call itself is wrong, if it is. The exchange of parameters then reports this to the
    /// other ranks.
    pub refused: Option<&'static str>,
    /// The floating-point environment in which elements are combined.
    pub environment: Environment,
    /// Counts and offsets of the input's blocks, by rank; empty if the call gave none.
    pub send_blocks: Vec<Block>,
    /// Counts and offsets of the output's blocks, by rank; empty if the call gave none.
    pub receive_blocks: Vec<Block>,
    /// The user's reduction.
    pub function: Option<Reduction>,
    /// Its last argument.
    pub function_data: *mut c_void,
    /// The algorithm that the call names.
    pub algorithm: Option<String>,
    /// The completion, which fires at the end of each round.
    pub on_complete: Completion,
}

/// Parameters that were checked.
pub struct Checked {
    /// Bytes of an element.
    pub width: u64,
    /// How elements are combined.
    pub combiner: Option<Combiner>,
    /// Whether the result is right only if elements are combined in the order of ranks.
    pub ordered: bool,
    /// The bytes of this rank's buffers that the operation uses.
    pub touched: Touched,
    /// The input.
    pub send: Side,
    /// The output.
    pub receive: Side,
}

impl Checked {
    /// About how many bytes the steps take while the plan is made, beside those for each rank.
    pub fn steps_take(&self, segment: u64) -> u64 {
        1024 * (self.send.0.max(self.receive.0) / segment.min(CACHED)).min(MOST_SEGMENTS)
    }

    /// Whether peers do not map the input, and the output.
    pub fn unmapped(&self) -> [bool; 2] {
        [&self.send.1, &self.receive.1].map(|side| side.is_some_and(|own| !own.mapped))
    }
}

/// A buffer: its length up to the last used byte, and its place.
pub type Side = (u64, Option<Own>);

/// Looks up input and output at these places. Refuses places that name no memory of this rank, and
/// buffers that overlap.
pub fn sides(services: &Services, touched: &Touched, places: [Address; 2]) -> Result<[Side; 2]> {
    let find = |place: Address, size: u64, name: &str| match size {
        0 => Ok((0, None)),
        _ => services.own(place, size, name).map(|own| (size, Some(own))),
    };
    let output = extent(&touched.held).max(extent(&touched.written));
    let send = find(places[0], extent(&touched.send), "send")?;
    let receive = find(places[1], output, "receive")?;
    if let ((_, Some(from)), (_, Some(to))) = (send, receive) {
        let shift = to.pointer as i128 - from.pointer as i128;
        let both = |blocks: &[Block]| overlap(&touched.send, blocks, shift);
        if both(&touched.held) || both(&touched.written) {
            fail!(ERR_INVALID, "send and receive overlap, expected LLCL_COLL_IN_PLACE");
        }
    }
    Ok([send, receive])
}

impl Asked {
    /// The parameters of an operation without data.
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
            element_size: 0,
            depth: 0,
            refused: None,
            environment: Environment::DEFAULT,
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
        use Operation::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        matches!(self.operation, Reduce | Allreduce | ReduceScatter | Scan | Exscan)
    }

    /// Whether a function of the user combines elements.
    pub fn is_users_function(&self) -> bool {
        self.combines() && self.op == Op::User as u32
    }

    /// Whether two combinations of a rank must not run at the same time.
    fn is_serial(&self) -> bool {
        self.is_users_function() && self.flags & CONCURRENT == 0
    }

    /// The environment in which elements are combined; None if the result does not depend on it.
    pub fn environment(&self) -> Option<Environment> {
        match Type::from_code(self.kind) {
            _ if self.is_users_function() => Some(self.environment),
            Some(kind) if self.combines() => kind.environment(self.environment),
            _ => None,
        }
    }

    /// The flags that must be equal at all ranks.
    pub fn common_flags(&self) -> u32 {
        let concurrent = if self.is_users_function() { CONCURRENT } else { 0 };
        self.flags & (IN_PLACE | REBIND | concurrent)
    }

    /// How many rounds may be under way.
    pub fn depth(&self) -> usize {
        self.depth.max(1) as usize
    }

    /// Whether each start may name other buffers.
    pub fn is_rebound(&self) -> bool {
        self.flags & REBIND != 0
    }

    /// The name of the algorithm that the call or the configuration asks for.
    pub fn wanted(&self, config: &Config) -> Option<&str> {
        let configured = select::forced(config, self.operation);
        self.algorithm.as_deref().or(configured).filter(|name| *name != "auto")
    }

    /// Checks the parameters that may differ between ranks, without the buffers.
    pub fn check_own(&self, services: &Services) -> Result<()> {
        if let Some(why) = self.refused {
            fail!(ERR_INVALID, "{why}");
        }
        // Without the bits that are known: the blocking forms have added one of these.
        let unknown = self.flags & !(IN_PLACE | CONCURRENT | REBIND);
        if unknown != 0 {
            let flags = "LLCL_COLL_IN_PLACE, LLCL_COLL_CONCURRENT, LLCL_COLL_REBIND";
            fail!(ERR_INVALID, "flags has {unknown:#x}, expected 0 or some of {flags}");
        }
        if self.engine > 2 {
            fail!(ERR_INVALID, "engine is {}, expected LLCL_ENGINE_*", self.engine);
        }
        if self.depth > DEPTH {
            fail!(ERR_INVALID, "depth is {}, expected at most {DEPTH}", self.depth);
        }
        if self.is_users_function() && self.function.is_none() {
            fail!(ERR_INVALID, "function is NULL, expected a function for LLCL_OP_USER");
        }
        services.check_completion(&self.on_complete, "on_complete")
    }

    /// The length of segments, if the vector, or the largest block of any rank, has `largest`
    /// bytes.
    pub fn segment(&self, ranks: usize, largest: u64, segment: u64) -> u64 {
        use Operation::{Allgather, Alltoall, Gather, ReduceScatter, Scatter};
        let blocks = match self.operation {
            Gather | Scatter | Allgather | Alltoall | ReduceScatter => ranks as u64,
            _ => 1,
        };
        let least = largest.saturating_mul(blocks).div_ceil(MOST_SEGMENTS);
        least.next_multiple_of(64).max(segment)
    }

    /// Checks the parameters as far as this rank can without the others.
    pub fn check(&self, services: &Services, me: usize, ranks: usize) -> Result<Checked> {
        self.check_own(services)?;
        if self.has_root() && self.root as usize >= ranks {
            fail!(ERR_INVALID, "root is {}, expected a rank below {ranks}", self.root);
        }
        if self.operation == Operation::Barrier {
            let (touched, nothing) = (Touched::default(), (0, None));
            let (width, combiner, ordered) = (1, None, false);
            return Ok(Checked {
                width,
                combiner,
                ordered,
                touched,
                send: nothing,
                receive: nothing,
            });
        }
        let Some(kind) = Type::from_code(self.kind) else {
            fail!(ERR_INVALID, "type is {}, expected LLCL_TYPE_*", self.kind);
        };
        let (combiner, ordered) = self.combiner(kind)?;
        self.check_blocks(me, ranks)?;
        let width = self.width(kind)?;
        let touched = self.touched(me, ranks, width)?;
        let [send, receive] = sides(services, &touched, [self.send, self.receive])?;
        Ok(Checked { width, combiner, ordered, touched, send, receive })
    }

    /// Bytes of an element.
    fn width(&self, kind: Type) -> Result<u64> {
        let size = self.element_size;
        match kind.width() {
            Some(width) if size == 0 => Ok(width),
            None if size > 0 => Ok(size.into()),
            None => {
                fail!(ERR_INVALID, "element_size is 0, expected at least 1 for LLCL_TYPE_BYTES")
            }
            Some(_) => {
                fail!(
                    ERR_INVALID,
                    "element_size is {size}, expected 0 for other types than LLCL_TYPE_BYTES"
                )
            }
        }
    }

    /// The problem, without the blocks of a v form.
    pub fn problem(&self, ranks: usize, width: u64, segment: u64) -> Problem {
        // The counts of a v form differ from rank to rank.
        let largest = match self.form {
            Form::Even => self.count.saturating_mul(width),
            Form::Varied => 0,
        };
        Problem {
            operation: self.operation,
            ranks,
            root: if self.has_root() { self.root as usize } else { 0 },
            count: self.count,
            width,
            segment: self.segment(ranks, largest, segment).max(width),
            in_place: self.flags & IN_PLACE != 0 && self.operation != Operation::Broadcast,
            queues: if self.is_serial() { 1 } else { QUEUES },
            varied: None,
            nodes: None,
        }
    }

    /// The tables that this rank gives for a v form.
    pub fn given(&self) -> Given<'_> {
        Given { count: self.count, send: &self.send_blocks, receive: &self.receive_blocks }
    }

    /// The bytes of this rank's buffers that the operation uses. Refuses lengths of more than 2^63
    /// bytes.
    fn touched(&self, me: usize, ranks: usize, width: u64) -> Result<Touched> {
        use Operation::{Allgather, Alltoall, Gather, ReduceScatter, Scatter};
        let mut problem = self.problem(ranks, 1, 1);
        if self.form == Form::Varied {
            let unknown = || vec![Row::One(Block::default()); ranks];
            let mut varied = Varied { send: unknown(), receive: unknown(), largest: 0 };
            (varied.send[me], varied.receive[me]) = rows(&problem, me, self.given());
            problem.varied = Some(varied);
        } else if matches!(self.operation, Gather | Scatter | Allgather | Alltoall | ReduceScatter)
            && self.count.checked_mul(ranks as u64).is_none()
        {
            fail!(
                ERR_RANGE,
                "count is {}: too much for {ranks} ranks, expected less than 2^64 elements in all",
                self.count
            );
        }
        let in_bytes = |blocks: Box<[Block]>, name: &str| {
            let elements = extent(&blocks);
            if elements.checked_mul(width).is_none_or(|bytes| bytes > MOST / ranks as u64) {
                let from = match (self.form, name) {
                    (Form::Even, _) => "count",
                    (_, "send") => "send_counts and send_offsets",
                    _ => "receive_counts and receive_offsets",
                };
                fail!(
                    ERR_RANGE,
                    "{name} has {elements} elements of {width} bytes by {from}: too much, expected at most {MOST} / {ranks} bytes"
                );
            }
            let scaled =
                |Block { offset, size }| Block { offset: offset * width, size: size * width };
            Ok(blocks.into_iter().map(scaled).collect())
        };
        let Touched { send, held, written } = touched(&problem, me);
        Ok(Touched {
            send: in_bytes(send, "send")?,
            held: in_bytes(held, "receive")?,
            written: in_bytes(written, "receive")?,
        })
    }

    /// Refuses a v form that lacks counts or offsets which the operation needs at this rank.
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
            let op = op_name(self.op.into());
            fail!(ERR_INVALID, "op is {op}, expected one of LLCL_OP_* that combine elements");
        };
        reduction::check(kind, op)?;
        if op != Op::User {
            let environment = self.environment();
            let kernel = reduction::kernel(kind, op);
            return Ok((kernel.map(|kernel| Combiner::Kernel(kernel, environment)), false));
        }
        let (data, environment) = (self.function_data, self.environment);
        match self.function {
            Some(function) => {
                let user = Arc::new(UserFunction::new(function, data));
                Ok((Some(Combiner::User(user, environment)), true))
            }
            None => fail!(ERR_INTERNAL, "a call without a function was not refused"),
        }
    }
}
