//! When two values are equal.

use std::rc::Rc;

use super::heap::Heap;
use super::value::Value;

impl Value {
    /// Whether both are of one type and equal, all the way down: `reflect.DeepEqual`.
    pub(crate) fn equals(&self, other: &Self, heap: &Heap) -> Result<bool, String> {
        heap.work(1)?;
        Ok(match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(kind, a), Self::Int(other, b)) => kind == other && a == b,
            #[expect(clippy::float_cmp, reason = "as Go compares them")]
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                let alike = a.of == b.of && a.is_nil == b.is_nil && a.items.len() == b.items.len();
                alike && heap.deeper(|| all_equal(a.items.iter().zip(&b.items), heap))?
            }
            (Self::Map(a), Self::Map(b)) if Rc::ptr_eq(a, b) => true,
            (Self::Map(a), Self::Map(b)) => {
                let (left, right) = (a.entries.borrow(), b.entries.borrow());
                let alike = a.of_texts == b.of_texts && left.keys().eq(right.keys());
                alike && heap.deeper(|| all_equal(left.values().zip(right.values()), heap))?
            }
            (Self::Time(a), Self::Time(b)) => a == b,
            (Self::Version(a), Self::Version(b)) => a == b,
            _ => false,
        })
    }
}

fn all_equal<'a>(mut pairs: impl Iterator<Item = (&'a Value, &'a Value)>, heap: &Heap) -> Result<bool, String> {
    pairs.try_fold(true, |so_far, (a, b)| Ok(so_far && a.equals(b, heap)?))
}
