//! Failures of operations without completions. No completion can report them, so the next flush
//! does.

use crate::engine::command::{Command, Op};
use crate::util::status::{Error, Status};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The first failure with a peer, and how many came after it.
struct Failure {
    peer: u32,
    status: Status,
    what: String,
    more: u64,
}

/// The failures that no flush has reported yet, the oldest first; one entry for each peer.
#[derive(Default)]
pub struct Unreported {
    failures: Mutex<Vec<Failure>>,
    count: AtomicUsize,
}

impl Unreported {
    fn failures(&self) -> MutexGuard<'_, Vec<Failure>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command without completions has ended with `error`.
    #[cold]
    pub fn note_command(&self, command: &Command, error: &Error) {
        let Command { peer, size, .. } = command;
        let what = match command.op {
            Op::READ => format!("a read of {size} bytes from rank {peer}"),
            Op::WRITE | Op::WRITE_SIGNAL => format!("a write of {size} bytes to rank {peer}"),
            Op::ATOMIC => format!("an atomic operation on a word of rank {peer}"),
            _ => format!("an operation with rank {peer}"),
        };
        self.note(*peer, &what, error);
    }

    /// An operation or a message without completions has ended with `error`. `what` describes it.
    #[cold]
    pub fn note(&self, peer: u32, what: &str, error: &Error) {
        if error.status == Status::ERR_CANCELED {
            // The context ends, so no flush follows.
            return;
        }
        let mut failures = self.failures();
        if let Some(failure) = failures.iter_mut().find(|failure| failure.peer == peer) {
            failure.more += 1;
            return;
        }
        let what = format!("{what} was accepted and has failed: {}", error.message());
        failures.push(Failure { peer, status: error.status, what, more: 0 });
        // Release: pairs with take().
        self.count.store(failures.len(), Ordering::Release);
    }

    /// Takes the failures with a peer, or with all peers, that were not reported. The error is the
    /// first one, with the number of those after it.
    pub fn take(&self, peer: Option<u32>) -> Option<Error> {
        // Acquire: pairs with note(). A thread that has seen the end of an operation sees its
        // failure here.
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut failures = self.failures();
        let asked = |failure: &Failure| peer.is_none_or(|peer| peer == failure.peer);
        let (mut taken, kept): (Vec<_>, Vec<_>) = failures.drain(..).partition(asked);
        *failures = kept;
        self.count.store(failures.len(), Ordering::Release);
        let more: u64 = taken.iter().map(|failure| failure.more + 1).sum();
        if taken.is_empty() {
            return None;
        }
        let Failure { status, what, .. } = taken.swap_remove(0);
        let others = match more - 1 {
            0 => String::new(),
            more => format!("; {more} more failed after it"),
        };
        Some(Error::new(status, what + &others))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_reported_once() {
        let unreported = Unreported::default();
        assert!(unreported.take(None).is_none());
        let error = |status, text: &str| Error::new(status, text.to_owned());
        let write = |peer| Command { size: 9, ..Command::new(Op::WRITE, peer) };
        unreported.note_command(&write(3), &error(Status::ERR_KEY, "freed"));
        unreported.note_command(&write(1), &error(Status::ERR_SYSTEM, "refused"));
        unreported.note(3, "a message to rank 3", &error(Status::ERR_RANGE, "long"));
        unreported.note_command(&write(4), &error(Status::ERR_CANCELED, "over"));
        assert!(unreported.take(Some(0)).is_none() && unreported.take(Some(4)).is_none());
        let taken = unreported.take(Some(1)).unwrap();
        assert_eq!(taken.status, Status::ERR_SYSTEM);
        assert_eq!(
            taken.message(),
            "a write of 9 bytes to rank 1 was accepted and has failed: refused"
        );
        let taken = unreported.take(None).unwrap();
        assert_eq!(taken.status, Status::ERR_KEY);
        assert!(taken.message().ends_with("failed: freed; 1 more failed after it"), "{taken}");
        assert!(unreported.take(None).is_none());
    }
}
