//! Ports of a service in its pods.

use serde_json::json;

use super::{addresses, pod, service};
use crate::shared::ports::port_in_pod;

#[test]
fn a_port_is_a_number_or_the_name_of_a_container_port() {
    let containers = json!([
        { "ports": [{ "name": "http", "containerPort": 8080, "protocol": "TCP" }, { "containerPort": 9, "protocol": "TCP" }] },
        { "ports": [{ "name": "http", "containerPort": 8081, "protocol": "TCP" }, { "name": "dns", "containerPort": 53, "protocol": "UDP" }] },
    ]);
    let init = json!([
        { "ports": [{ "name": "job", "containerPort": 1, "protocol": "TCP" }] },
        { "restartPolicy": "Always", "ports": [{ "name": "proxy", "containerPort": 15001, "protocol": "TCP" },
            { "name": "http", "containerPort": 2, "protocol": "TCP" }] },
    ]);
    let pod = pod("a", &json!({}), &json!({ "spec": { "containers": containers, "initContainers": init } }));
    for (name, target, protocol, expected) in [
        ("a number, whatever the pod has", json!(7), "TCP", Some(7)),
        ("the first container with the name", json!("http"), "TCP", Some(8080)),
        ("the protocol counts", json!("dns"), "TCP", None),
        ("a name with its protocol", json!("dns"), "UDP", Some(53)),
        ("a sidecar", json!("proxy"), "TCP", Some(15001)),
        ("an init container that ends", json!("job"), "TCP", None),
        ("a name that no container has", json!("metrics"), "TCP", None),
    ] {
        let service = service("web", &json!({ "ports": [{ "port": 80, "protocol": protocol, "targetPort": target }] }));
        assert_eq!(port_in_pod(&service.ports[0], addresses().of(&pod)), expected, "{name}");
    }
}
