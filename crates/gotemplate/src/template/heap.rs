//! What a rendering may use: the bounds, and the owner of all lists and maps.
//!
//! Whoever may write a template shares the process with all others. So a template that never ends, or that makes very
//! much of very little, is cut off with an error that says which bound it reached.
//!
//! Lists and maps live until the rendering ends. A template can make maps that hold themselves, and lists as deep as it
//! likes; the heap takes them apart one by one, where dropping the outermost would need as much stack as they are deep.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::SystemTime;

use super::value::{Entries, List, Map, Of, Value};

/// The longest text, in bytes: what a template renders, and any text on the way there.
pub(crate) const LONGEST_TEXT: usize = 3 << 20;

/// All texts on the way there together, in bytes.
pub(crate) const ALL_TEXTS: usize = 16 << 20;

/// The elements of all lists and entries of all maps.
pub(crate) const ALL_ELEMENTS: usize = 100_000;

/// Steps: an action, an argument, a turn of a loop; and some for each text that a function reads.
pub(crate) const STEPS: u64 = 4_000_000;

/// How deep templates may call each other, and values be nested where that matters.
pub(crate) const DEEPEST: usize = 100;

/// How many bytes a function reads for the price of a step.
const BYTES_PER_STEP: usize = 32;

/// What one rendering has used.
pub(crate) struct Heap {
    lists: RefCell<Vec<Rc<List>>>,
    maps: RefCell<Vec<Rc<Map>>>,
    elements: Cell<usize>,
    bytes: Cell<usize>,
    steps: Cell<u64>,
    depth: Cell<usize>,
    now: SystemTime,
}

impl Heap {
    pub(crate) fn new(now: SystemTime) -> Self {
        Self {
            lists: RefCell::default(),
            maps: RefCell::default(),
            elements: Cell::new(0),
            bytes: Cell::new(0),
            steps: Cell::new(0),
            depth: Cell::new(0),
            now,
        }
    }

    /// When the rendering began: `now` is the same in all of it.
    pub(crate) fn now(&self) -> SystemTime {
        self.now
    }

    /// Counts steps.
    pub(crate) fn work(&self, steps: u64) -> Result<(), String> {
        let used = self.steps.get().saturating_add(steps);
        self.steps.set(used);
        if used > STEPS {
            return Err(format!("the template takes more than {STEPS} steps"));
        }
        Ok(())
    }

    /// Counts the steps of reading this many bytes.
    pub(crate) fn read(&self, bytes: usize) -> Result<(), String> {
        self.work((bytes / BYTES_PER_STEP) as u64)
    }

    /// Goes a level deeper while `inner` runs.
    pub(crate) fn deeper<T>(&self, inner: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        if self.depth.get() == DEEPEST {
            return Err(format!("nested more than {DEEPEST} deep"));
        }
        self.depth.set(self.depth.get() + 1);
        let result = inner();
        self.depth.set(self.depth.get() - 1);
        result
    }

    /// Room for a text of this length, before it is made.
    pub(crate) fn room(&self, length: usize) -> Result<(), String> {
        if length > LONGEST_TEXT {
            return Err(format!("makes a text of more than {} MiB", LONGEST_TEXT >> 20));
        }
        if self.bytes.get() + length > ALL_TEXTS {
            return Err(format!("the template's texts have more than {} MiB", ALL_TEXTS >> 20));
        }
        Ok(())
    }

    /// A text.
    pub(crate) fn text(&self, bytes: impl AsRef<[u8]>) -> Result<Value, String> {
        let bytes = bytes.as_ref();
        self.room(bytes.len())?;
        self.bytes.set(self.bytes.get() + bytes.len());
        self.read(bytes.len())?;
        Ok(Value::Text(bytes.into()))
    }

    /// Room for this many more elements, before they are made.
    pub(crate) fn elements(&self, count: usize) -> Result<(), String> {
        let used = self.elements.get().saturating_add(count);
        if used > ALL_ELEMENTS {
            return Err(format!(
                "the template's lists and maps have more than {ALL_ELEMENTS} elements"
            ));
        }
        self.elements.set(used);
        Ok(())
    }

    /// A list.
    pub(crate) fn list(&self, of: Of, items: Vec<Value>) -> Result<Value, String> {
        self.keep_list(of, items, false)
    }

    /// A list of texts.
    pub(crate) fn texts<T: AsRef<[u8]>>(&self, items: impl IntoIterator<Item = T>) -> Result<Value, String> {
        let items = items.into_iter().map(|item| self.text(item));
        self.list(Of::Text, items.collect::<Result<_, _>>()?)
    }

    /// Go's nil of a list type.
    pub(crate) fn nil_list(&self, of: Of) -> Result<Value, String> {
        self.keep_list(of, Vec::new(), true)
    }

    fn keep_list(&self, of: Of, items: Vec<Value>, is_nil: bool) -> Result<Value, String> {
        self.elements(items.len() + 1)?;
        let list = Rc::new(List { of, is_nil, items });
        self.lists.borrow_mut().push(Rc::clone(&list));
        Ok(Value::List(list))
    }

    /// A map.
    pub(crate) fn map(&self, entries: Entries) -> Result<Value, String> {
        self.keep_map(entries, false)
    }

    /// A map whose values are texts.
    pub(crate) fn text_map(&self, entries: Entries) -> Result<Value, String> {
        self.keep_map(entries, true)
    }

    fn keep_map(&self, entries: Entries, of_texts: bool) -> Result<Value, String> {
        self.elements(entries.len() + 1)?;
        let map = Rc::new(Map {
            of_texts,
            entries: RefCell::new(entries),
        });
        self.maps.borrow_mut().push(Rc::clone(&map));
        Ok(Value::Map(map))
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // First the contents of maps, which may hold anything: all lists and maps are still held here. Then the lists,
        // the newest first: what a list holds is older, and still held here too.
        for map in self.maps.get_mut() {
            map.entries.take();
        }
        let lists = self.lists.get_mut();
        while lists.pop().is_some() {}
    }
}

/// A text while it is made, of bounded length.
pub(crate) struct Sink {
    bytes: Vec<u8>,
}

impl Sink {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    pub(crate) fn push(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), String> {
        let bytes = bytes.as_ref();
        if self.bytes.len() + bytes.len() > LONGEST_TEXT {
            return Err(format!("makes a text of more than {} MiB", LONGEST_TEXT >> 20));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn char(&mut self, next: char) -> Result<(), String> {
        self.push(next.encode_utf8(&mut [0; 4]).as_bytes())
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
