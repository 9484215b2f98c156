//! Metrics that upstream has too have upstream's names, types, labels and buckets.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use kcm_framework::{Class, ReconcileError};
use kcm_sandbox_apiserver::{Fault, Status, Verb};

use crate::guarantees::support::{Options, PARTS, World, sandbox, seconds};

/// Upstream's rows for what the framework has; `metric type labels buckets stability note`.
const UPSTREAM: &str = include_str!("../../data/metrics.tsv");

/// A metric as a scrape shows it.
#[derive(Debug, Default, PartialEq)]
struct Family {
    kind: String,
    labels: BTreeSet<String>,
    buckets: Vec<f64>,
}

/// The families of a scrape, by the names under which Prometheus keeps their samples.
fn families(scrape: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in scrape.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap();
            current = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
            families.insert(current.clone(), Family { kind: kind.to_owned(), ..Family::default() });
        }
        let Some((series, _)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else { continue };
        let family = families.get_mut(&current).expect("a type is declared before its samples");
        let labels = series.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (name, value) = label.split_once('=').unwrap();
            if name != "le" {
                family.labels.insert(name.to_owned());
                continue;
            }
            let bound: f64 = value.trim_matches('"').parse().unwrap();
            if !family.buckets.contains(&bound) {
                family.buckets.push(bound);
            }
        }
    }
    families
}

fn upstream() -> BTreeMap<String, Family> {
    let rows = UPSTREAM.lines().skip(1).map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let labels = columns[2].split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect();
        let buckets = columns[3].split_whitespace().map(|bound| bound.parse().unwrap()).collect();
        (columns[0].to_owned(), Family { kind: columns[1].to_owned(), labels, buckets })
    });
    rows.collect()
}

async fn scrape() -> String {
    let sandbox = sandbox();
    let busy = Fault::on(Verb::Create).resource(PARTS).times(1);
    sandbox.faults().inject(busy.fail(Status::too_many_requests(1)));
    let world = World::with(Options::default(), &sandbox, |turn| {
        async move {
            match turn.number {
                0 => return Err(ReconcileError::new(Class::Transient, "as the test wants it")),
                1 => drop(turn.create_part().await?),
                _ => {}
            }
            Ok(())
        }
        .boxed()
    })
    .await;
    world.add("a");
    tokio::time::sleep(seconds(3)).await;
    world.manager.metrics.encode()
}

#[tokio::test(start_paused = true)]
async fn what_upstream_has_too_is_named_and_shaped_as_there() {
    let ours = families(&scrape().await);
    for (name, theirs) in upstream() {
        let ours = ours.get(&name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!((&ours.kind, &ours.labels), (&theirs.kind, &theirs.labels), "{name}");
        assert_eq!(ours.buckets, theirs.buckets, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_named_like_upstreams_that_upstream_does_not_have() {
    let theirs = upstream();
    for name in families(&scrape().await).keys() {
        let reserved = name.starts_with("workqueue_") || name.starts_with("rest_client_");
        assert!(!reserved || theirs.contains_key(name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn queues_count_by_their_own_names_and_requests_by_what_was_asked() {
    let scrape = scrape().await;
    for line in [
        "workqueue_retries_total{name=\"sets\"} 1",
        "workqueue_depth{name=\"sets\"} 0",
        "workqueue_work_duration_seconds_count{name=\"sets\"} 3",
        "rest_client_requests_total{code=\"201\",host=\"sandbox:443\",method=\"POST\"} 1",
        "rest_client_request_retries_total{code=\"201\",host=\"sandbox:443\",verb=\"POST\"} 1",
    ] {
        assert!(scrape.lines().any(|written| written == line), "{line} is not in\n{scrape}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_gate_is_shown_with_its_stage_and_its_state() {
    let scrape = scrape().await;
    for line in [
        r#"kubernetes_feature_enabled{name="PodDeletionCost",stage="BETA"} 1"#,
        r#"kubernetes_feature_enabled{name="StatefulSetRecreateStrategy",stage="ALPHA"} 0"#,
        r#"kubernetes_feature_enabled{name="JobManagedBy",stage=""} 1"#,
        r#"kubernetes_feature_enabled{name="AllowDNSOnlyNodeCSR",stage="DEPRECATED"} 0"#,
    ] {
        assert!(scrape.lines().any(|found| found == line), "{line}");
    }
    assert_eq!(scrape.lines().filter(|line| line.starts_with("kubernetes_feature_enabled{")).count(), 254);
}
