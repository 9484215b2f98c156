//! The kinds of resources, as upstream's REST mapper finds them in discovery.

use kcm_framework::discovery::Resources;

use super::kinds::{Kind, Lookup, Resource};

/// The resources of a group and version that discovery lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    /// Name of the group; empty for the core group.
    pub group: String,
    /// Name of the version.
    pub version: String,
    /// Resources in the order of discovery, with or without subresources.
    pub resources: Vec<DiscoveredResource>,
}

/// A resource that discovery lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredResource {
    /// Name of the resource, such as `pods`, or of a subresource, such as `pods/status`.
    pub name: String,
    /// Name of one object, such as `pod`; empty if the server does not tell.
    pub singular: String,
    /// Name of the kind, such as `Pod`.
    pub kind: String,
}

/// Returns a snapshot of discovery by group and version, in its order.
#[must_use]
pub fn discovered(resources: &Resources) -> Vec<Discovered> {
    let mut found: Vec<Discovered> = Vec::new();
    for resource in resources.iter().map(|served| &served.resource) {
        let of = (&*resource.group, &*resource.version);
        if found.last().is_none_or(|last| (&*last.group, &*last.version) != of) {
            found.push(Discovered { group: of.0.to_owned(), version: of.1.to_owned(), resources: Vec::new() });
        }
        if let Some(last) = found.last_mut() {
            last.resources.push(DiscoveredResource {
                name: resource.plural.to_string(),
                singular: String::new(),
                kind: resource.kind.to_string(),
            });
        }
    }
    found
}

/// Returns the kinds of a resource.
///
/// The name may be the singular and is compared without case. A name such as `podlists` leads to a kind that does not
/// exist. Without a group, resources of all groups are found; a rule on the core group is such a rule. Without a
/// version, resources of all versions are found, and the group may be the beginning of a name.
#[must_use]
pub fn kinds_for(discovered: &[Discovered], wanted: &Resource) -> Lookup {
    let name = wanted.resource.to_lowercase();
    let version = if wanted.version == "__internal" { "" } else { &wanted.version };
    let matches = |each: &&Discovered| match (wanted.group.as_str(), version) {
        (_, "") => each.group.starts_with(&wanted.group),
        ("", version) => each.version == version,
        (group, version) => each.group == group && each.version == version,
    };
    if name.is_empty() {
        return Lookup::Unknown;
    }
    let kinds: Vec<Kind> = discovered
        .iter()
        .filter(matches)
        .filter_map(|each| {
            let kind = kind_of(&each.resources, &name)?;
            Some(Kind { group: each.group.clone(), version: each.version.clone(), kind })
        })
        .collect();
    if kinds.is_empty() { Lookup::Unknown } else { Lookup::Found(kinds) }
}

/// Returns the kind of a resource. The last resource with the name counts.
fn kind_of(resources: &[DiscoveredResource], name: &str) -> Option<String> {
    if name == "list" || name == "lists" {
        return Some("List".to_owned());
    }
    resources.iter().rev().filter(|resource| !resource.name.contains('/')).find_map(|resource| {
        let lower = resource.kind.to_lowercase();
        let listed = name.strip_suffix("lists").or_else(|| name.strip_suffix("list"));
        if listed == Some(lower.as_str()) {
            return Some(format!("{}List", resource.kind));
        }
        let singular = if resource.singular.is_empty() { &lower } else { &resource.singular };
        (name == resource.name || name == singular).then(|| resource.kind.clone())
    })
}
