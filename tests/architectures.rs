//! The binaries of a release, each of them between real API servers; those of other architectures under QEMU.
//!
//! `scripts/build-all` makes them; `scripts/test --release` runs these tests.

#![expect(clippy::panic, reason = "in tests a failure is one")]

#[path = "footprint/link.rs"]
#[expect(dead_code, reason = "these tests need a part of it")]
mod link;
mod support;

#[path = "architectures/released.rs"]
mod released;
