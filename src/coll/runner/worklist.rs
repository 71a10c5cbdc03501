//! What a thread that runs steps has still to do, and may do.

/// A queue of a rank, in one word, since every start makes room for some: the rank, and in the last
/// byte the queue.
#[derive(Clone, Copy)]
pub(super) struct Line(u32);

impl Line {
    pub(super) fn new(rank: usize, queue: usize) -> Line {
        Line((rank << 8 | queue) as u32)
    }

    pub(super) fn place(self) -> (usize, usize) {
        (self.0 as usize >> 8, self.0 as usize & 0xff)
    }
}

/// Queues that may have become ready, and how much may still be done.
pub struct Worklist {
    /// Bytes, a step without any counting as a line.
    budget: u64,
    /// The caller is the owner's progress thread, or a thread that may stand in for it.
    pub(super) owner: bool,
    /// The first step may exceed the budget, so that none is too large for anybody.
    first: bool,
    pub(super) waiting: [Line; Worklist::ROOM],
    pub(super) count: usize,
    /// Queues that were signalled and not asked yet.
    pub(super) signalled: [Line; 8],
    pub(super) signalled_count: usize,
    /// Bytes that were moved since the first of them.
    pub(super) since: u64,
    /// Something that was ready has been left to others.
    pub left: bool,
}

impl Worklist {
    const ROOM: usize = 32;

    /// Whether its steps have released queues that were not run yet.
    pub fn has_released(&self) -> bool {
        self.count > 0
    }

    /// Steps of up to so many bytes in all may come between a signal and the question which thread
    /// takes care of it.
    pub(super) const SHORT: u64 = 4 << 10;

    /// For at most `budget` bytes. `owner`: steps of the own rank may be run even where no other
    /// rank may.
    pub fn new(budget: u64, owner: bool) -> Worklist {
        Worklist {
            budget,
            owner,
            first: true,
            waiting: [Line(0); Worklist::ROOM],
            count: 0,
            signalled: [Line(0); 8],
            signalled_count: 0,
            since: 0,
            left: false,
        }
    }

    /// Like `new`, for an owner; also the first step keeps to the budget.
    pub fn small(budget: u64) -> Worklist {
        Worklist { first: false, ..Worklist::new(budget, true) }
    }

    pub(super) fn take(&mut self, size: u64) -> bool {
        let cost = size.max(64);
        let enough = self.first || self.budget >= cost;
        if enough {
            self.budget = self.budget.saturating_sub(cost);
            self.first = false;
        }
        self.left |= !enough;
        enough
    }

    #[cold]
    pub(super) fn push(&mut self, rank: usize, queue: usize) {
        if self.count < Worklist::ROOM {
            self.waiting[self.count] = Line::new(rank, queue);
            self.count += 1;
        } else {
            self.left = true;
        }
    }
}
