//! The API as a tower service: the thin shell around [`crate::server`].

pub(crate) mod exchange;
pub(crate) mod log;
pub(crate) mod shared;
pub(crate) mod stream;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

use http::{HeaderMap, HeaderValue, Method, Response, header};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use jiff::Timestamp;
use serde_json::Value;

use crate::decode;
use crate::describe::{discovery, document};
use crate::faults::{Effect, Verdict};
use crate::kinds::{Kind, USAGE_GROUP};
use crate::request::{Form, ListOptions, Query, Route, Target, Verb, accepted_form, route};
use crate::server::Sent;
use crate::server::pod_log;
use crate::server::usage;
use crate::server::watch::Watch;
use crate::service::log::Request;
use crate::service::shared::Shared;
use crate::service::stream::WatchStream;
use crate::status::Status;
use crate::store::stored::Stored;
use crate::table::Table;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const ETCD_FAILS: &str =
    "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n[+]informer-sync ok\nreadyz check failed\n";
const NO_IMPERSONATION: &str =
    "the sandbox knows one user, who may do everything: there is no impersonation (see `sandbox --differences`)";
/// Maximum size of a request body.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// Maximum wait for a future resource version.
const VERSION_PATIENCE: Duration = Duration::from_secs(3);
/// Minimum duration of watches without a timeout; the maximum is twice that.
const WATCH_SECONDS: u64 = 1800;

/// The connection broke, before or after the request took effect; the client cannot know which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection lost")]
pub struct ConnectionLost;

/// The body of a response.
pub type ResponseBody = UnsyncBoxBody<Bytes, ConnectionLost>;

/// The API as a tower service over requests with any body; cloning is cheap.
#[derive(Clone)]
pub struct SandboxService {
    shared: Arc<Shared>,
}

impl SandboxService {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl std::fmt::Debug for SandboxService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxService").finish_non_exhaustive()
    }
}

impl<B> tower::Service<http::Request<B>> for SandboxService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = ConnectionLost;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        Box::pin(serve(self.shared.clone(), request))
    }
}

async fn serve<B>(shared: Arc<Shared>, request: http::Request<B>) -> Result<Response<ResponseBody>, ConnectionLost>
where
    B: Body + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    let (parts, body) = request.into_parts();
    // A too large Content-Length is rejected before the body is read.
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Ok(status_response(&Status::too_large(BODY_LIMIT)));
    }
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            return Ok(status_response(&Status::too_large(BODY_LIMIT)));
        }
        // A client that aborts its request reads no response.
        Err(_) => return Err(ConnectionLost),
    };
    let (number, route, verdict) = receive(&shared, &parts, &body);
    let answered = perform(&shared, &parts, &body, route, verdict).await;
    if let Ok(response) = &answered {
        shared.lock().log.answer(number, response.status().as_u16());
    }
    answered
}

type Routed = Result<Route, Status>;

