//! What the simulated network has carried for one rank, counted.

#[cfg(test)]
use super::{Comes, Simulated, lock};
#[cfg(test)]
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one rank's card. Only tests read them; no other memory depends on their order.
#[derive(Default)]
pub struct Traffic {
    /// Frames that this rank has sent.
    frames: AtomicU64,
    /// Reads, writes and atomics that it has posted.
    accesses: AtomicU64,
    /// The clock of Lamport: the most crossings of the network, one after the other, that led to a
    /// received frame. A frame that is sent now has one more, the end of an access two.
    crossings: AtomicU64,
}

impl Traffic {
    /// A frame is sent: how many crossings lie behind it when it comes.
    pub fn frame(&self) -> u64 {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.crossings.load(Ordering::Relaxed) + 1
    }

    /// An access is posted: how many crossings lie behind it when it comes.
    pub fn access(&self) -> u64 {
        self.accesses.fetch_add(1, Ordering::Relaxed);
        self.crossings.load(Ordering::Relaxed) + 1
    }

    /// A write is answered: how many crossings lie behind the answer when it comes.
    pub fn reply(&self) -> u64 {
        self.crossings.load(Ordering::Relaxed) + 1
    }

    /// Something has come.
    pub fn came(&self, crossings: u64) {
        self.crossings.fetch_max(crossings, Ordering::Relaxed);
    }

    /// Frames, accesses, and crossings behind what has come.
    #[cfg(test)]
    fn counts(&self) -> [u64; 3] {
        [&self.frames, &self.accesses, &self.crossings].map(|count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
impl Simulated {
    /// Frames that this rank has sent, accesses that it has posted, and crossings of the network,
    /// one after the other, that lie behind what has come to it.
    pub fn counts(&self) -> [u64; 3] {
        self.card.traffic.counts()
    }

    /// Whether a frame of this rank has not left, or one is on its way to it.
    pub fn has_frames(&self) -> bool {
        let is_frame = |comes: &Comes| matches!(comes, Comes::Frame { .. } | Comes::Leaves(_));
        lock(&self.card.arrivals).coming.iter().flat_map(BTreeMap::values).any(is_frame)
    }

    /// Frames that are on their way to this rank, and their bytes.
    pub fn coming(&self) -> (usize, usize) {
        let arrivals = lock(&self.card.arrivals);
        let size = |comes: &Comes| match comes {
            Comes::Frame { bytes, .. } => Some(bytes.len()),
            _ => None,
        };
        let all = arrivals.coming.iter().flat_map(BTreeMap::values).filter_map(size);
        all.fold((0, 0), |(count, sum), size| (count + 1, sum + size))
    }
}
