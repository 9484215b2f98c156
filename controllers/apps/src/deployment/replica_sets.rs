//! The replica sets of a deployment: which one is new, how it is created, and how one is edited.

use std::borrow::Cow;
use std::sync::Arc;

use kcm_framework::api::views::{Deployment, DeploymentView, ReplicaSet, ReplicaSetStatus};
use kcm_framework::api::{
    Document, EditError, KnownView as _, OwnerReference, POD_TEMPLATE_HASH, Selector, same_template, template_hash,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::annotations::{Changes, DESIRED_REPLICAS, MAX_REPLICAS, revision_of, size_of};
use super::rollout::{ScaleReason, SetCount};
use kcm_framework::ownership::Owner;

const TEMPLATE: [&str; 2] = ["spec", "template"];
const LABELS: [&str; 2] = ["metadata", "labels"];

/// The longest name of an object.
const NAME_LIMIT: usize = 253;

/// The claimed replica sets of a deployment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReplicaSets {
    /// The old replica sets, the oldest first.
    pub(super) old: Vec<Arc<ReplicaSet>>,
    /// The new replica set, which has the template of the deployment.
    pub(super) new: Option<Arc<ReplicaSet>>,
}

impl ReplicaSets {
    /// Separates the new replica set from the old ones: it is the oldest that has the template of the deployment.
    pub(super) fn of(deployment: &Deployment, mut sets: Vec<Arc<ReplicaSet>>) -> Self {
        let age = |set: &ReplicaSet| (set.metadata.creation_timestamp, set.metadata.key.name().to_owned());
        sets.sort_by_cached_key(|set| age(set));
        let wanted = deployment.raw(&TEMPLATE);
        let new = sets.iter().position(|set| is_template(wanted, set.raw(&TEMPLATE)));
        Self { new: new.map(|at| sets.remove(at)), old: sets }
    }

    /// All replica sets, the new one last; [`SetCount::index`] is the index in this order.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    /// The replica set of that index.
    pub(super) fn at(&self, index: usize) -> Option<&Arc<ReplicaSet>> {
        self.all().nth(index)
    }

    /// The revision of the new replica set, unless it has a higher one: one more than that of any old one.
    pub(super) fn next_revision(&self) -> i64 {
        let highest = self.old.iter().filter_map(|set| revision_of(&set.metadata)).fold(0, i64::max);
        highest.saturating_add(1)
    }
}

/// Whether the replica set has the template of the deployment.
pub(super) fn has_template_of(deployment: &Deployment, set: &ReplicaSet) -> bool {
    is_template(deployment.raw(&TEMPLATE), set.raw(&TEMPLATE))
}

fn is_template(wanted: Option<&RawValue>, has: Option<&RawValue>) -> bool {
    match (wanted, has) {
        (Some(wanted), Some(has)) => same_template(wanted, has),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// The counts of a replica set that a rollout is planned with.
pub(super) fn count(index: usize, set: &ReplicaSet) -> SetCount<'_> {
    SetCount {
        index,
        name: set.metadata.key.name(),
        created: set.metadata.creation_timestamp,
        revision: revision_of(&set.metadata).unwrap_or(0),
        desired: set.replicas,
        actual: set.status.replicas,
        available: set.status.available_replicas,
        desired_annotation: size_of(&set.metadata, DESIRED_REPLICAS),
        max_annotation: size_of(&set.metadata, MAX_REPLICAS),
        observed: set.metadata.generation <= set.status.observed_generation,
        terminating: set.metadata.is_terminating(),
    }
}

/// A replica set to create.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NewReplicaSet {
    /// Its name.
    pub(super) name: String,
    /// Its `spec.replicas`.
    pub(super) replicas: i32,
    /// The JSON of the request.
    pub(super) body: String,
    /// Its first status.
    pub(super) status: ReplicaSetStatus,
}

impl NewReplicaSet {
    /// The replica set for the template of the deployment.
    ///
    /// Its name depends on the template and the collision count alone: a repeated creation finds the name taken.
    ///
    /// # Errors
    /// A template, or a selector, that is not an object.
    pub(super) fn of(deployment: &Deployment, replicas: i32, annotations: &Changes) -> Result<Self, EditError> {
        let template = deployment.raw(&TEMPLATE).map_or(Cow::Borrowed("{}"), |raw| Cow::Borrowed(raw.get()));
        let raw: &RawValue = serde_json::from_str(&template).expect("a part of a document is JSON");
        let hash = template_hash(raw, deployment.status.collision_count);
        let labelled = with(&template, &[LABELS[0], LABELS[1], POD_TEMPLATE_HASH], &hash, TEMPLATE)?;
        let selector = deployment.document.get(&["spec", "selector"]).unwrap_or("{}");
        let selector = with(selector, &["matchLabels", POD_TEMPLATE_HASH], &hash, ["spec", "selector"])?;
        let name = name_of(deployment, &hash);
        let resource = ReplicaSet::RESOURCE;
        let body = Body {
            api_version: resource.api_version(),
            kind: &resource.kind,
            metadata: BodyMeta {
                name: &name,
                namespace: deployment.metadata.key.namespace().unwrap_or_default(),
                labels: labelled.raw(&LABELS),
                annotations,
                owner_references: [Owner::of(deployment).reference()],
            },
            spec: BodySpec {
                replicas,
                min_ready_seconds: deployment.min_ready_seconds,
                selector: &selector,
                template: &labelled,
            },
        };
        let body =
            serde_json::to_string(&body).map_err(|source| EditError::Value { path: "spec".to_owned(), source })?;
        Ok(Self { name, replicas, body, status: ReplicaSetStatus::default() })
    }
}

