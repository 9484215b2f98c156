//! The audit log of the API server: what controller managers asked for, and as whom.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The user of a controller manager, to which Kubernetes binds the roles of one.
pub const MANAGER: &str = "system:kube-controller-manager";

/// Records the requests of controller managers and of the service accounts of controllers, without bodies.
pub const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived", "ResponseStarted"],
  "rules": [
    { "level": "Metadata", "users": ["system:kube-controller-manager"] },
    { "level": "Metadata", "userGroups": ["system:serviceaccounts:kube-system"] },
    { "level": "None" }
  ]
}
"#;

/// A request as the API server recorded it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditedRequest {
    /// The user.
    pub user: String,
    /// The header `User-Agent`.
    pub user_agent: String,
    /// The verb, as authorization sees it.
    pub verb: String,
    /// The resource and its subresource, as in `pods/status`, or a path.
    pub resource: String,
    /// The namespace of the object; empty without one.
    pub namespace: String,
    /// The name of the object; empty without one.
    pub name: String,
    /// Whether authorization refused it.
    pub is_forbidden: bool,
}

impl AuditedRequest {
    /// Whether it may change an object.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

impl fmt::Display for AuditedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, verb, resource, namespace, .. } = self;
        write!(f, "{user} may not {verb} {resource}")?;
        if namespace.is_empty() { Ok(()) } else { write!(f, " in {namespace}") }
    }
}

/// Reads the requests of an audit log; a last line without its end is still being written.
///
/// # Errors
///
/// If the file cannot be read, or a line is not an audit event.
pub fn read(log: &Path) -> Result<Vec<AuditedRequest>> {
    let text = std::fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    parse(&text).with_context(|| format!("cannot read {}", log.display()))
}

/// The requests that authorization refused, each with how often.
///
/// One that was allowed at another time lacks no permission: an API server that starts forbids everything until it has
/// read its roles.
pub fn forbidden(requests: &[AuditedRequest]) -> BTreeMap<String, usize> {
    let request = |it: &AuditedRequest| AuditedRequest { is_forbidden: false, ..it.clone() };
    let allowed: BTreeSet<AuditedRequest> = requests.iter().filter(|it| !it.is_forbidden).map(request).collect();
    let mut counts = BTreeMap::new();
    for refused in requests.iter().filter(|it| it.is_forbidden && !allowed.contains(&request(it))) {
        *counts.entry(refused.to_string()).or_default() += 1;
    }
    counts
}

fn parse(text: &str) -> Result<Vec<AuditedRequest>> {
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines
        .map(|line| {
            let event: Event = serde_json::from_str(line).with_context(|| format!("not an audit event: {line}"))?;
            Ok(event.request())
        })
        .collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ObjectRef {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

impl Event {
    fn request(self) -> AuditedRequest {
        let is_forbidden =
            self.annotations.get("authorization.k8s.io/decision").is_some_and(|decision| decision == "forbid");
        let path = self.request_uri.split('?').next().unwrap_or_default().to_owned();
        let (resource, namespace, name) = match self.object_ref {
            Some(ObjectRef { resource, subresource, namespace, name }) if subresource.is_empty() => {
                (resource, namespace, name)
            }
            Some(ObjectRef { resource, subresource, namespace, name }) => {
                (format!("{resource}/{subresource}"), namespace, name)
            }
            None => (path, String::new(), String::new()),
        };
        let Self { verb, user: User { username: user }, user_agent, .. } = self;
        AuditedRequest { user, user_agent, verb, resource, namespace, name, is_forbidden }
    }
}

#[cfg(test)]
mod tests {
    use super::{forbidden, parse};

    const LOG: &str = r#"{"kind":"Event","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a/pods?timeout=30s","verb":"create","user":{"username":"system:serviceaccount:kube-system:replicaset-controller","groups":["system:serviceaccounts"]},"userAgent":"kube-controller-manager/v1 (linux/amd64) kubernetes/unknown/x","objectRef":{"resource":"pods","namespace":"a","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":201},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"kind":"Event","stage":"ResponseComplete","requestURI":"/apis/apps/v1/replicasets/r/status","verb":"update","user":{"username":"u"},"objectRef":{"resource":"replicasets","subresource":"status"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"kind":"Event","stage":"ResponseComplete","requestURI":"/metrics?x=1","verb":"get","user":{"username":"u"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"kind":"Event","stage":"ResponseComplete","requestURI":"/metrics?x=2","verb":"get","user":{"username":"u"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"kind":"Event","stage":"Resp"#;

    #[test]
    fn what_authorization_refused_is_counted() {
        let requests = parse(LOG).expect("these are events");
        assert_eq!(requests.len(), 4, "the last line is not complete");
        let [created, updated, ..] = requests.as_slice() else { panic!("there are four") };
        assert!(created.is_write() && !created.is_forbidden);
        assert_eq!((created.resource.as_str(), created.namespace.as_str()), ("pods", "a"));
        assert_eq!(updated.resource, "replicasets/status");
        let counts: Vec<(String, usize)> = forbidden(&requests).into_iter().collect();
        let expected =
            [("u may not get /metrics".to_owned(), 2), ("u may not update replicasets/status".to_owned(), 1)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn what_is_allowed_at_another_time_lacks_no_permission() {
        let event = |name: &str, decision: &str| {
            format!(
                r#"{{"requestURI":"/x","verb":"delete","user":{{"username":"u"}},"objectRef":{{"resource":"pods","namespace":"a","name":"{name}"}},"annotations":{{"authorization.k8s.io/decision":"{decision}"}}}}"#
            )
        };
        let log = [event("p", "forbid"), event("q", "forbid"), event("p", "allow")].map(|line| line + "\n").concat();
        let counts: Vec<(String, usize)> = forbidden(&parse(&log).expect("these are events")).into_iter().collect();
        assert_eq!(counts, [("u may not delete pods in a".to_owned(), 1)], "only q was never allowed");
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error() {
        assert!(parse("{}\n").is_err());
    }
}
