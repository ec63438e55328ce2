//! Entries of configs that name objects, or namespaces at the edge, and select nothing: perhaps what they name comes later,
//! perhaps it is misspelt.
//!
//! Promises: found out from what the lists have shown, with no request; kept nowhere, so that it is over as soon as
//! something matches; an entry that says "all" of something may select nothing.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use driver::failures::shortened;
use kube_lite::ObjectName;

use super::config_kind::ConfigKind;
use super::{Model, TypeState};
use crate::api::status::{FieldProblem, NAMED, OfEdge};
use crate::plan::{Direction, Entry, Names, Objects, Types, steps_are_taken};

/// Those of one config.
#[derive(Default)]
pub(super) struct Unmatched {
    /// Entries that name objects, of which none is there; [`NAMED`] at most.
    names: Vec<FieldProblem>,
    /// How many such entries there are.
    count: usize,
    /// Entries of all that is in some namespaces, where nothing is; [`NAMED`] at most.
    namespaces: Vec<FieldProblem>,
}

/// What has been found of an entry.
enum Found {
    /// Something that it selects, or that it would select if something else did not keep it from that, which has a line of
    /// its own.
    Something,
    /// Nothing of what it names.
    NoName,
    /// Nothing in the namespaces that it names.
    NothingWithin,
}

/// Where an entry seeks objects, and of which names.
struct Sought<'a> {
    /// The namespaces, an empty one for what is cluster-scoped; absent for all.
    within: Option<Vec<&'a str>>,
    names: &'a Names,
}

/// The objects of one type that the side of the origins has.
#[derive(Default)]
struct Present<'a> {
    names: HashSet<&'a str>,
    namespaces: HashSet<&'a str>,
}

/// The types that are planned, as entries call them: by direction, group, and plural or kind.
#[derive(Default)]
struct Planned<'a> {
    types: BTreeMap<(Direction, &'a str, &'a str), &'a TypeState>,
    /// What there is of a type, where it had to be looked through.
    present: BTreeMap<(Direction, &'a str, &'a str), Present<'a>>,
}

impl Model {
    /// Those of each config. Before all lists are complete there are none but those that the hub has already.
    pub(super) fn unmatched(&self, is_complete: bool) -> BTreeMap<Rc<str>, Unmatched> {
        let mut planned = Planned::of(self.types.values());
        let mut all = BTreeMap::<Rc<str>, Unmatched>::new();
        let mut entries = self.selecting.wanted.entries.iter().peekable();
        while let Some(first) = entries.next() {
            let field = item(&first.place.field);
            let mut found = self.find(first, &mut planned);
            // The resources of an upsync are one entry in the config.
            while let Some(next) = entries.next_if(|next| is_of_same(first, next)) {
                found = found.or(self.find(next, &mut planned));
            }
            steps_are_taken(1);
            let (part, message) = match found {
                Found::Something => continue,
                Found::NoName => (names_of(first), no_name(first)),
                Found::NothingWithin => (namespaces_of(first), nothing_within(first)),
            };
            let problem = FieldProblem {
                field: format!("spec.{field}{part}"),
                message: shortened(&message).to_owned(),
                ..FieldProblem::default()
            };
            let config = &first.place.config;
            // Of what is not named, the hub knows the number.
            let is_known = |all: &BTreeMap<_, Unmatched>| {
                let is_one_more = all.get(config).is_some_and(|of_config| of_config.names.len() == NAMED);
                is_one_more || self.is_said(config, &problem).is_some()
            };
            if is_complete || is_known(&all) {
                let of_config = all.entry(Rc::clone(config)).or_default();
                of_config.add(matches!(found, Found::NoName), problem);
            }
        }
        all
    }

    /// Since when the hub has a problem from this edge; `None` if it has not.
    pub(super) fn is_said(&self, config: &str, problem: &FieldProblem) -> Option<&str> {
        let of = ConfigKind::of_config(config)?;
        self.statuses
            .said_since(&of, &self.settings.policy.sync_target.uid, problem)
    }

    fn find<'a>(&'a self, entry: &'a Entry, planned: &mut Planned<'a>) -> Found {
        let direction = entry.direction;
        let (group, word) = match &entry.types {
            Types::Plural { group, resource, .. } => (group, resource),
            Types::Kind { group, kind, .. } => (group, kind),
            // It may select types that do not exist yet.
            Types::Group(_) => return Found::Something,
        };
        let key = (direction, &**group, &**word);
        let Some(state) = planned.types.get(&key).copied().filter(|state| can_tell(state)) else {
            return Found::Something;
        };
        let Some(Sought { within, names }) = Sought::of(&entry.objects, state.plan.at_edge.namespaced) else {
            return Found::Something;
        };
        let is_any = match (names, &within) {
            (Names::These(names), Some(within)) => {
                let mut all = within
                    .iter()
                    .flat_map(|of| names.iter().map(move |name| ObjectName::new(of, name)));
                all.any(|name| self.may_be_there(state, &name))
            }
            (Names::These(names), None) => {
                let present = planned.present(key, state);
                names.iter().any(|name| present.names.contains(&**name))
            }
            (Names::All, Some(within)) if direction == Direction::Up && *within != [""] => {
                let present = planned.present(key, state);
                within.iter().any(|of| present.namespaces.contains(of))
            }
            (Names::All, _) => true,
        };
        match names {
            _ if is_any => Found::Something,
            Names::These(_) => Found::NoName,
            Names::All => Found::NothingWithin,
        }
    }

    /// False if an object is not at the side of the origins, and nothing else keeps it from being synced.
    fn may_be_there(&self, state: &TypeState, edge: &ObjectName) -> bool {
        steps_are_taken(1);
        let is_lacking = state.plan.direction == Direction::Down && self.selected_namespaces.lacks(edge.namespace());
        is_lacking || state.inventory.is_wanted(edge) || !state.allowed(edge).is_whole()
    }
}

