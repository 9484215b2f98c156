//! The verbs of a session for a resource that is known at run time.

use std::collections::{BTreeMap, BTreeSet};

use kcm_api::{Meta, ObjectKey, PartialObjectMeta, Resource, Uid, View as _};
use kcm_client::{self, ApiError, Call, Deleted, Patch, Payload, Scale, Subresource, Written};
use kcm_informers::ListOptions;
use serde::Serialize;
use serde_json::{Value, json};

use super::session::Session;
use crate::consistency::list_objects;
use crate::reconcile::delete::Delete;

/// The verbs of a [`Session`] for one resource, such as a resource found by discovery.
///
/// The session's own verbs take an object of a known kind. Their guarantees hold here as well.
#[derive(Clone, Copy)]
pub struct SessionOf<'a> {
    session: &'a Session,
    resource: &'a Resource,
}

impl Session {
    /// The verbs of this session for `resource`.
    #[must_use]
    pub const fn of<'a>(&'a self, resource: &'a Resource) -> SessionOf<'a> {
        SessionOf { session: self, resource }
    }
}

impl SessionOf<'_> {
    /// Creates the object `key`, whose name `object` carries.
    ///
    /// A `key` with an empty name and an object with a `generateName` leave the name to the API server; such a creation
    /// is in doubt once it was repeated after an error of the server, even if the repetition succeeds.
    ///
    /// # Errors
    /// [`ApiError::is_already_exists`] if the name is taken. If a repeated creation finds an object of its name with the
    /// controller and the labels that were sent, the creation has succeeded. Without a controller, or if that object cannot
    /// be read, the error is [`ApiError::is_probably_created`].
    pub async fn create(&self, key: &ObjectKey, object: Payload) -> Result<Written, ApiError> {
        let has_name = !key.name().is_empty();
        let call = Call::create(self.resource, key.namespace(), object.clone(), has_name);
        let mut write = self.session.begin(self.resource, [(key.clone(), None)].into(), &call)?;
        let mut answer = self.session.writer().write(&call, &mut write.attempts).await;
        if has_name && answer.as_ref().is_err_and(ApiError::is_probably_created) {
            match self.who_took_the_name(key, &object).await {
                Taken::ByThis(written) => {
                    write.attempts.settle();
                    answer = Ok(written);
                }
                Taken::ByAnother => {
                    write.attempts.settle();
                    answer = answer.map_err(ApiError::without_lost_response);
                }
                Taken::Unclear => {}
            }
        }
        write.written(answer)
    }

    /// Compares the object that has the name of a created one with what was sent.
    async fn who_took_the_name(&self, key: &ObjectKey, object: &Payload) -> Taken {
        let Some(sent) = object.json_str().and_then(|json| PartialObjectMeta::decode(json).ok()) else {
            return Taken::Unclear;
        };
        let Some(controller) = sent.metadata.controller() else { return Taken::Unclear };
        let names = BTreeSet::from([key.name()]);
        let Ok(list) = list_objects(self.session.live_client(), self.resource, key.namespace(), &names).await else {
            return Taken::Unclear;
        };
        // If it was deleted meanwhile, the live check of the pending write shows what the cache has to reach.
        let Some((found, json)) = list.objects.into_iter().next() else { return Taken::Unclear };
        let found = found.metadata;
        let has_labels = sent.metadata.labels.iter().all(|(name, value)| found.labels.get(name) == Some(value));
        if !found.is_controlled_by(&controller.uid) || !has_labels {
            return Taken::ByAnother;
        }
        Taken::ByThis(Written {
            key: key.clone(),
            uid: found.uid,
            resource_version: found.resource_version,
            body: json.get().to_owned().into(),
        })
    }

    /// Updates the object `key`; `object` carries the resource version that it is based on.
    ///
    /// # Errors
    /// [`ApiError::is_conflict`] if the object has another version.
    pub async fn update(&self, key: &ObjectKey, object: Payload) -> Result<Written, ApiError> {
        self.put(key, Subresource::None, object).await
    }

    /// Updates the status of the object `key`, as [`update`](Self::update) does the object.
    pub async fn update_status(&self, key: &ObjectKey, object: Payload) -> Result<Written, ApiError> {
        self.put(key, Subresource::Status, object).await
    }

    /// Updates the scale of the object `key`, whose kind must have one.
    pub async fn update_scale(&self, key: &ObjectKey, scale: &Scale) -> Result<Written, ApiError> {
        self.put(key, Subresource::Scale, scale.payload(key)).await
    }

    /// Updates a subresource that has no method of its own.
    pub async fn put(&self, key: &ObjectKey, subresource: Subresource, object: Payload) -> Result<Written, ApiError> {
        self.session.write(self.resource, key, Call::put(self.resource, key, subresource, object)).await
    }

    /// Patches the object `key`.
    pub async fn patch(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ApiError> {
        self.patch_subresource(key, Subresource::None, patch).await
    }

    /// Patches the status of the object `key`.
    pub async fn patch_status(&self, key: &ObjectKey, patch: Patch) -> Result<Written, ApiError> {
        self.patch_subresource(key, Subresource::Status, patch).await
    }

    pub(super) async fn patch_subresource(
        &self,
        key: &ObjectKey,
        subresource: Subresource,
        patch: Patch,
    ) -> Result<Written, ApiError> {
        self.session.write(self.resource, key, Call::patch(self.resource, key, subresource, patch)).await
    }

    /// Applies `configuration` to the object `key` by server-side apply; see [`Patch::apply`].
    pub async fn apply(
        &self,
        key: &ObjectKey,
        field_manager: &str,
        configuration: &impl Serialize,
    ) -> Result<Written, ApiError> {
        self.patch(key, Patch::apply(field_manager, configuration)).await
    }

    /// Merges `changes` into `object`, as a JSON merge patch with the uid of the object: an object that was recreated
    /// under the same name is not changed.
    pub async fn merge_patch(&self, object: &Meta, changes: Value) -> Result<Written, ApiError> {
        self.patch(&object.key, Patch::Merge(Payload::json(&with_uid(changes, object)))).await
    }

    /// Merges `status` into the status of `object`, as [`merge_patch`](Self::merge_patch) does.
    pub async fn merge_status(&self, object: &Meta, status: &impl Serialize) -> Result<Written, ApiError> {
        let changes = with_uid(json!({ "status": status }), object);
        self.patch_status(&object.key, Patch::Merge(Payload::json(&changes))).await
    }

    /// Deletes the object `key` if it has this uid. An object that does not exist is no error.
    ///
    /// # Errors
    /// [`ApiError::is_other_object`] if the object has another uid.
    pub async fn delete(&self, key: &ObjectKey, uid: &Uid, how: &Delete) -> Result<Deleted, ApiError> {
        let options = how.options(Some(uid));
        self.session.end(self.resource, key, uid, &Call::delete(self.resource, key, &options)).await
    }

    /// Evicts the Pod `key` if it has this uid and its disruption budgets allow it. A Pod that does not exist is no error.
    ///
    /// # Errors
    /// [`ApiError::is_too_many_requests`] if a disruption budget does not allow it now: the request is not repeated.
    pub async fn evict(&self, key: &ObjectKey, uid: &Uid, how: &Delete) -> Result<Deleted, ApiError> {
        let options = how.options(Some(uid));
        self.session.end(self.resource, key, uid, &Call::evict(self.resource, key, &options)).await
    }

    /// Deletes the objects that match `selected`.
    ///
    /// The key waits for the deletion of the objects that its caches hold. The caches cannot evaluate a field selector on
    /// other fields than name and namespace: the key then waits for none.
    pub async fn delete_collection(&self, selected: &ListOptions, how: &Delete) -> Result<(), ApiError> {
        let selectors = kcm_client::ListQuery {
            label_selector: selected.label_selector.as_ref().map(ToString::to_string),
            field_selector: selected.field_selector.clone(),
            ..kcm_client::ListQuery::default()
        };
        let options = how.options(None);
        let call = Call::delete_collection(self.resource, selected.namespace.as_deref(), &selectors, &options);
        let caches = self.session.caches().iter().filter(|cache| cache.resource() == self.resource);
        let held = caches.flat_map(|cache| cache.matching(selected));
        let objects = held.map(|(key, state)| (key, Some(state.uid))).collect::<BTreeMap<_, _>>();
        let mut write = self.session.begin(self.resource, objects.into_iter().collect(), &call)?;
        let answer = self.session.writer().delete_with(&call, &mut write.attempts).await;
        write.deleted(answer).map(drop)
    }

    /// Adds a finalizer to `object`. Returns false, without a request, if the object has the finalizer.
    ///
    /// The patch carries the uid and the version of the object, so that finalizers which another client adds or removes
    /// meanwhile are not lost.
    ///
    /// # Errors
    /// [`ApiError::is_conflict`] if the object has another version.
    pub async fn add_finalizer(&self, object: &Meta, finalizer: &str) -> Result<bool, ApiError> {
        let finalizers: Vec<&str> = object.finalizers.iter().map(|name| &**name).collect();
        if finalizers.contains(&finalizer) {
            return Ok(false);
        }
        self.set_finalizers(object, [finalizers, vec![finalizer]].concat()).await
    }

    /// Removes a finalizer from `object`, as [`add_finalizer`](Self::add_finalizer) adds one. Returns false, without a
    /// request, if the object does not have the finalizer.
    pub async fn remove_finalizer(&self, object: &Meta, finalizer: &str) -> Result<bool, ApiError> {
        let others: Vec<&str> =
            object.finalizers.iter().map(|name| &**name).filter(|name| *name != finalizer).collect();
        if others.len() == object.finalizers.len() {
            return Ok(false);
        }
        self.set_finalizers(object, others).await
    }

    async fn set_finalizers(&self, object: &Meta, names: Vec<&str>) -> Result<bool, ApiError> {
        let metadata = json!({ "resourceVersion": object.resource_version, "finalizers": names });
        self.merge_patch(object, json!({ "metadata": metadata })).await?;
        Ok(true)
    }
}

