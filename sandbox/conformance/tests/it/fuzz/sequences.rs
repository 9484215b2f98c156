//! Writes in any order: a list and a watch yield the same state.

use std::collections::BTreeMap;

use kcm_sandbox_apiserver::SandboxOptions;
use serde_json::{Value, json};

use crate::fuzz::choices::{Choices, hold};
use crate::fuzz::corpus::RawRequest;
use crate::fuzz::patches;
use crate::fuzz::probe::Probe;

const COLLECTIONS: [(&str, &str, &str); 5] = [
    ("/api/v1/namespaces/default/configmaps", "v1", "ConfigMap"),
    ("/api/v1/namespaces/default/pods", "v1", "Pod"),
    ("/apis/apps/v1/namespaces/default/replicasets", "apps/v1", "ReplicaSet"),
    ("/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment"),
    ("/api/v1/namespaces/default/services", "v1", "Service"),
];

type Objects = BTreeMap<String, Value>;

/// The objects of a list, and its version.
struct Listed {
    path: String,
    version: String,
    objects: Objects,
}

#[test]
fn a_list_and_the_watch_behind_it_lead_to_the_state() {
    hold(60, 250, |mut choices| async move {
        let mut probe = Probe::new(SandboxOptions::default()).await;
        let mut listed = Vec::new();
        for _ in 0..25 {
            if choices.once_in(4) {
                listed.push(list(&mut choices, &mut probe).await);
            }
            let ask = write(&mut choices, &mut probe).await;
            probe.ask(&ask).await;
        }
        for mut earlier in listed {
            let (path, version) = (&earlier.path, &earlier.version);
            let watch = format!("{path}&watch=true&timeoutSeconds=1&resourceVersion={version}");
            let events = probe.ask(&RawRequest::new("GET", &watch)).await.expect("a plain request is sent");
            for line in events.text.lines() {
                note(&mut earlier.objects, line);
            }
            let now = list_of(&mut probe, path.clone()).await;
            assert!(
                earlier.objects == now.objects,
                "{watch}\n{}\nleads to {:?}\nnot to {:?}",
                events.text,
                earlier.objects,
                now.objects
            );
        }
    });
}

fn note(objects: &mut Objects, line: &str) {
    let mut event: Value = serde_json::from_str(line).expect("an event is JSON");
    let object = event["object"].take();
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match event["type"].as_str() {
        Some("ADDED") => assert!(objects.insert(name, object).is_none(), "added twice: {line}"),
        Some("MODIFIED") => assert!(objects.insert(name, object).is_some(), "never added: {line}"),
        Some("DELETED") => assert!(objects.remove(&name).is_some(), "never added: {line}"),
        _ => panic!("not an event: {line}"),
    }
}

async fn list(choices: &mut Choices, probe: &mut Probe) -> Listed {
    let (path, _, _) = choices.one(&COLLECTIONS);
    let selector =
        choices.one(&["?", "?labelSelector=app%3Dweb", "?labelSelector=%21app", "?fieldSelector=metadata.name%3Da"]);
    list_of(probe, format!("{path}{selector}")).await
}

