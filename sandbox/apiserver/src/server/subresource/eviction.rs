//! The `eviction` subresource of pods: deletion unless a disruption budget forbids it. Pure.
//!
//! # Upstream
//! `EvictionREST` of `pkg/registry/core/pod/storage`

use std::sync::Arc;

use kcm_api::{LabelSelector, ObjectKey, Resource, Selector};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::json::labels_of;
use crate::json::{self, at, list, text};
use crate::kinds::Kind;
use crate::request::{Now, Write};
use crate::server::delete::DeleteOptions;
use crate::server::{Server, created};
use crate::status::Status;

const BUDGETS: Resource = Resource::namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget");

/// Maximum number of entries in `disruptedPods`.
const MOST_DISRUPTED: usize = 2000;

impl Server {
    pub(crate) fn evict(&mut self, mut write: Write<'_>, eviction: &Value) -> Result<Arc<Value>, Status> {
        let kind = self.kind(&write.target.resource)?.clone();
        let name = write.target.name.as_deref().unwrap_or_default();
        if json::name(eviction) != name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let mut options = delete_options(eviction, write.dry_run)?;
        write.dry_run |= options.dry_run;
        let pod = self.get_object(write.target)?.value();
        if !is_free(&pod) {
            self.consume_disruption(write, &pod)?;
        }
        options.check(&kind, &pod)?;
        if !write.dry_run {
            let evicted = self.mark(write, &kind, &pod);
            // The condition update above changed the version; a precondition refers to the version before it.
            options.version = options.version.map(|_| json::version(&evicted).to_owned());
        }
        self.delete(write, &options)?;
        Ok(created())
    }

    /// Consumes one disruption of the budget of a pod, if it has one.
    fn consume_disruption(&mut self, write: Write<'_>, pod: &Value) -> Result<(), Status> {
        let namespace = write.target.namespace.as_deref();
        let budgets: Vec<(ObjectKey, Arc<Value>)> = self
            .store
            .list(&BUDGETS, namespace)
            .map(|(key, budget)| (key.clone(), budget.value()))
            .filter(|(_, budget)| selects(budget, pod))
            .collect();
        let (key, budget) = match budgets.as_slice() {
            [] => return Ok(()),
            [single] => single.clone(),
            _ => {
                let message =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(Status::new(500, "", message));
            }
        };
        if !is_ready(pod) && spares_unready(&budget) {
            return Ok(());
        }
        let mut taken = Value::clone(&budget);
        take(&mut taken, json::name(pod), write.now)?;
        if !write.dry_run {
            let kind = self.kind(&BUDGETS)?.clone();
            self.commit(&kind, key, taken, write);
        }
        Ok(())
    }

    /// Sets the `DisruptionTarget` condition of the pod.
    fn mark(&mut self, write: Write<'_>, kind: &Kind, pod: &Arc<Value>) -> Arc<Value> {
        let is_target = |condition: &&Value| text(condition, &["type"]) == Some("DisruptionTarget");
        let conditions = list(pod, &["status", "conditions"]);
        let (reason, message) = ("EvictionByEvictionAPI", "Eviction API: evicting");
        let known = conditions.iter().find(is_target);
        let since = known.filter(|known| text(known, &["status"]) == Some("True"));
        let since = since.and_then(|known| text(known, &["lastTransitionTime"]).map(str::to_owned));
        let target = json!({
            "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
            "lastProbeTime": null, "lastTransitionTime": since.unwrap_or_else(|| write.now.stamp(0)),
        });
        let mut marked: Vec<Value> = conditions.iter().filter(|condition| !is_target(condition)).cloned().collect();
        marked.push(target);
        if marked.as_slice() == conditions {
            return pod.clone();
        }
        let mut new = Value::clone(pod);
        json::set(&mut new, &["status", "conditions"], Some(marked.into()));
        let key = json::key_of(&kind.resource, write.target.namespace.as_deref(), json::name(pod));
        self.commit(kind, key, new, write)
    }
}

fn delete_options(eviction: &Value, dry_run: bool) -> Result<DeleteOptions, Status> {
    let given = at(eviction, &["deleteOptions"]).cloned().unwrap_or_else(|| json!({}));
    let stages: Vec<&str> = list(&given, &["dryRun"]).iter().filter_map(Value::as_str).collect();
    if dry_run && !stages.is_empty() && stages != ["All"] {
        let stages = stages.join(" ");
        let message = format!("Non-matching dry-run options in request and content: [All] and [{stages}]");
        return Err(Status::new(500, "", message));
    }
    DeleteOptions::of(&given)
}

