//! The debug page and the explanations of a running collector.

use kcm_framework::api::{ObjectKey, Uid};
use kcm_framework::http::Request;
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, Status, Verb};

use super::{Made, WIDGETS, create, delete, environment, hold, key, left, release, start};
use crate::garbage_collector::NAME;

fn uid(made: &Made) -> &str {
    made.object["metadata"]["uid"].as_str().expect("it has a uid")
}

/// The last decisions about an object.
fn decisions(cluster: &TestCluster, made: &Made) -> Vec<String> {
    let object = ObjectKey::cluster_scoped(Uid::from(uid(made)).to_string());
    let explained = cluster.handle().explain(NAME, &object).expect("there is such a controller");
    let last = explained.into_iter().find_map(|explained| explained.reconciles.into_iter().next());
    last.map(|reconcile| reconcile.decisions).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn the_graph_of_one_object_is_served_with_what_it_is_joined_to() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    let child = create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, true)]);
    let other = create(cluster.sandbox(), &CONFIG_MAPS, "other", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "of-other", &[(&other, true)]);
    cluster.settle().await;
    let get = |path: &str| {
        let request = Request::get(path).body(()).expect("it is a path");
        cluster.handle().debug(NAME, &request).expect("the controller has a page").into_body()
    };
    let edge = |from: &Made, to: &Made| format!("{:?} -> {:?}", uid(from), uid(to));
    let one = get(&format!("/graph?uid={}", uid(&child)));
    assert!(one.contains(&edge(&child, &owner)) && !one.contains(uid(&other)), "{one}");
    assert!(get("/graph").contains(uid(&other)));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_waits_is_explained_by_what_it_waits_for() {
    let cluster = start(environment().allow_error("widgets")).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, true)]);
    hold(cluster.sandbox(), &CONFIG_MAPS, "child");
    delete(&cluster, "owner", "Foreground").await;
    cluster.settle().await;
    let words = decisions(&cluster, &owner);
    assert!(words[0].ends_with("waits for blocking dependents; 1 of them are processed"), "{words:?}");
    release(cluster.sandbox(), &CONFIG_MAPS, "child");
    left(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_explained_by_its_owners() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    let child = create(cluster.sandbox(), &WIDGETS, "child", &[(&owner, true)]);
    cluster.settle().await;
    delete(&cluster, "owner", "Background").await;
    left(&cluster, &[]).await;
    let words = decisions(&cluster, &child);
    assert_eq!(words.last().unwrap(), "deletes it in the background: ConfigMap \"owner\" does not exist");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_is_named_by_the_explanation_of_what_waits_for_it() {
    let unavailable = Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    let environment = environment().prepare(move |sandbox| {
        sandbox.faults().inject(Fault::on(Verb::List).resource(WIDGETS).fail(unavailable.clone()));
        sandbox.faults().inject(Fault::on(Verb::Watch).resource(WIDGETS).fail(unavailable));
    });
    let cluster = environment.allow_error("widgets").start().await;
    cluster.watches(&[CONFIG_MAPS]).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    cluster.settle().await;
    delete(&cluster, "owner", "Orphan").await;
    cluster.advance(std::time::Duration::from_mins(1)).await;
    assert!(cluster.sandbox().get(&CONFIG_MAPS, &key("owner")).is_some());
    let words = decisions(&cluster, &owner);
    let expected = "waits, as it may have dependents that are not known: widgets.example.com cannot be listed";
    assert_eq!(words.last().unwrap(), expected);
}
