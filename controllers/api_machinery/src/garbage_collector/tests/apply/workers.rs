//! The number of workers, which is reloaded.

use kcm_framework::config::{Effective, Loaded, Sources, Table, generic};
use kcm_testing::TestCluster;
use kcm_testing::sandbox::{CONFIG_MAPS, Fault, Verb};

use super::{Made, create_in, environment, start};
use crate::garbage_collector::DESCRIPTOR;

/// Settings with this argument.
fn settings(argument: &str) -> Effective {
    let table = Table::new(generic::rows().chain(DESCRIPTOR.settings.iter().copied())).unwrap();
    match table.load(&Sources::default().arguments([argument])) {
        Ok(Loaded::Settings(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

/// Number of deletions without a response.
fn pending_deletions(cluster: &TestCluster) -> usize {
    let requests = cluster.requests_of("generic-garbage-collector");
    requests.iter().filter(|request| request.method == "DELETE" && request.status.is_none()).count()
}

#[tokio::test(start_paused = true)]
async fn a_reloaded_number_of_workers_is_applied_at_once() {
    let cluster = start(environment().arguments(&["--concurrent-gc-syncs=2"])).await;
    cluster.sandbox().faults().inject(Fault::on(Verb::Delete).resource(CONFIG_MAPS).stall());
    for number in 0..10 {
        create_in(cluster.sandbox(), &CONFIG_MAPS, "shop", &format!("child-{number}"), &[Made::ghost()]);
    }
    cluster.settle().await;
    assert_eq!(pending_deletions(&cluster), 2);
    cluster.handle().reload(settings("--concurrent-gc-syncs=5"));
    cluster.settle().await;
    assert_eq!(pending_deletions(&cluster), 5);
}
