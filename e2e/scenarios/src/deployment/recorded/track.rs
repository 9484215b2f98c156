//! What one deployment went through, as lines of which two recordings can be compared.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use k8s_openapi::api::apps::v1 as appsv1;
use k8s_openapi::api::core::v1 as corev1;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::super::state::State;
use super::explained::{Combined, in_order, progress};
use super::script::Step;
use super::times::Times;

/// All that one deployment went through, in lines without random names and hashes, and with turns for times.
#[derive(Default)]
pub(super) struct Track {
    lines: Vec<String>,
    /// The replica sets' names, with the numbers by which lines call them: the order in which they came.
    sets: BTreeMap<String, usize>,
    combined: Combined,
    times: Times,
}

impl Track {
    pub(super) fn begin(&mut self, step: Step) {
        self.lines.push(format!("change {:?}", step.change));
    }

    /// Counts events without recording them: the order in which the first pods run is not determined.
    pub(super) fn count(&mut self, deployment: &appsv1::Deployment, events: &[corev1::Event]) {
        for event in events.iter().filter(|event| is_about(event, deployment) || set_of(event, deployment).is_some()) {
            self.combined.describe(event);
        }
    }

    /// Records how the deployment and its sets are now, and the events about them since the last turn.
    pub(super) fn record(&mut self, state: &State, name: &str, events: &[corev1::Event]) -> Result<()> {
        self.times.next_turn();
        let deployment = state.deployment(name)?;
        let sets = state.sets_of(deployment);
        for set in &sets {
            self.number_of(&set.name_any());
        }
        self.record_object("deployment", &json!(deployment), &sets);
        for set in &sets {
            self.record_object(&set.name_any(), &json!(set), &[]);
        }
        for event in events.iter().filter(|event| is_about(event, deployment)) {
            self.record_event("deployment", event);
        }
        self.record_events_of_sets(deployment, events);
        Ok(())
    }

    /// The events of each set by themselves: two controllers record theirs independently of each other.
    fn record_events_of_sets(&mut self, deployment: &appsv1::Deployment, events: &[corev1::Event]) {
        let mut of_sets: BTreeMap<usize, (&str, Vec<&corev1::Event>)> = BTreeMap::new();
        for event in events {
            if let Some(set) = set_of(event, deployment) {
                // A set may have come and gone within the turn.
                of_sets.entry(self.number_of(set)).or_insert_with(|| (set, Vec::new())).1.push(event);
            }
        }
        for (set, events) in of_sets.into_values() {
            for event in events {
                self.record_event(set, event);
            }
        }
    }

    fn number_of(&mut self, set: &str) -> usize {
        let next = self.sets.len() + 1;
        *self.sets.entry(set.to_owned()).or_insert(next)
    }

    fn record_object(&mut self, what: &str, object: &Value, sets: &[&appsv1::ReplicaSet]) {
        let (meta, spec, mut status) = (&object["metadata"], &object["spec"], object["status"].clone());
        let conditions = status.as_object_mut().and_then(|status| status.remove("conditions"));
        self.push(&format!("  {what} asks for {} in generation {}", spec["replicas"], meta["generation"]));
        self.push(&format!("    min ready {}, status {status}", spec["minReadySeconds"]));
        for it in in_order(&conditions.unwrap_or_default()) {
            let [kind, status, reason, message] =
                ["type", "status", "reason", "message"].map(|field| it[field].as_str().unwrap_or_default());
            let (reason, message) = progress(reason, message, sets);
            let times = self.times.describe(meta["uid"].as_str().unwrap_or_default(), it);
            self.push(&format!("    {kind} {status} {reason}: {message} ({times})"));
        }
        self.push(&format!("    annotations {}", meta["annotations"]));
        self.push(&format!("    labels {}", meta["labels"]));
    }

    fn record_event(&mut self, about: &str, event: &corev1::Event) {
        let source = event.source.as_ref().and_then(|source| source.component.clone());
        let described = without_pod(&self.combined.describe(event));
        self.push(&format!(
            "  event of {about}: {} {} from {}: {described}",
            event.type_.as_deref().unwrap_or_default(),
            event.reason.as_deref().unwrap_or_default(),
            source.unwrap_or_default(),
        ));
    }

