//! Storage version migrator: rewrites the objects of a resource, so that the API server stores all of them in its current
//! version.
//!
//! Reads `StorageVersionMigrations`, the definition of the custom resource that one names, and the metadata of its objects.
//! Updates the status of migrations, applies to the status of definitions, and patches objects.
//!
//! ```text
//! change of a migration ─┬─▶ its resource ──▶ runner: one migration of a resource runs, the oldest first ──▶ condition Running
//!                        ├─▶ its key ──▶ checkpoint: the version up to which objects are migrated ──▶ status.resourceVersion
//!                        └─▶ its key ──▶ migration: list a page, patch its objects ──▶ next page, or Succeeded, or Failed
//! ```
//!
//! # Guarantees
//! - At most one migration of a resource runs. The next one begins when it has succeeded or failed.
//! - A patch carries the version of the object and nothing else: it changes no field. A conflict or an object that does not
//!   exist counts as done, because that change stored it in the current version.
//! - Objects that are newer than the checkpoint are not patched.
//! - Errors of the API server that may pass are retried with back-off; the condition `Running` says so. Others fail the
//!   migration.
//! - While a custom resource is migrated, its definition has the condition `StorageMigrating`. `status.storedVersions` is cut
//!   to the storage version only after success, and only if the definition has not changed meanwhile.
//! - A retry continues behind the last object that was migrated. The successor of a leader begins anew, which costs patches
//!   without effect.
//! - Updates of the status carry the resource version, and so do the configurations applied to definitions.
//! - It sends lists, patches, reads of definitions, and updates of the status, for which upstream's role suffices.
//!
//! # What it does not do
//! It creates no migrations. A migration that is deleted while it runs leaves `StorageMigrating` on the definition until the
//! next migration of the resource, as by upstream.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/storageversionmigrator` of Kubernetes 1.37.2. `docs/differences.md` has the differences that
//! all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Objects are listed in pages of 500, with their metadata. | They are read from the caches of the garbage collector. | The list is never older than the checkpoint, and kinds that the garbage collector ignores are migrated too. |
//! | The garbage collector may be off. | It is an error. | The migrator does not need it. |
//! | A retry continues behind the last migrated object. | It begins anew. | Requests. |
//! | After a failed migration, the definition keeps its stored versions. | They are cut to the storage version. | Objects of older versions may be left. |
//! | Every configuration that is applied to a definition has `storedVersions`. | Some lack it, which removes the list. | Server-side apply removes fields that a configuration lacks. |
//! | A definition that already says so is not patched. | It is patched. | Requests. |
//! | A resource is looked up in the snapshot of discovery, which is read anew before a migration fails. | It is read for each migration. | Requests, and no migration fails because of an old snapshot. |
//! | No definition is read for resources of the core group. | It is. | There is none. |
//! | One client has the higher rate limit. | The status of migrations is written through a client of its own. | It has a handful of requests for each migration. |

mod apply;
mod checkpoint;
mod conditions;
mod definition;
mod event_mapping;
mod lookup;
mod migrate;
mod progress;
mod runner;
mod text;
mod view;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::client::ClientLimits;
use kcm_framework::config::{Gate, GateStage};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use checkpoint::Checkpoints;
use event_mapping::{key_for_checkpoint, key_for_migration};
use lookup::Lookup;
use migrate::Migrator;
use progress::Positions;
use runner::{Runner, resources_for};
use view::{GroupResource, Migration};

/// Turns the controller on.
const STORAGE_VERSION_MIGRATOR: Gate =
    Gate { name: "StorageVersionMigrator", default: true, stage: GateStage::Ga, locked: false };

/// Lets upstream's caches tell their version, which its migrator needs.
const INFORMER_RESOURCE_VERSION: Gate =
    Gate { name: "InformerResourceVersion", default: true, stage: GateStage::Ga, locked: false };

/// The number of migrations of different resources that are reconciled at the same time.
const WORKERS: usize = 5;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("storage-version-migrator-controller", init)
    .aliases(&["svm"])
    .feature_gates(&[STORAGE_VERSION_MIGRATOR, INFORMER_RESOURCE_VERSION])
    .client_limits(ClientLimits::Times { qps: 20, burst: 100 });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    for gate in [STORAGE_VERSION_MIGRATOR, INFORMER_RESOURCE_VERSION] {
        if !context.gate(&gate) {
            return Ok(Loops::none(format!("the feature gate {} is off", gate.name)));
        }
    }
    let lookup = Arc::new(Lookup::new(context.discovery().clone()));

    let mut runner = context.control_loop::<GroupResource>("resource-version-controller").writes_anything();
    let migrations = runner.watches_for(Source::known().resync(), resources_for);
    let of_group = migrations.index("group", |migration: &Migration| [migration.group_resource().group]);
    let runner = runner.reconcile(Runner { migrations, of_group });

    let mut checkpoints = context.control_loop("resource-version-controller");
    let migrations = checkpoints.primary_with(Source::known().resync(), key_for_checkpoint);
    let checkpoints = checkpoints.reconcile_objects(migrations, Checkpoints { lookup: Arc::clone(&lookup) });

    let mut migrator = context.control_loop("storage-version-migrator-controller").workers(WORKERS).writes_anything();
    let migrations = migrator.primary_with(Source::known().resync(), key_for_migration);
    let migrator = migrator.reconcile_objects(migrations, Migrator { lookup, positions: Positions::default() });
    Ok(Loops::from(migrator).with(checkpoints).with(runner))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
