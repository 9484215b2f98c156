//! The kind `Website`, and the decisions about it: plain functions without a client or a clock.

use jiff::Timestamp;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The field manager of what the operator applies.
pub const MANAGER: &str = "website-controller";

/// The finalizer, which keeps a website until its host name is free again.
pub const FINALIZER: &str = "example.com/host-name";

/// The port of the container and of the Service.
pub const PORT: i32 = 80;

/// A website: an image, the number of its replicas, and the host name under which it is reached.
#[derive(CustomResource, Deserialize, Serialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
#[kube(derive = "Default", derive = "PartialEq")]
#[expect(clippy::duplicated_attributes, reason = "two columns are two attributes")]
#[kube(printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"))]
#[kube(printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"))]
pub struct WebsiteSpec {
    /// The container image, which serves on port 80.
    pub image: String,
    /// The number of pods.
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// The host name, unique among all websites.
    pub host: String,
}

/// The status of a website.
#[derive(Deserialize, Serialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct WebsiteStatus {
    /// The generation of the spec that the status describes.
    pub observed_generation: i64,
    /// The number of ready pods.
    pub ready_replicas: i32,
    /// The conditions; `Ready` is the only type.
    pub conditions: Vec<WebsiteCondition>,
}

/// A condition, with the fields of `metav1.Condition`.
#[derive(Deserialize, Serialize, JsonSchema, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct WebsiteCondition {
    /// The type.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True` or `False`.
    pub status: String,
    /// The reason for the status, in one word.
    pub reason: String,
    /// The reason for the status, for people.
    pub message: String,
    /// When the status changed, in RFC 3339.
    pub last_transition_time: String,
}

/// Result of publishing a host name for a website.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostState {
    /// It leads to this website.
    Published,
    /// It leads to the website with this namespace and name.
    Taken(String),
}

impl Website {
    /// Namespace and name, joined by a slash.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace().unwrap_or_default(), self.name_any())
    }

    fn owner_references(&self) -> Value {
        json!([{
            "apiVersion": "example.com/v1", "kind": "Website", "name": self.name_any(), "uid": self.uid(),
            "controller": true, "blockOwnerDeletion": true,
        }])
    }

    /// The label that selects the pods of the website.
    #[must_use]
    pub fn selector(&self) -> (&'static str, String) {
        ("example.com/website", self.name_any())
    }

    fn labels(&self) -> Value {
        let (key, value) = self.selector();
        json!({ key: value })
    }

    /// The Deployment to apply.
    #[must_use]
    pub fn deployment(&self) -> Value {
        let container = json!({ "name": "web", "image": self.spec.image, "ports": [{ "containerPort": PORT }] });
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": self.name_any(), "namespace": self.namespace(),
                "labels": self.labels(), "ownerReferences": self.owner_references(),
            },
            "spec": {
                "replicas": self.spec.replicas,
                "selector": { "matchLabels": self.labels() },
                "template": { "metadata": { "labels": self.labels() }, "spec": { "containers": [container] } },
            },
        })
    }

    /// The Service to apply.
    #[must_use]
    pub fn service(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": self.name_any(), "namespace": self.namespace(),
                "labels": self.labels(), "ownerReferences": self.owner_references(),
            },
            "spec": { "selector": self.labels(), "ports": [{ "name": "http", "port": PORT, "protocol": "TCP" }] },
        })
    }

    /// The status at `now`. The transition time of a condition changes with its status only.
    #[must_use]
    pub fn next_status(&self, host: &HostState, ready_replicas: i32, now: Timestamp) -> WebsiteStatus {
        let (status, reason, message) = match host {
            HostState::Taken(by) => ("False", "HostTaken", format!("host {} leads to {by}", self.spec.host)),
            HostState::Published if ready_replicas < self.spec.replicas => {
                ("False", "Progressing", format!("{ready_replicas} of {} pods are ready", self.spec.replicas))
            }
            HostState::Published => ("True", "Available", format!("host {} is served", self.spec.host)),
        };
        let before = self.status.iter().flat_map(|status| &status.conditions).find(|before| before.status == status);
        let last_transition_time = before.map_or_else(|| now.to_string(), |before| before.last_transition_time.clone());
        let condition = WebsiteCondition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time,
        };
        WebsiteStatus {
            observed_generation: self.metadata.generation.unwrap_or_default(),
            ready_replicas,
            conditions: vec![condition],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn website(replicas: i32) -> Website {
        let spec = WebsiteSpec { image: "nginx".to_owned(), replicas, host: "shop.example.com".to_owned() };
        let mut website = Website::new("shop", spec);
        website.metadata.generation = Some(3);
        website
    }

    #[test]
    fn a_website_is_ready_when_its_host_is_its_own_and_all_pods_are_ready() {
        let now = Timestamp::UNIX_EPOCH;
        for (host, ready, expected) in [
            (HostState::Published, 2, ("True", "Available")),
            (HostState::Published, 1, ("False", "Progressing")),
            (HostState::Taken("a/b".to_owned()), 2, ("False", "HostTaken")),
        ] {
            let status = website(2).next_status(&host, ready, now);
            let condition = &status.conditions[0];
            assert_eq!((&*condition.status, &*condition.reason), expected);
            assert_eq!((status.observed_generation, status.ready_replicas), (3, ready));
        }
    }

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(60).unwrap());
        let mut website = website(2);
        website.status = Some(website.next_status(&HostState::Published, 0, early));
        let time = |status: &WebsiteStatus| status.conditions[0].last_transition_time.clone();
        assert_eq!(time(&website.next_status(&HostState::Published, 1, late)), early.to_string());
        assert_eq!(time(&website.next_status(&HostState::Published, 2, late)), late.to_string());
    }
}
