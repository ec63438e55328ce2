//! Which permissions a syncer gets: all, or those that the configs need.
//!
//! Promises: what was chosen stays with the registration until something else is chosen; unless somebody chooses it, a
//! syncer may do everything only where all belongs to its edge; that, and each change, is said.

use serde_json::Value;

use super::JoinError;
use super::hub::{self, Identity, Rbac};
use super::register::{Found, Work};
use crate::api;
use crate::sync::definition::{Hub, ask_hub};

/// What the choice follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// What the command line says.
    pub(super) given: Option<Rbac>,
    /// What the registration says.
    pub(super) kept: Option<Rbac>,
    /// The hub is a workspace of kcp in which no other edge is registered.
    pub(super) is_mailbox: bool,
}

impl Choice {
    /// What is chosen.
    pub(super) fn rbac(self) -> Rbac {
        let otherwise = if self.is_mailbox { Rbac::Wide } else { Rbac::Scoped };
        self.given.or(self.kept).unwrap_or(otherwise)
    }

    /// What people have to know about it, a line each.
    pub(super) fn notes(self) -> Vec<String> {
        let rbac = self.rbac();
        let mut notes = Vec::new();
        if let Some(before) = self.kept.filter(|before| *before != rbac) {
            notes.push(format!(
                "note: the permissions were {}, and are {} now: apply the result at the edge too",
                before.word(),
                rbac.word()
            ));
        }
        match (rbac, self.given, self.kept) {
            (Rbac::Wide, given, kept) => {
                let why = match (given, kept) {
                    (Some(_), _) => "",
                    (None, Some(_)) => ", as it is registered",
                    (None, None) => ", since this workspace of kcp has one edge",
                };
                notes.push(format!(
                    "note: --rbac=wide{why}: whoever has the token may read, change and delete everything at the hub, and the \
                     syncer may do the same at the edge; --rbac=scoped gives what the configs need"
                ));
            }
            (Rbac::Scoped, None, None) => notes.push(
                "note: --rbac=scoped: the syncer may do what the configs at the hub need now, and no more; after a type was \
                 added to them, run the same command again, and apply what it writes"
                    .to_owned(),
            ),
            (Rbac::Scoped, _, _) => {}
        }
        notes
    }
}

/// Which permissions the registration is to give, which is said.
pub(super) async fn choose(
    work: &Work<'_>,
    found: &Found,
    identity: &Identity,
    given: Option<Rbac>,
) -> Result<Rbac, JoinError> {
    let kept = kept(work, found, identity).await?;
    let is_open = given.is_none() && kept.is_none();
    let choice = Choice {
        given,
        kept,
        is_mailbox: is_open && found.others.is_empty() && is_kcp(work).await?,
    };
    for note in choice.notes() {
        (work.say)(&note);
    }
    Ok(choice.rbac())
}

/// What the registration says; for one from before that was kept, what its role grants.
async fn kept(work: &Work<'_>, found: &Found, identity: &Identity) -> Result<Option<Rbac>, JoinError> {
    let Some(account) = found.accounts.first() else {
        return Ok(None);
    };
    let said = account["metadata"]["annotations"][api::RBAC].as_str();
    if let Some(rbac) = said.and_then(Rbac::of_word) {
        return Ok(Some(rbac));
    }
    let path = format!("{}/{}", hub::of_rbac(None, "clusterroles"), identity.id());
    let role = work.client.find(&path).await;
    let role = role.map_err(|error| work.failed(&format!("cannot read {path}"), &error))?;
    Ok(role.map(|role| of_rules(&role["rules"])))
}

/// What a role grants that has these rules.
fn of_rules(rules: &Value) -> Rbac {
    let is_all = |values: &Value| {
        values
            .as_array()
            .is_some_and(|all| all.iter().any(|value| value == "*"))
    };
    let grants_all = |rule: &Value| {
        ["apiGroups", "resources", "verbs"]
            .iter()
            .all(|field| is_all(&rule[*field]))
    };
    match rules.as_array() {
        Some(rules) if rules.iter().any(grants_all) => Rbac::Wide,
        _ => Rbac::Scoped,
    }
}

