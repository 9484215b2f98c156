//! Deletion in the background, in the foreground, and with orphans.

use std::time::Duration;

use kcm_testing::TestCluster;
use kcm_testing::sandbox::{CONFIG_MAPS, PODS};
use serde_json::{Value, json};

use super::{Made, WIDGETS, create, create_in, delete, environment, hold, key, left, names, owners, release, start};

/// `owner` ◀─ `child` ◀─ `grandchild`, of which the last is a custom object.
fn family(cluster: &TestCluster) {
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    let child = create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, true)]);
    create(cluster.sandbox(), &WIDGETS, "grandchild", &[(&child, true)]);
}

fn requests(cluster: &TestCluster, method: &str) -> Vec<(String, Value)> {
    let mut requests = cluster.requests_of("generic-garbage-collector");
    requests.retain(|request| request.method.contains(method));
    let parse = |text: &str| serde_json::from_str(text).unwrap_or_default();
    requests.into_iter().map(|request| (request.path.clone(), parse(&request.body))).collect()
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_owner_as_the_deletion_asks() {
    for (policy, expected) in [("Background", &[][..]), ("Foreground", &[]), ("Orphan", &["child", "grandchild"])] {
        let cluster = start(environment()).await;
        family(&cluster);
        cluster.settle().await;
        delete(&cluster, "owner", policy).await;
        left(&cluster, expected).await;
        if policy == "Orphan" {
            assert_eq!(owners(cluster.sandbox(), &CONFIG_MAPS, "child"), [""; 0]);
            assert_eq!(owners(cluster.sandbox(), &WIDGETS, "grandchild"), ["child"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_deleted_in_the_state_that_was_read() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    let child = create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, false)]);
    cluster.settle().await;
    assert_eq!(requests(&cluster, "").len(), 0, "nothing is read while informers have all owners");
    delete(&cluster, "owner", "Background").await;
    left(&cluster, &[]).await;
    let [(path, body)] = requests(&cluster, "DELETE").try_into().unwrap();
    assert!(path.starts_with("/api/v1/namespaces/shop/configmaps/child"), "{path}");
    let metadata = &child.object["metadata"];
    let preconditions = json!({ "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"] });
    assert_eq!((&body["preconditions"], &body["propagationPolicy"]), (&preconditions, &json!("Background")));
    assert_eq!(requests(&cluster, "GET").len(), 1, "the owner was seen to go");
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_never_existed_is_deleted() {
    let cluster = start(environment()).await;
    create_in(cluster.sandbox(), &CONFIG_MAPS, "shop", "child", &[Made::ghost()]);
    left(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_there_before_the_start_is_deleted() {
    let environment = environment().prepare(|sandbox| {
        create_in(sandbox, &CONFIG_MAPS, "shop", "child", &[Made::ghost()]);
        let owner = create(sandbox, &CONFIG_MAPS, "owner", &[]);
        create(sandbox, &PODS, "pod", &[(&owner, true)]);
    });
    let cluster = start(environment).await;
    left(&cluster, &["owner", "pod"]).await;
    assert_eq!(requests(&cluster, "GET").len(), 2, "of those that informers have, none is read");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_was_recreated_under_its_name_is_another() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    cluster.sandbox().delete(&CONFIG_MAPS, &key("owner")).unwrap();
    create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, false)]);
    left(&cluster, &["owner"]).await;
}

#[tokio::test(start_paused = true)]
async fn one_owner_that_is_left_keeps_an_object_and_the_references_to_others_are_removed() {
    for resource in [CONFIG_MAPS, WIDGETS] {
        let cluster = start(environment()).await;
        let gone = create(cluster.sandbox(), &CONFIG_MAPS, "gone", &[]);
        let kept = create(cluster.sandbox(), &CONFIG_MAPS, "kept", &[]);
        create(cluster.sandbox(), &resource, "child", &[(&gone, true), (&kept, true)]);
        delete(&cluster, "gone", "Foreground").await;
        left(&cluster, &["child", "kept"]).await;
        assert_eq!(owners(cluster.sandbox(), &resource, "child"), ["kept"]);
        let patches = requests(&cluster, "PATCH");
        let of_child: Vec<&Value> =
            patches.iter().filter(|(path, _)| path.contains("/child")).map(|(_, body)| &body["metadata"]).collect();
        if resource == CONFIG_MAPS {
            let removed = json!([{ "$patch": "delete", "uid": gone.object["metadata"]["uid"] }]);
            assert_eq!(of_child.len(), 1);
            assert_eq!(of_child[0]["ownerReferences"], removed);
            assert!(of_child[0]["uid"].is_string() && of_child[0].get("resourceVersion").is_none());
        } else {
            assert_eq!(of_child.len(), 2, "a custom object takes no strategic merge patch");
            assert_eq!(of_child[1]["ownerReferences"][0]["name"], "kept");
            assert!(of_child[1]["resourceVersion"].is_string());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_removes_an_owner_after_the_dependents_that_block_it() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "blocking", &[(&owner, true)]);
    create(cluster.sandbox(), &CONFIG_MAPS, "not-blocking", &[(&owner, false)]);
    hold(cluster.sandbox(), &CONFIG_MAPS, "blocking");
    hold(cluster.sandbox(), &CONFIG_MAPS, "not-blocking");
    delete(&cluster, "owner", "Foreground").await;
    cluster.consistently("the owner waits", Duration::from_mins(2), |sandbox| names(sandbox).len() == 3).await;
    release(cluster.sandbox(), &CONFIG_MAPS, "blocking");
    left(&cluster, &["not-blocking"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cycle_that_is_deleted_in_the_foreground_goes() {
    for deleted in [&["a"][..], &["a", "c"], &["a", "b", "c"]] {
        let cluster = start(environment()).await;
        let sandbox = cluster.sandbox();
        let a = create(sandbox, &CONFIG_MAPS, "a", &[]);
        let b = create(sandbox, &CONFIG_MAPS, "b", &[(&a, true)]);
        let c = create(sandbox, &CONFIG_MAPS, "c", &[(&b, true)]);
        sandbox
            .patch(&CONFIG_MAPS, &key("a"), &json!({ "metadata": { "ownerReferences": [c.reference(true)] } }))
            .unwrap();
        cluster.settle().await;
        sandbox.faults().hold_watches(&CONFIG_MAPS);
        for name in deleted {
            delete(&cluster, name, "Foreground").await;
        }
        sandbox.faults().release_watches(&CONFIG_MAPS);
        left(&cluster, &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_for_orphaning_that_is_there_already_decides() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    let child = create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, false)]);
    create(cluster.sandbox(), &CONFIG_MAPS, "grandchild", &[(&child, false)]);
    let orphan = json!({ "metadata": { "finalizers": ["orphan"] } });
    cluster.sandbox().patch(&CONFIG_MAPS, &key("child"), &orphan).unwrap();
    delete(&cluster, "owner", "Background").await;
    left(&cluster, &["grandchild"]).await;
    assert_eq!(owners(cluster.sandbox(), &CONFIG_MAPS, "grandchild"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_orphans_lose_their_owner_and_stay() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    for number in 0..100 {
        create(cluster.sandbox(), &PODS, &format!("pod-{number}"), &[(&owner, true)]);
    }
    delete(&cluster, "owner", "Orphan").await;
    cluster.eventually("the owner is gone", |sandbox| sandbox.get(&CONFIG_MAPS, &key("owner")).is_none()).await;
    cluster.settle().await;
    let pods = cluster.sandbox().list(&PODS, Some("shop"));
    assert!(pods.iter().all(|pod| pod["metadata"].get("ownerReferences").is_none()));
    assert_eq!(pods.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_disabled_collector_does_nothing() {
    let cluster = environment().arguments(&["--enable-garbage-collector=false"]).start().await;
    create_in(cluster.sandbox(), &CONFIG_MAPS, "shop", "child", &[Made::ghost()]);
    cluster.consistently("it stays", Duration::from_mins(10), |sandbox| names(sandbox) == ["child"]).await;
}
