//! Bindings. If each start of a plan may name other buffers, the owner's block has a binding for
//! each buffer, which holds the buffer's place in the present round.
//!
//! The owner writes the binding between two rounds. A thread of any rank reads it for a step that
//! accesses the buffer. By the rules of schedules that step follows a signal of the owner in this
//! round, or it is a step of the owner's queue, which the thread has claimed. The reads of signal
//! and claim are both Acquire, so the thread sees the binding.

use crate::coll::runner::members::Memory;
use crate::coll::runner::record::{RecordRef, act};
use crate::coll::runner::shared::Stage;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::util::sync::AtomicU64;
use std::sync::atomic::Ordering;

/// Bytes of a binding: a line.
pub const BINDING: u64 = 64;

/// The place of a buffer: key and offset.
#[repr(C)]
pub struct Binding([AtomicU64; 2]);

impl Binding {
    /// Sets the place of the buffer from the next round on.
    #[inline]
    pub fn store(&self, place: Address) {
        self.0[0].store(place.key, Ordering::Relaxed);
        self.0[1].store(place.offset, Ordering::Relaxed);
    }

    /// The place in this round, `further` bytes from the beginning of the buffer. The caller must
    /// check it, because a faulty owner may have written any number.
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
    /// Maps those buffers of a step that were bound to a region that is not mapped yet. False: no
    /// operand is bound, or one cannot be mapped. The caller must not be pinned, since mapping may
    /// wait.
    #[cold]
    pub(super) fn import(&self, record: RecordRef, (action, size): (u8, u64)) -> bool {
        let places: &[usize] = if action == act::COMBINE { &[0, 1, 2] } else { &[0, 2] };
        let mut mapped = false;
        for &which in places {
            let (rank, space, offset) = record.place(which);
            let member = &self.members[rank.into()];
            let Some(Memory::Bound(binding, _)) = member.memory.get(usize::from(space)) else {
                continue;
            };
            // SAFETY: the binding lies in the rank's block, which stays as long as the plan.
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

    /// A rank binds a buffer for each of two rounds and signals; the other rank reads the binding
    /// and signals that its step is done, which ends the round. Planted faults that this model
    /// found: a signal without Release; the second binding before the end of the first round.
    #[test]
    fn a_thread_that_has_the_signal_of_a_round_sees_the_buffer_of_that_round() {
        loom::model(|| {
            let binding = Arc::new(Binding([AtomicU64::new(0), AtomicU64::new(0)]));
            let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let (bound, signals) = (binding.clone(), words.clone());
            let other = thread::spawn(move || {
                for round in 1..=2 {
                    while !has_reached(&signals[0], round) {
                        thread::yield_now();
                    }
                    let place = bound.load(5);
                    assert_eq!((place.key, place.offset), (u64::from(round), u64::from(round) + 5));
                    signal(&signals[1], round);
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
