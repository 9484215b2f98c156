//! The sub-command `sandbox`, as users and their clients run it.

#![cfg(all(feature = "builtin", feature = "sandbox"))]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::subcommand::{QUICK, client, names, sandbox, start, started};
use crate::support::program::Folder;
use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, ServiceAccount};
use kcm_controllers as _;
use kcm_framework::Registry;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

fn deployment(name: &str, replicas: i32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "shop:1.0" }] },
            },
        },
    }))
    .expect("it is a deployment")
}

/// Follows deployments from a version on until something is as wanted.
async fn until(deployments: &Api<Deployment>, version: &str, wanted: impl Fn(&WatchEvent<Deployment>) -> bool) {
    let following = async {
        let events = deployments.watch(&WatchParams::default(), version).await.expect("watches must be served");
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await.expect("the watch must go on") {
            if wanted(&event) {
                return;
            }
        }
        panic!("the watch ended");
    };
    tokio::time::timeout(Duration::from_mins(1), following).await.expect("it must get there");
}

fn is_ready(event: &WatchEvent<Deployment>, replicas: i32) -> bool {
    let (WatchEvent::Added(found) | WatchEvent::Modified(found)) = event else { return false };
    found.status.as_ref().is_some_and(|status| status.ready_replicas == Some(replicas))
}

#[tokio::test]
async fn it_tells_what_runs_serves_an_ordinary_client_and_leaves_nothing() {
    let folder = Folder::new();
    folder.file("pods.yaml", QUICK);
    let mut process = start(&folder, &["--pods=pods.yaml"]);
    process.prints("Ctrl-C ends it").await;
    let tour = process.printed();
    assert!(tour.starts_with("A cluster runs in this process"), "{tour}");
    assert!(tour.contains("\n  nodes        3\n"), "{tour}");
    let words: Vec<&str> = tour.split_whitespace().collect();
    let linked = Registry::linked().expect("the built-in controllers are linked");
    let mut by_default: Vec<&str> = linked.iter().filter(|it| it.on_by_default).map(|it| it.name).collect();
    by_default.sort_unstable();
    let controllers = format!("controllers {} kubeconfig", by_default.join(", "));
    assert!(words.join(" ").contains(&controllers), "{tour}");
    assert!(tour.contains("\n`sandbox tell help` lists what nodes can do.\n"), "{tour}");
    assert_eq!(tour.matches("\n  kubectl ").count(), 3, "{tour}");
    let exported = tour.lines().find_map(|line| line.strip_prefix("  export KUBECONFIG=")).expect("it names the file");
    assert_eq!(fs::canonicalize(exported).ok(), fs::canonicalize(folder.path("sandbox.kubeconfig")).ok());
    let mode = |name| fs::metadata(folder.path(name)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!([mode("sandbox.kubeconfig"), mode("sandbox.sock")], [0o600; 2]);

    let client = client(&folder).await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.expect("it must be created");
    until(&deployments, "0", |event| is_ready(event, 3)).await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let found = pods.list(&ListParams::default().labels("app=web")).await.expect("pods must be listed");
    assert!(found.iter().all(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())));
    let there = deployments.get_metadata("web").await.expect("it is there").metadata;
    deployments.delete("web", &DeleteParams::default()).await.expect("it must be deleted");
    until(&deployments, &there.resource_version.expect("it has a version"), |event| {
        matches!(event, WatchEvent::Deleted(_))
    })
    .await;

    process.terminate();
    let ended = process.ended().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(names(&folder), ["pods.yaml"]);
}

