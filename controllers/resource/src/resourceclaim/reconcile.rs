//! The order of a reconcile: of a Pod or a group its claims in order, the status, the reservations; of a claim its
//! consumers, then the release.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kcm_framework::api::views::{ClaimConsumer, Pod, PodClaims, PodGroup, ResourceClaim};
use kcm_framework::api::{KnownView, ObjectKey, PartReader, Uid};
use kcm_framework::informers::{Index, Informer, Lookup};
use kcm_framework::{Reconcile, ReconcileError, Session, async_trait};
use parking_lot::Mutex;

use super::apply::{name_claims, release, reserve};
use super::deleted::DeletedConsumers;
use super::error::PodError;
use super::key::Key;
use super::metrics::Metrics;
use super::owner::Owner;
use super::plan::{self, Around, plan};
use super::template::ClaimTemplate;
use super::work::{Features, is_done};
use crate::shared::{EntryClaim, SCHEDULING, beside, is_for_pod, is_reserved_for};

pub(super) struct Reconciler {
    pub(super) pods: Informer<Pod>,
    pub(super) used: PartReader<PodClaims>,
    pub(super) claims: Arc<Informer<ResourceClaim>>,
    pub(super) claims_by_controller: Index<ResourceClaim, Uid>,
    pub(super) templates: Informer<ClaimTemplate>,
    /// `None` if the feature gate is off.
    pub(super) groups: Option<Informer<PodGroup>>,
    pub(super) features: Features,
    pub(super) deleted: Arc<DeletedConsumers>,
    /// The claims that this process is releasing.
    pub(super) releases: Mutex<HashMap<ObjectKey, Release>>,
    pub(super) metrics: Metrics,
}

/// A claim that this process is releasing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// The claim with that uid was deallocated, and its finalizer is not removed yet.
    Deallocated(Uid),
    /// The finalizer of the claim with that uid, which is terminating, was removed. The response does not say at which
    /// version the cache shows that the claim is deleted.
    LetGo(Uid),
}

#[async_trait]
impl Reconcile<Key> for Reconciler {
    async fn reconcile(&self, key: &Key, session: &Session) -> Result<(), ReconcileError> {
        match key {
            Key::Pod(pod) => self.reconcile_pod(pod, session).await,
            Key::Group(group) => self.reconcile_group(group, session).await,
            Key::Claim(claim) => self.reconcile_claim(claim, session).await,
        }
    }
}

impl Reconciler {
    async fn reconcile_pod(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(pod) = found(&self.pods, key, session) else { return Ok(()) };
        if pod.metadata.is_terminating() || pod.is_finished() {
            session.explain(|| "creates and reserves no claim: the pod is terminating or has finished");
            return Ok(());
        }
        let claims = self.used.of(&pod);
        let group = match claims.group.as_deref() {
            None => None,
            Some(name) => match &self.groups {
                None => return Err(ReconcileError::terminal(PodError::GroupsDisabled { group: name.to_owned() })),
                Some(groups) => {
                    let group = beside(key, name);
                    match groups.lookup(&group) {
                        Lookup::Found(group) => Some(group),
                        // The creation of the group enqueues its pods only if claims may belong to it.
                        Lookup::Absent => return Err(transient(PodError::NoGroup(group))),
                        Lookup::Undecodable(group) => {
                            session.requeue_when_decodable(&groups.cache(), &group);
                            return Ok(());
                        }
                    }
                }
            },
        };
        let owner = Owner::Pod { pod: &pod, claims, group: group.as_deref() };
        if self.ensure_claims(owner, session).await? {
            // The event of the status enqueues the pod.
            return Ok(());
        }
        if pod.node_name.is_none() {
            session.explain(|| "reserves no claim: the scheduler does");
            return Ok(());
        }
        self.reserve_claims(owner, &pod, claims, session).await
    }

    async fn reconcile_group(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let Some(groups) = &self.groups else { return Ok(()) };
        let Some(group) = found(groups, key, session) else { return Ok(()) };
        if !group.metadata.is_terminating() {
            self.ensure_claims(Owner::Group(&group), session).await?;
        }
        Ok(())
    }

