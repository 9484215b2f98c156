//! The requests of the API client, and its reactions to responses.

#![expect(clippy::unwrap_used, reason = "a test fails where its helper does")]

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kcm_api::{ObjectKey, PartialObjectMeta, Resource, ResourceVersion, Uid};
use kcm_client::{
    ApiClient, ApiError, Cause, ClientBuilder, ClientMetrics, DeleteOptions, Deleted, DeletionPropagation, ErrorClass,
    Limits, ListQuery, Patch, Payload, Subresource, UserAgent,
};
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;

const PODS: Resource = Resource::namespaced("", "v1", "pods", "Pod");
const REPLICA_SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");

#[derive(Debug, Clone, PartialEq)]
struct Sent {
    line: String,
    content_type: String,
    accept: String,
    user_agent: String,
    body: String,
}

/// An API server that gives one answer to everything and remembers what it was asked.
#[derive(Clone, Default)]
struct Script {
    code: u16,
    body: String,
    delay: Duration,
    log: Arc<Mutex<Vec<Sent>>>,
}

impl Script {
    fn answering(code: u16, body: &impl ToString) -> Self {
        Self { code, body: body.to_string(), ..Self::default() }
    }

    fn client(&self) -> kube::Client {
        let script = self.clone();
        kube::Client::new(
            tower::service_fn(move |request: Request<Body>| {
                let script = script.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let header = |name| head.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
                    let body = body.collect().await?.to_bytes();
                    script.log.lock().unwrap().push(Sent {
                        line: format!("{} {}", head.method, head.uri),
                        content_type: header("content-type"),
                        accept: header("accept"),
                        user_agent: header("user-agent"),
                        body: String::from_utf8(body.to_vec()).unwrap(),
                    });
                    tokio::time::sleep(script.delay).await;
                    let answer = Response::builder().status(script.code);
                    Ok::<_, kube::Error>(answer.body(Body::from(script.body.into_bytes())).unwrap())
                }
            }),
            "default",
        )
    }

    fn builder(&self, limits: Limits) -> ClientBuilder {
        ClientBuilder::new(self.client(), UserAgent::new("kube-controller-manager", "v1.37.2", "abc"), limits)
    }

    fn api(&self) -> ApiClient {
        self.builder(Limits::UNLIMITED).client_for("replicaset-controller")
    }

    fn only(&self) -> Sent {
        let log = self.log.lock().unwrap();
        assert_eq!(log.len(), 1, "{log:?}");
        log[0].clone()
    }
}

fn web() -> ObjectKey {
    ObjectKey::namespaced("a", "web")
}

