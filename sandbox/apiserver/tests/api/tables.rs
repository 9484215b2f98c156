//! Objects printed by the server.

use std::time::Duration;

use kcm_api::{ObjectKey, Resource};
use kcm_sandbox_apiserver::Sandbox;
use serde_json::{Value, json};

use crate::rows::{MAPS, PODS, WEB, check, reason, row};
use crate::support::{TestRequest, Watching, call, delete, done, get, merge, pod, post, watch_with};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn printed(ask: TestRequest) -> TestRequest {
    ask.header("accept", TABLE)
}

fn map(name: &str) -> TestRequest {
    post(MAPS, &json!({ "metadata": { "name": name }, "data": { "a": "1" } }))
}

#[tokio::test(start_paused = true)]
async fn tables() {
    let settings = &format!("{MAPS}/settings");
    let made = || vec![map("settings")];
    let cells = |include: &str| printed(get(&format!("{settings}?includeObject={include}")));
    let accepting = |accept| get(settings).header("accept", accept);
    for row in [
        row(
            "one object",
            made(),
            printed(get(settings)),
            200,
            vec![
                ("/kind", json!("Table")),
                ("/apiVersion", json!("meta.k8s.io/v1")),
                ("/columnDefinitions/1/name", json!("Data")),
                ("/rows/0/cells", json!(["settings", 1, "0s"])),
                ("/rows/0/object/kind", json!("PartialObjectMetadata")),
                ("/rows/0/object/apiVersion", json!("meta.k8s.io/v1")),
                ("/rows/0/object/metadata/name", json!("settings")),
            ],
        ),
        row("no object", made(), cells("None"), 200, vec![("/rows/0/object", Value::Null)]),
        row("the object", made(), cells("Object"), 200, vec![("/rows/0/object/data/a", json!("1"))]),
        row(
            "something else of the object",
            made(),
            cells("Half"),
            400,
            reason(
                "BadRequest",
                "Unable to convert to Table as requested: includeObject: Invalid value: \"Half\": must be 'Metadata', 'Object', 'None', or empty",
            ),
        ),
        row(
            "a page of a list",
            vec![map("a"), map("b"), map("c")],
            printed(get(&format!("{MAPS}?limit=1"))),
            200,
            vec![
                ("/metadata/remainingItemCount", json!(2)),
                ("/rows/0/cells/0", json!("a")),
                ("/rows/1", Value::Null),
                ("/items", Value::Null),
            ],
        ),
        row("an empty list", vec![], printed(get(MAPS)), 200, vec![("/rows", json!([]))]),
        row("errors are not printed", vec![], printed(get(WEB)), 404, vec![("/kind", json!("Status"))]),
        row("what was made", vec![], printed(map("new")), 201, vec![("/rows/0/cells/0", json!("new"))]),
        row(
            "what came of a deletion is not printed",
            made(),
            printed(delete(settings)),
            200,
            vec![("/kind", json!("Status")), ("/status", json!("Success"))],
        ),
        row(
            "the first alternative that there is",
            made(),
            accepting("application/json;as=Table;v=v2;g=meta.k8s.io,application/json;as=Table,application/json"),
            200,
            vec![("/kind", json!("ConfigMap"))],
        ),
        row(
            "the alternative that is liked best",
            made(),
            accepting("application/json;as=Table;v=v1;g=meta.k8s.io;q=0.1,application/json"),
            200,
            vec![("/kind", json!("ConfigMap"))],
        ),
        row(
            "a table of no version",
            made(),
            accepting("application/json;as=Table"),
            406,
            vec![("/reason", json!("NotAcceptable"))],
        ),
        row(
            "metadata of no version",
            made(),
            accepting("application/json;as=PartialObjectMetadata"),
            406,
            vec![("/reason", json!("NotAcceptable"))],
        ),
    ] {
        check(row).await;
    }
}

async fn watch(sandbox: &Sandbox, path: &str) -> Watching {
    watch_with(sandbox, &printed(get(path))).await
}

async fn next(watching: &mut Watching) -> Value {
    watching.next().await.expect("the stream goes on").expect("nothing breaks")
}

const INITIAL: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&includeObject=None";

#[tokio::test(start_paused = true)]
async fn only_the_first_event_of_a_watch_defines_the_columns() {
    let sandbox = Sandbox::default();
    done(&sandbox, &map("a")).await;
    let mut watching = watch(&sandbox, &format!("{MAPS}?{INITIAL}")).await;

    let first = next(&mut watching).await;
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Table")));
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(first["object"]["rows"], json!([{ "cells": ["a", 1, "0s"], "object": null }]));

    let bookmark = next(&mut watching).await;
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["columnDefinitions"], Value::Null);
    assert_eq!(bookmark["object"]["rows"][0]["cells"], json!(["", 0, "<unknown>"]));
    let end = &bookmark["object"]["rows"][0]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"];
    assert_eq!(end, "true", "the end is marked whatever rows include");

    tokio::time::advance(Duration::from_secs(150)).await;
    done(&sandbox, &merge(&format!("{MAPS}/a"), &json!({ "data": { "b": "2" } }))).await;
    let mut later = next(&mut watching).await;
    while later["type"] == "BOOKMARK" {
        later = next(&mut watching).await;
    }
    assert_eq!(later["type"], "MODIFIED");
    assert_eq!(later["object"]["columnDefinitions"], Value::Null);
    assert_eq!(later["object"]["rows"], json!([{ "cells": ["a", 2, "2m30s"], "object": null }]));
    assert_eq!(later["object"]["metadata"]["resourceVersion"], sandbox.version().to_string());

    done(&sandbox, &delete(&format!("{MAPS}/a"))).await;
    let last = next(&mut watching).await;
    assert_eq!((&last["type"], &last["object"]["rows"][0]["cells"][0]), (&json!("DELETED"), &json!("a")));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_watch_is_not_printed() {
    let sandbox = Sandbox::default();
    sandbox.compact();
    let mut watching = watch(&sandbox, &format!("{MAPS}?watch=1&resourceVersion=1")).await;
    let event = next(&mut watching).await;
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("ERROR"), &json!("Status")));
}

#[tokio::test(start_paused = true)]
async fn ages_go_with_the_clock_of_the_sandbox() {
    let sandbox = Sandbox::default();
    done(&sandbox, &post(PODS, &pod("web"))).await;
    sandbox.set_pod_ready(&ObjectKey::namespaced("default", "web"), true, sandbox.now()).expect("the pod is there");
    tokio::time::advance(Duration::from_mins(3 * 60 + 1)).await;
    let answer = done(&sandbox, &printed(get(WEB))).await;
    assert_eq!(answer.json["rows"][0]["cells"][4], "3h1m");
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_have_a_name_and_an_age() {
    let sandbox = Sandbox::default();
    sandbox.register(Resource::namespaced("example.org", "v1", "widgets", "Widget"));
    let path = "/apis/example.org/v1/namespaces/default/widgets";
    done(
        &sandbox,
        &post(path, &json!({ "apiVersion": "example.org/v1", "kind": "Widget", "metadata": { "name": "w" } })),
    )
    .await;
    let answer = call(&sandbox, &printed(get(path))).await.expect("no fault is at work");
    assert_eq!(answer.json["rows"][0]["cells"], json!(["w", "0s"]));
    assert_eq!(answer.json["columnDefinitions"][1]["type"], "date");
}
