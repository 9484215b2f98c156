//! Claims that grow: the plan, the steps of flex volumes, and their life on an API server in the process.

mod apply;
mod flex;
mod plan;
mod status;

use kcm_framework::api::View as _;
use kcm_framework::api::views::{PersistentVolume, PersistentVolumeClaim};
use serde_json::{Value, json};

/// A claim with a request and a status, bound to the volume `pv`.
fn claim(request: &str, status: &Value) -> PersistentVolumeClaim {
    let claim = json!({
        "metadata": { "namespace": "shop", "name": "data", "uid": "1" },
        "spec": { "volumeName": "pv", "resources": { "requests": { "storage": request } } },
        "status": status,
    });
    PersistentVolumeClaim::decode(&claim.to_string()).unwrap()
}

/// A volume with a capacity, an annotation with the old capacity of the claim if there is one, and a source.
fn volume(capacity: &str, before: Option<&str>, source: &Value) -> PersistentVolume {
    let annotations = before.map(|before| json!({ "volume.alpha.kubernetes.io/pre-resize-capacity": before }));
    let mut volume = json!({
        "metadata": { "name": "pv", "annotations": annotations },
        "spec": {
            "capacity": { "storage": capacity },
            "claimRef": { "namespace": "shop", "name": "data", "uid": "1" },
        },
    });
    for (field, value) in source.as_object().expect("a source is an object") {
        volume["spec"][field] = value.clone();
    }
    PersistentVolume::decode(&volume.to_string()).unwrap()
}
