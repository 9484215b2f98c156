//! What the audit log of the API server says of the writes of managers, and of the lease. Pure.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The users whose writes are audited.
pub(super) const USERS: [&str; 2] = ["manager-1", "manager-2"];

/// The policy: every write of a manager, and what it wrote into the lease.
pub(super) fn policy() -> String {
    let rule = |level: &str, resources: &Value| {
        serde_json::json!({
            "level": level, "users": USERS, "resources": resources,
            "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        })
    };
    let leases = serde_json::json!([{ "group": "coordination.k8s.io", "resources": ["leases"] }]);
    let everything = serde_json::json!([]);
    let policy = serde_json::json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "rules": [rule("Request", &leases), rule("Metadata", &everything), { "level": "None" }],
    });
    policy.to_string()
}

/// A write of a manager that the API server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Write {
    /// The user of the manager.
    pub(super) user: String,
    pub(super) verb: String,
    pub(super) resource: String,
    /// The name of the object, or what it begins with.
    pub(super) name: String,
    /// When the API server received it.
    pub(super) received: Timestamp,
    /// When it had answered.
    pub(super) answered: Timestamp,
    /// Of a write of the lease: the new holder, empty where the lease is released.
    pub(super) holder: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_object: Option<Value>,
    #[serde(rename = "requestURI")]
    request_uri: String,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Debug, Deserialize)]
struct User {
    username: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    name: String,
}

#[derive(Debug, Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

/// The accepted writes in a log, by the time at which they were received. A last line that is being written is left out.
pub(super) fn writes(log: &str) -> Result<Vec<Write>> {
    let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let mut writes = Vec::new();
    for line in whole.lines() {
        let event: Event = serde_json::from_str(line).with_context(|| format!("not an audit event: {line}"))?;
        let code = event.response_status.and_then(|status| status.code).unwrap_or(0);
        if !(200..300).contains(&code) || event.request_uri.contains("dryRun=") {
            continue;
        }
        let object = event.object_ref.unwrap_or_default();
        let is_lease = object.resource == "leases";
        let holder =
            |body: &Value| body.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or("").to_owned();
        writes.push(Write {
            user: event.user.username,
            verb: event.verb,
            resource: object.resource,
            name: object.name,
            received: event.request_received_timestamp,
            answered: event.stage_timestamp,
            holder: if is_lease { event.request_object.as_ref().map(holder) } else { None },
        });
    }
    writes.sort_by_key(|write| write.received);
    Ok(writes)
}

/// A change of the holder of the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// The user that holds the lease from now on; `None` where it was released.
    pub(super) user: Option<String>,
    pub(super) received: Timestamp,
    pub(super) answered: Timestamp,
}

/// The history of the lease.
pub(super) fn history(writes: &[Write]) -> Vec<Change> {
    let mut history: Vec<Change> = Vec::new();
    let mut of_lease: Vec<&Write> = writes.iter().filter(|write| write.holder.is_some()).collect();
    of_lease.sort_by_key(|write| write.answered);
    for write in of_lease {
        let is_free = write.holder.as_deref() == Some("");
        let user = (!is_free).then(|| write.user.clone());
        if history.last().map(|last| &last.user) != Some(&user) {
            history.push(Change { user, received: write.received, answered: write.answered });
        }
    }
    history
}

/// The writes of managers that did not hold the lease: after another had acquired it or after its own release, and before
/// its own acquisition.
///
/// A write that is received while an acquisition is being answered may be that of either.
pub(super) fn foreign<'a>(writes: &'a [Write], history: &[Change]) -> Vec<&'a Write> {
    let acts = |write: &&Write| write.holder.is_none() && write.resource != "events";
    let may = |write: &Write| {
        let before = history.iter().rev().find(|change| change.answered < write.received);
        let holds = |change: &Change| change.user.as_deref() == Some(write.user.as_str());
        let mut meanwhile = history.iter().filter(|it| it.received <= write.received && write.received <= it.answered);
        before.is_some_and(holds) || meanwhile.any(holds)
    };
    writes.iter().filter(acts).filter(|write| !may(write)).collect()
}

/// How many accepted writes each user made, leases and events apart.
pub(super) fn counts(writes: &[Write]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for write in writes.iter().filter(|write| write.holder.is_none() && write.resource != "events") {
        *counts.entry(write.user.as_str()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, millis: i64) -> Timestamp {
        Timestamp::from_millisecond(second * 1000 + millis).expect("it is a time")
    }

    fn line(user: &str, resource: &str, second: i64, holder: Option<&str>, code: u16) -> String {
        let spec = holder.map(|holder| serde_json::json!({ "spec": { "holderIdentity": holder } }));
        let event = serde_json::json!({
            "verb": "update", "user": { "username": user }, "objectRef": { "resource": resource, "name": "x" },
            "responseStatus": { "code": code }, "requestObject": spec, "requestURI": "/apis",
            "requestReceivedTimestamp": at(second, 0), "stageTimestamp": at(second, 10),
        });
        format!("{event}\n")
    }

    #[test]
    fn a_write_after_another_has_acquired_the_lease_is_foreign() {
        let log = [
            line("a", "pods", 1, None, 201),
            line("a", "leases", 2, Some("a_1"), 200),
            line("a", "pods", 3, None, 201),
            line("b", "pods", 4, None, 409),
            line("b", "leases", 5, Some("b_1"), 200),
            line("a", "events", 6, None, 201),
            line("a", "pods", 7, None, 200),
            line("b", "pods", 8, None, 200),
            line("b", "leases", 9, Some(""), 200),
            line("b", "pods", 10, None, 200),
            "{\"verb\":".to_owned(),
        ];
        let writes = writes(&log.concat()).expect("the log is whole but for its end");
        let history = history(&writes);
        let users: Vec<_> = history.iter().map(|change| change.user.as_deref()).collect();
        assert_eq!(users, [Some("a"), Some("b"), None]);
        let foreign: Vec<_> = foreign(&writes, &history).iter().map(|write| write.received.as_second()).collect();
        assert_eq!(foreign, [1, 7, 10]);
        assert_eq!(counts(&writes), BTreeMap::from([("a", 3), ("b", 2)]));
    }
}
