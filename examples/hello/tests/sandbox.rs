//! The controller as a manager runs it, on an API server in this process. Time is paused: waiting costs nothing.

use std::sync::Arc;
use std::time::Duration;

use kcm_example_hello::{HELLO, LABEL};
use kcm_framework::api::ObjectKey;
use kcm_framework::client::{ClientBuilder, Limits, UserAgent};
use kcm_framework::clock::SystemClock;
use kcm_framework::config::{Effective, Initial, Outcome, Row, Sources, Table};
use kcm_framework::{Extensions, Manager, Metrics, Registry, Selection, Stop};
use kcm_sandbox_apiserver::{NAMESPACES, Request, Sandbox};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The settings of the controller as `sources` give them.
fn settings(sources: &Sources) -> Effective {
    let table = Table::new(HELLO.rows().iter().copied().chain([CONFIG])).expect("the rows must make a table");
    match table.load(sources).expect("the settings must be valid") {
        Outcome::Settings(settings) => *settings,
        Outcome::Help => panic!("nobody asked for help"),
    }
}

/// The host's flag that names the configuration file.
const CONFIG: Row = Row::new("config", "Misc", Initial::String("")).help("A configuration file.");

/// An API server with the controller on it, which stops when this is dropped.
struct Cluster {
    sandbox: Sandbox,
    _manager: JoinSet<()>,
}

impl Cluster {
    fn start(sandbox: Sandbox, settings: Effective) -> Self {
        let registry = Registry::of([HELLO]).expect("the descriptor must be valid");
        let user_agent = UserAgent::new("kube-controller-manager", "v0.0.0", "");
        let manager = Manager {
            selection: Selection::parse(["*"], &registry, &[]).expect("the star is always known"),
            registry,
            settings,
            clients: ClientBuilder::new(sandbox.client(), user_agent, Limits::UNLIMITED),
            server: "the sandbox".to_owned(),
            clock: Arc::new(SystemClock),
            metrics: Metrics::new(),
            seed: 1,
            start_interval: Duration::ZERO,
            min_resync: Duration::from_hours(12),
            extensions: Extensions::default(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { manager.run(Stop::default()).await.expect("the sandbox must answer") });
        Self { sandbox, _manager: tasks }
    }

    /// Waits until a namespace has the greeting.
    async fn greeted(&self, namespace: &str, greeting: &str) {
        let greeted = async {
            while self.namespace(namespace)["metadata"]["labels"][LABEL] != greeting {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_mins(1), greeted).await;
        assert!(waited.is_ok(), "{:?}", self.namespace(namespace));
    }

    fn namespace(&self, name: &str) -> Value {
        self.sandbox.get(&NAMESPACES, &ObjectKey::cluster_scoped(name)).expect("the namespace must be there")
    }

    /// What was written to a namespace.
    fn writes(&self, name: &str) -> Vec<Request> {
        let path = format!("/api/v1/namespaces/{name}");
        self.sandbox.requests().into_iter().filter(|request| request.method != "GET" && request.path == path).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn greets_the_namespaces_that_there_are_and_those_that_come() {
    let cluster = Cluster::start(Sandbox::default(), settings(&Sources::default()));
    cluster.greeted("default", "hello").await;
    cluster.sandbox.create_namespace("new").expect("the name must be free");
    cluster.greeted("new", "hello").await;
    assert_eq!(cluster.namespace("new")["metadata"]["labels"]["kubernetes.io/metadata.name"], "new");
}

#[tokio::test(start_paused = true)]
async fn greets_again_where_the_greeting_was_changed() {
    let cluster = Cluster::start(Sandbox::default(), settings(&Sources::default()));
    cluster.greeted("default", "hello").await;
    let changed = json!({ "metadata": { "labels": { LABEL: "goodbye" } } });
    let default = ObjectKey::cluster_scoped("default");
    cluster.sandbox.patch(&NAMESPACES, &default, &changed).expect("the patch must be valid");
    cluster.greeted("default", "hello").await;
    assert_eq!(cluster.writes("default").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_greeting_is_a_flag_a_variable_and_a_key_of_the_file() {
    let file = "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n\
                helloController: {greeting: moin}\n";
    for (sources, greeting) in [
        (Sources::default().arguments(["--hello-greeting=servus"]), "servus"),
        (Sources::default().variables([("KCM_HELLO_GREETING", "salut")]), "salut"),
        (Sources::default().arguments(["--config=hello.yaml"]).file("hello.yaml", file), "moin"),
    ] {
        let cluster = Cluster::start(Sandbox::default(), settings(&sources));
        cluster.greeted("default", greeting).await;
    }
}

#[tokio::test(start_paused = true)]
async fn writes_nothing_where_nothing_is_to_be_done() {
    let sandbox = Sandbox::default();
    let label = json!({ "metadata": { "labels": { LABEL: "hello" } } });
    let greeted = ObjectKey::cluster_scoped("kube-system");
    sandbox.patch(&NAMESPACES, &greeted, &label).expect("the patch must be valid");
    sandbox.create_namespace("ending").expect("the name must be free");
    let ending = sandbox.delete(&NAMESPACES, &ObjectKey::cluster_scoped("ending")).expect("it may go");
    assert!(ending.is_some(), "a namespace stays until its finalizer is gone");

    let cluster = Cluster::start(sandbox, settings(&Sources::default()));
    for namespace in ["default", "kube-node-lease", "kube-public"] {
        cluster.greeted(namespace, "hello").await;
    }
    // More than any back-off or recheck takes.
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(cluster.writes("kube-system").is_empty());
    assert!(cluster.writes("ending").is_empty());
    assert_eq!(cluster.writes("default").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_of_the_same_name_is_not_taken_for_the_one_that_was_seen() {
    let cluster = Cluster::start(Sandbox::default(), settings(&Sources::default()));
    cluster.greeted("default", "hello").await;
    let written = cluster.writes("default");
    let body: Value = serde_json::from_str(&written[0].body).expect("patches are JSON");
    let uid = &cluster.namespace("default")["metadata"]["uid"];
    assert_eq!(body, json!({ "metadata": { "uid": uid, "labels": { LABEL: "hello" } } }));
    assert_eq!(written[0].headers["content-type"], "application/merge-patch+json");
}