#[tokio::test]
async fn the_port_of_its_manager_is_served_where_it_is_asked_for() {
    let folder = Folder::new();
    let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port is free");
    let mut process = start(&folder, &["--socket=", &format!("--secure-port={}", free.port())]);
    process.prints(&format!("  manager      https://{free}")).await;
    process.prints(&format!("  status page  https://{free}/debug/ui")).await;
    process.prints("Ctrl-C ends it").await;
    let mut config = kube::Config::new(format!("https://{free}").parse().expect("it is an address"));
    config.accept_invalid_certs = true;
    let client = kube::Client::try_from(config).expect("it must be usable");
    let scraped = async {
        loop {
            let request = http::Request::get("/metrics").body(Vec::new()).expect("it is a request");
            match client.request_text(request).await {
                Ok(metrics) => return metrics,
                // The port is not there yet.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let metrics = tokio::time::timeout(Duration::from_mins(1), scraped).await.expect("everyone may scrape it");
    assert!(metrics.contains("workqueue_depth"), "{metrics}");
    process.terminate();
    assert_eq!(process.ended().await.code, Some(0));
}

#[tokio::test]
async fn its_controllers_and_nothing_else_give_namespaces_their_account_and_the_root_ca() {
    let folder = Folder::new();
    let process =
        started(&folder, &["--controllers=serviceaccount-controller,root-ca-certificate-publisher-controller"]).await;
    let api = client(&folder).await;
    let kubeconfig = kube::config::Kubeconfig::read_from(folder.path("sandbox.kubeconfig")).expect("it is there");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await;
    let authority = config.expect("it is whole").root_cert.expect("it holds the authority");
    for namespace in ["default", "kube-system"] {
        let found = async {
            loop {
                let accounts: Api<ServiceAccount> = Api::namespaced(api.clone(), namespace);
                let maps: Api<ConfigMap> = Api::namespaced(api.clone(), namespace);
                let found = (accounts.get_opt("default").await, maps.get_opt("kube-root-ca.crt").await);
                if let (Ok(Some(_)), Ok(Some(map))) = found {
                    return map.data.and_then(|mut data| data.remove("ca.crt")).unwrap_or_default();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let published = tokio::time::timeout(Duration::from_mins(1), found).await.expect("they come");
        let published = CertificateDer::pem_slice_iter(published.as_bytes()).next().expect("there is a certificate");
        assert_eq!(&*published.expect("it is one"), &authority[0][..], "{namespace}");
    }
    process.terminate();
    assert_eq!(process.ended().await.code, Some(0));

    let process = started(&folder, &["--run-controllers=false"]).await;
    let accounts: Api<ServiceAccount> = Api::all(client(&folder).await);
    assert!(accounts.list(&ListParams::default()).await.expect("accounts are served").items.is_empty());
    process.terminate();
    assert_eq!(process.ended().await.code, Some(0));
}

#[tokio::test]
async fn nodes_are_commanded_from_its_input_and_from_elsewhere() {
    let folder = Folder::new();
    let mut process = started(&folder, &["--nodes=2", "--run-controllers=false"]).await;
    process.types("nodes\nnonsense\n\n\u{1}").await;
    process.prints("node-2").await;
    process.prints("error: unknown command \"nonsense\"").await;

    let tell = |words: &[&str]| sandbox(&folder, &[&["tell"], words].concat());
    let answer = |words: &[&str]| {
        let ended = tell(words);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words:?}");
        ended.stdout
    };
    assert_eq!(answer(&["nodes"]).matches("node-").count(), 2);
    assert_eq!(answer(&["stop", "node-1"]), "node-1 stopped\n");
    assert_eq!(answer(&["--socket", "sandbox.sock", "start", "node-1"]), "node-1 started\n");
    assert_eq!(tell(&["stop", "node-11"]).refusals(), ["unknown node \"node-11\", did you mean \"node-1\"?"]);
    assert_eq!(tell(&["stpo"]).refusals(), ["unknown command \"stpo\", did you mean \"stop\"?; \"help\" lists all"]);
    assert_eq!(tell(&[]).refusals(), ["sandbox tell: no command is given; `sandbox tell help` lists them"]);
    assert_eq!(
        tell(&["--socket=none.sock", "nodes"]).refusals(),
        ["no sandbox answers on none.sock: No such file or directory (os error 2); start one with `sandbox`, or name \
          its socket with --socket=PATH"]
    );

    let nodes: Api<Node> = Api::all(client(&folder).await);
    assert_eq!(nodes.list(&ListParams::default()).await.expect("nodes must be listed").items.len(), 2);
    process.closes_input();
    assert_eq!(answer(&["nodes"]).matches("node-").count(), 2, "an end of input is not the end");
    process.signal(Signal::INT);
    assert_eq!(process.ended().await.code, Some(0));
}

#[tokio::test]
async fn what_was_saved_is_loaded_again() {
    let folder = Folder::new();
    let process = started(&folder, &["--run-controllers=false", "--save=saved"]).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&folder).await);
    let map = serde_json::from_value(json!({ "metadata": { "name": "menu" }, "data": { "soup": "hot" } }));
    maps.create(&PostParams::default(), &map.expect("it is a map")).await.expect("it must be created");
    process.terminate();
    let ended = process.ended().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.ends_with("\nSaved 1 manifest in saved.\n"), "{}", ended.stdout);

    let mut process = start(&folder, &["--run-controllers=false", "--nodes=0", "--load=saved"]);
    process.prints("Ctrl-C ends it").await;
    assert!(process.printed().contains("\n  nodes        0\n  controllers  none\n"), "{}", process.printed());
    assert!(process.printed().contains("\n  manifests    1 loaded\n"), "{}", process.printed());
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&folder).await);
    let menu = maps.get("menu").await.expect("it must be there again");
    assert_eq!(menu.data.expect("it has data")["soup"], "hot");
}

