//! Begins of log lines that many tests wait for.

/// A side cannot be reached.
pub fn unreachable(side: &str) -> String {
    format!("reason=SideUnreachable msg=\"cannot reach a side, trying again until it answers\" side={side}")
}

/// A side can be reached again.
pub fn reachable(side: &str) -> String {
    format!("reason=SideReachable msg=\"a side answers again\" side={side}")
}

/// A selected type is missing at a side, or at `hub,edge`.
pub fn not_served(side: &str, resource: &str) -> String {
    format!(
        "reason=TypeNotServed msg=\"a selected type is not served; it is synced as soon as it appears\" side={side} \
         resource={resource}"
    )
}
