//! The plan: the bundle of the CA is created or updated, and then all others of the signer are deleted.

use std::fmt::Write as _;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use kcm_framework::api::{Documented, EditError, Resource};
use serde_json::{Value, json};

/// The signer of the bundle.
pub(super) const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";

/// The beginning of the name of the bundle.
const PREFIX: &str = "kubernetes.io:kube-apiserver-serving:";

/// Number of bytes of the digest in the name, as upstream.
const DIGEST_BYTES: usize = 12;

kcm_framework::api::view! {
    /// A cluster trust bundle.
    pub(super) struct TrustBundleView {
        resource: Resource::cluster_scoped("certificates.k8s.io", "v1", "clustertrustbundles", "ClusterTrustBundle");

        "spec" {
            pub(super) bundle: String = "trustBundle";
        }
    }
}

/// A cluster trust bundle with its document, so that an update keeps all other fields.
pub(super) type TrustBundle = Documented<TrustBundleView>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Publication {
    None,
    Create(Value),
    Update(Box<TrustBundle>),
}

/// The writes of a reconcile, in this order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) publication: Publication,
    /// Bundles of other content. The new bundle exists before they are deleted.
    pub(super) outdated: Vec<Arc<TrustBundle>>,
}

/// Returns the name of the bundle with this content.
pub(super) fn name(root_ca: &str) -> String {
    let digest = digest(&SHA256, root_ca.as_bytes());
    let mut name = PREFIX.to_owned();
    for byte in digest.as_ref().iter().take(DIGEST_BYTES) {
        write!(name, "{byte:02x}").expect("a string takes everything");
    }
    name
}

/// Plans for the cached bundles of the signer.
pub(super) fn plan(root_ca: &str, cached: Vec<Arc<TrustBundle>>) -> Result<Plan, EditError> {
    let name = name(root_ca);
    let (current, outdated): (Vec<_>, Vec<_>) =
        cached.into_iter().partition(|bundle| bundle.metadata.key.name() == name);
    let publication = match current.first() {
        None => Publication::Create(json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle",
            "metadata": { "name": name },
            "spec": { "signerName": SIGNER, "trustBundle": root_ca },
        })),
        Some(bundle) if bundle.bundle == root_ca => Publication::None,
        Some(bundle) => {
            let mut updated = TrustBundle::clone(bundle);
            updated.document.set(&["spec", "trustBundle"], root_ca)?;
            Publication::Update(Box::new(updated))
        }
    };
    Ok(Plan { publication, outdated })
}
