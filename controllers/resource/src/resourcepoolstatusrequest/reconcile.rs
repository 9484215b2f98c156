//! The order of a reconcile: the expiry, the live slices, the status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::views::{ClaimDevices, ResourceClaim};
use kcm_framework::api::{InternedStr, KnownView as _, PartReader, View as _};
use kcm_framework::client::ApiError;
use kcm_framework::client::{ListQuery, Patch, Payload, ResponseExt as _};
use kcm_framework::informers::Informer;
use kcm_framework::{Class, Delete, ReconcileError, ReconcileObject, Session, async_trait};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::expiry::expires_at;
use super::metrics::Metrics;
use super::pool::InUse;
use super::status::{Computed, Observed, compute};
use super::views::{PoolStatusRequest, PublishedSlice};
use crate::shared::DeviceTaintRule;

/// Slices of one page of a live list.
const PAGE: u32 = 500;

/// Time after which a request whose pools are incomplete is computed again, if no slice changes before.
const RECHECK: Duration = Duration::from_mins(10);

pub(super) struct Reconciler {
    pub(super) claims: Informer<ResourceClaim>,
    pub(super) devices: PartReader<ClaimDevices>,
    /// `None` if the feature gate is off.
    pub(super) rules: Option<Informer<DeviceTaintRule>>,
    pub(super) metrics: Metrics,
}

#[async_trait]
impl ReconcileObject<PoolStatusRequest> for Reconciler {
    async fn reconcile(&self, request: &Arc<PoolStatusRequest>, session: &Session) -> Result<(), ReconcileError> {
        if request.metadata.is_terminating() {
            return Ok(());
        }
        let expires = expires_at(request);
        if expires.is_some_and(|expires| expires < session.now()) {
            session.explain(|| "deletes the request, which has expired");
            session.delete(&**request, Delete::default()).await.ignore(ApiError::is_other_object)?;
            return Ok(());
        }
        // It is deleted after that time, and a requeue may come a moment early.
        session.requeue_by(expires.and_then(|expires| expires.checked_add(Duration::from_secs(1)).ok()));
        if request.has_status {
            session.explain(|| "keeps the request, which has its status, until it expires");
            return Ok(());
        }
        self.compute_status(request, session).await
    }
}

impl Reconciler {
    async fn compute_status(&self, request: &PoolStatusRequest, session: &Session) -> Result<(), ReconcileError> {
        let started = Instant::now();
        let slices = live_slices(&request.driver, session).await?;
        let in_use = self.in_use(&request.driver);
        let rules = self.rules.as_ref().map(Informer::list).unwrap_or_default();
        let observed = Observed { slices: &slices, in_use: &in_use, rules: &rules };
        let status = match compute(request, &observed, session.now()) {
            Computed::Status { status, pools } => {
                session.explain(|| format!("sets the status of {pools} pools"));
                status
            }
            Computed::Incomplete => {
                session.explain(|| "waits for the driver to publish all slices of a pool");
                session.requeue_after(RECHECK);
                return Ok(());
            }
        };
        let written = set_status(request, &status, session).await;
        self.metrics.processed(&request.driver, written.is_ok(), started.elapsed());
        match written {
            Err(error) if error.is_not_found() || error.is_other_object() => Ok(()),
            written => Ok(written?),
        }
    }

    /// Returns the devices of the driver that claims use, by pool.
    fn in_use(&self, driver: &InternedStr) -> BTreeMap<InternedStr, InUse> {
        let mut by_pool: BTreeMap<InternedStr, InUse> = BTreeMap::new();
        self.claims.for_each(|claim| {
            let results = self.devices.of(claim).results.iter();
            for device in results.filter(|device| device.driver == *driver) {
                by_pool.entry(device.pool.clone()).or_default().add(device);
            }
        });
        by_pool
    }
}

/// Reads the slices of a driver from the API server: a cache may be behind the request, and it would hold attributes and
/// capacities that nobody else needs.
async fn live_slices(driver: &str, session: &Session) -> Result<Vec<PublishedSlice>, ReconcileError> {
    let mut options =
        ListQuery { field_selector: Some(format!("spec.driver={driver}")), limit: Some(PAGE), ..ListQuery::default() };
    let mut slices = Vec::new();
    loop {
        let page = session.api().list(const { &PublishedSlice::RESOURCE }, None, &options).await?;
        for item in &page.items {
            let slice = PublishedSlice::decode(item.get());
            slices.push(slice.map_err(|error| ReconcileError::new(Class::Transient, error))?);
        }
        options.continue_token = page.continue_token;
        if options.continue_token.is_none() {
            return Ok(slices);
        }
    }
}

/// Writes the status of the request as the cache shows it.
async fn set_status(request: &PoolStatusRequest, status: &Value, session: &Session) -> Result<(), ApiError> {
    let metadata = json!({ "uid": request.metadata.uid, "resourceVersion": request.metadata.resource_version });
    let patch = json!({ "metadata": metadata, "status": status });
    session.patch_status(request, Patch::Merge(Payload::json(&patch))).await?;
    Ok(())
}
