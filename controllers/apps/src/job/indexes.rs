//! Sets of completion indexes, as the status of a job writes them: `0,2-5`.

use std::fmt;

/// A set of completion indexes, as intervals in ascending order that neither overlap nor touch.
///
/// A job of 100,000 indexes has few intervals, as indexes are started in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Indexes(Vec<Interval>);

/// The indexes from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Interval {
    first: i32,
    last: i32,
}

impl Indexes {
    /// Reads a set of indexes below `completions`; intervals that are malformed are left out.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let interval = |text: &str| {
            let mut limits = text.split('-');
            let first: i32 = limits.next()?.parse().ok().filter(|first| *first >= 0)?;
            let last = limits.next().map_or(Some(first), |last| last.parse().ok())?;
            let last = last.min(completions.saturating_sub(1));
            (first <= last).then_some(Interval { first, last })
        };
        Self::of(text.split(',').filter_map(interval).collect())
    }

    /// The intervals in any order, which may overlap.
    fn of(mut intervals: Vec<Interval>) -> Self {
        intervals.sort_unstable();
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match merged.last_mut() {
                Some(before) if interval.first <= before.last.saturating_add(1) => {
                    before.last = before.last.max(interval.last);
                }
                Some(_) | None => merged.push(interval),
            }
        }
        Self(merged)
    }

    /// The indexes of both sets.
    pub(super) fn union(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).copied().collect())
    }

    /// How many indexes there are.
    pub(super) fn total(&self) -> i32 {
        self.0.iter().fold(0, |total, interval| total.saturating_add(interval.last - interval.first + 1))
    }

    /// Whether there is no index.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the index is among them.
    pub(super) fn contains(&self, index: i32) -> bool {
        let at = self.0.partition_point(|interval| interval.last < index);
        self.0.get(at).is_some_and(|interval| interval.first <= index)
    }

    /// How many indexes are in both sets.
    pub(super) fn count_common(&self, other: &Self) -> i32 {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = 0_i32;
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            common = common.saturating_add((a.last.min(b.last) - a.first.max(b.first) + 1).max(0));
            if a.last < b.last {
                ours.next();
            } else {
                theirs.next();
            }
        }
        common
    }

    /// The first `count` indexes below `completions` that are not among these.
    pub(super) fn first_missing(&self, count: usize, completions: i32) -> Vec<i32> {
        let mut missing = Vec::new();
        let mut next = 0;
        for interval in &self.0 {
            missing.extend((next..interval.first.min(completions)).take(count - missing.len()));
            next = interval.last.saturating_add(1);
        }
        missing.extend((next..completions).take(count - missing.len()));
        missing
    }
}

impl FromIterator<i32> for Indexes {
    fn from_iter<I: IntoIterator<Item = i32>>(indexes: I) -> Self {
        Self::of(indexes.into_iter().map(|index| Interval { first: index, last: index }).collect())
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Interval { first, last }) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}