async fn list_of(probe: &mut Probe, path: String) -> Listed {
    let mut answer = probe.ask(&RawRequest::new("GET", &path)).await.expect("a plain request is sent").json;
    let version = answer["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let Value::Array(items) = answer["items"].take() else { panic!("{path}: items are no list") };
    let kind = answer["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).unwrap_or_default();
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let objects = items.into_iter().map(|mut object| {
        // Items of a list do not say what they are.
        object["kind"] = json!(kind);
        object["apiVersion"] = answer["apiVersion"].clone();
        (name(&object), object)
    });
    Listed { objects: objects.collect(), path, version }
}

/// A write that is mostly right.
async fn write(choices: &mut Choices, probe: &mut Probe) -> RawRequest {
    let (collection, api_version, kind) = choices.one(&COLLECTIONS);
    let name = choices.one(&["a", "b"]);
    let path = format!("{collection}/{name}");
    let read = probe.ask(&RawRequest::new("GET", &path)).await.expect("a plain request is sent");
    let mut ask = if read.code == 200 {
        change(choices, collection, &path, &read.json)
    } else {
        create(choices, collection, api_version, kind, name)
    };
    if choices.once_in(6) {
        ask.query = if ask.query.is_empty() { "dryRun=All".to_owned() } else { format!("{}&dryRun=All", ask.query) };
    }
    ask
}

fn create(choices: &mut Choices, collection: &str, api_version: &str, kind: &str, name: &str) -> RawRequest {
    let body = object(choices, api_version, kind, name).to_string();
    if choices.once_in(3) {
        let path = format!("{collection}/{name}?fieldManager=a");
        return RawRequest::new("PATCH", &path).with_body("application/apply-patch+yaml", body);
    }
    RawRequest::new("POST", collection).with_body("application/json", body)
}

fn change(choices: &mut Choices, collection: &str, path: &str, stored: &Value) -> RawRequest {
    let text = |pointer: &str| stored.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let label = choices.one(&[json!("web"), json!("other"), Value::Null]);
    let merge = |path: &str, body: Value| {
        RawRequest::new("PATCH", path).with_body("application/merge-patch+json", body.to_string())
    };
    match choices.below(12) {
        0 => RawRequest::new("DELETE", path),
        1 => {
            let options = ["gracePeriodSeconds=0", "propagationPolicy=Orphan", "propagationPolicy=Foreground"];
            RawRequest::new("DELETE", &format!("{path}?{}", choices.one(&options)))
        }
        2 => {
            let selector = choices.one(&["", "?labelSelector=app%3Dweb"]);
            RawRequest::new("DELETE", &format!("{collection}{selector}"))
        }
        3 => {
            let finalizers = choices.one(&[&["example.org/a"][..], &[], &["example.org/a", "example.org/b"]]);
            merge(path, json!({ "metadata": { "finalizers": finalizers } }))
        }
        4 => merge(path, json!({ "spec": { "replicas": choices.below(4) } })),
        5 => merge(&format!("{path}/scale"), json!({ "spec": { "replicas": choices.below(4) } })),
        6 => merge(
            &format!("{path}/status"),
            json!({ "status": { "observedGeneration": choices.below(4), "phase": "Running" } }),
        ),
        7 => {
            let name = text("/metadata/name");
            let body = object(choices, text("/apiVersion"), text("/kind"), name).to_string();
            let query = choices.one(&["fieldManager=a&force=true", "fieldManager=b&force=true", "fieldManager=b"]);
            RawRequest::new("PATCH", &format!("{path}?{query}")).with_body("application/apply-patch+yaml", body)
        }
        8 => {
            let mut body = stored.clone();
            body["metadata"]["labels"]["put"] = json!(choices.below(3).to_string());
            RawRequest::new("PUT", path).with_body("application/json", body.to_string())
        }
        9 => patches::patch(choices, path, stored),
        _ => merge(path, json!({ "metadata": { "labels": { "app": label } } })),
    }
}

fn object(choices: &mut Choices, api_version: &str, kind: &str, name: &str) -> Value {
    let labels = choices.one(&[json!({ "app": "web" }), json!({ "app": "other" }), json!({})]);
    let image = choices.one(&["web:1", "web:2"]);
    let pod = json!({ "containers": [{ "name": "main", "image": image, "ports": [{ "containerPort": 80 }] }] });
    let spec = match kind {
        "Pod" => pod,
        "ReplicaSet" | "Deployment" => json!({
            "replicas": choices.below(3),
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod },
        }),
        "Service" => json!({ "selector": { "app": "web" }, "ports": [{ "port": 80 + choices.below(2) }] }),
        _ => Value::Null,
    };
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "labels": labels } });
    if spec.is_null() {
        object["data"] = json!({ choices.one(&["a", "b"]): choices.one(&["1", "2"]) });
    } else {
        object["spec"] = spec;
    }
    object
}