/// Reports whether a pod is evicted without checking budgets.
fn is_free(pod: &Value) -> bool {
    matches!(text(pod, &["status", "phase"]), Some("Succeeded" | "Failed" | "Pending")) || json::is_terminating(pod)
}

fn is_ready(pod: &Value) -> bool {
    list(pod, &["status", "conditions"])
        .iter()
        .any(|condition| text(condition, &["type"]) == Some("Ready") && text(condition, &["status"]) == Some("True"))
}

fn selects(budget: &Value, pod: &Value) -> bool {
    let Some(selector) = at(budget, &["spec", "selector"]) else { return false };
    let parsed = LabelSelector::deserialize(selector).ok().and_then(|parsed| Selector::try_from(&parsed).ok());
    parsed.is_some_and(|selector| selector.matches(&labels_of(pod)))
}

fn count(budget: &Value, field: &str) -> i64 {
    at(budget, &["status", field]).and_then(Value::as_i64).unwrap_or(0)
}

/// Reports whether an unready pod is evicted without consuming the budget.
fn spares_unready(budget: &Value) -> bool {
    let (healthy, wanted) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == Some("AlwaysAllow") || (healthy >= wanted && wanted > 0)
}

/// Consumes one of the allowed disruptions of a budget.
fn take(budget: &mut Value, pod: &str, now: Now) -> Result<(), Status> {
    let name = json::name(budget).to_owned();
    let generation = at(budget, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
    if count(budget, "observedGeneration") < generation {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(violated(why).retry_after(10));
    }
    let refused = |why: &str| {
        let mut singular = BUDGETS;
        singular.plural = "poddisruptionbudget".into();
        Err(Status::forbidden(&singular, &name, why))
    };
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return refused("pdb disruptions allowed is negative");
    }
    if at(budget, &["status", "disruptedPods"]).and_then(Value::as_object).is_some_and(|it| it.len() > MOST_DISRUPTED) {
        return refused("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 {
        return Err(violated(why_none(budget, &name)));
    }
    json::set(budget, &["status", "disruptionsAllowed"], Some((allowed - 1).into()));
    json::set(budget, &["status", "disruptedPods", pod], Some(now.stamp(0).into()));
    if allowed == 1 {
        forbid_more(budget, now);
    }
    Ok(())
}

fn violated(why: String) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Status::new(429, "TooManyRequests", message).with_cause("DisruptionBudget", why, "")
}

fn why_none(budget: &Value, name: &str) -> String {
    let condition = list(budget, &["status", "conditions"])
        .iter()
        .find(|condition| text(condition, &["type"]) == Some("DisruptionAllowed"))
        .filter(|condition| text(condition, &["status"]) == Some("False"));
    let field = |field: &str| condition.and_then(|condition| text(condition, &[field])).unwrap_or_default();
    let (reason, message) = (field("reason"), field("message"));
    let (healthy, wanted) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    if reason == "SyncFailed" && !message.is_empty() {
        format!("The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}")
    } else if healthy <= wanted {
        format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")
    } else if message.is_empty() {
        format!("The disruption budget {name} does not allow evicting pods currently")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
    }
}

/// Sets the `DisruptionAllowed` condition to false.
fn forbid_more(budget: &mut Value, now: Now) {
    let observed = at(budget, &["status", "observedGeneration"]).cloned();
    let mut conditions = list(budget, &["status", "conditions"]).to_vec();
    let is_allowed = |condition: &Value| text(condition, &["type"]) == Some("DisruptionAllowed");
    let known = conditions.iter().find(|condition| is_allowed(condition));
    let same = known.filter(|known| text(known, &["status"]) == Some("False"));
    let since = same.and_then(|known| text(known, &["lastTransitionTime"]).map(str::to_owned));
    let mut none_left = json!({
        "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "lastTransitionTime": since.unwrap_or_else(|| now.stamp(0)),
    });
    json::set(&mut none_left, &["observedGeneration"], observed);
    match conditions.iter_mut().find(|condition| is_allowed(condition)) {
        Some(condition) => *condition = none_left,
        None => conditions.push(none_left),
    }
    json::set(budget, &["status", "conditions"], Some(conditions.into()));
}
