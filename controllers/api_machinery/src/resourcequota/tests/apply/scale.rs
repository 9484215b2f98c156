//! Many namespaces under churn, and many kinds.

use kcm_framework::api::{ObjectKey, Resource};
use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, PODS, RESOURCE_QUOTAS, SandboxOptions, Verb};
use serde_json::json;

use super::{create, create_in, environment, limit, limit_in, start, uses};
use crate::resourcequota::DESCRIPTOR;

const NAMESPACES: usize = 1_000;

#[tokio::test(start_paused = true)]
async fn a_thousand_quotas_are_right_after_churn() {
    let options = SandboxOptions { request_log: 0, managed_fields: false, ..SandboxOptions::default() };
    let environment = TestEnvironment::new([DESCRIPTOR]).sandbox_options(options).prepare(|sandbox| {
        for number in 0..NAMESPACES {
            let namespace = format!("n{number}");
            sandbox.create_namespace(&namespace).unwrap();
            create_in(sandbox, &PODS, &namespace, "pod");
            create_in(sandbox, &CONFIG_MAPS, &namespace, "map-0");
            limit_in(sandbox, &namespace, &json!({ "configmaps": "10", "pods": "10" }));
        }
    });
    let cluster = environment.start().await;
    cluster.watches(&[RESOURCE_QUOTAS, PODS, CONFIG_MAPS]).await;
    for round in 1..=3 {
        for number in 0..NAMESPACES {
            let namespace = format!("n{number}");
            create_in(cluster.sandbox(), &CONFIG_MAPS, &namespace, &format!("map-{round}"));
            if (number + round) % 3 == 0 {
                let map = ObjectKey::namespaced(&*namespace, format!("map-{}", round - 1));
                cluster.sandbox().delete(&CONFIG_MAPS, &map).unwrap();
            }
        }
        cluster.settle().await;
    }
    // As the API server charges what is created, the last change of each namespace is a deletion.
    for number in 0..NAMESPACES {
        let pod = ObjectKey::namespaced(format!("n{number}"), "pod");
        cluster.sandbox().delete_now(&PODS, &pod).unwrap();
        let map = ObjectKey::namespaced(format!("n{number}"), "map-3");
        cluster.sandbox().delete(&CONFIG_MAPS, &map).unwrap();
    }
    cluster
        .eventually("every usage is a naive sum", |sandbox| {
            sandbox.list(&RESOURCE_QUOTAS, None).iter().all(|quota| {
                let namespace = quota["metadata"]["namespace"].as_str().unwrap_or_default();
                let maps = sandbox.list(&CONFIG_MAPS, Some(namespace)).len();
                quota["status"]["used"] == json!({ "configmaps": maps.to_string(), "pods": "0" })
            })
        })
        .await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:04:00Z".parse().unwrap(), "by no resync");
}

#[tokio::test(start_paused = true)]
async fn a_slow_kind_among_three_hundred_keeps_no_quota_from_being_computed() {
    let kind = |number: usize| Resource {
        plural: format!("kind{number}s").into(),
        kind: format!("Kind{number}").into(),
        ..Resource::namespaced("many.example.com", "v1", "", "")
    };
    let environment = environment().prepare(move |sandbox| {
        for number in 0..300 {
            sandbox.register(kind(number));
        }
        create(sandbox, &kind(7), "a");
        for verb in [Verb::List, Verb::Watch] {
            sandbox.faults().inject(Fault::on(verb).resource(kind(42)).stall());
        }
    });
    let cluster = start(environment).await;
    limit(cluster.sandbox(), &json!({ "count/kind7s.many.example.com": "4", "pods": "4" }));
    uses(&cluster, &json!({ "count/kind7s.many.example.com": "1", "pods": "2" })).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:00:04Z".parse().unwrap(), "{}", cluster.sandbox().now());
}
