//! The table of upstream's metrics, against what its binary serves; and our metrics against upstream's.

mod agreement;
mod exposition;
mod traffic;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use kcm_e2e_harness::control_plane::free_ports;
use kcm_e2e_harness::peer_metrics::PeerMetrics;
use kcm_e2e_harness::scenario::{Case, Setup};
use kcm_e2e_harness::subject::Subject;
use kcm_e2e_harness::wait::eventually;
use kube::api::{Api, PostParams};
use serde_json::json;

use exposition::Family;

kcm_e2e_harness::scenarios! {
    Setup::of("deployment,replicaset").upstreams().with_own_managers() => {
        "metrics/are_those_of_the_table": serves_the_table,
    }
    Setup::of("deployment,replicaset").ours().with_own_managers() => {
        "metrics/agree_with_upstreams_after_the_same_load": agreement::agree,
    }
    Setup::of("endpointslice,endpointslicemirroring,horizontalpodautoscaling").with_own_managers() => {
        "metrics/of_traffic_are_those_of_the_table": traffic::serves_the_table,
    }
}

/// Name, type, labels, buckets and stability of each metric, from a scrape of all controllers.
const TABLE: &str = include_str!("../../../../controller-manager/tests/data/metrics.tsv");

/// The metrics that exist with any controller, as soon as it has made a request and handled a key.
const ALWAYS: [&str; 4] =
    ["rest_client_request_duration_seconds", "rest_client_requests_total", "workqueue_adds_total", "workqueue_depth"];

/// What the table leaves out: metrics of Go and of the process, which follow the version of Go.
const RUNTIME: [&str; 2] = ["go_", "process_"];

async fn serves_the_table(case: Case) -> Result<()> {
    let [port] = free_ports()?;
    let metrics = PeerMetrics::at(port)?;
    let args = metrics.args();
    let _manager = case.start(Subject::Peer, &args.each_ref().map(String::as_str))?;
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> = case.api();
    let deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "image" }] },
            },
        },
    }))?;
    deployments.create(&PostParams::default(), &deployment).await.context("cannot create the deployment")?;
    let scrape = || async {
        let families = exposition::read(&metrics.read().await?);
        let missing: Vec<_> = ALWAYS.into_iter().filter(|name| !families.contains_key(*name)).collect();
        ensure!(missing.is_empty(), "not served yet: {missing:?}");
        Ok(families)
    };
    let families = eventually("the peer serves the metrics of queues and requests", scrape).await?;
    let differences = differences(&table(), &families);
    ensure!(differences.is_empty(), "the table differs from the peer:\n{}", differences.join("\n"));
    Ok(())
}

/// The rows of the table by name.
fn table() -> BTreeMap<&'static str, Family> {
    let rows = TABLE.lines().skip(1).map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let column = |at: usize| columns.get(at).copied().unwrap_or_default();
        let labels = column(2).split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect();
        let buckets = column(3).split(' ').filter(|bucket| !bucket.is_empty()).map(str::to_owned).collect();
        (column(0), Family { kind: column(1).to_owned(), labels, buckets, stability: column(4).to_owned() })
    });
    rows.collect()
}

/// What a scrape has and the table says otherwise. A family without samples has neither labels nor buckets.
fn differences(table: &BTreeMap<&str, Family>, served: &BTreeMap<String, Family>) -> Vec<String> {
    let is_of_the_runtime = |name: &str| RUNTIME.iter().any(|prefix| name.starts_with(prefix));
    let served = served.iter().filter(|(name, _)| !is_of_the_runtime(name));
    let differences = served.filter_map(|(name, family)| {
        let Some(row) = table.get(name.as_str()) else { return Some(format!("{name}: not in the table")) };
        let has_samples = !family.labels.is_empty() || !family.buckets.is_empty();
        let is_equal = (&row.kind, &row.stability) == (&family.kind, &family.stability)
            && (!has_samples || (row.labels == family.labels && row.buckets == family.buckets));
        (!is_equal).then(|| format!("{name}: the table has {row:?}, the peer {family:?}"))
    });
    differences.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(kind: &str, labels: &[&str]) -> Family {
        let labels = labels.iter().map(ToString::to_string).collect();
        Family { kind: kind.to_owned(), labels, ..Family::default() }
    }

    #[test]
    fn another_type_stability_other_labels_and_unknown_names_are_differences() {
        let table = BTreeMap::from([("a", family("counter", &["x"])), ("b", family("gauge", &[]))]);
        let served = |name: &str, family| BTreeMap::from([(name.to_owned(), family)]);
        assert!(differences(&table, &served("a", family("counter", &["x"]))).is_empty());
        assert!(differences(&table, &served("a", family("counter", &[]))).is_empty(), "it has no samples");
        assert_eq!(differences(&table, &served("a", family("gauge", &["x"]))).len(), 1);
        assert_eq!(differences(&table, &served("a", family("counter", &["y"]))).len(), 1);
        let stable = Family { stability: "STABLE".to_owned(), ..family("counter", &["x"]) };
        assert_eq!(differences(&table, &served("a", stable)).len(), 1);
        assert_eq!(differences(&table, &served("c", family("counter", &[]))), ["c: not in the table"]);
    }

    #[test]
    fn the_table_is_read_whole() {
        let table = table();
        assert_eq!(table.len(), TABLE.lines().count() - 1);
        assert!(ALWAYS.iter().all(|name| table.contains_key(name)));
    }
}
