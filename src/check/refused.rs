//! What to say about credentials that a side refuses. A server answers the same to those that have ended and to forged
//! ones; what a kubeconfig holds says which they are. Without I/O.

use kube_lite::ObjectName;
use kube_lite::access::Form;
use kube_lite::claims::Claims;

use crate::renewal::{Keep, rotate_command};
use crate::side::Side;

/// How the accounts that `gen` makes at a hub begin.
pub(super) const OF_GEN: &str = "kubestellar-syncer-";

/// Credentials that have ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended<'a> {
    pub(super) side: Side,
    pub(super) form: Form,
    /// The token, if there is one.
    pub(super) token: Option<&'a str>,
    /// The name of the sync target, which may be empty.
    pub(super) name: &'a str,
    /// Where renewed tokens of the hub are kept.
    pub(super) keep: Option<&'a Keep>,
}

impl Ended<'_> {
    /// What they are, for messages.
    pub(super) fn what(&self) -> &'static str {
        match self.form {
            Form::Token => "the token",
            Form::Certificate => "the client certificate",
        }
    }

    /// The command that makes others, as far as it is known.
    pub(super) fn advice(&self) -> String {
        if self.form == Form::Certificate {
            return "renew it where it was made, such as with kubeadm certs renew, and put it into the user entry"
                .to_owned();
        }
        let account = self.token.and_then(|token| Claims::of(token)?.account());
        match account {
            Some(account) if self.side != Side::Edge && account.name.starts_with(OF_GEN) => self.advice_of_gen(),
            Some(account) => Self::advice_of_account(self.side, &account),
            None => "get a new one from whoever issued it, and put it into the user entry".to_owned(),
        }
    }

    fn advice_of_gen(&self) -> String {
        let command = rotate_command(self.name, self.keep);
        match self.keep {
            Some(Keep::File(_)) => format!(
                "{command}, with a kubeconfig of the hub, makes another hub.kubeconfig: put it in the place of this one"
            ),
            _ => {
                format!("{command}, with a kubeconfig of the hub, makes another one: apply what it prints at the edge")
            }
        }
    }

    fn advice_of_account(side: Side, account: &ObjectName) -> String {
        let (namespace, name) = (account.namespace(), &account.name);
        format!(
            "kubectl --namespace={namespace} create token {name}, with a kubeconfig of the {side}, prints another one: put it \
             into the user entry"
        )
    }
}

#[cfg(test)]
mod tests {
    use kube_lite::claims::token;

    use super::*;

    #[test]
    fn the_command_is_the_one_that_makes_such_credentials() {
        let of_gen = token(r#"{"sub":"system:serviceaccount:default:kubestellar-syncer-site-7-abc"}"#);
        let of_rbac = token(r#"{"sub":"system:serviceaccount:edge-syncer:site-7"}"#);
        let of_person = token(r#"{"sub":"somebody"}"#);
        let in_file = Keep::File("hub.kubeconfig".into());
        for (side, form, token, name, keep, expected) in [
            (
                Side::Hub,
                Form::Token,
                &of_gen,
                "site-7",
                None,
                "edge-syncer gen site-7 --rotate, with",
            ),
            (
                Side::Hub,
                Form::Token,
                &of_gen,
                "",
                Some(&in_file),
                "edge-syncer gen NAME --rotate --format=systemd -o FOLDER",
            ),
            (
                Side::Hub,
                Form::Token,
                &of_rbac,
                "",
                None,
                "kubectl --namespace=edge-syncer create token site-7, with a kubeconfig of the hub",
            ),
            (
                Side::Edge,
                Form::Token,
                &of_gen,
                "",
                None,
                "kubectl --namespace=default create token kubestellar-syncer-site-7-abc, with a kubeconfig of the edge",
            ),
            (Side::Edge, Form::Token, &of_person, "", None, "get a new one from"),
            (Side::Hub, Form::Certificate, &of_gen, "", None, "kubeadm certs renew"),
        ] {
            let ended = Ended {
                side,
                form,
                token: Some(token),
                name,
                keep,
            };
            let advice = ended.advice();
            assert!(advice.contains(expected), "{ended:?}: {advice}");
        }
    }
}
