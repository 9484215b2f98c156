//! The kinds that a policy is checked with.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;

/// Number of kinds after which a rule ends the search.
const MAX_KINDS: usize = 10;

/// A kind of a group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub struct Kind {
    /// Name of the group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Name of the version.
    #[serde(default)]
    pub version: String,
    /// Name of the kind.
    #[serde(default)]
    pub kind: String,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// A resource of a group and version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// Name of the group; empty for the core group.
    pub group: String,
    /// Name of the version.
    pub version: String,
    /// Name of the resource, such as `pods`.
    pub resource: String,
}

/// One entry of `spec.matchConstraints.resourceRules`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Names of groups; empty for the core group.
    #[serde(default)]
    pub api_groups: Vec<String>,
    /// Names of versions, without the group.
    #[serde(default)]
    pub api_versions: Vec<String>,
    /// Names of resources, such as `pods`.
    #[serde(default)]
    pub resources: Vec<String>,
}

/// The result of looking up a resource.
pub enum Lookup {
    /// The kinds of the resource, at least one.
    Found(Vec<Kind>),
    /// Discovery does not know the resource.
    Unknown,
}

/// The kinds of rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Kinds in the order in which warnings name them.
    pub kinds: BTreeSet<Kind>,
    /// Resources that discovery does not know. The policy must be checked again when it does.
    pub unknown: BTreeSet<Resource>,
}

/// Returns the kinds that a policy is checked with.
///
/// Rules with a wildcard in groups or versions are skipped, and so are resources with a wildcard or a slash. A rule
/// whose resources have ten kinds, duplicates included, ends the search.
///
/// `refresh` is called before the second look-up of the first resource that is unknown, and not again.
pub fn kinds_of(rules: &[Rule], mut lookup: impl FnMut(&Resource) -> Lookup, mut refresh: impl FnMut()) -> Checked {
    let mut checked = Checked::default();
    let mut refreshed = false;
    for rule in rules {
        let mut count = 0;
        for resource in resources_of(rule) {
            let mut found = lookup(&resource);
            if matches!(found, Lookup::Unknown) && !refreshed {
                refreshed = true;
                refresh();
                found = lookup(&resource);
            }
            let Lookup::Found(kinds) = found else {
                checked.unknown.insert(resource);
                continue;
            };
            for kind in kinds {
                checked.kinds.insert(kind);
                count += 1;
                if count == MAX_KINDS {
                    return checked;
                }
            }
        }
    }
    checked
}

/// Returns the resources of a rule, sorted by group, version and name.
fn resources_of(rule: &Rule) -> Vec<Resource> {
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    let wildcard = |names: &[String]| names.iter().any(|name| name.contains('*'));
    if wildcard(&rule.api_groups) || wildcard(&rule.api_versions) {
        return Vec::new();
    }
    let (groups, versions) = (sorted(&rule.api_groups), sorted(&rule.api_versions));
    let mut resources = sorted(&rule.resources);
    resources.retain(|resource| !resource.contains(['*', '/']));
    let mut found = Vec::new();
    for group in &groups {
        for version in &versions {
            found.extend(resources.iter().map(|resource| Resource {
                group: group.clone(),
                version: version.clone(),
                resource: resource.clone(),
            }));
        }
    }
    found
}

/// Returns the kind that `spec.paramKind` names, or `None` if there is no such field or its version has more than one
/// slash. Expressions have no `params` then.
#[must_use]
pub fn params_of(api_version: &str, kind: &str) -> Option<Kind> {
    let (group, version) = match api_version.split_once('/') {
        // An empty version, also one of a slash alone, is taken as upstream takes it: without group and version.
        None if api_version.is_empty() => ("", ""),
        None => ("", api_version),
        Some(("", "")) => ("", ""),
        Some((_, version)) if version.contains('/') => return None,
        Some((group, version)) => (group, version),
    };
    let found = Kind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() };
    (found != Kind::default()).then_some(found)
}

/// The variable whose type is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The variables `object` and `oldObject`.
    Object,
    /// The variable with the name `params`.
    Params,
}

/// Returns the name of the type of a kind: the kind and nine digits of a hash of the kind and the role.
///
/// Upstream takes the nanoseconds of the clock, so that the digits of two checks differ. An object and parameters of one
/// kind have different types, as upstream.
#[must_use]
pub fn type_name(kind: &Kind, role: Role) -> String {
    let role = match role {
        Role::Object => "object",
        Role::Params => "params",
    };
    let parts = [&kind.group, &kind.version, &kind.kind, role];
    // FNV-1a, with a byte between the parts that occurs in none.
    let hash = parts
        .iter()
        .flat_map(|part| part.bytes().chain([0xff]))
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{}{:09}", kind.kind, hash % 1_000_000_000)
}
