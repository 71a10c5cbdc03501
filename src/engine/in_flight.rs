//! The in-flight table: operations that wait for an answer of their owner or for a completion of a
//! network. Only the holder of the lane's role uses it (`&mut`), so it needs no lock. Its size is
//! fixed, so its use allocates nothing.
//!
//! A [`Tag`] travels with the request and comes back with the answer or the completion. It consists
//! of a slot's number and generation. The generation changes whenever the slot is vacated, so a
//! completion that arrives twice, late or forged finds nothing.

/// The name of an operation in flight: generation in the upper, slot number in the lower half.
/// Generations begin at 1, so 0 is never a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Tag(pub u64);

/// Ends the list of free slots.
const NO_SLOT: u32 = u32::MAX;

struct Slot<T> {
    /// The generation of the slot's value, or of its next value. It wraps after 2^32 - 1 uses of
    /// the slot. So a stale tag finds a value only if the slot was used exactly that often since,
    /// or a multiple of it.
    generation: u32,
    /// The next free slot, while this one is free.
    next: u32,
    value: Option<T>,
}

/// At most `capacity` values, each found by the tag that insert() returned.
pub struct InFlightTable<T> {
    slots: Box<[Slot<T>]>,
    /// The first slot of the list of free ones: the slot that was vacated last, whose lines are in
    /// the cache.
    free: u32,
    len: u32,
}

impl Tag {
    fn new(generation: u32, index: u32) -> Tag {
        Tag(u64::from(generation) << 32 | u64::from(index))
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn index(self) -> u32 {
        self.0 as u32
    }
}

impl<T> InFlightTable<T> {
    /// An empty table for at most `capacity` values.
    ///
    /// # Panics
    /// If the capacity does not fit in 32 bits; the configuration was checked before.
    pub fn new(capacity: usize) -> InFlightTable<T> {
        assert!(capacity < NO_SLOT as usize, "{capacity} slots, expected less than {NO_SLOT}");
        let count = capacity as u32;
        let slot = |index: u32| {
            let next = if index + 1 < count { index + 1 } else { NO_SLOT };
            Slot { generation: 1, next, value: None }
        };
        let free = if count == 0 { NO_SLOT } else { 0 };
        InFlightTable { slots: (0..count).map(slot).collect(), free, len: 0 }
    }

    /// Puts a value into the table and returns its tag. `None`: the table is full, and the value is
    /// dropped. A caller that must keep the value checks [`is_full`](InFlightTable::is_full)
    /// before.
    #[inline]
    pub fn insert(&mut self, value: T) -> Option<Tag> {
        self.insert_and_get(value).map(|(tag, _)| tag)
    }

    /// Like insert(), and returns the value in its place, too.
    #[inline(always)]
    pub fn insert_and_get(&mut self, value: T) -> Option<(Tag, &mut T)> {
        let index = self.free;
        // NO_SLOT, the end of the free list, is above every index.
        let slot = self.slots.get_mut(index as usize)?;
        self.free = slot.next;
        // A free slot has no value that would have to be dropped.
        std::mem::forget(slot.value.replace(value));
        self.len += 1;
        Some((Tag::new(slot.generation, index), slot.value.as_mut()?))
    }

    /// The value under `tag`, if it is still there.
    #[inline]
    pub fn get_mut(&mut self, tag: Tag) -> Option<&mut T> {
        self.slot_mut(tag)?.value.as_mut()
    }

    /// The value under `tag`.
    pub fn get(&self, tag: Tag) -> Option<&T> {
        let slot = self.slots.get(tag.index() as usize)?;
        slot.value.as_ref().filter(|_| slot.generation == tag.generation())
    }

    /// Removes the value under `tag`. Every later use of this tag finds nothing.
    #[inline]
    pub fn remove(&mut self, tag: Tag) -> Option<T> {
        let free = self.free;
        let slot = self.slot_mut(tag)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.checked_add(1).unwrap_or(1);
        slot.next = free;
        self.free = tag.index();
        self.len -= 1;
        Some(value)
    }

