//! The log lines of the agent that have no streaks.

use std::rc::Rc;

use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName};

use super::targets::Misfit;
use crate::kinds::InitTarget;
use crate::sides::Key;

pub(super) fn is_served(initializer: &str, targets: &[Rc<InitTarget>]) {
    let names: Vec<&str> = targets.iter().map(|target| &*target.metadata.name).collect();
    log_line!(
        Info,
        WorkspaceTypeServed,
        "the workspaces of a type are initialized",
        initializer = initializer,
        targets = names.join(",")
    );
}

pub(super) fn is_served_no_longer(initializer: &str) {
    log_line!(
        Info,
        WorkspaceTypeLeft,
        "the workspaces of a type are not initialized any more: no target names it, or it is gone",
        initializer = initializer
    );
}

pub(super) fn is_unanswered(key: &Key, error: &Error) {
    log_line!(
        Debug,
        WorkspaceFailed,
        "a side did not answer, the workspace waits for it",
        cluster = key.cluster,
        error = error
    );
}

pub(super) fn is_unrecorded(error: &Error) {
    log_line!(Debug, EventFailed, "an Event could not be written", error = error);
}

/// The status of a target is not written, perhaps since none can be.
pub(super) fn is_untold(name: &ObjectName, error: &Error, is_off: bool) {
    let advice = if is_off {
        "apply the CRDs and permissions of manifests/init/config to see conditions at InitTargets; nothing else depends on it"
    } else {
        ""
    };
    log_line!(
        Debug,
        TargetStatusFailed,
        "the status of an InitTarget could not be written",
        target = name.name,
        error = error,
        advice = advice
    );
}

/// A target is none.
pub(super) fn is_no_target(misfit: &Misfit) {
    log_line!(
        Warn,
        TargetInvalid,
        "an InitTarget cannot be understood and is not served",
        target = misfit.name,
        error = misfit.error,
        advice = "correct it, and compare its CRD with that of manifests/init"
    );
}
