//! A bearer token that is in a file and is replaced there while we run, as the tokens of service accounts are.
//!
//! The newline at the end of a file made by hand is no part of the token: client-go trims it, and so does this module.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use tokio::time::Instant;

use super::claims::Claims;
use super::files::{self, TOKEN_LIMIT};
use crate::logging::log_line;

/// How old a token may be before the file is read again. A kubelet replaces it when a fifth of its life is left, which
/// is at least some minutes.
const MAX_AGE: Duration = Duration::from_secs(60);

/// A token file and what was last read from it.
pub(super) struct TokenFile {
    path: PathBuf,
    last: RefCell<Reading>,
}

struct Reading {
    header: HeaderValue,
    /// In seconds since 1970, where the token says so.
    end: Option<u64>,
    at: Instant,
    /// The last read failed, and that was logged.
    failing: bool,
}

impl TokenFile {
    /// Reads the file for the first time; a file that cannot be read or that holds no token is an error.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let (header, end) = read(&path)?;
        let last = RefCell::new(Reading {
            header,
            end,
            at: Instant::now(),
            failing: false,
        });
        Ok(Self { path, last })
    }

    /// The value for the `authorization` header. If the file is gone or unreadable, the last token stays in use: it may
    /// be valid for longer, and if not, the server says so.
    pub(super) fn header(&self) -> HeaderValue {
        let mut last = self.last.borrow_mut();
        if last.at.elapsed() >= MAX_AGE {
            self.read_again(&mut last);
        }
        last.header.clone()
    }

    /// When the token in use ends, in seconds since 1970, if it says so.
    pub(super) fn end(&self) -> Option<u64> {
        self.last.borrow().end
    }

    /// Reads the file now, because the server does not accept the token `used`. True if there is another one now.
    pub(super) fn is_renewed_since(&self, used: &HeaderValue) -> bool {
        let mut last = self.last.borrow_mut();
        if last.header == *used {
            self.read_again(&mut last);
        }
        last.header != *used
    }

    fn read_again(&self, last: &mut Reading) {
        last.at = Instant::now();
        match read(&self.path) {
            Ok((header, end)) => {
                last.header = header;
                last.end = end;
                last.failing = false;
            }
            Err(error) if !last.failing => {
                last.failing = true;
                log_line!(
                    Warn,
                    TokenUnreadable,
                    "cannot read the token file again, the last token remains in use",
                    path = self.path.display(),
                    error = error
                );
            }
            Err(_) => {}
        }
    }
}

/// The header with the token, and when that ends.
fn read(path: &PathBuf) -> io::Result<(HeaderValue, Option<u64>)> {
    let token = files::read_text(path)?;
    let token = token.trim();
    if token.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
    }
    if token.len() > TOKEN_LIMIT {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the token is too long"));
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the file does not hold a token"))?;
    header.set_sensitive(true);
    Ok((header, Claims::of(token).and_then(|claims| claims.ends)))
}

#[cfg(test)]
mod tests {
    use super::super::files::tests::make_pipe;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn follows_the_file_once_a_minute_and_survives_its_loss() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "first\n").unwrap();
        let token = TokenFile::open(path.clone()).unwrap();
        assert_eq!(token.header(), "Bearer first");

        std::fs::write(&path, " second ").unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(token.header(), "Bearer first");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(token.header(), "Bearer second");

        for contents in ["", "two\nlines"] {
            std::fs::write(&path, contents).unwrap();
            tokio::time::advance(MAX_AGE).await;
            assert_eq!(token.header(), "Bearer second");
        }
        std::fs::write(&path, "x".repeat(TOKEN_LIMIT + 1)).unwrap();
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(token.header(), "Bearer second");
        make_pipe(&path);
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(token.header(), "Bearer second");
        std::fs::remove_file(&path).unwrap();
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(token.header(), "Bearer second");

        std::fs::write(&path, "third").unwrap();
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(token.header(), "Bearer third");
        assert!(token.header().is_sensitive());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_is_refused_is_read_again_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "first").unwrap();
        let token = TokenFile::open(path.clone()).unwrap();
        let first = token.header();
        assert!(!token.is_renewed_since(&first));
        std::fs::write(&path, "second").unwrap();
        assert!(token.is_renewed_since(&first));
        let second = token.header();
        assert_eq!(second, "Bearer second");
        assert!(
            token.is_renewed_since(&first),
            "also for a request that was sent at the same time"
        );
        std::fs::remove_file(&path).unwrap();
        assert!(!token.is_renewed_since(&second));
    }

    #[tokio::test]
    async fn needs_a_token_at_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(TokenFile::open(path.clone()).is_err());
        std::fs::write(&path, "\n").unwrap();
        assert!(TokenFile::open(path).is_err());
    }
}
