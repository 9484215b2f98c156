//! The differences that mean nothing: upstream differs from itself in them, from one run to the next.
//! There is no other.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as corev1;
use serde_json::Value;

/// Conditions are told by their type.
///
/// One that changes goes to the end of the list, and when two change at the same time the order of
/// two writes decides.
pub(super) fn in_order(conditions: &Value) -> Vec<&Value> {
    let mut conditions: Vec<&Value> = conditions.as_array().into_iter().flatten().collect();
    conditions.sort_by_key(|condition| condition["type"].as_str().unwrap_or_default().to_owned());
    conditions
}

/// A new replica set that has no ready pod yet has been created or is progressing.
///
/// Upstream writes the status twice from one reading, the second time in vain. Whether the next
/// reading counts pods as progress depends on whether the replica set has reported them by then.
pub(super) fn progress(reason: &str, message: &str) -> (String, String) {
    let created = message.strip_prefix("Created new replica set ").filter(|_| reason == "NewReplicaSetCreated");
    match created {
        Some(set) => ("ReplicaSetUpdated".to_owned(), format!("ReplicaSet {set} is progressing.")),
        None => (reason.to_owned(), message.to_owned()),
    }
}

/// How often an event was counted, and which ones were combined, is told up to the tenth message
/// with one reason.
///
/// There upstream begins to combine them, and with each further one forgets a message at random.
#[derive(Default)]
pub(super) struct Combined(BTreeMap<String, BTreeSet<String>>);

impl Combined {
    pub(super) fn tell(&mut self, event: &corev1::Event) -> String {
        const PREFIX: &str = "(combined from similar events): ";
        let (reason, message) =
            (event.reason.clone().unwrap_or_default(), event.message.as_deref().unwrap_or_default());
        let alone = message.strip_prefix(PREFIX).unwrap_or(message);
        let seen = self.0.entry(reason).or_default();
        seen.insert(alone.to_owned());
        if seen.len() < 10 { format!("x{} {message}", event.count.unwrap_or(1)) } else { alone.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as corev1;

    use super::{Combined, progress};

    #[test]
    fn only_a_set_that_was_created_is_called_progressing() {
        let told = progress("NewReplicaSetCreated", "Created new replica set \"web-1\"");
        assert_eq!(told, progress("ReplicaSetUpdated", "ReplicaSet \"web-1\" is progressing."));
        let paused = progress("DeploymentPaused", "Deployment is paused");
        assert_eq!(paused, ("DeploymentPaused".to_owned(), "Deployment is paused".to_owned()));
    }

    #[test]
    fn counts_are_told_until_upstream_begins_to_forget() {
        let mut combined = Combined::default();
        let mut tell = |message: &str| {
            combined.tell(&corev1::Event {
                reason: Some("ScalingReplicaSet".to_owned()),
                message: Some(message.to_owned()),
                count: Some(2),
                ..corev1::Event::default()
            })
        };
        for number in 0..9 {
            assert_eq!(tell(&number.to_string()), format!("x2 {number}"));
        }
        assert_eq!(tell("(combined from similar events): 9"), "9");
        assert_eq!(tell("0"), "0");
    }
}
