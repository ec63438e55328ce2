//! The claims in the token of a service account. Nothing is verified: the server does that, and a forged token harms
//! only whoever wrote it into the kubeconfig.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::ObjectName;

/// The claims of a token that are needed to renew it. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Who has issued it: the claim `iss`.
    pub issuer: String,
    /// Whose it is: the claim `sub`.
    pub subject: String,
    /// For whom it is: the claim `aud`.
    pub audiences: Vec<String>,
    /// When it was issued.
    pub issued: u64,
    /// When it ends, if it does.
    pub ends: Option<u64>,
}

impl Claims {
    /// Those of a token; `None` if it is no JWT, or has no subject.
    pub fn of(token: &str) -> Option<Self> {
        let claims = payload(token)?;
        let text = |name: &str| claims[name].as_str().map(str::to_owned);
        let audiences = match &claims["aud"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(many) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        // A server may issue a token for a year though less was requested, and watch for use after the requested time.
        let warned = claims["kubernetes.io"]["warnafter"].as_u64();
        Some(Self {
            issuer: text("iss").unwrap_or_default(),
            subject: text("sub")?,
            audiences,
            issued: claims["iat"].as_u64().unwrap_or_default(),
            ends: claims["exp"].as_u64().into_iter().chain(warned).min(),
        })
    }

    /// The service account that it is of: `system:serviceaccount:NAMESPACE:NAME`.
    pub fn account(&self) -> Option<ObjectName> {
        let (namespace, name) = self.subject.strip_prefix("system:serviceaccount:")?.split_once(':')?;
        Some(ObjectName::new(namespace, name))
    }

    /// True if both are of one account.
    pub fn is_of_same_account(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.subject == other.subject
    }

    /// True if it is the later one of two of one account. Which of them ends later does not matter: the server may have
    /// been configured for shorter lives meanwhile.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.is_of_same_account(other) && self.issued > other.issued
    }
}

/// When a token ends, whoever it is of, if it is a JWT with an end: from then on no server accepts it.
pub(crate) fn expiry(token: &str) -> Option<u64> {
    payload(token)?["exp"].as_u64()
}

/// The claims of a JWT as they are.
fn payload(token: &str) -> Option<Value> {
    let payload = token.trim().split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// A token with these claims, and a signature that is none.
#[cfg(any(test, feature = "testing"))]
pub fn token(claims: &str) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_account_in_a_token() {
        let line_end = token(r#"{"sub":"system:serviceaccount:ns:the-one"}"#) + "\n";
        for (token, expected) in [
            (line_end.as_str(), Some("ns/the-one")),
            (&token(r#"{"sub":"system:node:n"}"#), None),
            (&token("{}"), None),
            (&token("no json"), None),
            ("opaque", None),
            ("a.%.b", None),
            ("", None),
        ] {
            let found = Claims::of(token).and_then(|claims| claims.account());
            let found = found.map(|name| format!("{}/{}", name.namespace(), name.name));
            assert_eq!(found.as_deref(), expected, "{token}");
        }
    }

    #[test]
    fn a_token_ends_when_its_server_wants_it_to() {
        for (claims, audiences, ends) in [
            (r#"{"sub":"s","aud":["a","b"],"exp":9}"#, &["a", "b"][..], Some(9)),
            (
                r#"{"sub":"s","aud":"a","exp":9,"kubernetes.io":{"warnafter":7}}"#,
                &["a"],
                Some(7),
            ),
            (r#"{"sub":"s","exp":"soon","aud":7}"#, &[], None),
        ] {
            let found = Claims::of(&token(claims)).unwrap();
            assert_eq!(found.audiences, audiences, "{claims}");
            assert_eq!(found.ends, ends, "{claims}");
        }
        for (token, expected) in [
            (
                &*token(r#"{"sub":"s","exp":9,"kubernetes.io":{"warnafter":7}}"#),
                Some(9),
            ),
            (&token(r#"{"exp":9}"#), Some(9)),
            (&token(r#"{"sub":"s"}"#), None),
            ("opaque", None),
        ] {
            assert_eq!(expiry(token), expected, "{token}");
        }
    }

    #[test]
    fn the_newer_one_was_issued_later_to_the_same_account() {
        let claims = |sub: &str, iss: &str, iat: u64, exp: u64| {
            let text = format!(r#"{{"sub":"{sub}","iss":"{iss}","iat":{iat},"exp":{exp}}}"#);
            Claims::of(&token(&text)).unwrap()
        };
        let old = claims("a", "i", 5, 100);
        for (other, expected) in [
            (claims("a", "i", 6, 50), true),
            (claims("a", "i", 5, 200), false),
            (claims("a", "i", 4, 200), false),
            (claims("b", "i", 6, 200), false),
            (claims("a", "j", 6, 200), false),
        ] {
            assert_eq!(other.is_newer_than(&old), expected, "{other:?}");
        }
    }
}
