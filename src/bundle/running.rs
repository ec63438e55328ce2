//! What a running syncer says at its `--listen-address`.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use tokio::time::Instant;

/// The longest answer that is read: the page and the metrics have a few kilobytes.
const LONGEST: usize = 4 << 20;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What is at this path of this address; the error says why there is nothing. There is one thread, which has nothing
/// else to do.
pub(super) fn ask(address: &str, path: &str) -> Result<String, String> {
    let address = if address.starts_with(':') {
        ["localhost", address].concat()
    } else {
        address.to_owned()
    };
    let found = address.to_socket_addrs().map_err(|error| error.to_string())?;
    let mut last = "it has no address".to_owned();
    for place in found {
        match TcpStream::connect_timeout(&place, TIMEOUT) {
            Ok(stream) => return exchange(stream, &address, path).map_err(|error| error.to_string()),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

fn exchange(mut stream: TcpStream, host: &str, path: &str) -> Result<String, Box<dyn std::error::Error>> {
    let end = Instant::now() + TIMEOUT;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let (mut answer, mut piece) = (Vec::new(), [0; 16 << 10]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("the answer takes too long".into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => break,
            read => answer.extend_from_slice(&piece[..read]),
        }
        if answer.len() > LONGEST {
            return Err("the answer is too long".into());
        }
    }
    Ok(body(&String::from_utf8_lossy(&answer))?.to_owned())
}

/// The body of an answer that is as it should be.
fn body(answer: &str) -> Result<&str, String> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.starts_with("HTTP/1.1 200 ") {
        return Ok(body);
    }
    let status: String = status.chars().take(80).collect();
    Err(format!("it answers {status:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_answer_counts() {
        assert_eq!(body("HTTP/1.1 200 OK\r\na: b\r\n\r\nyes\r\n\r\n"), Ok("yes\r\n\r\n"));
        assert_eq!(
            body("HTTP/1.1 404 Not Found\r\n\r\nx"),
            Err("it answers \"HTTP/1.1 404 Not Found\"".into())
        );
        assert_eq!(body(""), Err("it answers \"\"".into()));
    }

    #[test]
    fn an_address_where_nobody_listens_is_an_error() {
        for address in ["127.0.0.1:1", "127.0.0.1", "", ":", "no such host:1"] {
            assert!(ask(address, "/").is_err(), "{address}");
        }
    }
}
