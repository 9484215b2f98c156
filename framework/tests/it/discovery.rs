//! The known resources of the API server, from each form of discovery.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kcm_api::Resource;
use kcm_framework::client::{ClientBuilder, Limits, UserAgent};
use kcm_framework::discovery::{Discovery, REFRESH_EVERY, Refresher};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const SECOND: Duration = Duration::from_secs(1);
const DEPLOYMENTS: Resource = Resource::namespaced("apps", "v1", "deployments", "Deployment");
const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
const NODE_METRICS: Resource = Resource::cluster_scoped("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics");

/// An API server with these documents; a number is an error.
#[derive(Clone, Default)]
struct Documents {
    by_path: Arc<Mutex<BTreeMap<String, Value>>>,
    /// The paths of all requests.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Documents {
    fn of<const N: usize>(documents: [(&str, Value); N]) -> Self {
        let all = documents.into_iter().map(|(path, document)| (path.to_owned(), document)).collect();
        Self { by_path: Arc::new(Mutex::new(all)), asked: Arc::default() }
    }

    fn set(&self, path: &str, document: Value) {
        self.by_path.lock().unwrap().insert(path.to_owned(), document);
    }

    fn get(&self, path: &str) -> Value {
        self.by_path.lock().unwrap()[path].clone()
    }

    fn refresher(&self) -> Refresher {
        let documents = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path();
            documents.asked.lock().unwrap().push(path.to_owned());
            let document = documents.by_path.lock().unwrap().get(path).cloned().unwrap_or(json!(404));
            let is_new_format = request.headers()["accept"].to_str().unwrap().contains("apidiscovery");
            async move {
                let code = match document.as_u64() {
                    // Only to clients that ask for the new format.
                    Some(406) if !is_new_format => 200,
                    Some(code) => u16::try_from(code).unwrap(),
                    None => 200,
                };
                let body = if document == json!(406) { json!({"kind": "APIGroupList"}) } else { document };
                let body = if code == 200 { body.to_string() } else { String::new() };
                Ok::<_, kube::Error>(Response::builder().status(code).body(Body::from(body.into_bytes())).unwrap())
            }
        });
        let client = kube::Client::new(service, "default");
        let builder =
            ClientBuilder::new(client, UserAgent::new("kube-controller-manager", "v1", ""), Limits::UNLIMITED);
        Refresher::new(builder.client_for("discovery"))
    }
}

fn resource(plural: &str, kind: &str, scope: &str, subresources: &[&str]) -> Value {
    let subresources: Vec<_> = subresources
        .iter()
        .map(|name| {
            let (group, version, kind) = if *name == "scale" { ("autoscaling", "v1", "Scale") } else { ("", "", kind) };
            let response_kind = json!({"group": group, "version": version, "kind": kind});
            json!({"subresource": name, "responseKind": response_kind})
        })
        .collect();
    json!({
        "resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": scope,
        "verbs": ["get", "list", "watch"], "subresources": subresources,
    })
}

fn aggregated_core() -> Value {
    json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {}, "versions": [
        {"version": "v1", "freshness": "Current", "resources": [
            resource("pods", "Pod", "Namespaced", &["status"]), resource("namespaces", "Namespace", "Cluster", &[])]},
    ]}]})
}

fn aggregated_groups(metrics_freshness: &str) -> Value {
    let nodes = if metrics_freshness == "Current" {
        json!([resource("nodes", "NodeMetrics", "Cluster", &[])])
    } else {
        Value::Null
    };
    json!({"kind": "APIGroupDiscoveryList", "items": [
        {"metadata": {"name": "apps"}, "versions": [
            {"version": "v1", "freshness": "Current", "resources": [
                resource("deployments", "Deployment", "Namespaced", &["scale", "status"])]},
            {"version": "v1beta1", "freshness": "Current", "resources": [
                resource("deployments", "Deployment", "Namespaced", &[]), resource("old", "Old", "Cluster", &[])]},
        ]},
        {"metadata": {"name": "metrics.k8s.io"}, "versions": [
            {"version": "v1beta1", "freshness": metrics_freshness, "resources": nodes},
        ]},
    ]})
}

