//! Which types are followed, and which initializers are served where.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use driver::source::{Reading, Style};

use super::border::Feed;
use super::group::Group;
use super::references::Known;
use super::report::Subject;
use super::{Agent, lines, targets};
use crate::kcp;
use crate::kinds::InitTarget;
use crate::sides::{Location, Side};

/// What an initializer stands for, and where those wait that have it.
#[derive(Default)]
struct Wanted {
    targets: Vec<Rc<InitTarget>>,
    urls: BTreeSet<Rc<str>>,
}

impl Agent {
    /// Follows the types that targets name.
    pub(super) fn follow_types(&mut self) {
        let config = &self.settings.config_workspace;
        let wanted: BTreeSet<_> = self
            .targets
            .all()
            .map(|target| targets::type_of(target, config))
            .collect();
        let change = self.references.follow(&wanted);
        for (number, name) in change.end {
            self.outbox.close(Side::Type(number));
            self.report.is_over(&Subject::Type(name), self.now);
        }
        for (number, name) in change.begin {
            self.outbox
                .open(Side::Type(number), Location::Workspace(name.workspace));
            let reading = Reading::of_one(kcp::workspace_types(), name.name, Style::Whole);
            self.outbox.read(Feed::Type(number), reading);
        }
        self.regroup();
    }

    /// Puts together which initializer stands for which targets, and where those wait that have it.
    pub(super) fn regroup(&mut self) {
        let config = &self.settings.config_workspace;
        let (mut wanted, mut unknown) = (BTreeMap::<Rc<str>, Wanted>::new(), BTreeSet::new());
        for target in self.targets.all() {
            let name = targets::type_of(target, config);
            match self.references.known(&name) {
                Known::Type(known) => {
                    let wanted = wanted.entry(Rc::clone(&known.initializer)).or_default();
                    wanted.targets.push(Rc::clone(target));
                    wanted.urls.extend(known.urls.iter().cloned());
                }
                Known::Nothing => drop(unknown.insert(name.name)),
                Known::Unreadable | Known::Absent => {}
            }
        }
        let is_unsettled = |initializer: &&Rc<str>| unknown.iter().any(|name| is_of(initializer, name));
        self.unsettled = wanted.keys().filter(is_unsettled).cloned().collect();
        let over: Vec<Rc<str>> = self
            .groups
            .keys()
            .filter(|it| !wanted.contains_key(*it))
            .cloned()
            .collect();
        for initializer in over {
            let urls: Vec<Rc<str>> = self
                .groups
                .get(&initializer)
                .into_iter()
                .flat_map(Group::urls)
                .cloned()
                .collect();
            for url in urls {
                self.close_shard(&initializer, &url);
            }
            self.groups.remove(&initializer);
            lines::is_served_no_longer(&initializer);
        }
        for (initializer, wanted) in wanted {
            self.serve(&initializer, wanted);
        }
    }

    fn serve(&mut self, initializer: &Rc<str>, Wanted { targets, urls }: Wanted) {
        let group = self.groups.entry(Rc::clone(initializer)).or_insert_with(Group::new);
        if group.is_for(targets) {
            lines::is_served(initializer, &group.targets);
        }
        let over: Vec<Rc<str>> = group.urls().filter(|url| !urls.contains(*url)).cloned().collect();
        let new: Vec<Rc<str>> = urls
            .iter()
            .filter(|url| !group.urls().any(|known| known == *url))
            .cloned()
            .collect();
        for url in over {
            self.close_shard(initializer, &url);
        }
        for url in new {
            let number = self.next_shard;
            self.next_shard += 1;
            if let Some(group) = self.groups.get_mut(initializer) {
                group.open(Rc::clone(&url), Side::Shard(number));
            }
            self.outbox.open(Side::Shard(number), Location::Url(url));
            let reading = Reading::of_all(kcp::logical_clusters(), Style::Whole);
            self.outbox.read(Feed::Clusters(number), reading);
        }
    }

    fn close_shard(&mut self, initializer: &Rc<str>, url: &str) {
        let closed = self
            .groups
            .get_mut(initializer)
            .and_then(|group| group.close(url, self.now));
        let Some((side, workspaces)) = closed else { return };
        for key in workspaces {
            self.report.is_over(&Subject::Workspace(key), self.now);
        }
        if let Side::Shard(number) = side {
            self.outbox.close(Side::Shard(number));
            self.report
                .is_over(&Subject::Clusters(Rc::clone(initializer), number), self.now);
        }
    }
}

/// True if an initializer may be that of a type with this name.
fn is_of(initializer: &str, name: &str) -> bool {
    initializer.rsplit_once(':').is_some_and(|(_, of)| of == name)
}
