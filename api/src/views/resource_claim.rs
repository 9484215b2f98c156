//! The view of a `ResourceClaim`.

use std::collections::BTreeMap;

use crate::intern::InternedStr;
use crate::resource::Resource;

crate::view! {
    /// A resource claim of dynamic resource allocation.
    pub struct ResourceClaim {
        resource: Resource::namespaced("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim");
        // says that the scheduler made the claim for the extended resources of a pod
        annotations: ["resource.kubernetes.io/extended-resource-claim"];

        "spec" @ 2 {
            "devices" @ 1 {
                let requests: Vec<DeviceRequest> = "requests" @ 1;
                /// Largest number of devices of each class that the claim may be allocated, sorted by class.
                ///
                /// A request for all devices counts as 32, the most that a claim can have. A request with an unknown
                /// mode counts as 0.
                pub devices: Box<[(InternedStr, i64)]> = devices_by_class(&requests);
            }
        }
    }
}

crate::message! {
    struct DeviceRequest {
        exactly: Option<ExactRequest> = "exactly" @ 2;
        first_available: Vec<SubRequest> = "firstAvailable" @ 3;
    }
}

crate::message! {
    struct ExactRequest {
        class: InternedStr = "deviceClassName" @ 1;
        mode: InternedStr = "allocationMode" @ 3;
        count: i64 = "count" @ 4;
    }
}

crate::message! {
    struct SubRequest {
        class: InternedStr = "deviceClassName" @ 2;
        mode: InternedStr = "allocationMode" @ 4;
        count: i64 = "count" @ 5;
    }
}

/// The most devices that a claim can be allocated (upstream: `AllocationResultsMaxSize`).
const MOST_DEVICES: i64 = 32;

fn devices(mode: &str, count: i64) -> i64 {
    match mode {
        "ExactCount" => count,
        "All" => MOST_DEVICES,
        _ => 0,
    }
}

/// The devices of all requests; of alternatives the most of each class counts.
fn devices_by_class(requests: &[DeviceRequest]) -> Box<[(InternedStr, i64)]> {
    let mut all: BTreeMap<InternedStr, i64> = BTreeMap::new();
    let mut add = |class: &InternedStr, devices: i64| {
        let sum = all.entry(class.clone()).or_default();
        *sum = sum.saturating_add(devices);
    };
    for request in requests {
        let mut most: BTreeMap<&InternedStr, i64> = BTreeMap::new();
        for alternative in &request.first_available {
            let of_class = most.entry(&alternative.class).or_default();
            *of_class = devices(&alternative.mode, alternative.count).max(*of_class);
        }
        for (class, devices) in most {
            add(class, devices);
        }
        if let (true, Some(exactly)) = (request.first_available.is_empty(), &request.exactly) {
            add(&exactly.class, devices(&exactly.mode, exactly.count));
        }
    }
    all.into_iter().collect()
}
