//! Whose a copy is, and what its marks say.
//!
//! A copy carries two marks. The first is that of the Go syncer, `<Kind>/<namespace>/<name>` of the copy itself: it
//! distinguishes a copy from what a controller has made from it, but does not say which syncer has made it, of which
//! API group it is, or from which object it was made. So there is a second one, the owner mark: UID of the origin, type
//! of the copy, UID of the sync target. A copy is ours if both fit. One that another syncer has made is foreign: it is
//! neither deleted nor overwritten.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};

use kube_lite::{ResourceType, is_word};

use crate::api::{
    ADOPTED, DOWNSYNC_OVERWRITE, DOWNSYNCED, DOWNSYNCED_LABEL_VALUE, DOWNSYNCED_SELECTOR, OWNER, RENAMED_FROM, SOURCE,
    UPSYNCED, UPSYNCED_SELECTOR,
};
use crate::plan::{Direction, kept};
use crate::sync::meta::Meta;

/// Key of the annotation and the label that mark the copies of a direction.
pub fn mark(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => DOWNSYNCED,
        Direction::Up => UPSYNCED,
    }
}

/// The label selector of the copies of a direction.
pub fn mark_selector(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => DOWNSYNCED_SELECTOR,
        Direction::Up => UPSYNCED_SELECTOR,
    }
}

/// The sync target of this syncer, as owner marks name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncTarget {
    /// Its UID (`--sync-target-uid`).
    pub uid: String,
    /// UIDs that it had before (`--former-sync-target-uid`): copies with these are its own, and get the present UID.
    pub former: Vec<String>,
}

impl SyncTarget {
    /// The owner mark of a copy of that type, made from the object with the UID `origin` (empty if it was made from
    /// none, like the namespaces that upsync creates): `<origin UID>/<plural.group>/<sync target UID>`.
    pub fn owner_mark(&self, origin: &str, copy: &ResourceType) -> String {
        format!("{origin}/{}/{}", copy.qualified(), self.uid)
    }

    fn is(&self, uid: &str) -> bool {
        self.uid == uid || self.former.iter().any(|former| former == uid)
    }
}

/// What an owner mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// UID of the origin; empty if the copy was made from none.
    pub origin: &'a str,
    /// Type of the copy, `plural.group`.
    pub resource: &'a str,
    /// UID of the sync target whose syncer has made the copy.
    pub sync_target: &'a str,
}

impl<'a> Owner<'a> {
    /// Reads the owner mark among annotations. `None` if there is none, or one that no syncer could have written.
    pub fn of(annotations: &'a BTreeMap<String, String>) -> Option<Self> {
        let mut parts = annotations.get(OWNER)?.splitn(3, '/');
        Some(Self {
            origin: parts.next()?,
            resource: parts.next()?,
            sync_target: parts.next()?,
        })
    }
}

/// What the mark of a copy says of where its origin was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// UID of the cluster.
    pub cluster: &'a str,
    /// A resource version at which the origin was there: the cluster has reached it.
    pub version: u64,
}

impl<'a> Source<'a> {
    /// Reads the mark among annotations. `None` if there is none (older copies), or one that no syncer could have
    /// written.
    pub fn of(annotations: &'a BTreeMap<String, String>) -> Option<Self> {
        let (cluster, version) = annotations.get(SOURCE)?.rsplit_once('/')?;
        let version = version.parse().ok()?;
        is_word(cluster).then_some(Self { cluster, version })
    }

    /// The mark.
    pub fn mark(&self) -> String {
        format!("{}/{}", self.cluster, self.version)
    }
}

/// A hash of the UID of an origin, or of its cluster: what is kept of it for each copy. 0 for none.
pub fn origin_hash(uid: &str) -> u32 {
    if uid.is_empty() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(uid.as_bytes());
    // Half of it is enough: it only distinguishes an object from the next one of its name.
    ((hasher.finish() >> 32) as u32).max(1)
}