#[tokio::test]
async fn a_create_carries_json_identity_and_a_time_limit_and_returns_what_was_made() {
    let made = json!({"metadata": {"name": "web-x", "namespace": "a", "uid": "u", "resourceVersion": "7"}});
    let script = Script::answering(201, &made);
    let written = script.api().create(&PODS, Some("a"), Payload::json(&json!({"kind": "Pod"}))).await.unwrap();
    assert_eq!(written.key, ObjectKey::namespaced("a", "web-x"));
    assert_eq!((written.uid, written.resource_version), (Uid::from("u"), ResourceVersion::from("7")));
    assert_eq!(written.body, made.to_string());

    let sent = script.only();
    assert_eq!(sent.line, "POST /api/v1/namespaces/a/pods?timeout=30s");
    assert_eq!((sent.content_type.as_str(), sent.accept.as_str()), ("application/json", "application/json"));
    assert_eq!(sent.body, r#"{"kind":"Pod"}"#);
    assert!(sent.user_agent.starts_with("kube-controller-manager/v1.37.2 ("), "{}", sent.user_agent);
    assert!(sent.user_agent.ends_with("/replicaset-controller"), "{}", sent.user_agent);
}

#[tokio::test]
async fn each_kind_of_write_goes_where_it_belongs() {
    let body = || Payload::raw("{}");
    let apply = || Patch::Apply { field_manager: "kube controller".to_owned(), force: true, body: body() };
    for (patch, content_type, line) in [
        (Patch::Merge(body()), "application/merge-patch+json", "?timeout=30s"),
        (Patch::Json(body()), "application/json-patch+json", "?timeout=30s"),
        (Patch::Strategic(body()), "application/strategic-merge-patch+json", "?timeout=30s"),
        (apply(), "application/apply-patch+yaml", "?fieldManager=kube%20controller&force=true&timeout=30s"),
    ] {
        let script = Script::answering(200, &"{}");
        script.api().patch(&PODS, &web(), Subresource::None, patch).await.unwrap();
        let sent = script.only();
        assert_eq!(sent.line, format!("PATCH /api/v1/namespaces/a/pods/web{line}"));
        assert_eq!(sent.content_type, content_type);
    }

    let script = Script::answering(200, &"{}");
    let written = script.api().put(&REPLICA_SETS, &web(), Subresource::Status, body()).await.unwrap();
    assert_eq!(written.key, web(), "taken from the request");
    assert_eq!(script.only().line, "PUT /apis/apps/v1/namespaces/a/replicasets/web/status?timeout=30s");

    let script = Script::answering(201, &"{}");
    script.api().post(&PODS, &web(), Subresource::Other("eviction"), body()).await.unwrap();
    assert_eq!(script.only().line, "POST /api/v1/namespaces/a/pods/web/eviction?timeout=30s");
}

#[tokio::test]
async fn a_delete_states_its_preconditions_and_an_absent_object_is_as_good_as_deleted() {
    let script = Script::answering(200, &r#"{"kind":"Status","status":"Success"}"#);
    let options = DeleteOptions {
        uid: Some(Uid::from("u")),
        grace_period_seconds: Some(0),
        propagation: Some(DeletionPropagation::Background),
        ..DeleteOptions::default()
    };
    assert_eq!(script.api().delete(&PODS, &web(), &options).await.unwrap(), Deleted::Accepted);
    let sent = script.only();
    assert_eq!(sent.line, "DELETE /api/v1/namespaces/a/pods/web?timeout=30s");
    let body: serde_json::Value = serde_json::from_str(&sent.body).unwrap();
    let expected = json!({
        "kind": "DeleteOptions", "apiVersion": "v1",
        "gracePeriodSeconds": 0, "propagationPolicy": "Background", "preconditions": {"uid": "u"},
    });
    assert_eq!(body, expected);

    let gone = Script::answering(404, &r#"{"kind":"Status","reason":"NotFound","message":"m"}"#);
    assert_eq!(gone.api().delete(&PODS, &web(), &DeleteOptions::default()).await.unwrap(), Deleted::Gone);
    let other = Script::answering(409, &r#"{"kind":"Status","reason":"Conflict","message":"the UID differs"}"#);
    let error = other.api().delete(&PODS, &web(), &DeleteOptions::of_uid(Uid::from("u"))).await.unwrap_err();
    assert!(error.is_conflict());
    assert_eq!(error.to_string(), "cannot delete pods \"a/web\"");
}

#[tokio::test]
async fn an_eviction_and_the_deletion_of_a_collection_state_what_they_delete() {
    let script = Script::answering(201, &r#"{"kind":"Status","status":"Success"}"#);
    let options = DeleteOptions { grace_period_seconds: Some(5), ..DeleteOptions::of_uid(Uid::from("u")) };
    assert_eq!(script.api().evict(&PODS, &web(), &options).await.unwrap(), Deleted::Accepted);
    let sent = script.only();
    assert_eq!(sent.line, "POST /api/v1/namespaces/a/pods/web/eviction?timeout=30s");
    let body: serde_json::Value = serde_json::from_str(&sent.body).unwrap();
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5, "preconditions": {"uid": "u"},
    });
    let expected = json!({
        "kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "web", "namespace": "a"},
        "deleteOptions": options,
    });
    assert_eq!(body, expected);

    let script = Script::answering(200, &json!({"metadata": {}, "items": []}));
    let selected = ListQuery { label_selector: Some("app=web".to_owned()), ..ListQuery::default() };
    script.api().delete_collection(&PODS, Some("a"), &selected, &DeleteOptions::default()).await.unwrap();
    let sent = script.only();
    assert_eq!(sent.line, "DELETE /api/v1/namespaces/a/pods?labelSelector=app%3Dweb&timeout=30s");
    assert!(sent.accept.contains("as=PartialObjectMetadataList"), "the answer is a list: {}", sent.accept);
}

#[tokio::test]
async fn a_scale_is_read_and_written_through_the_subresource_of_any_kind() {
    let scale = json!({"metadata": {"name": "web", "uid": "u", "resourceVersion": "7"}, "spec": {"replicas": 3}});
    let script = Script::answering(200, &scale);
    let mut scale = script.api().scale(&REPLICA_SETS, &web()).await.unwrap();
    assert_eq!(
        (scale.replicas, script.only().line.as_str()),
        (3, "GET /apis/apps/v1/namespaces/a/replicasets/web/scale")
    );
    let script = Script::answering(200, &"{}");
    scale.replicas = 4;
    script.api().put_scale(&REPLICA_SETS, &web(), &scale).await.unwrap();
    let sent = script.only();
    assert_eq!(sent.line, "PUT /apis/apps/v1/namespaces/a/replicasets/web/scale?timeout=30s");
    let body: serde_json::Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!((&body["kind"], &body["spec"]["replicas"]), (&json!("Scale"), &json!(4)));
    assert_eq!((&body["metadata"]["uid"], &body["metadata"]["resourceVersion"]), (&json!("u"), &json!("7")));
}

#[tokio::test]
async fn a_list_is_asked_for_as_stated_and_comes_in_pages() {
    let page = json!({
        "metadata": {"resourceVersion": "9", "continue": "more"},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
    });
    let script = Script::answering(200, &page);
    let options = ListQuery {
        field_selector: Some("metadata.name=web".to_owned()),
        limit: Some(2),
        metadata_only: true,
        ..ListQuery::default()
    };
    let page = script.api().list(&PODS, Some("a"), &options).await.unwrap();
    assert_eq!(page.resource_version, ResourceVersion::from("9"));
    assert_eq!((page.items.len(), page.continue_token.as_deref()), (2, Some("more")));
    let sent = script.only();
    assert_eq!(sent.line, "GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dweb&limit=2");
    assert!(sent.accept.contains("as=PartialObjectMetadataList"), "{}", sent.accept);
    assert!(sent.accept.ends_with(",application/json"), "some aggregated servers know nothing else: {}", sent.accept);

    let empty = Script::answering(200, &json!({"metadata": {"resourceVersion": "1"}, "items": null}));
    assert!(empty.api().list(&PODS, None, &ListQuery::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn one_object_is_read_into_a_view() {
    let script = Script::answering(200, &json!({"metadata": {"name": "web", "namespace": "a", "uid": "u"}}));
    let view: PartialObjectMeta = script.api().get(&PODS, &web()).await.unwrap();
    assert_eq!(view.metadata.uid, Uid::from("u"));
    let accept = script.only().accept;
    assert!(accept.contains("as=PartialObjectMetadata;") && accept.ends_with(",application/json"), "{accept}");

    let broken = Script::answering(200, &"{");
    let error = broken.api().get::<PartialObjectMeta>(&PODS, &web()).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Decode(_)));
    assert_eq!(error.deadline(), None, "a read leaves nothing behind");
}

#[tokio::test]
async fn a_refusal_keeps_the_servers_words() {
    let script =
        Script::answering(422, &r#"{"kind":"Status","reason":"Invalid","message":"Pod \"x\" is invalid: spec"}"#);
    let error = script.api().create(&PODS, Some("a"), Payload::raw("{}")).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot create pods in namespace \"a\"");
    assert_eq!(error.message(), "Pod \"x\" is invalid: spec");
    assert_eq!((error.class(), error.response_lost()), (ErrorClass::Terminal, false));
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_is_lost_and_its_deadline_is_past_the_servers() {
    let script = Script { delay: Duration::from_hours(1), ..Script::answering(200, &"{}") };
    let start = Instant::now();
    let error = script.api().create(&PODS, Some("a"), Payload::raw("{}")).await.unwrap_err();
    assert!(error.is_timeout() && error.response_lost());
    let waited = error.deadline().unwrap() - start;
    assert!(waited >= Duration::from_secs(30) && start.elapsed() >= waited, "{waited:?}");
}

/// Every request that was counted, by its code.
#[derive(Default)]
struct Counts(Mutex<Vec<Option<u16>>>);

impl ClientMetrics for Counts {
    fn request(&self, _: &str, code: Option<u16>, _: Duration) {
        self.0.lock().unwrap().push(code);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stops_half_way_is_given_up_and_counted_once() {
    let stops = tower::service_fn(async |_: Request<Body>| {
        let body = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
        Ok::<_, kube::Error>(Response::new(body))
    });
    let counts = Arc::new(Counts::default());
    let agent = UserAgent::new("kube-controller-manager", "v1.37.2", "abc");
    let client = kube::Client::new(stops, "default");
    let builder = ClientBuilder::with_metrics(client, agent, Limits::UNLIMITED, counts.clone());
    let error = builder.client_for("a").get_raw(&PODS, &web(), Subresource::None).await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(*counts.0.lock().unwrap(), [Some(200)]);
}

#[tokio::test]
async fn a_response_that_is_longer_than_the_limit_is_not_read_to_its_end() {
    let endless = tower::service_fn(async |_: Request<Body>| {
        let chunks =
            futures::stream::repeat_with(|| Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 1024]))));
        Ok::<_, kube::Error>(Response::new(StreamBody::new(chunks)))
    });
    let agent = UserAgent::new("kube-controller-manager", "v1.37.2", "abc");
    let builder = ClientBuilder::new(kube::Client::new(endless, "default"), agent, Limits::UNLIMITED);
    let error = builder.client_for("a").get_path_within("/apis/a", "application/json", 2 << 20).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::TooLarge { limit: 2_097_152, .. }), "{error:?}");

    let script = Script::answering(200, &"12345");
    assert_eq!(script.api().get_path_within("/apis/a", "application/json", 5).await.unwrap(), "12345");
    assert!(script.api().get_path_within("/apis/a", "application/json", 4).await.is_err());
}

/// An aggregated API whose responses never end, beside other APIs that respond. Counts the bytes that were read of an
/// endless response.
fn with_endless_group(bytes_read: &Arc<AtomicUsize>) -> ApiClient {
    const CHUNK: &[u8] = &[b' '; 1 << 20];
    let bytes_read = Arc::clone(bytes_read);
    let service = tower::service_fn(move |request: Request<Body>| {
        let bytes_read = Arc::clone(&bytes_read);
        bytes_read.store(0, Ordering::Relaxed);
        async move {
            let path = request.uri().path();
            if !path.starts_with("/apis/endless.example.com/") {
                let object = Bytes::from_static(br#"{"metadata":{"name":"web"}}"#);
                return Ok(Response::new(StreamBody::new(stream::iter([Ok(Frame::data(object))]).boxed())));
            }
            let chunks = stream::repeat_with(move || {
                let before = bytes_read.fetch_add(CHUNK.len(), Ordering::Relaxed);
                assert!(before < 1 << 30, "a whole gigabyte is read");
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(CHUNK)))
            });
            let status = if path.contains("/namespaces/failing/") { 503 } else { 200 };
            Ok::<_, kube::Error>(Response::builder().status(status).body(StreamBody::new(chunks.boxed())).unwrap())
        }
    });
    let agent = UserAgent::new("kube-controller-manager", "v1.37.2", "abc");
    ClientBuilder::new(kube::Client::new(service, "default"), agent, Limits::UNLIMITED).client_for("a")
}

