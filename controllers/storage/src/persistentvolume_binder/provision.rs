//! Provisioning: by an external component, which an annotation names, or as a directory of the host.

use std::sync::Arc;

use kcm_framework::api::ObjectKey;
use kcm_framework::api::views::{Node, PersistentVolume, VolumeMode};
use kcm_framework::client::Payload;
use kcm_framework::informers::Informer;
use kcm_framework::{ReconcileError, Session};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::claim_plan::Surroundings as _;
use super::drafts::{ClaimDraft, WriteError, is_refused};
use super::edits;
use super::events::BinderEvent;
use super::host_path;
use super::metrics::{Metrics, Operation};
use super::plugins::{Actor, Plugin, provisioner};
use super::view::StorageClass;
use super::vocabulary::{
    Annotations, BOUND_BY_CONTROLLER, IN_TREE_FINALIZER, PROVISIONED_BY, SELECTED_NODE, YES, class_of_claim, volume_key,
};
use super::world::World;

/// The settings and the caches of provisioning.
pub(super) struct Provisioning {
    pub(super) is_enabled: bool,
    pub(super) provisions_host_paths: bool,
    pub(super) nodes: Informer<Node>,
}

impl Provisioning {
    /// Has a volume provisioned for a claim.
    pub(super) async fn provision(
        &self,
        draft: &mut ClaimDraft,
        world: &World,
        metrics: &Metrics,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        if !self.is_enabled {
            session.explain(|| "waits for a volume: dynamic provisioning is turned off");
            return Ok(());
        }
        let claim = Arc::clone(&draft.claim);
        let name = class_of_claim(&claim);
        let Some(class) = world.class(name) else {
            let message = format!("storageclass.storage.k8s.io {name:?} not found");
            world.record_claim(&claim, &BinderEvent::provisioning_failed(message), session);
            return Ok(());
        };
        let key = &claim.metadata.key;
        match provisioner(&class.provisioner) {
            Err(error) => {
                world.record_claim(&claim, &BinderEvent::provisioning_failed(error.to_string()), session);
                Ok(())
            }
            Ok(Actor::External(driver)) => {
                metrics.started(key, Operation::Provision, driver, Instant::now());
                let edit = edits::claim_provisioner(&draft.document, driver);
                if let Err(error) = draft.update(session, edit).await {
                    metrics.failed(key, Operation::Provision);
                    let event = BinderEvent::provisioning_failed(format!("Error saving claim: {}", text(&error)));
                    world.record_claim(&claim, &event, session);
                    return Err(error.into());
                }
                world.record_claim(&claim, &BinderEvent::external_provisioning(driver), session);
                Ok(())
            }
            Ok(Actor::HostPath) => {
                metrics.started(key, Operation::Provision, Plugin::HostPath.name(), Instant::now());
                self.provision_host_path(draft, &class, world, metrics, session).await
            }
        }
    }

