//! Where a scenario runs: a simulated kcp, or a real one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::simulated::{ADMIN, Simulated};
use crate::support::kcp::{AGENTS, Kcp};
use crate::support::process::Folder;
use crate::support::{AuditEvent, Objects, kubeconfig};

/// See the module's doc.
pub(crate) enum Stage {
    Simulated(Simulated),
    Shared(&'static Kcp),
    Own(Kcp),
}

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Simulated,
    Real,
}

impl Stage {
    /// One that other scenarios may use too, if it is a real one.
    pub(crate) async fn of(which: Which) -> Self {
        match which {
            Which::Simulated => Self::Simulated(Simulated::start(1)),
            Which::Real => Self::Shared(Kcp::shared().await),
        }
    }

    /// One that no other scenario uses.
    pub(crate) async fn own(which: Which) -> Self {
        match which {
            Which::Simulated => Self::Simulated(Simulated::start(1)),
            Which::Real => Self::Own(Kcp::start().await),
        }
    }

    fn real(&self) -> Option<&Kcp> {
        match self {
            Self::Simulated(_) => None,
            Self::Shared(kcp) => Some(kcp),
            Self::Own(kcp) => Some(kcp),
        }
    }

    /// The simulated one, for what no test can ask a real one for.
    pub(crate) fn simulated(&self) -> &Simulated {
        match self {
            Self::Simulated(simulated) => simulated,
            Self::Shared(_) | Self::Own(_) => panic!("this is for the simulation alone"),
        }
    }

    /// The name, and so the token, of a user whom nobody else uses.
    pub(crate) fn new_user() -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(next < AGENTS, "there are more scenarios than users");
        format!("agent-{next}")
    }

    /// A kubeconfig for a user, or the administrator if there is none, whose server ends so.
    pub(crate) fn kubeconfig(
        &self,
        folder: &Folder,
        path: &str,
        user: Option<&str>,
        change: impl FnOnce(&mut Value),
    ) -> PathBuf {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let (url, ca, admin) = match self {
            Self::Simulated(simulated) => {
                let ca = kubeconfig::base64(&simulated.ca);
                (simulated.url.clone(), json!(ca), json!({"token": ADMIN}))
            }
            Self::Shared(_) | Self::Own(_) => self.real().expect("it is real").access(),
        };
        let user = user.map_or(admin, |user| json!({"token": user}));
        let mut config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("{url}{path}"), "certificate-authority-data": ca}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]});
        change(&mut config);
        let name = format!("{}.kubeconfig", NEXT.fetch_add(1, Ordering::Relaxed));
        folder.write(&name, config.to_string())
    }

    /// The objects of a workspace, as its administrator or another user sees them.
    pub(crate) async fn objects(&self, folder: &Folder, workspace: &str, user: Option<&str>) -> Objects {
        let path = if workspace.starts_with('/') {
            workspace.to_owned()
        } else {
            format!("/clusters/{workspace}")
        };
        let file = self.kubeconfig(folder, &path, user, |_| {});
        Objects::by_kubeconfig(&file, None).await
    }

    /// What a user has asked for, in order.
    pub(crate) fn requests(&self, user: &str) -> Vec<AuditEvent> {
        match self {
            Self::Simulated(simulated) => simulated.requests(user),
            Self::Shared(_) | Self::Own(_) => self.real().expect("it is real").requests(user),
        }
    }

    /// Ends it as a crash does; it is back after a while.
    pub(crate) async fn restart(&self, away: Duration) {
        match self {
            Self::Simulated(simulated) => simulated.restart(away),
            Self::Shared(_) => panic!("others use it"),
            Self::Own(kcp) => kcp.restart(away).await,
        }
    }
}
