//! The `scale` subresource, as `autoscaling/v1`. Pure.
//!
//! # Upstream
//! `ScaleREST` of the storages in `pkg/registry` and of custom resources

use std::sync::Arc;

use kcm_api::{LabelSelector, Selector};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::json::{self, at};
use crate::kinds::Kind;
use crate::request::Target;
use crate::request::Write;
use crate::server::Server;
use crate::server::preconditions::check_identity;
use crate::status::{FieldError, Status};

fn fields(path: &str) -> Vec<&str> {
    path.split('.').filter(|field| !field.is_empty()).collect()
}

/// Returns the scale of an object.
fn scale_of(kind: &Kind, object: &Value) -> Result<Value, Status> {
    let number = |path: &str| at(object, &fields(path)).and_then(Value::as_i64);
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        json::carry_over(&object["metadata"], &mut metadata, &[field]);
    }
    let (wanted, mut status) = match &kind.scale {
        None => {
            let status = json!({ "replicas": number(".status.replicas").unwrap_or(0) });
            (number(".spec.replicas").unwrap_or(0), status)
        }
        Some(paths) => {
            let Some(wanted) = number(&paths.wanted) else {
                let why = format!("the spec replicas field {:?} does not exist", paths.wanted);
                return Err(Status::new(500, "InternalError", format!("Internal error occurred: {why}")));
            };
            (wanted, json!({ "replicas": number(&paths.present).unwrap_or(0) }))
        }
    };
    if let Some(selector) = selector_of(kind, object)?.filter(|selector| !selector.is_empty()) {
        status["selector"] = selector.into();
    }
    let spec = if wanted == 0 { json!({}) } else { json!({ "replicas": wanted }) };
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
    }))
}

fn selector_of(kind: &Kind, object: &Value) -> Result<Option<String>, Status> {
    if let Some(paths) = &kind.scale {
        let path = paths.selector.as_deref().unwrap_or_default();
        return Ok(json::text(object, &fields(path)).map(str::to_owned));
    }
    let Some(selector) = at(object, &["spec", "selector"]) else { return Ok(None) };
    // The selector of a replication controller is a label map.
    let selector = if kind.resource.plural == "replicationcontrollers" {
        json!({ "matchLabels": selector })
    } else {
        selector.clone()
    };
    let parsed = LabelSelector::deserialize(&selector).ok().and_then(|parsed| Selector::try_from(&parsed).ok());
    parsed
        .map(|parsed| Some(parsed.to_string()))
        .ok_or_else(|| Status::bad_request("the selector of the object is invalid"))
}

impl Server {
    pub(crate) fn get_scale(&self, target: &Target) -> Result<Arc<Value>, Status> {
        let kind = self.kind(&target.resource)?;
        Ok(Arc::new(scale_of(kind, &self.get_object(target)?.value())?))
    }

    /// Updates the scale of an object to the result of `make`.
    pub(crate) fn change_scale(
        &mut self,
        write: Write<'_>,
        make: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Arc<Value>, Status> {
        let kind = self.kind(&write.target.resource)?.clone();
        let target = write.target;
        let stored = self.change(write, |old| {
            let scale = make(&scale_of(&kind, old)?)?;
            check_identity(target, &scale)?;
            check_uid(&kind, old, &scale)?;
            let wanted = at(&scale, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
            refuse_negative(&kind, json::name(old), wanted)?;
            let path = kind.scale.as_ref().map_or(".spec.replicas", |paths| paths.wanted.as_str());
            let mut new = old.clone();
            json::set(&mut new, &fields(path), Some(wanted.into()));
            json::carry_over(&scale, &mut new, &["metadata", "resourceVersion"]);
            if write.field_manager.applied {
                json::carry_over(&scale, &mut new, &["metadata", "managedFields"]);
            }
            Ok(new)
        })?;
        Ok(Arc::new(scale_of(&kind, &stored)?))
    }
}

fn check_uid(kind: &Kind, old: &Value, scale: &Value) -> Result<(), Status> {
    let (given, stored) = (json::uid(scale), json::uid(old));
    if given.is_empty() || given == stored {
        return Ok(());
    }
    let mut scale_of = kind.resource.clone();
    scale_of.plural = format!("{}/scale", scale_of.plural).into();
    let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {stored}");
    Err(Status::conflict(&scale_of, json::name(old), &why))
}

fn refuse_negative(kind: &Kind, name: &str, wanted: i64) -> Result<(), Status> {
    if wanted >= 0 {
        return Ok(());
    }
    Err(match &kind.scale {
        None => {
            let error = FieldError::invalid("spec.replicas", wanted, "must be greater than or equal to 0");
            Status::invalid("autoscaling", "Scale", name, &[error])
        }
        Some(paths) => {
            let error = FieldError::invalid(&*paths.wanted, wanted, "should be a non-negative integer");
            Status::invalid(&kind.resource.group, &kind.resource.kind, name, &[error])
        }
    })
}
