//! The condition of a rule. Pure.

use jiff::Timestamp;
use kcm_framework::api::{Condition, ConditionStatus};

use super::views::{DeviceTaintRule, PROGRESS};

/// Numbers that the condition shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Numbers {
    /// Pods that are not terminating, and are evicted because of the rule now or later. For a rule without effect, the
    /// Pods that would be evicted.
    pub(super) pods: u64,
    /// Namespaces of these Pods.
    pub(super) namespaces: u64,
    /// Published devices that the rule selects.
    pub(super) published: u64,
    /// Allocated devices that the rule selects.
    pub(super) allocated: u64,
    /// Pods that this process has evicted because of the rule.
    pub(super) evicted: u64,
}

/// Returns the condition to write, `None` if the rule has it.
///
/// The transition time changes with every change of the condition, as upstream. A predecessor's `Completed` stays while
/// nothing is pending: the numbers of its evictions are not known here. So does `NoEffect`, whose message says that it is
/// not updated.
pub(super) fn condition(rule: &DeviceTaintRule, numbers: Numbers, now: Timestamp) -> Option<Condition> {
    let (status, reason, message) = text(rule, numbers);
    let computed = Condition {
        type_: PROGRESS.into(),
        status,
        observed_generation: rule.metadata.generation,
        reason: reason.into(),
        message: with_evicted(message, numbers.evicted).into(),
        ..Condition::default()
    };
    let Some(present) = &rule.progress else { return Some(Condition { last_transition_time: Some(now), ..computed }) };
    let is_current = present.observed_generation == rule.metadata.generation;
    let is_kept = match reason {
        "NotStarted" => &*present.reason == "Completed",
        "NoEffect" => &*present.reason == "NoEffect" && numbers.evicted == 0,
        _ => false,
    };
    let unchanged = Condition { last_transition_time: present.last_transition_time, ..computed.clone() };
    if is_current && is_kept || unchanged == **present {
        return None;
    }
    Some(Condition { last_transition_time: Some(now), ..computed })
}

/// Returns `true` if the numbers of pending Pods and of devices decide about the condition of the rule.
pub(super) fn needs_numbers(rule: &DeviceTaintRule) -> bool {
    matches!(&*rule.taint.effect, "NoExecute" | "None")
}

fn text(rule: &DeviceTaintRule, numbers: Numbers) -> (ConditionStatus, &'static str, String) {
    let Numbers { pods, namespaces, .. } = numbers;
    match &*rule.taint.effect {
        "NoExecute" if pods > 0 => {
            let pods = counted(pods, "pod needs to be evicted in", "pods need to be evicted in");
            let namespaces = counted(namespaces, "namespace.", "different namespaces.");
            (ConditionStatus::True, "PodsPendingEviction", format!("{pods} {namespaces}"))
        }
        "NoExecute" if numbers.evicted > 0 => (ConditionStatus::False, "Completed", String::new()),
        "NoExecute" => (ConditionStatus::False, "NotStarted", String::new()),
        "None" => {
            let published = counted(numbers.published, "published device selected.", "published devices selected.");
            let allocated = counted(numbers.allocated, "allocated device selected.", "allocated devices selected.");
            let pods = counted(pods, "pod would be evicted in", "pods would be evicted in");
            let namespaces = counted(namespaces, "namespace", "different namespaces");
            let message = format!(
                "{published} {allocated} {pods} {namespaces} if the effect was NoExecute. This information will not be \
                 updated again. Recreate the DeviceTaintRule to trigger an update."
            );
            (ConditionStatus::False, "NoEffect", message)
        }
        _ => {
            let message = "Eviction only happens for the NoExecute effect.".to_owned();
            (ConditionStatus::False, "OtherEffect", message)
        }
    }
}

fn with_evicted(message: String, evicted: u64) -> String {
    if evicted == 0 {
        return message;
    }
    let separator = if message.is_empty() { "" } else { " " };
    format!("{message}{separator}{} evicted since starting the controller.", counted(evicted, "pod", "pods"))
}

fn counted(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}
