//! The targets that are served.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kube_lite::meta::Meta;
use kube_lite::{Error, ObjectName};

use super::references::TypeName;
use crate::kcp::{CLUSTER, parsed};
use crate::kinds::InitTarget;

/// All of them, in the order in which they are served: by workspace and name.
#[derive(Default)]
pub(super) struct Targets {
    all: BTreeMap<ObjectName, Rc<InitTarget>>,
    /// Those that the list which is being read has not named so far.
    unlisted: BTreeSet<ObjectName>,
    are_read: bool,
}

/// A target that cannot be understood.
pub(super) struct Misfit {
    pub(super) name: Box<str>,
    pub(super) error: Error,
}

impl Targets {
    pub(super) fn all(&self) -> impl Iterator<Item = &Rc<InitTarget>> {
        self.all.values()
    }

    /// One of them.
    pub(super) fn named(&self, name: &ObjectName) -> Option<&Rc<InitTarget>> {
        self.all.get(name)
    }

    /// True once a list of them was read to its end.
    pub(super) fn are_read(&self) -> bool {
        self.are_read
    }

    /// A list begins. True if something has changed by that.
    pub(super) fn begin(&mut self) -> bool {
        self.unlisted = self.all.keys().cloned().collect();
        false
    }

    /// One is there. One that is being deleted is not. True if something has changed by that.
    pub(super) fn is_there(&mut self, object: &[u8]) -> Result<bool, Misfit> {
        let Ok(meta) = <Meta>::parse(object) else {
            return Ok(false);
        };
        let name = name_of(&meta);
        self.unlisted.remove(&name);
        if meta.deletion_timestamp.is_some() {
            return Ok(self.all.remove(&name).is_some());
        }
        let target = parsed::<InitTarget>(object).map_err(|error| Misfit {
            name: name.name.clone(),
            error,
        })?;
        let is_same = |known: &Rc<InitTarget>| **known == target;
        if self.all.get(&name).is_some_and(is_same) {
            return Ok(false);
        }
        self.all.insert(name, Rc::new(target));
        Ok(true)
    }

    /// One is gone, or has other labels now. True if something has changed by that.
    pub(super) fn is_gone(&mut self, object: &[u8]) -> bool {
        <Meta>::parse(object).is_ok_and(|meta| self.all.remove(&name_of(&meta)).is_some())
    }

    /// The list is complete: what it does not name is gone. True if something has changed by that.
    pub(super) fn is_complete(&mut self) -> bool {
        let gone = std::mem::take(&mut self.unlisted);
        let is_first = !std::mem::replace(&mut self.are_read, true);
        let before = self.all.len();
        self.all.retain(|name, _| !gone.contains(name));
        is_first || self.all.len() != before
    }
}

pub(super) fn name_of(meta: &Meta) -> ObjectName {
    let workspace = meta.annotations.get(CLUSTER).map_or("", String::as_str);
    ObjectName::in_workspace(workspace, "", &meta.name)
}

/// The type that a target names. Without a path, it is in the target's own workspace.
pub(crate) fn type_of(target: &InitTarget, config_workspace: &Rc<str>) -> TypeName {
    let reference = &target.spec.workspace_type_ref;
    let workspace = match (&*reference.path, target.metadata.cluster()) {
        ("", Some(cluster)) => cluster.into(),
        ("", None) => Rc::clone(config_workspace),
        (path, _) => path.into(),
    };
    TypeName {
        workspace,
        name: reference.name.as_str().into(),
    }
}

/// True if a source of a target is the template of this name, in this workspace if that is known.
pub(super) fn uses(target: &InitTarget, workspace: Option<&str>, template: &str) -> bool {
    let is_beside = match (target.metadata.cluster(), workspace) {
        (Some(of), Some(workspace)) => of == workspace,
        _ => true,
    };
    let names = target.spec.sources.iter().filter_map(|source| source.template.as_ref());
    is_beside && names.into_iter().any(|named| named.name == template)
}
