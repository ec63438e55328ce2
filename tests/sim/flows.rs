//! The two flows of objects, and how their copies say that they are copies.

use edge_syncer::side::Side;
use serde_json::Value;

/// One flow of objects, and how its copies say that they are copies.
pub struct Flow {
    /// Where the objects are from.
    pub from: Side,
    /// Where the copies are.
    pub to: Side,
    /// The ownership annotation, and the label that selects copies.
    pub mark: &'static str,
    /// The annotation of a copy that was there before, where there are such copies.
    pub adopted: Option<&'static str>,
}

/// Hub to edge.
pub const DOWNSYNC: Flow = Flow {
    from: Side::Hub,
    to: Side::Edge,
    mark: "edge.kubestellar.io/downsynced",
    adopted: Some("edge.kubestellar.io/adopted"),
};

/// Edge to hub.
pub const UPSYNC: Flow = Flow {
    from: Side::Edge,
    to: Side::Hub,
    mark: "edge.kubestellar.io/upsynced",
    adopted: None,
};

/// The second mark of a copy: the UID of its origin, the type of the copy, and the sync target that has made it.
pub const OWNER: &str = "edge.kubestellar.io/owner";
/// The annotation that says which cluster a copy is from, and at which version.
pub const SOURCE: &str = "edge.kubestellar.io/source";

/// The UID of the sync target that the syncers of a run are.
pub const SYNC_TARGET: &str = "this-one";

/// Every flow there is.
pub const FLOWS: [Flow; 2] = [DOWNSYNC, UPSYNC];

impl Flow {
    /// True if `object` carries the exact ownership value of its own identity, and no second mark that names another sync
    /// target.
    pub fn owns(&self, object: &Value) -> bool {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let exact = format!(
            "{}/{}/{}",
            text(&object["kind"]),
            text(&meta["namespace"]),
            text(&meta["name"])
        );
        meta["annotations"][self.mark] == exact && !is_another_targets(object)
    }

    /// True if a copy was there before.
    pub fn is_adopted(&self, object: &Value) -> bool {
        self.adopted
            .is_some_and(|adopted| object["metadata"]["annotations"][adopted] == "true")
    }
}

/// True if the second mark of a copy names another sync target.
pub fn is_another_targets(copy: &Value) -> bool {
    let owner = copy["metadata"]["annotations"][OWNER].as_str();
    owner.is_some_and(|owner| owner.rsplit('/').next() != Some(SYNC_TARGET))
}

/// UID of the object that a copy was made of, as its second mark says.
pub fn origin_uid(copy: &Value) -> Option<&str> {
    let owner = copy["metadata"]["annotations"][OWNER].as_str()?;
    owner.split_once('/').map(|(uid, _)| uid)
}
