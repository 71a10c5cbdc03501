//! The cores on which a thread may run, as bits that ranks send each other. Each rank may have been
//! pinned to a core of its own, so only all sets together tell whether there is a core for each
//! rank.

use crate::fail;
use crate::util::status::{Error, Result};

/// The variable that lists the cores of the library's own threads.
pub const PROGRESS_CPUS: &str = "LLCL_PROGRESS_CPUS";

/// A set of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Cores([u64; 16]);

impl Cores {
    /// The cores of the calling thread. All possible cores if the kernel does not say.
    pub fn mine() -> Cores {
        let mut cores = Cores::default();
        let bytes = size_of_val(&cores.0);
        // SAFETY: as many bytes as there are; the kernel fills in whole words.
        let filled = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, bytes, &mut cores.0) };
        if filled > 0 { cores } else { Cores([u64::MAX; 16]) }
    }

    /// The cores for the library's threads of a rank: those that LLCL_PROGRESS_CPUS lists, without
    /// the cores of the calling thread, which is the rank's, unless no other is listed. None: the
    /// variable is not set, and the threads run on the cores of the thread that starts them.
    pub fn of_progress_threads() -> Result<Option<Cores>> {
        let text = match std::env::var_os(PROGRESS_CPUS) {
            Some(text) if !text.is_empty() => text.to_string_lossy().into_owned(),
            _ => return Ok(None),
        };
        match Cores::listed(&text) {
            Some(listed) => Ok(Some(listed.aside_of(Cores::mine()))),
            None => fail!(
                ERR_INVALID,
                "{PROGRESS_CPUS} is \"{text}\", expected numbers of processors and ranges of them, as 0,2-3"
            ),
        }
    }

    /// The set that a text like `0,2-3` lists. None: the text is no such list.
    fn listed(text: &str) -> Option<Cores> {
        let mut cores = Cores::default();
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) =
                (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first > last {
                return None;
            }
            for core in first..=last {
                *cores.0.get_mut(core / 64)? |= 1 << (core % 64);
            }
        }
        Some(cores)
    }

    /// These cores without those of `other`. If none would be left: these cores.
    fn aside_of(self, other: Cores) -> Cores {
        let mut left = self;
        left.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= !other);
        if left.count() > 0 { left } else { self }
    }

    /// Lets the calling thread run on these cores only.
    pub fn enter(self) -> Result<()> {
        let bytes = size_of_val(&self.0);
        // SAFETY: as many bytes as there are; the kernel reads them.
        let answer = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, bytes, &self.0) };
        if answer == 0 { Ok(()) } else { Err(Error::system("sched_setaffinity")) }
    }

    /// How many cores the machine has, in use or not.
    pub fn of_the_machine() -> usize {
        // SAFETY: sysconf has no precondition.
        let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        cores.max(1) as usize
    }

    /// The bits that ranks send each other: as many words as the machine's cores need.
    pub fn words(&self) -> &[u64] {
        &self.0[..Cores::of_the_machine().div_ceil(64).min(self.0.len())]
    }

    /// The union with the cores that another rank has sent.
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

    #[test]
    fn a_list_of_cores_is_read() {
        let cores = Cores::listed("0, 2-3,70").unwrap();
        assert_eq!((cores.0[0], cores.0[1], cores.count()), (0b1101, 1 << 6, 4));
        for bad in [" ", "1,", "3-2", "1024", "-1", "0-", "all", "1;2"] {
            assert!(Cores::listed(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_rank_keeps_its_core_to_itself_where_there_is_another() {
        let (zero, both) = (Cores::listed("0").unwrap(), Cores::listed("0-1").unwrap());
        assert_eq!(both.aside_of(zero), Cores::listed("1").unwrap());
        assert_eq!(zero.aside_of(zero), zero);
        assert_eq!(both.aside_of(both), both);
    }
}
