//! Ownership by controller reference: which objects an owner controls, adopts and releases.
//!
//! An owner controls the objects whose controller reference names it, by kind, name and uid. An owner that selects its
//! dependents by labels also **adopts** orphans that it selects, and **releases** objects that it controls and does not
//! select any more.
//!
//! | | |
//! | --- | --- |
//! | [`Owners`] | event mapping: the owners that a change of a dependent enqueues |
//! | [`Dependents`] | the objects that an owner controls, and the orphans that it selects, from an index of their cache |
//! | [`Claims`] | the decision: what to keep, to adopt and to release (pure) |
//! | [`adopt_and_release`] | the requests of the decision |
//!
//! An owner that selects nothing needs only [`ControlLoopBuilder::owns`](crate::ControlLoopBuilder::owns) and
//! [`Dependents::owned_by`].
//!
//! # Guarantees
//! - A change of a dependent enqueues the owner that controls it, before and after the change; a change of an orphan
//!   enqueues every owner that selects it.
//! - Nothing is adopted before a live read, in the same reconcile, showed that the owner exists and is not being deleted.
//! - A terminating owner adopts and releases nothing, and a terminating object is not adopted.
//! - Both patches carry the uid of the object, so that an object recreated under the same name is left alone. A
//!   dependent that does not exist any more is no error.
//! - All claims are tried; if one fails, the whole is an error, because the set of claimed objects is unknown.
//!
//! Dependents are adopted and released by strategic merge patches, which the API server takes for built-in kinds only.
//! Owners may be of any kind.
//!
//! # Upstream
//! `PodControllerRefManager` and its siblings in `k8s.io/kubernetes/pkg/controller`.
//!
//! # Examples
//! ```
//! use kcm_framework::api::views::{Pod, ReplicaSet};
//! use kcm_framework::ownership::{Claims, Dependents, Owner, Owners, adopt_and_release};
//! use kcm_framework::{ControllerContext, ReconcileError, Session};
//!
//! fn describe(context: &ControllerContext) -> Dependents<Pod> {
//!     let mut sets = context.control_loop("replicaset");
//!     let owners = Owners::known(sets.primary::<ReplicaSet>(), |set| set.selector.as_ref().ok());
//!     let pods = sets.watches::<Pod, _>(move |change| owners.keys(change));
//!     # let _: kcm_framework::ControlLoopBuilder = sets;
//!     Dependents::of(&pods)
//! }
//!
//! async fn claim(pods: &Dependents<Pod>, set: &ReplicaSet, session: &Session) -> Result<usize, ReconcileError> {
//!     let Ok(selector) = &set.selector else { return Ok(0) };
//!     let owner = Owner::of(set);
//!     let claims = Claims::of(owner, selector, &pods.owned_or_orphaned(owner, Some(selector)));
//!     Ok(adopt_and_release(session, owner, claims).await?.len())
//! }
//! ```

mod adoption;
mod claim;
mod dependents;
mod error;
mod owner;
mod owners;

pub use adoption::{adopt_and_release, adopt_and_release_for, adopt_and_release_with_finalizer};
pub use claim::{Claim, Claims, LeaveReason};
pub use dependents::Dependents;
pub use error::{ClaimError, ObjectClaimError, StaleOwner};
pub use owner::{Owner, controller_key};
pub use owners::{OwnerLister, Owners};
