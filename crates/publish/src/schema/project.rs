//! The versions and names that a type has in kcp.

use std::collections::BTreeSet;

use super::{Crd, Projected, SchemaError, compare};
use crate::kinds::{Projection, PublishedResource};

/// The type as this PublishedResource wants it to be in kcp.
pub fn project(crd: &Crd, wanted: &PublishedResource) -> Result<Projected, SchemaError> {
    let mut crd = crd.clone();
    select(&mut crd, &wanted.source.versions)?;
    rename_versions(&mut crd, &wanted.projection)?;
    rename(&mut crd, &wanted.projection)?;
    Projected::new(crd)
}

/// Drops the versions that are not wanted, and sees to it that one that is left stores objects.
fn select(crd: &mut Crd, wanted: &[String]) -> Result<(), SchemaError> {
    crd.versions
        .retain(|version| wanted.is_empty() || wanted.contains(&version.name));
    if crd.versions.is_empty() {
        return Err(SchemaError::NoVersion(wanted.to_vec()));
    }
    let has_stored = crd.stored_version().is_some();
    let served = crd.versions.iter_mut().filter(|version| version.is_served);
    let highest = served.max_by(|one, other| compare(&one.name, &other.name));
    let highest = highest.ok_or(SchemaError::NoneServed)?;
    highest.is_stored |= !has_stored;
    Ok(())
}

fn rename_versions(crd: &mut Crd, wanted: &Projection) -> Result<(), SchemaError> {
    if let Some(name) = &wanted.version {
        return match &mut crd.versions[..] {
            [only] => {
                only.name.clone_from(name);
                Ok(())
            }
            several => Err(SchemaError::SeveralVersions(name.clone(), several.len())),
        };
    }
    if wanted.versions.is_empty() {
        return Ok(());
    }
    let mut names = BTreeSet::new();
    for version in &mut crd.versions {
        if let Some(name) = wanted.versions.get(&version.name).filter(|name| !name.is_empty()) {
            version.name.clone_from(name);
        }
        if !names.insert(version.name.clone()) {
            return Err(SchemaError::Twice(version.name.clone()));
        }
    }
    crd.versions.sort_by(|one, other| compare(&one.name, &other.name));
    Ok(())
}

fn rename(crd: &mut Crd, wanted: &Projection) -> Result<(), SchemaError> {
    if let Some(group) = &wanted.group {
        crd.group.clone_from(group);
    }
    if let Some(kind) = &wanted.kind {
        crd.names.kind.clone_from(kind);
        crd.names.list_kind = format!("{kind}List");
        crd.names.singular = kind.to_lowercase();
        crd.names.plural = format!("{}s", crd.names.singular);
    }
    if let Some(plural) = &wanted.plural {
        crd.names.plural.clone_from(plural);
    }
    if let Some(scope) = wanted.scope {
        crd.scope = scope;
    }
    if let Some(categories) = &wanted.categories {
        crd.names.categories.clone_from(categories);
    }
    if let Some(short_names) = &wanted.short_names {
        crd.names.short_names.clone_from(short_names);
    }
    if crd.group.is_empty() {
        return Err(SchemaError::NoGroup);
    }
    let name = format!("{}.{}", crd.names.plural, crd.group);
    if is_domain(&name) {
        Ok(())
    } else {
        Err(SchemaError::Name(name))
    }
}

/// Whether kcp takes it as the end of a schema's name.
fn is_domain(name: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let is_label = |label: &str| {
        let mut all = label.chars();
        is_end(label.chars().next())
            && is_end(label.chars().next_back())
            && all.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    // The name of the schema begins with ten more characters.
    name.len() <= 243 && name.split('.').all(is_label)
}
