//! An ordinary client, discovery, further resources, and that a seed decides everything.

use k8s_openapi::api::core::v1::Pod;
use kcm_api::{ObjectKey, Resource};
use kcm_sandbox_apiserver::{PODS, Sandbox, SandboxOptions, Status};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::{Discovery, Scope};
use serde_json::json;

use crate::support::{call, done, get, merge, pod, post, put, strategic, watch};

const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "widgets", "Widget");
const WIDGETS_PATH: &str = "/apis/example.com/v1/namespaces/default/widgets";

#[tokio::test(start_paused = true)]
async fn an_ordinary_client_works() {
    let sandbox = Sandbox::default();
    let pods: Api<Pod> = Api::default_namespaced(sandbox.client());
    let new: Pod = serde_json::from_value(pod("web")).expect("a pod");
    let made = pods.create(&PostParams::default(), &new).await.expect("the name is free");
    assert_eq!(made.metadata.name.as_deref(), Some("web"));
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    let patched = pods.patch("web", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("the pod is there");
    assert_eq!(patched.metadata.labels.unwrap_or_default()["a"], "b");
    let list = pods.list(&ListParams::default().labels("a=b")).await.expect("a list");
    assert_eq!(list.items.len(), 1);
    let gone = pods.delete("web", &DeleteParams::default()).await.expect("the pod is there");
    assert!(gone.is_left(), "a pod is answered");
    let error = pods.get("web").await.expect_err("the pod is gone");
    let kube::Error::Api(status) = error else { panic!("an answer of the API: {error}") };
    assert_eq!((status.code, status.message.as_str()), (404, "pods \"web\" not found"));
}

#[tokio::test(start_paused = true)]
async fn discovery_finds_what_is_served() {
    let sandbox = Sandbox::default();
    sandbox.register(WIDGETS);
    for discovery in [
        Discovery::new(sandbox.client()).run().await.expect("discovery"),
        Discovery::new(sandbox.client()).run_aggregated().await.expect("aggregated discovery"),
    ] {
        let found = |group: &str, kind: &str| {
            let (resource, capabilities) =
                discovery.get(group).and_then(|group| group.recommended_kind(kind)).expect("the kind is served");
            (resource.plural, resource.version, capabilities.scope == Scope::Namespaced)
        };
        assert_eq!(found("", "Pod"), ("pods".to_owned(), "v1".to_owned(), true));
        assert_eq!(found("", "Namespace"), ("namespaces".to_owned(), "v1".to_owned(), false));
        assert_eq!(found("apps", "ReplicaSet"), ("replicasets".to_owned(), "v1".to_owned(), true));
        assert_eq!(found("example.com", "Widget"), ("widgets".to_owned(), "v1".to_owned(), true));
    }
    for (path, expected) in [("/healthz", "ok"), ("/livez", "ok"), ("/readyz", "ok")] {
        assert_eq!(done(&sandbox, &get(path)).await.text, expected);
    }
    assert_eq!(done(&sandbox, &get("/version")).await.text_at("/gitVersion"), "v1.37.2");
    assert_eq!(call(&sandbox, &get("/apis/example.com/v2")).await.expect("answers come").code, 404);
}

#[tokio::test(start_paused = true)]
async fn custom_resources_differ_from_built_in_ones() {
    let sandbox = Sandbox::default();
    sandbox.register(WIDGETS);
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "spec": { "size": 1 },
    });
    let made = done(&sandbox, &post(WIDGETS_PATH, &widget)).await;
    assert_eq!(made.json["metadata"]["generation"], 1);
    let path = format!("{WIDGETS_PATH}/w");
    let ask = async |ask| call(&sandbox, &ask).await.expect("answers come");

    let unconditional = ask(put(&path, &widget)).await;
    assert_eq!(
        (unconditional.code, unconditional.text_at("/details/causes/0/field")),
        (422, "metadata.resourceVersion")
    );
    assert_eq!(ask(strategic(&path, &json!({}))).await.code, 415);
    let status = ask(merge(
        &format!("{path}/status"),
        &json!({ "metadata": { "labels": { "a": "b" } }, "status": { "ok": true } }),
    ))
    .await;
    assert_eq!(status.json["status"]["ok"], true);
    assert_eq!(status.json["metadata"].get("labels"), None, "a status write reaches the status alone");
    assert_eq!(done(&sandbox, &get(WIDGETS_PATH)).await.text_at("/items/0/kind"), "Widget");
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_goes_away_ends_its_watches() {
    let sandbox = Sandbox::default();
    sandbox.register(WIDGETS);
    let mut watching = watch(&sandbox, &format!("{WIDGETS_PATH}?watch=1")).await;
    sandbox.unregister(&WIDGETS);
    assert_eq!(watching.brief().await, "end");
    assert_eq!(call(&sandbox, &get(WIDGETS_PATH)).await.expect("answers come").code, 404);
}

#[tokio::test(start_paused = true)]
async fn the_seed_decides_names_and_uids() {
    let made = |seed| {
        let sandbox = Sandbox::new(SandboxOptions { seed, ..SandboxOptions::default() });
        let mut object = pod("");
        object["metadata"] = json!({ "generateName": "web-" });
        sandbox.create(&PODS, object).expect("the pod is valid")
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1)["metadata"]["uid"], made(2)["metadata"]["uid"]);
    let name = made(1)["metadata"]["name"].as_str().expect("a name").to_owned();
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
}

#[tokio::test(start_paused = true)]
async fn tests_reach_objects_directly() -> Result<(), Status> {
    let sandbox = Sandbox::default();
    sandbox.create_namespace("a")?;
    let mut object = pod("web");
    object["metadata"]["namespace"] = json!("a");
    sandbox.create(&PODS, object)?;
    let key = ObjectKey::namespaced("a", "web");
    sandbox.bind_pod(&key, "n1")?;
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    let ready = sandbox.set_pod_ready(&key, true, sandbox.now())?;
    assert_eq!(ready["status"]["phase"], "Running");
    assert_eq!(ready["status"]["conditions"][1]["lastTransitionTime"], "2026-01-01T00:00:05Z");
    assert!(sandbox.delete(&PODS, &key)?.is_some(), "a bound pod has its grace");
    assert!(sandbox.delete_now(&PODS, &key)?.is_none());
    assert_eq!(sandbox.delete_now(&PODS, &key).expect_err("it is gone"), Status::not_found(&PODS, "web"));
    assert!(sandbox.requests().is_empty(), "direct access is not noted");
    Ok(())
}