    /// Creates the claims that are missing, and names them in the status. Returns `true` if the status was written.
    async fn ensure_claims(&self, owner: Owner<'_>, session: &Session) -> Result<bool, ReconcileError> {
        let mut new = BTreeMap::new();
        for entry in owner.entries() {
            match self.ensure_claim(owner, entry, session).await {
                Ok(Some(claim)) => drop(new.insert(&**entry.name, claim)),
                Ok(None) => {}
                // The first error ends the reconcile, as upstream. The next one finds the claims that were created.
                Err(error) => {
                    owner.record_failure(session, entry.name, &error);
                    return Err(error.into());
                }
            }
        }
        if new.is_empty() {
            return Ok(false);
        }
        let statuses = owner.merged_statuses(&new);
        session.explain(|| format!("names the claims of {} entries in the status", new.len()));
        match name_claims(session, owner.resource(), owner.metadata(), &statuses).await {
            Ok(()) => Ok(true),
            // Deleted or recreated meanwhile: its own event follows.
            Err(error) if error.is_not_found() || error.is_other_object() => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Reserves the allocated claims of a Pod that was scheduled without the scheduler's plugin for devices.
    async fn reserve_claims(
        &self,
        owner: Owner<'_>,
        pod: &Pod,
        claims: &PodClaims,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let group_name = self.features.group_of(claims);
        for entry in owner.entries() {
            let Some((name, is_generated)) = EntryClaim::of(entry, owner.statuses()).named() else { continue };
            let key = beside(&pod.metadata.key, name);
            let claim = match self.claims.lookup(&key) {
                Lookup::Found(claim) => claim,
                // Its creation enqueues the pod.
                Lookup::Absent => return Ok(()),
                Lookup::Undecodable(claim) => {
                    session.requeue_when_decodable(&self.claims.cache(), &claim);
                    return Ok(());
                }
            };
            if is_generated && !is_for_pod(&claim.metadata, pod, group_name) {
                return Err(transient(PodError::Foreign { claim: key, pod: pod.metadata.key.clone() }));
            }
            if !claim.is_allocated || is_reserved_for(&claim, pod, group_name) {
                continue;
            }
            let group = owner.group_of(entry);
            if group.is_some() && !self.features.group_claims {
                session.explain(|| format!("does not reserve the claim {key} of the group: the feature is disabled"));
                continue;
            }
            session.explain(|| format!("reserves the claim {key} for the pod, which is scheduled"));
            reserve(session, &claim, pod, group).await?;
        }
        Ok(())
    }

    async fn reconcile_claim(&self, key: &ObjectKey, session: &Session) -> Result<(), ReconcileError> {
        let claim = match self.claims.lookup(key) {
            Lookup::Found(claim) => claim,
            Lookup::Absent => {
                self.releases.lock().remove(key);
                return Ok(());
            }
            Lookup::Undecodable(claim) => {
                session.requeue_when_decodable(&self.claims.cache(), &claim);
                return Ok(());
            }
        };
        let uid = &claim.metadata.uid;
        let is_releasing = match self.releases.lock().get(key) {
            Some(Release::LetGo(released)) if released == uid => return Ok(()),
            Some(Release::Deallocated(released)) => released == uid,
            Some(Release::LetGo(_)) | None => false,
        };
        let mut ended = Vec::new();
        for consumer in &claim.reserved_for {
            if self.has_ended(consumer, key, session).await? {
                ended.push(consumer.uid.clone());
            }
        }
        let owner = self.owner_of(&claim, session);
        let planned = plan(&claim, Around { ended: &ended, owner, is_releasing });
        session.explain(|| planned.explain());
        if is_releasing && !planned.removes_finalizer {
            // It was removed, or the claim is in use again.
            self.releases.lock().remove(key);
        }
        let releasing = || drop(self.releases.lock().insert(key.clone(), Release::Deallocated(uid.clone())));
        let released = || {
            let mut releases = self.releases.lock();
            if claim.metadata.is_terminating() {
                releases.insert(key.clone(), Release::LetGo(uid.clone()));
            } else {
                releases.remove(key);
            }
        };
        match release(session, &claim, &planned, releasing, released).await {
            // Deleted or recreated meanwhile.
            Err(error) if error.is_not_found() || error.is_other_object() => Ok(()),
            result => Ok(result?),
        }
    }

    /// Returns `true` if the consumer does not use the claim any more.
    ///
    /// A consumer that the cache does not show may be one for which the scheduler reserves the claim right now. Only a
    /// deletion that was seen, or a live read, shows that it does not exist.
    async fn has_ended(
        &self,
        consumer: &ClaimConsumer,
        claim: &ObjectKey,
        session: &Session,
    ) -> Result<bool, ReconcileError> {
        let key = beside(claim, &consumer.name);
        match (&*consumer.api_group, &*consumer.resource) {
            ("", "pods") => self.is_gone(&self.pods, &key, &consumer.uid, is_done, session).await,
            (SCHEDULING, "podgroups") => match self.groups.as_ref().filter(|_| self.features.group_claims) {
                Some(groups) => self.is_gone(groups, &key, &consumer.uid, |_| false, session).await,
                None => Ok(false),
            },
            // Consumers of other kinds belong to others.
            _ => Ok(false),
        }
    }

    async fn is_gone<V: KnownView>(
        &self,
        cache: &Informer<V>,
        key: &ObjectKey,
        uid: &Uid,
        is_done: impl Fn(&V) -> bool + Send,
        session: &Session,
    ) -> Result<bool, ReconcileError> {
        if self.deleted.contains(uid) {
            return Ok(true);
        }
        match cache.lookup(key) {
            Lookup::Found(object) => Ok(object.meta().uid != *uid || is_done(&object)),
            Lookup::Absent => {
                let live = session.live_meta::<V>(key).await?;
                Ok(live.is_none_or(|live| live.metadata.uid != *uid))
            }
            Lookup::Undecodable(object) => {
                session.requeue_when_decodable(&cache.cache(), &object);
                Ok(false)
            }
        }
    }

    fn owner_of(&self, claim: &ResourceClaim, session: &Session) -> plan::Owner {
        let controller = claim.metadata.controller();
        let Some(owner) = controller.filter(|owner| &*owner.api_version == "v1" && &*owner.kind == "Pod") else {
            return plan::Owner::None;
        };
        match self.pods.lookup(&beside(&claim.metadata.key, &owner.name)) {
            Lookup::Found(pod) if pod.metadata.uid != owner.uid || is_done(&pod) => plan::Owner::Done,
            Lookup::Found(_) => plan::Owner::Active,
            Lookup::Absent => plan::Owner::Unknown,
            Lookup::Undecodable(pod) => {
                session.requeue_when_decodable(&self.pods.cache(), &pod);
                plan::Owner::Active
            }
        }
    }
}

/// Returns the object. A key without an object needs nothing.
fn found<V: KnownView>(cache: &Informer<V>, key: &ObjectKey, session: &Session) -> Option<Arc<V>> {
    match cache.lookup(key) {
        Lookup::Found(object) => Some(object),
        Lookup::Absent => None,
        Lookup::Undecodable(object) => {
            session.requeue_when_decodable(&cache.cache(), &object);
            None
        }
    }
}

fn transient(error: PodError) -> ReconcileError {
    ReconcileError::new(kcm_framework::Class::Transient, error)
}
