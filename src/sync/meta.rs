//! The metadata of an object as the syncer reads it.

use super::managed_fields::Managers;
use kube_lite::meta;

/// With what the field managers say of whose it is.
pub type Meta = meta::Meta<Managers>;
