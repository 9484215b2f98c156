//! What the operator reads of the Deployments and Services of websites, and when they are applied again.

use kcm_framework::api::{Labels, Resource, message, view};

use crate::website::{PORT, Website};

view! {
    /// A Deployment.
    pub struct OwnedDeployment {
        resource: Resource::namespaced("apps", "v1", "deployments", "Deployment");

        "spec" {
            /// `spec.replicas`.
            pub replicas: Option<i32> = "replicas";
            "template" {
                "spec" {
                    /// `spec.template.spec.containers`.
                    pub containers: Vec<Container> = "containers";
                }
            }
        }
        "status" {
            /// `status.readyReplicas`.
            pub ready_replicas: i32 = "readyReplicas";
        }
    }
}

message! {
    /// A container.
    pub struct Container {
        /// `image`.
        pub image: String = "image";
    }
}

view! {
    /// A Service.
    pub struct OwnedService {
        resource: Resource::namespaced("", "v1", "services", "Service");

        "spec" {
            /// `spec.selector`.
            pub selector: Labels = "selector";
            /// `spec.ports`.
            pub ports: Vec<Port> = "ports";
        }
    }
}

message! {
    /// A port of a Service.
    pub struct Port {
        /// `port`.
        pub port: i32 = "port";
    }
}

impl OwnedDeployment {
    /// Whether the fields that `website` sets are as it sets them.
    pub(crate) fn is_current(&self, website: &Website) -> bool {
        self.replicas == Some(website.spec.replicas)
            && self.containers.iter().map(|container| &container.image).eq([&website.spec.image])
    }
}

impl OwnedService {
    /// Whether the fields that `website` sets are as it sets them.
    pub(crate) fn is_current(&self, website: &Website) -> bool {
        let selected = website.selector();
        self.selector.len() == 1
            && self.selector.get(selected.0) == Some(selected.1.as_str())
            && self.ports.iter().map(|port| port.port).eq([PORT])
    }
}
