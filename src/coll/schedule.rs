//! A collective as data: for each rank a [`Program`], which is a few queues of [`Step`]s.
//!
//! A step waits until a signal word has reached a count, then copies or combines bytes, then
//! signals. The steps of a queue run in their order, and the queues of a rank run independently of
//! each other. This is the session-mode queue of the Tofu2 network card, in which an arriving
//! packet advances the pointer up to which commands may run. A schedule does not determine which
//! thread runs a step: it is a thread of the owner, or a deliverer of its signal.
//!
//! The signals of a rank to queue q of another rank are counted in one word, which follows the head
//! of the sender's queue q. The steps of only one queue of the sender change it. So an early
//! signal, of a rank that is a round ahead, is not taken for the signal of another rank. Counts are
//! those of one round; the runner adds the counts of earlier rounds.

use std::collections::BTreeSet;

/// Most queues of a rank.
pub const QUEUES: usize = 8;

/// The memories of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Space {
    /// The input buffer of the user.
    Send = 0,
    /// The output buffer of the user, and in place also the input.
    Receive = 1,
    /// Memory of the plan, as much as the program asks for. A step reads there only what was
    /// written for its own round.
    Scratch = 2,
}

/// A place in the memory of some rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The rank in the team.
    pub rank: usize,
    /// Which of its memories.
    pub space: Space,
    /// Bytes from the beginning of that memory.
    pub offset: u64,
}

impl Place {
    /// The place `bytes` further on.
    pub fn plus(self, bytes: u64) -> Place {
        Place { offset: self.offset + bytes, ..self }
    }
}

/// The input of `rank` at `offset`.
pub fn send(rank: usize, offset: u64) -> Place {
    Place { rank, space: Space::Send, offset }
}

/// The output of `rank` at `offset`.
pub fn receive(rank: usize, offset: u64) -> Place {
    Place { rank, space: Space::Receive, offset }
}

/// The scratch memory of `rank` at `offset`.
pub fn scratch(rank: usize, offset: u64) -> Place {
    Place { rank, space: Space::Scratch, offset }
}

/// What a step waits for: `count` signals of rank `from` to this queue, in this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The rank that signals.
    pub from: usize,
    /// The number of signals, counted from the beginning of the round. With `late`: the number of
    /// signals in a round.
    pub count: u32,
    /// If not 0, the wait ignores the signals of this round and of the `late` - 1 rounds before it:
    /// it needs those up to `late` rounds before this one.
    pub late: u32,
    /// The step waits only in rounds whose number, from 0 on, is a multiple of this power of two.
    pub every: u32,
    /// The number of this rank's cell that has the signal word. None: the sender has the word.
    pub cell: Option<u32>,
}

/// The action of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the step only waits or signals.
    Nothing,
    /// Copies. The two ranges are equal or do not overlap.
    Copy {
        /// The source.
        from: Place,
        /// The target.
        to: Place,
        /// Bytes.
        size: u64,
    },
    /// Stores `left op right`, element by element. Each input range is `to` or does not overlap it.
    Combine {
        /// The left operand.
        left: Place,
        /// The right operand.
        right: Place,
        /// The result.
        to: Place,
        /// Bytes of each of the three; whole elements.
        size: u64,
    },
}

impl Action {
    /// All places that the action touches.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let places = match *self {
            Action::Nothing => [None; 3],
            Action::Copy { from, to, .. } => [Some(from), Some(to), None],
            Action::Combine { left, right, to, .. } => [Some(left), Some(right), Some(to)],
        };
        places.into_iter().flatten()
    }
}

/// The signal that a step sends when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The rank that is signalled.
    pub rank: usize,
    /// The queue of that rank.
    pub queue: usize,
    /// The step signals only in the last of this number of rounds, a power of two, for all of them.
    pub every: u32,
    /// The number of that rank's cell in whose last bytes the signal is stored, after the data that
    /// this step has copied there.
    pub cell: Option<u32>,
}

/// Bytes of a cell: a line of scratch memory. Its last [`CELL_WORD`] bytes are a signal word, so
/// one line carries both data and signal. One rank signals there, once in a round, and sends no
/// other signals to the queue that waits for it.
pub const CELL: u64 = 64;
/// Bytes of the signal word in a cell.
pub const CELL_WORD: u64 = 4;

/// The place of the data of cell `number` of `rank`.
pub fn cell(rank: usize, number: usize) -> Place {
    scratch(rank, number as u64 * CELL)
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What the step waits for before its action.
    pub wait: Option<Wait>,
    /// The step itself.
    pub action: Action,
    /// The signal that it sends after its action.
    pub signal: Option<Signal>,
}

