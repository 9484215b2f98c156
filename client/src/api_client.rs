//! The API client of controllers: writes, gets and live lists.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::uri::InvalidUri;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kcm_api::{ObjectKey, Resource, ResourceVersion, View};
use kcm_informers::{Connection, is_refused_by_authorizer};
use kube::client::Body;
use tokio::time::{Instant, timeout_at};

use super::client_identity::ClientIdentity;
use super::fence::Fence;
use super::request::{
    ApiError, Attempts, Call, Cause, DeleteOptions, Deleted, Head, ListQuery, Page, Patch, Payload, RequestKind,
    ResponseKind, Scale, Subresource, Target, Unversioned, Written, has_name, read_status, retry_after, transport,
};
use super::request_origin::RequestOrigin;
use super::response_wait::ResponseWait;

/// The `timeout` parameter of writes: the time that the API server may take.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How much longer the client waits, for the time on the network: so that the timeout of the server still arrives, and
/// a delayed request is timed out by the server before its outcome is read.
const NETWORK_GRACE: Duration = Duration::from_secs(4);

/// Time for which a response may take, to its last byte.
const RESPONSE_TIMEOUT: Duration = REQUEST_TIMEOUT.saturating_add(NETWORK_GRACE);

/// Largest number of bytes of a response that are read, unless it is a page of a list: objects have less than 2 MiB, and
/// discovery of all groups less than 10 MiB. Aggregated servers, which may be faulty, send responses too.
const LONGEST_RESPONSE: usize = 64 << 20;

/// Largest number of bytes of a page of a list that are read: 500 objects of 0.5 MiB each.
const LONGEST_PAGE: usize = 256 << 20;

const JSON: &str = "application/json";
// A server that cannot reduce objects to their metadata sends whole objects, which decode as well.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// An API client of one identity.
///
/// Cheap to clone. It sends and receives JSON; of responses to writes it decodes only the fields of [`Written`].
///
/// # Guarantees
/// - Each request waits for the rate limiter of the identity, in order, before its time begins to count.
/// - A request whose response is 429 or 5xx with a `Retry-After` in seconds is repeated after that time, up to ten
///   times, through the rate limiter, while the time of the first attempt lasts. The 429 of an eviction is returned: it
///   says that a disruption budget does not allow it.
/// - After [`ApiError::deadline`] a failed write can no longer take effect.
/// - At most 64 MiB of a response are read, and 256 MiB of a page of a list. A longer response is [`Cause::TooLarge`].
///
/// # Upstream
/// client-go repeats requests after the same responses, as often. It does not limit the time unless the caller does.
///
/// # Cancellation
/// A dropped write may or may not have taken effect.
#[derive(Clone)]
pub struct ApiClient {
    client: kube::Client,
    identity: Arc<ClientIdentity>,
    /// The `Accept` header of writes.
    accept_of_writes: &'static str,
    /// Whether writes pass the fence.
    is_fenced: bool,
    /// The reconcile that sends the requests.
    origin: Option<RequestOrigin>,
}

impl ApiClient {
    pub(crate) const fn new(client: kube::Client, identity: Arc<ClientIdentity>) -> Self {
        Self { client, identity, accept_of_writes: JSON, is_fenced: true, origin: None }
    }

