//! What an administrator can do about what a hub has answered, or not answered.

use std::borrow::Cow;

use kube_lite::{Error, Place};

const NOT_ACCEPTED: &str =
    "your credentials are not accepted: log in again, or name others with --kubeconfig, --context or --user";

/// For the end of a line that says what has failed, and why.
pub(super) fn advice(error: &Error, place: &Place) -> Cow<'static, str> {
    match error {
        Error::Unauthorized(_) => NOT_ACCEPTED.into(),
        Error::Unreachable(_) | Error::BadAnswer(_) => driver::advice::advice(error, place),
        // It speaks TLS at that port.
        Error::Status(status) if status.code == 400 && status.reason.is_empty() => driver::advice::advice(error, place),
        Error::Status(status) => match status.code {
            401 => NOT_ACCEPTED.into(),
            403 => "it needs the rights of an administrator: have them given to you, or use other credentials".into(),
            404 => "create it at the hub, or name another one".into(),
            409 => "somebody else has written it at the same time: run the same command again".into(),
            400..=428 | 430..=499 => "see the reason that the hub gives".into(),
            _ => "the hub has an internal problem: run the same command again, and see its log if it lasts".into(),
        },
        _ => "run the same command again, and see the hub's log if it lasts".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_to_do_by_what_has_happened() {
        let status = |code: u16| {
            let body = format!(r#"{{"kind":"Status","apiVersion":"v1","message":"m","code":{code}}}"#);
            Error::from_answer(code, None, body.as_bytes())
        };
        for (error, expected) in [
            (status(401), "log in again"),
            (status(403), "the rights of an administrator"),
            (status(404), "create it"),
            (status(409), "run the same command again"),
            (status(422), "the reason that the hub gives"),
            (status(429), "run the same command again"),
            (status(500), "run the same command again"),
            (Error::Unanswered("cut".to_owned()), "run the same command again"),
            (
                Error::Unreachable("Connection refused".to_owned()),
                "is the API server up",
            ),
            (
                Error::from_answer(400, None, b"Client sent an HTTP request to an HTTPS server.\n"),
                "write https://",
            ),
            (Error::BadAnswer("a web page: Sign in".to_owned()), "check the address"),
        ] {
            let found = advice(&error, &Place::default());
            assert!(found.contains(expected), "{error}: {found}");
        }
    }
}
