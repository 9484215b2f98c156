//! Server-side apply, and the managed fields of all other writes.

use std::sync::Arc;

use serde_json::Value;

use crate::apply;
use crate::json;
use crate::kinds::Kind;
use crate::request::{FieldManager, Write};
use crate::server::Server;
use crate::server::writes::finish;
use crate::status::Status;

impl Server {
    /// Computes the managed fields of an object that is created.
    ///
    /// `object` is the object as sent, without its managed fields, which are `given`: fields that admission and
    /// strategies add have no owner.
    pub(crate) fn owners_of_new(
        &self,
        write: Write<'_>,
        kind: &Kind,
        given: Option<Value>,
        object: &Value,
    ) -> Option<Value> {
        if !self.managed_fields || write.field_manager.applied {
            return given.filter(|_| self.managed_fields);
        }
        let mut written = object.clone();
        finish(kind, &mut written);
        apply::owners_after(write, kind, None, given.as_ref(), &written)
    }

    /// Computes the managed fields of an object that replaces `old`.
    ///
    /// `new` has its defaults, and still contains fields that its path cannot write.
    pub(crate) fn owners(
        &self,
        write: Write<'_>,
        kind: &Kind,
        old: &Value,
        given: Option<Value>,
        new: &Value,
    ) -> Option<Value> {
        if !self.managed_fields || write.field_manager.applied {
            return given.filter(|_| self.managed_fields);
        }
        apply::owners_after(write, kind, Some(old), given.as_ref(), new)
    }

    /// Performs a server-side apply: creates the object, or merges it into the live one; returns the HTTP code and the
    /// object.
    pub(crate) fn apply(
        &mut self,
        write: Write<'_>,
        applied: &Value,
        force: bool,
        read: impl Fn(Value) -> Result<Value, String>,
    ) -> Result<(u16, Arc<Value>), Status> {
        let kind = self.stored_kind(&write.target.resource)?.clone();
        let subresource = write.target.subresource.as_deref();
        let name = write.target.name.as_deref().unwrap_or_default();
        let key = json::key_of(&kind.resource, write.target.namespace.as_deref(), name);
        let old = self.store.value(&kind.resource, &key);
        let write = Write { field_manager: FieldManager { applied: true, ..write.field_manager }, ..write };
        if subresource == Some("scale") {
            let Some(old) = old else { return Err(Status::not_found(&kind.resource, name)) };
            return Ok((200, self.apply_scale(write, &kind, &old, applied, force)?));
        }
        apply::check(&kind.resource.group, &kind.resource.version, &kind.resource.kind, applied)?;
        let Some(old) = old else {
            return if subresource.is_some() {
                Err(Status::not_found(&kind.resource, name))
            } else {
                Ok((201, self.apply_new(write, &kind, applied, read)?))
            };
        };
        let merged = apply::merge(write, &kind, Some(&old), applied, force)?;
        let merged = read(merged).map_err(|why| apply::unfit(&kind, applied, &why))?;
        Ok((200, self.patch(write, |_| Ok(merged))?))
    }

    fn apply_new(
        &mut self,
        write: Write<'_>,
        kind: &Kind,
        applied: &Value,
        read: impl Fn(Value) -> Result<Value, String>,
    ) -> Result<Arc<Value>, Status> {
        let name = write.target.name.as_deref().unwrap_or_default();
        let object = apply::merge(write, kind, None, applied, false)?;
        let mut object = read(object).map_err(|why| apply::unfit(kind, applied, &why))?;
        let uid = json::uid(&object);
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(&kind.resource, name, &why));
        }
        match json::name(&object) {
            "" => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({name} based on URL) was undeterminable: name must be provided"
                )));
            }
            given if given != name => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({given}) does not match the name on the URL ({name})"
                )));
            }
            _ => {}
        }
        json::set(&mut object, &["metadata", "resourceVersion"], None);
        self.create(write, object)
    }

    fn apply_scale(
        &mut self,
        write: Write<'_>,
        kind: &Kind,
        old: &Value,
        applied: &Value,
        force: bool,
    ) -> Result<Arc<Value>, Status> {
        apply::check("autoscaling", "v1", "Scale", applied)?;
        self.change_scale(write, |live| apply::merge_scale(write, kind, old, live, applied, force))
    }
}
