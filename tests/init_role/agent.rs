//! The real binary, as `edge-syncer init`.

use std::path::Path;

pub(crate) use crate::of_role::Agent;
use crate::support::Syncer;

impl Agent {
    /// Starts it for a config workspace. It opens no port unless a flag says so.
    pub(crate) fn start(kubeconfig: &Path, config_workspace: &str, flags: &[&str]) -> Self {
        let kubeconfig = kubeconfig.display().to_string();
        let mut args = vec!["--kubeconfig", &kubeconfig, "--config-workspace", config_workspace];
        if !flags.iter().any(|flag| flag.starts_with("--metrics-address")) {
            args.push("--metrics-address=0");
        }
        args.extend(flags);
        Self::start_raw(&args)
    }

    /// Starts it with exactly these flags.
    pub(crate) fn start_raw(args: &[&str]) -> Self {
        Self::of_role("init", args)
    }

    /// Starts it by the name of the Go agent, with exactly these flags.
    pub(crate) fn start_by_name(folder: &Path, args: &[&str]) -> Self {
        let link = folder.join("init-agent");
        std::os::unix::fs::symlink(Syncer::program_with("init"), &link).expect("a link can be made");
        Self(Syncer::start_program(&link, args, &[]))
    }
}
