//! A map that has few entries at most times. A search compares the keys one after the other, which
//! takes less than a search of a tree as long as there are some tens. Insertions and removals move
//! one entry at most.

/// Entries for which an empty map keeps memory, so that a map that gets and loses an entry in turn
/// allocates nothing.
const KEPT: usize = 8;

/// See the head of the file. The order of the entries changes with each removal.
pub struct SmallMap<K, V> {
    keys: Vec<K>,
    /// At the same indices.
    values: Vec<V>,
}

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> SmallMap<K, V> {
        SmallMap { keys: Vec::new(), values: Vec::new() }
    }
}

impl<K: Copy + Eq, V> SmallMap<K, V> {
    /// The index of a key, until the next change of the map.
    #[inline]
    pub fn find(&self, key: K) -> Option<usize> {
        self.keys.iter().position(|it| *it == key)
    }

    /// The value at an index of find().
    #[inline]
    pub fn at(&mut self, index: usize) -> &mut V {
        &mut self.values[index]
    }

    /// The key at an index of find().
    pub fn key(&self, index: usize) -> K {
        self.keys[index]
    }

    pub fn get(&self, key: K) -> Option<&V> {
        self.find(key).map(|at| &self.values[at])
    }

    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.find(key).map(|at| &mut self.values[at])
    }

    pub fn contains(&self, key: K) -> bool {
        self.find(key).is_some()
    }

    /// The value of a key, which is added with the value of `make` if it is not there.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = self.find(key).unwrap_or_else(|| {
            self.add(key, make());
            self.keys.len() - 1
        });
        &mut self.values[at]
    }

    /// Adds a key that is not there.
    pub fn add(&mut self, key: K, value: V) {
        debug_assert!(!self.contains(key), "the key is there");
        self.keys.push(key);
        self.values.push(value);
    }

    pub fn remove(&mut self, key: K) -> Option<V> {
        self.find(key).map(|at| self.remove_at(at))
    }

    /// Removes the entry at an index of find(), and returns its value.
    #[inline(always)]
    pub fn remove_at(&mut self, at: usize) -> V {
        self.keys.swap_remove(at);
        let value = self.values.swap_remove(at);
        self.shrink();
        value
    }

    /// Removes a key as remove() does, but leaves its value where it is, so a large one is not
    /// moved.
    #[inline]
    pub fn discard(&mut self, key: K) {
        if let Some(at) = self.find(key) {
            self.discard_at(at);
        }
    }

    /// Removes the entry at an index of find(), as discard() does.
    #[inline]
    pub fn discard_at(&mut self, at: usize) {
        let last = self.keys.len() - 1;
        if at < last {
            self.keys.swap(at, last);
            self.values.swap(at, last);
        }
        self.keys.truncate(last);
        self.values.truncate(last);
        self.shrink();
    }

    /// Frees the memory of an empty map that has had many entries.
    #[inline]
    fn shrink(&mut self) {
        if self.keys.is_empty() && self.values.capacity() > KEPT {
            (self.keys, self.values) = (Vec::new(), Vec::new());
        }
    }

    /// Removes the entries for which `keep` returns false.
    pub fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        // Backwards, since swap_remove() moves the last entry to the place of the removed one.
        for at in (0..self.keys.len()).rev() {
            if !keep(&self.values[at]) {
                self.discard_at(at);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.keys.iter().copied()
    }

    pub fn values(&self) -> impl Iterator<Item = &V> + '_ {
        self.values.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> + '_ {
        self.keys.iter().copied().zip(&mut self.values)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_has_the_entries_of_a_tree() {
        let (mut map, mut tree, mut random) = (SmallMap::default(), BTreeMap::new(), 7_u64);
        let mut below = |most| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(99);
            (random >> 33) % most
        };
        for _ in 0..10_000 {
            let (key, value) = (below(20), below(100));
            match below(4) {
                0 if value < 50 => assert_eq!(map.remove(key), tree.remove(&key)),
                0 => {
                    map.discard(key);
                    tree.remove(&key);
                }
                1 if value < 5 => {
                    map.retain(|it| it % 3 != 0);
                    tree.retain(|_, it| *it % 3 != 0);
                }
                1 => assert_eq!(map.get_mut(key), tree.get_mut(&key)),
                _ => {
                    *map.get_or_insert_with(key, || 1) += value;
                    *tree.entry(key).or_insert(1) += value;
                }
            }
            assert_eq!((map.len(), map.is_empty()), (tree.len(), tree.is_empty()));
            assert_eq!(
                (map.get(key), map.contains(key)),
                (tree.get(&key), tree.contains_key(&key))
            );
            let mut all: Vec<_> = map.iter_mut().map(|(key, value)| (key, *value)).collect();
            assert!(map.keys().zip(map.values().copied()).eq(all.iter().copied()));
            all.sort_unstable();
            assert!(all.into_iter().eq(tree.iter().map(|(key, value)| (*key, *value))));
        }
        map.retain(|_| false);
        assert!(map.is_empty() && map.values.capacity() <= KEPT);
    }
}
