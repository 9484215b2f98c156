//! The order in which controllers start.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The turns of controllers to start: one at a time, in the order of asking, each after a jittered delay.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    delays: Arc<Mutex<Delays>>,
}

/// The turn of one controller. The next one has its turn when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    delays: OwnedMutexGuard<Delays>,
}

#[derive(Debug)]
struct Delays {
    interval: Duration,
    rng: fastrand::Rng,
}

impl Turns {
    /// Turns with a delay drawn from [`interval`, 2 × `interval`) before each.
    pub(crate) fn new(interval: Duration, seed: u64) -> Self {
        let delays = Delays { interval, rng: fastrand::Rng::with_seed(seed) };
        Self { delays: Arc::new(Mutex::new(delays)) }
    }

    /// Waits for the end of all earlier turns.
    pub(crate) async fn next(&self) -> Turn {
        Turn { delays: Arc::clone(&self.delays).lock_owned().await }
    }
}

impl Turn {
    /// Waits for the delay before a start.
    pub(super) async fn delay(&mut self) {
        let Delays { interval, rng } = &mut *self.delays;
        let delay = jittered(*interval, rng);
        tokio::time::sleep(delay).await;
    }
}

/// A duration drawn in [`least`, 2 × `least`).
///
/// # Upstream
/// `wait.Jitter` with a factor of 1.
pub(crate) fn jittered(least: Duration, rng: &mut fastrand::Rng) -> Duration {
    least.mul_f64(1.0 + rng.f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jittered_delay_is_at_least_the_interval_and_less_than_twice_it() {
        let mut rng = fastrand::Rng::with_seed(7);
        let least = Duration::from_secs(10);
        let drawn: Vec<_> = (0..1000).map(|_| jittered(least, &mut rng)).collect();
        assert!(drawn.iter().all(|delay| (least..least * 2).contains(delay)));
        assert_eq!(jittered(Duration::ZERO, &mut rng), Duration::ZERO);
    }
}
