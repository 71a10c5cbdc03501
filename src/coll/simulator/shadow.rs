//! Which rank touched which bytes, and in which order by waits and signals: vector clocks, in the
//! manner of the race detectors DJIT+ and FastTrack.

/// For each thread, up to which of its moments everything has happened before.
#[derive(Clone)]
pub struct Clock(Vec<u32>);

impl Clock {
    /// The first clock of thread `own` of `threads`.
    pub fn new(threads: usize, own: usize) -> Clock {
        let mut moments = vec![0; threads];
        moments[own] = 1;
        Clock(moments)
    }

    /// What happened before `other` happened before this too.
    pub fn join(&mut self, other: &Clock) {
        for (mine, other) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*other);
        }
    }

    /// A new moment of thread `own`: what it does now is not covered by clocks given away before.
    pub fn tick(&mut self, own: usize) {
        self.0[own] += 1;
    }

    /// The moment of thread `own` is this one.
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

/// One access: by which thread, when, and what to say about it.
#[derive(Clone, Copy, Default)]
pub struct Epoch {
    thread: u32,
    moment: u32,
    /// Which of its steps.
    pub step: u32,
    /// In which of its rounds; from 1.
    pub round: u32,
}

impl Epoch {
    /// Now, by the thread's own clock.
    pub fn new(thread: usize, clock: &Clock, step: usize, round: usize) -> Epoch {
        let moment = clock.0[thread];
        Epoch { thread: thread as u32, moment, step: step as u32, round: round as u32 }
    }

    /// The thread.
    pub fn thread(self) -> usize {
        self.thread as usize
    }
}

#[derive(Clone, Default)]
struct Cell {
    written: Epoch,
    /// The readers since, as far as none follows another.
    read: Vec<Epoch>,
}

/// The accesses to one memory.
pub struct Shadow {
    grain: u64,
    cells: Vec<Cell>,
}

impl Shadow {
    /// For a memory of `size` bytes, all of whose ranges are multiples of `grain`.
    pub fn new(size: u64, grain: u64) -> Shadow {
        Shadow { grain, cells: vec![Cell::default(); size.div_ceil(grain) as usize] }
    }

    fn cells(&mut self, offset: u64, size: u64) -> &mut [Cell] {
        let end = (offset + size).div_ceil(self.grain);
        &mut self.cells[(offset / self.grain) as usize..end as usize]
    }

    /// Notes a write; gives an access that it does not follow.
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

    /// Notes a read; gives the write that it does not follow. With `fresh` what it reads must have
    /// been written in the same round.
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
