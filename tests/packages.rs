//! The packages, installed in throw-away systems.
//!
//! `scripts/build-all` and `scripts/package` make them; `scripts/test --release` runs these tests.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "packages/released.rs"]
mod released;
