//! The result of one round of deletion: the remaining objects, the failures, and the next step.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::{InternedStr, Resource};
use kcm_framework::client::ApiError;

use super::observe::{Listing, PodItem};

/// The estimated time until other controllers have removed the finalizers of objects.
const FINALIZER_ESTIMATE: Duration = Duration::from_secs(15);

/// The objects of one resource after a round.
#[derive(Debug)]
pub(super) struct ResourceResult {
    pub(super) resource: Resource,
    /// Number of remaining objects.
    pub(super) remaining: usize,
    /// Number of remaining objects by finalizer.
    pub(super) by_finalizer: BTreeMap<InternedStr, usize>,
    /// Estimated time until the remaining objects are deleted; zero if none is known to remain, or if they take too long.
    pub(super) estimate: Duration,
    pub(super) failure: Option<ContentFailure>,
}

/// The reason why the objects of a resource could not be deleted.
#[derive(Debug)]
pub(super) enum ContentFailure {
    Request(ApiError),
    /// Deleted objects remain, although they have neither a finalizer nor a grace period.
    Unexpected,
}

impl ResourceResult {
    /// The result if no object remains.
    pub(super) fn gone(resource: Resource) -> Self {
        Self { resource, remaining: 0, by_finalizer: BTreeMap::new(), estimate: Duration::ZERO, failure: None }
    }

    /// The result of a failed request, after which the remaining objects are unknown.
    pub(super) fn failed(resource: Resource, error: ApiError) -> Self {
        Self { failure: Some(ContentFailure::Request(error)), ..Self::gone(resource) }
    }

    /// The result if `listing` remains after the deletion, of objects whose grace periods end in `grace`.
    ///
    /// Objects with finalizers and without a grace period take 15 s. Objects without both are a failure.
    pub(super) fn after(resource: Resource, listing: &Listing, grace: Duration) -> Self {
        if listing.is_empty() {
            return Self::gone(resource);
        }
        let by_finalizer = listing.by_finalizer();
        let (estimate, failure) = match (grace, by_finalizer.is_empty()) {
            (Duration::ZERO, true) => (Duration::ZERO, Some(ContentFailure::Unexpected)),
            (Duration::ZERO, false) => (FINALIZER_ESTIMATE, None),
            (grace, _) => (grace, None),
        };
        Self { resource, remaining: listing.items.len(), by_finalizer, estimate, failure }
    }

    /// Whether objects of the resource may remain.
    pub(super) const fn may_remain(&self) -> bool {
        self.remaining > 0 || self.failure.is_some()
    }

    fn message(&self, namespace: &str) -> Option<String> {
        let Resource { group, version, plural, .. } = &self.resource;
        Some(match self.failure.as_ref()? {
            ContentFailure::Request(error) => format!("{error}: {}", error.message()),
            ContentFailure::Unexpected => format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, Resource={plural}"
            ),
        })
    }

    /// The message in the error of a round, which says of Pods that the rest waits for them.
    fn error(&self, namespace: &str) -> Option<String> {
        let message = self.message(namespace)?;
        Some(if self.resource == super::observe::PODS {
            format!("failed to delete pods for namespace: {namespace}, err: {message}")
        } else {
            message
        })
    }
}

/// Estimates the time until the Pods of a Namespace are deleted: the longest grace period of running Pods, and zero if it
/// has passed since the Namespace was deleted.
pub(super) fn grace_of(pods: &[PodItem], deleted_at: Timestamp, now: Timestamp) -> Duration {
    let running = pods.iter().filter(|pod| !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed"));
    let grace = running.filter_map(|pod| pod.spec.termination_grace_period_seconds).max().unwrap_or(0);
    let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    let passed = Duration::try_from(now.duration_since(deleted_at)).unwrap_or(Duration::ZERO);
    if passed >= grace { Duration::ZERO } else { grace }
}

/// A round of deletion in one Namespace.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The reason why not all resources are known.
    pub(super) discovery_failure: Option<String>,
    /// The result of each resource whose objects were deleted.
    pub(super) results: Vec<ResourceResult>,
}

/// The next step after a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Removes the finalizer of the Namespace, which is empty.
    Finalize,
    /// Starts another round after this time, because the remaining objects are expected to be deleted.
    Wait(Duration),
    /// Starts another round with back-off.
    Retry(RoundFailure),
}

/// The failures of a round.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot empty the namespace: {}", .0.join(", "))]
pub(super) struct RoundFailure(pub(super) Vec<String>);

/// The longest time between two rounds.
///
/// A grace period may be longer than a clock can count, and objects may be deleted earlier.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

impl Round {
    /// The messages of failed resources for the conditions, sorted.
    pub(super) fn content_failures(&self, namespace: &str) -> Vec<String> {
        self.failures(|result| result.message(namespace))
    }

    fn failures(&self, message: impl Fn(&ResourceResult) -> Option<String>) -> Vec<String> {
        let mut messages: Vec<String> = self.results.iter().filter_map(message).collect();
        messages.sort();
        messages
    }

    /// Returns the next step.
    ///
    /// The wait is half the longest estimate and a second: 8 s for the 15 s of finalizers, 16 s for pods with a grace
    /// period of 30 s.
    pub(super) fn next_step(&self, namespace: &str) -> NextStep {
        let content = self.failures(|result| result.error(namespace));
        let failures: Vec<String> = self.discovery_failure.iter().cloned().chain(content).collect();
        if !failures.is_empty() {
            return NextStep::Retry(RoundFailure(failures));
        }
        match self.results.iter().map(|result| result.estimate.as_secs()).max().unwrap_or(0) {
            0 => NextStep::Finalize,
            estimate => NextStep::Wait(Duration::from_secs(estimate / 2 + 1).min(LONGEST_WAIT)),
        }
    }
}

/// Explains why not all resources are known, and names the API services to repair. `broken` has the versions of groups
/// whose discovery failed.
pub(super) fn discovery_failure(broken: &BTreeMap<String, String>) -> Option<String> {
    let groups: Vec<String> = broken
        .iter()
        .map(|(group_version, reason)| match group_version.split_once('/') {
            Some((group, version)) if !group.is_empty() => {
                format!("{group_version}: {reason} (API service {version}.{group})")
            }
            Some(_) | None => format!("{group_version}: {reason}"),
        })
        .collect();
    (!groups.is_empty()).then(|| {
        format!(
            "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
            groups.len(),
            groups.join(", ")
        )
    })
}
