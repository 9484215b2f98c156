//! Scales of objects whose kind discovery maps to its resource.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kcm_api::ObjectKey;
use kcm_framework::client::{ClientBuilder, Limits, UserAgent};
use kcm_framework::discovery::Refresher;
use kcm_framework::{Class, ReconcileError, ScaleClient};
use kube::client::Body;
use serde_json::{Value, json};

/// The paths of the requests for scales.
type Paths = Arc<Mutex<Vec<String>>>;

/// The document at a path.
fn document(path: &str) -> Option<Value> {
    let group =
        |version: &str, resources: Value| json!({ "version": version, "freshness": "Current", "resources": resources });
    let resource = |plural: &str, kind: &str, subresources: Value| {
        json!({
            "resource": plural, "responseKind": { "kind": kind }, "scope": "Namespaced", "verbs": ["get"],
            "subresources": subresources,
        })
    };
    let scaled = |plural: &str, kind: &str, group: &str, version: &str, scale: &str| {
        let response_kind = json!({ "group": group, "version": version, "kind": scale });
        resource(plural, kind, json!([{ "subresource": "scale", "responseKind": response_kind }]))
    };
    let scalable = || scaled("websites", "Website", "autoscaling", "v1", "Scale");
    Some(match path {
        "/api" => json!({ "kind": "APIGroupDiscoveryList", "items": [
            { "versions": [group("v1", json!([resource("namespaces", "Namespace", json!([]))]))] },
        ] }),
        "/apis" => json!({ "kind": "APIGroupDiscoveryList", "items": [
            { "metadata": { "name": "example.com" }, "versions": [
                group("v2", json!([scalable()])),
                group("v1", json!([
                    scalable(),
                    resource("pages", "Page", json!([])),
                    resource("posts", "Post", json!([{ "subresource": "scale" }])),
                    scaled("shops", "Shop", "example.com", "v1", "Scale"),
                    scaled("carts", "Cart", "autoscaling", "v2", "Scale"),
                    scaled("tills", "Till", "autoscaling", "v1", "Size"),
                    scaled("banks", "Bank", "extensions", "v1beta1", "Scale"),
                ])),
            ] },
        ] }),
        "/apis/example.com/v1/namespaces/shop/websites/web/scale"
        | "/apis/example.com/v2/namespaces/shop/websites/web/scale" => {
            json!({ "metadata": { "name": "web", "uid": "u" }, "spec": { "replicas": 3 } })
        }
        "/apis/example.com/v1/namespaces/shop/websites/broken/scale" => json!(500),
        _ => return None,
    })
}

async fn scales() -> (ScaleClient, Paths) {
    let paths = Paths::default();
    let log = Arc::clone(&paths);
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        if path.ends_with("/scale") {
            log.lock().unwrap().push(path.clone());
        }
        let (code, body) = match document(&path) {
            Some(Value::Number(code)) => (u16::try_from(code.as_u64().unwrap()).unwrap(), String::new()),
            Some(document) => (200, document.to_string()),
            None => {
                (404, json!({ "kind": "Status", "code": 404, "reason": "NotFound", "message": "none" }).to_string())
            }
        };
        async move { Ok::<_, kube::Error>(Response::builder().status(code).body(Body::from(body.into_bytes())).unwrap()) }
    });
    let client = kube::Client::new(service, "default");
    let builder = ClientBuilder::new(client, UserAgent::new("kube-controller-manager", "v1", ""), Limits::UNLIMITED);
    let refresher = Refresher::new(builder.client_for("discovery"));
    refresher.refresh().await.unwrap();
    (ScaleClient::new(builder.client_for("a"), refresher.discovery()), paths)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

#[tokio::test]
async fn the_scale_is_read_in_the_version_that_is_named_or_preferred() {
    for (api_version, version) in [("example.com/v1", "v1"), ("example.com/v2", "v2"), ("example.com/v0", "v2")] {
        let (scales, paths) = scales().await;
        let (resource, scale) = scales.get(api_version, "Website", &key("web")).await.unwrap();
        assert_eq!((&*resource.version, scale.replicas, scale.uid), (version, 3, "u".into()), "{api_version}");
        let path = format!("/apis/example.com/{version}/namespaces/shop/websites/web/scale");
        assert_eq!(*paths.lock().unwrap(), [path]);
    }
}

#[tokio::test]
async fn every_failure_is_told_apart() {
    let (scales, paths) = scales().await;
    for (name, api_version, kind, object, message, is_not_found) in [
        (
            "no such kind",
            "example.com/v1",
            "Blog",
            "a",
            "no matches for kind \"Blog\" in version \"example.com/v1\"",
            false,
        ),
        ("no such group", "v1", "Website", "web", "no matches for kind \"Website\" in version \"v1\"", false),
        (
            "no scale",
            "example.com/v1",
            "Page",
            "a",
            "pages.example.com does not implement the scale subresource",
            false,
        ),
        ("no such object", "example.com/v1", "Website", "gone", "none", true),
    ] {
        let error = scales.get(api_version, kind, &key(object)).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.is_not_found()), (message, is_not_found), "{name}");
        let expected = if is_not_found { Class::Conflict } else { Class::Transient };
        assert_eq!(ReconcileError::from(error).class(), expected, "{name}");
    }
    assert_eq!(paths.lock().unwrap().len(), 2, "a kind that is not served is not requested");
    let error = scales.get("example.com/v1", "Website", &key("broken")).await.unwrap_err();
    assert!(!error.is_not_found());
    assert_eq!(ReconcileError::from(error).class(), Class::Unavailable);
}

#[tokio::test]
async fn a_kind_is_scalable_where_its_scale_has_a_format_that_upstream_knows() {
    let (scales, _) = scales().await;
    for (name, kind, resource) in [
        ("no format", "Post", "posts"),
        ("another group", "Shop", "shops"),
        ("another version", "Cart", "carts"),
        ("another kind", "Till", "tills"),
    ] {
        let error = scales.get("example.com/v1", kind, &key("gone")).await.unwrap_err();
        let message = format!("{resource}.example.com does not implement the scale subresource");
        assert_eq!((error.to_string(), error.is_not_found()), (message, false), "{name}");
    }
    for kind in ["Website", "Bank"] {
        let error = scales.get("example.com/v1", kind, &key("gone")).await.unwrap_err();
        assert!(error.is_not_found(), "{kind}: {error}");
    }
}
