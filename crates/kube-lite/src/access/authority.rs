//! A CA that a flag names, in the place of what the kubeconfig says.

use std::path::PathBuf;

use super::{Access, AccessError, certificates, read_file};

/// A file with the CA of a server, in the place of what the kubeconfig says of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityFile {
    /// The file, in PEM.
    pub path: PathBuf,
    /// The flag that names it.
    pub flag: &'static str,
}

impl Access {
    /// This is the CA of the server, and no other one.
    pub(crate) fn trust(&mut self, authority: &AuthorityFile) -> Result<(), AccessError> {
        let AuthorityFile { path, flag } = authority;
        let text = path.display().to_string();
        let read = read_file(flag, &text).and_then(|pem| Ok((certificates(flag, &pem)?, pem)));
        let (certificates, pem) = read.map_err(|fault| self.place.error(fault))?;
        (self.config.root_cert, self.config.root_cert_file) = (Some(certificates), None);
        self.files.push(path.clone());
        self.trust = format!("{text}, the file of {flag}");
        self.authority = Some(pem);
        Ok(())
    }
}
