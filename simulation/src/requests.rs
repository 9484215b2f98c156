//! Requests of a process on their way to the API server, and the responses on their way back.

use std::ops::Range;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use kcm_sandbox_apiserver::{ObjectKey, Resource, Status, Verb};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::gate::{Reply, Waiting};
use crate::history::{Author, Seen};
use crate::holds::Hold;
use crate::schedule::{Moment, Until, What};

/// The kind of an event, as far as the perturbations that are legal depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nature {
    /// A write that carries the resource version of its object, so that it may meet a conflict.
    GuardedWrite,
    /// A write that creates an object.
    Creation,
    /// A step of a kubelet instead of which the pod can fail.
    PodStep,
    /// An event that is none of these.
    Other,
}

/// A perturbation of a schedule, by its index.
#[derive(Debug, Clone)]
pub(crate) struct Deviation {
    pub(crate) index: usize,
    pub(crate) what: What,
}

/// A request that has not reached the API server, with the perturbations of its anchor that are still to come.
pub(crate) struct Pending {
    pub(crate) waiting: Waiting,
    pub(crate) deviations: Vec<Deviation>,
    pub(crate) hold: Option<Hold>,
}

/// A request of a process that has died since, which has not reached the API server.
pub(crate) struct Landing {
    pub(crate) waiting: Waiting,
    pub(crate) author: Author,
    /// The caches of the process when its reconcile began.
    pub(crate) seen: Option<Seen>,
    pub(crate) hold: Option<Hold>,
}

/// A response that has not reached the process.
pub(crate) struct Answer {
    /// The loop and key that wait for it.
    pub(crate) actor: String,
    pub(crate) reply: oneshot::Sender<Reply>,
    pub(crate) response: Reply,
    pub(crate) text: String,
    /// The changes of the request, in the history.
    pub(crate) changes: Range<usize>,
    /// The response tells the outcome of the request.
    pub(crate) is_truthful: bool,
    pub(crate) hold: Option<Hold>,
}

/// Removes the first perturbation for which `choose` returns a value.
pub(crate) fn take<T>(deviations: &mut Vec<Deviation>, choose: impl Fn(&What) -> Option<T>) -> Option<(usize, T)> {
    let at = deviations.iter().position(|deviation| choose(&deviation.what).is_some())?;
    let Deviation { index, what } = deviations.remove(at);
    choose(&what).map(|chosen| (index, chosen))
}

pub(crate) const fn holds_request(what: &What) -> Option<Until> {
    if let What::HoldRequest(until) = what { Some(*until) } else { None }
}

pub(crate) const fn holds_response(what: &What) -> Option<Until> {
    if let What::HoldResponse(until) = what { Some(*until) } else { None }
}

pub(crate) fn fails(what: &What, at: Moment) -> Option<u16> {
    if let What::Fail { moment, code } = what { (*moment == at).then_some(*code) } else { None }
}

