//! `ValidatingAdmissionPolicy` status: checks the types in the expressions of policies, and writes warnings into their
//! status.
//!
//! Reads `ValidatingAdmissionPolicies`, discovery, and the `OpenAPI` documents of the kinds that policies name. Applies
//! `status.typeChecking` and `status.observedGeneration` of policies.
//!
//! ```text
//! change of a policy ──▶ key ──▶ rules ──── kinds ──▶ group, version, kind ──▶ OpenAPI document ── schema ──▶ types ──┐
//! change of discovery ──▶ keys of policies with  paramKind ──▶ group, version, kind ──▶ …                            ──┼── warnings ──▶ status
//!                         something unresolved   validations, variables ───────────────────────────────────────────────┘
//! ```
//!
//! # Guarantees
//! - A policy is checked when its spec is newer than `status.observedGeneration`. The status then has `typeChecking`,
//!   also without warnings, but for a policy that had warnings before: server-side apply drops the empty field.
//! - Warnings are equal to Kubernetes 1.37.2: their order, the kinds in them, positions and texts. A corpus of
//!   policies that upstream has checked is compared in the tests.
//! - A policy with a resource that discovery does not know, or a kind without a schema, is checked again when there is one.
//!   Its status is written again only if the warnings differ. A restart forgets which schemas were missing.
//! - A document takes bounded time and memory: references that contain themselves end, and a schema with too many
//!   parts or too much depth is refused. One document is held at a time; types of at most 32 kinds are kept, until a minute
//!   after the last check.
//! - Two checks of a policy give equal warnings.
//! - The configuration carries the uid: a policy recreated under the same name does not get the result of another one.
//!   Conditions of others stay.
//! - At rest nothing is requested.
//!
//! # What it does not do
//! As upstream, it does not check match conditions and audit annotations. Warnings do not keep the API server from enforcing
//! a policy.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/validatingadmissionpolicystatus` and the package `validating` of the API server's
//! admission plugins, in Kubernetes 1.37.2. `docs/differences.md` has the differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Names of types in warnings end with nine digits of a hash of the kind. | They end with the nanoseconds of the clock. | A second check writes nothing. |
//! | Variables are compiled once for a kind and a policy. | They are compiled once for each expression. | It takes less time. |
//! | Syntax errors have a wording of their own, at the position of upstream. | They have the wording of ANTLR. | The parser is another. Policies with syntax errors cannot be created. |
//! | A policy with something unresolved is checked again. | It is checked once for each generation. | A definition may be created after the policies about it. |
//! | Schemas of all kinds come from the API server. | Those of built-in kinds are compiled in. | They are the schemas of the version that runs. |
//! | A rule that names a resource by a singular name other than its lower-case kind finds no kind. | It finds it. | The snapshot of discovery has no singular names. |
//! | The configuration carries the uid. | It has none. | See the guarantees. |
//! | An optional element of type `dyn` in a literal is accepted. | The check panics. | A policy must not stop the check of others. |

mod apply;
mod event_mapping;
pub mod kinds;
mod policy;
mod reconcile;
pub mod resources;
pub mod schema;
mod schemas;
pub mod status;
pub mod types;
mod unresolved;
pub mod warnings;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt as _;
use kcm_framework::config::{Section, Setting, Workers};
use kcm_framework::workqueue::Priority;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source};

use event_mapping::key_for_policy;
use reconcile::Reconciler;
use schemas::Schemas;
use unresolved::Memory;

use crate::fresh_discovery::FreshDiscovery;

const SECTION: Section =
    Section::new("Validatingadmissionpolicy-status-controller", "ValidatingAdmissionPolicyStatusController");

/// The number of policies that are checked at the same time.
const SYNCS: Setting<Workers> = SECTION.workers(
    "concurrent-validating-admission-policy-status-syncs",
    "ConcurrentPolicySyncs",
    "ValidatingAdmissionPolicies",
    5,
);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("validatingadmissionpolicy-status-controller", init).settings(&[SYNCS.row()]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let (schemas, memory) = (Arc::new(Schemas::default()), Arc::new(Memory::default()));
    let mut policies = context.control_loop("validatingadmissionpolicy-status").workers(&SYNCS);
    let queue = policies.queue();
    let informer = policies.primary_with(Source::known().resync(), key_for_policy);
    let discovery = context.discovery().clone();
    let reconciler = Reconciler {
        discovery: FreshDiscovery::new(discovery.clone()),
        schemas: Arc::clone(&schemas),
        memory: Arc::clone(&memory),
    };
    let clock = Arc::clone(context.clock());
    let changes = discovery.changes();
    let look_again = {
        let queue = queue.downgrade();
        move || {
            let Some(queue) = queue.upgrade() else { return };
            for key in memory.look_again(clock.now()) {
                queue.add(key, Priority::Live);
            }
        }
    };
    let look_again = Arc::new(look_again);
    Ok(Loops::from(policies.reconcile_objects(informer, reconciler)).task(
        "validatingadmissionpolicy-status-schemas",
        move |cancel| {
            let (mut changes, look_again, schemas) = (changes.clone(), Arc::clone(&look_again), Arc::clone(&schemas));
            async move {
                let follow = async {
                    while changes.changed().await.is_ok() {
                        look_again();
                    }
                };
                let run = async { tokio::join!(follow, schemas.drop_unused()) };
                // Cancelled, it has nothing to clean up.
                let _ended = cancel.run_until_cancelled(run).await;
                Ok(())
            }
            .boxed()
        },
    ))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
