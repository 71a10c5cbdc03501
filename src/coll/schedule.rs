//! A collective as data: for each rank a [`Program`], which is a few queues of [`Step`]s.
//!
//! A step waits until a signal word has reached a count, then copies or combines bytes, then
//! signals. The steps of a queue run in their order; queues of a rank run independently of each
//! other. This is the session-mode queue of the Tofu2 network card: an arriving packet moves the
//! pointer up to which commands may run. Which thread runs a step is not said here: the
//! owner, or a deliverer of its signal.
//!
//! Each queue has one signal word for each rank of the team, which only steps of that queue change,
//! to signal that rank's queue of the same number; so what arrives early, from a rank that is a
//! round ahead, is not taken for somebody else's. Counts are those of one round. The runner
//! adds what former rounds have brought.

use std::collections::BTreeSet;

/// Most queues of a rank.
pub const QUEUES: usize = 8;

/// Which memory of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Space {
    /// The user's input.
    Send = 0,
    /// The user's output; also the input where the collective runs in place.
    Receive = 1,
    /// Bytes of the plan's own, as many as the program asks for. Their content survives no round.
    Scratch = 2,
}

/// A place in some rank's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose memory, by rank in the team.
    pub rank: usize,
    /// Which memory.
    pub space: Space,
    /// Bytes from its beginning.
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

/// What a step waits for: in this round, `count` signals of rank `from` to this queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Whose signals.
    pub from: usize,
    /// How many of this round, counted from its beginning; if `late`, how many there are in a
    /// round.
    pub count: u32,
    /// 0, or: not those of this round, but all that were sent up to so many rounds before it.
    pub late: u32,
    /// Only in rounds whose number, from 0 on, is a multiple of this power of two.
    pub every: u32,
    /// The number of this rank's cell in which the signal lies; None: it lies with its sender.
    pub cell: Option<u32>,
}

/// What a step does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the step only waits, or only signals.
    Nothing,
    /// Copies. The two ranges are the same or do not overlap.
    Copy {
        /// Where the bytes come from.
        from: Place,
        /// Where they go.
        to: Place,
        /// How many.
        size: u64,
    },
    /// Stores `left op right`, element by element. Each input range is `to` or does not overlap it.
    Combine {
        /// The left operand.
        left: Place,
        /// The right operand.
        right: Place,
        /// Where the result goes.
        to: Place,
        /// Bytes of each: whole elements.
        size: u64,
    },
}

impl Action {
    /// All places that it touches.
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
    /// The rank.
    pub rank: usize,
    /// Its queue.
    pub queue: usize,
    /// Only in the last of so many rounds, a power of two, and for all of them.
    pub every: u32,
    /// The number of that rank's cell in which the signal is stored, behind the data that this step
    /// has put there.
    pub cell: Option<u32>,
}

/// Bytes of a cell: a line of scratch memory. Its last [`CELL_WORD`] bytes are a signal word, so
/// data and signal are handed over at once. One rank signals there, once in a round, and sends the
/// same queue no other signals.
pub const CELL: u64 = 64;
/// Bytes of the signal word in a cell.
pub const CELL_WORD: u64 = 4;

/// The data of cell `number` of `rank`.
pub fn cell(rank: usize, number: usize) -> Place {
    scratch(rank, number as u64 * CELL)
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Before it: what must have arrived at this queue.
    pub wait: Option<Wait>,
    /// The step itself.
    pub action: Action,
    /// After it.
    pub signal: Option<Signal>,
}

impl Step {
    /// The rank among those that are `far` to which it puts bytes or a signal.
    pub fn puts_to(&self, far: &BTreeSet<usize>) -> Option<usize> {
        let to = match self.action {
            Action::Copy { to, .. } => Some(to.rank),
            Action::Nothing | Action::Combine { .. } => None,
        };
        let signalled = self.signal.map(|signal| signal.rank);
        [to, signalled].into_iter().flatten().find(|rank| far.contains(rank))
    }
}

/// What one rank contributes to a collective.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its queues, each a list of steps.
    pub queues: Vec<Vec<Step>>,
    /// Bytes of scratch memory that the rank provides.
    pub scratch: u64,
    /// There are so many scratch memories of this size, used in turn round by round. So a rank that
    /// knows that this one has begun a round may write what it will read in later ones. Alike at
    /// all ranks.
    pub turns: u32,
    /// The ranks of other nodes that it names. `runner::posted` fills this in.
    pub far: BTreeSet<usize>,
}

impl Program {
    /// A program of `queues` queues without steps.
    pub fn new(queues: usize) -> Program {
        Program { queues: vec![Vec::new(); queues], scratch: 0, turns: 1, far: BTreeSet::new() }
    }

    /// The end of queue `queue`, to which steps are appended.
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
    /// The next step waits until `count` signals of `from` have arrived in this round.
    pub fn wait(&mut self, from: usize, count: u32) -> &mut Self {
        self.wait_for(Wait { from, count, late: 0, every: 1, cell: None })
    }

    /// The next step waits until the signal of `from` is in this rank's cell `number`.
    pub fn wait_cell(&mut self, from: usize, number: usize) -> &mut Self {
        self.wait_for(Wait { from, count: 1, late: 0, every: 1, cell: Some(number as u32) })
    }

    /// The next step waits until it may write into one of `turns` memories of `from`, which says by
    /// signal_every() what it has read. That is asked once for `every` rounds, all of which it then
    /// may write.
    pub fn wait_read(&mut self, from: usize, turns: u32, every: u32) -> &mut Self {
        let late = turns - every + 1;
        self.wait_for(Wait { from, count: 1, late, every, cell: None })
    }

    fn wait_for(&mut self, wait: Wait) -> &mut Self {
        self.done();
        self.wait = Some(wait);
        self
    }

    /// Copies `size` bytes; nothing for a size of 0.
    pub fn copy(&mut self, from: Place, to: Place, size: u64) -> &mut Self {
        if size > 0 && from != to {
            self.push(Action::Copy { from, to, size });
        }
        self
    }

    /// Stores `left op right` at `to`; nothing for a size of 0.
    pub fn combine(&mut self, left: Place, right: Place, to: Place, size: u64) -> &mut Self {
        if size > 0 {
            self.push(Action::Combine { left, right, to, size });
        }
        self
    }

    /// Signals queue `queue` of `rank`, after what was appended last.
    pub fn signal(&mut self, rank: usize, queue: usize) -> &mut Self {
        self.signal_by(Signal { rank, queue, every: 1, cell: None })
    }

    /// Like `signal`, with the word of that rank's cell `number`, into which what was appended last
    /// has copied.
    pub fn signal_cell(&mut self, rank: usize, queue: usize, number: usize) -> &mut Self {
        self.signal_by(Signal { rank, queue, every: 1, cell: Some(number as u32) })
    }

    /// Like `signal`, once for `every` rounds, in the last of them.
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

    /// A wait that is still open becomes a step of its own.
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
