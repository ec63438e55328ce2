//! What there is to say of a target: what its conditions follow from.

use std::rc::Rc;

use super::Agent;
use super::border::Request;
use super::references::{Known, Type, TypeName};
use super::report::{NO_INITIALIZER, NO_SUCH_TYPE, Said, Subject};
use super::status::{Facts, Finding, TargetWork};
use super::{group::Group, targets};
use crate::fill::Trouble;
use crate::kinds::InitTarget;

impl Agent {
    /// Does what there is to do about the statuses of targets.
    pub(super) fn tell_statuses(&mut self) {
        if !self.targets.are_read() || self.statuses.due().is_none_or(|due| self.now < due) {
            return;
        }
        let mut statuses = std::mem::take(&mut self.statuses);
        statuses.keep(|name| self.targets.named(name).is_some());
        let facts =
            |name: &kube_lite::ObjectName, examined: Option<&Trouble>| self.facts(self.targets.named(name)?, examined);
        let step = statuses.next(facts, self.now);
        self.statuses = statuses;
        if let Some(request) = step.and_then(|step| self.request_of(step)) {
            self.outbox.request(request);
        }
    }

    fn request_of(&self, step: TargetWork) -> Option<Request> {
        Some(match step {
            TargetWork::Examine(name, changes) => Request::Examine(Rc::clone(self.targets.named(&name)?), changes),
            TargetWork::Write { name, uid, status } => Request::WriteStatus(name, uid, status),
        })
    }

    /// What there is to say of a target, if its type was read; in its templates, this is wrong.
    fn facts(&self, target: &InitTarget, examined: Option<&Trouble>) -> Option<Facts> {
        let name = targets::type_of(target, &self.settings.config_workspace);
        let known = self.references.known(&name);
        let group = match known {
            Known::Nothing => return None,
            Known::Type(known) => self.groups.get(&known.initializer),
            Known::Unreadable | Known::Absent => None,
        };
        let of_type = self.type_trouble(&name, known);
        let of_sources = || {
            let trouble = examined?;
            let source = trouble.source.unwrap_or_default();
            let words = format!("sources[{source}]: {}", trouble.words());
            Some((trouble.reason(), words))
        };
        let ready = match of_type.or_else(of_sources) {
            Some((reason, words)) => Finding::not(reason, words),
            None => Finding::so("Serving", "workspaces of the type are initialized".to_owned()),
        };
        let stalled = match group.and_then(|group| self.workspace_trouble(group, target)) {
            Some(said) => Finding::so(said.reason, said.words.clone()),
            None => Finding::not("NothingFails", "no workspace fails".to_owned()),
        };
        let waiting = group.map_or(0, Group::waiting);
        Some(Facts {
            ready,
            stalled,
            waiting,
        })
    }

    /// Why a type cannot be served, if it cannot.
    fn type_trouble(&self, name: &TypeName, known: &Known) -> Option<(&'static str, String)> {
        if let Some(said) = self.report.said(&Subject::Type(name.clone())) {
            return Some((said.reason, said.words.clone()));
        }
        match known {
            Known::Nothing | Known::Unreadable => Some(("TypeUnreadable", "it could not be read so far".to_owned())),
            Known::Absent => Some(("TypeNotFound", NO_SUCH_TYPE.to_owned())),
            Known::Type(Type { blocks: false, .. }) => Some(("TypeWithoutInitializer", NO_INITIALIZER.to_owned())),
            Known::Type(known) => {
                let (_, said) = self.report.all_said().find(
                    |(subject, _)| matches!(subject, Subject::Clusters(initializer, _) if *initializer == known.initializer),
                )?;
                Some((said.reason, said.words.clone()))
            }
        }
    }

    /// What is wrong with a workspace that waits for a target.
    fn workspace_trouble(&self, group: &Group, target: &InitTarget) -> Option<&Said> {
        let is_of = |said: &Said| {
            let of = said.target.as_ref();
            of.is_none_or(|of| *of == target.object_name())
        };
        let mut all = self.report.all_said();
        let found = all
            .find(|(subject, said)| matches!(subject, Subject::Workspace(key) if group.has(key.shard)) && is_of(said));
        found.map(|(_, said)| said)
    }
}

impl Finding {
    fn so(reason: &'static str, words: String) -> Self {
        let is_true = true;
        Self { is_true, reason, words }
    }

    fn not(reason: &'static str, words: String) -> Self {
        Self {
            is_true: false,
            ..Self::so(reason, words)
        }
    }
}
