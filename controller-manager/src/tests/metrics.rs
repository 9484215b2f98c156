//! A scrape has the metrics of upstream's table that exist here: names, types, labels, buckets and stability.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use kcm_framework::Format;

use super::upstream_metrics::{scraped, table};
use super::{running, running_of};

/// Metrics in the table that a scrape of this program does not have, by the beginning of their names, with the reason.
const ABSENT: &[(&str, &[&str])] = &[
    (
        "controllers that are not part of this program",
        &["attach_detach_controller_", "attachdetach_controller_", "storage_count_attachable_volumes_in_use"],
    ),
    ("the controller is off by default: see the tests of the controller", &["selinux_warning_controller_"]),
    ("there is no root CA to publish in this test", &["clustertrustbundle_publisher_"]),
    ("there are no resource claims in this test: see the tests of the controller", &["dynamic_resource_allocation_"]),
    ("the feature gate DRAResourcePoolStatus is off", &["resourcepoolstatusrequest_controller_"]),
    ("nodes get no pod CIDRs in this test: see the tests of the controller", &["node_ipam_controller_"]),
    (
        "libraries of the API server, which upstream links and never uses",
        &[
            "aggregator_discovery_",
            "apiserver_audit_",
            "apiserver_cel_",
            "apiserver_envelope_",
            "apiserver_kube_aggregator_",
            "apiserver_storage_",
            "apiserver_validation_",
            "apiserver_webhooks_",
        ],
    ),
    (
        "there is no port in this test: those of its requests are compared in serving/access/tests.rs",
        &["apiserver_client_certificate_", "apiserver_delegated_", "authenticat", "authorization_"],
    ),
    (
        "there are no jobs, and no pods to collect in this test: see workload_metrics.rs",
        &["job_controller_job", "job_controller_pod_failures_", "job_controller_terminated_pods_", "pod_gc_collector_"],
    ),
    ("there is no stateful set in this test: see workload_metrics.rs", &["statefulset_controller_statefulset_"]),
    ("informers handle events as they read them, and have no queue", &["informer_processing_", "informer_queued_"]),
    (
        "there is no node in this test: see the tests of the controller",
        &["node_collector_evictions_", "node_collector_unhealthy_", "node_collector_zone_"],
    ),
    ("there is no lease in this test", &["leader_election_"]),
    (
        "there are no volumes and no claims in this test: see the tests of the controller",
        &["csi_operations_", "pv_collector_", "storage_operation_", "volume_operation_"],
    ),
    ("they are in /metrics/slis", &["kubernetes_healthcheck"]),
    (
        "there is no autoscaler in this test",
        &[
            "horizontal_pod_autoscaler_controller_desired_",
            "horizontal_pod_autoscaler_controller_metric_",
            "horizontal_pod_autoscaler_controller_reconciliation",
        ],
    ),
    (
        "there are no services and no endpoints in this test: see network_metrics.rs",
        &["endpoint_slice_controller_", "endpoint_slice_mirroring_controller_"],
    ),
    ("only what has been repeated is counted", &["rest_client_request_retries_total"]),
    ("upstream declares it, and never registers it", &["rest_client_exec_plugin_policy_call_total"]),
    (
        "no credential plugin has been called",
        &["rest_client_exec_plugin_call_total", "rest_client_exec_plugin_certificate_rotation_age"],
    ),
    ("parts of client-go that have no counterpart", &["rest_client_dns_", "rest_client_transport_"]),
];

/// Metrics of this program in a scrape that the table does not have, by the beginning of their names.
const OURS: &[&str] = &["api_server_", "controller_", "informer_", "manager_", "tokio_"];

#[tokio::test(start_paused = true)]
async fn a_scrape_agrees_with_the_table_but_for_what_is_explained() {
    let manager = running().await;
    let page = String::from_utf8(manager.metrics.expose(Format::Text)).expect("it is text");
    let (ours, theirs) = (scraped(&page), table());
    let is_absent =
        |name: &str| ABSENT.iter().flat_map(|(_, prefixes)| *prefixes).any(|prefix| name.starts_with(prefix));
    for (name, theirs) in &theirs {
        match ours.get(*name) {
            Some(ours) => assert_eq!(ours, theirs, "{name}"),
            None => assert!(is_absent(name), "{name} is missing"),
        }
    }
    for name in ours.keys().filter(|name| !theirs.contains_key(name.as_str())) {
        assert!(OURS.iter().any(|prefix| name.starts_with(prefix)), "{name} is not upstream's");
    }
    let names: Vec<_> = ours.keys().collect();
    assert!(names.is_sorted() && page.starts_with("# HELP "), "families are in order");
}

