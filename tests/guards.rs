//! The guards before deletes, between real API servers: what is held, what people read, and what lets it go.

mod support;

#[path = "guards/all_crds.rs"]
mod all_crds;
#[path = "guards/another_hub.rs"]
mod another_hub;
#[path = "guards/backup.rs"]
mod backup;
#[path = "guards/bench.rs"]
mod bench;
#[path = "guards/edge_backup.rs"]
mod edge_backup;
#[path = "guards/many.rs"]
mod many;
#[path = "guards/many_up.rs"]
mod many_up;
#[path = "guards/withdrawn.rs"]
mod withdrawn;