/// A copy, or an object in a copy's place, as far as decisions need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Copy {
    /// Whether it exists, and whose it is.
    pub state: CopyState,
    /// Its own `downsync-overwrite` says that its content is not updated.
    pub create_only: bool,
    /// It was there before it was selected.
    pub adopted: bool,
    /// It is being deleted.
    pub terminating: bool,
    /// Others have fields that we have applied too, so that these would stay when the origin drops them.
    pub shared: bool,
    /// Others have set something in it beside what we apply.
    pub others_have_more: bool,
    /// We have written more of it otherwise than by an apply than what we only ever patch.
    pub made: bool,
    /// Its side keeps it for itself ([`crate::plan::kept`]): it is neither written nor deleted.
    pub kept: bool,
    /// [`origin_hash`] of the object that it was made from; 0 if its marks do not say.
    pub origin: u32,
    /// [`origin_hash`] of the cluster that this was in; 0 if its marks do not say.
    pub cluster: u32,
    /// [`Source::version`] of that; 0 if its marks do not say.
    pub made_at: u64,
}

/// Whether an object exists in a copy's place, and whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyState {
    /// There is none.
    #[default]
    Absent,
    /// Both its marks are ours. Without an owner mark (the Go syncer's copies, and ours from before there was one): it
    /// carries the exact ownership value, and either syncer has written it, as far as its managed fields tell.
    Ours,
    /// It exists and no syncer has made it: no ownership annotation, one that names another object, or marks that were
    /// copied from an object of another type.
    Foreign,
    /// The syncer of another sync target has made it.
    Anothers,
}

impl Copy {
    /// Reads the marks of an existing object of type `resource`, as a copy of that direction.
    pub fn of(direction: Direction, resource: &ResourceType, meta: &Meta, we: &SyncTarget) -> Self {
        let owner = Owner::of(&meta.annotations);
        let state = match owner {
            _ if !has_mark(direction, &resource.kind, meta) => CopyState::Foreign,
            None if meta.managers.by_syncer => CopyState::Ours,
            None => CopyState::Foreign,
            Some(owner) if owner.resource != resource.qualified() => CopyState::Foreign,
            Some(owner) if we.is(owner.sync_target) => CopyState::Ours,
            Some(_) => CopyState::Anothers,
        };
        let ours = state == CopyState::Ours;
        let source = Source::of(&meta.annotations).filter(|_| ours);
        Self {
            state,
            // At the hub, these annotations come from the edge's object or from people: upsync adopts nothing and has
            // no create-only copies.
            create_only: direction == Direction::Down && is_create_only(&meta.annotations),
            adopted: direction == Direction::Down && meta.annotations.get(ADOPTED).is_some_and(|value| value == "true"),
            terminating: meta.deletion_timestamp.is_some(),
            shared: meta.managers.shared,
            others_have_more: meta.managers.others_have_more,
            made: meta.managers.made,
            kept: false,
            origin: owner.filter(|_| ours).map_or(0, |owner| origin_hash(owner.origin)),
            cluster: source.map_or(0, |source| origin_hash(source.cluster)),
            made_at: source.map_or(0, |source| source.version),
        }
    }
}

impl Copy {
    /// True for what its side keeps for itself and carries our marks, which an earlier version has put there: they are
    /// removed.
    pub fn is_to_be_released(self) -> bool {
        self.kept && self.state == CopyState::Ours && !self.terminating
    }
}

/// What the metadata of an object say of whose it is.
pub(crate) trait Marked {
    /// What the table of what is never synced asks of it. Its content is not known.
    fn as_kept(&self) -> kept::Object<'_>;

    /// Its marks as a copy of that direction and type.
    fn copy(&self, direction: Direction, resource: &ResourceType, we: &SyncTarget) -> Copy;

    /// True if it is a copy that this syncer has made in that direction.
    fn is_ours(&self, direction: Direction, resource: &ResourceType, we: &SyncTarget) -> bool {
        self.copy(direction, resource, we).state == CopyState::Ours
    }

