use super::*;
use crate::sync::ownership::origin_hash;

const CONFIG: &str = "SyncerConfig//the-one";

/// In place, as both sides show it.
fn facts() -> Facts {
    Facts {
        direction: Direction::Down,
        object: "ConfigMap/shop/a".to_owned(),
        copy_name: "ConfigMap/shop/a".to_owned(),
        selection: Selection::Full,
        configs: vec![CONFIG.to_owned()],
        refused: None,
        origin: Said::There(Origin {
            version: "7".to_owned(),
            uid: "u1".to_owned(),
            ..Origin::default()
        }),
        copy: Said::There(There {
            version: "9".to_owned(),
            copy: Copy {
                state: CopyState::Ours,
                origin: origin_hash("u1"),
                ..Copy::default()
            },
            ..There::default()
        }),
        edges: vec![(Verdict::Synced, "edge site: it does not fail".to_owned())],
    }
}

fn with(change: fn(&mut Facts)) -> Facts {
    let mut facts = facts();
    change(&mut facts);
    facts
}

fn there(of: &mut Facts) -> &mut There {
    match &mut of.copy {
        Said::There(there) => there,
        other => panic!("{other:?}"),
    }
}

fn origin(of: &mut Facts) -> &mut Origin {
    match &mut of.origin {
        Said::There(origin) => origin,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_both_sides_show_counts_and_edges_are_asked_about_the_rest() {
    use Verdict::{NotSynced, Synced, Unknown};
    for (facts, verdict, words) in [
        (facts(), Synced, "edge: ConfigMap/shop/a, version 9: in place"),
        // An edge that is silent has not changed what is there.
        (
            with(|of| of.edges = vec![(Unknown, "edge site: not heard of".to_owned())]),
            Synced,
            "edge site: not heard of",
        ),
        (
            with(|of| of.edges = vec![(NotSynced, "edge site: fails".to_owned())]),
            NotSynced,
            "edge site: fails",
        ),
        (
            with(|of| of.copy = Said::Absent),
            NotSynced,
            "edge: there is no ConfigMap/shop/a",
        ),
        (
            with(|of| {
                of.copy = Said::Absent;
                origin(of).has_finished = true;
            }),
            Synced,
            "the Job has finished",
        ),
        (
            with(|of| of.origin = Said::Absent),
            NotSynced,
            "left over: its origin is gone",
        ),
        (
            with(|of| origin(of).uid = "u2".to_owned()),
            NotSynced,
            "that of an earlier object",
        ),
        (with(|of| origin(of).is_kept = true), NotSynced, "is never synced"),
        (
            with(|of| there(of).differing.push("data.k".to_owned())),
            NotSynced,
            "differs from its origin: data.k",
        ),
        (
            with(|of| {
                there(of).differing.push("data.k".to_owned());
                origin(of).is_create_only = true;
            }),
            Synced,
            "left to the edge",
        ),
        (
            with(|of| {
                there(of).copy.terminating = true;
                there(of).finalizers.push("example.org/wait".to_owned());
            }),
            NotSynced,
            "its delete waits for the finalizers example.org/wait",
        ),
        (with(|of| there(of).copy.adopted = true), Synced, "was adopted"),
        (
            with(|of| of.refused = Some("--deny configmaps".to_owned())),
            NotSynced,
            "does not allow it: --deny configmaps",
        ),
        (
            with(|of| {
                of.selection = Selection::None;
                of.configs.clear();
            }),
            NotSynced,
            "no config selects it",
        ),
        // By the hub alone.
        (with(|of| of.copy = Said::Nothing), Synced, "give --to-kubeconfig"),
        (
            with(|of| {
                of.copy = Said::Nothing;
                of.edges = vec![(Unknown, "edge site: not heard of".to_owned())];
            }),
            Unknown,
            "not heard of",
        ),
        (
            with(|of| {
                of.copy = Said::Nothing;
                of.edges.clear();
            }),
            Unknown,
            "give --to-kubeconfig",
        ),
    ] {
        let found = facts.explain();
        let has_words = found.findings.iter().any(|finding| finding.contains(words));
        assert!(found.verdict == verdict && has_words, "{verdict:?} {words}: {found:#?}");
    }
}
