//! Managed fields and server-side apply.

use kcm_sandbox_apiserver::{CONFIG_MAPS, PODS, Sandbox, SandboxOptions};
use serde_json::{Value, json};

use crate::rows::{MAP, MAPS};
use crate::support::{Answer, TestRequest, call, done, get, merge, patch, pod, post, put};

/// Requests in order with the responses of kube-apiserver 1.37.2: a code, the message of a failure, else the
/// generation and the managed fields, which contain only whether they have a time.
///
/// Messages of rows with `parser` come from Go's parsers, and their wording is not compared.
const RECORDED: &str = include_str!("owners.jsonl");

fn apply(path: &str, body: &Value) -> TestRequest {
    patch("application/apply-patch+yaml", path, body)
}

fn ask_of(row: &Value) -> TestRequest {
    let (method, path) = row["send"].as_str().and_then(|send| send.split_once(' ')).expect("a method and a path");
    let (body, path) = (&row["body"], path.to_owned());
    let mut ask = match (method, row["as"].as_str()) {
        ("GET", _) => get(&path),
        ("POST", _) => post(&path, body),
        ("PUT", _) => put(&path, body),
        (_, Some("apply")) => apply(&path, body),
        (_, Some("json")) => patch("application/json-patch+json", &path, body),
        (_, Some("strategic")) => patch("application/strategic-merge-patch+json", &path, body),
        _ => merge(&path, body),
    };
    if let Some(text) = body.as_str() {
        text.clone_into(&mut ask.body);
    }
    let program = if row["name"] == "cm create ua" { "kubectl/v1.36 (x)" } else { "tester/1" };
    ask.header("user-agent", program)
}

/// Returns the recorded parts of a response.
fn summary(answer: &Answer) -> Value {
    let mut summary = json!({ "code": answer.code });
    if answer.json["kind"] == "Status" {
        summary["message"] = answer.json["message"].clone();
        return summary;
    }
    let metadata = &answer.json["metadata"];
    if let Some(generation) = metadata.get("generation") {
        summary["generation"] = generation.clone();
    }
    let mut owners = metadata["managedFields"].as_array().cloned().unwrap_or_default();
    for entry in &mut owners {
        entry["time"] = entry["time"].is_string().into();
        entry.as_object_mut().map(|entry| entry.remove("fieldsType"));
    }
    // The recording took longer, so that its order by time differs.
    owners.sort_by_key(|entry| {
        ["operation", "manager", "subresource", "apiVersion"].map(|field| entry[field].as_str().map(str::to_owned))
    });
    summary["owners"] = owners.into();
    summary
}

#[tokio::test(start_paused = true)]
async fn fields_have_the_owners_that_the_real_server_gives_them() {
    let sandbox = Sandbox::default();
    for line in RECORDED.lines() {
        let mut row: Value = serde_json::from_str(line).expect("the recording is well formed");
        let answer = call(&sandbox, &ask_of(&row)).await.expect("no fault is at work");
        let name = row["name"].clone();
        let answered = summary(&answer);
        if row.get("parser").is_some() {
            assert!(answered["message"].is_string(), "{name}: {}", answer.text);
            row["message"] = answered["message"].clone();
        }
        row.as_object_mut()
            .expect("a row is a map")
            .retain(|field, _| !["name", "send", "as", "body", "parser"].contains(&&**field));
        assert_eq!(answered, row, "{name}: {}", answer.text);
    }
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["manager"].as_str()).collect()
}

fn map(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "web" }, "data": data })
}

#[tokio::test(start_paused = true)]
async fn applying_the_same_again_is_no_write() {
    let sandbox = Sandbox::default();
    let ask = apply(&format!("{MAP}?fieldManager=a"), &map(&json!({ "x": "1" })));
    let first = done(&sandbox, &ask).await;
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    assert_eq!((first.code, done(&sandbox, &ask).await.json), (201, first.json.clone()));
    let other = apply(&format!("{MAP}?fieldManager=b"), &map(&json!({ "x": "1" })));
    let shared = done(&sandbox, &other).await.json;
    assert_ne!(shared["metadata"]["resourceVersion"], first.json["metadata"]["resourceVersion"]);
    assert_eq!(done(&sandbox, &other).await.json, shared);
}

