//! The differences between two recordings that mean nothing, because upstream differs from itself in them from one run
//! to the next. There is no other.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kube::ResourceExt;
use serde_json::Value;

/// The conditions, sorted by their type.
///
/// One that changes goes to the end of the list, and when two change at the same time the order of
/// two writes decides.
pub(super) fn in_order(conditions: &Value) -> Vec<&Value> {
    let mut conditions: Vec<&Value> = conditions.as_array().into_iter().flatten().collect();
    conditions.sort_by_key(|condition| condition["type"].as_str().unwrap_or_default().to_owned());
    conditions
}

/// The reason and the message of a condition. While the new replica set has no ready pod, "created" becomes
/// "progressing".
///
/// Upstream writes the status twice from one reading, the second time in vain. Whether the next
/// reading counts pods as progress depends on whether the replica set has reported them by then. As soon as a pod of
/// the set is ready there is progress in any case, and no doubt about the reason.
pub(super) fn progress(reason: &str, message: &str, sets: &[&appsv1::ReplicaSet]) -> (String, String) {
    let created = message.strip_prefix("Created new replica set ").filter(|_| reason == "NewReplicaSetCreated");
    let unready = created.filter(|quoted| {
        let set = sets.iter().find(|set| format!("{:?}", set.name_any()) == **quoted);
        set.is_some_and(|set| ready_replicas(set) == 0)
    });
    match unready {
        Some(set) => ("ReplicaSetUpdated".to_owned(), format!("ReplicaSet {set} is progressing.")),
        None => (reason.to_owned(), message.to_owned()),
    }
}

fn ready_replicas(set: &appsv1::ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or_default()
}

/// Counts the messages about each object, to say how often an event was counted, and whether it was combined with
/// others, only up to the ninth message with one reason.
///
/// From the tenth on upstream combines them, and with each further one forgets a message at random.
#[derive(Default)]
pub(super) struct Combined(BTreeMap<(String, String), BTreeSet<String>>);

impl Combined {
    /// The event's count and message, as far as two runs agree on them.
    pub(super) fn describe(&mut self, event: &corev1::Event) -> String {
        const PREFIX: &str = "(combined from similar events): ";
        let about = event.involved_object.uid.clone().unwrap_or_default();
        let (reason, message) =
            (event.reason.clone().unwrap_or_default(), event.message.as_deref().unwrap_or_default());
        let alone = message.strip_prefix(PREFIX).unwrap_or(message);
        let seen = self.0.entry((about, reason)).or_default();
        seen.insert(alone.to_owned());
        if seen.len() < 10 { format!("x{} {message}", event.count.unwrap_or(1)) } else { alone.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1 as appsv1;
    use k8s_openapi::api::core::v1 as corev1;

    use super::{Combined, progress};

    const CREATED: (&str, &str) = ("NewReplicaSetCreated", "Created new replica set \"web-1\"");

    fn set(name: &str, ready: Option<i32>) -> appsv1::ReplicaSet {
        let mut set = appsv1::ReplicaSet::default();
        set.metadata.name = Some(name.to_owned());
        set.status = Some(appsv1::ReplicaSetStatus { ready_replicas: ready, ..Default::default() });
        set
    }

    #[test]
    fn a_created_set_without_a_ready_pod_is_called_progressing() {
        let progressing = ("ReplicaSetUpdated".to_owned(), "ReplicaSet \"web-1\" is progressing.".to_owned());
        for ready in [None, Some(0)] {
            assert_eq!(progress(CREATED.0, CREATED.1, &[&set("web-0", Some(4)), &set("web-1", ready)]), progressing);
        }
        assert_eq!(progress(&progressing.0, &progressing.1, &[&set("web-1", None)]), progressing);
    }

    #[test]
    fn a_created_set_with_a_ready_pod_is_not_excused() {
        let unchanged = (CREATED.0.to_owned(), CREATED.1.to_owned());
        assert_eq!(progress(CREATED.0, CREATED.1, &[&set("web-1", Some(1))]), unchanged);
        assert_eq!(progress(CREATED.0, CREATED.1, &[&set("web-10", None)]), unchanged, "another set is not ready");
        assert_eq!(progress(CREATED.0, CREATED.1, &[]), unchanged, "the set is gone");
    }

    #[test]
    fn other_reasons_are_never_changed() {
        let sets = [&set("web-1", None)];
        let paused = progress("DeploymentPaused", "Deployment is paused", &sets);
        assert_eq!(paused, ("DeploymentPaused".to_owned(), "Deployment is paused".to_owned()));
        let odd = progress("ReplicaSetUpdated", CREATED.1, &sets);
        assert_eq!(odd, ("ReplicaSetUpdated".to_owned(), CREATED.1.to_owned()));
    }

    fn event(about: &str, message: &str) -> corev1::Event {
        corev1::Event {
            involved_object: corev1::ObjectReference { uid: Some(about.to_owned()), ..Default::default() },
            reason: Some("ScalingReplicaSet".to_owned()),
            message: Some(message.to_owned()),
            count: Some(2),
            ..corev1::Event::default()
        }
    }

    #[test]
    fn counts_are_compared_until_upstream_begins_to_forget() {
        let mut combined = Combined::default();
        for number in 0..9 {
            assert_eq!(combined.describe(&event("a", &number.to_string())), format!("x2 {number}"));
        }
        assert_eq!(combined.describe(&event("a", "(combined from similar events): 9")), "9");
        assert_eq!(combined.describe(&event("a", "0")), "0");
        assert_eq!(combined.describe(&event("b", "0")), "x2 0", "another object has its own count");
    }
}