fn legacy() -> Documents {
    let list = |resources: Value| json!({"kind": "APIResourceList", "resources": resources});
    Documents::of([
        ("/api", json!({"kind": "APIVersions", "versions": ["v1"]})),
        (
            "/api/v1",
            list(json!([
                {"name": "pods", "namespaced": true, "kind": "Pod", "verbs": ["get", "list", "watch"]},
                {"name": "pods/status", "namespaced": true, "kind": "Pod", "verbs": ["get"]},
                {"name": "namespaces", "namespaced": false, "kind": "Namespace", "verbs": ["get", "list", "watch"]},
            ])),
        ),
        (
            "/apis",
            json!({"kind": "APIGroupList", "groups": [
                {"name": "apps", "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                 "preferredVersion": {"version": "v1"}},
                {"name": "metrics.k8s.io", "versions": [{"version": "v1beta1"}]},
            ]}),
        ),
        (
            "/apis/apps/v1",
            list(json!([
                {"name": "deployments", "namespaced": true, "kind": "Deployment", "verbs": ["get", "list", "watch"]},
                {"name": "deployments/scale", "namespaced": true, "group": "autoscaling", "version": "v1",
                 "kind": "Scale", "verbs": []},
                {"name": "deployments/status", "namespaced": true, "kind": "Deployment", "verbs": []},
            ])),
        ),
        (
            "/apis/apps/v1beta1",
            list(json!([
                {"name": "deployments", "namespaced": true, "kind": "Deployment", "verbs": ["get", "list", "watch"]},
                {"name": "old", "namespaced": false, "kind": "Old", "verbs": ["get", "list", "watch"]},
            ])),
        ),
        (
            "/apis/metrics.k8s.io/v1beta1",
            list(json!([
                {"name": "nodes", "namespaced": false, "kind": "NodeMetrics", "verbs": ["get", "list", "watch"]},
            ])),
        ),
    ])
}

/// The discovery of `apps/v1beta1` after a kind was added.
fn more_of_v1beta1() -> Value {
    let mut list = legacy().get("/apis/apps/v1beta1");
    let added = json!({"name": "new", "namespaced": false, "kind": "New", "verbs": ["get", "list", "watch"]});
    list["resources"].as_array_mut().unwrap().push(added);
    list
}

async fn discover(documents: &Documents) -> Discovery {
    let refresher = documents.refresher();
    refresher.refresh().await.unwrap();
    Discovery::fixed((*refresher.discovery().resources()).clone())
}

#[tokio::test]
async fn both_forms_of_discovery_tell_the_same() {
    let aggregated =
        discover(&Documents::of([("/api", aggregated_core()), ("/apis", aggregated_groups("Current"))])).await;
    let per_group = discover(&legacy()).await;
    assert_eq!(aggregated.resources(), per_group.resources());
    assert_eq!(aggregated.resources().iter().count(), 6);
    assert!(aggregated.resources().broken().is_empty());
}

#[tokio::test]
async fn resources_are_found_by_name_and_kinds_by_group() {
    let discovery = discover(&legacy()).await;
    let resources = discovery.resources();
    let deployments = resources.get(&DEPLOYMENTS).unwrap();
    assert!(deployments.is_preferred && deployments.resource == DEPLOYMENTS);
    assert!(deployments.supports(&["list", "watch"]) && !deployments.supports(&["list", "delete"]));
    assert_eq!(deployments.subresources.keys().map(AsRef::as_ref).collect::<Vec<_>>(), ["scale", "status"]);
    let scale = &deployments.subresources["scale"];
    assert_eq!((&*scale.group, &*scale.version, &*scale.kind), ("autoscaling", "v1", "Scale"));

    assert_eq!(discovery.resource_of_kind("apps", "Deployment"), Some(DEPLOYMENTS));
    assert_eq!(discovery.resource_of_kind("", "Pod"), Some(PODS));
    assert_eq!(discovery.resource_of_kind("", "Deployment"), None);
    assert_eq!(discovery.resource_of_kind("apps", "Old").unwrap().version, "v1beta1", "no other version has it");
    assert_eq!(resources.resource_of("apps/v1beta1", "Deployment").unwrap().version, "v1beta1");
    assert_eq!(resources.resource_of("v1", "Pod"), Some(&PODS));
    let preferred: Vec<_> = resources.preferred().map(|served| served.resource.to_string()).collect();
    assert_eq!(preferred, ["pods", "namespaces", "deployments.apps", "old.apps", "nodes.metrics.k8s.io"]);
}

#[tokio::test]
async fn a_broken_group_is_reported_and_keeps_what_it_had() {
    let aggregated = Documents::of([("/api", aggregated_core()), ("/apis", aggregated_groups("Current"))]);
    let breaks =
        [(aggregated, "/apis", aggregated_groups("Stale")), (legacy(), "/apis/metrics.k8s.io/v1beta1", json!(503))];
    for (documents, path, broken) in breaks {
        let refresher = documents.refresher();
        refresher.refresh().await.unwrap();
        documents.set(path, broken.clone());
        refresher.refresh().await.unwrap();
        let discovery = refresher.discovery();
        assert!(discovery.is_available(&NODE_METRICS) && discovery.is_available(&DEPLOYMENTS));
        assert_eq!(discovery.resources().broken().keys().collect::<Vec<_>>(), ["metrics.k8s.io/v1beta1"]);

        let discovery = discover(&documents).await;
        assert!(!discovery.is_available(&NODE_METRICS), "never known");
        assert!(discovery.is_available(&PODS));
    }
}

#[tokio::test]
async fn a_server_that_does_not_know_the_new_format_is_asked_in_the_old() {
    let documents = legacy();
    documents.set("/apis", json!(406));
    assert!(discover(&documents).await.is_available(&PODS));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_an_error_and_changes_nothing() {
    let documents = legacy();
    let refresher = documents.refresher();
    refresher.refresh().await.unwrap();
    documents.set("/apis", json!(500));
    assert_eq!(refresher.refresh().await.unwrap_err().to_string(), "cannot get /apis");
    assert!(refresher.discovery().is_available(&DEPLOYMENTS));
}

#[tokio::test(start_paused = true)]
async fn a_change_is_seen_within_thirty_seconds_and_told_once() {
    let documents = legacy();
    let refresher = documents.refresher();
    refresher.refresh().await.unwrap();
    let discovery = refresher.discovery();
    let mut changes = discovery.changes();
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(refresher.run(cancel.clone()));

    tokio::time::sleep(REFRESH_EVERY * 3).await;
    assert!(!changes.has_changed().unwrap(), "nothing is new");
    documents.set("/apis/apps/v1beta1", more_of_v1beta1());
    tokio::time::timeout(REFRESH_EVERY + SECOND, changes.changed()).await.unwrap().unwrap();
    assert!(discovery.resource_of_kind("apps", "New").is_some());
    documents.set("/apis/apps/v1beta1", json!(404));
    tokio::time::timeout(REFRESH_EVERY * 2 + SECOND, changes.changed()).await.unwrap().unwrap();
    assert_eq!(discovery.resource_of_kind("apps", "Old"), None);
    tokio::time::sleep(REFRESH_EVERY * 3).await;
    assert!(!changes.has_changed().unwrap(), "nothing is new");

    cancel.cancel();
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_compared_by_what_is_served() {
    let documents = legacy();
    let refresher = documents.refresher();
    refresher.refresh().await.unwrap();
    let discovery = refresher.discovery();
    let changes = discovery.changes();
    // The group fails, then with another message, then recovers: it serves the same throughout.
    for answer in [json!(503), json!(500), legacy().get("/apis/metrics.k8s.io/v1beta1")] {
        documents.set("/apis/metrics.k8s.io/v1beta1", answer.clone());
        refresher.refresh().await.unwrap();
        assert!(!changes.has_changed().unwrap(), "{answer}");
        assert_eq!(discovery.resources().broken().is_empty(), answer.is_object(), "the snapshot says it nevertheless");
    }
    documents.set("/apis/metrics.k8s.io/v1beta1", json!({"kind": "APIResourceList", "resources": []}));
    refresher.refresh().await.unwrap();
    assert!(!changes.has_changed().unwrap() && discovery.is_available(&NODE_METRICS));
    tokio::time::sleep(10 * SECOND).await;
    refresher.refresh().await.unwrap();
    assert!(changes.has_changed().unwrap() && !discovery.is_available(&NODE_METRICS));
}

#[tokio::test(start_paused = true)]
async fn a_resource_leaves_when_two_snapshots_in_a_row_lack_it() {
    let lacking = |documents: &Documents, path: &str, answer: Value| {
        let before = documents.get(path);
        documents.set(path, answer);
        before
    };
    let aggregated = || Documents::of([("/api", aggregated_core()), ("/apis", aggregated_groups("Current"))]);
    let empty = json!({"kind": "APIGroupDiscoveryList", "items": []});
    let rows = [
        ("an empty list of groups", legacy(), "/apis", json!({"kind": "APIGroupList", "groups": []})),
        ("an empty list in the new format", aggregated(), "/apis", empty.clone()),
        ("a 404 of one group", legacy(), "/apis/apps/v1", json!(404)),
    ];
    for (name, documents, path, answer) in rows {
        let refresher = documents.refresher();
        refresher.refresh().await.unwrap();
        let discovery = refresher.discovery();
        let before = discovery.resources();
        let mut changes = discovery.changes();
        // Servers that answer in turn.
        for _ in 0..5 {
            let complete = lacking(&documents, path, answer.clone());
            refresher.refresh().await.unwrap();
            let resources = discovery.resources();
            assert!(resources.is_available(&DEPLOYMENTS) && resources.is_departing(&DEPLOYMENTS), "{name}");
            assert!(resources.serves_the_same_as(&before) && !resources.is_departing(&PODS), "{name}");
            tokio::time::sleep(REFRESH_EVERY).await;
            documents.set(path, complete);
            refresher.refresh().await.unwrap();
            assert!(!discovery.resources().is_departing(&DEPLOYMENTS), "{name}");
            tokio::time::sleep(REFRESH_EVERY).await;
        }
        assert!(!changes.has_changed().unwrap(), "{name}");
        // It is gone, and decisions that ask afresh do so more often.
        documents.set(path, answer);
        for _ in 0..4 {
            assert!(discovery.fresh().await.unwrap().is_available(&DEPLOYMENTS), "{name}");
            tokio::time::sleep(3 * SECOND).await;
        }
        assert!(!discovery.fresh().await.unwrap().is_available(&DEPLOYMENTS), "{name}");
        assert!(discovery.is_available(&PODS) && changes.changed().await.is_ok(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_without_namespaces_is_no_snapshot() {
    let documents = legacy();
    let refresher = documents.refresher();
    refresher.refresh().await.unwrap();
    let before = refresher.discovery().resources();
    for (path, answer) in [
        ("/api", json!({"kind": "APIVersions", "versions": []})),
        ("/api/v1", json!({"kind": "APIResourceList", "resources": []})),
        ("/api/v1", json!(404)),
    ] {
        let complete = documents.get(path);
        documents.set(path, answer);
        for _ in 0..3 {
            tokio::time::sleep(REFRESH_EVERY).await;
            let error = refresher.refresh().await.unwrap_err();
            assert_eq!(error.to_string(), "cannot read what the API server serves");
            assert_eq!(refresher.discovery().resources(), before);
        }
        documents.set(path, complete);
    }
}

#[tokio::test]
async fn a_decision_that_needs_it_asks_afresh() {
    let documents = legacy();
    let refresher = documents.refresher();
    refresher.refresh().await.unwrap();
    let discovery = refresher.discovery();
    documents.set("/apis/apps/v1beta1", more_of_v1beta1());
    assert_eq!(discovery.resource_of_kind("apps", "New"), None, "the snapshot is old");
    assert!(discovery.fresh().await.unwrap().resource_of_kind("apps", "New").is_some());
    documents.set("/apis", json!(500));
    assert_eq!(discovery.fresh().await.unwrap_err().to_string(), "cannot get /apis");
}

#[tokio::test]
async fn many_calls_at_once_share_one_snapshot_that_was_read_after_them() {
    let documents = legacy();
    let discovery = documents.refresher().discovery();
    let asked_of =
        |documents: &Documents| documents.asked.lock().unwrap().iter().filter(|path| *path == "/api").count();
    let calls = (0..50).map(|_| discovery.fresh());
    for answer in futures::future::join_all(calls).await {
        assert!(answer.unwrap().is_available(&PODS));
    }
    assert_eq!(asked_of(&documents), 2, "the read of the first call, which all others are later than, and one more");
    discovery.fresh().await.unwrap();
    assert_eq!(asked_of(&documents), 3, "a later call asks again");
}
