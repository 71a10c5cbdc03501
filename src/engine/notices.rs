//! Notices: what the layers above tell the same layer at another rank, by requests to its agent.
//!
//! A notice has a name, three words and up to [`MOST`] bytes. At the receiver the holder of the
//! lane's role hands it to whoever has registered the name. The bytes are copied when a notice is
//! posted, so its sender keeps nothing for it; `ended` tells when the receiver has answered.
//! Notices overtake each other.
//!
//! One that is marked [`KEEP`] and finds its name not registered yet waits for that, up to
//! `KEPT` bytes in all, beyond which it is refused. Any other is dropped then: whoever had the
//! name needs it no more.

use crate::engine::command::{Command, Op};
use crate::fail;
use crate::transport::{CHUNK, MESSAGE_WORDS, Message};
use crate::util::status::{Result, Status};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a notice says besides its bytes.
pub type Words = [u64; 3];
/// Most bytes of a notice.
pub const MOST: usize = CHUNK;
/// The last word of a notice that waits until its name is registered.
pub const KEEP: u64 = 1;
/// Most bytes of all that wait, each at least a line.
const KEPT: usize = 4 << 20;

/// Who has registered a name.
pub trait Notified: Send + Sync {
    /// Rank `source` has sent this. The holder of the lane's role calls it: it posts nothing and
    /// waits for nothing.
    fn notified(&self, source: u32, words: Words, bytes: &[u8]);
}

/// Who is told that notices have ended.
pub trait Ended: Send + Sync {
    /// A notice of so many bytes to `peer` was answered, or cannot be. As Notified::notified().
    fn ended(&self, peer: u32, bytes: usize, status: Status);
}

/// A notice that is to be sent.
pub struct Notice<'a> {
    /// To which rank, which was contacted before.
    pub peer: u32,
    /// The name under which it expects the notice.
    pub name: u64,
    /// As the layer above likes.
    pub words: Words,
    /// It waits until the name is registered.
    pub keep: bool,
    /// At most MOST.
    pub bytes: &'a [u8],
}

/// A notice that was accepted: what a command of Op::NOTICE names, in a box of its own.
pub(super) struct PostedNotice {
    words: [u64; MESSAGE_WORDS],
    bytes: Box<[u8]>,
    ends: Arc<dyn Ended>,
}

impl PostedNotice {
    /// That of a command.
    pub(super) fn of(command: &Command) -> &PostedNotice {
        debug_assert!(command.op == Op::NOTICE);
        // SAFETY: made by command(), and the box is dropped by end() alone, with the command's end.
        unsafe { &*command.local.cast::<PostedNotice>() }
    }

