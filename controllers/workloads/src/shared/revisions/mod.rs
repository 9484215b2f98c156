//! Controller revisions: the pod templates that a stateful set or a daemon set had, each with a number.
//!
//! A rollout replaces pods of an earlier revision by pods of the last one, and a rollback gives an earlier revision the
//! highest number. The data of a revision is a patch of the owner that replaces `spec.template`.
//!
//! ```text
//! spec.template ──RevisionData::of──▶ data ──revision_hash──▶ hash ──revision_name──▶ name
//!                                      │
//!            equal to the data of a revision: that one, renumbered where it is not the last
//!            equal to none: create, under the next number
//! ```
//!
//! Revisions are listed, adopted and released as other dependents are: with
//! [`Dependents`](kcm_framework::ownership::Dependents), [`Claims`](kcm_framework::ownership::Claims) and
//! [`adopt_and_release`](kcm_framework::ownership::adopt_and_release).
//!
//! # Guarantees
//! - The data is equal in bytes to that of upstream for the same template, so that a change of controller managers makes
//!   no new revision: sorted keys, and Go's escapes and numbers; see [`RevisionData`].
//! - A revision is not created twice: where its name is taken, the data of the live object decides.
//! - A deletion has the uid of the revision as a precondition.
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

/// The label of a pod with its revision: the name of the revision for stateful sets, its hash for daemon sets.
pub(crate) const POD_REVISION: &str = "controller-revision-hash";

/// The label of a revision of a stateful set with the hash of its data.
pub(crate) const REVISION_HASH: &str = "controller.kubernetes.io/hash";
