//! Where a syncer serves health, metrics and its page.

use std::net::SocketAddr;

use super::story::SOON;
use super::{Syncer, eventually};

/// A port of the machine's choice, which the log names.
pub const ANYWHERE: &str = "--listen-address=127.0.0.1:0";
/// What stands before the address in the log.
pub const SERVING: &str = "msg=\"serving health and metrics\" address=";

/// The same in a log of JSON.
const SERVING_IN_JSON: &str = "\"msg\":\"serving health and metrics\",\"address\":\"";

/// Where a syncer that was started with [`ANYWHERE`] serves, whatever the format of its log is.
pub async fn address_of(syncer: &mut Syncer) -> SocketAddr {
    let address = eventually("it says where it serves", SOON, async || {
        let log = syncer.log();
        let found = [SERVING, SERVING_IN_JSON].iter().find_map(|begin| {
            let (_, rest) = log.split_once(begin)?;
            rest.split_once(['\n', '"']).map(|(address, _)| address.to_owned())
        });
        match found {
            None if !syncer.is_running() => panic!("the syncer has ended"),
            found => found.ok_or("not yet"),
        }
    })
    .await;
    address.parse().expect("it is an address")
}
