//! The Pods of a Node.

use std::sync::Arc;

use kcm_framework::api::views::Pod;
use kcm_framework::api::{InternedStr, ObjectKey};
use kcm_framework::informers::{Index, Informer};

/// An index of Pods by the Node that they are assigned to.
#[derive(Clone)]
pub(crate) struct PodsByNode(Index<Pod, InternedStr>);

impl PodsByNode {
    pub(crate) fn new(pods: &Informer<Pod>) -> Self {
        Self(pods.index("node", node_name))
    }

    pub(crate) fn get(&self, node: &str) -> Vec<Arc<Pod>> {
        self.0.get(node)
    }

    pub(crate) fn keys(&self, node: &str) -> Vec<ObjectKey> {
        self.get(node).iter().map(|pod| pod.metadata.key.clone()).collect()
    }
}

fn node_name(pod: &Pod) -> Option<InternedStr> {
    pod.node_name.clone()
}
