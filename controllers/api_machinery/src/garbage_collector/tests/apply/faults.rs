//! Failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, PODS, Sandbox, Status, Verb};
use serde_json::json;

use super::{Made, WIDGETS, create, create_in, delete, environment, key, left, names, owners, start};

const SECOND: Duration = Duration::from_secs(1);

/// A cycle of three that owns a custom object and a pod.
fn cycle(sandbox: &Sandbox) {
    let a = create(sandbox, &CONFIG_MAPS, "a", &[]);
    let b = create(sandbox, &CONFIG_MAPS, "b", &[(&a, true)]);
    let c = create(sandbox, &CONFIG_MAPS, "c", &[(&b, true)]);
    create(sandbox, &WIDGETS, "widget", &[(&b, true)]);
    create(sandbox, &PODS, "pod", &[(&c, true)]);
    sandbox.patch(&CONFIG_MAPS, &key("a"), &json!({ "metadata": { "ownerReferences": [c.reference(true)] } })).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_with_a_cycle_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || environment().prepare(cycle),
        async |cluster| {
            cluster.watches(&[CONFIG_MAPS, PODS, WIDGETS]).await;
            delete(cluster, "a", "Foreground").await;
            left(cluster, &[]).await;
        },
    )
    .await;
    assert!(writes >= 7, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn orphaning_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(
        || {
            environment().prepare(|sandbox| {
                let owner = create(sandbox, &CONFIG_MAPS, "owner", &[]);
                create(sandbox, &CONFIG_MAPS, "child", &[(&owner, true)]);
                create(sandbox, &WIDGETS, "widget", &[(&owner, true)]);
            })
        },
        async |cluster| {
            cluster.watches(&[CONFIG_MAPS, WIDGETS]).await;
            delete(cluster, "owner", "Orphan").await;
            left(cluster, &["child", "widget"]).await;
            assert_eq!(owners(cluster.sandbox(), &CONFIG_MAPS, "child"), [""; 0]);
            assert_eq!(owners(cluster.sandbox(), &WIDGETS, "widget"), [""; 0]);
        },
    )
    .await;
    assert_eq!(writes, 3);
}

#[tokio::test(start_paused = true)]
async fn lost_responses_change_nothing() {
    for number in 0..8 {
        let cluster = start(environment().prepare(cycle)).await;
        cluster.sandbox().faults().inject(Fault::on_writes().skip(number + 1).times(1).lose_answer());
        delete(&cluster, "a", "Foreground").await;
        left(&cluster, &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_delays_the_collection_and_no_more() {
    let cluster = start(environment().prepare(cycle)).await;
    delete(&cluster, "a", "Foreground").await;
    let busy = Fault::on_any().when(|target| target.verb != Verb::Watch).times(20);
    cluster.sandbox().faults().inject(busy.fail(Status::too_many_requests(1)));
    left(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn owners_that_are_recreated_while_their_watch_is_late_keep_their_new_dependents() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    sandbox.faults().delay_events(&CONFIG_MAPS, 30 * SECOND);
    for round in 0..5 {
        let owner = create(sandbox, &CONFIG_MAPS, "owner", &[]);
        let pod = format!("pod-{round}");
        create(sandbox, &PODS, &pod, &[(&owner, true)]);
        cluster
            .consistently("a pod with an owner stays", 7 * SECOND, |sandbox| sandbox.get(&PODS, &key(&pod)).is_some())
            .await;
        if round < 4 {
            sandbox.delete(&CONFIG_MAPS, &key("owner")).unwrap();
        }
    }
    left(&cluster, &["owner", "pod-4"]).await;
    cluster.consistently("the last one stays", 120 * SECOND, |sandbox| names(sandbox) == ["owner", "pod-4"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_its_informer_does_not_have_yet_keeps_its_dependents() {
    let cluster = start(environment()).await;
    cluster.sandbox().faults().hold_watches(&CONFIG_MAPS);
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &PODS, "pod", &[(&owner, true)]);
    cluster.consistently("it stays", 300 * SECOND, |sandbox| names(sandbox) == ["owner", "pod"]).await;
    let reads = cluster.requests_of("generic-garbage-collector").len();
    assert!(reads < 20, "{reads} reads in five minutes");
}

#[tokio::test(start_paused = true)]
async fn updates_of_other_fields_do_not_keep_an_object() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, false)]);
    let conflict = Status::conflict(&CONFIG_MAPS, "child", "the object has been modified");
    cluster
        .sandbox()
        .faults()
        .inject(Fault::on(Verb::Delete).resource(CONFIG_MAPS).name("child").times(1).fail(conflict));
    delete(&cluster, "owner", "Background").await;
    left(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_adopted_after_a_conflict_is_kept() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    let other = create(cluster.sandbox(), &CONFIG_MAPS, "other", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, false)]);
    let slow = Fault::on(Verb::Delete).resource(CONFIG_MAPS).name("child").times(2).delay(SECOND);
    cluster.sandbox().faults().inject(slow);
    delete(&cluster, "owner", "Background").await;
    let change = |metadata: serde_json::Value| {
        cluster.sandbox().patch(&CONFIG_MAPS, &key("child"), &json!({ "metadata": metadata })).unwrap();
    };
    cluster.advance(SECOND / 2).await;
    change(json!({ "labels": { "app": "web" } }));
    // The deletion meets a conflict, and the second one is on its way.
    cluster.advance(SECOND).await;
    change(json!({ "ownerReferences": [owner.reference(false), other.reference(false)] }));
    left(&cluster, &["child", "other"]).await;
    cluster.consistently("it stays", 120 * SECOND, |sandbox| names(sandbox) == ["child", "other"]).await;
}

#[tokio::test(start_paused = true)]
async fn the_server_of_an_owner_that_is_down_for_minutes_keeps_its_dependents() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &WIDGETS, "owner", &[]);
    cluster.settle().await;
    let down = Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    let down = cluster.sandbox().faults().inject(Fault::on(Verb::Get).resource(WIDGETS).fail(down));
    // Its informer has it, under another version.
    let mut reference = owner.reference(false);
    reference["name"] = json!("other-name");
    create_in(cluster.sandbox(), &CONFIG_MAPS, "shop", "child", &[reference]);
    cluster.consistently("it is kept", 300 * SECOND, |sandbox| names(sandbox) == ["child", "owner"]).await;
    down.remove();
    left(&cluster, &["owner"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_404_that_names_no_object_counts_where_discovery_has_the_kind() {
    let cluster = start(environment()).await;
    let unknown_path = Status::new(404, "NotFound", "the server could not find the requested resource");
    let fault = Fault::on(Verb::Get).resource(CONFIG_MAPS).name("ghost").times(1).fail(unknown_path);
    cluster.sandbox().faults().inject(fault);
    create_in(cluster.sandbox(), &CONFIG_MAPS, "shop", "child", &[Made::ghost()]);
    left(&cluster, &[]).await;
}
