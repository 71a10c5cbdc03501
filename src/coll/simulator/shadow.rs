//! Records which thread accessed which bytes, and the order that waits and signals impose, by
//! vector clocks as in the race detectors DJIT+ and FastTrack.

/// For each thread the moment up to which everything has happened before.
#[derive(Clone)]
pub struct Clock(Vec<u32>);

impl Clock {
    /// The first clock of thread `own` of `threads`.
    pub fn new(threads: usize, own: usize) -> Clock {
        let mut moments = vec![0; threads];
        moments[own] = 1;
        Clock(moments)
    }

    /// All moments that happened before `other` have now happened before this clock too.
    pub fn join(&mut self, other: &Clock) {
        for (mine, other) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*other);
        }
    }

    /// Begins a new moment of thread `own`: clocks that were copied before do not cover its later
    /// accesses.
    pub fn tick(&mut self, own: usize) {
        self.0[own] += 1;
    }

    /// Sets the moment of thread `own`.
    pub fn set(&mut self, own: usize, moment: u32) {
        self.0[own] = moment;
    }

    /// Whether moment `moment` of thread `other` has happened before.
    pub fn has(&self, other: usize, moment: u32) -> bool {
        self.0[other] >= moment
    }

    fn covers(&self, epoch: Epoch) -> bool {
        self.0[epoch.thread as usize] >= epoch.moment
    }
}

/// One access: by which thread, when, and in which step.
#[derive(Clone, Copy, Default)]
pub struct Epoch {
    thread: u32,
    moment: u32,
    /// The number of the step.
    pub step: u32,
    /// The round of the thread, from 1.
    pub round: u32,
}

impl Epoch {
    /// An access at the present moment of the thread.
    pub fn new(thread: usize, clock: &Clock, step: usize, round: usize) -> Epoch {
        let moment = clock.0[thread];
        Epoch { thread: thread as u32, moment, step: step as u32, round: round as u32 }
    }

    /// The thread that made the access.
    pub fn thread(self) -> usize {
        self.thread as usize
    }
}

#[derive(Clone, Default)]
struct Cell {
    written: Epoch,
    /// The reads since that write that are not ordered among each other.
    read: Vec<Epoch>,
}

/// The accesses to one memory.
pub struct Shadow {
    grain: u64,
    cells: Vec<Cell>,
}

impl Shadow {
    /// For a memory of `size` bytes in which all ranges are multiples of `grain`.
    pub fn new(size: u64, grain: u64) -> Shadow {
        Shadow { grain, cells: vec![Cell::default(); size.div_ceil(grain) as usize] }
    }

    fn cells(&mut self, offset: u64, size: u64) -> &mut [Cell] {
        let end = (offset + size).div_ceil(self.grain);
        &mut self.cells[(offset / self.grain) as usize..end as usize]
    }

    /// Records a write; returns an access that is not ordered before it.
    pub fn write(&mut self, offset: u64, size: u64, now: &Clock, own: Epoch) -> Option<Epoch> {
        for cell in self.cells(offset, size) {
            let mut others = cell.read.iter().copied().chain([cell.written]);
            let clash = others.find(|&other| !now.covers(other));
            drop(others);
            if clash.is_some() {
                return clash;
            }
            cell.written = own;
            cell.read.clear();
        }
        None
    }

    /// Records a read; returns the write that is not ordered before it. `fresh`: the bytes must
    /// have been written in the same round.
    pub fn read(
        &mut self,
        offset: u64,
        size: u64,
        now: &Clock,
        own: Epoch,
        fresh: bool,
    ) -> Result<Option<Epoch>, String> {
        for cell in self.cells(offset, size) {
            if !now.covers(cell.written) {
                return Ok(Some(cell.written));
            }
            if fresh && cell.written.round != own.round {
                return Err("reads scratch that nobody wrote in this round".into());
            }
            cell.read.retain(|&other| !now.covers(other));
            cell.read.push(own);
        }
        Ok(None)
    }
}