/// `DEPLOYMENT-HASH`, with the name of the deployment cut to fit.
fn name_of(deployment: &DeploymentView, hash: &str) -> String {
    let name = deployment.metadata.key.name();
    // Names of objects are ASCII, so that any cut is between characters.
    let kept = name.get(..NAME_LIMIT - 1 - hash.len()).unwrap_or(name);
    format!("{kept}-{hash}")
}

fn with(object: &str, path: &[&str], value: &str, of: [&str; 2]) -> Result<Document, EditError> {
    let not_an_object = |_| EditError::NotAnObject { path: of.join(".") };
    let mut document = Document::parse(object).map_err(not_an_object)?;
    document.set(path, value)?;
    Ok(document)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: &'a str,
    metadata: BodyMeta<'a>,
    spec: BodySpec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BodyMeta<'a> {
    name: &'a str,
    namespace: &'a str,
    labels: Option<&'a RawValue>,
    annotations: &'a Changes,
    owner_references: [OwnerReference; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BodySpec<'a> {
    replicas: i32,
    #[serde(skip_serializing_if = "is_zero")]
    min_ready_seconds: i32,
    selector: &'a Document,
    template: &'a Document,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// The relation of a deployment to the replica set that has the name of its new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExistingReplicaSet {
    /// The deployment controls it, and it has the template: the cache is stale.
    Owned,
    /// An orphan that has the template: it is adopted as soon as it is in the cache.
    Adoptable,
    /// Any other replica set: another name is needed.
    Collision,
}

/// Classifies the replica set that has the name, as it was read from the API server.
pub(super) fn classify_existing(
    deployment: &Deployment,
    selector: &Selector,
    found: &ReplicaSet,
) -> ExistingReplicaSet {
    let meta = &found.metadata;
    if !has_template_of(deployment, found) {
        ExistingReplicaSet::Collision
    } else if Owner::of(deployment).owns(meta) {
        ExistingReplicaSet::Owned
    } else if meta.controller().is_none() && !meta.is_terminating() && selector.matches(&meta.labels) {
        ExistingReplicaSet::Adoptable
    } else {
        ExistingReplicaSet::Collision
    }
}

/// The changes of a replica set, for one write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edit {
    /// The replica set.
    pub(super) set: Arc<ReplicaSet>,
    /// The new `spec.replicas`.
    pub(super) replicas: i32,
    /// The new `spec.minReadySeconds`.
    pub(super) min_ready_seconds: i32,
    /// The annotations to set.
    pub(super) annotations: Changes,
    /// Why the replica set is scaled.
    pub(super) reasons: Vec<ScaleReason>,
    /// True if the replica set has the present template.
    pub(super) is_of_new: bool,
}

impl Edit {
    /// An edit of an old replica set without changes.
    pub(super) fn of(set: &Arc<ReplicaSet>) -> Self {
        Self {
            set: Arc::clone(set),
            replicas: set.replicas,
            min_ready_seconds: set.min_ready_seconds,
            annotations: Changes::new(),
            reasons: Vec::new(),
            is_of_new: false,
        }
    }

    /// Whether nothing changes.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_scale() && self.min_ready_seconds == self.set.min_ready_seconds && self.annotations.is_empty()
    }

    /// Whether `spec.replicas` changes.
    pub(super) fn is_scale(&self) -> bool {
        self.replicas != self.set.replicas
    }

    /// The whole replica set with the changes.
    pub(super) fn document(&self) -> Result<Document, EditError> {
        let mut document = self.set.document.clone();
        if self.is_scale() {
            document.set(&["spec", "replicas"], &self.replicas)?;
        }
        if self.min_ready_seconds != self.set.min_ready_seconds {
            document.set(&["spec", "minReadySeconds"], &self.min_ready_seconds)?;
        }
        for (key, value) in &self.annotations {
            document.set(&["metadata", "annotations", key], value)?;
        }
        Ok(document)
    }
}
