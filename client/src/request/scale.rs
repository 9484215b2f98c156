//! The `scale` subresource: `autoscaling/v1` `Scale`, of any kind.

use kcm_api::{ObjectKey, ResourceVersion, Uid};
use serde::{Deserialize, Serialize};

use super::payload::Payload;

/// The scale of an object of any kind that has the `scale` subresource.
///
/// The kind itself need not be known: its API server or its CRD maps the fields of the scale.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scale {
    /// The uid of the object.
    pub uid: Uid,
    /// The resource version of the object. If it is set, an update of another version is a conflict.
    pub resource_version: ResourceVersion,
    /// Number of replicas that are wanted.
    pub replicas: i32,
    /// Number of replicas that exist.
    pub current_replicas: i32,
    /// The label selector of the replicas; empty if the kind does not have one.
    pub selector: String,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
    #[serde(skip_serializing)]
    status: Status,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Uid::is_unset")]
    uid: Uid,
    #[serde(skip_serializing_if = "ResourceVersion::is_unset")]
    resource_version: ResourceVersion,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Spec {
    replicas: i32,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    replicas: i32,
    selector: Option<String>,
}

impl Scale {
    pub(crate) fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let Body { metadata, spec, status, .. } = serde_json::from_slice(json)?;
        Ok(Self {
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            replicas: spec.replicas,
            current_replicas: status.replicas,
            selector: status.selector.unwrap_or_default(),
        })
    }

    /// The body that updates the scale of the object `key`.
    #[must_use]
    pub fn payload(&self, key: &ObjectKey) -> Payload {
        Payload::json(&Body {
            api_version: "autoscaling/v1".to_owned(),
            kind: "Scale".to_owned(),
            metadata: Metadata {
                name: key.name().to_owned(),
                namespace: key.namespace().map(str::to_owned),
                uid: self.uid.clone(),
                resource_version: self.resource_version.clone(),
            },
            spec: Spec { replicas: self.replicas },
            status: Status::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_read_whole_and_written_without_its_status() {
        let json = r#"{"kind":"Scale","apiVersion":"autoscaling/v1",
            "metadata":{"name":"web","namespace":"a","uid":"u","resourceVersion":"7","creationTimestamp":null},
            "spec":{"replicas":3},"status":{"replicas":2,"selector":"app=web"}}"#;
        let mut scale = Scale::read(json.as_bytes()).unwrap();
        let expected = Scale {
            uid: "u".into(),
            resource_version: "7".into(),
            replicas: 3,
            current_replicas: 2,
            selector: "app=web".to_owned(),
        };
        assert_eq!(scale, expected);
        scale.replicas = 5;
        let written: serde_json::Value =
            serde_json::from_slice(&scale.payload(&ObjectKey::namespaced("a", "web")).0.unwrap()).unwrap();
        let expected = serde_json::json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "web", "namespace": "a", "uid": "u", "resourceVersion": "7"},
            "spec": {"replicas": 5},
        });
        assert_eq!(written, expected);
        let empty = Scale::read(br#"{"metadata":{"name":"web"},"spec":{},"status":{"replicas":0}}"#).unwrap();
        assert_eq!(empty, Scale::default(), "zero is left out");
    }
}
