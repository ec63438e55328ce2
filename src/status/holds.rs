//! The command that confirms deletes which are held.

use kube_lite::access::AccessSource;

use crate::api::CONFIRM_DELETES;
use crate::model::effect::ConfigKind;

/// kubectl, as it reaches the hub.
#[derive(Debug, Default)]
pub(super) struct Kubectl {
    flags: String,
}

impl Kubectl {
    /// With the kubeconfig and context of the hub.
    pub(super) fn of(hub: &AccessSource) -> Self {
        let mut flags = String::new();
        if let AccessSource::Kubeconfig { path, context, .. } = hub {
            flags.extend([" --kubeconfig=", &quoted(&path.display().to_string())]);
            if let Some(context) = context {
                flags.extend([" --context=", &quoted(context)]);
            }
        }
        Self { flags }
    }

    /// The command that confirms all that this message says is held; `None` if it names no token.
    pub(super) fn confirm(&self, kind: ConfigKind, name: &str, message: &str) -> Option<String> {
        let tokens = tokens(message).join(",");
        let (kind, name) = (kind.qualified(), quoted(name));
        (!tokens.is_empty()).then(|| {
            format!(
                "kubectl{} annotate {kind} {name} --overwrite {CONFIRM_DELETES}={tokens}",
                self.flags
            )
        })
    }
}

/// The tokens that a message names.
fn tokens(message: &str) -> Vec<&str> {
    let named = message.split(CONFIRM_DELETES).skip(1);
    let tokens = named.filter_map(|rest| {
        let rest = rest.strip_prefix('=')?;
        let end = rest
            .find(|one: char| !one.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        Some(&rest[..end])
    });
    tokens.filter(|token| !token.is_empty()).collect()
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "/._-:@%+=,".contains(one);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_held_is_confirmed_by_one_command() {
        let hub = AccessSource::Kubeconfig {
            path: "my hub/it's.yaml".into(),
            context: Some("site".into()),
            flags: kube_lite::access::Flags::default(),
        };
        let begin = r"kubectl --kubeconfig='my hub/it'\''s.yaml' --context=site annotate syncerconfigs.edge.kubestellar.io the-one --overwrite edge.kubestellar.io/confirm-deletes=";
        let in_cluster = AccessSource::InCluster { flag: "" };
        let bare =
            "kubectl annotate edgesyncconfigs.edge.kubestellar.io a --overwrite edge.kubestellar.io/confirm-deletes=";
        let of = |token: &str| {
            format!(
                "downsync: 3 of 4 copies are to be deleted; 3 objects held; confirm with the annotation {CONFIRM_DELETES}={token}"
            )
        };
        for (message, expected) in [
            (of("a1b2"), Some("a1b2")),
            (format!("{}; {}", of("a1"), of("b2")), Some("a1,b2")),
            (format!("{}...", of("a1")), Some("a1")),
            (of(""), None),
            (of("$(reboot)"), None),
            ("held".to_owned(), None),
        ] {
            let found = Kubectl::of(&hub).confirm(ConfigKind::SyncerConfig, "the-one", &message);
            assert_eq!(found, expected.map(|tokens| format!("{begin}{tokens}")), "{message}");
            let found = Kubectl::of(&in_cluster).confirm(ConfigKind::EdgeSyncConfig, "a", &message);
            assert_eq!(found, expected.map(|tokens| format!("{bare}{tokens}")), "{message}");
        }
    }
}
