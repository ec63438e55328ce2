//! Real faults between real servers: links that are slow, cut or half open, servers that stop, crash or change their
//! credentials. After each: the process lives, has said little, has deleted and re-created nothing that it should not, has
//! caught up, and ends with exit code 0 when asked to.

mod support;

#[path = "faults/credentials.rs"]
mod credentials;
#[path = "faults/links.rs"]
mod links;
#[path = "faults/servers.rs"]
mod servers;
#[path = "faults/slow.rs"]
mod slow;
#[path = "faults/story.rs"]
mod story;
