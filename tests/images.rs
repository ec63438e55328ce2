//! The container image: through registries and tools of others, and running between real API servers.
//!
//! `scripts/build-all` and `scripts/image` make it; `scripts/test --release` runs these tests.

#![expect(clippy::panic, reason = "in tests a failure is one")]

mod support;

#[path = "images/released.rs"]
mod released;
