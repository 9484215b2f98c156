//! The `binding` subresource of pods. Pure.
//!
//! # Upstream
//! `BindingREST` of `pkg/registry/core/pod/storage`

use std::sync::Arc;

use serde_json::{Value, json};

use crate::json::{self, text};
use crate::kinds::strategy;
use crate::request::Write;
use crate::server::preconditions::precondition_failed;
use crate::server::{Server, created};
use crate::status::Status;

impl Server {
    pub(crate) fn bind(&mut self, write: Write<'_>, binding: &Value) -> Result<Arc<Value>, Status> {
        let kind = self.kind(&write.target.resource)?.clone();
        let resource = &kind.resource;
        let name = write.target.name.as_deref().unwrap_or_default();
        let key = json::key_of(resource, write.target.namespace.as_deref(), name);
        if json::name(binding) != name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        let node = check(binding)?;
        let Some(old) = self.store.value(resource, &key) else {
            return Err(Status::not_found(resource, name));
        };
        for (what, given, stored) in [
            ("UID", json::uid(binding), json::uid(&old)),
            ("ResourceVersion", json::version(binding), json::version(&old)),
        ] {
            if !given.is_empty() && given != stored {
                return Err(precondition_failed(
                    resource,
                    name,
                    &strategy::storage_key(&kind, &key),
                    what,
                    given,
                    stored,
                ));
            }
        }
        let refused = |why: String| {
            let mut binding_of = resource.clone();
            binding_of.plural = format!("{}/binding", resource.plural).into();
            Err(Status::conflict(&binding_of, name, &why))
        };
        if json::is_terminating(&old) {
            return refused(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        if let Some(node) = text(&old, &["spec", "nodeName"]).filter(|node| !node.is_empty()) {
            return refused(format!("pod {name} is already assigned to node {node:?}"));
        }
        if !json::list(&old, &["spec", "schedulingGates"]).is_empty() {
            return refused(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        let mut pod = Value::clone(&old);
        json::set(&mut pod, &["spec", "nodeName"], Some(node.into()));
        json::set(&mut pod, &["status", "nominatedNodeName"], None);
        for field in ["annotations", "labels"] {
            for (name, value) in
                json::at(binding, &["metadata", field]).and_then(Value::as_object).into_iter().flatten()
            {
                json::set(&mut pod, &["metadata", field, name], Some(value.clone()));
            }
        }
        let scheduled = json!({
            "type": "PodScheduled", "status": "True",
            "lastProbeTime": null, "lastTransitionTime": write.now.stamp(0),
        });
        let mut conditions = json::list(&pod, &["status", "conditions"]).to_vec();
        conditions.retain(|condition| text(condition, &["type"]) != Some("PodScheduled"));
        conditions.push(scheduled);
        json::set(&mut pod, &["status", "conditions"], Some(conditions.into()));
        self.commit(&kind, key, pod, write);
        Ok(created())
    }
}

/// Returns the node of a binding.
fn check(binding: &Value) -> Result<&str, Status> {
    // Upstream returns these errors without a specific code.
    let refused = |why: String| Status::new(500, "", why);
    let kind = text(binding, &["target", "kind"]).unwrap_or_default();
    let mut problems = Vec::new();
    if !matches!(kind, "" | "Node") {
        problems.push(format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""));
    }
    let node = text(binding, &["target", "name"]).unwrap_or_default();
    if node.is_empty() {
        problems.push("target.name: Required value".to_owned());
    }
    match problems.as_slice() {
        [] => Ok(node),
        [single] => Err(refused(single.clone())),
        several => Err(refused(format!("[{}]", several.join(", ")))),
    }
}