impl Found {
    /// What is found of both.
    fn or(self, other: Self) -> Self {
        match (&self, &other) {
            (_, Self::Something) => other,
            _ => self,
        }
    }
}

impl<'a> Sought<'a> {
    /// Nothing where an entry names all that is in namespaces of the hub: those that are not there have lines of their own.
    fn of(objects: &'a Objects, namespaced: bool) -> Option<Self> {
        let (within, names) = match objects {
            Objects::In(namespace, names) => (Some(vec![namespace.as_deref().unwrap_or_default()]), names),
            Objects::Ref { namespace, names } => (Some(vec![&**namespace]).filter(|_| namespace != "*"), names),
            Objects::Anywhere { namespaces, names, .. } => {
                let within = namespaces.as_ref().map(|all| all.iter().map(|it| &**it).collect());
                (within, &**names)
            }
            Objects::Within { .. } | Objects::Implied(_) => return None,
        };
        let within = if namespaced { within } else { Some(vec![""]) };
        Some(Self { within, names })
    }
}

impl Unmatched {
    fn add(&mut self, is_named: bool, problem: FieldProblem) {
        self.count += usize::from(is_named);
        let list = if is_named {
            &mut self.names
        } else {
            &mut self.namespaces
        };
        if list.len() < NAMED {
            list.push(problem);
        }
    }

    /// Adds them to what this edge says of the config. Names that are not there make it invalid; an empty namespace does not.
    pub(super) fn add_to(self, ours: &mut OfEdge) {
        ours.problem_count += self.count;
        ours.problems.extend(self.names);
        ours.problems.truncate(NAMED);
        ours.unmatched = self.namespaces;
    }
}

impl<'a> Planned<'a> {
    fn of(states: impl Iterator<Item = &'a TypeState>) -> Self {
        let mut types = BTreeMap::new();
        for state in states {
            let of = state.origin_type();
            for word in [&*of.resource, &*of.kind] {
                types.insert((state.plan.direction, &*of.group, word), state);
            }
        }
        Self {
            types,
            present: BTreeMap::new(),
        }
    }

    fn present(&mut self, key: (Direction, &'a str, &'a str), state: &'a TypeState) -> &Present<'a> {
        self.present.entry(key).or_insert_with(|| {
            let all = state.inventory.all().filter(|(_, link)| link.wanted != 0);
            let mut present = Present::default();
            for (name, _) in all {
                steps_are_taken(1);
                present.names.insert(&name.name);
                present.namespaces.insert(name.namespace());
            }
            present
        })
    }
}

/// True if what entries name of a type shows in the names that its objects have. Namespaces that the hub lacks have lines
/// of their own.
fn can_tell(state: &TypeState) -> bool {
    let plan = &state.plan;
    let are_namespaces = plan.direction == Direction::Down && plan.at_hub.stands_for("", "namespaces");
    !plan.gone_at_origin && !are_namespaces && plan.naming.converts_nothing()
}

/// True if both stand for one entry of a config: an upsync of several resources.
fn is_of_same(first: &Entry, next: &Entry) -> bool {
    let are_upsync = matches!(
        (&first.objects, &next.objects),
        (Objects::Anywhere { .. }, Objects::Anywhere { .. })
    );
    are_upsync && first.place.config == next.place.config && item(&first.place.field) == item(&next.place.field)
}

/// The item of a list that a field belongs to: `upsync[0]` for `upsync[0].resources[1]`.
fn item(field: &str) -> &str {
    field.split_once(".resources[").map_or(field, |(item, _)| item)
}

/// Where an entry has its names.
fn names_of(entry: &Entry) -> &'static str {
    match &entry.objects {
        Objects::In(Some(_), _) => ".objectsByNamespace",
        Objects::In(None, _) => ".objects",
        Objects::Ref { .. } => ".name",
        _ => ".names",
    }
}

/// Where it has its namespaces.
fn namespaces_of(entry: &Entry) -> &'static str {
    match &entry.objects {
        Objects::Ref { .. } => ".namespace",
        _ => ".namespaces",
    }
}

fn no_name(entry: &Entry) -> String {
    let side = entry.direction.origin();
    let Some(Sought {
        within,
        names: Names::These(names),
    }) = Sought::of(&entry.objects, true)
    else {
        return String::new();
    };
    let names = few(names.iter().map(|it| &**it));
    let within = few(within.into_iter().flatten().filter(|it| !it.is_empty()));
    let within = if within.is_empty() {
        within
    } else {
        format!(" in {within}")
    };
    format!("selects nothing: the {side} has no {names}{within} that can be synced; it is synced once it is there")
}

fn nothing_within(entry: &Entry) -> String {
    let side = entry.direction.origin();
    let within = Sought::of(&entry.objects, true).and_then(|sought| sought.within);
    let within = few(within.into_iter().flatten());
    format!("selects nothing so far: the {side} has no such object in {within}")
}

/// The first of these words, and how many more there are.
fn few<'a>(mut words: impl Iterator<Item = &'a str>) -> String {
    let first: Vec<String> = words.by_ref().take(3).map(|word| format!("{word:?}")).collect();
    let text = first.join(", ");
    match words.count() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