#[tokio::test]
async fn an_aggregated_api_whose_response_never_ends_costs_a_bounded_amount_of_memory() {
    const ENDLESS: Resource = Resource::namespaced("endless.example.com", "v1", "things", "Thing");
    const GROUP: &str = "/apis/endless.example.com/v1";
    const MIB: usize = 1 << 20;

    let bytes_read = Arc::default();
    let (api, web, raw) = (with_endless_group(&bytes_read), web(), Subresource::None);
    let check = |path: &str, mib: usize, failed: Option<ApiError>| {
        let (path, error) = (format!("{GROUP}{path}"), failed.expect("the response never ends"));
        assert!(matches!(error.cause(), Cause::TooLarge { .. }), "{error:?}");
        let what = format!("the response of {path} is longer than {mib} MiB, and was not read to its end");
        let advice = "if an APIService serves this path, check its server";
        assert_eq!(error.message(), format!("{what}: {advice}"));
        // One chunk beyond the limit shows that the response is longer.
        assert_eq!(bytes_read.load(Ordering::Relaxed), (mib + 1) * MIB, "{path}");
    };
    let object = "/namespaces/a/things/web";
    check(object, 64, api.get::<PartialObjectMeta>(&ENDLESS, &web).await.err());
    check(object, 64, api.get_raw(&ENDLESS, &web, raw).await.err());
    check(object, 64, api.put(&ENDLESS, &web, raw, Payload::raw("{}")).await.err());
    check("/namespaces/a/things/web/scale", 64, api.scale(&ENDLESS, &web).await.err());
    check("", 64, api.get_path(GROUP, "*/*").await.err());
    let page = ListQuery { limit: Some(500), ..ListQuery::default() };
    check("/namespaces/a/things", 256, api.list(&ENDLESS, Some("a"), &page).await.err());
    let failing = ObjectKey::namespaced("failing", "web");
    let error = api.put(&ENDLESS, &failing, raw, Payload::raw("{}")).await.unwrap_err();
    assert_eq!(error.message(), "the server answered 503: Service Unavailable");
    api.get::<PartialObjectMeta>(&PODS, &web).await.unwrap();
}