/// The patch with the uid of the object. A patch that is no JSON object stays as it is, for the API server to reject.
fn with_uid(mut changes: Value, object: &Meta) -> Value {
    if let Value::Object(fields) = &mut changes
        && let Value::Object(metadata) = fields.entry("metadata").or_insert_with(|| json!({}))
    {
        metadata.insert("uid".to_owned(), json!(object.uid));
    }
    changes
}

/// Creator of the object that has the name of a new object.
enum Taken {
    /// The object that was sent; an earlier attempt has created it.
    ByThis(Written),
    /// It is another object.
    ByAnother,
    /// It is not known.
    Unclear,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_carries_the_uid_beside_what_it_changes() {
        let object = PartialObjectMeta::decode(r#"{"metadata":{"name":"a","uid":"u"}}"#).unwrap();
        for (changes, patch) in [
            (json!({ "spec": { "replicas": 1 } }), json!({ "spec": { "replicas": 1 }, "metadata": { "uid": "u" } })),
            (json!({ "metadata": { "labels": null } }), json!({ "metadata": { "labels": null, "uid": "u" } })),
            (json!({ "metadata": null }), json!({ "metadata": null })),
            (json!([]), json!([])),
        ] {
            assert_eq!(with_uid(changes, &object.metadata), patch);
        }
    }
}
