//! Random delays, so that clients do not act in step.

use std::time::Duration;

/// A random duration in [`least`, 2 × `least`), to the millisecond.
pub(crate) fn jittered(least: Duration, rng: &mut fastrand::Rng) -> Duration {
    least + up_to(least, rng)
}

/// A random duration in [0, `most`), to the millisecond.
pub(crate) fn up_to(most: Duration, rng: &mut fastrand::Rng) -> Duration {
    let span = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis(rng.u64(..span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jittered_duration_is_less_than_the_double() {
        let mut rng = fastrand::Rng::with_seed(7);
        let least = Duration::from_millis(800);
        let drawn: Vec<Duration> = (0..1000).map(|_| jittered(least, &mut rng)).collect();
        assert!(drawn.iter().all(|drawn| (least..2 * least).contains(drawn)));
        assert!(drawn.iter().any(|drawn| *drawn < least + least / 10), "reaches the lower end");
        assert!(drawn.iter().any(|drawn| *drawn > least * 19 / 10), "reaches the upper end");
    }
}
