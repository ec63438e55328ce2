//! Lists of which only a plausible number of items is read: a text of a few megabytes can hold a million empty items,
//! and these would take a hundred times as much memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};

/// Reads a list of at most `MOST` items; `null` is an empty one. More are an error.
pub fn at_most<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_option(List::<T, MOST>(PhantomData))
}

struct List<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST} items")
    }

    fn visit_none<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::custom(format_args!("a list of more than {MOST} items")));
            }
            list.push(item);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Wire {
        #[serde(default, deserialize_with = "at_most::<_, _, 2>")]
        items: Vec<u8>,
    }

    #[test]
    fn a_list_has_as_many_items_as_can_be_meant() {
        for (text, expected) in [
            ("{}", Some(0)),
            (r#"{"items":null}"#, Some(0)),
            (r#"{"items":[]}"#, Some(0)),
            (r#"{"items":[1,2]}"#, Some(2)),
            (r#"{"items":[1,2,3]}"#, None),
            (r#"{"items":{}}"#, None),
        ] {
            let found = serde_json::from_str::<Wire>(text).ok().map(|wire| wire.items.len());
            assert_eq!(found, expected, "{text}");
        }
    }
}
