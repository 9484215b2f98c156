//! `ControllerRevisions`: the pod templates that a `StatefulSet` or a `DaemonSet` had, each with a number.
//!
//! A rollout replaces pods of an earlier revision by pods of the last one. A rollback gives an earlier revision the highest
//! number. The data of a revision is a patch of the owner that replaces `spec.template`.
//!
//! ```text
//! spec.template ──RevisionData::of──▶ data ──revision_hash──▶ hash ──revision_name──▶ name
//!                                      │
//!            equal to the data of a revision: reuse it, renumbered if it is not the last
//!            equal to none: create a revision with the next number
//! ```
//!
//! Revisions are listed, adopted and released as other dependents are: with
//! [`Dependents`](kcm_framework::ownership::Dependents), [`Claims`](kcm_framework::ownership::Claims) and
//! [`adopt_and_release`](kcm_framework::ownership::adopt_and_release).
//!
//! # Guarantees
//! - The data has the same bytes as upstream's data of the same template, with sorted keys and Go's escapes and numbers; see
//!   [`RevisionData`]. So a change of controller managers creates no new revision.
//! - A revision is not created twice: if its name is taken, the data of the live object decides.
//!
//! # Upstream
//! `pkg/controller/history`, and `getPatch` of `pkg/controller/statefulset` and `pkg/controller/daemon`.

mod data;
mod defaults;
mod go_json;
mod hash;
mod history;
mod requests;

#[cfg(test)]
mod tests;

pub(crate) use data::RevisionData;
pub(crate) use hash::{revision_hash, revision_name, safe_encode};
pub(crate) use history::{next_revision, oldest_unused, sort};
pub(crate) use requests::{Creation, NewRevision, create, delete, renumber};

/// The label of a pod with its revision: the name of the revision for `StatefulSets`, its hash for `DaemonSets`.
pub(crate) const POD_REVISION: &str = "controller-revision-hash";

/// The label of a `StatefulSet`'s revision with the hash of its data.
pub(crate) const REVISION_HASH: &str = "controller.kubernetes.io/hash";