#[tokio::test]
async fn what_cannot_be_saved_is_told() {
    let folder = Folder::new();
    let process = started(&folder, &["--run-controllers=false", "--save=saved"]).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&folder).await);
    let map = serde_json::from_value(json!({ "metadata": { "name": "menu" } })).expect("it is a map");
    maps.create(&PostParams::default(), &map).await.expect("it must be created");
    // Even an administrator makes no file within a file.
    fs::remove_dir(folder.path("saved")).expect("it was made at the start");
    folder.file("saved", "");
    process.terminate();
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(2));
    let [error] = ended.errors()[..] else { panic!("{}", ended.stderr) };
    assert!(error.starts_with("cannot write saved/"), "{error}");
    assert_eq!(names(&folder), ["saved"]);
}

#[tokio::test]
async fn the_second_signal_ends_at_once() {
    let folder = Folder::new();
    let process = started(&folder, &["--run-controllers=false", "--save=saved"]).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&folder).await);
    let map = serde_json::from_value(json!({ "metadata": { "name": "menu" } })).expect("it is a map");
    maps.create(&PostParams::default(), &map).await.expect("it must be created");
    // The other end is never read, so writing never ends.
    fs::create_dir(folder.path("saved/default")).expect("there must be room for a folder");
    let pipe = folder.path("saved/default/configmap-menu.yaml");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("there must be room for a pipe");
    process.terminate();
    let deaf = async {
        while UnixStream::connect(folder.path("sandbox.sock")).is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), deaf).await.expect("it must begin to stop");
    process.terminate();
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.errors(), ["ended at once, as a second signal asked: not everything was saved"]);
    assert_eq!(names(&folder), ["saved"]);
}

#[tokio::test]
async fn a_second_one_in_a_folder_is_refused_and_takes_nothing_away() {
    let folder = Folder::new();
    let first = started(&folder, &[]).await;
    let kubeconfig = fs::read_to_string(folder.path("sandbox.kubeconfig")).expect("it is there");
    assert_eq!(
        sandbox(&folder, &[]).refusals(),
        [
            "a sandbox listens on sandbox.sock already: end it, or give this one files of its own with --socket=PATH and \
          --write-kubeconfig=PATH"
        ]
    );
    let refused = sandbox(&folder, &["--socket=other.sock"]);
    let [refusal] = refused.refusals()[..] else { panic!("{}", refused.stderr) };
    assert!(refusal.starts_with("sandbox.kubeconfig belongs to a sandbox that runs at 127.0.0.1:"), "{refusal}");
    assert_eq!(fs::read_to_string(folder.path("sandbox.kubeconfig")).expect("it is there"), kubeconfig);
    assert_eq!(names(&folder), ["sandbox.kubeconfig", "sandbox.sock"]);

    // One that is killed leaves its files behind, for the next one to replace.
    first.signal(Signal::KILL);
    assert_eq!(first.ended().await.code, None);
    assert_eq!(names(&folder), ["sandbox.kubeconfig", "sandbox.sock"]);
    let next = started(&folder, &[]).await;
    next.terminate();
    assert_eq!(next.ended().await.code, Some(0));
    assert!(names(&folder).is_empty());
}

