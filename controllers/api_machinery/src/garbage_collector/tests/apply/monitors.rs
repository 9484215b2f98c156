//! Kinds that come and go, and kinds that cannot be listed or decoded.

use std::time::Duration;

use kcm_framework::api::Resource;
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, PODS, Status, Verb};

use super::invalid::events;
use super::{Made, WIDGETS, create, create_in, delete, environment, hold, key, left, names, owners, start};

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

/// A cluster whose widgets cannot be listed.
async fn without_widgets() -> TestCluster {
    let environment = environment().prepare(|sandbox| {
        sandbox.faults().inject(Fault::on(Verb::List).resource(WIDGETS).fail(unavailable()));
        sandbox.faults().inject(Fault::on(Verb::Watch).resource(WIDGETS).fail(unavailable()));
    });
    let cluster = environment.allow_error("widgets").start().await;
    cluster.watches(&[CONFIG_MAPS]).await;
    cluster
}

/// Creates an owner with a config map and a widget as its dependents, all named after the policy.
fn create_family(cluster: &TestCluster, policy: &str) {
    let policy = policy.to_lowercase();
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, &policy, &[]);
    create(cluster.sandbox(), &CONFIG_MAPS, &format!("child-{policy}"), &[(&owner, true)]);
    create(cluster.sandbox(), &WIDGETS, &format!("widget-{policy}"), &[(&owner, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_holds_up_only_decisions_that_need_it() {
    let cluster = without_widgets().await;
    for policy in ["Background", "Foreground", "Orphan"] {
        create_family(&cluster, policy);
    }
    cluster.settle().await;
    for policy in ["Background", "Foreground", "Orphan"] {
        delete(&cluster, &policy.to_lowercase(), policy).await;
    }
    // The child of the orphaning owner stays, and so do both owners.
    let held = ["child-orphan", "foreground", "orphan", "widget-background", "widget-foreground", "widget-orphan"];
    cluster.eventually("what does not need widgets is done", |sandbox| names(sandbox) == held).await;
    cluster.consistently("the rest waits", 3 * SECOND, |sandbox| names(sandbox) == held).await;
    cluster.sandbox().faults().clear();
    left(&cluster, &["child-orphan", "widget-orphan"]).await;
    assert_eq!(events(&cluster), [""; 0], "it was no long wait");
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_goes_on_without_a_kind_that_cannot_be_listed_for_thirty_seconds() {
    let cluster = without_widgets().await;
    create_family(&cluster, "Foreground");
    cluster.settle().await;
    delete(&cluster, "foreground", "Foreground").await;
    let held = ["foreground", "widget-foreground"];
    cluster.eventually("it waits", |sandbox| names(sandbox) == held).await;
    cluster.consistently("it waits", 25 * SECOND, |sandbox| names(sandbox) == held).await;
    cluster.eventually("it goes on", |sandbox| names(sandbox) == ["widget-foreground"]).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:00:35Z".parse().unwrap(), "{}", cluster.sandbox().now());
    // Later ones do not wait again.
    create_family(&cluster, "Again");
    cluster.settle().await;
    delete(&cluster, "again", "Foreground").await;
    cluster.advance(2 * SECOND).await;
    assert_eq!(names(cluster.sandbox()), ["widget-again", "widget-foreground"]);
    cluster.sandbox().faults().clear();
    left(&cluster, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn orphaning_waits_for_a_kind_that_cannot_be_listed_and_says_so() {
    let cluster = without_widgets().await;
    create_family(&cluster, "Orphan");
    cluster.settle().await;
    delete(&cluster, "orphan", "Orphan").await;
    let all = ["child-orphan", "orphan", "widget-orphan"];
    cluster.consistently("it waits", 300 * SECOND, |sandbox| names(sandbox) == all).await;
    let expected = "Warning DependentsUnknown the deletion waits, because there may be dependents that are not known: \
                    widgets.example.com cannot be listed";
    assert_eq!(events(&cluster), [expected], "once");
    let unsynced = "garbagecollector_controller_resources_unsynced{group=\"example.com\",resource=\"widgets\"} 1";
    let metrics = cluster.metrics();
    assert!(metrics.contains(unsynced), "{metrics}");
    assert!(metrics.contains("garbagecollector_controller_resources_sync_error_total 1"), "once: {metrics}");

    cluster.sandbox().faults().clear();
    left(&cluster, &["child-orphan", "widget-orphan"]).await;
    assert_eq!(owners(cluster.sandbox(), &WIDGETS, "widget-orphan"), [""; 0]);
    cluster
        .eventually("the gauge ends", |_| {
            !cluster.metrics().contains("garbagecollector_controller_resources_unsynced{")
        })
        .await;
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

/// Upstream's case is `TestCascadingDeleteOnCRDConversionFailure`.
#[tokio::test(start_paused = true)]
async fn a_kind_whose_conversion_fails_holds_up_no_background_deletion_of_other_kinds() {
    let environment = environment().prepare(|sandbox| {
        create(sandbox, &WIDGETS, "stored", &[]);
        for verb in [Verb::List, Verb::Watch] {
            let failed = Status::new(500, "InternalError", "conversion webhook for example.com/v1 failed");
            sandbox.faults().inject(Fault::on(verb).resource(WIDGETS).fail(failed));
        }
    });
    let cluster = environment.allow_error("widgets").start().await;
    cluster.watches(&[CONFIG_MAPS, PODS]).await;
    let owner = create(cluster.sandbox(), &CONFIG_MAPS, "owner", &[]);
    create(cluster.sandbox(), &PODS, "pod", &[(&owner, false)]);
    cluster.settle().await;
    delete(&cluster, "owner", "Background").await;
    left(&cluster, &["stored"]).await;
    cluster.advance(60 * SECOND).await;
    let unsynced = "garbagecollector_controller_resources_unsynced{group=\"example.com\",resource=\"widgets\"} 1";
    let metrics = cluster.metrics();
    assert!(metrics.contains(unsynced), "{metrics}");
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
