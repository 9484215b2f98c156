//! The identity of a pod: the name of its stateful set and its ordinal, which its name, its labels and the names of its
//! claims have.

use kcm_framework::api::views::{Pod, StatefulSet};

/// The label of a pod with its name, by which a service selects one pod.
pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

/// The label of a pod with its ordinal.
pub(super) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The name of the pod of an ordinal.
pub(super) fn pod_name(set: &str, ordinal: i64) -> String {
    format!("{set}-{ordinal}")
}

/// The name of the claim that the pod of an ordinal has for a claim template.
pub(super) fn claim_name(template: &str, set: &str, ordinal: i64) -> String {
    format!("{template}-{set}-{ordinal}")
}

/// Whether the name of a pod is that of a stateful set, a hyphen and digits.
///
/// # Upstream
/// `isMemberOf`.
pub(super) fn is_member(set: &str, pod: &str) -> bool {
    digits_after(set, pod).is_some()
}

/// The ordinal in the name of a pod of a stateful set; absent if it is not the one that [`pod_name`] writes, as in
/// `web-01`, or is above 2147483647.
pub(super) fn ordinal(set: &str, pod: &str) -> Option<i64> {
    let digits = digits_after(set, pod)?;
    let is_canonical = digits == "0" || !digits.starts_with('0');
    digits.parse::<i32>().ok().filter(|_| is_canonical).map(i64::from)
}

fn digits_after<'a>(set: &str, pod: &'a str) -> Option<&'a str> {
    let digits = pod.strip_prefix(set)?.strip_prefix('-')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// The ordinals that a stateful set has pods for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ordinals {
    /// The first.
    pub(super) start: i64,
    /// The one after the last.
    pub(super) end: i64,
}

impl Ordinals {
    /// From `spec.ordinals.start`, as many as `spec.replicas`.
    pub(super) fn of(set: &StatefulSet) -> Self {
        let start = i64::from(set.start_ordinal);
        Self { start, end: start + i64::from(set.replicas.max(0)) }
    }

    /// Whether an ordinal is among them.
    pub(super) const fn contain(self, ordinal: i64) -> bool {
        self.start <= ordinal && ordinal < self.end
    }
}

/// Whether the pod has the label with its name.
///
/// # Upstream
/// `identityMatches`, which does not look at the label with the ordinal: pods of releases before 1.28 lack it.
pub(super) fn has_identity(pod: &Pod) -> bool {
    pod.metadata.labels.get(POD_NAME) == Some(pod.metadata.key.name())
}
