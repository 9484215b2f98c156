//! Migrations when requests fail, watches are late, and managers end.

use std::time::Duration;

use kcm_framework::api::ObjectKey;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, Sandbox, Status, Verb};
use kcm_testing::{TestCluster, kill_after_each_write, passing_faults};
use serde_json::json;

use super::apply::{
    ACCOUNT, DEFINITIONS, MIGRATIONS, condition, create, create_config_map, definition_key, environment, has_failed,
    is_done, lines, start, with_config_maps, with_websites,
};

fn patches(cluster: &TestCluster) -> Vec<String> {
    let lines = lines(cluster);
    let patches = lines.iter().filter_map(|line| line.strip_prefix("PATCH /api/v1/namespaces/shop/configmaps/"));
    patches.map(|rest| rest.split('?').next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn m19_an_error_that_may_pass_is_told_and_retried_behind_the_last_object() {
    for status in [Status::new(500, "InternalError", "slow"), Status::new(504, "Timeout", "slow")] {
        let cluster = start(with_config_maps().allow_error("Reconcile failed")).await;
        let slow = Fault::on(Verb::Patch).resource(CONFIG_MAPS).name("b").times(30).fail(status);
        cluster.sandbox().faults().inject(slow);
        create(cluster.sandbox(), "m", "", "configmaps");
        let message = "The migration is running, 2/3 objects not yet migrated; transient error: slow";
        let is_told = |sandbox: &Sandbox| condition(sandbox, "m", "Running").ends_with(message);
        cluster.eventually("the status has the error", is_told).await;
        cluster.settle().await;
        is_done(&cluster, "m").await;
        let patches = patches(&cluster);
        let count = |name: &str| patches.iter().filter(|patched| *patched == name).count();
        assert_eq!((count("a"), count("c")), (1, 1), "{patches:?}");
        let told = cluster.bodies_of(ACCOUNT, "PUT").len();
        assert!(told <= 6, "the error is written once: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn m19_a_conflict_and_an_object_that_is_gone_count_as_done() {
    for status in [Status::new(409, "Conflict", "modified"), Status::new(404, "NotFound", "gone")] {
        let cluster = start(with_config_maps()).await;
        cluster.sandbox().faults().inject(Fault::on(Verb::Patch).resource(CONFIG_MAPS).name("b").times(1).fail(status));
        create(cluster.sandbox(), "m", "", "configmaps");
        is_done(&cluster, "m").await;
        assert_eq!(patches(&cluster), ["a", "b", "c"]);
    }
}

#[tokio::test(start_paused = true)]
async fn m20_another_error_fails_the_migration_at_once() {
    let cluster = start(with_config_maps()).await;
    let denied = Status::new(403, "Forbidden", "denied");
    cluster.sandbox().faults().inject(Fault::on(Verb::Patch).resource(CONFIG_MAPS).name("c").times(1).fail(denied));
    create(cluster.sandbox(), "m", "", "configmaps");
    let message = "1/3 not yet migrated. migration encountered unhandled error: denied";
    assert_eq!(has_failed(&cluster, "m").await, format!("True StorageVersionMigrationFailed {message}"));
    cluster.advance(Duration::from_mins(5)).await;
    assert_eq!(patches(&cluster), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn d7_a_list_that_is_forbidden_fails_the_migration_and_one_that_fails_is_retried() {
    let lists = || Fault::on(Verb::List).resource(CONFIG_MAPS).when(|target| target.namespace.is_none());
    let cluster = start(with_config_maps()).await;
    cluster.sandbox().faults().inject(lists().times(1).fail(Status::new(403, "Forbidden", "denied")));
    create(cluster.sandbox(), "m", "", "configmaps");
    let message = "0/0 not yet migrated. migration encountered unhandled error: denied";
    assert_eq!(has_failed(&cluster, "m").await, format!("True StorageVersionMigrationFailed {message}"));

    let cluster = start(with_config_maps().allow_error("Reconcile failed")).await;
    cluster.sandbox().faults().inject(lists().times(5).fail(Status::new(500, "InternalError", "slow")));
    create(cluster.sandbox(), "m", "", "configmaps");
    is_done(&cluster, "m").await;
    assert_eq!(patches(&cluster), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn d7_pages_are_migrated_one_by_one_and_an_expired_token_lists_again() {
    let many = || {
        environment().allow_error("Reconcile failed").prepare(|sandbox| {
            for number in 0..1100 {
                create_config_map(sandbox, &format!("c{number:04}"));
            }
        })
    };
    for expires in [false, true] {
        let cluster = start(many()).await;
        if expires {
            let gone = Status::new(410, "Expired", "the token is too old");
            let third = Fault::on(Verb::List).resource(CONFIG_MAPS).when(|target| target.namespace.is_none());
            cluster.sandbox().faults().inject(third.skip(2).times(1).fail(gone));
        }
        create(cluster.sandbox(), "m", "", "configmaps");
        is_done(&cluster, "m").await;
        let lists = lines(&cluster).iter().filter(|line| line.starts_with("GET /api/v1/configmaps")).count();
        assert_eq!((patches(&cluster).len(), lists), (1100, if expires { 6 } else { 3 }));
        let puts = cluster.bodies_of(ACCOUNT, "PUT");
        let message = "The migration is running, 1100 objects verified migrated";
        assert!(puts.iter().any(|put| put["status"]["conditions"][0]["message"] == message), "all were counted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_is_deleted_stops_and_one_of_its_name_begins_anew() {
    let cluster = start(with_config_maps().allow_error("Reconcile failed")).await;
    let slow =
        Fault::on(Verb::Patch).resource(CONFIG_MAPS).name("b").times(4).fail(Status::new(500, "InternalError", "no"));
    cluster.sandbox().faults().inject(slow);
    create(cluster.sandbox(), "m", "", "configmaps");
    let waits = |sandbox: &Sandbox| condition(sandbox, "m", "Running").contains("transient");
    cluster.eventually("it waits", waits).await;
    cluster.sandbox().delete(&MIGRATIONS, &ObjectKey::cluster_scoped("m")).unwrap();
    cluster.advance(Duration::from_mins(1)).await;
    let before = patches(&cluster).len();
    assert!(!patches(&cluster).contains(&"c".to_owned()));
    create(cluster.sandbox(), "m", "", "configmaps");
    is_done(&cluster, "m").await;
    assert!(patches(&cluster)[before..].starts_with(&["a".to_owned(), "b".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn p13_a_migration_of_a_kind_that_is_gone_fails() {
    let cluster = start(with_websites().allow_error("Reconcile failed")).await;
    let slow = Fault::on(Verb::List).when(|target| target.resource.plural == "websites" && target.namespace.is_none());
    cluster.sandbox().faults().inject(slow.times(6).fail(Status::new(500, "InternalError", "slow")));
    create(cluster.sandbox(), "m", "example.com", "websites");
    let waits = |sandbox: &Sandbox| condition(sandbox, "m", "Running").contains("transient");
    cluster.eventually("it waits", waits).await;
    cluster.sandbox().delete(&DEFINITIONS, &definition_key()).unwrap();
    let message = "migration encountered unhandled error: unable to obtain GVR from discovery";
    assert_eq!(has_failed(&cluster, "m").await, format!("True StorageVersionMigrationFailed {message}"));
}

async fn life(cluster: &TestCluster) {
    cluster.watches(&[MIGRATIONS]).await;
    create(cluster.sandbox(), "m", "", "configmaps");
    is_done(cluster, "m").await;
    create(cluster.sandbox(), "n", "", "configmaps");
    is_done(cluster, "n").await;
    cluster.settle().await;
    let done = "True StorageVersionMigrationSucceeded Migration completed";
    for name in ["m", "n"] {
        assert_eq!(condition(cluster.sandbox(), name, "Succeeded"), done);
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    // Three patches, and four updates of the status of each migration.
    assert_eq!(kill_after_each_write(with_config_maps, life).await, 14);
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_with_lost_responses_and_errors() {
    for fault in passing_faults() {
        let cluster = with_config_maps().allow_error("Reconcile failed").start().await;
        cluster.sandbox().faults().inject(fault);
        life(&cluster).await;
    }
}

#[tokio::test(start_paused = true)]
async fn late_watches_lead_to_no_second_patch_or_update() {
    let cluster = start(with_config_maps()).await;
    cluster.sandbox().faults().delay_events(&MIGRATIONS, Duration::from_secs(10));
    create(cluster.sandbox(), "m", "", "configmaps");
    is_done(&cluster, "m").await;
    cluster.advance(Duration::from_mins(2)).await;
    assert_eq!(patches(&cluster), ["a", "b", "c"]);
    assert_eq!(cluster.writes_of(ACCOUNT).len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_change_of_the_status_is_not_undone() {
    let cluster = start(with_config_maps()).await;
    cluster.settle().await;
    cluster.sandbox().faults().hold_watches(&MIGRATIONS);
    create(cluster.sandbox(), "m", "", "configmaps");
    cluster.sandbox().faults().release_watches(&MIGRATIONS);
    let note = json!({ "status": { "conditions": [{
        "type": "Note", "status": "True", "reason": "R", "message": "M", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] } });
    cluster.sandbox().patch_status(&MIGRATIONS, &ObjectKey::cluster_scoped("m"), &note).unwrap();
    is_done(&cluster, "m").await;
    assert_eq!(condition(cluster.sandbox(), "m", "Note"), "True R M");
}