/// Returns the kind of a request.
pub(crate) fn nature_of(waiting: &Waiting) -> Nature {
    let request = &waiting.request;
    let is_of_object = Target::of(request.uri()).is_some_and(|target| target.subresource.is_none());
    if *request.method() == Method::POST && is_of_object {
        return Nature::Creation;
    }
    if ![Method::PUT, Method::PATCH].contains(request.method()) {
        return Nature::Other;
    }
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    let has_version = body["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty());
    if has_version { Nature::GuardedWrite } else { Nature::Other }
}

/// Adds a label to the object of a request, as an admission webhook does. Returns `false` if it has no object.
pub(crate) fn mutate(request: &mut Request<Bytes>) -> bool {
    let Ok(mut body) = serde_json::from_slice::<Value>(request.body()) else { return false };
    if !body["metadata"].is_object() {
        return false;
    }
    body["metadata"]["labels"]["example.com/webhook"] = "mutated".into();
    *request.body_mut() = Bytes::from(body.to_string());
    true
}

/// Returns the verb of a request.
pub(crate) fn verb_of(method: &Method) -> Verb {
    match method.as_str() {
        "POST" => Verb::Create,
        "PUT" => Verb::Update,
        "PATCH" => Verb::Patch,
        "DELETE" => Verb::Delete,
        _ => Verb::Get,
    }
}

/// Returns the response of a server that fails a request.
pub(crate) fn failure(code: u16) -> Response<Bytes> {
    let reason = match code {
        400 => "BadRequest",
        403 => "Forbidden",
        409 => "Conflict",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let message = match code {
        400 | 403 => "admission webhook \"simulation.example.com\" denied the request",
        _ => "the simulation fails this request",
    };
    let status = Status::new(code, reason, message.to_owned()).to_json();
    let mut response = Response::new(Bytes::from(status.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// The object of a request, as its path names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) subresource: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Parses a path such as `/apis/apps/v1/namespaces/shop/replicasets/web/status`.
    pub(crate) fn of(uri: &'a Uri) -> Option<Self> {
        let mut segments = uri.path().split('/').filter(|segment| !segment.is_empty());
        let group = if segments.next()? == "api" { "" } else { segments.next()? };
        segments.next()?;
        let segments: Vec<&str> = segments.collect();
        let (namespace, rest) = match segments[..] {
            ["namespaces", _, "status" | "finalize"] => (None, &segments[..]),
            ["namespaces", namespace, _, ..] => (Some(namespace), &segments[2..]),
            _ => (None, &segments[..]),
        };
        let (plural, rest) = rest.split_first()?;
        Some(Self { group, plural, namespace, name: rest.first().copied(), subresource: rest.get(1).copied() })
    }

    pub(crate) fn is_of(&self, resource: &Resource) -> bool {
        self.group == resource.group && self.plural == resource.plural
    }

    /// Returns the key of the object. `None` for a request to a collection.
    pub(crate) fn key(&self) -> Option<ObjectKey> {
        let name = self.name?;
        Some(match self.namespace {
            Some(namespace) => ObjectKey::namespaced(namespace, name),
            None => ObjectKey::cluster_scoped(name),
        })
    }
}

/// Returns the subresource of a request for an object of a resource.
pub(crate) fn subresource(uri: &Uri, resource: &Resource) -> Option<String> {
    let target = Target::of(uri).filter(|target| target.is_of(resource))?;
    target.subresource.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use kcm_sandbox_apiserver::{NAMESPACES, PODS, REPLICA_SETS};

    use super::*;

    #[test]
    fn a_path_names_its_subresource() {
        for (path, resource, expected) in [
            ("/api/v1/namespaces/shop/pods/web", &PODS, None),
            ("/api/v1/namespaces/shop/pods/web/status?x=y", &PODS, Some("status")),
            ("/api/v1/namespaces/pods/pods/pods/eviction", &PODS, Some("eviction")),
            ("/apis/apps/v1/namespaces/shop/replicasets/web/scale", &REPLICA_SETS, Some("scale")),
            ("/api/v1/namespaces/shop", &NAMESPACES, None),
            ("/api/v1/namespaces/shop/finalize", &NAMESPACES, Some("finalize")),
            ("/api/v1/namespaces/shop/pods", &PODS, None),
        ] {
            let found = subresource(&path.parse().unwrap(), resource);
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_perturbation_is_taken_once_and_the_others_stay() {
        let deviations = [What::LoseResponse, What::HoldRequest(Until::Rest), What::HoldRequest(Until::Writes(1))];
        let mut deviations: Vec<_> =
            deviations.into_iter().enumerate().map(|(index, what)| Deviation { index, what }).collect();
        assert_eq!(take(&mut deviations, holds_request), Some((1, Until::Rest)));
        assert_eq!(take(&mut deviations, holds_request), Some((2, Until::Writes(1))));
        assert_eq!((take(&mut deviations, holds_request), deviations.len()), (None, 1));
    }
}