    /// The connection that the client sends through.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.identity.connection
    }

    /// The fence that the writes of this identity pass.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.identity.fence
    }

    /// The same client, whose writes return only the metadata of the object.
    ///
    /// Creating 5,000 pods this way takes a sixth less traffic.
    #[must_use]
    pub fn returning_metadata(mut self) -> Self {
        self.accept_of_writes = METADATA;
        self
    }

    /// The same client, whose writes are sent while the fence is closed too: events describe the past work of a
    /// manager, and may come after another manager has taken over.
    #[must_use]
    pub fn unfenced(mut self) -> Self {
        self.is_fenced = false;
        self
    }

    /// Sends `origin` with all later requests, as an [extension](Request::extensions).
    pub fn set_origin(&mut self, origin: RequestOrigin) {
        self.origin = Some(origin);
    }

    /// Creates an object, in a namespace unless the resource is cluster-scoped.
    ///
    /// If the object has only a `generateName`, the server generates the name: if the response is lost, the name is
    /// unknown.
    pub async fn create(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        object: Payload,
    ) -> Result<Written, ApiError> {
        let has_name = has_name(&object);
        self.send_once(Call::create(resource, namespace, object, has_name)).await
    }

    /// Creates a subresource: a token request, a binding.
    ///
    /// Request tokens through this client and not through the framework's `Session`: they change no object, and the token
    /// is in the body of the response.
    pub async fn post(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Subresource,
        object: Payload,
    ) -> Result<Written, ApiError> {
        self.send_once(Call::post(resource, key, subresource, object)).await
    }

    /// Updates an object or a subresource: replaces it by `object`.
    pub async fn put(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Subresource,
        object: Payload,
    ) -> Result<Written, ApiError> {
        self.send_once(Call::put(resource, key, subresource, object)).await
    }

    /// Patches an object or a subresource.
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Subresource,
        patch: Patch,
    ) -> Result<Written, ApiError> {
        self.send_once(Call::patch(resource, key, subresource, patch)).await
    }

    /// Deletes an object. An object that does not exist is no error.
    ///
    /// # Errors
    /// [`ApiError::is_conflict`] if a precondition does not hold.
    pub async fn delete(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let call = Call::delete(resource, key, options);
        self.delete_with(&call, &mut Attempts::of(call.kind)).await
    }

    /// Evicts a pod, as its disruption budgets allow; a pod that does not exist is no error.
    ///
    /// # Errors
    /// [`ApiError::is_too_many_requests`] if a disruption budget does not allow it now, [`ApiError::is_conflict`] if a
    /// precondition does not hold.
    pub async fn evict(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        let call = Call::evict(resource, key, options);
        self.delete_with(&call, &mut Attempts::of(call.kind)).await
    }

    /// Deletes the objects of a namespace, or of all, that match the selectors of `selected`.
    ///
    /// The other fields of `selected` are sent as well. `options` apply to each object.
    pub async fn delete_collection(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selected: &ListQuery,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        let call = Call::delete_collection(resource, namespace, selected, options);
        self.delete_with(&call, &mut Attempts::of(call.kind)).await.map(drop)
    }

    async fn send_once(&self, call: Call<'_>) -> Result<Written, ApiError> {
        self.write(&call, &mut Attempts::of(call.kind)).await
    }

    /// Sends a write, in as many attempts as its responses require.
    pub async fn write(&self, call: &Call<'_>, attempts: &mut Attempts) -> Result<Written, ApiError> {
        self.record(call, attempts);
        let body = self.send_call(call, self.accept_of_writes, attempts).await?;
        let written = Written::read(body, call.target.namespace(), call.target.name()).map_err(|error| {
            // The write has taken effect by now.
            let now = Instant::now();
            attempts.answered(ResponseKind::Undecodable, now);
            ApiError::new(call.target.describe(call.verb), Cause::Decode(error)).with_deadline(Some(now))
        })?;
        attempts.landed(&written.resource_version, Unversioned::Other);
        Ok(written)
    }

    /// Sends a deletion, of one object or of several.
    pub async fn delete_with(&self, call: &Call<'_>, attempts: &mut Attempts) -> Result<Deleted, ApiError> {
        self.record(call, attempts);
        let accept = if call.target.name().is_some() { METADATA } else { METADATA_LIST };
        match self.send_call(call, accept, attempts).await {
            Ok(body) => {
                // A list, and the status of an object that is gone, carry no version of the deletion.
                let version = call.target.name().and_then(|_| Some(Head::of(&body).ok()?.resource_version));
                attempts.landed(&version.unwrap_or_default(), call.target.deleted());
                Ok(Deleted::Accepted)
            }
            Err(error) if error.is_not_found() => {
                attempts.answered(ResponseKind::Success, Instant::now());
                if attempts.was_lost() {
                    attempts.landed(&ResourceVersion::default(), call.target.deleted());
                }
                Ok(Deleted::Gone)
            }
            Err(error) => Err(error),
        }
    }

    /// Records a write that passes the fence. A request for a token changes no object.
    fn record(&self, call: &Call<'_>, attempts: &mut Attempts) {
        if self.is_fenced && call.subresource() != Subresource::TOKEN.path() {
            attempts.record_in(&self.identity.writes, call.target.resource());
        }
    }

    /// Reads one object from the API server.
    pub async fn get<V: View>(&self, resource: &Resource, key: &ObjectKey) -> Result<V, ApiError> {
        let target = Target::object(resource, key, Subresource::None);
        let describe = || target.describe("get");
        let accept = if V::METADATA_ONLY { METADATA } else { JSON };
        let body = self.read(target.path(), accept, LONGEST_RESPONSE, &describe).await?;
        let decoded = std::str::from_utf8(&body)
            .map_err(serde::de::Error::custom)
            .and_then(|json| V::decode(json).map_err(serde::de::Error::custom));
        decoded.map_err(|error| ApiError::new(describe(), Cause::Decode(error)))
    }

    /// Reads one object or a subresource, undecoded.
    pub async fn get_raw(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        subresource: Subresource,
    ) -> Result<Bytes, ApiError> {
        let target = Target::object(resource, key, subresource);
        self.read(target.path(), JSON, LONGEST_RESPONSE, &|| target.describe("get")).await
    }

    /// Reads the scale of an object of any kind that has one.
    pub async fn scale(&self, resource: &Resource, key: &ObjectKey) -> Result<Scale, ApiError> {
        let target = Target::object(resource, key, Subresource::Scale);
        let describe = || target.describe("get");
        let body = self.read(target.path(), JSON, LONGEST_RESPONSE, &describe).await?;
        Scale::read(&body).map_err(|error| ApiError::new(describe(), Cause::Decode(error)))
    }

    /// Updates the scale of an object of any kind that has one.
    ///
    /// # Errors
    /// [`ApiError::is_conflict`] if the uid or resource version in `scale` differs from the object's.
    pub async fn put_scale(&self, resource: &Resource, key: &ObjectKey, scale: &Scale) -> Result<Written, ApiError> {
        self.put(resource, key, Subresource::Scale, scale.payload(key)).await
    }

    /// Reads one page of a list, of one namespace or of all.
    pub async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListQuery,
    ) -> Result<Page, ApiError> {
        let target = Target::collection(resource, namespace);
        let describe = || target.describe("list");
        let path = format!("{}{}", target.path(), options.query().as_str());
        let accept = if options.metadata_only { METADATA_LIST } else { JSON };
        let body = self.read(path, accept, LONGEST_PAGE, &describe).await?;
        Page::read(&body).map_err(|error| ApiError::new(describe(), Cause::Decode(error)))
    }

    /// Reads a path that is not an object, such as `/healthz` or `/apis`.
    pub async fn get_path(&self, path: &str, accept: &'static str) -> Result<Bytes, ApiError> {
        self.get_path_within(path, accept, LONGEST_RESPONSE).await
    }

    /// Reads a path of a server that is not trusted, such as an aggregated API: a response of more than `limit` bytes,
    /// instead of 64 MiB, is an error, and the bytes read so far are dropped.
    ///
    /// # Errors
    /// [`Cause::TooLarge`], besides the errors of all requests.
    pub async fn get_path_within(&self, path: &str, accept: &'static str, limit: usize) -> Result<Bytes, ApiError> {
        self.read(path.to_owned(), accept, limit, &|| format!("get {path}")).await
    }

    async fn send_call(
        &self,
        call: &Call<'_>,
        accept: &'static str,
        attempts: &mut Attempts,
    ) -> Result<Bytes, ApiError> {
        let timeout = call.has_timeout.then(|| format!("{}s", REQUEST_TIMEOUT.as_secs()));
        let query = call.query.clone().optional("timeout", timeout.as_deref());
        let path = format!("{}{}", call.target.path(), query.as_str());
        let body = Some((call.content_type, &call.body));
        let describe = || call.target.describe(call.verb);
        let limit = LONGEST_RESPONSE;
        let sent = Sent { method: call.method.clone(), path, accept, body, describe: &describe, limit };
        self.exchange(&sent, attempts).await
    }

    async fn read(
        &self,
        path: String,
        accept: &'static str,
        limit: usize,
        describe: Describe<'_>,
    ) -> Result<Bytes, ApiError> {
        let sent = Sent { method: Method::GET, path, accept, body: None, describe, limit };
        self.exchange(&sent, &mut Attempts::of(RequestKind::Read)).await
    }

    /// Sends a request in as many attempts as its responses require.
    async fn exchange(&self, sent: &Sent<'_>, attempts: &mut Attempts) -> Result<Bytes, ApiError> {
        let error = |cause| ApiError::new((sent.describe)(), cause);
        let mut failed = None;
        loop {
            let request = self.request(sent).map_err(error)?;
            let waiting = self.identity.wait(sent.method.as_str());
            if let (Some(until), Some(error)) = (attempts.until(), failed.take()) {
                if timeout_at(until, waiting).await.is_err() {
                    return Err(error);
                }
            } else {
                waiting.await;
            }
            let begun = Instant::now();
            let deadline = begun + RESPONSE_TIMEOUT;
            let is_repetition = attempts.begin(deadline);
            let (cause, retry_after) = match self.send(request, begun, is_repetition, sent).await {
                Ok((code, _, body)) if code.is_success() => {
                    attempts.answered(ResponseKind::Success, Instant::now());
                    return Ok(body);
                }
                Ok((code, header, body)) => {
                    let status = read_status(code, header.as_deref(), &body);
                    (Cause::Status(Box::new(status)), retry_after(header.as_deref()))
                }
                Err(cause) => (cause, None),
            };
            let next = attempts.answered(ResponseKind::of_failure(&cause, retry_after), Instant::now());
            let may_be_outage = self.identity.failed(&cause);
            let is_forbidden = matches!(&cause, Cause::Status(status) if is_refused_by_authorizer(status));
            let error = error(cause).with_deadline((sent.method != Method::GET).then_some(deadline));
            let error = if attempts.was_lost() { error.after_lost_response() } else { error };
            let is_repeated = if is_forbidden {
                self.wait_until_authorized(deadline).await
            } else {
                self.wait_for_next_attempt(next, attempts, may_be_outage).await
            };
            if !is_repeated {
                return Err(error);
            }
            tracing::debug!(%error, reason = error.message(), "Repeating a request");
            failed = Some(error);
        }
    }

    /// Waits until an API server that forbids everything because it starts serves, until `deadline`; returns whether it
    /// does. Whether a permission is missing instead, a probe tells at once.
    async fn wait_until_authorized(&self, deadline: Instant) -> bool {
        let connection = self.connection();
        connection.is_monitored()
            && !connection.verdict().await
            && timeout_at(deadline, connection.reachable()).await.is_ok()
    }

    /// Waits until the next attempt of a request is sent; returns whether one is.
    ///
    /// A write whose outcome is open waits for the end of an outage, until its deadline. Its repetition shows the
    /// outcome, which otherwise only a live list would after the deadline.
    async fn wait_for_next_attempt(&self, next: Option<Instant>, attempts: &Attempts, may_be_outage: bool) -> bool {
        let connection = self.connection();
        match next {
            Some(next) => tokio::time::sleep_until(next).await,
            None if !may_be_outage || !attempts.may_repeat_after_outage() || connection.verdict().await => {
                return false;
            }
            None => {}
        }
        if connection.is_reachable() {
            return true;
        }
        match attempts.until() {
            Some(until) if attempts.may_repeat_after_outage() => {
                timeout_at(until, connection.reachable()).await.is_ok()
            }
            Some(_) | None => false,
        }
    }

    fn request(&self, sent: &Sent<'_>) -> Result<Request<Body>, Cause> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = sent.method.clone();
        // The path may be invalid, as names of groups come from the server.
        *request.uri_mut() = sent.path.parse().map_err(|error: InvalidUri| Cause::NotSent(error.into()))?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(sent.accept));
        self.identity.sign(request.headers_mut());
        if let Some(origin) = &self.origin {
            request.extensions_mut().insert(origin.clone());
        }
        if let Some((content_type, body)) = sent.body {
            let Payload(body) = body.clone();
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            *request.body_mut() = Body::from(body.map_err(Cause::Encode)?);
        }
        Ok(request)
    }

    async fn send(
        &self,
        mut request: Request<Body>,
        begun: Instant,
        is_repetition: bool,
        sent: &Sent<'_>,
    ) -> Result<(StatusCode, Option<String>, Bytes), Cause> {
        let (method, limit) = (&sent.method, sent.limit);
        let (fence, deadline) = (&self.identity.fence, begun + RESPONSE_TIMEOUT);
        let until = if self.is_fenced {
            fence.mark(&mut request);
            fence.limit(method, deadline).map_err(Cause::Fenced)?
        } else {
            deadline
        };
        let mut wait = ResponseWait::new(fence, begun, deadline, until);
        self.identity.sending(method.as_str(), request.body());
        let started = Instant::now();
        let response = wait
            .next(pin!(self.client.send(request)))
            .await
            .and_then(|response| response.map_err(transport).map_err(|cause| self.broken(method, begun, cause)));
        self.identity.observe(method.as_str(), started, response.as_ref().ok(), is_repetition);
        let (head, body) = response?.into_parts();
        let retry_after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = match wait.next(pin!(Limited::new(body, limit).collect())).await? {
            // The status of a failure says more than its body.
            Err(error) if error.is::<LengthLimitError>() && !head.status.is_success() => Bytes::new(),
            Err(error) if error.is::<LengthLimitError>() => {
                let path = sent.path.split('?').next().unwrap_or_default().into();
                return Err(Cause::TooLarge { path, limit });
            }
            body => body.map_err(|error| self.broken(method, begun, Cause::Transport(error)))?.to_bytes(),
        };
        self.identity.metrics.response_size(method.as_str(), body.len() as u64);
        Ok((head.status, retry_after, body))
    }

    /// Returns the cause of a failure at the connection. The connection of a write is reset when its fence closes, often
    /// before the wait for the response has ended.
    fn broken(&self, method: &Method, begun: Instant, cause: Cause) -> Cause {
        let is_reset = self.is_fenced && *method != Method::GET && self.identity.fence.is_over();
        if is_reset && matches!(cause, Cause::Transport(_)) { Cause::GivenUp(begun.elapsed()) } else { cause }
    }
}

type Describe<'a> = &'a (dyn Fn() -> String + Send + Sync);

/// The parts of a request that each attempt sends.
struct Sent<'a> {
    method: Method,
    path: String,
    accept: &'static str,
    body: Option<(&'static str, &'a Payload)>,
    describe: Describe<'a>,
    /// Largest number of bytes of the response that are read.
    limit: usize,
}
