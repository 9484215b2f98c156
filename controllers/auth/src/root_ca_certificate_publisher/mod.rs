//! Root CA publisher: keeps the `ConfigMap` `kube-root-ca.crt` with the CA of the API server in every Namespace.
//!
//! Reads Namespaces, and the `ConfigMaps` of that name. Creates and updates these.
//!
//! ```text
//! change of a Namespace or of its ConfigMap ──event mapping──▶ key of the Namespace ──▶ plan ──▶ create, update
//!                                                                                      (pure)
//! ```
//!
//! # Guarantees
//! - The data is the root CA and nothing else. The annotation `kubernetes.io/description` says what the `ConfigMap` is
//!   for; another description is not changed while the data is correct.
//! - Other `ConfigMaps` are neither listed, watched nor cached (kubernetes#115699).
//! - Labels, other annotations and fields that this version does not know survive an update.
//! - A changed `--root-ca-file` is published in every Namespace. A file that cannot be used leaves the previous content.
//! - It is no error if the Namespace is terminating or deleted.
//!
//! # What it does not do
//! Without `--root-ca-file` it publishes the CA that the kubeconfig holds as data, and does not follow it. If the kubeconfig
//! names a file, and in a Pod, the `ConfigMap` is empty, as upstream's is.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/certificates/rootcacertpublisher` of Kubernetes 1.37.2. `docs/differences.md` has the
//! differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Only `ConfigMaps` of that name are cached. | All `ConfigMaps` are cached. | Memory. |
//! | `--root-ca-file` is read every five seconds. | It is read once. | A rotation needs no restart. |
//! | A `--root-ca-file` that cannot be used is read again with back-off. | It ends the process. | The other controllers continue. |

mod apply;
mod event_mapping;
mod plan;
mod reconcile;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::informers::ListOptions;
use kcm_framework::workqueue::Priority;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use crate::shared::{ROOT_CA_FILE, RootCaSource, SyncFamilies, SyncMetrics};
use event_mapping::{keys_for_config_map, keys_for_namespace};
use reconcile::Reconciler;

/// The name of the config map.
const CONFIG_MAP: &str = "kube-root-ca.crt";

const SYNCS: SyncFamilies = SyncFamilies {
    total: (
        "root_ca_cert_publisher_sync_total",
        "Reconciles of namespaces by the root CA publisher, by the status code of the response",
    ),
    seconds: (
        "root_ca_cert_publisher_sync_duration_seconds",
        "Seconds that a reconcile of a namespace took, by the status code of the response",
    ),
};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("root-ca-certificate-publisher-controller", init)
        .aliases(&["root-ca-cert-publisher"])
        .service_account("root-ca-cert-publisher")
        .settings(const { &[ROOT_CA_FILE.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let root_ca = RootCaSource::read(context)?;
    let mut control_loop = context.control_loop("root_ca_cert_publisher");
    let of_that_name =
        ListOptions { field_selector: Some(format!("metadata.name={CONFIG_MAP}")), ..ListOptions::default() };
    let config_maps = control_loop.watches_for(Source::known().list_options(of_that_name), keys_for_config_map);
    let namespaces = control_loop.primary_with(Source::known(), keys_for_namespace);
    let queue = control_loop.queue();
    let metrics = SyncMetrics::register(context.metrics(), &SYNCS)?;
    let reconciler = Reconciler { config_maps, root_ca: Arc::clone(&root_ca), metrics };
    let loops = control_loop.reconcile(reconciler).into();
    Ok(root_ca.follow(loops, "root_ca_cert_publisher_file", context, move || {
        for namespace in namespaces.list() {
            queue.add(namespace.metadata.key.clone(), Priority::Initial);
        }
    }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
