//! The packages, installed in throw-away systems.
//!
//! `scripts/build-all` and `scripts/package` make them; `scripts/test --release` runs these tests.

mod support;

#[path = "packages/released.rs"]
mod released;
