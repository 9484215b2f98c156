//! Pod failure policies: what the failure of a pod means to its job.

use kcm_framework::api::views::{
    ExitCodesOperator, FailedContainer, JobView, OnExitCodes, PodConditionPattern, PodFailurePolicyAction,
    PodFailurePolicyRule,
};

use super::job_pod::JobPod;

/// What the failure of a pod means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodFailure {
    /// It is counted, as no rule matches it.
    Unmatched,
    /// It is counted.
    Count,
    /// It is not counted.
    Ignore,
    /// It is counted, and its index fails.
    FailIndex,
    /// It is counted, and the job fails.
    FailJob {
        /// Why, as conditions say it.
        message: String,
    },
}

impl PodFailure {
    /// Whether it counts towards the back-off limits.
    pub(super) fn is_counted(&self) -> bool {
        *self != Self::Ignore
    }

    /// The name of the action, as metrics have it; absent where no rule matched.
    pub(super) const fn action(&self) -> Option<&'static str> {
        match self {
            Self::Unmatched => None,
            Self::Count => Some("Count"),
            Self::Ignore => Some("Ignore"),
            Self::FailIndex => Some("FailIndex"),
            Self::FailJob { .. } => Some("FailJob"),
        }
    }
}

/// What the failure of the pod means to the job: the first rule that matches decides.
///
/// A rule with an action that is not known matches nothing.
pub(super) fn pod_failure(job: &JobView, pod: &JobPod) -> PodFailure {
    let Some(policy) = &job.pod_failure_policy else { return PodFailure::Unmatched };
    let mut rules = policy.rules.iter().enumerate();
    rules.find_map(|(at, rule)| apply_rule(at, rule, pod)).unwrap_or(PodFailure::Unmatched)
}

fn apply_rule(at: usize, rule: &PodFailurePolicyRule, pod: &JobPod) -> Option<PodFailure> {
    let what = what_matches(rule, pod)?;
    Some(match rule.action {
        PodFailurePolicyAction::Ignore => PodFailure::Ignore,
        PodFailurePolicyAction::Count => PodFailure::Count,
        PodFailurePolicyAction::FailIndex => PodFailure::FailIndex,
        PodFailurePolicyAction::FailJob => {
            let key = &pod.pod.metadata.key;
            let message = match what {
                Match::Container(FailedContainer { name, exit_code, .. }) => format!(
                    "Container {name} for pod {key} failed with exit code {exit_code} matching FailJob rule at index {at}"
                ),
                Match::Condition(PodConditionPattern { type_, .. }) => {
                    format!("Pod {key} has condition {type_} matching FailJob rule at index {at}")
                }
            };
            PodFailure::FailJob { message }
        }
        PodFailurePolicyAction::Other => return None,
    })
}

/// What of a pod a rule matches.
enum Match<'a> {
    Container(&'a FailedContainer),
    Condition(&'a PodConditionPattern),
}

fn what_matches<'a>(rule: &PodFailurePolicyRule, pod: &'a JobPod) -> Option<Match<'a>> {
    let termination = pod.termination();
    if let Some(codes) = &rule.on_exit_codes {
        let failed = termination.failed_containers.iter().find(|container| matches_code(codes, container));
        return failed.map(Match::Container);
    }
    let matched = termination.conditions.iter().find(|condition| rule.on_pod_conditions.contains(condition));
    matched.map(Match::Condition)
}

fn matches_code(codes: &OnExitCodes, container: &FailedContainer) -> bool {
    let is_container = codes.container_name.as_ref().is_none_or(|name| *name == container.name);
    let is_listed = codes.values.contains(&container.exit_code);
    is_container
        && match codes.operator {
            ExitCodesOperator::In => is_listed,
            ExitCodesOperator::NotIn => !is_listed,
            ExitCodesOperator::Other => false,
        }
}