    fn push(&mut self, line: &str) {
        let mut line = line.to_owned();
        for (name, number) in &self.sets {
            line = line.replace(name.as_str(), &format!("<set {number}>"));
            if let Some((_, hash)) = name.rsplit_once('-') {
                line = line.replace(hash, "<hash>");
            }
        }
        self.lines.push(line);
    }

    /// The first line that differs, under the change that led to it.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let length = self.lines.len().max(other.lines.len());
        let line = |track: &Self, at: usize| track.lines.get(at).cloned().unwrap_or_else(|| "(the end)".to_owned());
        let at = (0..length).find(|&at| self.lines.get(at) != other.lines.get(at))?;
        let change = self.lines[..at].iter().rev().find(|line| line.starts_with("change")).cloned();
        Some(format!("after {change:?}\n  theirs: {}\n  ours:   {}", line(self, at), line(other, at)))
    }
}

fn is_about(event: &corev1::Event, deployment: &appsv1::Deployment) -> bool {
    event.involved_object.uid == deployment.metadata.uid
}

/// The name of the deployment's replica set that the event is about: the deployment's name and a hash.
fn set_of<'a>(event: &'a corev1::Event, deployment: &appsv1::Deployment) -> Option<&'a str> {
    let about = &event.involved_object;
    let name = about.name.as_deref().filter(|_| about.kind.as_deref() == Some("ReplicaSet"))?;
    let (owner, _) = name.rsplit_once('-')?;
    (deployment.metadata.name.as_deref() == Some(owner)).then_some(name)
}

/// A message without the random end of the pod's name that ends it.
fn without_pod(message: &str) -> String {
    match message.rsplit_once('-') {
        Some((start, _)) if message.contains(" pod: ") => format!("{start}-<pod>"),
        _ => message.to_owned(),
    }
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1 as appsv1;
    use k8s_openapi::api::core::v1 as corev1;
    use serde_json::json;

    use super::Track;

    fn deployment() -> appsv1::Deployment {
        serde_json::from_value(json!({ "metadata": { "name": "rolls", "uid": "d" } })).expect("a deployment")
    }

    fn event(set: &str, message: &str) -> corev1::Event {
        serde_json::from_value(json!({
            "metadata": {},
            "involvedObject": { "kind": "ReplicaSet", "name": set, "uid": format!("uid of {set}") },
            "type": "Normal",
            "reason": "SuccessfulCreate",
            "message": message,
            "source": { "component": "replicaset-controller" },
        }))
        .expect("an event")
    }

    fn recorded(events: &[corev1::Event]) -> Vec<String> {
        let mut track = Track::default();
        for set in ["rolls-5d8f", "rolls-77aa"] {
            track.number_of(set);
        }
        track.record_events_of_sets(&deployment(), events);
        track.lines
    }

    #[test]
    fn events_of_replica_sets_are_recorded_by_set_without_pods_names() {
        let lines = recorded(&[
            event("rolls-77aa", "Created pod: rolls-77aa-x2x2x"),
            event("rolls-5d8f", "Deleted pod: rolls-5d8f-z9z9z"),
            event("rolls-77aa", "Created pod: rolls-77aa-y3y3y"),
        ]);
        let line = |set: u32, message: &str| {
            format!("  event of <set {set}>: Normal SuccessfulCreate from replicaset-controller: x1 {message}")
        };
        assert_eq!(
            lines,
            [
                line(1, "Deleted pod: <set 1>-<pod>"),
                line(2, "Created pod: <set 2>-<pod>"),
                line(2, "Created pod: <set 2>-<pod>"),
            ]
        );
    }

    #[test]
    fn events_of_another_deployment_s_sets_are_left_out() {
        assert!(recorded(&[event("rolls-over-5d8f", "Created pod: rolls-over-5d8f-x2x2x")]).is_empty());
    }

    #[test]
    fn a_missing_event_of_a_set_is_a_difference() {
        let events =
            [event("rolls-5d8f", "Created pod: rolls-5d8f-x2x2x"), event("rolls-5d8f", "Created pod: rolls-5d8f-y2")];
        let [mut theirs, mut ours] = [Track::default(), Track::default()];
        theirs.record_events_of_sets(&deployment(), &events);
        ours.record_events_of_sets(&deployment(), &events[..1]);
        let difference = theirs.difference(&ours).expect("one event is missing");
        assert!(difference.contains("ours:   (the end)"), "{difference}");
    }
}
