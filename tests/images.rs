//! The container image: through registries and tools of others, and running between real API servers.
//!
//! `scripts/build-all` and `scripts/image` make it; `scripts/test --release` runs these tests.

mod support;

#[path = "images/released.rs"]
mod released;
