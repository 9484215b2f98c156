//! The API as a tower service: the thin shell around [`crate::server`].

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use serde_json::Value;

use crate::discovery;
use crate::faults::{Effect, Verdict};
use crate::log::Request;
use crate::request::{Form, ListOptions, Query, Route, Target, Verb, accepted_form, route};
use crate::shared::Shared;
use crate::status::Status;
use crate::stream::WatchStream;
use crate::watch::Watch;

/// The largest body that is read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// How long a request waits for a version that is yet to come.
const VERSION_PATIENCE: Duration = Duration::from_secs(3);
/// Watches without a time-out last this long, and up to twice that.
const WATCH_SECONDS: u64 = 1800;

/// The connection to the API server broke: before the request took effect, or after, the client cannot know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("connection lost")]
pub struct ConnectionLost;

/// The body of an answer.
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
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {BODY_LIMIT}");
            return Ok(failure(&Status::new(413, "RequestEntityTooLarge", message)));
        }
        // A client that breaks off its request is not there for an answer.
        Err(_) => return Err(ConnectionLost),
    };
    let (number, route, verdict) = receive(&shared, &parts, &body);
    let answered = perform(&shared, &parts.headers, &body, route, verdict).await;
    if let Ok(response) = &answered {
        shared.lock().log.answer(number, response.status().as_u16());
    }
    answered
}

type Routed = Result<Route, Status>;

/// Notes a request and finds out what it is and what befalls it.
fn receive(shared: &Shared, parts: &http::request::Parts, body: &Bytes) -> (u64, Routed, Verdict) {
    let at = shared.now().elapsed;
    let mut state = shared.lock();
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let route = route(&parts.method, path, query, &state.server.kinds);
    let mut target = None;
    let mut verdict = Verdict::default();
    if let Ok(Route::Resource(routed, _)) = &route {
        let mut named = routed.clone();
        if named.verb == Verb::Create && named.name.is_none() {
            let object: Option<Value> = serde_json::from_slice(body).ok();
            let name = object.as_ref().map(crate::object::name).unwrap_or_default();
            named.name = (!name.is_empty()).then(|| name.to_owned());
        }
        verdict = state.faults.judge(&named);
        target = Some(named);
    }
    let number = state.log.begin(Request {
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
    headers: &HeaderMap,
    body: &Bytes,
    route: Routed,
    verdict: Verdict,
) -> Result<Response<ResponseBody>, ConnectionLost> {
    if !verdict.delay.is_zero() {
        tokio::time::sleep(verdict.delay).await;
    }
    match verdict.effect {
        None | Some(Effect::LoseAnswer) => {}
        Some(Effect::Fail(status)) => return Ok(failure(&status)),
        Some(Effect::Disconnect) => return Err(ConnectionLost),
        Some(Effect::Stall) => std::future::pending().await,
    }
    let answered = match route {
        Err(status) => Err(status),
        Ok(Route::Other(path)) => Ok(other(shared, headers, &path)),
        Ok(Route::Resource(target, query)) => {
            if target.verb.is_write() {
                write(shared, headers, body, &target, &query)
            } else {
                read(shared, headers, &target, &query).await
            }
        }
    };
    if verdict.effect == Some(Effect::LoseAnswer) {
        return Err(ConnectionLost);
    }
    Ok(answered.unwrap_or_else(|status| failure(&status)))
}

fn write(
    shared: &Shared,
    headers: &HeaderMap,
    body: &Bytes,
    target: &Target,
    query: &Query,
) -> Result<Response<ResponseBody>, Status> {
    let form = accepted_form(headers)?;
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let now = shared.now();
    let (code, object) = shared.change(|state| state.server.write(target, query, content_type, body, now))?;
    Ok(object_answer(code, &object, form))
}

async fn read(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    target: &Target,
    query: &Query,
) -> Result<Response<ResponseBody>, Status> {
    let form = accepted_form(headers)?;
    if target.verb == Verb::Get {
        let object = shared.lock().server.get(target)?;
        return Ok(object_answer(200, &object, form));
    }
    let watches = target.verb == Verb::Watch;
    let options = ListOptions::parse(query, watches)?;
    if !watches || options.initial_events == Some(true) {
        wait_for_version(shared, options.version.unwrap_or(0)).await;
    }
    let mut state = shared.lock();
    let frozen = state.faults.stale(&target.resource);
    if watches {
        let watch = Watch::open(&state.server, target, &options, form, frozen)?;
        let timeout = options
            .timeout
            .unwrap_or_else(|| Duration::from_secs(WATCH_SECONDS + state.server.random.below(WATCH_SECONDS)));
        let stream = WatchStream::open(shared, &mut state, watch, timeout);
        return Ok(answer(200, "application/json", StreamBody::new(stream.frames()).boxed_unsync()));
    }
    let listed = state.server.list(target, &options, frozen)?;
    let kind = state.server.kind(&target.resource)?.clone();
    drop(state);
    Ok(json_answer(200, listed.to_bytes(&kind, form)))
}

/// Waits until a version has come, for as long as upstream does.
async fn wait_for_version(shared: &Shared, version: u64) {
    let mut bell = shared.listen();
    let arrival = async { while shared.lock().server.store.version() < version && bell.changed().await.is_ok() {} };
    // A time-out is answered by whoever looks at the version next.
    drop(tokio::time::timeout(VERSION_PATIENCE, arrival).await);
}

fn other(shared: &Shared, headers: &HeaderMap, path: &[String]) -> Response<ResponseBody> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    match discovery::answer(&shared.lock().server.kinds, &parts, accept) {
        Some(discovery::Answer::Json(content_type, json)) => {
            answer(200, content_type, full(json.to_string().into_bytes()))
        }
        Some(discovery::Answer::Text(text)) => answer(200, "text/plain; charset=utf-8", full(text.into())),
        Some(discovery::Answer::NotServed) => failure(&Status::not_served()),
        None => page_not_found(),
    }
}

fn page_not_found() -> Response<ResponseBody> {
    answer(404, "text/plain; charset=utf-8", full(b"404 page not found\n".to_vec()))
}

fn object_answer(code: u16, object: &Value, form: Form) -> Response<ResponseBody> {
    let is_status = object.get("kind").is_some_and(|kind| kind == "Status");
    let text = match form {
        Form::MetadataOnly if !is_status => crate::object::metadata_only(object).to_string(),
        Form::MetadataOnly | Form::Whole => object.to_string(),
    };
    json_answer(code, text.into_bytes())
}

fn failure(status: &Status) -> Response<ResponseBody> {
    let mut response = json_answer(status.code, status.to_json().to_string().into_bytes());
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

fn json_answer(code: u16, body: Vec<u8>) -> Response<ResponseBody> {
    answer(code, "application/json", full(body))
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
