//! What services add to the usage of a quota.

use kcm_framework::api::views::Service;
use serde_json::json;

use super::{GATES, decode, used};
use crate::resourcequota::evaluator::Evaluator;
use crate::resourcequota::evaluator::services::replenishes;
use crate::resourcequota::observe::Content;

const ALL: [&str; 4] = ["count/services", "services", "services.loadbalancers", "services.nodeports"];

#[test]
fn a_service_counts_as_its_node_ports_and_load_balancer() {
    for (name, spec, [load_balancers, node_ports]) in [
        ("within the cluster", json!({ "type": "ClusterIP", "ports": [{ "port": 1 }] }), [0, 0]),
        ("no type", json!({}), [0, 0]),
        ("node ports", json!({ "type": "NodePort", "ports": [{ "port": 1 }, { "port": 2 }] }), [0, 2]),
        ("a load balancer", json!({ "type": "LoadBalancer", "ports": [{ "port": 1 }, { "port": 2 }] }), [1, 2]),
        ("a load balancer without ports", json!({ "type": "LoadBalancer" }), [1, 0]),
        (
            "node ports asked for",
            json!({ "type": "LoadBalancer", "allocateLoadBalancerNodePorts": true, "ports": [{ "port": 1 }] }),
            [1, 1],
        ),
        (
            "node ports refused",
            json!({ "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{ "port": 1 }] }),
            [1, 0],
        ),
        (
            "node ports refused, and one named",
            json!({
                "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
                "ports": [{ "port": 1, "nodePort": 30000 }, { "port": 2 }],
            }),
            [1, 1],
        ),
    ] {
        let service = decode::<Service>(&json!({ "metadata": {}, "spec": spec }));
        let found = used(&ALL, json!({}), Evaluator::Services, Content::Services(vec![service]), GATES);
        let expected = [
            "count/services=1".to_owned(),
            "services=1".to_owned(),
            format!("services.loadbalancers={load_balancers}"),
            format!("services.nodeports={node_ports}"),
        ];
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_quota_with_a_scope_counts_no_service() {
    let services = Content::Services(vec![decode(&json!({ "metadata": {} }))]);
    let found = used(&["services"], json!({ "scopes": ["BestEffort"] }), Evaluator::Services, services, GATES);
    assert_eq!(found, ["services=0"]);
}

#[test]
fn an_update_replenishes_where_it_changes_the_type() {
    let service = |type_: &str, port: i32| {
        decode::<Service>(&json!({ "metadata": {}, "spec": { "type": type_, "ports": [{ "nodePort": port }] } }))
    };
    for (old, new, expected) in [
        (("ClusterIP", 0), ("ExternalName", 0), false),
        (("NodePort", 1), ("NodePort", 2), false),
        (("NodePort", 1), ("ClusterIP", 0), true),
        (("LoadBalancer", 1), ("NodePort", 1), true),
    ] {
        assert_eq!(replenishes(&service(old.0, old.1), &service(new.0, new.1)), expected, "{old:?} {new:?}");
    }
}
