//! Parts that several controllers of this area share.

mod gates;
mod used_claims;
mod views;

pub(crate) use gates::{
    ADMIN_ACCESS, DEVICE_TAINT_RULES, DEVICE_TAINTS, DYNAMIC_RESOURCE_ALLOCATION, GENERIC_WORKLOAD, POOL_STATUS,
    PRIORITIZED_LIST, WORKLOAD_CLAIMS,
};
pub(crate) use used_claims::{Entry, EntryClaim, SCHEDULING, beside, is_for_pod, is_reserved_for, used_claims};
pub(crate) use views::{Device, DeviceTaintRule, PROGRESS, ResourceSlice};
