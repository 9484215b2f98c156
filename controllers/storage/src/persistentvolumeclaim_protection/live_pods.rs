//! Live lists of the Pods of a Namespace, which claims of the Namespace share.

use std::sync::Arc;

use kcm_framework::api::views::{Pod, PodDeletion, PodVolumes};
use kcm_framework::api::{DecodeError, KnownView as _, View as _};
use kcm_framework::client::ListQuery;
use kcm_framework::{Class, ReconcileError, Session, SharedReads};

use super::usage::PodUse;

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

/// The live lists of the last second, by Namespace: claims that are deleted together share one.
pub(super) type LivePods = SharedReads<Box<str>, Arc<[LivePod]>>;

/// Reads the Pods of a Namespace that have volumes with claims.
pub(super) async fn read(session: &Session, namespace: &str) -> Result<Arc<[LivePod]>, ReconcileError> {
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
            None => return Ok(pods.into()),
        }
    }
}