    /// True if any syncer has made it in that direction.
    fn is_copy_of(&self, direction: Direction, kind: &str) -> bool;

    /// The sync target whose copy it says it is, where its owner mark says so.
    fn sync_target(&self) -> Option<&str>;

    /// True if it carries the label that selects the copies of that direction.
    fn is_labelled(&self, direction: Direction) -> bool;

    /// The kind with its group, and the name, of the object that a conversion made this copy from.
    fn renamed_from(&self) -> Option<(&str, &str)>;
}

impl Marked for Meta {
    fn as_kept(&self) -> kept::Object<'_> {
        kept::Object {
            namespace: &self.namespace,
            name: &self.name,
            labels: &self.labels,
            annotations: &self.annotations,
            secret_type: "",
        }
    }

    fn copy(&self, direction: Direction, resource: &ResourceType, we: &SyncTarget) -> Copy {
        Copy::of(direction, resource, self, we)
    }

    fn is_copy_of(&self, direction: Direction, kind: &str) -> bool {
        has_mark(direction, kind, self)
    }

    fn sync_target(&self) -> Option<&str> {
        Owner::of(&self.annotations).map(|owner| owner.sync_target)
    }

    fn is_labelled(&self, direction: Direction) -> bool {
        self.labels
            .get(mark(direction))
            .is_some_and(|value| value == DOWNSYNCED_LABEL_VALUE)
    }

    fn renamed_from(&self) -> Option<(&str, &str)> {
        self.annotations.get(RENAMED_FROM)?.split_once('/')
    }
}

/// True if an object carries the exact ownership value of its own identity: some syncer has made it in that direction,
/// or a controller has copied the metadata of an object of the same name and kind in another API group.
pub fn has_mark(direction: Direction, kind: &str, meta: &Meta) -> bool {
    let value = meta.annotations.get(mark(direction));
    value.is_some_and(|value| *value == meta.object_name().of_kind(kind).to_string())
}

/// True if `downsync-overwrite` has any other value than empty, absent or `true`.
pub fn is_create_only(annotations: &BTreeMap<String, String>) -> bool {
    annotations
        .get(DOWNSYNC_OVERWRITE)
        .is_some_and(|value| !value.is_empty() && value != "true")
}