/// Logs a request, routes it, and determines its faults.
fn receive(shared: &Shared, parts: &http::request::Parts, body: &Bytes) -> (u64, Routed, Verdict) {
    let at = shared.now().elapsed;
    // Parsed before the lock is taken: the body may be large.
    let object: Option<Value> = (parts.method == Method::POST).then(|| serde_json::from_slice(body).ok()).flatten();
    let mut state = shared.lock();
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let impersonates = parts.headers.keys().any(|name| name.as_str().starts_with("impersonate-"));
    let route = if impersonates {
        Err(Status::not_implemented(NO_IMPERSONATION))
    } else {
        route(&parts.method, path, query, &state.server.kinds)
    };
    let mut target = None;
    let mut verdict = Verdict::default();
    if let Ok(Route::Resource(routed, _)) = &route {
        let mut named = routed.clone();
        if named.verb == Verb::Create && named.name.is_none() {
            let name = object.as_ref().map(crate::json::name).unwrap_or_default();
            named.name = (!name.is_empty()).then(|| name.to_owned());
        }
        verdict = state.faults.judge(&named);
        target = Some(named);
    }
    let other_path = if let Ok(Route::Other(path)) = &route { Some(path.as_slice()) } else { None };
    verdict.effect = state.faults.outage_effect(other_path).or(verdict.effect);
    let number = state.log.begin(|| Request {
        at,
        method: parts.method.to_string(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: parts.headers.clone(),
        body: String::from_utf8_lossy(body).into_owned(),
        target,
        status: None,
    });
    (number, route, verdict)
}

async fn perform(
    shared: &Arc<Shared>,
    parts: &http::request::Parts,
    body: &Bytes,
    route: Routed,
    verdict: Verdict,
) -> Result<Response<ResponseBody>, ConnectionLost> {
    if !verdict.delay.is_zero() {
        tokio::time::sleep(verdict.delay).await;
    }
    match verdict.effect {
        None | Some(Effect::LoseAnswer) => {}
        Some(Effect::Fail(status)) => return Ok(status_response(&status)),
        Some(Effect::Disconnect) => return Err(ConnectionLost),
        Some(Effect::Stall) => std::future::pending().await,
        Some(Effect::NotReady) => return Ok(not_ready()),
    }
    if let Ok(Route::Resource(target, query)) = &route
        && let Some(version) = awaited_version(target, query)
    {
        wait_for_version(shared, version).await;
    }
    let answered = match find(shared, parts, body, route) {
        Ok(Found::Response(response)) => Ok(response),
        Ok(Found::Watch(watch, timeout)) => {
            let stream = WatchStream::open(shared, &mut shared.lock(), *watch, timeout);
            Ok(answer(200, JSON, StreamBody::new(stream.frames()).boxed_unsync()))
        }
        Ok(Found::Silence) => std::future::pending().await,
        Err(status) => Err(status),
    };
    if verdict.effect == Some(Effect::LoseAnswer) {
        return Err(ConnectionLost);
    }
    Ok(answered.unwrap_or_else(|status| status_response(&status)))
}

/// The response to a request, before it is sent.
enum Found {
    Response(Response<ResponseBody>),
    /// A watch, and the time after which it ends.
    Watch(Box<Watch>, Duration),
    /// The handler of the path never responds.
    Silence,
}

/// Performs a request. It waits for nothing: a version that is not reached is an error.
fn find(shared: &Shared, parts: &http::request::Parts, body: &Bytes, route: Routed) -> Result<Found, Status> {
    match route? {
        Route::Other(path) => match aggregated(shared, parts) {
            Some(found) => found,
            None => other(shared, parts, &path).map(Found::Response),
        },
        Route::Resource(target, query) if target.verb.is_write() => {
            write(shared, &parts.headers, body, &target, &query).map(Found::Response)
        }
        Route::Resource(target, query) => read(shared, &parts.headers, &target, &query),
    }
}

/// Returns the version that a read waits for.
fn awaited_version(target: &Target, query: &Query) -> Option<u64> {
    match target.verb {
        Verb::Get => query.version().ok().flatten(),
        Verb::List => ListOptions::parse(query, false).ok()?.version,
        Verb::Watch => {
            let options = ListOptions::parse(query, true).ok()?;
            options.version.filter(|_| options.initial_events == Some(true))
        }
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => None,
    }
}

fn write(
    shared: &Shared,
    headers: &HeaderMap,
    body: &Bytes,
    target: &Target,
    query: &Query,
) -> Result<Response<ResponseBody>, Status> {
    let form = accepted_form(headers, query, target)?;
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let user_agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let now = shared.now();
    let mut warnings = Vec::new();
    let sent = Sent { content_type, user_agent, body };
    // Deleting the last object of a kind may remove the kind.
    let kind = shared.lock().server.kind(&target.resource)?.clone();
    let written = shared.change(|state| state.server.write(target, query, sent, now, &mut warnings));
    let mut response = match written {
        Ok((code, object)) => {
            object_answer(code, &Stored::new(&object), form, &Printing { kind, target, now: now.time })
        }
        Err(status) => status_response(&status),
    };
    decode::write_warnings(response.headers_mut(), &warnings);
    Ok(response)
}

fn read(shared: &Shared, headers: &HeaderMap, target: &Target, query: &Query) -> Result<Found, Status> {
    if target.subresource.as_deref() == Some("log") {
        let pod = shared.lock().server.get_object(target)?.clone();
        let log = pod_log::of(&pod.value(), query.get("container"), query.flag("previous").unwrap_or(false))?;
        return Ok(Found::Response(answer(200, TEXT, full(log.into_bytes()))));
    }
    if target.resource.group == USAGE_GROUP {
        let now = shared.now().time;
        let object = usage::read(&shared.lock().server, target, query, now)?;
        return Ok(Found::Response(json_answer(200, object.to_string().into_bytes())));
    }
    let form = accepted_form(headers, query, target)?;
    shared.expire();
    if target.verb == Verb::Get {
        let requested = query.version().map_err(|why| Status::new(500, "", why))?.unwrap_or(0);
        let current = shared.lock().server.store.version();
        if requested > current {
            return Err(Status::version_too_large(requested, current));
        }
        let object = shared.lock().server.get(target)?;
        let kind = shared.lock().server.kind(&target.resource)?.clone();
        let printing = Printing { kind, target, now: shared.now().time };
        return Ok(Found::Response(object_answer(200, &object, form, &printing)));
    }
    let watches = target.verb == Verb::Watch;
    let options = ListOptions::parse(query, watches)?;
    let mut state = shared.lock();
    let frozen = state.faults.stale(&target.resource);
    if watches {
        let watch = Watch::open(&state.server, target, &options, form, frozen)?;
        let timeout = options
            .timeout
            .unwrap_or_else(|| Duration::from_secs(WATCH_SECONDS + state.server.random.below(WATCH_SECONDS)));
        return Ok(Found::Watch(Box::new(watch), timeout));
    }
    let collection = state.server.collection(target, &options, frozen)?;
    let kind = state.server.kind(&target.resource)?.clone();
    drop(state);
    let pieces = collection.select().into_pieces(&kind, form, shared.now().time);
    let frames = pieces.map(|piece| Ok(Frame::data(Bytes::from(piece))));
    let body = StreamBody::new(futures::stream::iter(frames)).boxed_unsync();
    Ok(Found::Response(answer(200, JSON, body)))
}

/// Waits until a resource version is reached, for as long as upstream.
async fn wait_for_version(shared: &Shared, version: u64) {
    let mut notifier = shared.subscribe();
    let arrival = async { while shared.lock().server.store.version() < version && notifier.changed().await.is_ok() {} };
    // The version check of the caller handles a timeout.
    drop(tokio::time::timeout(VERSION_PATIENCE, arrival).await);
}

/// The response of the handler of a path, if it has one.
fn aggregated(shared: &Shared, parts: &http::request::Parts) -> Option<Result<Found, Status>> {
    let path = parts.uri.path();
    let handler = {
        let state = shared.lock();
        let (_, handler) = state.server.aggregated.iter().rfind(|(prefix, _)| path.starts_with(prefix))?;
        Arc::clone(handler)
    };
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    Some(match handler(path, &query) {
        Some(answered) => answered.map(|object| Found::Response(json_answer(200, object.to_string().into_bytes()))),
        None => Ok(Found::Silence),
    })
}

fn other(shared: &Shared, parts: &http::request::Parts, path: &[String]) -> Result<Response<ResponseBody>, Status> {
    // Cloned, so that rendering happens outside of the lock.
    let kinds = shared.lock().server.kinds.clone();
    let header = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let requested = document::DiscoveryRequest {
        method: &parts.method,
        path: &path,
        query: &Query::parse(parts.uri.query().unwrap_or_default()),
        accept: header(header::ACCEPT),
        if_none_match: header(header::IF_NONE_MATCH),
        host: parts.uri.authority().map_or_else(|| header(header::HOST), http::uri::Authority::as_str),
    };
    let document::DiscoveryDocument { code, content_type, headers, body } = discovery::answer(&kinds, &requested)?;
    let mut response = answer(code, content_type, full(body));
    response.headers_mut().extend(headers);
    Ok(response)
}

/// The context for printing an object as a table.
struct Printing<'a> {
    kind: Arc<Kind>,
    target: &'a Target,
    now: Timestamp,
}

fn object_answer(code: u16, object: &Stored, form: Form, printing: &Printing<'_>) -> Response<ResponseBody> {
    let is_status = object.text_at(&["kind"]) == "Status";
    let text = match form {
        Form::MetadataOnly if !is_status => object.metadata_only(),
        Form::Table { include } if !is_status => {
            let subresource = printing.target.subresource.as_deref();
            let table = Table::of_object(&printing.kind, subresource, object, include, printing.now);
            serde_json::to_string(&table).expect("a table of JSON is JSON")
        }
        Form::MetadataOnly | Form::Table { .. } | Form::Whole => object.text().to_owned(),
    };
    json_answer(code, text.into_bytes())
}

/// Builds the response for a [`Status`].
pub fn status_response(status: &Status) -> Response<ResponseBody> {
    let mut response = json_answer(status.code, status.to_json().to_string().into_bytes());
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

fn not_ready() -> Response<ResponseBody> {
    answer(500, TEXT, full(ETCD_FAILS.into()))
}

fn json_answer(code: u16, body: Vec<u8>) -> Response<ResponseBody> {
    answer(code, JSON, full(body))
}

fn full(body: Vec<u8>) -> ResponseBody {
    Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync()
}

fn answer(code: u16, content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