#[tokio::test]
async fn a_kubeconfig_of_another_is_left_behind() {
    let folder = Folder::new();
    let process = started(&folder, &["--socket="]).await;
    folder.file("sandbox.kubeconfig", "another's");
    process.terminate();
    assert_eq!(process.ended().await.code, Some(0));
    assert_eq!(fs::read_to_string(folder.path("sandbox.kubeconfig")).expect("it is there"), "another's");
}

#[test]
fn what_is_wrong_is_told_at_once_and_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.file("pods.yaml", "pods:\n- do: crash aftr=5s\n");
    let kept = names(&folder);
    let ended = sandbox(
        &folder,
        &[
            "--demo",
            "--nodes=0",
            "--pods=pods.yaml",
            "--kubeconfig=k",
            "--controllers=-deployment,*",
            "--write-kubeconfig=",
        ],
    );
    assert_eq!(
        ended.refusals(),
        [
            "--write-kubeconfig is empty: name a file, or leave the flag out",
            "--kubeconfig: a sandbox is a cluster of its own and uses no other; --write-kubeconfig=FILE says where its \
             kubeconfig goes",
        ]
    );
    let ended = sandbox(&folder, &["--demo", "--nodes=0", "--pods=pods.yaml", "--controllers=-deployment,*"]);
    assert_eq!(
        ended.refusals(),
        [
            "--pods: pods.yaml: line 2, column 13: unknown word \"aftr\", known are start, pull, ready, run, crash, finish, exit, after, times, stop",
            "--demo shows pods at work, and --nodes=0 leaves them nowhere to run: give at least one",
            "--demo shows deployment-controller, which would not run: see --controllers and --run-controllers",
        ]
    );
    assert_eq!(
        sandbox(&folder, &["--pods=none.yaml"]).refusals(),
        ["--pods: cannot read none.yaml: No such file or directory (os error 2)"]
    );
    assert_eq!(
        sandbox(&folder, &["--nodes=-1", "--api-address=here"]).refusals(),
        [
            "--api-address is \"here\": the value must be an address and a port, as 127.0.0.1:6443 or [::1]:0",
            "--nodes is \"-1\": the value must be between 0 and 5000",
        ]
    );
    assert_eq!(
        sandbox(&folder, &["tel", "nodes"]).refusals(),
        ["sandbox tel: give `sandbox` to start one, or `sandbox tell COMMAND` to command its nodes; did you mean \
          `sandbox tell`?"]
    );
    assert_eq!(names(&folder), kept);
}

#[test]
fn manifests_that_cannot_be_loaded_are_all_told_and_leave_nothing_behind() {
    let folder = Folder::new();
    fs::create_dir(folder.path("shop")).expect("there must be room for a folder");
    folder.file("shop/a.yaml", "apiVersion: v1\nkind: Unicorn\nmetadata: {name: a}\n");
    folder.file("shop/b.yaml", "kind: [\n");
    let ended = sandbox(&folder, &["--load=shop", "--save=saved"]);
    let refusals = ended.refusals();
    assert_eq!(refusals.len(), 2, "{refusals:?}");
    assert!(refusals[0].starts_with("shop/b.yaml, document 1: "), "{refusals:?}");
    assert_eq!(refusals[1], "shop/a.yaml, document 1: the kind Unicorn is not served");
    assert_eq!(names(&folder), ["shop"]);
}

