//! The binary with an API server that it can use, and the errors about an API server that it cannot use.

#![cfg(feature = "builtin")]

use crate::support::program::{Ended, Folder, Process};
use crate::support::server::Server;
use kcm_sandbox_apiserver::{Fault, PODS, REPLICA_SETS, Sandbox, Status};
use serde_json::json;

const MANAGER: &str = env!("CARGO_BIN_EXE_kube-controller-manager");

/// The manager with a kubeconfig for this cluster.
fn start(folder: &Folder, cluster: &str) -> Process {
    let controllers = "--controllers=deployment,replicaset";
    Process::start(MANAGER, &["--leader-elect=false", controllers, &folder.kubeconfig(cluster)])
}

async fn run(cluster: &str) -> Ended {
    let folder = Folder::new();
    start(&folder, cluster).ended().await
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_refused_at_once() {
    let server = Server::start_with_certificate_of_a_stranger(Sandbox::default()).await;
    let ended = run(&format!("{{server: {:?}}}", server.address)).await;
    assert_eq!(ended.code, Some(2));
    assert_eq!(
        ended.errors(),
        [format!(
            "the certificate of the API server {}/ is not signed by a trusted authority: \
             put the cluster's CA into `certificate-authority-data` of the kubeconfig",
            server.address
        )]
    );
    assert!(server.sandbox.requests().is_empty());
}

// The ten seconds are real time here, in this test only: it claims that the program waits for them, and no longer.
#[tokio::test]
async fn a_server_that_may_come_round_is_given_ten_seconds() {
    let nobody = {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port must be free");
        format!("https://{}", free.local_addr().expect("it is bound"))
    };
    let stranger = Server::start_with(Sandbox::default(), |_| Some((401, "who are you?"))).await;
    let ill = Server::start_with(Sandbox::default(), |_| Some((500, "etcd failed"))).await;
    let begun = tokio::time::Instant::now();
    let [nobody, stranger, ill] = [&nobody, &stranger.address, &ill.address].map(async |address| {
        let ended = run(&format!("{{server: {address:?}}}")).await;
        assert_eq!(ended.code, Some(2));
        let [error] = ended.errors()[..] else { panic!("{}", ended.stderr) };
        error.replace(address, "SERVER")
    });
    let told = tokio::join!(nobody, stranger, ill);
    assert_eq!(
        <[String; 3]>::from(told),
        [
            "nothing listens at the API server's address SERVER/: \
             check that it runs, and `server` in the kubeconfig",
            "the API server SERVER/ does not know our credentials (401): renew the user's in the kubeconfig",
            "the API server SERVER/ is not healthy (500: the server answered 500: etcd failed): look at its log",
        ]
    );
    assert!((9..20).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_server_that_does_not_say_what_it_serves_cannot_be_used() {
    let discovery = |path: &str| path.starts_with("/api").then_some((403, "no discovery for you"));
    let server = Server::start_with(Sandbox::default(), discovery).await;
    let ended = run(&format!("{{server: {:?}}}", server.address)).await;
    assert_eq!(ended.code, Some(2));
    let [error] = ended.errors()[..] else { panic!("{}", ended.stderr) };
    assert!(error.starts_with("cannot discover what the API server serves: "), "{error}");
    assert!(error.ends_with("no discovery for you"), "{error}");
}

#[tokio::test]
async fn a_forbidden_list_is_one_sentence_and_is_tried_again_until_it_is_granted() {
    let sandbox = Sandbox::default();
    let forbidden = Status::new(
        403,
        "Forbidden",
        r#"pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope"#,
    );
    let fault = sandbox.faults().inject(Fault::on_any().resource(PODS).fail(forbidden));
    let server = Server::start(sandbox).await;
    let folder = Folder::new();
    let mut manager = start(&folder, &format!("{{server: {:?}}}", server.address));

    let line = loop {
        let line = manager.warns().await;
        if !line.contains("\"Controller is disabled\"") {
            break line;
        }
    };
    let (_, sentence) =
        line.split_once("\"List or watch failed\" ").unwrap_or_else(|| panic!("another warning: {line}"));
    assert_eq!(
        sentence,
        "err=\"streaming list of pods was refused with 403 Forbidden: \
         pods is forbidden: User \\\"jane\\\" cannot list resource \\\"pods\\\" in API group \\\"\\\" at the cluster scope; \
         grant the user list and watch of pods\" resource=\"pods\""
    );
    manager.warns().await;
    let begun = tokio::time::Instant::now();
    manager.warns().await;
    assert!(begun.elapsed().as_millis() > 1000, "back-off must grow");
    // The first is repeated without a line once a probe has shown that the server has not just started.
    assert_eq!(fault.hits(), 4, "one line for each further attempt");

    fault.remove();
    server.sandbox.create(&REPLICA_SETS, replica_set()).expect("the replica set must be valid");
    made_pods(&server.sandbox, 2).await;
    manager.terminate();
    assert_eq!(manager.ended().await.code, Some(0));
}

#[tokio::test]
async fn with_a_server_it_runs_its_controllers_and_names_them() {
    let server = Server::start(Sandbox::default()).await;
    server.sandbox.create(&REPLICA_SETS, replica_set()).expect("the replica set must be valid");
    let folder = Folder::new();
    let mut manager = start(&folder, &format!("{{server: {:?}}}", server.address));
    manager.says("\"Started controller\" controller=\"replicaset-controller\"").await;
    manager.says("\"Waiting for caches to sync\" controller=\"replicaset-controller\"").await;
    manager.says("\"Caches are synced\" controller=\"replicaset-controller\"").await;
    made_pods(&server.sandbox, 2).await;
    let creates: Vec<_> = server.sandbox.requests().into_iter().filter(|request| request.method == "POST").collect();
    assert!(creates.iter().all(|request| {
        let agent = request.headers["user-agent"].to_str().expect("it is text");
        agent.starts_with("kube-controller-manager/") && agent.ends_with("/replicaset-controller")
            || request.path.contains("/events")
    }));
}

/// As one without the flags that tokens need.
#[tokio::test]
async fn an_api_server_that_gives_no_tokens_is_named_and_the_manager_goes_on() {
    let without_tokens = |path: &str| path.ends_with("/token").then_some((404, "404 page not found"));
    let server = Server::start_with(Sandbox::default(), without_tokens).await;
    server.sandbox.create(&REPLICA_SETS, replica_set()).expect("the replica set must be valid");
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(&format!("{{server: {:?}}}", server.address));
    let arguments =
        ["--leader-elect=false", "--controllers=replicaset", "--use-service-account-credentials", &kubeconfig];
    let mut manager = Process::start(MANAGER, &arguments);
    // Events are sent as the service account too.
    manager.expect_error("Unable to write event");
    let line = manager.says("Cannot get a service account token").await;
    assert!(line.contains("account=\"kube-system/replicaset-controller\""), "{line}");
    assert!(
        line.contains(
            "the API server issues no service account tokens: check its flags --service-account-issuer and \
             --service-account-signing-key-file, or leave --use-service-account-credentials off: cannot "
        ),
        "{line}"
    );
    for _ in 0..5 {
        manager.says("Cannot get a service account token").await;
    }
    assert!(server.sandbox.list(&PODS, None).is_empty(), "nothing is written under another identity");
    manager.terminate();
    let ended = manager.ended().await;
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.stderr.matches("Created a service account").count(), 1);
}

fn replica_set() -> serde_json::Value {
    json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "example/main:1" }] },
            },
        },
    })
}

async fn made_pods(sandbox: &Sandbox, count: usize) {
    let created = async {
        while sandbox.list(&PODS, None).len() < count {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), created).await.expect("the pods must be made");
    assert_eq!(sandbox.list(&PODS, None).len(), count);
}
