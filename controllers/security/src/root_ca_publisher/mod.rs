//! Root CA publisher: keeps the config map `kube-root-ca.crt` with the CA of the API server in every namespace.
//!
//! Reads namespaces, and of all config maps those of that name. Creates and updates these.
//!
//! ```text
//! change of a namespace or of its config map ──▶ plan ──▶ create, or put
//! ```
//!
//! # Guarantees
//! - The data is the root CA and nothing else; the annotation `kubernetes.io/description` says what it is for. An
//!   annotation that says something else stays while the data is right.
//! - Other config maps are neither listed, watched nor cached (kubernetes#115699).
//! - Labels, further annotations and fields that this version does not know survive an update.
//! - A namespace that is terminating or gone is left alone.
//!
//! # What it does not do
//! It reads `--root-ca-file` at the start and not again. Without the flag it publishes the CA that the kubeconfig holds as
//! data; where the kubeconfig names a file, and in a pod, the config map is empty, as upstream's is.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/certificates/rootcacertpublisher` of Kubernetes 1.36.3. Everything else is as there, metrics
//! included.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | only config maps of that name are cached | all of them | memory |
//! | a `--root-ca-file` that cannot be used is tried again | ends the process | the other controllers go on |

mod apply;
mod metrics;
mod plan;
mod reconcile;
mod event_mapping;

#[cfg(test)]
mod tests;

use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};
use kcm_informers::ListOptions;

use crate::shared::{ROOT_CA_ROW, root_ca};
use metrics::Metrics;
use reconcile::Reconciler;
use event_mapping::{keys_for_config_map, keys_for_namespace};

/// The name of the config map.
const CONFIG_MAP: &str = "kube-root-ca.crt";

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("root-ca-certificate-publisher-controller", init)
        .aliases(&["root-ca-cert-publisher"])
        .service_account("root-ca-cert-publisher")
        .settings(&[ROOT_CA_ROW]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let root_ca = root_ca(context)?.into();
    let mut namespaces = context.control_loop("root_ca_cert_publisher");
    let of_that_name =
        ListOptions { field_selector: Some(format!("metadata.name={CONFIG_MAP}")), ..ListOptions::default() };
    let config_maps = namespaces.watches_for(Source::known().list_options(of_that_name), keys_for_config_map);
    let informer = namespaces.watches(keys_for_namespace);
    namespaces.keyed_by(&informer);
    let metrics = Metrics::register(context.metrics());
    Ok(Loops::new().with(namespaces.reconcile(Reconciler { config_maps, root_ca, metrics })))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
