//! Where that is written with which we log in, for messages about credentials that a server refuses or that end.

use kube::config::AuthInfo;

use super::Renewed;

/// Field and file of the credentials that count; empty without any. `file` is the kubeconfig. A token that was renewed is in
/// another file, if `is_renewed_in_file`.
pub(super) fn login(user: &AuthInfo, file: &str, renewed: &Renewed, is_renewed_in_file: bool) -> String {
    let file = match &renewed.secret {
        Some(secret) => format!("{file}, which is from {secret}"),
        None => file.to_owned(),
    };
    let of_token = renewed.file.as_ref().filter(|_| is_renewed_in_file);
    if user.token.is_some() {
        match of_token {
            Some(kept) => format!("the token of {file}, which was renewed in {}", kept.display()),
            None => format!("the token of {file}"),
        }
    } else if let Some(path) = &user.token_file {
        format!("{path}, the tokenFile of {file}")
    } else if user.client_certificate_data.is_some() {
        format!("client-certificate-data of {file}")
    } else if let Some(path) = &user.client_certificate {
        format!("{path}, the client-certificate of {file}")
    } else if user.password.is_some() {
        format!("username and password of {file}")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_field_and_file_and_the_secret_that_the_file_is_from() {
        let text = |text: &str| Some(text.to_owned());
        let token = AuthInfo {
            token: Some("t".to_owned().into()),
            ..AuthInfo::default()
        };
        let file = AuthInfo {
            token_file: text("/run/token"),
            ..AuthInfo::default()
        };
        let certificate = AuthInfo {
            client_certificate: text("/run/crt"),
            ..AuthInfo::default()
        };
        let inline = AuthInfo {
            client_certificate_data: text("eA=="),
            ..AuthInfo::default()
        };
        let renewed = Renewed {
            file: Some("/kept".into()),
            secret: text("Secret/s/hub"),
            ..Renewed::default()
        };
        for (user, of_secret, is_renewed, expected) in [
            (&token, false, false, "the token of /k"),
            (&token, true, false, "the token of /k, which is from Secret/s/hub"),
            (&file, false, false, "/run/token, the tokenFile of /k"),
            (&certificate, false, false, "/run/crt, the client-certificate of /k"),
            (&inline, false, false, "client-certificate-data of /k"),
            (&AuthInfo::default(), true, false, ""),
        ] {
            let renewed = if of_secret { &renewed } else { &Renewed::default() };
            assert_eq!(login(user, "/k", renewed, is_renewed), expected);
        }
        let renewed = Renewed {
            secret: None,
            ..renewed
        };
        let expected = "the token of /k, which was renewed in /kept";
        assert_eq!(login(&token, "/k", &renewed, true), expected);
    }
}
