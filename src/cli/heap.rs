//! Memory is returned to the system: glibc's allocator is set to keep no large blocks for later.
//!
//! It reads its settings from the environment before the program begins, and nothing but unsafe code changes them
//! afterwards. So the program sets the variable and executes itself once, in the same process. Without that, the memory
//! for a handful of objects of a megabyte stays with the process: 20 MB instead of 6.
//!
//! A line in unit, image and manifests would do the same, but only there: not where the binary is started by hand, by a unit
//! of somebody's own, or in another image. `mallopt` needs unsafe code, wherever it stands, and another allocator is a
//! dependency. The second exec happens once, at the start.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};

/// Blocks from this size on are taken from the system and returned to it. It is glibc's default; with the variable set,
/// it does not grow with each large block that is freed.
const THRESHOLD: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "131072");

/// The same setting in its other spelling.
const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold");

/// Holds the id of the process that has executed itself. The threshold alone would not be a reliable sign: glibc
/// removes it if the executable has privileges of its own.
const DONE: &str = "EDGE_SYNCER_EXECUTED";

/// Executes the program again with the setting, unless that was done or the user has set it. Returns if there is
/// nothing to do, or if it cannot be done: without `/proc`, for example, the program's file is not known.
pub fn give_memory_back() {
    let id = process::id().to_string();
    if !is_wanted(|name| env::var_os(name), &id) {
        return;
    }
    let Ok(program) = env::current_exe() else { return };
    let mut args = env::args_os();
    let mut again = Command::new(program);
    if let Some(name) = args.next() {
        // The behaviour of the program depends on its name.
        again.arg0(name);
    }
    // An error is no reason not to sync.
    let _ = again.args(args).env(THRESHOLD.0, THRESHOLD.1).env(DONE, id).exec();
}

fn is_wanted(variable: impl Fn(&str) -> Option<OsString>, id: &str) -> bool {
    let is_done = variable(DONE).is_some_and(|done| done == id);
    let is_tuned = variable(TUNABLES.0).is_some_and(|text| text.to_string_lossy().contains(TUNABLES.1));
    cfg!(target_env = "gnu") && !is_done && !is_tuned && variable(THRESHOLD.0).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_done_once_and_not_where_the_user_has_decided() {
        for (variables, expected) in [
            (&[][..], cfg!(target_env = "gnu")),
            // Set by a parent process that has done it.
            (&[(DONE, "6")], cfg!(target_env = "gnu")),
            (&[(TUNABLES.0, "glibc.malloc.arena_max=1")], cfg!(target_env = "gnu")),
            (&[(DONE, "7")], false),
            (&[(THRESHOLD.0, "1000000")], false),
            (&[(THRESHOLD.0, "")], false),
            (
                &[(TUNABLES.0, "glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=4096")],
                false,
            ),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(is_wanted(variable, "7"), expected, "{variables:?}");
        }
    }
}
