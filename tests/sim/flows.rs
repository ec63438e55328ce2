//! The two flows of objects, and how their copies say that they are copies.

use edge_syncer::cluster::Side;
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

/// Every flow there is.
pub const FLOWS: [Flow; 2] = [DOWNSYNC, UPSYNC];

impl Flow {
    /// True if `object` carries the exact ownership value of its own identity.
    pub fn owns(&self, object: &Value) -> bool {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let exact = format!(
            "{}/{}/{}",
            text(&object["kind"]),
            text(&meta["namespace"]),
            text(&meta["name"])
        );
        meta["annotations"][self.mark] == exact
    }

    /// True if a copy was there before.
    pub fn is_adopted(&self, object: &Value) -> bool {
        self.adopted
            .is_some_and(|adopted| object["metadata"]["annotations"][adopted] == "true")
    }
}
