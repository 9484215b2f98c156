//! The view of a `ResourceClaim`.

use std::collections::BTreeMap;

use crate::intern::InternedStr;
use crate::key::Uid;
use crate::resource::Resource;
use crate::resource_list::ResourceList;
use crate::scheduling::Toleration;

crate::view! {
    /// A resource claim of dynamic resource allocation.
    pub struct ResourceClaim {
        resource: Resource::namespaced("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim");
        // The first says that the scheduler created the claim for the extended resources of a pod. The second names the
        // entry of the pod for which the claim was created from a template.
        annotations: ["resource.kubernetes.io/extended-resource-claim", "resource.kubernetes.io/pod-claim-name"];
        parts: ResourceClaimPart [ClaimDevices];

        "spec" @ 2 {
            "devices" @ 1 {
                let requests: Vec<DeviceRequest> = "requests" @ 1;
                /// Largest number of devices of each class that the claim may be allocated, sorted by class.
                ///
                /// A request for all devices counts as 32, the most that a claim can have. A request with an unknown
                /// mode counts as 0.
                pub devices: Box<[(InternedStr, i64)]> = devices_by_class(&requests);
                /// Whether any request asks for admin access.
                pub has_admin_access: bool = has_admin_access(&requests);
            }
        }
        "status" @ 3 {
            let allocation: Option<Allocation> = "allocation" @ 1;
            /// Whether the claim is allocated.
            pub is_allocated: bool = allocation.is_some();
            /// `status.reservedFor`: the consumers of the claim.
            pub reserved_for: Box<[ClaimConsumer]> = "reservedFor" @ 2;
        }
    }
}

crate::message! {
    struct Allocation {}
}

crate::message! {
    /// A consumer of a resource claim.
    #[derive(Eq)]
    pub struct ClaimConsumer {
        /// `apiGroup`, empty for the core group.
        pub api_group: InternedStr = "apiGroup" @ 1;
        /// `resource`, such as `pods`.
        pub resource: InternedStr = "resource" @ 3;
        /// `name`
        pub name: Box<str> = "name" @ 4;
        /// `uid`
        pub uid: Uid = "uid" @ 5;
    }
}

crate::message! {
    /// The devices that a resource claim is allocated.
    pub struct ClaimDevices {
        "status" @ 3 {
            "allocation" @ 1 {
                "devices" @ 1 {
                    /// `status.allocation.devices.results`, in order.
                    pub results: Box<[AllocatedDevice]> = "results" @ 1;
                }
            }
        }
    }
}

crate::message! {
    /// A device that a resource claim is allocated.
    pub struct AllocatedDevice {
        /// `driver`
        pub driver: InternedStr = "driver" @ 2;
        /// `pool`
        pub pool: InternedStr = "pool" @ 3;
        /// `device`
        pub device: InternedStr = "device" @ 4;
        /// `adminAccess`
        pub has_admin_access: bool = "adminAccess" @ 5;
        /// `tolerations`, in order.
        pub tolerations: Box<[Toleration]> = "tolerations" @ 6;
        /// `consumedCapacity`, by the name of the capacity.
        pub consumed_capacity: ResourceList = "consumedCapacity" @ 10;
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
        is_admin: bool = "adminAccess" @ 5;
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

/// Returns `true` if a request asks for admin access. Alternatives cannot ask for it.
fn has_admin_access(requests: &[DeviceRequest]) -> bool {
    requests.iter().any(|request| request.exactly.as_ref().is_some_and(|exactly| exactly.is_admin))
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
