//! Tokens of the hub that end while the syncer runs: renewed, kept, refused, rotated. All with real tokens of a real API
//! server, which the tests sign with its key, so that none has to be waited for.

mod support;

#[path = "renewal/bench.rs"]
mod bench;
#[path = "renewal/ends.rs"]
mod ends;
#[path = "renewal/file.rs"]
mod file;
#[path = "renewal/secret.rs"]
mod secret;