#[test]
fn places_that_cannot_be_had_are_refused_and_leave_nothing_behind() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port must be free");
    let address = taken.local_addr().expect("it is bound");
    assert_eq!(
        sandbox(&folder, &[&format!("--api-address={address}")]).refusals(),
        [format!(
            "cannot listen on {address}; choose another address, or port 0 for any free port: Address already in use \
             (os error 98)"
        )]
    );
    assert_eq!(
        sandbox(&folder, &["--write-kubeconfig=none/config"]).refusals(),
        ["cannot write the kubeconfig to none/config: its folder does not exist; make it, or choose another path"]
    );
    assert!(names(&folder).is_empty());
    folder.file("mine", "dear diary");
    assert_eq!(
        sandbox(&folder, &["--write-kubeconfig=mine"]).refusals(),
        [
            "cannot write the kubeconfig to mine: what is there is not of a sandbox; move it away, or choose another path"
        ]
    );
    assert_eq!(
        sandbox(&folder, &["--socket=mine"]).refusals(),
        ["cannot make the socket mine: what is there is no socket; move it away, or choose another path with \
          --socket=PATH"]
    );
    let ended = sandbox(&folder, &["--save=mine"]);
    assert_eq!(ended.refusals(), ["--save: cannot make the folder mine: File exists (os error 17)"]);
    assert_eq!(names(&folder), ["mine"]);
}

#[tokio::test]
async fn an_address_that_others_reach_is_warned_of() {
    let folder = Folder::new();
    let process = started(&folder, &["--api-address=0.0.0.0:0", "--run-controllers=false"]).await;
    assert!(process.printed().contains("\n               open to other machines"), "{}", process.printed());
    let nodes: Api<Node> = Api::all(client(&folder).await);
    assert_eq!(nodes.list(&ListParams::default()).await.expect("nodes must be listed").items.len(), 3);
}

#[tokio::test]
async fn the_demo_in_a_pipe_is_lines_and_a_summary() {
    let folder = Folder::new();
    folder.file("pods.yaml", QUICK);
    // The autoscaler looks at once, and at pods that have just started.
    let soon =
        ["--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-cpu-initialization-period=0s"];
    let ended = start(&folder, &[&["--demo", "--pods=pods.yaml"], &soon[..]].concat()).ended().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    for line in ended.stdout.lines() {
        assert!(!line.contains('\x1b'), "{line:?}");
    }
    let (played, summary) = ended.stdout.split_once("\nWhat you saw:\n").expect("it ends with a summary");
    assert_eq!(played.matches("\n$ kubectl ").count(), 6, "{played}");
    assert!(played.contains("rev 3 shop:missing 0/"), "{played}");
    assert!(played.contains("web 10/10 ready; rev 4 shop:2.0 10/10; pods: 10 ready\n"), "{played}");
    assert!(played.contains("web 14/14 ready; rev 4 shop:2.0 14/14; pods: 14 ready\n"), "{played}");
    assert_eq!(summary.matches("\n    ").count(), 6, "{summary}");
    assert!(!summary.contains("it was not over"), "{summary}");
    assert_eq!(names(&folder), ["pods.yaml"]);
}

#[tokio::test]
async fn a_demo_ends_when_it_is_told_to() {
    let folder = Folder::new();
    folder.file("pods.yaml", "pods:\n- do: ready=never\n");
    let mut process = start(&folder, &["--demo", "--pods=pods.yaml"]);
    process.prints("6 starting").await;
    process.terminate();
    let ended = process.ended().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(!ended.stdout.contains("What you saw"), "{}", ended.stdout);
    assert_eq!(names(&folder), ["pods.yaml"]);
}

#[tokio::test]
async fn a_demo_whose_step_is_refused_says_so() {
    let folder = Folder::new();
    fs::create_dir(folder.path("shop")).expect("there must be room for a folder");
    let mut web = serde_json::to_value(deployment("web", 1)).expect("it is data");
    web["apiVersion"] = json!("apps/v1");
    web["kind"] = json!("Deployment");
    web["metadata"]["namespace"] = json!("default");
    folder.file("shop/web.json", &web.to_string());
    let ended = start(&folder, &["--demo", "--load=shop"]).ended().await;
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.errors(), ["the API refused a step of the demo: deployments.apps \"web\" already exists"]);
    assert_eq!(names(&folder), ["shop"]);
}

#[test]
fn the_differences_are_listed() {
    let folder = Folder::new();
    let ended = sandbox(&folder, &["--differences"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.starts_with("Where the sandbox knowingly differs from kube-apiserver 1.37:\n\n"));
    assert!(ended.stdout.lines().count() > 10, "{}", ended.stdout);
    assert!(names(&folder).is_empty());
}
