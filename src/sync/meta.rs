//! The metadata of an object as the syncer reads it.

use kube_lite::meta;

use super::managed_fields::Managers;

/// With what the field managers say of whose it is.
pub type Meta = meta::Meta<Managers>;
