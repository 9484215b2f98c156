//! The replicas of each replica set of a deployment, and which old replica sets are deleted.
//!
//! Pure functions of counts. [`proportion`] handles a change of `spec.replicas`, [`rolling`] and [`recreate`] a change of
//! the template, [`cleanup`] the end of a rollout.

use std::cmp::Ordering;

use jiff::Timestamp;
use kcm_framework::api::{IntOrPercent, InvalidPercent, Rounding};

pub(crate) mod cleanup;
pub(crate) mod proportion;
pub(crate) mod recreate;
pub(crate) mod rolling;

/// The counts of a replica set that a rollout is planned with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetCount<'a> {
    /// The index by which the caller identifies the replica set; [`Scale::index`] returns it.
    pub(crate) index: usize,
    /// Its name, which orders replica sets of the same age.
    pub(crate) name: &'a str,
    /// When it was created; absent counts as the oldest.
    pub(crate) created: Option<Timestamp>,
    /// Its revision; 0 if it has none, or one that is not a number.
    pub(crate) revision: i64,
    /// `spec.replicas`.
    pub(crate) desired: i32,
    /// `status.replicas`.
    pub(crate) actual: i32,
    /// `status.availableReplicas`.
    pub(crate) available: i32,
    /// `deployment.kubernetes.io/desired-replicas`, if it is a number.
    pub(crate) desired_annotation: Option<i32>,
    /// `deployment.kubernetes.io/max-replicas`, if it is a number.
    pub(crate) max_annotation: Option<i32>,
    /// Whether its status is of its latest generation.
    pub(crate) observed: bool,
    /// Whether it is being deleted.
    pub(crate) terminating: bool,
}

impl SetCount<'_> {
    fn is_active(&self) -> bool {
        self.desired > 0
    }

    /// The available replicas that stay: a stale status may still count replicas that are being deleted.
    fn lasting(&self) -> i64 {
        self.available.min(self.desired).into()
    }

    fn by_age(&self, other: &Self) -> Ordering {
        (self.created, self.name).cmp(&(other.created, other.name))
    }

    fn resize(&self, to: i32, reason: ScaleReason) -> Scale {
        Scale { index: self.index, from: self.desired, to, reason }
    }
}

/// The scaling of a replica set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The [`SetCount::index`] of the replica set.
    pub(crate) index: usize,
    /// Its `spec.replicas` before.
    pub(crate) from: i32,
    /// Its `spec.replicas` after; the same if only its annotations change.
    pub(crate) to: i32,
    /// Why it is scaled.
    pub(crate) reason: ScaleReason,
}

/// Why a replica set is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScaleReason {
    /// The new replica set has more replicas than the deployment.
    TooLarge,
    /// The surge leaves room for replicas of the new replica set.
    Surge,
    /// Unavailable replicas of an old replica set do not count for availability.
    Unavailable,
    /// More replicas are available than must be.
    Spare,
    /// A recreation scales old replica sets to 0 first.
    Recreate,
    /// No pod of an old replica set runs any more.
    OldGone,
    /// It is the only replica set with replicas.
    OnlyActive,
    /// No replica set has replicas, and this is the new one, or else the latest.
    Latest,
    /// The new replica set has all replicas, and all are available.
    Saturated,
    /// It gets its proportion of the new `spec.replicas`.
    Share,
}

/// The bounds of the replicas of a deployment during a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// `spec.replicas`.
    pub(crate) replicas: i32,
    /// `maxSurge`, resolved.
    pub(crate) max_surge: i32,
    /// `maxUnavailable`, resolved.
    pub(crate) max_unavailable: i32,
    rolling: bool,
}

/// A limit of a rolling update that is neither a number nor a percentage; validation rejects it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidLimit {
    /// `maxSurge`.
    #[error("failed to resolve maxSurge")]
    Surge(#[source] InvalidPercent),
    /// `maxUnavailable`.
    #[error("failed to resolve maxUnavailable")]
    Unavailable(#[source] InvalidPercent),
}

impl Limits {
    /// The limits of a rolling update. A percentage is rounded up for `maxSurge`, down for `maxUnavailable`.
    ///
    /// If both are 0, which would stop every rollout, `maxUnavailable` is 1. It is at most the number of replicas.
    ///
    /// # Upstream
    /// `deploymentutil.ResolveFenceposts`, `MaxSurge`, `MaxUnavailable`.
    pub(crate) fn rolling(
        replicas: i32,
        max_surge: Option<&IntOrPercent>,
        max_unavailable: Option<&IntOrPercent>,
    ) -> Result<Self, InvalidLimit> {
        let count = |limit: Option<&IntOrPercent>, rounding| limit.map_or(Ok(0), |limit| limit.of(replicas, rounding));
        let max_surge = count(max_surge, Rounding::Up).map_err(InvalidLimit::Surge)?;
        let max_unavailable = count(max_unavailable, Rounding::Down).map_err(InvalidLimit::Unavailable)?;
        let max_unavailable = if max_surge == 0 && max_unavailable == 0 { 1 } else { max_unavailable };
        Ok(Self { replicas, max_surge, max_unavailable: max_unavailable.min(replicas), rolling: true })
    }

    /// The limits of every other strategy: no surge, and all replicas must be available.
    pub(crate) fn not_rolling(replicas: i32) -> Self {
        Self { replicas, max_surge: 0, max_unavailable: 0, rolling: false }
    }

    /// The limits for scaling if a limit of the rolling update cannot be read.
    pub(crate) const fn unreadable(replicas: i32) -> Self {
        Self { replicas, max_surge: 0, max_unavailable: 0, rolling: true }
    }

    /// The most replicas of all replica sets together: the value of `deployment.kubernetes.io/max-replicas`.
    pub(crate) fn max_total(&self) -> i32 {
        self.replicas.saturating_add(self.max_surge)
    }

    /// The least number of available replicas.
    pub(crate) fn min_available(&self) -> i32 {
        self.replicas.saturating_sub(self.max_unavailable)
    }
}

fn total_desired<'a, 's: 'a>(sets: impl IntoIterator<Item = &'a SetCount<'s>>) -> i64 {
    sets.into_iter().map(|set| i64::from(set.desired)).sum()
}

/// A number of replicas in the 32 bits of the API.
fn size(count: i64) -> i32 {
    i32::try_from(count.clamp(0, i32::MAX.into())).expect("must fit after the clamp")
}
