//! Only the one config map of each namespace is listed, watched and cached.

use kcm_testing::sandbox::{CONFIG_MAPS, NAMESPACES};
use serde_json::json;

use super::apply::{environment, start};

#[tokio::test(start_paused = true)]
async fn large_config_maps_elsewhere_are_neither_listed_nor_watched_nor_cached() {
    let large = "x".repeat(512 * 1024);
    let text = large.clone();
    let cluster = start(environment().prepare(move |sandbox| {
        for number in 0..20 {
            let metadata = json!({ "namespace": "default", "name": format!("large-{number}") });
            sandbox.create(&CONFIG_MAPS, json!({ "metadata": metadata, "data": { "text": text } })).unwrap();
        }
    }))
    .await;
    cluster.settle().await;
    let metadata = json!({ "namespace": "default", "name": "later" });
    cluster.sandbox().create(&CONFIG_MAPS, json!({ "metadata": metadata, "data": { "text": large } })).unwrap();
    cluster.settle().await;

    let namespaces = cluster.sandbox().list(&NAMESPACES, None).len();
    let caches = cluster.handle().caches();
    let of_config_maps: Vec<_> = caches.iter().filter(|(status, _)| status.resource == CONFIG_MAPS).collect();
    let [(status, bytes)] = of_config_maps[..] else { panic!("{} informers", of_config_maps.len()) };
    assert_eq!(status.objects, namespaces, "one config map for each namespace");
    assert!(*bytes < namespaces * 2_500, "{bytes} bytes for {namespaces} config maps");
    for request in cluster.requests_of("shared-informers") {
        let is_narrow = request.query.contains("fieldSelector=metadata.name%3Dkube-root-ca.crt");
        assert!(is_narrow || request.path != "/api/v1/configmaps", "{}", request.query);
    }
}
