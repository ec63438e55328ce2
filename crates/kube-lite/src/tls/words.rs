//! Better messages for what is wrong with a server's certificate: those of the TLS library have seconds since 1970 and
//! the names of types.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustls::CertificateError;

use crate::logging::times::date_and_time;

/// What is wrong, if there is an error of TLS in the chain of causes for which there is a better message.
pub(crate) fn of_certificate(error: &(dyn Error + 'static)) -> Option<String> {
    let rustls::Error::InvalidCertificate(fault) = cause(error)? else {
        return None;
    };
    in_words(fault).map(|words| format!("invalid peer certificate: {words}"))
}

/// The error of the TLS library, which is in an I/O error, beside the chain.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut causes = std::iter::successors(Some(error), |&error| {
        let inner = error.downcast_ref().and_then(io::Error::get_ref);
        inner
            .map(|inner| inner as &(dyn Error + 'static))
            .or_else(|| error.source())
    });
    causes.find_map(|cause| cause.downcast_ref())
}

fn in_words(fault: &CertificateError) -> Option<String> {
    let at = |seconds: u64| date_and_time(Duration::from_secs(seconds));
    match fault {
        CertificateError::ExpiredContext { time, not_after } => Some(format!(
            "certificate expired: it was valid until {}, and the clock of this machine says {}",
            at(not_after.as_secs()),
            at(time.as_secs())
        )),
        CertificateError::NotValidYetContext { time, not_before } => Some(format!(
            "certificate not valid yet: it will be from {}, and the clock of this machine says {}",
            at(not_before.as_secs()),
            at(time.as_secs())
        )),
        CertificateError::NotValidForNameContext { expected, presented } => Some(format!(
            "certificate not valid for name {:?}; it is for {}",
            expected.to_str(),
            if presented.is_empty() {
                "no name at all".to_owned()
            } else {
                presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
            }
        )),
        _ => None,
    }
}

/// The name in `DnsName("hub.example")`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    #[test]
    fn certificates_are_printed_with_dates_and_names_that_people_read() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let (early, late) = (at(1_709_164_800), at(1_795_269_787));
        let presented = ["DnsName(\"hub.example\")", "IpAddress(10.0.0.1)"];
        for (fault, expected) in [
            (
                CertificateError::ExpiredContext {
                    time: late,
                    not_after: early,
                },
                "certificate expired: it was valid until 2024-02-29T00:00:00Z, and the clock of this machine says \
                 2026-11-21T14:03:07Z",
            ),
            (
                CertificateError::NotValidYetContext {
                    time: early,
                    not_before: late,
                },
                "certificate not valid yet: it will be from 2026-11-21T14:03:07Z, and the clock of this machine says \
                 2024-02-29T00:00:00Z",
            ),
            (
                CertificateError::NotValidForNameContext {
                    expected: ServerName::try_from("edge.example").unwrap(),
                    presented: presented.map(str::to_owned).to_vec(),
                },
                "certificate not valid for name \"edge.example\"; it is for hub.example, 10.0.0.1",
            ),
        ] {
            let error = io::Error::other(rustls::Error::InvalidCertificate(fault));
            assert_eq!(
                of_certificate(&error),
                Some(format!("invalid peer certificate: {expected}"))
            );
        }
        let unknown = io::Error::other(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer));
        assert_eq!(of_certificate(&unknown), None);
    }
}
