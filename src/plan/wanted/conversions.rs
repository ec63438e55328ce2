//! All conversions, each found by either of its names: entries and conversions may be thousands of both.

use std::cmp::Ordering;
use std::ops::Deref;

use super::{Conversion, Triple};

/// Conversions in order of precedence. No two of them have a name in common at the same side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversions {
    all: Vec<Conversion>,
    /// Their places in `all`, in the order of their names at the hub.
    by_hub: Vec<u32>,
    /// The same in the order of their names at the edge.
    by_edge: Vec<u32>,
}

impl Deref for Conversions {
    type Target = [Conversion];

    fn deref(&self) -> &[Conversion] {
        &self.all
    }
}

impl Conversions {
    /// Adds a conversion, unless it is known. The error is the first one that it contradicts.
    pub(super) fn add(&mut self, conversion: Conversion) -> Result<(), &Conversion> {
        let (at_hub, at_edge) = (self.at_hub(&conversion.hub), self.at_edge(&conversion.edge));
        let found = |of: &[u32], at: Result<usize, usize>| at.ok().and_then(|at| of.get(at)).copied();
        let known = [found(&self.by_hub, at_hub), found(&self.by_edge, at_edge)];
        match (known.into_iter().flatten().min(), at_hub, at_edge) {
            (None, Err(at_hub), Err(at_edge)) => {
                let Ok(place) = u32::try_from(self.all.len()) else {
                    return Ok(());
                };
                self.by_hub.insert(at_hub, place);
                self.by_edge.insert(at_edge, place);
                self.all.push(conversion);
                Ok(())
            }
            (Some(first), ..) => {
                let first = &self.all[first as usize];
                let is_same = (&first.hub, &first.edge) == (&conversion.hub, &conversion.edge);
                if is_same { Ok(()) } else { Err(first) }
            }
            _ => Ok(()),
        }
    }

    /// The first one with this name on either side.
    pub(in crate::plan) fn of(&self, triple: &Triple) -> Option<&Conversion> {
        let at_hub = self.at_hub(triple).ok().map(|at| self.by_hub[at]);
        let at_edge = self.at_edge(triple).ok().map(|at| self.by_edge[at]);
        let first = at_hub.into_iter().chain(at_edge).min()?;
        self.all.get(first as usize)
    }

    fn at_hub(&self, triple: &Triple) -> Result<usize, usize> {
        self.place(&self.by_hub, |known| known.hub.cmp(triple))
    }

    fn at_edge(&self, triple: &Triple) -> Result<usize, usize> {
        self.place(&self.by_edge, |known| known.edge.cmp(triple))
    }

    fn place(&self, of: &[u32], compare: impl Fn(&Conversion) -> Ordering) -> Result<usize, usize> {
        of.binary_search_by(|&at| compare(&self.all[at as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::wanted::ConfigPlace;

    fn triple(kind: &str, name: &str) -> Triple {
        Triple {
            group: String::new(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    fn conversion(hub: &str, edge: &str) -> Conversion {
        Conversion {
            place: ConfigPlace {
                config: "EdgeSyncConfig//x".into(),
                field: String::new(),
            },
            hub: triple("A", hub),
            edge: triple("A", edge),
        }
    }

    #[test]
    fn the_first_conversion_of_a_name_counts_on_either_side() {
        let mut conversions = Conversions::default();
        for (hub, edge, contradicts) in [
            ("c", "d", None),
            ("a", "b", None),
            ("a", "b", None),
            ("a", "x", Some("a")),
            ("x", "d", Some("c")),
            ("a", "d", Some("c")),
            ("b", "c", None),
        ] {
            let found = conversions.add(conversion(hub, edge));
            let first = contradicts.map(|hub| triple("A", hub));
            assert_eq!(found.err().map(|first| first.hub.clone()), first, "{hub} {edge}");
        }
        assert_eq!(conversions.len(), 3);
        for (name, expected) in [
            ("a", Some("a")),
            ("b", Some("a")),
            ("c", Some("c")),
            ("d", Some("c")),
            ("x", None),
        ] {
            let found = conversions.of(&triple("A", name)).map(|found| &*found.hub.name);
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(conversions.of(&triple("B", "a")), None, "another kind");
    }
}
