//! Success policies: an indexed job that succeeds before all of its indexes have.

use kcm_framework::api::views::{JobView, SuccessPolicyRule};

use super::indexes::Indexes;

/// The position of the first rule that the succeeded indexes meet.
pub(super) fn met_rule(job: &JobView, succeeded: &Indexes) -> Option<usize> {
    if succeeded.is_empty() {
        return None;
    }
    job.success_rules.iter().position(|rule| is_met(rule, job.completions.unwrap_or(0), succeeded))
}

/// A rule that names indexes needs all of them, or as many as it counts; one that names none counts all indexes.
fn is_met(rule: &SuccessPolicyRule, completions: i32, succeeded: &Indexes) -> bool {
    let is_enough = |count| rule.succeeded_count.is_some_and(|needed| count >= needed);
    let Some(named) = &rule.succeeded_indexes else { return is_enough(succeeded.total()) };
    let named = Indexes::parse(named, completions);
    // A rule that cannot be read is met by nothing.
    if named.is_empty() {
        return false;
    }
    let count = named.count_common(succeeded);
    count == named.total() || is_enough(count)
}
