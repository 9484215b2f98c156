//! The plan for an aggregated role: its rules.

use std::collections::HashSet;
use std::sync::Arc;

use kcm_framework::api::{InvalidSelector, Meta, Selector};

use super::event_mapping::selects;
use super::view::{ClusterRole, PolicyRule};

/// Returns the rules that an aggregated role must have; `None` if it has them.
///
/// `roles` are all cluster roles, sorted by name.
///
/// # Errors
/// One of its selectors is invalid.
pub(super) fn plan_rules(
    aggregated: &ClusterRole,
    roles: &[Arc<ClusterRole>],
) -> Result<Option<Vec<PolicyRule>>, InvalidSelector> {
    let Some(aggregation) = &aggregated.aggregation else { return Ok(None) };
    let (mut union, mut known) = (Vec::new(), HashSet::new());
    for selector in &aggregation.selectors {
        let selector = Selector::try_from(selector)?;
        let is_selected = |role: &&Arc<ClusterRole>| {
            role.metadata.key != aggregated.metadata.key && selector.matches(&role.metadata.labels)
        };
        for rule in roles.iter().filter(is_selected).flat_map(|role| &role.rules) {
            if known.insert(rule) {
                union.push(rule.clone());
            }
        }
    }
    Ok((union != aggregated.rules).then_some(union))
}

/// Whether a role selects, or may select, an object of which only this metadata is known.
pub(super) fn may_aggregate(aggregated: &ClusterRole, undecodable: Option<&Meta>) -> bool {
    aggregated.aggregation.is_some() && undecodable.is_none_or(|meta| selects(aggregated, &meta.labels))
}
