//! The `Lease` object and the record in it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::time::format_micros;
use kcm_framework::api::{DecodeError, KnownView, Meta, ObjectKey, PartialObjectMeta, Resource, View};
use serde::Deserialize;
use serde_json::{Value, json};

use super::elector::{Lease, LeaseRecord};

/// A `Lease`, with the JSON that it was read from: an update keeps the fields that are not part of the record.
#[derive(Debug, Clone)]
pub(crate) struct LeaseObject {
    meta: Meta,
    record: LeaseRecord,
    json: Value,
}

#[derive(Debug, Default, Deserialize)]
struct Body {
    spec: Option<Spec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i32>,
    acquire_time: Option<Timestamp>,
    renew_time: Option<Timestamp>,
    lease_transitions: Option<i32>,
}

impl LeaseObject {
    /// The record and the version of the lease, with this object.
    pub(crate) fn lease(self: Arc<Self>) -> Lease<Arc<Self>> {
        Lease { record: self.record.clone(), version: self.meta.resource_version.clone(), object: self }
    }

    /// The body that creates a lease.
    pub(crate) fn created(key: &ObjectKey, record: &LeaseRecord) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "namespace": key.namespace(), "name": key.name() },
            "spec": spec(record),
        })
    }

    /// The body that updates the lease to `record`, based on the version of this object.
    pub(crate) fn updated(&self, record: &LeaseRecord) -> Value {
        let mut json = self.json.clone();
        if let (Value::Object(old), Value::Object(new)) = (&mut json["spec"], spec(record)) {
            // Upstream's update drops the fields that coordinated leader election has set.
            old.retain(|field, _| field != "preferredHolder" && field != "strategy");
            old.extend(new);
        } else {
            json["spec"] = spec(record);
        }
        json
    }
}

fn spec(record: &LeaseRecord) -> Value {
    json!({
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration.as_secs(),
        "acquireTime": format_micros(record.acquired_at),
        "renewTime": format_micros(record.renewed_at),
        "leaseTransitions": record.transitions,
    })
}

impl View for LeaseObject {
    fn decode(text: &str) -> Result<Self, DecodeError> {
        let PartialObjectMeta { metadata: meta } = serde_json::from_str(text)?;
        let Body { spec } = serde_json::from_str(text)?;
        let Spec { holder_identity, lease_duration_seconds, acquire_time, renew_time, lease_transitions } =
            spec.unwrap_or_default();
        let record = LeaseRecord {
            holder: holder_identity.unwrap_or_default(),
            duration: Duration::from_secs(
                u64::try_from(lease_duration_seconds.unwrap_or_default()).unwrap_or_default(),
            ),
            acquired_at: acquire_time.unwrap_or_default(),
            renewed_at: renew_time.unwrap_or_default(),
            transitions: lease_transitions.unwrap_or_default(),
        };
        Ok(Self { meta, record, json: serde_json::from_str(text)? })
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl KnownView for LeaseObject {
    const RESOURCE: Resource = Resource::namespaced("coordination.k8s.io", "v1", "leases", "Lease");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_keeps_what_is_not_part_of_the_record() {
        let text = json!({
            "metadata": { "namespace": "kube-system", "name": "l", "resourceVersion": "7", "labels": { "a": "b" } },
            "spec": {
                "holderIdentity": "other", "leaseDurationSeconds": 15, "leaseTransitions": 3, "future": true,
                "acquireTime": "2030-01-02T03:04:05.000006Z", "renewTime": null,
                "preferredHolder": "third", "strategy": "OldestEmulationVersion",
            },
        });
        let object = LeaseObject::decode(&text.to_string()).unwrap();
        let Lease { record, version, object } = Arc::new(object).lease();
        assert_eq!((&*record.holder, record.duration, record.transitions), ("other", Duration::from_secs(15), 3));
        assert_eq!(version, "7".into());
        let updated = object.updated(&LeaseRecord { holder: "me".to_owned(), ..record });
        assert_eq!(updated["metadata"], text["metadata"]);
        assert_eq!(
            updated["spec"],
            json!({
                "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 3, "future": true,
                "acquireTime": "2030-01-02T03:04:05.000006Z", "renewTime": "1970-01-01T00:00:00.000000Z",
            })
        );
    }

    #[test]
    fn a_lease_without_a_record_is_free() {
        for text in [r#"{"metadata":{"name":"l"}}"#, r#"{"metadata":{"name":"l"},"spec":{"leaseDurationSeconds":-1}}"#]
        {
            let Lease { record, .. } = Arc::new(LeaseObject::decode(text).unwrap()).lease();
            assert_eq!((&*record.holder, record.duration), ("", Duration::ZERO));
        }
    }
}
