//! Live lists of the Pods of a Namespace, which claims of the Namespace share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_framework::api::views::{Pod, PodDeletion, PodVolumes};
use kcm_framework::api::{DecodeError, KnownView as _, View as _};
use kcm_framework::client::ListQuery;
use kcm_framework::{Class, ReconcileError, Session};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::usage::PodUse;

/// Time for which a live list counts. Claims that are deleted together share one.
const FRESH: Duration = Duration::from_secs(1);

/// Largest number of Pods in a page.
const PAGE: u32 = 500;

/// A Pod of a live list.
#[derive(Debug)]
pub(super) struct LivePod {
    pod: Pod,
    volumes: PodVolumes,
    deletion: PodDeletion,
}

impl LivePod {
    pub(super) fn decode(json: &str) -> Result<Self, DecodeError> {
        Ok(Self {
            pod: Pod::decode(json)?,
            volumes: serde_json::from_str(json)?,
            deletion: serde_json::from_str(json)?,
        })
    }

    pub(super) fn use_of_claims(&self) -> PodUse<'_> {
        PodUse::new(&self.pod, &self.volumes, &self.deletion)
    }
}

/// The Pods of a Namespace that have volumes with claims, and when their list was requested.
type List = Option<(Instant, Arc<[LivePod]>)>;

/// The live lists of the last second, by Namespace. Workers that need the same one wait for one request.
#[derive(Default)]
pub(super) struct LivePods(Mutex<HashMap<Box<str>, Arc<tokio::sync::Mutex<List>>>>);

impl LivePods {
    /// Returns the live Pods of a Namespace that have volumes with claims, from a list that was requested within the last
    /// second, and not before `since`.
    pub(super) async fn of(
        &self,
        session: &Session,
        namespace: &str,
        since: Option<Instant>,
    ) -> Result<Arc<[LivePod]>, ReconcileError> {
        let slot = self.slot(namespace);
        let mut list = slot.lock().await;
        if let Some((at, pods)) = &*list
            && at.elapsed() < FRESH
            && since.is_none_or(|since| *at >= since)
        {
            return Ok(Arc::clone(pods));
        }
        let at = Instant::now();
        let pods: Arc<[LivePod]> = read(session, namespace).await?.into();
        *list = Some((at, Arc::clone(&pods)));
        Ok(pods)
    }

    fn slot(&self, namespace: &str) -> Arc<tokio::sync::Mutex<List>> {
        let mut slots = self.0.lock();
        // A slot that others hold is in use.
        slots.retain(|_, slot| {
            let is_fresh = |list: &List| list.as_ref().is_some_and(|(at, _)| at.elapsed() < FRESH);
            Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|list| is_fresh(&list))
        });
        Arc::clone(slots.entry(namespace.into()).or_default())
    }
}

async fn read(session: &Session, namespace: &str) -> Result<Vec<LivePod>, ReconcileError> {
    let mut options = ListQuery { limit: Some(PAGE), ..ListQuery::default() };
    let mut pods = Vec::new();
    loop {
        let page = session.api().list(const { &Pod::RESOURCE }, Some(namespace), &options).await?;
        for item in &page.items {
            let pod = LivePod::decode(item.get()).map_err(|error| ReconcileError::new(Class::Transient, error))?;
            if !pod.volumes.volumes.is_empty() {
                pods.push(pod);
            }
        }
        match page.continue_token {
            Some(token) => options.continue_token = Some(token),
            None => return Ok(pods),
        }
    }
}
