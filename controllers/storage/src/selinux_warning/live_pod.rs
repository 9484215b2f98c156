//! A Pod as the API server returns it, for the sources of its inline volumes, which no cache holds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kcm_framework::api::views::Pod;
use kcm_framework::api::{KnownView as _, Uid};
use kcm_framework::client::{ResponseExt as _, Subresource};
use kcm_framework::{ReconcileError, Session};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The JSON of the volumes of a Pod, by their names.
#[derive(Debug)]
pub(super) struct LivePod(BTreeMap<String, Box<RawValue>>);

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    uid: Uid,
}

#[derive(Deserialize, Default)]
struct Spec {
    #[serde(default)]
    volumes: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

impl LivePod {
    /// Reads the volumes of a Pod. Returns `None` if the Pod was deleted or recreated.
    pub(super) async fn read(pod: &Pod, session: &Session) -> Result<Option<Self>, ReconcileError> {
        let pods = const { &Pod::RESOURCE };
        let live = session.api().get_raw(pods, &pod.metadata.key, Subresource::None).await.ignore_not_found();
        let Some(body) = live? else { return Ok(None) };
        Ok(Self::decode(&body, &pod.metadata.uid))
    }

    fn decode(body: &[u8], uid: &Uid) -> Option<Self> {
        let Object { metadata, spec } = serde_json::from_slice(body).ok()?;
        let named = |volume: Box<RawValue>| {
            let name = serde_json::from_str::<Named<'_>>(volume.get()).ok()?.name.into_owned();
            Some((name, volume))
        };
        (metadata.uid == *uid).then(|| Self(spec.volumes.into_iter().filter_map(named).collect()))
    }

    /// Returns the JSON of a volume.
    pub(super) fn volume(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|volume| volume.get())
    }
}
