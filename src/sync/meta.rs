//! An object and its metadata as the syncer reads them.

use kube_lite::meta;

use super::managed_fields::Managers;

/// With what the field managers say of whose it is.
pub type Meta = meta::Meta<Managers>;

/// The same.
pub type Object = kube_lite::Object<Managers>;