impl Step {
    /// The rank in `far` to which the step puts bytes or a signal.
    pub fn puts_to(&self, far: &BTreeSet<usize>) -> Option<usize> {
        let to = match self.action {
            Action::Copy { to, .. } => Some(to.rank),
            Action::Nothing | Action::Combine { .. } => None,
        };
        let signalled = self.signal.map(|signal| signal.rank);
        [to, signalled].into_iter().flatten().find(|rank| far.contains(rank))
    }
}

/// The part of one rank in a collective.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its queues, each a list of steps.
    pub queues: Vec<Vec<Step>>,
    /// Bytes of scratch memory that the rank needs.
    pub scratch: u64,
    /// The number of copies of the scratch memory, which rounds use in turn. It is equal at all
    /// ranks. So a rank that knows that this rank has begun a round may already write data for
    /// later rounds.
    pub turns: u32,
    /// The ranks of other nodes that the program names; set by `runner::posted`.
    pub far: BTreeSet<usize>,
}

impl Program {
    /// A program of `queues` queues without steps.
    pub fn new(queues: usize) -> Program {
        Program { queues: vec![Vec::new(); queues], scratch: 0, turns: 1, far: BTreeSet::new() }
    }

    /// Appends steps to queue `queue`.
    pub fn queue(&mut self, queue: usize) -> Appender<'_> {
        Appender { steps: &mut self.queues[queue], wait: None }
    }
}

/// Appends steps to a queue. A wait belongs to the step that is appended next.
pub struct Appender<'a> {
    steps: &'a mut Vec<Step>,
    wait: Option<Wait>,
}

impl Appender<'_> {
    /// Makes the next step wait for `count` signals of `from` in this round.
    pub fn wait(&mut self, from: usize, count: u32) -> &mut Self {
        self.wait_for(Wait { from, count, late: 0, every: 1, cell: None })
    }

    /// Makes the next step wait for the signal of `from` in this rank's cell `number`.
    pub fn wait_cell(&mut self, from: usize, number: usize) -> &mut Self {
        self.wait_for(Wait { from, count: 1, late: 0, every: 1, cell: Some(number as u32) })
    }

    /// Makes the next step wait until it may write into the scratch memory of `from`, which has
    /// `turns` copies; `from` reports by signal_every() that it has read them. The step waits once
    /// in `every` rounds, and may then write in all of them.
    pub fn wait_read(&mut self, from: usize, turns: u32, every: u32) -> &mut Self {
        let late = turns - every + 1;
        self.wait_for(Wait { from, count: 1, late, every, cell: None })
    }

    fn wait_for(&mut self, wait: Wait) -> &mut Self {
        self.done();
        self.wait = Some(wait);
        self
    }

    /// Copies `size` bytes; no step for a size of 0.
    pub fn copy(&mut self, from: Place, to: Place, size: u64) -> &mut Self {
        if size > 0 && from != to {
            self.push(Action::Copy { from, to, size });
        }
        self
    }

    /// Stores `left op right` at `to`; no step for a size of 0.
    pub fn combine(&mut self, left: Place, right: Place, to: Place, size: u64) -> &mut Self {
        if size > 0 {
            self.push(Action::Combine { left, right, to, size });
        }
        self
    }

    /// Signals queue `queue` of `rank` after the step that was appended last.
    pub fn signal(&mut self, rank: usize, queue: usize) -> &mut Self {
        self.signal_by(Signal { rank, queue, every: 1, cell: None })
    }

    /// Like `signal`, in that rank's cell `number`, into which the last step has copied.
    pub fn signal_cell(&mut self, rank: usize, queue: usize, number: usize) -> &mut Self {
        self.signal_by(Signal { rank, queue, every: 1, cell: Some(number as u32) })
    }

    /// Like `signal`, but only in the last of `every` rounds.
    pub fn signal_every(&mut self, rank: usize, queue: usize, every: u32) -> &mut Self {
        self.signal_by(Signal { rank, queue, every, cell: None })
    }

    fn signal_by(&mut self, signal: Signal) -> &mut Self {
        let signal = Some(signal);
        match self.steps.last_mut() {
            Some(last) if self.wait.is_none() && last.signal.is_none() => last.signal = signal,
            _ => {
                let wait = self.wait.take();
                self.steps.push(Step { wait, action: Action::Nothing, signal });
            }
        }
        self
    }

    /// Appends a step for a wait that has none yet.
    pub fn done(&mut self) {
        if self.wait.is_some() {
            self.push(Action::Nothing);
        }
    }

    fn push(&mut self, action: Action) {
        let wait = self.wait.take();
        self.steps.push(Step { wait, action, signal: None });
    }
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        self.done();
    }
}
