//! A build without tables and OpenAPI v3 documents.

use kcm_sandbox_apiserver::Sandbox;
use serde_json::json;

use crate::rows::{MAPS, check, row};
use crate::support::{call, done, get};

#[tokio::test(start_paused = true)]
async fn a_table_is_an_unsupported_form() {
    let accepting = |accept| get(MAPS).header("accept", accept);
    for row in [
        row(
            "the next alternative is returned",
            vec![],
            accepting("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
            200,
            vec![("/kind", json!("ConfigMapList"))],
        ),
        row(
            "no alternative",
            vec![],
            accepting("application/json;as=Table;v=v1;g=meta.k8s.io"),
            406,
            vec![("/reason", json!("NotAcceptable"))],
        ),
    ] {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn documents_are_neither_served_nor_listed() {
    let sandbox = Sandbox::default();
    for path in ["/openapi/v3", "/openapi/v3/apis/apps/v1"] {
        assert_eq!(call(&sandbox, &get(path)).await.expect("no fault is injected").code, 404, "{path}");
    }
    let paths = done(&sandbox, &get("/")).await.json["paths"].clone();
    let served = |path| paths.as_array().is_some_and(|paths| paths.contains(&json!(path)));
    assert!(served("/openapi/v2") && !served("/openapi/v3"), "{paths}");
}