#[tokio::test(start_paused = true)]
async fn the_list_of_what_is_absent_names_nothing_that_is_there_and_nothing_unknown() {
    let manager = running().await;
    let page = String::from_utf8(manager.metrics.expose(Format::Text)).expect("it is text");
    let (ours, theirs) = (scraped(&page), table());
    for prefix in ABSENT.iter().flat_map(|(_, prefixes)| *prefixes) {
        let mut named = theirs.keys().filter(|name| name.starts_with(prefix)).peekable();
        assert!(named.peek().is_some(), "{prefix} is not in the table");
        assert_eq!(named.find(|name| ours.contains_key(**name)), None, "{prefix} is there");
    }
}

#[tokio::test(start_paused = true)]
async fn all_formats_have_the_same_families() {
    let manager = running().await;
    let text = String::from_utf8(manager.metrics.expose(Format::Text)).expect("it is text");
    let open_metrics = String::from_utf8(manager.metrics.expose(Format::OpenMetrics)).expect("it is text");
    let count = |page: &str| page.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(count(&text), count(&open_metrics));
    assert!(open_metrics.ends_with("# EOF\n"));
    let protobuf = manager.metrics.expose(Format::Protobuf);
    let (mut families, mut rest) = (0, &protobuf[..]);
    while !rest.is_empty() {
        let (mut length, mut shift) = (0_usize, 0);
        loop {
            let byte = rest[0];
            rest = &rest[1..];
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        rest = &rest[length..];
        families += 1;
    }
    assert_eq!(families, count(&text));
}

/// The command that rewrites the table of the page.
const UPDATE: &str = "UPDATE=1 cargo test -p kcm-controller-manager --lib the_page_lists_each_metric";

#[tokio::test(start_paused = true)]
async fn the_page_lists_each_metric_that_upstream_does_not_have() {
    let manager = running().await;
    let scrape = String::from_utf8(manager.metrics.expose(Format::Text)).expect("it is text");
    let helps: BTreeMap<&str, &str> =
        scrape.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' ')).collect();
    let theirs = table();
    let mut rows = String::from("| metric | labels | meaning |\n| --- | --- | --- |\n");
    for (name, family) in scraped(&scrape).iter().filter(|(name, _)| !theirs.contains_key(name.as_str())) {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let row = writeln!(rows, "| `{name}` | {} | {} |", labels.join(", "), helps[name.as_str()]);
        row.expect("a string takes everything");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/serving.md");
    let old = fs::read_to_string(&path).expect("the page is there");
    let (begin, end) = ("<!-- metrics: begin -->\n", "<!-- metrics: end -->");
    let (before, rest) = old.split_once(begin).expect("the page has the table");
    let (_, after) = rest.split_once(end).expect("the table ends");
    let new = format!("{before}{begin}{rows}{end}{after}");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, new).expect("the page can be written");
    } else {
        assert!(old == new, "docs/serving.md is behind the code: `{UPDATE}` rewrites it");
    }
}

/// The size of a scrape with two controllers: a dashboard's price, which grows with labels.
#[tokio::test(start_paused = true)]
async fn a_scrape_has_the_stated_size() {
    let manager = running_of(&["deployment", "replicaset"]).await;
    let page = String::from_utf8(manager.metrics.expose(Format::Text)).expect("it is text");
    let series = page.lines().filter(|line| !line.starts_with('#')).count();
    let bytes = page.len();
    let gates = page.lines().filter(|line| line.starts_with("kubernetes_feature_enabled{")).count();
    assert!(!page.contains("state=\"disabled\""), "controllers that do not run have no series");
    assert!(series - gates <= 375 && bytes <= 80_000, "{series} series, {gates} of them gates, in {bytes} bytes");
}
