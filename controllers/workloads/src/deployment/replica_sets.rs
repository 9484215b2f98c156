//! The replica sets of a deployment: which one is new, how one is made, and what is changed about one.

use std::borrow::Cow;
use std::sync::Arc;

use kcm_api::views::{Deployment, DeploymentView, ReplicaSet, ReplicaSetStatus};
use kcm_api::{
    Document, EditError, KnownView as _, OwnerReference, POD_TEMPLATE_HASH, Selector, same_template, template_hash,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::annotations::{Changes, DESIRED_REPLICAS, MAX_REPLICAS, revision_of, size_of};
use super::rollout::SetCount;
use crate::shared::ownership::Owner;

const TEMPLATE: [&str; 2] = ["spec", "template"];
const LABELS: [&str; 2] = ["metadata", "labels"];

/// The longest name of an object.
const NAME_LIMIT: usize = 253;

/// The replica sets that belong to a deployment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sets {
    /// All but the new one, the oldest first.
    pub(super) old: Vec<Arc<ReplicaSet>>,
    /// The one with the deployment's template.
    pub(super) new: Option<Arc<ReplicaSet>>,
}

impl Sets {
    /// Tells the new one from the old ones: the oldest of those that have the deployment's template.
    pub(super) fn of(deployment: &Deployment, mut sets: Vec<Arc<ReplicaSet>>) -> Self {
        let age = |set: &ReplicaSet| (set.metadata.creation_timestamp, set.metadata.key.name().to_owned());
        sets.sort_by_cached_key(|set| age(set));
        let wanted = deployment.raw(&TEMPLATE);
        let new = sets.iter().position(|set| is_template(wanted, set.raw(&TEMPLATE)));
        Self { new: new.map(|at| sets.remove(at)), old: sets }
    }

    /// All of them, the new one last; what [`SetCount::index`] counts.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    /// The set of that index.
    pub(super) fn at(&self, index: usize) -> Option<&Arc<ReplicaSet>> {
        self.all().nth(index)
    }

    /// The revision that the new set has, unless it has a higher one: one more than any old set.
    pub(super) fn next_revision(&self) -> i64 {
        let highest = self.old.iter().filter_map(|set| revision_of(&set.metadata)).fold(0, i64::max);
        highest.saturating_add(1)
    }
}

/// Whether a replica set is for the template that the deployment has now.
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

/// A replica set as the arithmetic of rollouts sees it.
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

/// A replica set that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NewSet {
    /// Its name.
    pub(super) name: String,
    /// Its size.
    pub(super) replicas: i32,
    /// What is sent.
    pub(super) body: String,
    /// What it will say of itself at first.
    pub(super) status: ReplicaSetStatus,
}

impl NewSet {
    /// The replica set for the deployment's template.
    ///
    /// Its name depends on the template alone, so that there is one for a template however often it is tried.
    ///
    /// # Errors
    /// A template, or a selector, that is no object.
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

/// `<deployment>-<hash>`, cut to fit.
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

/// What is found where a replica set was to be made and its name was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namesake {
    /// The deployment's own, for this template: the cache is about to show it.
    Ours,
    /// Nobody's, for this template: it is adopted as soon as the cache shows it.
    Adoptable,
    /// Anything else: another name has to be found.
    Collision,
}

/// Decides about the replica set that has the name, as the API server shows it.
pub(super) fn namesake(deployment: &Deployment, selector: &Selector, found: &ReplicaSet) -> Namesake {
    let meta = &found.metadata;
    if !has_template_of(deployment, found) {
        Namesake::Collision
    } else if Owner::of(deployment).owns(meta) {
        Namesake::Ours
    } else if meta.controller().is_none() && !meta.is_terminating() && selector.matches(&meta.labels) {
        Namesake::Adoptable
    } else {
        Namesake::Collision
    }
}

/// What is changed about a replica set, in one write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edit {
    /// The replica set.
    pub(super) set: Arc<ReplicaSet>,
    /// Its size after.
    pub(super) replicas: i32,
    /// Its `minReadySeconds` after.
    pub(super) min_ready_seconds: i32,
    /// Annotations to put.
    pub(super) annotations: Changes,
}

impl Edit {
    /// No change yet.
    pub(super) fn of(set: &Arc<ReplicaSet>) -> Self {
        Self {
            set: Arc::clone(set),
            replicas: set.replicas,
            min_ready_seconds: set.min_ready_seconds,
            annotations: Changes::new(),
        }
    }

    /// Whether nothing would be written.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_scale() && self.min_ready_seconds == self.set.min_ready_seconds && self.annotations.is_empty()
    }

    /// Whether the set gets another size.
    pub(super) fn is_scale(&self) -> bool {
        self.replicas != self.set.replicas
    }

    /// The whole replica set, changed.
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
