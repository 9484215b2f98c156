mod apply;
mod event_mapping;
mod plan;

use std::sync::Arc;

use kcm_framework::api::View as _;
use serde_json::{Value, json};

use crate::storageversion_garbage_collector::view::StorageVersion;

/// A storage version with these pairs of an API server and its encoding version.
fn storage_version(name: &str, entries: &[(&str, &str)], status: Value) -> Value {
    let entries: Vec<Value> = entries
        .iter()
        .map(|(server, encoding)| {
            json!({ "apiServerID": server, "encodingVersion": encoding, "decodableVersions": [encoding], "extra": 1 })
        })
        .collect();
    let mut object = json!({
        "metadata": { "name": name, "generation": 3, "resourceVersion": "5" },
        "spec": {},
    });
    object["status"] = status;
    object["status"]["storageVersions"] = json!(entries);
    object
}

fn view(object: &Value) -> Arc<StorageVersion> {
    Arc::new(StorageVersion::decode(&object.to_string()).unwrap())
}

fn condition(status: &str, time: &str, generation: i64) -> Value {
    let (reason, message) = if status == "True" {
        ("CommonEncodingVersionSet", "Common encoding version set")
    } else {
        ("CommonEncodingVersionUnset", "Common encoding version unset")
    };
    json!({
        "type": "AllEncodingVersionsEqual",
        "status": status,
        "observedGeneration": generation,
        "reason": reason,
        "message": message,
        "lastTransitionTime": time,
    })
}
