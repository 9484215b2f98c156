//! How many replicas each replica set of a deployment is given, and which old sets are let go.
//!
//! Pure: numbers in, steps out. [`proportion`] answers a change of size, [`rolling`] and [`recreate`] a change of
//! template, [`cleanup`] the end of a rollout.

use std::cmp::Ordering;

use jiff::Timestamp;
use kcm_api::{IntOrPercent, InvalidPercent, Rounding};

pub(crate) mod cleanup;
pub(crate) mod proportion;
pub(crate) mod recreate;
pub(crate) mod rolling;

/// One replica set as a rollout sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetCount<'a> {
    /// Which one it is, to the caller: not looked at, returned with what is decided.
    pub(crate) index: usize,
    /// Its name, which decides where ages are equal.
    pub(crate) name: &'a str,
    /// When it was created; not known counts as before everything.
    pub(crate) created: Option<Timestamp>,
    /// Its revision; 0 where it has none or one that is no number.
    pub(crate) revision: i64,
    /// `spec.replicas`.
    pub(crate) desired: i32,
    /// `status.replicas`.
    pub(crate) actual: i32,
    /// `status.availableReplicas`.
    pub(crate) available: i32,
    /// `deployment.kubernetes.io/desired-replicas`, where it is a number.
    pub(crate) desired_annotation: Option<i32>,
    /// `deployment.kubernetes.io/max-replicas`, where it is a number.
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

    /// The available replicas that stay: a status that is behind may still count some that are on their way out.
    fn lasting(&self) -> i64 {
        self.available.min(self.desired).into()
    }

    fn by_age(&self, other: &Self) -> Ordering {
        (self.created, self.name).cmp(&(other.created, other.name))
    }

    fn resize(&self, to: i32, why: Why) -> Scale {
        Scale { index: self.index, from: self.desired, to, why }
    }
}

/// One replica set is given another size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The [`SetCount::index`] of the set.
    pub(crate) index: usize,
    /// Its size before.
    pub(crate) from: i32,
    /// Its size after; the same where only its annotations are out of date.
    pub(crate) to: i32,
    /// What asks for it.
    pub(crate) why: Why,
}

/// What asks for another size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The new set is larger than the deployment.
    TooLarge,
    /// The new set grows into the room that the surge leaves.
    Surge,
    /// Replicas of an old set that are not available keep nobody safe.
    Unavailable,
    /// An old set gives up what availability allows.
    Spare,
    /// Old sets go before the new one starts.
    Recreate,
    /// No pod of an old set runs any more.
    OldGone,
    /// It is the only set with replicas.
    OnlyActive,
    /// No set has replicas, and this is the new or the latest one.
    Latest,
    /// The new set has and serves all of the deployment, so that an old one has no part in it.
    Saturated,
    /// It gets its share of the deployment's new size.
    Share,
}

/// How many replicas a deployment may have, and how many must be available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// `spec.replicas`.
    pub(crate) replicas: i32,
    /// How many more there may be while rolling.
    pub(crate) max_surge: i32,
    /// How many may be unavailable while rolling.
    pub(crate) max_unavailable: i32,
    rolling: bool,
}

/// A limit of a rolling update that says no count; validation lets none pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidLimit {
    /// How many more there may be.
    #[error("failed to resolve maxSurge")]
    Surge(#[source] InvalidPercent),
    /// How many may be unavailable.
    #[error("failed to resolve maxUnavailable")]
    Unavailable(#[source] InvalidPercent),
}

impl Limits {
    /// The limits of a rolling update: the surge is rounded up, what may be unavailable down.
    ///
    /// Both zero would stop every rollout, so that one replica may then be unavailable; never more than there are.
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

    /// The limits of every other strategy: no surge, and all are to be available.
    pub(crate) fn not_rolling(replicas: i32) -> Self {
        Self { replicas, max_surge: 0, max_unavailable: 0, rolling: false }
    }

    /// The most replicas that all sets together may have; what `deployment.kubernetes.io/max-replicas` says.
    pub(crate) fn max_total(&self) -> i32 {
        self.replicas.saturating_add(self.max_surge)
    }

    /// The fewest replicas that must be available.
    pub(crate) fn min_available(&self) -> i32 {
        self.replicas.saturating_sub(self.max_unavailable)
    }
}

fn total_desired<'a, 's: 'a>(sets: impl IntoIterator<Item = &'a SetCount<'s>>) -> i64 {
    sets.into_iter().map(|set| i64::from(set.desired)).sum()
}

/// A size that was reckoned in 64 bits, as the API has it.
fn size(count: i64) -> i32 {
    i32::try_from(count.clamp(0, i32::MAX.into())).expect("must fit after the clamp")
}
