//! Config maps that own each other.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1 as corev1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;
use kcm_e2e_harness::wait::eventually;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};

use super::super::alone::Alone;

/// The config maps of a namespace.
pub(super) struct Maps(pub(super) Api<corev1::ConfigMap>);

impl Maps {
    pub(super) fn of(alone: &Alone, namespace: &str) -> Self {
        Self(Api::namespaced(alone.plane.client(), namespace))
    }

    /// Creates one, whose owner it blocks.
    pub(super) async fn create(&self, name: &str, owner: Option<&corev1::ConfigMap>) -> Result<corev1::ConfigMap> {
        let owners: Vec<_> = owner.into_iter().map(|owner| reference(owner, true)).collect();
        self.create_with(name, owners).await
    }

    pub(super) async fn create_with(
        &self,
        name: &str,
        owners: Vec<metav1::OwnerReference>,
    ) -> Result<corev1::ConfigMap> {
        let mut map = corev1::ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        map.metadata.owner_references = (!owners.is_empty()).then_some(owners);
        self.0.create(&PostParams::default(), &map).await.with_context(|| format!("cannot create {name}"))
    }

    pub(super) async fn delete(&self, name: &str, policy: &DeleteParams) -> Result<()> {
        self.0.delete(name, policy).await.map(drop).with_context(|| format!("cannot delete {name}"))
    }

    /// All but what a controller of service accounts adds, by name.
    pub(super) async fn list(&self) -> Result<Vec<corev1::ConfigMap>> {
        let mut maps = self.0.list(&ListParams::default()).await?.items;
        maps.retain(|map| map.name_any() != "kube-root-ca.crt");
        Ok(maps)
    }

    pub(super) async fn are(&self, expected: &[&str]) -> Result<()> {
        eventually(&format!("{expected:?} to be left"), async || {
            let names: Vec<String> = self.list().await?.iter().map(ResourceExt::name_any).collect();
            ensure!(names == expected, "there are {names:?}");
            Ok(())
        })
        .await
    }
}

/// A reference to an owner.
pub(super) fn reference(owner: &corev1::ConfigMap, blocks: bool) -> metav1::OwnerReference {
    metav1::OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        block_owner_deletion: Some(blocks),
        controller: None,
    }
}

/// Whether one is deleted in the foreground, and waits for its dependents.
pub(super) fn waits(map: &corev1::ConfigMap) -> bool {
    map.metadata.deletion_timestamp.is_some() && map.finalizers().iter().any(|it| it == "foregroundDeletion")
}