/// The sizes of the bodies of requests and responses, by method.
#[derive(Default)]
struct Sizes(Mutex<Vec<(String, u64)>>);

impl ClientMetrics for Sizes {
    fn request_size(&self, method: &str, bytes: u64) {
        self.0.lock().unwrap().push((format!("{method} sent"), bytes));
    }

    fn response_size(&self, method: &str, bytes: u64) {
        self.0.lock().unwrap().push((format!("{method} received"), bytes));
    }
}

#[tokio::test]
async fn the_bytes_of_bodies_are_counted_except_those_of_watches() {
    let script = Script::answering(200, &"{\"items\":[]}");
    let sizes = Arc::new(Sizes::default());
    let agent = UserAgent::new("kube-controller-manager", "v1.37.2", "abc");
    let builder = ClientBuilder::with_metrics(script.client(), agent, Limits::UNLIMITED, sizes.clone());
    let api = builder.client_for("a");
    api.put(&PODS, &web(), Subresource::None, Payload::raw("{}")).await.unwrap();
    api.get_raw(&PODS, &web(), Subresource::None).await.unwrap();
    let informers = builder.kube_client_for("shared-informers");
    for uri in ["/api/v1/pods", "/api/v1/pods?watch=true"] {
        let response = informers.send(Request::get(uri).body(Body::empty()).unwrap()).await.unwrap();
        response.into_body().collect().await.unwrap();
    }
    let counted = sizes.0.lock().unwrap().clone();
    let expected = [
        ("PUT sent", 2),
        ("PUT received", 12),
        ("GET sent", 0),
        ("GET received", 12),
        ("GET sent", 0),
        ("GET received", 12),
    ];
    assert_eq!(counted, expected.map(|(what, bytes)| (what.to_owned(), bytes)));
}