    pub(super) fn words(&self) -> [u64; MESSAGE_WORDS] {
        self.words
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Ends a command of Op::NOTICE, once.
pub(super) fn end(command: &Command, status: Status) {
    // SAFETY: as in PostedNotice::of(); each command ends once.
    let posted = unsafe { Box::from_raw(command.local.cast::<PostedNotice>()) };
    posted.ends.ended(command.peer, posted.bytes.len(), status);
}

/// The command that sends a notice, of whose end `ends` is told. It is put into the lane, or taken
/// back.
pub fn command(notice: &Notice, ends: &Arc<dyn Ended>) -> Result<Command> {
    let Notice { peer, name, words: [first, second, third], keep, bytes } = *notice;
    if bytes.len() > MOST {
        fail!(ERR_INTERNAL, "a notice of {} bytes, expected at most {MOST}", bytes.len());
    }
    let words = [name, first, second, third, if keep { KEEP } else { 0 }];
    let posted = PostedNotice { words, bytes: bytes.into(), ends: ends.clone() };
    let mut command = Command::new(Op::NOTICE, peer);
    command.size = bytes.len() as u64;
    command.local = Box::into_raw(Box::new(posted)).cast();
    Ok(command)
}

/// A command that was not accepted is dropped, and nobody told.
pub fn take_back(command: &Command) {
    debug_assert!(command.op == Op::NOTICE);
    // SAFETY: from command(); nobody else has it.
    drop(unsafe { Box::from_raw(command.local.cast::<PostedNotice>()) });
}

/// A notice that waits for its name.
struct Early {
    source: u32,
    words: Words,
    bytes: Box<[u8]>,
}

#[derive(Default)]
struct Table {
    known: HashMap<u64, Arc<dyn Notified>>,
    early: HashMap<u64, Vec<Early>>,
    kept: usize,
}

/// The names that this rank has registered.
#[derive(Default)]
pub struct Notices(Mutex<Table>);

/// What a waiting notice counts.
fn cost(bytes: usize) -> usize {
    bytes.max(64)
}

impl Notices {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on notices of this name are handed over; first those that wait for it, by the
    /// calling thread.
    pub fn register(&self, name: u64, to: Arc<dyn Notified>) {
        let early = {
            let mut table = self.table();
            table.known.insert(name, to.clone());
            let early = table.early.remove(&name).unwrap_or_default();
            table.kept -= early.iter().map(|early| cost(early.bytes.len())).sum::<usize>();
            early
        };
        for Early { source, words, bytes } in early {
            to.notified(source, words, &bytes);
        }
    }

    /// Nobody expects notices of this name any more.
    pub fn withdraw(&self, name: u64) {
        let mut table = self.table();
        table.known.remove(&name);
        let early = table.early.remove(&name).unwrap_or_default();
        table.kept -= early.iter().map(|early| cost(early.bytes.len())).sum::<usize>();
    }

    /// Nobody expects notices any more. What is registered may hold what holds this table, so the
    /// end of a context calls it.
    pub fn withdraw_all(&self) {
        let table = std::mem::take(&mut *self.table());
        // Behind the lock: what is dropped may withdraw its name.
        drop(table);
    }

    /// Hands over a notice that has come. An error is the sender's.
    pub(super) fn take(&self, message: &Message, bytes: &[u8]) -> Result<()> {
        let [name, first, second, third, marks] = message.words;
        let words = [first, second, third];
        let to = {
            let mut table = self.table();
            let to = table.known.get(&name).cloned();
            if to.is_none() && marks & KEEP != 0 {
                if table.kept + cost(bytes.len()) > KEPT {
                    fail!(ERR_NO_MEMORY, "too much waits for names that nobody has registered");
                }
                table.kept += cost(bytes.len());
                let early = Early { source: message.source, words, bytes: bytes.into() };
                table.early.entry(name).or_default().push(early);
            }
            to
        };
        if let Some(to) = to {
            to.notified(message.source, words, bytes);
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<(u32, Words, Vec<u8>)>>);

    impl Notified for Heard {
        fn notified(&self, source: u32, words: Words, bytes: &[u8]) {
            self.0.lock().unwrap().push((source, words, bytes.to_vec()));
        }
    }

    fn message(name: u64, number: u64, keep: bool) -> Message {
        let words = [name, number, 0, 0, u64::from(keep)];
        Message { kind: 0, source: 3, tag: 0, words }
    }

    #[test]
    fn what_comes_early_waits_if_it_is_to_and_what_comes_late_is_dropped() {
        let (notices, heard) = (Notices::default(), Arc::new(Heard::default()));
        notices.take(&message(7, 1, true), b"one").unwrap();
        notices.take(&message(7, 2, false), b"lost").unwrap();
        notices.take(&message(8, 3, true), b"another name").unwrap();
        notices.register(7, heard.clone());
        notices.take(&message(7, 4, false), b"four").unwrap();
        notices.withdraw(7);
        notices.take(&message(7, 5, false), b"late").unwrap();
        let told = heard.0.lock().unwrap().clone();
        assert_eq!(told, [(3, [1, 0, 0], b"one".to_vec()), (3, [4, 0, 0], b"four".to_vec())]);
        assert_eq!(notices.table().kept, cost(12));
    }

    #[test]
    fn what_waits_is_bounded_and_its_room_comes_back() {
        let (notices, heard) = (Notices::default(), Arc::new(Heard::default()));
        let full = vec![0; MOST];
        for number in 0..(KEPT / MOST) as u64 {
            notices.take(&message(7, number, true), &full).unwrap();
        }
        let refused = notices.take(&message(9, 0, true), &[]).unwrap_err();
        assert_eq!(refused.status, Status::ERR_NO_MEMORY);
        notices.register(7, heard.clone());
        assert_eq!((heard.0.lock().unwrap().len(), notices.table().kept), (KEPT / MOST, 0));
        notices.take(&message(9, 0, true), &[]).unwrap();
    }
}