/// Namespaces that are never deleted, whatever marks they carry.
pub fn is_protected_namespace(name: &str, own: Option<&str>) -> bool {
    name == "default" || name.starts_with("kube-") || own == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_map(annotations: &[(&str, &str)], manager: &str) -> Meta {
        let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
        let object = serde_json::json!({"metadata": {"namespace": "shop", "name": "a", "annotations": annotations,
            "managedFields": [{"manager": manager, "operation": "Update"}]}});
        Meta::parse(object.to_string().as_bytes()).unwrap()
    }

    fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    fn state(direction: Direction, meta: &Meta) -> CopyState {
        let we = SyncTarget {
            uid: "site-7".into(),
            former: vec!["site-6".into()],
        };
        Copy::of(direction, &ResourceType::config_maps(), meta, &we).state
    }

    #[test]
    fn only_the_exact_value_of_the_object_itself_is_ownership() {
        for (value, expected) in [
            (Some("ConfigMap/shop/a"), CopyState::Ours),
            // Copied by a controller to what it makes of the object.
            (Some("Deployment/shop/a"), CopyState::Foreign),
            (Some("true"), CopyState::Foreign),
            (Some(""), CopyState::Foreign),
            (Some("ConfigMap/shop/a "), CopyState::Foreign),
            (None, CopyState::Foreign),
        ] {
            let marks: Vec<_> = value.map(|value| (DOWNSYNCED, value)).into_iter().collect();
            let meta = config_map(&marks, "edge-syncer");
            assert_eq!(state(Direction::Down, &meta), expected, "{value:?}");
        }
    }

    #[test]
    fn an_owner_mark_says_whose_a_copy_is_and_of_which_type() {
        for (owner, manager, expected) in [
            (Some("u1/configmaps/site-7"), "anybody", CopyState::Ours),
            (Some("/configmaps/site-7"), "anybody", CopyState::Ours),
            (Some("u1/configmaps/site-6"), "anybody", CopyState::Ours),
            (Some("u1/configmaps/site-8"), "edge-syncer", CopyState::Anothers),
            (Some("u1/configmaps/a/b"), "edge-syncer", CopyState::Anothers),
            (
                Some("u1/configmaps.example.org/site-7"),
                "edge-syncer",
                CopyState::Foreign,
            ),
            (
                Some("u1/configmaps.example.org/site-8"),
                "edge-syncer",
                CopyState::Foreign,
            ),
            // No syncer writes such a mark, so it does not count.
            (Some("u1"), "edge-syncer", CopyState::Ours),
            (None, "edge-syncer", CopyState::Ours),
            (None, "syncer", CopyState::Ours),
            (None, "kubectl", CopyState::Foreign),
        ] {
            for (direction, mark) in [(Direction::Down, DOWNSYNCED), (Direction::Up, UPSYNCED)] {
                let mut marks = vec![(mark, "ConfigMap/shop/a")];
                marks.extend(owner.map(|owner| (OWNER, owner)));
                let meta = config_map(&marks, manager);
                assert_eq!(state(direction, &meta), expected, "{owner:?} {manager}");
            }
        }
    }

    // The Go syncer's updates empty the list of managed fields.
    #[test]
    fn a_copy_without_an_owner_mark_and_without_managed_fields_is_the_go_syncers() {
        for fields in ["", r#","managedFields":[]"#, r#","managedFields":null"#] {
            let object = format!(
                r#"{{"metadata":{{"namespace":"shop","name":"a","annotations":{{"{DOWNSYNCED}":"ConfigMap/shop/a"}}{fields}}}}}"#
            );
            let meta = Meta::parse(object.as_bytes()).unwrap();
            assert_eq!(state(Direction::Down, &meta), CopyState::Ours, "{fields}");
        }
    }

    #[test]
    fn reads_the_owner_mark_that_it_writes() {
        let we = SyncTarget {
            uid: "a/b c".into(),
            former: Vec::new(),
        };
        let mark = we.owner_mark("u1", &ResourceType::definitions());
        let marks = annotations(&[(OWNER, &mark)]);
        let owner = Owner::of(&marks).unwrap();
        assert_eq!((owner.origin, owner.sync_target), ("u1", "a/b c"));
        assert_eq!(owner.resource, "customresourcedefinitions.apiextensions.k8s.io");
    }

    #[test]
    fn what_an_upsynced_object_says_about_downsync_is_nothing() {
        let marks = [
            (UPSYNCED, "ConfigMap/shop/a"),
            (DOWNSYNC_OVERWRITE, "false"),
            (ADOPTED, "true"),
        ];
        let meta = config_map(&marks, "edge-syncer");
        let copy = Copy::of(
            Direction::Up,
            &ResourceType::config_maps(),
            &meta,
            &SyncTarget::default(),
        );
        assert_eq!(copy.state, CopyState::Ours);
        assert!(!copy.create_only && !copy.adopted);
    }

    #[test]
    fn overwrite_is_on_unless_it_says_otherwise() {
        for (value, expected) in [
            ("", false),
            ("true", false),
            ("false", true),
            ("False", true),
            ("no", true),
        ] {
            assert_eq!(
                is_create_only(&annotations(&[(DOWNSYNC_OVERWRITE, value)])),
                expected,
                "{value:?}"
            );
        }
        assert!(!is_create_only(&annotations(&[])));
    }

    #[test]
    fn system_namespaces_are_protected() {
        for (name, expected) in [
            ("default", true),
            ("kube-system", true),
            ("kube-public", true),
            ("syncer", true),
            ("shop", false),
        ] {
            assert_eq!(is_protected_namespace(name, Some("syncer")), expected, "{name}");
        }
    }
}
