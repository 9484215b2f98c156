//! Many namespaces and many objects at once.

use kcm_testing::TestEnvironment;
use kcm_testing::sandbox::{CONFIG_MAPS, NAMESPACES, SandboxOptions};

use super::{create, start};
use crate::namespace::DESCRIPTOR;

#[tokio::test(start_paused = true)]
async fn two_thousand_namespaces_are_removed_at_once() {
    let options = SandboxOptions { request_log: 0, managed_fields: false, ..SandboxOptions::default() };
    let environment = TestEnvironment::new([DESCRIPTOR]).sandbox_options(options).prepare(|sandbox| {
        for number in 0..2_000 {
            let name = format!("n{number}");
            sandbox.create_namespace(&name).unwrap();
            create(sandbox, &CONFIG_MAPS, &name, "map", &[]);
        }
    });
    let cluster = start(environment).await;
    for number in 0..2_000 {
        cluster
            .sandbox()
            .delete(&NAMESPACES, &kcm_framework::api::ObjectKey::cluster_scoped(format!("n{number}")))
            .unwrap();
    }
    cluster
        .eventually("all are gone", |sandbox| {
            sandbox.list(&NAMESPACES, None).iter().all(|namespace| namespace["status"]["phase"] == "Active")
        })
        .await;
    assert!(cluster.sandbox().list(&CONFIG_MAPS, None).is_empty());
}

#[tokio::test(start_paused = true)]
async fn objects_are_counted_over_all_pages() {
    let cluster = start(super::environment().prepare(|sandbox| {
        for number in 0..1_200 {
            create(sandbox, &CONFIG_MAPS, "shop", &format!("map-{number}"), &["example.com/hold"]);
        }
    }))
    .await;
    super::delete(&cluster);
    cluster
        .eventually("all are counted", |sandbox| {
            super::condition(sandbox, "NamespaceFinalizersRemaining")
                .ends_with("example.com/hold in 1200 resource instances")
        })
        .await;
}
