//! What the syncer says: its log lines from info on, by thread, so that tests side by side do not hear each other.

use std::cell::RefCell;
use std::sync::Once;

use log::{LevelFilter, Log, Metadata, Record};

thread_local! {
    static LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

struct Recorder;

impl Log for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        LINES.with_borrow(Option::is_some)
    }

    fn log(&self, record: &Record<'_>) {
        LINES.with_borrow_mut(|lines| {
            if let Some(lines) = lines {
                lines.push(format!("{} {}", record.level(), record.args()));
            }
        });
    }

    fn flush(&self) {}
}

/// Keeps the lines of this thread from now on.
pub fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&Recorder).expect("nobody else listens");
        log::set_max_level(LevelFilter::Info);
    });
    LINES.set(Some(Vec::new()));
}

/// The lines since they were taken last.
pub fn take() -> Vec<String> {
    LINES.with_borrow_mut(|lines| lines.as_mut().map(std::mem::take).unwrap_or_default())
}
