//! The `Lease` object and the record in it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kcm_framework::api::time::format_micros;
use kcm_framework::api::{DecodeError, KnownView, Meta, ObjectKey, PartialObjectMeta, Resource, View};
use kcm_framework::{CacheVersions, Predecessor};
use serde::{Deserialize, Serialize};
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

/// The annotation of a released lease: what its last holder hands over to the next.
const HANDOVER: &str = "kube-controller-manager/handover";

/// The value of [`HANDOVER`]. It is valid for one release: upstream's manager keeps annotations that it does not know, and
/// may hold and release the lease after ours.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handover {
    lease_transitions: i32,
    renew_time: String,
    cache_versions: CacheVersions,
}

impl LeaseObject {
    /// The manager that a process succeeds that takes the lease from this object.
    pub(crate) fn predecessor(&self) -> Predecessor {
        let text = self.json["metadata"]["annotations"][HANDOVER].as_str();
        let handover = text.and_then(|text| serde_json::from_str::<Handover>(text).ok());
        let is_of_this_release = |handover: &Handover| {
            self.record.holder.is_empty()
                && handover.lease_transitions == self.record.transitions
                && self.json["spec"]["renewTime"] == *handover.renew_time
        };
        match handover.filter(is_of_this_release) {
            Some(handover) => Predecessor::Released(Arc::new(handover.cache_versions)),
            None => Predecessor::Unknown,
        }
    }

    /// The body that frees the lease, and hands over to the next holder.
    pub(crate) fn released(&self, record: &LeaseRecord, cache_versions: CacheVersions) -> Value {
        let mut json = self.updated(record);
        let handover = Handover {
            lease_transitions: record.transitions,
            renew_time: format_micros(record.renewed_at),
            cache_versions,
        };
        let text = serde_json::to_string(&handover).expect("numbers and texts are JSON");
        json["metadata"]["annotations"][HANDOVER] = Value::String(text);
        json
    }

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
        if let Some(Value::Object(annotations)) = json.pointer_mut("/metadata/annotations") {
            annotations.remove(HANDOVER);
        }
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
    fn a_handover_is_valid_for_one_release() {
        let held = json!({
            "metadata": { "name": "l", "resourceVersion": "7", "annotations": { "a": "b" } },
            "spec": { "holderIdentity": "first", "leaseDurationSeconds": 15, "leaseTransitions": 3 },
        });
        let of = |json: &Value| LeaseObject::decode(&json.to_string()).unwrap();
        let versions: CacheVersions = serde_json::from_value(json!({ "pods": "7" })).unwrap();
        let record = LeaseRecord { holder: String::new(), ..Arc::new(of(&held)).lease().record };
        let released = of(&held).released(&record, versions.clone());
        assert_eq!(of(&released).predecessor(), Predecessor::Released(Arc::new(versions)));
        assert_eq!(of(&held).predecessor(), Predecessor::Unknown);
        for (path, value) in [
            ("/spec/holderIdentity", json!("second")),
            ("/spec/leaseTransitions", json!(4)),
            ("/spec/renewTime", json!("2030-01-02T03:04:05.000006Z")),
            ("/metadata/annotations/kube-controller-manager~1handover", json!("{}")),
        ] {
            let mut changed = released.clone();
            *changed.pointer_mut(path).unwrap() = value;
            assert_eq!(of(&changed).predecessor(), Predecessor::Unknown, "{path}");
        }
        let taken = of(&released).updated(&LeaseRecord { holder: "second".to_owned(), ..record });
        assert_eq!(taken["metadata"]["annotations"], json!({ "a": "b" }), "its holder keeps none of it");
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
