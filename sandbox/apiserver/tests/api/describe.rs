//! Discovery, OpenAPI, health, and field validation.

use kcm_sandbox_apiserver::{Sandbox, SandboxOptions};
use serde_json::{Value, json};

use crate::support::{TestRequest, call, done, get, merge, post, put};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    })
}

fn ask(sandbox: &Sandbox, ask: TestRequest) -> impl Future<Output = crate::support::Answer> + use<> {
    let sandbox = sandbox.clone();
    async move { call(&sandbox, &ask).await.expect("no fault is at work") }
}

#[tokio::test(start_paused = true)]
async fn groups_come_in_the_order_of_the_real_server() {
    let sandbox = Sandbox::default();
    let groups = done(&sandbox, &get("/apis")).await.json["groups"].clone();
    let names: Vec<&str> = groups.as_array().into_iter().flatten().filter_map(|group| group["name"].as_str()).collect();
    assert_eq!(names[..3], ["apiregistration.k8s.io", "apps", "events.k8s.io"]);
    let aggregated = done(&sandbox, &get("/apis").header("accept", AGGREGATED)).await.json["items"].clone();
    let same: Vec<&str> =
        aggregated.as_array().into_iter().flatten().filter_map(|item| item["metadata"]["name"].as_str()).collect();
    assert_eq!(names, same);
}

#[tokio::test(start_paused = true)]
async fn aggregated_discovery_is_sent_once_to_a_client_that_keeps_it() {
    let sandbox = Sandbox::default();
    for path in ["/api", "/apis"] {
        let first = done(&sandbox, &get(path).header("accept", AGGREGATED)).await;
        let tag = first.headers["etag"].to_str().expect("a tag is text").to_owned();
        let again = ask(&sandbox, get(path).header("accept", AGGREGATED).header("if-none-match", tag.as_str())).await;
        assert_eq!((again.code, again.text.as_str()), (304, ""), "{path}");
    }
}

#[cfg(feature = "kubectl")]
#[tokio::test(start_paused = true)]
async fn descriptions_are_found_by_their_index_and_kept_by_their_hash() {
    let sandbox = Sandbox::default();
    let index = done(&sandbox, &get("/openapi/v3")).await.json;
    let address = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().expect("apps are described").to_owned();
    let described = done(&sandbox, &get(&address)).await;
    assert_eq!(described.headers["cache-control"], "public, immutable");
    let moved = ask(&sandbox, get("/openapi/v3/apis/apps/v1?hash=0")).await;
    assert_eq!((moved.code, moved.headers["location"].to_str().ok()), (301, Some(address.as_str())));
    for path in ["/openapi/v3/apis/apps/v9", "/openapi/v1", "/openapi", "/foo", "/livez/nope", "/apis/nope"] {
        assert_eq!(ask(&sandbox, get(path)).await.code, 404, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_older_description_is_empty_in_both_forms() {
    const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    const ANSWERED: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let sandbox = Sandbox::default();
    let json = done(&sandbox, &get("/openapi/v2")).await.json;
    assert_eq!((&json["swagger"], &json["paths"]), (&json!("2.0"), &json!({})));
    let answer = done(&sandbox, &get("/openapi/v2").header("accept", ASKED)).await;
    assert_eq!((answer.headers["content-type"].as_bytes(), answer.text.as_str()), (ANSWERED.as_bytes(), ""));
}

#[tokio::test(start_paused = true)]
async fn health_and_version_are_served() {
    let sandbox = Sandbox::default();
    for (path, expected) in [
        ("/readyz", "ok"),
        ("/readyz/ping", "ok"),
        ("/livez?verbose", "[+]ping ok\n[+]storage ok\nlivez check passed\n"),
    ] {
        assert_eq!(done(&sandbox, &get(path)).await.text, expected, "{path}");
    }
    assert_eq!(done(&sandbox, &get("/version")).await.json["minor"], "37");
    let root = done(&sandbox, &get("/")).await.json["paths"].clone();
    assert!(root.as_array().is_some_and(|paths| paths.contains(&json!("/apis/apps/v1"))), "{root}");
    for path in ["/version", "/api/v1", "/apis/apps/v1"] {
        assert_eq!(ask(&sandbox, post(path, &json!({}))).await.code, 405, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_dropped_with_a_warning_unless_the_request_says_otherwise() {
    let sandbox = Sandbox::default();
    let mut body = deployment();
    body["spec"]["foo"] = json!(1);
    let warning = r#"299 - "unknown field \"spec.foo\"""#;
    let strict = "strict decoding error: unknown field \"spec.foo\"";

    let refused = ask(&sandbox, post(&format!("{DEPLOYMENTS}?fieldValidation=Strict"), &body)).await;
    assert_eq!(refused.code, 400);
    assert!(refused.text_at("/message").ends_with(strict), "{}", refused.text);
    let odd = ask(&sandbox, post(&format!("{DEPLOYMENTS}?fieldValidation=Foo"), &body)).await;
    assert_eq!((odd.code, odd.text_at("/details/causes/0/field")), (422, "fieldValidation"));

    let made = done(&sandbox, &post(DEPLOYMENTS, &body)).await;
    assert_eq!(made.headers["warning"], warning);
    assert_eq!(made.json["spec"].get("foo"), None);
    let path = format!("{DEPLOYMENTS}/web");
    let quiet = done(&sandbox, &put(&format!("{path}?fieldValidation=Ignore"), &body)).await;
    assert_eq!((quiet.headers.get("warning"), quiet.json["spec"].get("foo")), (None, None));

    let unknown = json!({ "spec": { "foo": 1 } });
    assert_eq!(done(&sandbox, &merge(&path, &unknown)).await.headers["warning"], warning);
    let refused = ask(&sandbox, merge(&format!("{path}?fieldValidation=Strict"), &unknown)).await;
    assert_eq!(refused.code, 422);
    assert!(refused.text_at("/message").ends_with(strict), "{}", refused.text);

    // A refusal for another reason warns all the same.
    body["metadata"]["name"] = json!("Web");
    let invalid = ask(&sandbox, post(DEPLOYMENTS, &body)).await;
    assert_eq!((invalid.code, &invalid.headers["warning"]), (422, &warning.parse().expect("a warning is a value")));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_more_keeps_unknown_fields() {
    let sandbox = Sandbox::new(SandboxOptions { keep_unknown_fields: true, ..SandboxOptions::default() });
    let mut body = deployment();
    body["spec"]["template"]["spec"]["newer"] = json!({ "a": [1] });
    let made = done(&sandbox, &post(&format!("{DEPLOYMENTS}?fieldValidation=Strict"), &body)).await;
    assert_eq!(made.json["spec"]["template"]["spec"]["newer"], json!({ "a": [1] }));
    let patched = done(&sandbox, &merge(&format!("{DEPLOYMENTS}/web"), &json!({ "spec": { "replicas": 2 } }))).await;
    assert_eq!(patched.json["spec"]["template"]["spec"]["newer"], json!({ "a": [1] }));
}

#[tokio::test(start_paused = true)]
async fn yaml_is_read_as_json_is() {
    let sandbox = Sandbox::default();
    let body = "metadata: {name: a}\ndata:\n  x: 'yes'\n";
    let mut create = post("/api/v1/namespaces/default/configmaps", &json!({}));
    create.body = body.to_owned();
    let made = done(&sandbox, &create.header("content-type", "application/yaml")).await;
    assert_eq!(made.json["data"], json!({ "x": "yes" }));
}
