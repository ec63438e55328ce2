//! A map for few entries: a sorted list. Each kind of `BTreeMap` adds 5 to 8 kB to the binary, and is slower with two
//! entries.

/// A map of a few entries, in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Few<K, V>(Vec<(K, V)>);

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord, V> FromIterator<(K, V)> for Few<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut few = Self::default();
        for (key, value) in entries {
            few.insert(key, value);
        }
        few
    }
}

impl<K: Copy + Ord, V> Few<K, V> {
    fn place(&self, key: K) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(known, _)| *known)
    }

    /// Sets the value of a key. Returns the former one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// The value of a key.
    pub fn get(&self, key: K) -> Option<&V> {
        self.place(key).ok().map(|at| &self.0[at].1)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.place(key).ok().map(|at| &mut self.0[at].1)
    }

    /// The value of a key; a new one if there is none.
    pub fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let at = self.place(key).unwrap_or_else(|at| {
            self.0.insert(at, (key, V::default()));
            at
        });
        &mut self.0[at].1
    }

    /// Takes a key out. Returns its value.
    pub fn remove(&mut self, key: K) -> Option<V> {
        self.place(key).ok().map(|at| self.0.remove(at).1)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps only these.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keep(*key, value));
    }

    /// All, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (*key, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = K> {
        self.0.iter().map(|(key, _)| *key)
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn few_entries_are_those_of_a_map(steps in prop::collection::vec((0..6_u8, any::<u8>(), 0..4_u8), 0..60)) {
            let (mut few, mut map) = (Few::default(), BTreeMap::new());
            for (key, value, step) in steps {
                match step {
                    0 => prop_assert_eq!(few.remove(key), map.remove(&key)),
                    1 => {
                        few.retain(|known, _| known != key);
                        map.retain(|known, _| *known != key);
                    }
                    _ => {
                        *few.or_default(key) = value;
                        map.insert(key, value);
                    }
                }
                prop_assert_eq!(few.get(key), map.get(&key));
                prop_assert_eq!(few.is_empty(), map.is_empty());
                prop_assert!(few.iter().eq(map.iter().map(|(key, value)| (*key, value))));
                let collected: Few<u8, u8> = map.clone().into_iter().rev().collect();
                prop_assert!(collected.iter().eq(few.iter()));
            }
        }
    }
}
