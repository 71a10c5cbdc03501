//! Control messages, by which an upper layer informs the same layer at another rank. They travel as
//! requests to the owner do.
//!
//! A control message has a name, three words and up to [`MOST`] bytes. At the receiver the holder
//! of the lane's role calls [`ControlReceiver::received`] of the object that is registered under
//! the name. The bytes are copied when a control message is posted, so its sender may reuse them at
//! once; [`Ended::ended`] is called when the receiver has answered. Control messages may overtake
//! each other.
//!
//! If no object has the name, the receiver keeps a control message that is marked [`KEEP`] until
//! one is registered. It keeps up to `KEPT` bytes in all, and refuses further control messages. It
//! drops a control message without the mark: the object that had the name has been withdrawn.
//!
//! More bytes, or fewer copies: bytes may go to an address in the receiver's memory instead, as
//! those of a write do, and the control message follows when they are there (a command
//! [`Op::WRITE_CONTROL`]). A network that brings signals with writes brings the control message as
//! the words of the write's notice. A notice has room for three words: the name, and the second and
//! the third word of the message.

use crate::engine::command::{Command, Op};
use crate::fail;
use crate::transport::address::Address;
use crate::transport::remote::{NO_ATOMIC, Signal};
use crate::transport::{CHUNK, MESSAGE_WORDS, Message};
use crate::util::status::{Result, Status};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The words of a control message.
pub type Words = [u64; 3];
/// Most bytes of a control message.
pub const MOST: usize = CHUNK;
/// The last word of a request whose control message the receiver keeps until its name is
/// registered; else that word is 0.
pub const KEEP: u64 = 1;
/// The number of a notice that brings a control message, beside the `LLCL_OP_*` of signals.
pub const NOTICE: u8 = u8::MAX;
/// Most bytes of all kept control messages; each counts as 64 bytes at least.
const KEPT: usize = 4 << 20;

/// Receives the control messages of a name.
pub trait ControlReceiver: Send + Sync {
    /// Rank `source` has sent a control message. The holder of the lane's role or the thread that
    /// polls the wire calls this, so it must not wait. A post may be refused there.
    fn received(&self, source: u32, words: Words, bytes: &[u8]);
}

/// Receives the ends of posted control messages.
pub trait Ended: Send + Sync {
    /// A control message of `bytes` bytes to `peer` has ended, with `status`. The holder of the
    /// lane's role calls this, so it must not wait. A post may be refused there.
    fn ended(&self, peer: u32, bytes: usize, status: Status);
}

/// A control message to be sent.
pub struct ControlMessage<'a> {
    /// The receiver, which was contacted before.
    pub peer: u32,
    /// The name under which the receiver has registered, or will register.
    pub name: u64,
    /// Words of the layer above.
    pub words: Words,
    /// The receiver keeps the control message until the name is registered.
    pub keep: bool,
    /// At most MOST bytes.
    pub bytes: &'a [u8],
}

/// The bytes that are written before a control message.
#[derive(Clone, Copy)]
pub struct Write {
    /// Where they go in the receiver's memory.
    pub to: Address,
    /// Where they come from.
    pub from: *mut u8,
    /// Their number.
    pub size: u64,
    /// They are copied when the command is made. Else they stay valid, and nobody changes them,
    /// until Ended::ended() is called.
    pub copied: bool,
}

/// A posted control message; `local` of a command Op::CONTROL and `operand` of a command
/// Op::WRITE_CONTROL is its box.
pub(super) struct PostedControl {
    words: [u64; MESSAGE_WORDS],
    bytes: Box<[u8]>,
    ends: Arc<dyn Ended>,
}

/// The box of a command.
fn place(command: &Command) -> *mut PostedControl {
    debug_assert!(command.op.is_control());
    match command.op {
        Op::CONTROL => command.local.cast(),
        _ => command.operand as *mut PostedControl,
    }
}

impl PostedControl {
    /// The control message of a command.
    ///
    /// # Safety
    /// command() or write() has made it, and it has not ended.
    pub(super) unsafe fn of(command: &Command) -> &PostedControl {
        // SAFETY: as the caller promises; only end() and take_back() drop the box.
        unsafe { &*place(command) }
    }

    /// Takes the copied bytes of a command that ends, for a caller that must keep them longer.
    ///
    /// # Safety
    /// As for of(), and nobody else uses the command now.
    pub(super) unsafe fn take_copy(command: &Command) -> Box<[u8]> {
        // SAFETY: as the caller promises.
        std::mem::take(unsafe { &mut (*place(command)).bytes })
    }

    /// The control message as the words of a notice; see from_notice().
    pub(super) fn notice(&self) -> Signal {
        let [key, _, offset, value, _] = self.words;
        let word = Address { key, offset };
        Signal { op: NOTICE, kind: NO_ATOMIC, word, value, compare: 0 }
    }