    /// The values with their tags, in the order of the slots.
    pub fn iter(&self) -> impl Iterator<Item = (Tag, &T)> {
        let all = (0..).zip(&self.slots).filter_map(|(index, slot)| {
            Some((Tag::new(slot.generation, index), slot.value.as_ref()?))
        });
        // Behind the last value all slots are free.
        all.take(self.len())
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the next insert would be refused.
    pub fn is_full(&self) -> bool {
        self.free == NO_SLOT
    }

    #[inline]
    fn slot_mut(&mut self, tag: Tag) -> Option<&mut Slot<T>> {
        let slot = self.slots.get_mut(tag.index() as usize)?;
        (slot.generation == tag.generation()).then_some(slot)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_under_its_tag_until_it_is_removed() {
        let mut slots = InFlightTable::new(4);
        let a = slots.insert("a").unwrap();
        let b = slots.insert("b").unwrap();
        assert_eq!(slots.len(), 2);
        assert_eq!(slots.get_mut(a), Some(&mut "a"));
        assert_eq!(slots.remove(a), Some("a"));
        assert_eq!(slots.get_mut(a), None);
        assert_eq!(slots.remove(a), None);
        assert_eq!(slots.len(), 1);
        assert_eq!(slots.get_mut(b), Some(&mut "b"));
    }

    #[test]
    fn a_full_table_refuses_and_has_room_again_after_a_removal() {
        let mut slots = InFlightTable::new(3);
        let tags: Vec<Tag> = (0..3).map(|i| slots.insert(i).unwrap()).collect();
        assert!(slots.is_full() && slots.insert(9).is_none());
        assert_eq!(slots.len(), 3, "a refused insert leaves nothing behind");
        assert_eq!(slots.remove(tags[1]), Some(1));
        let again = slots.insert(5).unwrap();
        assert_eq!(again.index(), tags[1].index(), "the slot vacated last is used first");
        assert_ne!(again, tags[1]);
        assert_eq!(slots.remove(tags[1]), None, "a stale tag does not name the slot's new value");
        assert_eq!(slots.remove(again), Some(5));
    }

    #[test]
    fn a_forged_tag_finds_nothing() {
        let mut slots = InFlightTable::new(2);
        let tag = slots.insert('x').unwrap();
        let forged = [
            0,
            u64::MAX,
            tag.0 + 1,             // a slot that is free
            tag.0 + 2,             // a slot that does not exist
            tag.0 + (1 << 32),     // a generation to come
            tag.0 & 0xffff_ffff,   // generation 0
            u64::from(NO_SLOT),    // the end of the list
            1 << 32 | 0xffff_fffe, // far outside
        ];
        for bits in forged {
            assert_eq!(slots.get_mut(Tag(bits)), None, "{bits:#x}");
            assert_eq!(slots.remove(Tag(bits)), None, "{bits:#x}");
        }
        assert_eq!(slots.remove(tag), Some('x'));
    }

    #[test]
    fn generations_come_round_without_the_tag_zero() {
        let mut slots = InFlightTable::new(1);
        slots.slots[0].generation = u32::MAX;
        let last = slots.insert(1).unwrap();
        assert_eq!(slots.remove(last), Some(1));
        let first = slots.insert(2).unwrap();
        assert_eq!(first, Tag::new(1, 0));
        assert_eq!(slots.remove(last), None);
    }

    #[test]
    fn no_capacity_means_always_full() {
        let mut slots = InFlightTable::new(0);
        assert!(slots.is_full() && slots.is_empty());
        assert_eq!(slots.insert(1), None);
    }

    #[test]
    fn what_is_not_removed_is_iterated() {
        let mut slots = InFlightTable::new(8);
        let tags: Vec<Tag> = (0..6).map(|i| slots.insert(i).unwrap()).collect();
        for at in [0, 2, 4] {
            assert_eq!(slots.remove(tags[at]), Some(at as i32));
        }
        let left: Vec<(Tag, i32)> = slots.iter().map(|(tag, value)| (tag, *value)).collect();
        assert_eq!(left, [(tags[1], 1), (tags[3], 3), (tags[5], 5)]);
    }

    /// Compares the table with a plain list in a fixed pseudo-random series of inserts, removals
    /// and look-ups of stale tags.
    #[test]
    fn it_agrees_with_a_list() {
        let mut slots = InFlightTable::new(16);
        let mut list: Vec<(Tag, u64)> = Vec::new();
        let mut gone: Vec<Tag> = Vec::new();
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for step in 0..20_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            if random.is_multiple_of(2) {
                match slots.insert(step) {
                    Some(tag) => list.push((tag, step)),
                    None => assert_eq!(list.len(), 16),
                }
            } else if !list.is_empty() {
                let (tag, value) = list.swap_remove(random as usize / 2 % list.len());
                assert_eq!(slots.remove(tag), Some(value));
                gone.push(tag);
            }
            if let Some(tag) = gone.get(random as usize % (gone.len() + 1)) {
                assert_eq!(slots.get_mut(*tag), None);
            }
            assert_eq!(slots.len(), list.len());
        }
    }
}

/// The table passes from holder to holder of a role. Two holders find the same completion, and only
/// one of them gets the operation. The memory orders are those of `engine::role`; with a Relaxed
/// there the model fails.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::engine::role::{Held, Role};
    use loom::sync::Arc;
    use loom::thread;

    fn hold<T>(role: &Role<T>) -> Held<'_, T> {
        loop {
            match role.take() {
                Some(held) => return held,
                None => thread::yield_now(),
            }
        }
    }

    #[test]
    fn loom_a_completion_seen_by_two_holders_is_fired_once() {
        loom::model(|| {
            let mut slots = InFlightTable::new(2);
            let tag = slots.insert(7).unwrap();
            let role = Arc::new(Role::new(slots));
            let others = role.clone();
            let other = thread::spawn(move || {
                let mut slots = hold(&others);
                let mine = slots.remove(tag);
                let reused = slots.insert(8);
                (mine, reused)
            });
            let mine = hold(&role).remove(tag);
            let (theirs, reused) = other.join().unwrap();
            assert_eq!(mine.xor(theirs), Some(7));
            let mut slots = hold(&role);
            assert_eq!(slots.len(), 1);
            assert_eq!(slots.get_mut(tag), None);
            assert_eq!(slots.remove(reused.unwrap()), Some(8));
        });
    }
}