#[tokio::test]
async fn an_unreadable_answer_to_a_write_counts_as_lost() {
    let error = Script::answering(201, &"<html>").api().create(&PODS, None, Payload::raw("{}")).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Decode(_)) && error.response_lost() && error.deadline().is_some());
}

#[tokio::test(start_paused = true)]
async fn identities_have_buckets_of_their_own_that_delay_before_the_time_limit_counts() {
    let script = Script::answering(200, &"{}");
    let builder = script.builder(Limits { qps: 0.25, burst: 1 });
    let start = Instant::now();
    let put = async |client: ApiClient| client.put(&PODS, &web(), Subresource::None, Payload::raw("{}")).await;
    put(builder.client_for("a")).await.unwrap();
    put(builder.client_for("b")).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    put(builder.client_for("a")).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(4), "the same bucket as before");
}

#[tokio::test(start_paused = true)]
async fn a_kube_client_of_an_identity_is_signed_and_limited_except_for_watches() {
    let script = Script::answering(200, &"{}");
    let client = script.builder(Limits { qps: 1.0, burst: 1 }).kube_client_for("shared-informers");
    let start = Instant::now();
    for uri in ["/api/v1/pods", "/api/v1/pods?watch=true", "/api/v1/pods?watch=true"] {
        client.send(Request::get(uri).body(Body::empty()).unwrap()).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    client.send(Request::get("/api/v1/nodes").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    assert!(script.log.lock().unwrap().iter().all(|sent| sent.user_agent.ends_with("/shared-informers")));
}