    pub(super) fn words(&self) -> [u64; MESSAGE_WORDS] {
        self.words
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Ends a command of Op::CONTROL.
///
/// # Safety
/// As for PostedControl::of().
pub(super) unsafe fn end(command: &Command, status: Status) {
    // SAFETY: as the caller promises; this is the end.
    let posted = unsafe { Box::from_raw(place(command)) };
    posted.ends.ended(command.peer, posted.bytes.len(), status);
}

/// The command that sends a control message. `ends` learns of the end. The caller puts the command
/// into the lane, or calls take_back().
pub fn command(message: &ControlMessage, ends: &Arc<dyn Ended>) -> Result<Command> {
    let ControlMessage { peer, name, words: [first, second, third], keep, bytes } = *message;
    if bytes.len() > MOST {
        fail!(ERR_INTERNAL, "a control message of {} bytes, expected at most {MOST}", bytes.len());
    }
    let words = [name, first, second, third, if keep { KEEP } else { 0 }];
    let posted = PostedControl { words, bytes: bytes.into(), ends: ends.clone() };
    let mut command = Command::new(Op::CONTROL, peer);
    command.size = bytes.len() as u64;
    command.local = Box::into_raw(Box::new(posted)).cast();
    Ok(command)
}

/// The command that writes bytes and then sends the control message, which has none, and whose
/// first word is 0. As command(), else.
///
/// # Safety
/// The bytes of the write are valid now, and as [`Write::copied`] says.
pub unsafe fn write(
    message: &ControlMessage,
    Write { to, from, size, copied }: Write,
    ends: &Arc<dyn Ended>,
) -> Result<Command> {
    if message.words[0] != 0 || !message.bytes.is_empty() || message.keep {
        fail!(ERR_INTERNAL, "a control message behind a write that does not fit into a notice");
    }
    let ControlMessage { peer, name, words: [_, second, third], .. } = *message;
    let mut bytes: Box<[u8]> = match copied {
        // SAFETY: as the caller promises.
        true if size > 0 => unsafe { std::slice::from_raw_parts(from, size as usize) }.into(),
        _ => Box::default(),
    };
    let mut command = Command::new(Op::WRITE_CONTROL, peer);
    (command.remote, command.size) = (to, size);
    command.local = if copied { bytes.as_mut_ptr() } else { from };
    let posted = PostedControl { words: [name, 0, second, third, 0], bytes, ends: ends.clone() };
    command.operand = Box::into_raw(Box::new(posted)) as u64;
    Ok(command)
}

/// Frees a command that was not accepted; Ended::ended() is not called.
///
/// # Safety
/// command() or write() has made it, and it is not used again.
pub unsafe fn take_back(command: &Command) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(place(command)) });
}

/// The control message of a notice from `source`.
pub(super) fn from_notice(source: u32, &Signal { word, value, .. }: &Signal) -> Message {
    Message { kind: 0, source, tag: 0, words: [word.key, 0, word.offset, value, 0] }
}

/// A kept control message, whose name is not registered yet.
struct Early {
    source: u32,
    words: Words,
    bytes: Box<[u8]>,
}

#[derive(Default)]
struct Table {
    known: HashMap<u64, Arc<dyn ControlReceiver>>,
    early: HashMap<u64, Vec<Early>>,
    kept: usize,
}

impl Table {
    /// Takes the kept control messages of this name.
    fn take_early(&mut self, name: u64) -> Vec<Early> {
        let early = self.early.remove(&name).unwrap_or_default();
        self.kept -= early.iter().map(|early| cost(early.bytes.len())).sum::<usize>();
        early
    }
}

/// The names that this rank has registered.
#[derive(Default)]
pub struct ControlMessages(Mutex<Table>);

/// The bytes that a kept control message counts as.
fn cost(bytes: usize) -> usize {
    bytes.max(64)
}

impl ControlMessages {
    /// The bytes of all kept control messages, see cost().
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.table().kept
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a name. Before this returns, the calling thread hands over the kept control
    /// messages of the name.
    pub fn register(&self, name: u64, to: Arc<dyn ControlReceiver>) {
        let (before, early) = {
            let mut table = self.table();
            (table.known.insert(name, to.clone()), table.take_early(name))
        };
        // Dropped after the lock was released, here and below: the drop of a registered object may
        // withdraw its name.
        drop(before);
        for Early { source, words, bytes } in early {
            to.received(source, words, &bytes);
        }
    }

    /// Withdraws a name and drops its kept control messages. From now on the receiver drops those
    /// that come without KEEP.
    pub fn withdraw(&self, name: u64) {
        let ended = {
            let mut table = self.table();
            (table.known.remove(&name), table.take_early(name))
        };
        drop(ended);
    }

    /// Drops the kept control messages of a dead peer.
    pub fn forget(&self, peer: u32) {
        let mut table = self.table();
        let Table { early, kept, .. } = &mut *table;
        early.retain(|_, messages| {
            let of_peer = messages.extract_if(.., |early| early.source == peer);
            *kept -= of_peer.map(|early| cost(early.bytes.len())).sum::<usize>();
            !messages.is_empty()
        });
    }

    /// Withdraws all names. The end of a context calls this, since registered objects may hold the
    /// context, which holds this table.
    pub fn withdraw_all(&self) {
        let table = std::mem::take(&mut *self.table());
        drop(table);
    }

