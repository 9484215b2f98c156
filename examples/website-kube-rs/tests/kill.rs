//! The operator killed after each write, as in the comparison in `docs/plugins.md`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kcm_example_website::hosts::Hosts;
use kcm_example_website::website::Website;
use kcm_sandbox_apiserver::{ConnectionLost, DEPLOYMENTS, ObjectKey, Resource, Sandbox, SandboxOptions};
use kube::CustomResourceExt as _;
use kube::client::Body;
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::ServiceExt as _;

const WEBSITES: Resource = Resource::namespaced("example.com", "v1", "websites", "Website");
const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");
const DEFINITIONS: Resource =
    Resource::cluster_scoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");

/// Counts accepted writes, without events, and withholds the response of one of them.
#[derive(Default)]
struct Writes {
    accepted: AtomicUsize,
    kill_after: Option<usize>,
    kill: Notify,
}

fn client(sandbox: &Sandbox, writes: &Arc<Writes>) -> kube::Client {
    let (service, writes) = (sandbox.service(), Arc::clone(writes));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (service, writes) = (service.clone(), Arc::clone(&writes));
        async move {
            let is_write = *request.method() != http::Method::GET && !request.uri().path().contains("/events");
            let response = service.oneshot(request).await?;
            if is_write && response.status().is_success() {
                let number = writes.accepted.fetch_add(1, Ordering::SeqCst) + 1;
                if writes.kill_after == Some(number) {
                    writes.kill.notify_one();
                    std::future::pending::<()>().await;
                }
            }
            Ok::<_, ConnectionLost>(response)
        }
    });
    kube::Client::new(service, "default")
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "shop")
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_mins(20), waiting).await.is_ok(), "it never held that {what}");
}

fn status(sandbox: &Sandbox) -> Value {
    sandbox.get(&WEBSITES, &key()).map(|website| website["status"].clone()).unwrap_or_default()
}

/// A website is created, described, and deleted.
async fn scenario(sandbox: &Sandbox, directory: &Path) {
    let website = json!({
        "apiVersion": "example.com/v1", "kind": "Website",
        "metadata": { "namespace": "default", "name": "shop" },
        "spec": { "image": "nginx", "replicas": 2, "host": "shop.example.com" },
    });
    sandbox.create(&WEBSITES, website).expect("the website is valid");
    eventually("the status is written", || status(sandbox)["observedGeneration"] == 1).await;
    assert_eq!(sandbox.list(&DEPLOYMENTS, None).len(), 1);
    assert_eq!(sandbox.list(&SERVICES, Some("default")).len(), 1);
    assert_eq!(std::fs::read_to_string(directory.join("shop.example.com")).expect("it is published"), "default/shop");
    sandbox.delete(&WEBSITES, &key()).expect("it may be deleted");
    eventually("the website is gone", || sandbox.get(&WEBSITES, &key()).is_none()).await;
    assert!(!directory.join("shop.example.com").exists());
}

/// Runs the scenario with the operator killed after a write; returns the number of writes.
async fn run(kill_after: Option<usize>) -> usize {
    let sandbox = Sandbox::new(SandboxOptions::default());
    let definition = serde_json::to_value(Website::crd()).expect("the definition is JSON");
    sandbox.create(&DEFINITIONS, definition).expect("the definition is valid");
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let hosts = Hosts::new(directory.path());
    let writes = Arc::new(Writes { kill_after, ..Writes::default() });
    let operator = async {
        let start = || client(&sandbox, &writes);
        tokio::select! {
            ended = kcm_example_website_kube_rs::run(start(), hosts.clone(), Counter::default(), 5, std::future::pending()) => {
                panic!("the operator ended: {ended:?}");
            }
            () = writes.kill.notified() => {}
        }
        let ended =
            kcm_example_website_kube_rs::run(start(), hosts, Counter::default(), 5, std::future::pending()).await;
        panic!("the operator ended: {ended:?}");
    };
    tokio::select! {
        () = scenario(&sandbox, directory.path()) => writes.accepted.load(Ordering::SeqCst),
        never = operator => never,
    }
}

#[tokio::test(start_paused = true)]
async fn the_scenario_ends_the_same_whatever_write_it_is_killed_after() {
    let writes = run(None).await;
    for number in 1..=writes {
        run(Some(number)).await;
    }
}
