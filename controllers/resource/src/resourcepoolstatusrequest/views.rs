//! The views of requests, and of slices as they are read live.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kcm_framework::api::views::Taint;
use kcm_framework::api::{Condition, InternedStr, Resource, ResourceQuantity};

kcm_framework::api::view! {
    /// A request for the status of the pools of a driver.
    pub(super) struct PoolStatusRequest {
        resource: Resource::cluster_scoped(
            "resource.k8s.io",
            "v1alpha3",
            "resourcepoolstatusrequests",
            "ResourcePoolStatusRequest"
        );

        "spec" {
            pub(super) driver: InternedStr = "driver";
            let pool: Option<InternedStr> = "poolName";
            /// `spec.poolName`, `None` if it is absent or empty.
            pub(super) pool: Option<InternedStr> = pool.filter(|pool| !pool.is_empty());
            let limit: Option<u32> = "limit";
            /// `spec.limit`: the most pools that the status shows.
            pub(super) limit: usize = limit.and_then(|limit| limit.try_into().ok()).unwrap_or(DEFAULT_LIMIT);
            /// `spec.defaultPartitionTypeAttribute`, `None` if it is absent.
            pub(super) partition_attribute: Option<InternedStr> = "defaultPartitionTypeAttribute";
        }
        let status: Option<RequestStatus> = "status";
        /// `true` if the request has a status, after which it is never computed again.
        pub(super) has_status: bool = status.is_some();
        /// Transition time of the condition `Complete` or `Failed`, `None` without such a condition.
        pub(super) completed: Option<Timestamp> = status.and_then(|status| status.completed);
    }
}

/// Most pools of a status if the request sets no limit.
const DEFAULT_LIMIT: usize = 100;

kcm_framework::api::message! {
    struct RequestStatus {
        let conditions: Vec<Condition> = "conditions";
        completed: Option<Timestamp> = completed(&conditions);
    }
}

fn completed(conditions: &[Condition]) -> Option<Timestamp> {
    let is_end = |condition: &&Condition| ["Complete", "Failed"].contains(&&*condition.type_);
    conditions.iter().find(is_end)?.last_transition_time
}

kcm_framework::api::view! {
    /// A slice with all that a status shows. It is read live and never cached.
    pub(super) struct PublishedSlice {
        resource: Resource::cluster_scoped("resource.k8s.io", "v1", "resourceslices", "ResourceSlice");

        "spec" {
            pub(super) driver: InternedStr = "driver";
            "pool" {
                pub(super) pool: InternedStr = "name";
                pub(super) generation: i64 = "generation";
                pub(super) slice_count: i64 = "resourceSliceCount";
            }
            pub(super) node_name: InternedStr = "nodeName";
            pub(super) devices: Vec<PublishedDevice> = "devices";
            pub(super) shared_counters: Vec<CounterSet> = "sharedCounters";
            let partition_attribute: Option<InternedStr> = "partitionTypeAttribute";
            pub(super) partition_attribute: Option<InternedStr> =
                partition_attribute.filter(|attribute| !attribute.is_empty());
        }
    }
}

kcm_framework::api::message! {
    pub(super) struct PublishedDevice {
        pub(super) name: InternedStr = "name";
        pub(super) attributes: BTreeMap<String, Attribute> = "attributes";
        pub(super) capacity: BTreeMap<String, Amount> = "capacity";
        pub(super) consumes: Vec<CounterSet> = "consumesCounters";
        pub(super) is_shareable: bool = "allowMultipleAllocations";
        pub(super) taints: Vec<Taint> = "taints";
    }
}

kcm_framework::api::message! {
    pub(super) struct Attribute {
        pub(super) text: Option<String> = "string";
    }
}

kcm_framework::api::message! {
    /// A capacity of a device, or a counter.
    pub(super) struct Amount {
        pub(super) value: ResourceQuantity = "value";
    }
}

kcm_framework::api::message! {
    /// Counters that a slice shares among its devices, or that a device consumes.
    pub(super) struct CounterSet {
        // A slice names its set, a device the set that it consumes.
        let own: Option<InternedStr> = "name";
        let consumed: Option<InternedStr> = "counterSet";
        pub(super) name: InternedStr = own.or(consumed).unwrap_or_default();
        pub(super) counters: BTreeMap<String, Amount> = "counters";
    }
}