#[tokio::test(start_paused = true)]
async fn a_change_and_back_within_a_request_is_no_write() {
    let sandbox = Sandbox::default();
    let stored = done(&sandbox, &post(&format!("{MAPS}?fieldManager=a"), &map(&json!({ "x": "1" })))).await.json;
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    let mut same = stored.clone();
    same["metadata"].as_object_mut().expect("metadata is a map").remove("managedFields");
    let answer = done(&sandbox, &put(&format!("{MAP}?fieldManager=b"), &same)).await;
    assert_eq!(answer.json, stored);
}

#[tokio::test(start_paused = true)]
async fn an_update_without_managed_fields_keeps_those_of_others() {
    let sandbox = Sandbox::default();
    let mut object = done(&sandbox, &post(&format!("{MAPS}?fieldManager=a"), &map(&json!({ "x": "1" })))).await.json;
    object["metadata"].as_object_mut().expect("metadata is a map").remove("managedFields");
    object["data"]["y"] = "1".into();
    let stored = done(&sandbox, &put(&format!("{MAP}?fieldManager=b"), &object)).await.json;
    assert_eq!(managers(&stored), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_update_with_fewer_managed_fields_removes_ownership() {
    let sandbox = Sandbox::default();
    done(&sandbox, &apply(&format!("{MAP}?fieldManager=a"), &map(&json!({ "x": "1" })))).await;
    let mut object = done(&sandbox, &apply(&format!("{MAP}?fieldManager=b"), &map(&json!({ "y": "1" })))).await.json;
    let entries = object["metadata"]["managedFields"].as_array_mut().expect("there are owners");
    entries.retain(|entry| entry["manager"] == "b");
    let stored = done(&sandbox, &put(&format!("{MAP}?fieldManager=c"), &object)).await.json;
    assert_eq!(managers(&stored), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_owners_and_stores_nothing() {
    let sandbox = Sandbox::default();
    let shown = done(&sandbox, &apply(&format!("{MAP}?fieldManager=a&dryRun=All"), &map(&json!({})))).await;
    assert_eq!(shown.code, 201);
    assert!(sandbox.list(&CONFIG_MAPS, None).is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_managed_fields_there_are_none_and_nothing_is_applied() {
    let sandbox = Sandbox::new(SandboxOptions { managed_fields: false, ..SandboxOptions::default() });
    let mut given = map(&json!({ "x": "1" }));
    given["metadata"]["managedFields"] = json!([{ "manager": "m", "operation": "Update", "apiVersion": "v1" }]);
    let stored = done(&sandbox, &post(MAPS, &given)).await.json;
    assert_eq!(managers(&stored), [""; 0]);
    let ask = apply(&format!("{MAP}?fieldManager=a"), &map(&json!({ "x": "1" })));
    assert_eq!(call(&sandbox, &ask).await.expect("no fault is at work").code, 415);
}

#[tokio::test(start_paused = true)]
async fn the_order_of_entries_is_by_operation_and_time() {
    let sandbox = Sandbox::default();
    done(&sandbox, &post(&format!("{MAPS}?fieldManager=z"), &map(&json!({ "x": "1" })))).await;
    for (manager, field) in [("y", "a"), ("b", "b")] {
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        done(&sandbox, &merge(&format!("{MAP}?fieldManager={manager}"), &json!({ "data": { field: "1" } }))).await;
    }
    let stored = done(&sandbox, &apply(&format!("{MAP}?fieldManager=w"), &map(&json!({ "c": "1" })))).await.json;
    assert_eq!(managers(&stored), ["w", "z", "y", "b"]);
}

#[tokio::test(start_paused = true)]
async fn direct_writes_have_a_field_manager() {
    let sandbox = Sandbox::default();
    let stored = sandbox.create(&PODS, pod("web")).expect("the pod is valid");
    assert_eq!(managers(&stored), ["sandbox"]);
}
