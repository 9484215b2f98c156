//! The view of a Node.

use serde::{Deserialize, Deserializer};

use super::conditions::RawCondition;
use super::node_parts::{NodeHealth, NodePodCidrs, NodeVolumes};
use crate::decode::fold;
use crate::protobuf::{Kind, ProtobufType};
use crate::resource::Resource;
use crate::resource_list::ResourceList;
use crate::resource_quantity::ResourceQuantity;
use crate::scheduling::Taint;

crate::view! {
    /// A Node without its JSON.
    pub struct Node {
        resource: Resource::cluster_scoped("", "v1", "nodes", "Node");
        parts: NodePart [NodeHealth, NodePodCidrs, NodeVolumes];

        "spec" @ 2 {
            /// `spec.taints`, empty if it is absent.
            pub taints: Box<[Taint]> = "taints" @ 5;
        }
        "status" @ 3 {
            let allocatable: ResourceList = "allocatable" @ 2;
            /// `status.allocatable.cpu` in thousandths, 0 if it is not known.
            pub allocatable_cpu_millis: i64 = allocatable.get("cpu").map_or(0, ResourceQuantity::millis);
            let ready: Ready = "conditions" @ 4;
            /// Whether the condition `Ready` is true.
            pub is_ready: bool = ready.0;
        }
    }
}

impl Node {
    /// Returns `true` if the node has a taint with this key and any value and effect.
    #[must_use]
    pub fn has_taint(&self, key: &str) -> bool {
        self.taints.iter().any(|taint| &*taint.key == key)
    }
}

/// `true` if the condition `Ready` is true. The first of several conditions counts, as upstream.
#[derive(Default)]
struct Ready(bool);

impl ProtobufType for Ready {
    const KIND: Kind = RawCondition::LIST;
}

impl<'de> Deserialize<'de> for Ready {
    fn deserialize<D: Deserializer<'de>>(conditions: D) -> Result<Self, D::Error> {
        let ready = fold(conditions, None, |ready: &mut Option<bool>, condition: RawCondition<'de>| {
            if condition.is_of_type("Ready") {
                ready.get_or_insert(condition.is_true());
            }
        })?;
        Ok(Self(ready.unwrap_or(false)))
    }
}
