//! Scopes: which objects a quota counts.

use kcm_framework::api::InternedStr;
use kcm_framework::api::views::{ResourceQuotaView, ScopeOperator};

/// A scope of a quota, and what its value has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::resourcequota) struct Requirement<'a> {
    pub(in crate::resourcequota) name: &'a str,
    pub(in crate::resourcequota) operator: ScopeOperator,
    pub(in crate::resourcequota) values: &'a [InternedStr],
}

impl Requirement<'_> {
    /// Whether a value matches, or that there is none.
    ///
    /// # Upstream
    /// The requirements of label selectors, for a label of the name of the scope.
    pub(in crate::resourcequota) fn matches(&self, value: Option<&str>) -> bool {
        let is_named = || value.is_some_and(|value| self.values.iter().any(|named| *named == *value));
        match self.operator {
            ScopeOperator::In => is_named(),
            ScopeOperator::NotIn => !is_named(),
            ScopeOperator::Exists => value.is_some(),
            ScopeOperator::DoesNotExist => value.is_none(),
            ScopeOperator::Other => false,
        }
    }
}

/// The scopes that an object must be in to be counted.
pub(in crate::resourcequota) fn scopes(quota: &ResourceQuotaView) -> Vec<Requirement<'_>> {
    let named = quota.scopes.iter().map(|name| Requirement { name, operator: ScopeOperator::Exists, values: &[] });
    let selected = quota.scope_selector.iter().map(|requirement| Requirement {
        name: &requirement.scope_name,
        operator: requirement.operator,
        values: &requirement.values,
    });
    named.chain(selected).collect()
}
