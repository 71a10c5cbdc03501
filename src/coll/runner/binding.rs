//! Buffers that a rank names anew with each round: its block of the plan says where they lie in the
//! round that it has started.
//!
//! The owner writes its binding before it starts a round, and after the round before has ended. A
//! thread of any rank reads it for a step that touches the owner's buffer. By the rules of
//! schedules such a step either follows a signal of the owner in this round, or is one of the
//! owner's own, and then the thread has claimed the owner's queue. Both acquire what the owner has
//! written before.

use crate::coll::runner::members::Memory;
use crate::coll::runner::record::{Lying, act};
use crate::coll::runner::shared::Stage;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::util::sync::AtomicU64;
use std::sync::atomic::Ordering;

/// Bytes that the binding of a buffer takes: a line.
pub const BINDING: u64 = 64;

/// Where one buffer of a rank lies: key and offset.
#[repr(C)]
pub struct Binding([AtomicU64; 2]);

impl Binding {
    /// From the next round on the buffer lies there.
    #[inline]
    pub fn store(&self, place: Address) {
        self.0[0].store(place.key, Ordering::Relaxed);
        self.0[1].store(place.offset, Ordering::Relaxed);
    }

    /// Where it lies in this round, `further` bytes from its beginning. Nothing is sure of the
    /// numbers: the owner may have scribbled.
    #[inline(always)]
    pub fn load(&self, further: u64) -> Address {
        let (key, offset) = (&self.0[0], &self.0[1]);
        Address {
            key: key.load(Ordering::Relaxed),
            offset: offset.load(Ordering::Relaxed).wrapping_add(further),
        }
    }
}

impl Stage {
    /// Maps the buffers of a step that were bound since they were looked for last. False: there is
    /// none, or one that cannot be mapped. The caller is not pinned.
    #[cold]
    pub(super) fn import(&self, record: Lying, (action, size): (u8, u64)) -> bool {
        let places: &[usize] = if action == act::COMBINE { &[0, 1, 2] } else { &[0, 2] };
        let mut mapped = false;
        for &which in places {
            let (rank, space, offset) = record.place(which);
            let member = &self.members[rank.into()];
            let Some(Memory::Bound(binding, _)) = member.memory.get(usize::from(space)) else {
                continue;
            };
            // SAFETY: it lies in the rank's block, which stays as long as the plan.
            let place = unsafe { &**binding }.load(offset);
            let port = self.routes.port(member.peer);
            let access = port.and_then(|port| self.routes.map(port, place, size));
            if !matches!(access, Ok(Access::Mapped)) {
                return false;
            }
            mapped = true;
        }
        mapped
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::coll::runner::queue::{has_reached, signal};
    use crate::util::sync::AtomicU32;
    use loom::sync::Arc;
    use loom::thread;

    /// A rank binds a buffer for each of two rounds and signals; the other one reads where it lies
    /// and signals that its step is done, which ends the round. Found when planted: a signal
    /// without Release; the second binding before the round's end.
    #[test]
    fn who_has_the_signal_of_a_round_sees_the_buffer_of_that_round() {
        loom::model(|| {
            let binding = Arc::new(Binding([AtomicU64::new(0), AtomicU64::new(0)]));
            let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let (bound, told) = (binding.clone(), words.clone());
            let other = thread::spawn(move || {
                for round in 1..=2 {
                    while !has_reached(&told[0], round) {
                        thread::yield_now();
                    }
                    let place = bound.load(5);
                    assert_eq!((place.key, place.offset), (u64::from(round), u64::from(round) + 5));
                    signal(&told[1], round);
                }
            });
            for round in 1..=2 {
                binding.store(Address { key: round.into(), offset: round.into() });
                signal(&words[0], round);
                while !has_reached(&words[1], round) {
                    thread::yield_now();
                }
            }
            other.join().unwrap();
        });
    }
}
