//! What the syncer's metrics say.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::eventually;
pub(crate) use crate::support::serving::{ANYWHERE, address_of};
use crate::support::story::SOON;

/// Waits until the page of metrics has this line.
pub(crate) async fn shows(address: SocketAddr, line: &str) {
    eventually(line, SOON, async || {
        let page = page(address).await.map_err(|error| error.to_string())?;
        if page.lines().any(|found| found == line) {
            Ok(())
        } else {
            Err(page)
        }
    })
    .await;
}

/// All that the metrics say.
pub(crate) async fn page(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}

/// An error unless the metrics say that a side is up.
pub(crate) async fn is_up(address: SocketAddr, side: &str) -> Result<(), String> {
    let page = page(address).await.map_err(|error| error.to_string())?;
    let up = format!("edge_syncer_side_up{{side=\"{side}\"}} 1");
    if page.lines().any(|line| line == up) {
        Ok(())
    } else {
        Err(page)
    }
}
