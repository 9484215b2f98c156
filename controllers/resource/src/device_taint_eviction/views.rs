//! The views of rules and slices.

use kcm_framework::api::views::Taint;
use kcm_framework::api::{Condition, InternedStr, Resource};

kcm_framework::api::view! {
    /// A rule that taints devices.
    pub(crate) struct DeviceTaintRule {
        resource: Resource::cluster_scoped("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule");

        "spec" {
            /// `spec.deviceSelector`; `None` selects no device.
            pub(crate) selector: Option<DeviceSelector> = "deviceSelector";
            /// `spec.taint`
            pub(crate) taint: Taint = "taint";
        }
        "status" {
            let conditions: Vec<Condition> = "conditions";
            /// The condition `EvictionInProgress`.
            pub(crate) progress: Option<Box<Condition>> = progress(conditions);
        }
    }
}

/// The type of the condition of a rule.
pub(super) const PROGRESS: &str = "EvictionInProgress";

fn progress(conditions: Vec<Condition>) -> Option<Box<Condition>> {
    conditions.into_iter().find(|condition| &*condition.type_ == PROGRESS).map(Box::new)
}

kcm_framework::api::message! {
    /// The devices of a rule. A field that is not set selects all.
    #[derive(Eq)]
    pub(crate) struct DeviceSelector {
        driver: Option<InternedStr> = "driver";
        pool: Option<InternedStr> = "pool";
        device: Option<InternedStr> = "device";
    }
}

impl DeviceTaintRule {
    /// Returns `true` if the rule selects the device.
    pub(crate) fn selects(&self, driver: &str, pool: &str, device: &str) -> bool {
        let Some(selector) = &self.selector else { return false };
        let matches =
            |wanted: &Option<InternedStr>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        matches(&selector.driver, driver) && matches(&selector.pool, pool) && matches(&selector.device, device)
    }

    /// Returns `true` if the rule is the same as another one, apart from its status.
    pub(super) fn has_spec_of(&self, other: &Self) -> bool {
        (&self.metadata.uid, &self.selector, &self.taint) == (&other.metadata.uid, &other.selector, &other.taint)
    }
}

kcm_framework::api::view! {
    /// The devices that a driver publishes, with their taints.
    pub(crate) struct ResourceSlice {
        resource: Resource::cluster_scoped("resource.k8s.io", "v1", "resourceslices", "ResourceSlice");

        "spec" @ 2 {
            /// `spec.driver`
            pub(crate) driver: InternedStr = "driver" @ 1;
            "pool" @ 2 {
                /// `spec.pool.name`
                pub(crate) pool: InternedStr = "name" @ 1;
                /// `spec.pool.generation`
                pub(crate) pool_generation: i64 = "generation" @ 2;
            }
            /// `spec.devices`
            pub(crate) devices: Box<[Device]> = "devices" @ 6;
        }
    }
}

kcm_framework::api::message! {
    /// A published device.
    pub(crate) struct Device {
        /// `name`
        pub(crate) name: InternedStr = "name" @ 1;
        /// `taints`, in order.
        pub(crate) taints: Box<[Taint]> = "taints" @ 8;
    }
}

impl Device {
    /// Returns the taints that evict Pods.
    pub(super) fn evicting(&self) -> impl Iterator<Item = &Taint> {
        self.taints.iter().filter(|taint| taint.evicts())
    }
}
