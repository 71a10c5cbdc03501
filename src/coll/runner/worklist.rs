//! The queues that a thread which runs steps has still to run, and the bytes that it may still
//! move.

/// A queue of a rank in one word, since every start reserves space for 32 of them: the queue in the
/// low byte, the rank above it.
#[derive(Clone, Copy)]
pub(super) struct QueueId(u32);

impl QueueId {
    pub(super) fn new(rank: usize, queue: usize) -> QueueId {
        QueueId((rank << 8 | queue) as u32)
    }

    pub(super) fn place(self) -> (usize, usize) {
        (self.0 as usize >> 8, self.0 as usize & 0xff)
    }
}

/// Queues that may have become ready, and the budget that is left.
pub struct Worklist {
    /// Bytes that may still be moved; a step counts as at least a line.
    budget: u64,
    /// Whether the caller may run steps of its own rank although threads of other ranks may not.
    pub(super) owner: bool,
    /// Whether the next step is the first one. It may exceed the budget, so that no step is too
    /// large to be run.
    first: bool,
    pub(super) waiting: [QueueId; Worklist::ROOM],
    pub(super) count: usize,
    /// Queues that were signalled and whose runner is not known yet.
    pub(super) signalled: [QueueId; 8],
    pub(super) signalled_count: usize,
    /// Bytes that were moved since the first of these signals.
    pub(super) since: u64,
    /// Whether ready steps are left to other threads.
    pub left: bool,
}

impl Worklist {
    const ROOM: usize = 32;

    /// Whether its steps have released queues that it has not run yet.
    pub fn has_released(&self) -> bool {
        self.count > 0
    }

    /// Steps of up to SHORT bytes together may come between a signal and the search for the thread
    /// that runs the signalled queue.
    pub(super) const SHORT: u64 = 4 << 10;

    /// A worklist for at most `budget` bytes. `owner`: the thread may run steps of its own rank
    /// although threads of other ranks may not.
    pub fn new(budget: u64, owner: bool) -> Worklist {
        Worklist {
            budget,
            owner,
            first: true,
            waiting: [QueueId(0); Worklist::ROOM],
            count: 0,
            signalled: [QueueId(0); 8],
            signalled_count: 0,
            since: 0,
            left: false,
        }
    }

    /// Like `new`, for an owner. Also the first step must keep to the budget.
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
            self.waiting[self.count] = QueueId::new(rank, queue);
            self.count += 1;
        } else {
            self.left = true;
        }
    }
}
