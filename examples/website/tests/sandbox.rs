//! The operator as a manager runs it, on an API server in this process. Time is paused: waiting costs nothing.

use std::path::Path;
use std::time::Duration;

use kcm_example_website::website::Website;
use kcm_example_website::{WEBSITE, WEBSITES};
use kcm_testing::sandbox::{DEPLOYMENTS, EVENTS, ObjectKey, Request, Resource, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;

const SERVICES: Resource = Resource::namespaced("", "v1", "services", "Service");
const DEFINITIONS: Resource =
    Resource::cluster_scoped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");

fn definition() -> Value {
    serde_json::to_value(Website::crd()).expect("the definition is JSON")
}

fn environment(hosts: &TempDir) -> TestEnvironment {
    let argument = format!("--website-hosts-dir={}", hosts.path().display());
    TestEnvironment::new([WEBSITE]).arguments(&[&argument]).object(DEFINITIONS, definition())
}

fn hosts() -> TempDir {
    tempfile::tempdir().expect("there is room for a directory")
}

fn host(hosts: &TempDir) -> Option<String> {
    std::fs::read_to_string(hosts.path().join("shop.example.com")).ok()
}

fn key() -> ObjectKey {
    ObjectKey::namespaced("default", "shop")
}

fn create(sandbox: &Sandbox, name: &str) {
    let website = json!({
        "apiVersion": "example.com/v1", "kind": "Website", "metadata": { "namespace": "default", "name": name },
        "spec": { "image": "nginx", "replicas": 2, "host": "shop.example.com" },
    });
    sandbox.create(&WEBSITES, website).expect("the website is valid");
}

fn ready(sandbox: &Sandbox, name: &str) -> Value {
    let website = sandbox.get(&WEBSITES, &ObjectKey::namespaced("default", name)).unwrap_or_default();
    website["status"]["conditions"][0].clone()
}

async fn reason(cluster: &TestCluster, name: &str, reason: &str) {
    let what = format!("the condition of {name} has the reason {reason}");
    cluster.eventually(&what, |sandbox| ready(sandbox, name)["reason"] == reason).await;
}

fn serve(sandbox: &Sandbox) {
    let status = json!({ "status": { "replicas": 2, "readyReplicas": 2 } });
    sandbox.patch_status(&DEPLOYMENTS, &key(), &status).expect("the status is valid");
}

fn writes(cluster: &TestCluster) -> Vec<Request> {
    let mut requests = cluster.requests_of("website-controller");
    requests.retain(|request| request.method != "GET");
    requests
}

#[tokio::test(start_paused = true)]
async fn a_website_is_served_and_says_so() {
    let hosts = hosts();
    let cluster = environment(&hosts).start().await;
    create(cluster.sandbox(), "shop");
    reason(&cluster, "shop", "Progressing").await;
    let deployment = cluster.sandbox().get(&DEPLOYMENTS, &key()).expect("it is applied");
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "nginx");
    let website = cluster.sandbox().get(&WEBSITES, &key()).expect("it exists");
    assert_eq!(deployment["metadata"]["ownerReferences"][0]["uid"], website["metadata"]["uid"]);
    assert_eq!(host(&hosts).as_deref(), Some("default/shop"));
    serve(cluster.sandbox());
    reason(&cluster, "shop", "Available").await;
    assert_eq!(ready(cluster.sandbox(), "shop")["status"], "True");
    assert!(cluster.metrics().contains("website_published_hosts_total 1"), "{}", cluster.metrics());
    cluster.settle().await;
    let mut reasons: Vec<String> = cluster
        .sandbox()
        .list(&EVENTS, Some("default"))
        .iter()
        .map(|event| event["reason"].as_str().unwrap_or_default().to_owned())
        .collect();
    reasons.sort();
    assert_eq!(reasons, ["Available", "Progressing"]);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_changes_is_applied_again_and_at_rest_nothing_is_written() {
    let hosts = hosts();
    let cluster = environment(&hosts).start().await;
    create(cluster.sandbox(), "shop");
    reason(&cluster, "shop", "Progressing").await;
    for (resource, change) in [
        (DEPLOYMENTS, json!({ "spec": { "replicas": 7 } })),
        (SERVICES, json!({ "spec": { "selector": { "other": "label" } } })),
    ] {
        let before = cluster.sandbox().get(&resource, &key()).expect("it is applied");
        cluster.sandbox().patch(&resource, &key(), &change).expect("the patch is valid");
        let is_back = |sandbox: &Sandbox| {
            let live = sandbox.get(&resource, &key()).unwrap_or_default();
            live["spec"]["replicas"] == before["spec"]["replicas"]
                && live["spec"]["selector"]["example.com/website"] == before["spec"]["selector"]["example.com/website"]
        };
        cluster.eventually("the object is as the operator applies it", is_back).await;
    }
    cluster.settle().await;
    let count = writes(&cluster).len();
    // Longer than any back-off or recheck.
    cluster.advance(Duration::from_mins(30)).await;
    assert_eq!(writes(&cluster).len(), count);
}

#[tokio::test(start_paused = true)]
async fn a_host_name_is_free_before_its_website_is_gone_and_the_next_gets_it() {
    let hosts = hosts();
    let cluster = environment(&hosts).start().await;
    create(cluster.sandbox(), "shop");
    reason(&cluster, "shop", "Progressing").await;
    create(cluster.sandbox(), "copy");
    reason(&cluster, "copy", "HostTaken").await;
    assert_eq!(ready(cluster.sandbox(), "copy")["message"], "host shop.example.com leads to default/shop");
    cluster.sandbox().delete(&WEBSITES, &key()).expect("it may be deleted");
    cluster.eventually("the website is gone", |sandbox| sandbox.get(&WEBSITES, &key()).is_none()).await;
    assert_eq!(host(&hosts), None);
    // The directory has no watch: only a change of the website makes the operator look again.
    let change = json!({ "spec": { "replicas": 1 } });
    let copy = ObjectKey::namespaced("default", "copy");
    cluster.sandbox().patch(&WEBSITES, &copy, &change).expect("the patch is valid");
    reason(&cluster, "copy", "Progressing").await;
    assert_eq!(host(&hosts).as_deref(), Some("default/copy"));
}

#[tokio::test(start_paused = true)]
async fn it_ends_the_same_whatever_write_it_is_killed_after() {
    let directories: std::cell::RefCell<Vec<TempDir>> = std::cell::RefCell::default();
    let path = |directories: &Vec<TempDir>| directories.last().expect("there is one").path().to_owned();
    let exists = |directory: &Path| directory.join("shop.example.com").exists();
    let killed = kill_after_each_write(
        || {
            let hosts = hosts();
            let environment = environment(&hosts);
            directories.borrow_mut().push(hosts);
            environment
        },
        async |cluster| {
            create(cluster.sandbox(), "shop");
            reason(cluster, "shop", "Progressing").await;
            serve(cluster.sandbox());
            reason(cluster, "shop", "Available").await;
            assert_eq!(cluster.sandbox().list(&DEPLOYMENTS, None).len(), 1);
            assert_eq!(cluster.sandbox().list(&SERVICES, Some("default")).len(), 1);
            let directory = path(&directories.borrow());
            assert!(exists(&directory));
            cluster.sandbox().delete(&WEBSITES, &key()).expect("it may be deleted");
            cluster.eventually("the website is gone", |sandbox| sandbox.get(&WEBSITES, &key()).is_none()).await;
            assert!(!exists(&directory));
        },
    )
    .await;
    // The finalizer, Deployment, Service, two statuses, and the finalizer again.
    assert_eq!(killed, 6);
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_its_definition_however_often_that_is_deleted_and_installed() {
    let hosts = hosts();
    let argument = format!("--website-hosts-dir={}", hosts.path().display());
    let cluster = TestEnvironment::new([WEBSITE]).arguments(&[&argument]).start().await;
    // Longer than discovery needs to look again.
    cluster.advance(Duration::from_mins(1)).await;
    let name = ObjectKey::cluster_scoped("websites.example.com");
    for round in 0..3 {
        cluster.sandbox().create(&DEFINITIONS, definition()).expect("the definition is valid");
        cluster.eventually("websites are watched", |sandbox| sandbox.open_watches(&WEBSITES) == 1).await;
        create(cluster.sandbox(), "shop");
        reason(&cluster, "shop", "Progressing").await;
        assert_eq!(host(&hosts).as_deref(), Some("default/shop"), "in round {round}");
        cluster.sandbox().delete(&WEBSITES, &key()).expect("it may be deleted");
        cluster.eventually("the website is gone", |sandbox| sandbox.get(&WEBSITES, &key()).is_none()).await;
        cluster.sandbox().delete(&DEFINITIONS, &name).expect("it may be deleted");
        cluster.eventually("websites are not watched", |sandbox| sandbox.open_watches(&WEBSITES) == 0).await;
    }
}
