//! What came of each change, told so that two tellings can be compared.

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

/// All that one deployment went through, in lines without names, hashes and times.
#[derive(Default)]
pub(super) struct Track {
    lines: Vec<String>,
    /// Sets are called by the order in which they came.
    sets: BTreeMap<String, String>,
    combined: Combined,
}

impl Track {
    pub(super) fn begin(&mut self, step: Step) {
        self.lines.push(format!("change {:?}", step.change));
    }

    /// Counts events that are not told: how the first pods came to run differs from time to time.
    pub(super) fn hear(&mut self, deployment: &appsv1::Deployment, events: &[corev1::Event]) {
        for event in about(deployment, events) {
            self.combined.tell(event);
        }
    }

    /// Writes down how the deployment and its sets are now, and the events since the last time.
    pub(super) fn see(&mut self, state: &State, name: &str, events: &[corev1::Event]) -> Result<()> {
        let deployment = state.deployment(name)?;
        let sets = state.sets_of(deployment);
        for set in &sets {
            let number = self.sets.len() + 1;
            self.sets.entry(set.name_any()).or_insert_with(|| format!("<set {number}>"));
        }
        self.write("deployment", &json!(deployment));
        for set in sets {
            self.write(&set.name_any(), &json!(set));
        }
        for event in about(deployment, events) {
            let source = event.source.as_ref().and_then(|source| source.component.clone());
            let counted = self.combined.tell(event);
            self.tell(&format!(
                "  event {} {} from {}: {counted}",
                event.type_.as_deref().unwrap_or_default(),
                event.reason.as_deref().unwrap_or_default(),
                source.unwrap_or_default(),
            ));
        }
        Ok(())
    }

    fn write(&mut self, what: &str, object: &Value) {
        let (meta, spec, mut status) = (&object["metadata"], &object["spec"], object["status"].clone());
        let conditions = status.as_object_mut().and_then(|status| status.remove("conditions"));
        self.tell(&format!("  {what} asks for {} in generation {}", spec["replicas"], meta["generation"]));
        self.tell(&format!("    min ready {}, status {status}", spec["minReadySeconds"]));
        for it in in_order(&conditions.unwrap_or_default()) {
            let [kind, status, reason, message] =
                ["type", "status", "reason", "message"].map(|field| it[field].as_str().unwrap_or_default());
            let (reason, message) = progress(reason, message);
            self.tell(&format!("    {kind} {status} {reason}: {message}"));
        }
        self.tell(&format!("    annotations {}", meta["annotations"]));
        self.tell(&format!("    labels {}", meta["labels"]));
    }

    fn tell(&mut self, line: &str) {
        let mut line = line.to_owned();
        for (name, called) in &self.sets {
            line = line.replace(name.as_str(), called);
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

fn about<'a>(deployment: &appsv1::Deployment, events: &'a [corev1::Event]) -> impl Iterator<Item = &'a corev1::Event> {
    events.iter().filter(|event| event.involved_object.uid == deployment.metadata.uid)
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}
