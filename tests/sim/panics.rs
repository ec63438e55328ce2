//! Panics of tasks that nobody waits for: tokio catches them, so they are noted here and not lost.

use std::cell::{Cell, RefCell};
use std::panic;
use std::sync::Once;

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static NOTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Notes panics of this thread from now on.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if WATCHED.get() {
                NOTED.with_borrow_mut(|noted| noted.push(info.to_string()));
            }
            before(info);
        }));
    });
    WATCHED.set(true);
    NOTED.with_borrow_mut(Vec::clear);
}

/// The panics since they were taken last.
pub fn take() -> Vec<String> {
    NOTED.take()
}