    /// Hands over a received control message, keeps it or drops it. The sender gets the error.
    /// `is_dead` says whether the sender is dead. It must say so from before the call of forget()
    /// on. A control message of a dead sender is not kept.
    pub(super) fn take(
        &self,
        message: &Message,
        bytes: &[u8],
        is_dead: impl FnOnce() -> bool,
    ) -> Result<()> {
        let [name, first, second, third, marks] = message.words;
        let words = [first, second, third];
        let to = {
            let mut table = self.table();
            let to = table.known.get(&name).cloned();
            // Checked under the lock: if the sender dies, either is_dead() says so here, or
            // forget() runs later and drops the control message.
            if to.is_none() && marks & KEEP != 0 && !is_dead() {
                if table.kept + cost(bytes.len()) > KEPT {
                    let kept = table.kept;
                    fail!(
                        ERR_NO_MEMORY,
                        "{kept} bytes of control messages wait for unregistered names, expected at most \
                         {KEPT} with this one"
                    );
                }
                table.kept += cost(bytes.len());
                let early = Early { source: message.source, words, bytes: bytes.into() };
                table.early.entry(name).or_default().push(early);
            }
            to
        };
        if let Some(to) = to {
            to.received(message.source, words, bytes);
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<(u32, Words, Vec<u8>)>>);

    impl ControlReceiver for Recorder {
        fn received(&self, source: u32, words: Words, bytes: &[u8]) {
            self.0.lock().unwrap().push((source, words, bytes.to_vec()));
        }
    }

    fn message(name: u64, number: u64, keep: bool) -> Message {
        let words = [name, number, 0, 0, u64::from(keep)];
        Message { kind: 0, source: 3, tag: 0, words }
    }

    #[test]
    fn what_comes_early_waits_if_it_is_to_and_what_comes_late_is_dropped() {
        let (messages, recorder) = (ControlMessages::default(), Arc::new(Recorder::default()));
        messages.take(&message(7, 1, true), b"one", || false).unwrap();
        messages.take(&message(7, 2, false), b"lost", || false).unwrap();
        messages.take(&message(8, 3, true), b"another name", || false).unwrap();
        messages.register(7, recorder.clone());
        messages.take(&message(7, 4, false), b"four", || false).unwrap();
        messages.withdraw(7);
        messages.take(&message(7, 5, false), b"late", || false).unwrap();
        let seen = recorder.0.lock().unwrap().clone();
        assert_eq!(seen, [(3, [1, 0, 0], b"one".to_vec()), (3, [4, 0, 0], b"four".to_vec())]);
        assert_eq!(messages.table().kept, cost(12));
    }

    #[test]
    fn of_the_dead_nothing_waits() {
        let messages = ControlMessages::default();
        let of = |source, name| Message { source, ..message(name, 1, true) };
        for (source, name) in [(3, 7), (4, 7), (3, 8)] {
            messages.take(&of(source, name), &[0; 100], || false).unwrap();
        }
        messages.forget(3);
        assert_eq!(messages.kept(), cost(100));
        messages.take(&of(3, 8), &[0; 100], || true).unwrap();
        assert_eq!((messages.kept(), messages.table().early.len()), (cost(100), 1));
    }

    /// Withdraws a name when it is dropped, as the object that holds a plan does.
    struct Withdraws(std::sync::Weak<ControlMessages>, std::sync::mpsc::Sender<bool>);

    impl ControlReceiver for Withdraws {
        fn received(&self, _: u32, _: Words, _: &[u8]) {}
    }

    impl Drop for Withdraws {
        fn drop(&mut self) {
            let messages = self.0.upgrade().expect("it outlives what it keeps");
            let is_free = messages.0.try_lock().is_ok();
            let _ = self.1.send(is_free);
        }
    }

    #[test]
    fn what_was_registered_is_dropped_behind_the_lock() {
        let (messages, (sender, drops)) =
            (Arc::new(ControlMessages::default()), std::sync::mpsc::channel());
        let make = || Arc::new(Withdraws(Arc::downgrade(&messages), sender.clone()));
        messages.register(7, make());
        messages.register(7, make());
        assert_eq!(drops.try_recv(), Ok(true), "register() drops what it replaces");
        messages.withdraw(7);
        assert_eq!(drops.try_recv(), Ok(true), "withdraw()");
        messages.register(7, make());
        messages.withdraw_all();
        assert_eq!(drops.try_recv(), Ok(true), "withdraw_all()");
    }

    #[test]
    fn what_waits_is_bounded_and_its_room_comes_back() {
        let (messages, recorder) = (ControlMessages::default(), Arc::new(Recorder::default()));
        let full = vec![0; MOST];
        for number in 0..(KEPT / MOST) as u64 {
            messages.take(&message(7, number, true), &full, || false).unwrap();
        }
        let refused = messages.take(&message(9, 0, true), &[], || false).unwrap_err();
        assert_eq!(refused.status, Status::ERR_NO_MEMORY);
        messages.register(7, recorder.clone());
        assert_eq!((recorder.0.lock().unwrap().len(), messages.table().kept), (KEPT / MOST, 0));
        messages.take(&message(9, 0, true), &[], || false).unwrap();
    }
}