async fn is_kcp(work: &Work<'_>) -> Result<bool, JoinError> {
    let failed = "cannot see whether the hub is a workspace of kcp";
    let hub = work.client.cluster().map_err(|error| work.error(failed, &error))?;
    let found = ask_hub(&hub).await.map_err(|error| work.failed(failed, &error))?;
    Ok(matches!(found, Some(Hub::Kcp(_))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOTH: [Rbac; 2] = [Rbac::Wide, Rbac::Scoped];

    fn choice(given: Option<Rbac>, kept: Option<Rbac>, is_mailbox: bool) -> Choice {
        Choice {
            given,
            kept,
            is_mailbox,
        }
    }

    #[test]
    fn nobody_gets_everything_unasked_but_the_only_edge_of_a_workspace() {
        assert_eq!(choice(None, None, false).rbac(), Rbac::Scoped);
        assert_eq!(choice(None, None, true).rbac(), Rbac::Wide);
    }

    #[test]
    fn a_choice_stays_until_another_one_is_given() {
        for is_mailbox in [false, true] {
            for kept in BOTH {
                assert_eq!(choice(None, Some(kept), is_mailbox).rbac(), kept);
                for given in BOTH {
                    assert_eq!(choice(Some(given), Some(kept), is_mailbox).rbac(), given);
                }
            }
        }
    }

    #[test]
    fn what_everything_means_and_each_change_is_said() {
        let (wide, scoped) = (Some(Rbac::Wide), Some(Rbac::Scoped));
        for (given, kept, is_mailbox, expected) in [
            (
                None,
                None,
                false,
                &["--rbac=scoped: the syncer may do what the configs"][..],
            ),
            (
                None,
                None,
                true,
                &["--rbac=wide, since this workspace of kcp has one edge:"],
            ),
            (
                wide,
                None,
                false,
                &["--rbac=wide: whoever has the token may read, change and delete everything"],
            ),
            (scoped, None, true, &[]),
            (None, wide, false, &["--rbac=wide, as it is registered:"]),
            (None, scoped, true, &[]),
            (
                wide,
                scoped,
                false,
                &["were scoped, and are wide now", "--rbac=wide: whoever"],
            ),
            (scoped, wide, true, &["were wide, and are scoped now"]),
            (wide, wide, true, &["--rbac=wide: whoever"]),
        ] {
            let notes = choice(given, kept, is_mailbox).notes();
            assert_eq!(notes.len(), expected.len(), "{notes:?}");
            for (note, words) in notes.iter().zip(expected) {
                assert!(note.starts_with("note: ") && note.contains(words), "{note}");
            }
        }
    }

    #[test]
    fn a_registration_from_before_tells_it_by_its_role() {
        let rule = |groups: &str, resources: &str, verbs: &str| json!({"apiGroups": [groups], "resources": [resources], "verbs": [verbs]});
        for (rules, expected) in [
            (
                json!([rule("*", "*", "*"), {"nonResourceURLs": ["/"], "verbs": ["access"]}]),
                Rbac::Wide,
            ),
            (json!([rule("", "configmaps", "get"), rule("*", "*", "*")]), Rbac::Wide),
            (json!([rule("*", "*", "list")]), Rbac::Scoped),
            (json!([rule("", "*", "*"), rule("*", "configmaps", "*")]), Rbac::Scoped),
            (json!([]), Rbac::Scoped),
            (json!(null), Rbac::Scoped),
        ] {
            assert_eq!(of_rules(&rules), expected, "{rules}");
        }
        for rbac in BOTH {
            assert_eq!(Rbac::of_word(rbac.word()), Some(rbac));
        }
        assert_eq!(Rbac::of_word("Wide"), None);
    }
}
