//! Differences between kinds: updates, versions, deletions, fields to select by, and how long objects live.

use std::time::Duration;

use kcm_sandbox_apiserver::{EVENTS, Sandbox};
use serde_json::{Value, json};

use crate::rows::{MAP, MAPS, PODS, WEB, check, reason, row};
use crate::support::{call, delete, delete_with, done, get, merge, pod, post, put, with};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/web";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const JOB: &str = "/apis/batch/v1/namespaces/default/jobs/web";

fn lease() -> Value {
    json!({ "metadata": { "name": "web" }, "spec": { "holderIdentity": "x" } })
}

fn job() -> Value {
    let spec = json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "web:1" }] });
    json!({ "metadata": { "name": "web" }, "spec": { "template": { "spec": spec } } })
}

fn map() -> Value {
    json!({ "metadata": { "name": "web" } })
}

#[tokio::test(start_paused = true)]
async fn puts() {
    for row in [
        row("a put makes a lease", vec![], put(LEASE, &lease()), 201, vec![("/metadata/name", json!("web"))])
            .sees(LEASES, vec!["ADDED web"]),
        row(
            "a put does not make a lease of a uid",
            vec![],
            put(LEASE, &with(lease(), &json!({ "metadata": { "uid": "x" } }))),
            409,
            vec![("/reason", json!("Conflict"))],
        ),
        row(
            "a put makes a lease whatever version it names",
            vec![],
            put(LEASE, &with(lease(), &json!({ "metadata": { "resourceVersion": "5" } }))),
            201,
            vec![],
        )
        .sees(LEASES, vec!["ADDED web"]),
        row(
            "a lease is replaced only at a version",
            vec![post(LEASES, &lease())],
            put(LEASE, &lease()),
            422,
            reason(
                "Invalid",
                "leases.coordination.k8s.io \"web\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
            ),
        ),
        row(
            "a put makes no config map",
            vec![],
            put(MAP, &map()),
            404,
            reason("NotFound", "configmaps \"web\" not found"),
        ),
        row(
            "a put into a namespace that is not there",
            vec![],
            put(
                "/api/v1/namespaces/none/limitranges/web",
                &json!({ "metadata": { "name": "web" }, "spec": { "limits": [] } }),
            ),
            404,
            reason("NotFound", "namespaces \"none\" not found"),
        ),
        row(
            "version 0 is any",
            vec![post(MAPS, &map())],
            put(MAP, &json!({ "metadata": { "name": "web", "resourceVersion": "0" }, "data": { "a": "1" } })),
            200,
            vec![("/data", json!({ "a": "1" }))],
        )
        .sees(MAPS, vec!["MODIFIED web"]),
        row(
            "a version that is none",
            vec![post(MAPS, &map())],
            merge(MAP, &json!({ "metadata": { "resourceVersion": "abc" } })),
            500,
            vec![("/message", json!("strconv.ParseUint: parsing \"abc\": invalid syntax"))],
        ),
        row(
            "a namespaced object is made in its namespace",
            vec![],
            post("/api/v1/configmaps", &map()),
            405,
            vec![("/reason", json!("MethodNotAllowed"))],
        ),
        row(
            "a dry run said twice, once wrong",
            vec![],
            post(&format!("{MAPS}?dryRun=All&dryRun=Bad"), &map()),
            422,
            vec![(
                "/message",
                json!(
                    "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"All\",\"Bad\"]: supported values: \"All\""
                ),
            )],
        ),
        row(
            "a patch is not forced",
            vec![post(MAPS, &map())],
            merge(&format!("{MAP}?force=true"), &json!({})),
            422,
            vec![("/details/causes/0/field", json!("force"))],
        ),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn deletions() {
    for row in [
        row(
            "a job orphans its pods by default",
            vec![post(JOBS, &job())],
            delete(JOB),
            200,
            vec![("/metadata/finalizers", json!(["orphan"]))],
        )
        .sees(JOBS, vec!["MODIFIED web"]),
        row(
            "a job is deleted with its pods on request",
            vec![post(JOBS, &job())],
            delete(&format!("{JOB}?propagationPolicy=Background")),
            200,
            vec![("/kind", json!("Status"))],
        )
        .sees(JOBS, vec!["DELETED web"]),
        row(
            "a service account answers with itself",
            vec![post("/api/v1/namespaces/default/serviceaccounts", &map())],
            delete("/api/v1/namespaces/default/serviceaccounts/web"),
            200,
            vec![("/kind", json!("ServiceAccount"))],
        ),
        row(
            "the old way to delete dependents accepts what waits",
            vec![post(PODS, &with(pod("web"), &json!({ "spec": { "nodeName": "n1" } })))],
            delete_with(WEB, &json!({ "orphanDependents": false })),
            202,
            vec![("/kind", json!("Pod"))],
        )
        .sees(PODS, vec!["MODIFIED web"]),
        row(
            "options may be YAML",
            vec![post(MAPS, &map())],
            crate::support::TestRequest { body: "dryRun: [All]\n".to_owned(), ..delete(MAP) }
                .header("content-type", "application/yaml"),
            200,
            vec![("/kind", json!("Status"))],
        ),
        row(
            "options are not text",
            vec![post(MAPS, &map())],
            delete_with(MAP, &json!({})).header("content-type", "text/plain"),
            415,
            vec![("/reason", json!("UnsupportedMediaType"))],
        ),
        row(
            "options of another kind",
            vec![post(MAPS, &map())],
            delete_with(MAP, &json!({ "kind": "Pod", "apiVersion": "v1" })),
            400,
            reason(
                "BadRequest",
                "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
        ),
        row(
            "both ways to say what becomes of dependents",
            vec![post(MAPS, &map())],
            delete_with(MAP, &json!({ "propagationPolicy": "Foreground", "orphanDependents": true })),
            422,
            vec![(
                "/details/causes/0/message",
                json!("Invalid value: \"Foreground\": orphanDependents and deletionPropagation cannot be both set"),
            )],
        ),
        row(
            "a grace that is no number",
            vec![post(MAPS, &map())],
            delete_with(MAP, &json!({ "gracePeriodSeconds": "x" })),
            400,
            reason(
                "BadRequest",
                "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            ),
        ),
        row(
            "a namespace that cannot go",
            vec![],
            delete("/api/v1/namespaces/kube-system"),
            403,
            reason("Forbidden", "namespaces \"kube-system\" is forbidden: this namespace may not be deleted"),
        ),
        row(
            "a page of a collection",
            vec![post(MAPS, &map()), post(MAPS, &json!({ "metadata": { "name": "x" } }))],
            delete(&format!("{MAPS}?limit=1")),
            200,
            vec![("/items/0/metadata/name", json!("web")), ("/metadata/remainingItemCount", json!(1))],
        )
        .sees(MAPS, vec!["DELETED web"]),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn deletions_of_collections() {
    for row in [row(
        "a collection in all namespaces",
        vec![],
        delete("/api/v1/configmaps"),
        405,
        vec![("/reason", json!("MethodNotAllowed"))],
    )] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn fields() {
    let node = json!({ "metadata": { "name": "n" } });
    for (name, given, path, expected) in [
        (
            "nodes that take pods",
            post("/api/v1/nodes", &node),
            "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse",
            Ok("n"),
        ),
        (
            "nodes are in no namespace",
            post("/api/v1/nodes", &node),
            "/api/v1/nodes?fieldSelector=metadata.namespace%3Da",
            Err("field label not supported: metadata.namespace"),
        ),
        ("jobs by successes", post(JOBS, &job()), "/apis/batch/v1/jobs?fieldSelector=status.successful%3D0", Ok("web")),
        (
            "jobs by something else",
            post(JOBS, &job()),
            "/apis/batch/v1/jobs?fieldSelector=x%3D0",
            Err("field label \"x\" not supported for Job"),
        ),
        (
            "secrets by type",
            post("/api/v1/namespaces/default/secrets", &json!({ "metadata": { "name": "s" }, "type": "a/b" })),
            "/api/v1/secrets?fieldSelector=type%3Da/b",
            Ok("s"),
        ),
        (
            "pods by the old name of a field",
            post(PODS, &pod("web")),
            "/api/v1/pods?fieldSelector=spec.host%3D",
            Ok("web"),
        ),
        (
            "a value with a sign in it",
            post(PODS, &pod("web")),
            "/api/v1/pods?fieldSelector=spec.nodeName%3D%3D%3Dx",
            Err("invalid field selector: unescaped character in value: 61"),
        ),
        (
            "a value that escapes nothing",
            post(PODS, &pod("web")),
            "/api/v1/pods?fieldSelector=spec.nodeName%3Da%5Cb",
            Err("invalid field selector: invalid escape sequence: \\b"),
        ),
    ] {
        let sandbox = Sandbox::default();
        done(&sandbox, &given).await;
        let answer = call(&sandbox, &get(path)).await.expect("no fault is at work");
        match expected {
            Ok(found) => assert_eq!(answer.text_at("/items/0/metadata/name"), found, "{name}: {}", answer.text),
            Err(why) => assert_eq!((answer.code, answer.text_at("/message")), (400, why), "{name}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_gone_an_hour_after_its_last_change() {
    let sandbox = Sandbox::default();
    let path = "/api/v1/namespaces/default/events";
    for name in ["first", "second"] {
        let event = json!({ "metadata": { "name": name }, "involvedObject": { "namespace": "default" } });
        done(&sandbox, &post(path, &event)).await;
    }
    tokio::time::advance(Duration::from_mins(30)).await;
    done(&sandbox, &merge(&format!("{path}/second"), &json!({ "count": 2 }))).await;
    tokio::time::advance(Duration::from_mins(30)).await;
    let left = done(&sandbox, &get(path)).await;
    assert_eq!(left.text_at("/items/0/metadata/name"), "second");
    assert_eq!(left.json["items"].as_array().map(Vec::len), Some(1));
    tokio::time::advance(Duration::from_mins(30)).await;
    sandbox.create_namespace("later").expect("a namespace can be made");
    assert!(sandbox.list(&EVENTS, None).is_empty());
}
