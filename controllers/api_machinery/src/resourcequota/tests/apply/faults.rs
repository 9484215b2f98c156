//! Kinds that cannot be listed, failures, lost responses, late watches and kills.

use std::time::Duration;

use kcm_testing::kill_after_each_write;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, PODS, RESOURCE_QUOTAS, Status, Verb};
use serde_json::json;

use super::{WIDGETS, environment, key, limit, start, used, uses, writes};

const SECOND: Duration = Duration::from_secs(1);

fn unavailable() -> Status {
    Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request")
}

/// An environment in which widgets cannot be read, by a fault.
fn without_widgets(fault: fn(Fault) -> Fault) -> kcm_testing::TestEnvironment {
    let environment = environment().prepare(move |sandbox| {
        for verb in [Verb::List, Verb::Watch] {
            sandbox.faults().inject(fault(Fault::on(verb).resource(WIDGETS)));
        }
    });
    environment.allow_error("widgets")
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_holds_up_its_own_constraints() {
    let cluster = start(without_widgets(|fault| fault.fail(unavailable()))).await;
    limit(cluster.sandbox(), &json!({ "count/widgets.example.com": "4", "pods": "4" }));
    uses(&cluster, &json!({ "pods": "2" })).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:00:10Z".parse().unwrap(), "{}", cluster.sandbox().now());
    cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
    uses(&cluster, &json!({ "pods": "1" })).await;
    cluster.sandbox().faults().clear();
    uses(&cluster, &json!({ "count/widgets.example.com": "1", "pods": "1" })).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:02:00Z".parse().unwrap(), "by no resync");
}

#[tokio::test(start_paused = true)]
async fn a_kind_whose_list_never_ends_holds_up_its_own_constraints() {
    let cluster = start(without_widgets(Fault::stall)).await;
    limit(cluster.sandbox(), &json!({ "count/widgets.example.com": "4", "pods": "4" }));
    uses(&cluster, &json!({ "pods": "2" })).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:00:07Z".parse().unwrap(), "{}", cluster.sandbox().now());
}

#[tokio::test(start_paused = true)]
async fn a_usage_that_is_known_stays_while_its_kind_cannot_be_listed() {
    let environment = without_widgets(|fault| fault.fail(unavailable())).prepare(|sandbox| {
        limit(sandbox, &json!({ "count/widgets.example.com": "4", "pods": "4" }));
        let status = json!({ "hard": { "count/widgets.example.com": "4", "pods": "4" },
            "used": { "count/widgets.example.com": "3", "pods": "4" } });
        sandbox.patch_status(&RESOURCE_QUOTAS, &key("quota"), &json!({ "status": status })).unwrap();
    });
    let cluster = start(environment).await;
    uses(&cluster, &json!({ "count/widgets.example.com": "3", "pods": "2" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_the_api_server_has_charged_meanwhile_is_computed_again() {
    let cluster = start(environment()).await;
    limit(cluster.sandbox(), &json!({ "pods": "4" }));
    uses(&cluster, &json!({ "pods": "2" })).await;
    cluster.settle().await;
    // The API server charges the quota, which the cache does not show yet.
    cluster.sandbox().faults().delay_events(&RESOURCE_QUOTAS, 2 * SECOND);
    let charged = json!({ "status": { "used": { "pods": "3" } } });
    cluster.sandbox().patch_status(&RESOURCE_QUOTAS, &key("quota"), &charged).unwrap();
    cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
    uses(&cluster, &json!({ "pods": "1" })).await;
    assert!(cluster.sandbox().now() < "2026-01-02T12:01:00Z".parse().unwrap(), "by no resync");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_delays_the_usage_and_no_more() {
    let cluster = start(environment()).await;
    let busy = Fault::on(Verb::Update).resource(RESOURCE_QUOTAS).times(5);
    cluster.sandbox().faults().inject(busy.fail(Status::too_many_requests(1)));
    limit(cluster.sandbox(), &json!({ "pods": "4" }));
    uses(&cluster, &json!({ "pods": "2" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_refused_is_written_again() {
    let cluster = start(environment()).await;
    let refused = Status::new(422, "Invalid", "a policy refuses it");
    cluster.sandbox().faults().inject(Fault::on(Verb::Update).resource(RESOURCE_QUOTAS).times(3).fail(refused));
    limit(cluster.sandbox(), &json!({ "pods": "4" }));
    uses(&cluster, &json!({ "pods": "2" })).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_changes_nothing() {
    for number in 0..2 {
        let cluster = start(environment()).await;
        cluster.sandbox().faults().inject(Fault::on_writes().skip(number).times(1).lose_answer());
        limit(cluster.sandbox(), &json!({ "pods": "4" }));
        uses(&cluster, &json!({ "pods": "2" })).await;
        cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
        uses(&cluster, &json!({ "pods": "1" })).await;
        cluster.settle().await;
        assert!(writes(&cluster) <= 3, "{} writes", writes(&cluster));
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_watch_delays_the_usage_and_no_more() {
    for late in [PODS, CONFIG_MAPS, RESOURCE_QUOTAS] {
        let cluster = start(environment()).await;
        limit(cluster.sandbox(), &json!({ "configmaps": "4", "pods": "4" }));
        uses(&cluster, &json!({ "configmaps": "2", "pods": "2" })).await;
        cluster.sandbox().faults().delay_events(&late, 30 * SECOND);
        cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
        cluster.sandbox().delete(&CONFIG_MAPS, &key("a")).unwrap();
        uses(&cluster, &json!({ "configmaps": "1", "pods": "1" })).await;
        assert!(cluster.sandbox().now() < "2026-01-02T12:02:00Z".parse().unwrap(), "by no resync: {late}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = kill_after_each_write(environment, async |cluster| {
        cluster.watches(&[RESOURCE_QUOTAS, PODS, CONFIG_MAPS]).await;
        limit(cluster.sandbox(), &json!({ "configmaps": "4", "pods": "4" }));
        uses(cluster, &json!({ "configmaps": "2", "pods": "2" })).await;
        cluster.sandbox().delete_now(&PODS, &key("a")).unwrap();
        uses(cluster, &json!({ "configmaps": "2", "pods": "1" })).await;
        cluster.sandbox().delete(&CONFIG_MAPS, &key("b")).unwrap();
        uses(cluster, &json!({ "configmaps": "1", "pods": "1" })).await;
        cluster.advance(20 * SECOND).await;
        assert_eq!(used(cluster.sandbox()), json!({ "configmaps": "1", "pods": "1" }));
    })
    .await;
    assert_eq!(writes, 3);
}
