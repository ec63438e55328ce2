use std::cell::Cell;

use futures_util::StreamExt;
use futures_util::stream;
use kube_lite::{ApiStatus, Response};

use super::*;
use crate::source::bench::*;

#[path = "watch_tests/breaking.rs"]
mod breaking;
#[path = "watch_tests/listing.rs"]
mod listing;
#[path = "watch_tests/streaming.rs"]
mod streaming;