    async fn provision_host_path(
        &self,
        draft: &mut ClaimDraft,
        class: &StorageClass,
        world: &World,
        metrics: &Metrics,
        session: &Session,
    ) -> Result<(), ReconcileError> {
        let claim = Arc::clone(&draft.claim);
        let key = &claim.metadata.key;
        let back_offs = &world.registries.back_offs;
        if let Some(wait) = back_offs.wait(key, Instant::now()) {
            session.requeue_after(wait);
            session.explain(|| "waits for the next attempt to provision a volume");
            return Ok(());
        }
        match self.try_host_path(draft, class, metrics, session).await {
            Ok(Some(volume)) => {
                back_offs.forget(key);
                let event = BinderEvent::provisioned(volume.name(), Plugin::HostPath.name());
                world.record_claim(&claim, &event, session);
                tracing::info!(volume = volume.name(), "Provisioned a volume");
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(Failure::Write(error)) => {
                metrics.failed(key, Operation::Provision);
                Err(error.into())
            }
            Err(Failure::Refused { message, selects_another_node }) => {
                session.requeue_after(back_offs.failed(key, Instant::now()));
                metrics.failed(key, Operation::Provision);
                world.record_claim(&claim, &BinderEvent::provisioning_failed(message), session);
                if selects_another_node {
                    let edit = edits::without_selected_node(&draft.document);
                    draft.update(session, edit).await?;
                }
                Ok(())
            }
        }
    }

    /// Provisions a directory and creates its volume, unless the volume exists.
    async fn try_host_path(
        &self,
        draft: &mut ClaimDraft,
        class: &StorageClass,
        metrics: &Metrics,
        session: &Session,
    ) -> Result<Option<ObjectKey>, Failure> {
        let plugin = Plugin::HostPath.name();
        let claim = Arc::clone(&draft.claim);
        if claim.raw(&["spec", "dataSource"]).is_some_and(|source| source.get() != "null") {
            return Err(Failure::refused(format!(
                "plugin {plugin:?} is not a CSI plugin. Only CSI plugin can provision a claim with a datasource"
            )));
        }
        let edit = edits::claim_provisioner(&draft.document, &class.provisioner);
        draft.update(session, edit).await?;
        let volume = volume_key(&format!("pvc-{}", claim.metadata.uid));
        if session.live_meta::<PersistentVolume>(&volume).await.map_err(WriteError::from)?.is_some() {
            return Ok(None);
        }
        if !class.mount_options.is_empty() {
            let options: Vec<&str> = class.mount_options.iter().map(|option| &**option).collect();
            return Err(Failure::refused(format!(
                "Mount options are not supported by the provisioner but StorageClass {:?} has mount options [{}]",
                class.metadata.key.name(),
                options.join(" ")
            )));
        }
        if !self.provisions_host_paths {
            return Err(Failure::refused(format!(
                "Failed to create provisioner: provisioning in volume plugin {plugin:?} is disabled"
            )));
        }
        if let Some(node) = Annotations::of(&draft.document).get(SELECTED_NODE)
            && self.nodes.get(&ObjectKey::cluster_scoped(node)).is_none()
        {
            return Err(Failure::refused(format!("Failed to get target node: node {node:?} not found")));
        }
        let path = host_path::path_for(&claim.metadata.uid.to_string());
        create_directory(claim.volume_mode, &path, class, metrics).await?;
        let object = new_volume(volume.name(), &path, draft, class);
        match session.create::<PersistentVolume>(&volume, Payload::json(&object)).await {
            Ok(_) => Ok(Some(volume)),
            // The name contains the uid of the claim: an earlier attempt has created it.
            Err(error) if error.is_already_exists() || error.is_probably_created() => Ok(Some(volume)),
            // The volume may exist, and then it needs its directory.
            Err(error) if !is_refused(&error) => Err(Failure::Write(error.into())),
            Err(error) => {
                let removed = in_background(move || host_path::delete(&path).map_err(|error| error.to_string())).await;
                if let Err(error) = removed {
                    tracing::warn!(error, "Cannot delete the directory of a volume that was not created");
                }
                Err(Failure::refused(format!(
                    "Error creating provisioned PV object for claim {}: {}. Deleting the volume.",
                    claim.metadata.key,
                    error.message()
                )))
            }
        }
    }
}

async fn create_directory(
    mode: VolumeMode,
    path: &str,
    class: &StorageClass,
    metrics: &Metrics,
) -> Result<(), Failure> {
    let start = Instant::now();
    let created = match mode {
        VolumeMode::Block => Err(format!("{} does not support block volume provisioning", Plugin::HostPath.name())),
        VolumeMode::Filesystem => {
            let path = path.to_owned();
            in_background(move || host_path::create(&path).map_err(|error| error.to_string())).await
        }
    };
    metrics.stored(Operation::Provision, start, created.is_err());
    created.map_err(|error| Failure::Refused {
        message: format!("Failed to provision volume with StorageClass {:?}: {error}", class.metadata.key.name()),
        selects_another_node: true,
    })
}

/// A volume that was not provisioned.
enum Failure {
    /// A write of the claim or a read failed.
    Write(WriteError),
    /// The operation failed, and is repeated after its back-off.
    Refused { message: String, selects_another_node: bool },
}

impl Failure {
    fn refused(message: String) -> Self {
        Self::Refused { message, selects_another_node: false }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

fn text(error: &WriteError) -> String {
    match error {
        WriteError::Api(error) => error.message(),
        WriteError::Edit(error) => error.to_string(),
    }
}

/// Runs file operations on a thread of their own, because one thread does everything else.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Returns the volume of a directory that was provisioned for a claim.
fn new_volume(name: &str, path: &str, draft: &ClaimDraft, class: &StorageClass) -> Value {
    let claim = &*draft.claim;
    let policy = if class.reclaim_policy.is_empty() { "Delete" } else { &*class.reclaim_policy };
    let finalizers: &[&str] = if policy == "Delete" { &[IN_TREE_FINALIZER] } else { &[] };
    let version = draft.document.raw(&["metadata", "resourceVersion"]);
    let modes = claim.raw(&["spec", "accessModes"]).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let modes = modes.filter(|modes| modes.as_array().is_some_and(|modes| !modes.is_empty()));
    let storage = claim.raw(&["spec", "resources", "requests", "storage"]);
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "finalizers": finalizers,
            "annotations": {
                "kubernetes.io/createdby": "hostpath-dynamic-provisioner",
                BOUND_BY_CONTROLLER: YES,
                PROVISIONED_BY: Plugin::HostPath.name(),
            },
        },
        "spec": {
            "persistentVolumeReclaimPolicy": policy,
            "accessModes": modes.unwrap_or_else(|| json!(["ReadWriteOnce"])),
            "capacity": { "storage": storage },
            "hostPath": { "path": path },
            "storageClassName": class_of_claim(claim),
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1",
                "namespace": claim.metadata.key.namespace(), "name": claim.metadata.key.name(),
                "uid": claim.metadata.uid, "resourceVersion": version,
            },
        },
    })
}
