//! Kinds that come and go, and kinds that cannot be listed or decoded.

use std::time::Duration;

use kcm_framework::api::Resource;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, Status, Verb};

use super::{Made, WIDGETS, create, create_in, delete, environment, hold, key, left, names, start};

const LATE: Resource = Resource::namespaced("late.example.com", "v1", "lates", "Late");
const SECOND: Duration = Duration::from_secs(1);

fn unavailable() -> Status {
    Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request")
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_appears_while_the_manager_runs_is_collected() {
    let cluster = start(environment()).await;
    cluster.sandbox().register(LATE);
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &LATE, "late", &[(&owner, true)]);
    cluster.watches(&[LATE]).await;
    delete(&cluster, "owner", "Foreground").await;
    left(&cluster, &[]).await;
    assert!(cluster.sandbox().list(&LATE, Some("shop")).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_any_more_keeps_its_dependents() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &WIDGETS, "owner", &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, "child", &[(&owner, true)]);
    cluster.settle().await;
    cluster.sandbox().unregister(&WIDGETS);
    cluster.consistently("the child stays", 600 * SECOND, |sandbox| names(sandbox) == ["child"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_ends_when_the_kind_of_a_blocking_dependent_is_removed() {
    let cluster = start(environment()).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &WIDGETS, "widget", &[(&owner, true)]);
    hold(cluster.sandbox(), &WIDGETS, "widget");
    cluster.settle().await;
    delete(&cluster, "owner", "Foreground").await;
    cluster.consistently("the owner waits", 120 * SECOND, |sandbox| names(sandbox) == ["owner", "widget"]).await;
    cluster.sandbox().unregister(&WIDGETS);
    left(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_holds_up_only_decisions_that_need_it() {
    let environment = environment().prepare(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::List).resource(WIDGETS).fail(unavailable()));
        sandbox.faults().inject(Fault::on(Verb::Watch).resource(WIDGETS).fail(unavailable()));
    });
    let cluster = environment.allow_error("widgets").start().await;
    cluster.watches(&[CONFIG_MAPS]).await;
    for policy in ["Background", "Foreground", "Orphan"] {
        let owner = create(cluster.sandbox(), &CONFIG_MAPS, policy.to_lowercase().as_str(), &[]);
        create(cluster.sandbox(), &CONFIG_MAPS, &format!("child-{}", policy.to_lowercase()), &[(&owner, true)]);
        create(cluster.sandbox(), &WIDGETS, &format!("widget-{}", policy.to_lowercase()), &[(&owner, true)]);
    }
    cluster.settle().await;
    for policy in ["Background", "Foreground", "Orphan"] {
        delete(&cluster, &policy.to_lowercase(), policy).await;
    }
    // The child of the orphaning owner stays, and so do both owners, until widgets are known.
    let held = ["child-orphan", "foreground", "orphan", "widget-background", "widget-foreground", "widget-orphan"];
    cluster.eventually("what does not need widgets is done", |sandbox| names(sandbox) == held).await;
    cluster.consistently("the rest waits", 300 * SECOND, |sandbox| names(sandbox) == held).await;
    cluster.sandbox().faults().clear();
    left(&cluster, &["child-orphan", "widget-orphan"]).await;
    assert!(
        cluster.metrics().contains("garbagecollector_controller_resources_sync_error_total 1"),
        "{}",
        cluster.metrics()
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_objects_do_not_wait_for_a_kind_that_fails() {
    let environment = environment().prepare(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::List).resource(WIDGETS).fail(unavailable()));
        create_in(sandbox, &CONFIG_MAPS, "shop", "child", &[Made::ghost()]);
    });
    let cluster = environment.allow_error("widgets").start().await;
    cluster.eventually("it is collected", |sandbox| names(sandbox).is_empty()).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:00:05Z".parse().unwrap(), "{}", cluster.sandbox().now());
}

#[tokio::test(start_paused = true)]
async fn no_informer_is_left_when_the_controller_stops() {
    let cluster = start(environment()).await;
    assert!(cluster.sandbox().open_watches(&WIDGETS) > 0);
    cluster.sandbox().unregister(&WIDGETS);
    cluster.eventually("its watch is closed", |sandbox| sandbox.open_watches(&WIDGETS) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_orphaned_while_the_loops_do_not_run_is_collected_when_they_run_again() {
    let cluster = start(environment()).await;
    let sandbox = cluster.sandbox();
    let owner = create(sandbox, &CONFIG_MAPS, "owner", &[]);
    create(sandbox, &CONFIG_MAPS, "dependent", &[(&owner, false)]);
    cluster.settle().await;
    for round in 0..2 {
        cluster.handle().stop_loops(Duration::from_secs(10)).await;
        if round == 0 {
            sandbox.delete(&CONFIG_MAPS, &key("owner")).expect("the owner is there");
        } else {
            create_in(sandbox, &WIDGETS, "shop", "late", &[Made::ghost()]);
        }
        cluster.advance(Duration::from_mins(1)).await;
        assert_eq!(names(sandbox).len(), 1, "a standby deletes nothing");
        cluster.handle().start_loops();
        cluster.eventually("the dependent is collected", |sandbox| names(sandbox).is_empty()).await;
    }
}
