//! Where a syncer serves health, metrics and its page.

use std::net::SocketAddr;

use super::Syncer;
use super::story::SOON;

/// A port of the machine's choice, which the log names.
pub const ANYWHERE: &str = "--listen-address=127.0.0.1:0";
/// What stands before the address in the log.
pub const SERVING: &str = "msg=\"serving health and metrics\" address=";

/// Where a syncer that was started with [`ANYWHERE`] serves.
pub async fn address_of(syncer: &mut Syncer) -> SocketAddr {
    syncer.wait_for_log(SERVING, SOON).await;
    let log = syncer.log();
    let (_, rest) = log.split_once(SERVING).expect("it was waited for");
    let address = rest.lines().next().expect("a line ends");
    address.parse().expect("an address follows")
}
