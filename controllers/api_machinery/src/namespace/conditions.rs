//! The conditions of a terminating Namespace.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_framework::api::{Condition, ConditionStatus};

use super::content::Round;

/// A condition with its texts if there is a problem, and if there is none.
struct Form {
    type_: &'static str,
    problem: &'static str,
    no_problem: &'static str,
    no_problem_message: &'static str,
}

const DISCOVERY: Form = Form {
    type_: "NamespaceDeletionDiscoveryFailure",
    problem: "DiscoveryFailed",
    no_problem: "ResourcesDiscovered",
    no_problem_message: "All resources successfully discovered",
};
const PARSING: Form = Form {
    type_: "NamespaceDeletionGroupVersionParsingFailure",
    problem: "GroupVersionParsingFailed",
    no_problem: "ParsedGroupVersions",
    no_problem_message: "All legacy kube types successfully parsed",
};
const CONTENT: Form = Form {
    type_: "NamespaceDeletionContentFailure",
    problem: "ContentDeletionFailed",
    no_problem: "ContentDeleted",
    no_problem_message: "All content successfully deleted, may be waiting on finalization",
};
const REMAINING: Form = Form {
    type_: "NamespaceContentRemaining",
    problem: "SomeResourcesRemain",
    no_problem: "ContentRemoved",
    no_problem_message: "All content successfully removed",
};
const FINALIZERS: Form = Form {
    type_: "NamespaceFinalizersRemaining",
    problem: "SomeFinalizersRemain",
    no_problem: "ContentHasNoFinalizers",
    no_problem_message: "All content-preserving finalizers finished",
};

/// Returns the conditions that a round changes, in their order.
///
/// The transition time is kept if only reason or message change.
pub(super) fn changed_conditions(
    current: &[Condition],
    round: &Round,
    namespace: &str,
    now: Timestamp,
) -> Vec<Condition> {
    let wanted = [
        (DISCOVERY, round.discovery_failure.clone()),
        // Discovery returns group and version as two fields, so that there is nothing to parse.
        (PARSING, None),
        (CONTENT, content_message(round, namespace)),
        (REMAINING, remaining_message(round)),
        (FINALIZERS, finalizers_message(round)),
    ];
    wanted
        .into_iter()
        .filter_map(|(form, problem)| {
            let old = current.iter().find(|condition| &*condition.type_ == form.type_);
            let new = form.condition(problem, old, now);
            (old != Some(&new)).then_some(new)
        })
        .collect()
}

impl Form {
    fn condition(self, problem: Option<String>, old: Option<&Condition>, now: Timestamp) -> Condition {
        let (status, reason, message) = match problem {
            Some(message) => (ConditionStatus::True, self.problem, message),
            None => (ConditionStatus::False, self.no_problem, self.no_problem_message.to_owned()),
        };
        let since = old.filter(|old| old.status == status).and_then(|old| old.last_transition_time);
        Condition {
            type_: self.type_.into(),
            status,
            last_transition_time: Some(since.unwrap_or(now)),
            reason: reason.into(),
            message: message.into(),
            ..Condition::default()
        }
    }
}

fn content_message(round: &Round, namespace: &str) -> Option<String> {
    let failures = round.content_failures(namespace);
    (!failures.is_empty())
        .then(|| format!("Failed to delete all resource types, {} remaining: {}", failures.len(), failures.join(", ")))
}

fn remaining_message(round: &Round) -> Option<String> {
    let remaining = round.results.iter().filter(|result| result.remaining > 0).map(|result| {
        format!("{}.{} has {} resource instances", result.resource.plural, result.resource.group, result.remaining)
    });
    let mut remaining: Vec<String> = remaining.collect();
    remaining.sort();
    (!remaining.is_empty()).then(|| format!("Some resources are remaining: {}", remaining.join(", ")))
}

fn finalizers_message(round: &Round) -> Option<String> {
    let mut totals = BTreeMap::<&str, usize>::new();
    for (finalizer, count) in round.results.iter().flat_map(|result| &result.by_finalizer) {
        *totals.entry(finalizer).or_default() += count;
    }
    let mut totals: Vec<String> =
        totals.into_iter().map(|(finalizer, count)| format!("{finalizer} in {count} resource instances")).collect();
    totals.sort();
    (!totals.is_empty())
        .then(|| format!("Some content in the namespace has finalizers remaining: {}", totals.join(", ")))
}
