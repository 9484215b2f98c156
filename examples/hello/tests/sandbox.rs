//! The controller as a manager runs it, on an API server in this process. Time is paused: waiting costs nothing.

use std::time::Duration;

use kcm_example_hello::{HELLO, LABEL};
use kcm_testing::sandbox::{NAMESPACES, ObjectKey, Request, Sandbox};
use kcm_testing::{TestCluster, TestEnvironment, kill_after_each_write};
use serde_json::{Value, json};

fn namespace(sandbox: &Sandbox, name: &str) -> Value {
    sandbox.get(&NAMESPACES, &ObjectKey::cluster_scoped(name)).expect("the namespace exists")
}

async fn greeted(cluster: &TestCluster, name: &str, greeting: &str) {
    cluster
        .eventually("the namespace is greeted", |sandbox| {
            namespace(sandbox, name)["metadata"]["labels"][LABEL] == greeting
        })
        .await;
}

/// The writes to a namespace.
fn writes(cluster: &TestCluster, name: &str) -> Vec<Request> {
    let path = format!("/api/v1/namespaces/{name}");
    let requests = cluster.requests_of("hello-controller").into_iter();
    requests.filter(|request| request.method != "GET" && request.path == path).collect()
}

#[tokio::test(start_paused = true)]
async fn greets_the_namespaces_that_there_are_and_those_that_come() {
    let cluster = TestEnvironment::new([HELLO]).start().await;
    greeted(&cluster, "default", "hello").await;
    cluster.sandbox().create_namespace("new").expect("the name must be free");
    greeted(&cluster, "new", "hello").await;
    assert_eq!(namespace(cluster.sandbox(), "new")["metadata"]["labels"]["kubernetes.io/metadata.name"], "new");
}

#[tokio::test(start_paused = true)]
async fn greets_again_where_the_greeting_was_changed() {
    let cluster = TestEnvironment::new([HELLO]).start().await;
    greeted(&cluster, "default", "hello").await;
    let changed = json!({ "metadata": { "labels": { LABEL: "goodbye" } } });
    let default = ObjectKey::cluster_scoped("default");
    cluster.sandbox().patch(&NAMESPACES, &default, &changed).expect("the patch must be valid");
    greeted(&cluster, "default", "hello").await;
    assert_eq!(writes(&cluster, "default").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_greeting_is_a_flag_a_variable_and_a_key_of_the_file() {
    let file = "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n\
                helloController: {greeting: moin}\n";
    for (environment, greeting) in [
        (TestEnvironment::new([HELLO]).arguments(&["--hello-greeting=servus"]), "servus"),
        (TestEnvironment::new([HELLO]).variable("KCM_HELLO_GREETING", "salut"), "salut"),
        (TestEnvironment::new([HELLO]).configuration(file), "moin"),
    ] {
        let cluster = environment.start().await;
        greeted(&cluster, "default", greeting).await;
    }
}

#[tokio::test(start_paused = true)]
async fn writes_nothing_where_nothing_is_to_be_done() {
    let label = json!({ "metadata": { "labels": { LABEL: "hello" } } });
    let environment = TestEnvironment::new([HELLO]).prepare(move |sandbox| {
        let greeted = ObjectKey::cluster_scoped("kube-system");
        sandbox.patch(&NAMESPACES, &greeted, &label).expect("the patch is valid");
        sandbox.create_namespace("ending").expect("the name is free");
        let ending = sandbox.delete(&NAMESPACES, &ObjectKey::cluster_scoped("ending")).expect("it may be deleted");
        assert!(ending.is_some(), "a namespace stays until its finalizer is gone");
    });
    let cluster = environment.start().await;
    for namespace in ["default", "kube-node-lease", "kube-public"] {
        greeted(&cluster, namespace, "hello").await;
    }
    // Longer than any back-off or recheck.
    cluster.advance(Duration::from_mins(5)).await;
    assert!(writes(&cluster, "kube-system").is_empty());
    assert!(writes(&cluster, "ending").is_empty());
    assert_eq!(writes(&cluster, "default").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_the_same_name_is_not_taken_for_the_one_that_was_seen() {
    let cluster = TestEnvironment::new([HELLO]).start().await;
    greeted(&cluster, "default", "hello").await;
    let written = writes(&cluster, "default");
    let body: Value = serde_json::from_str(&written[0].body).expect("patches are JSON");
    let uid = &namespace(cluster.sandbox(), "default")["metadata"]["uid"];
    assert_eq!(body, json!({ "metadata": { "uid": uid, "labels": { LABEL: "hello" } } }));
    assert_eq!(written[0].headers["content-type"], "application/merge-patch+json");
}

#[tokio::test(start_paused = true)]
async fn greets_every_namespace_once_wherever_it_is_killed() {
    let writes = kill_after_each_write(
        || TestEnvironment::new([HELLO]),
        async |cluster| {
            for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
                greeted(cluster, name, "hello").await;
                assert_eq!(writes(cluster, name).len(), 1, "{name}");
            }
        },
    )
    .await;
    assert_eq!(writes, 4);
}
