//! Storage version garbage collector: removes the entries of API servers that are gone from `StorageVersions`.
//!
//! Reads the identity Leases of API servers in `kube-system`, and `StorageVersions`. Updates the status of `StorageVersions`,
//! and deletes those without any entry.
//!
//! ```text
//! deleted Lease ──event mapping──▶ its name ──▶ the StorageVersions that name it ─┐
//! StorageVersion that names an unknown Lease ──event mapping─────────────────────┴▶ key ──▶ live Leases ──▶ plan ──▶ status, delete
//!                                                                                                         (pure)
//! ```
//!
//! # Guarantees
//! - An identity Lease is a Lease in `kube-system` with the label `apiserver.kubernetes.io/identity=kube-apiserver`.
//! - An entry is removed only if its Lease is in no cache and a live read of the same reconcile has shown that it does not
//!   exist, or lacks the label. An error of that read removes nothing.
//! - The other entries keep their order. `status.commonEncodingVersion` and the condition `AllEncodingVersionsEqual` follow
//!   from them, as API servers compute both.
//! - A `StorageVersion` that loses its last entry is deleted. One that never had an entry is not changed.
//! - Updates carry the resource version, deletions the uid and the resource version: an entry that an API server adds at the
//!   same moment is not lost.
//!
//! # What it does not do
//! It deletes no Leases. API servers delete those that have expired.
//!
//! It does not run by default: the gate `StorageVersionAPI` is off, and the API server serves `StorageVersions` with
//! `--runtime-config=internal.apiserver.k8s.io/v1alpha1=true` only.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/storageversiongc` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | An error of the read of a Lease fails the key. | It removes the entry. | A busy API server must not cost a live one its entry. |
//! | A Lease that the cache holds is not read, and others once for each `StorageVersion`. | The Lease of every entry is read. | Requests. |
//! | `StorageVersions` are read from the cache. | They are read and listed live. | Their resource version guards the write. |
//! | A deleted Lease enqueues the `StorageVersions` that name it. | Its own worker writes them. | Two workers would conflict. |
//! | A deletion carries uid and resource version. | It carries no precondition. | An entry that is added at the same moment is not lost. |
//! | Only identity Leases are cached, with their metadata. | All Leases are cached. | Memory. |

mod event_mapping;
mod plan;
mod reconcile;
mod view;

#[cfg(test)]
mod tests;

use kcm_framework::api::{KnownView as _, ObjectKey, PartialObjectMeta, views};
use kcm_framework::config::{Gate, GateStage};
use kcm_framework::informers::ListOptions;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::{key_for_lease, key_for_storage_version};
use plan::IDENTITY;
use reconcile::{LeaseReconciler, Reconciler};
use view::StorageVersion;

/// Lets API servers publish their identity as Leases.
const API_SERVER_IDENTITY: Gate =
    Gate { name: "APIServerIdentity", default: true, stage: GateStage::Beta, locked: false };

/// Lets API servers publish the versions that they store.
const STORAGE_VERSION_API: Gate =
    Gate { name: "StorageVersionAPI", default: false, stage: GateStage::Alpha, locked: false };

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("storageversion-garbage-collector-controller", init)
        .aliases(&["storage-version-gc"])
        .service_account("storage-version-garbage-collector")
        .required_gates(&[API_SERVER_IDENTITY, STORAGE_VERSION_API]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let leases = || -> Result<Source<PartialObjectMeta>, BoxError> {
        let (label, value) = IDENTITY;
        let label_selector = Some(format!("{label}={value}").parse()?);
        let options = ListOptions { label_selector, ..ListOptions::namespace("kube-system") };
        Ok(Source::of(views::Lease::RESOURCE).list_options(options))
    };
    let mut storage_versions = context.control_loop("storage_version_garbage_collector_storageversions");
    let known = storage_versions.reads_for(leases()?);
    let of_mapping = known.clone();
    let objects = storage_versions.primary_with(Source::<StorageVersion>::known().resync(), move |change| {
        key_for_storage_version(change, &of_mapping)
    });
    let of_server = objects.index("apiserver", |object| object.servers());
    let queue = storage_versions.queue();

    let mut deleted_leases = context.control_loop::<ObjectKey>("storage_version_garbage_collector_leases");
    deleted_leases.watches_for(leases()?, key_for_lease);
    deleted_leases.reads::<StorageVersion>();
    let deleted_leases = deleted_leases.reconcile(LeaseReconciler { of_server, queue });
    let storage_versions = storage_versions.reconcile_objects(objects, Reconciler { leases: known });
    Ok(Loops::from(storage_versions).with(deleted_leases))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
