//! Rate limits of clients that follow from the settings.

use super::rate_limiter::Limits;

/// The rate limit of one client, in relation to `--kube-api-qps` and `--kube-api-burst`.
///
/// A change of the settings while the manager runs changes it too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientLimits {
    /// The limits of the settings.
    #[default]
    OfSettings,
    /// The limits of the settings, multiplied.
    ///
    /// # Upstream
    /// The namespace controller and the storage version migrator send 20 times the rate with 100 times the burst, the
    /// garbage collector twice the rate.
    Times {
        /// The factor of the rate.
        qps: u16,
        /// The factor of the burst.
        burst: u16,
    },
    /// Limits that the settings do not change.
    ///
    /// # Upstream
    /// `DiscoveryClient` of the client builders sends 20 requests a second with a burst of 200.
    Fixed {
        /// Requests a second over time.
        qps: u16,
        /// Largest number of requests at once.
        burst: u16,
    },
}

impl ClientLimits {
    /// Returns the limits in numbers. `settings` are the limits of the settings.
    ///
    /// A rate or a burst of 0 and a negative rate keep their meaning, as in client-go.
    #[must_use]
    pub fn resolve(self, settings: Limits) -> Limits {
        match self {
            Self::OfSettings => settings,
            Self::Times { qps, burst } => {
                Limits { qps: settings.qps * f32::from(qps), burst: settings.burst.saturating_mul(u32::from(burst)) }
            }
            Self::Fixed { qps, burst } => Limits { qps: f32::from(qps), burst: u32::from(burst) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_from_those_of_the_settings() {
        let namespace = ClientLimits::Times { qps: 20, burst: 100 };
        let metadata = ClientLimits::Times { qps: 2, burst: 1 };
        let discovery = ClientLimits::Fixed { qps: 20, burst: 200 };
        for (limits, (qps, burst), expected) in [
            (ClientLimits::OfSettings, (20.0, 30), (20.0, 30)),
            (namespace, (20.0, 30), (400.0, 3000)),
            (metadata, (20.0, 30), (40.0, 30)),
            (discovery, (1000.0, 2000), (20.0, 200)),
            (namespace, (0.0, 0), (0.0, 0)),
            (namespace, (-1.0, 30), (-20.0, 3000)),
            (namespace, (0.5, u32::MAX), (10.0, u32::MAX)),
        ] {
            let resolved = limits.resolve(Limits { qps, burst });
            assert_eq!(resolved, Limits { qps: expected.0, burst: expected.1 }, "{limits:?} of {qps} and {burst}");
        }
    }
}
