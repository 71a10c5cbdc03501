//! The cores on which a thread may run, as plain bits that ranks tell each other: whether there is
//! one for each of them no rank can know alone, since each may have been pinned to its own.

/// A set of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Cores([u64; 16]);

impl Cores {
    /// Those of the calling thread; all there can be where the kernel does not say.
    pub fn mine() -> Cores {
        let mut cores = Cores::default();
        let bytes = size_of_val(&cores.0);
        // SAFETY: as many bytes as there are; the kernel fills in whole words.
        let filled = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, bytes, &mut cores.0) };
        if filled > 0 { cores } else { Cores([u64::MAX; 16]) }
    }

    /// As many words as the machine has cores for: what ranks tell each other.
    pub fn words(&self) -> &[u64] {
        // SAFETY: sysconf has no precondition.
        let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        &self.0[..(cores.max(1) as usize).div_ceil(64).min(self.0.len())]
    }

    /// These and the cores that another rank has told.
    pub fn with(mut self, words: &[u64]) -> Cores {
        self.0.iter_mut().zip(words).for_each(|(own, other)| *own |= other);
        self
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_run_somewhere_and_sets_are_joined() {
        let mine = Cores::mine();
        assert!(mine.count() >= 1);
        assert_eq!(mine.with(mine.words()), mine);
        assert_eq!(Cores::default().with(mine.words()), mine);
        assert_eq!(Cores([1; 16]).with(&[2; 16]).count(), 32);
    }
}
