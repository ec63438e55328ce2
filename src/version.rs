//! Which build of the program this is.
//!
//! The build scripts pass the commit; `cargo build` alone does not know it.

use std::env::consts::{ARCH, OS};

/// The version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that it was built from, with `-dirty` if files were changed after it.
pub(crate) const COMMIT: &str = given(option_env!("EDGE_SYNCER_COMMIT"));

/// The day of that commit. With the day of the build, two builds of one commit would differ.
pub(crate) const DATE: &str = given(option_env!("EDGE_SYNCER_DATE"));

/// The C library, which target names end with, and how it passes floating-point numbers where there are two ways.
const LIBC: &str = match (cfg!(target_env = "musl"), cfg!(target_arch = "arm")) {
    (false, false) => "gnu",
    (true, false) => "musl",
    (false, true) => "gnueabihf",
    (true, true) => "musleabihf",
};

const fn given(value: Option<&'static str>) -> &'static str {
    match value {
        Some(text) if !text.is_empty() => text,
        _ => "unknown",
    }
}

/// What it was built for, such as `x86_64-linux-gnu`.
pub(crate) fn target() -> String {
    [ARCH, OS, LIBC].join("-")
}

/// All of it, a line each.
pub(crate) fn text(name: &str) -> String {
    format!(
        "{name} {VERSION}\ncommit: {COMMIT}\ntarget: {}\ndate: {DATE}\n",
        target()
    )
}

/// `edge-syncer/<version> (<os>/<arch>)`, so that a hub can distinguish its syncers and their versions.
pub(crate) fn user_agent() -> String {
    format!("edge-syncer/{VERSION} ({OS}/{ARCH})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_is_unknown() {
        assert_eq!(given(None), "unknown");
        assert_eq!(given(Some("")), "unknown");
        assert_eq!(given(Some("12ab")), "12ab");
    }

    #[test]
    fn the_target_is_named_as_tools_name_it() {
        let target = target();
        let parts: Vec<&str> = target.split('-').collect();
        assert_eq!(parts, [ARCH, "linux", LIBC], "{target}");
    }
}
