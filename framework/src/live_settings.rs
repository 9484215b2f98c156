//! Settings that are applied while the manager runs.

use kcm_config::Effective;
use tokio::sync::watch;

/// The settings as they were last reloaded. All clones are one.
#[derive(Debug, Clone)]
pub(crate) struct LiveSettings(watch::Sender<Effective>);

impl LiveSettings {
    pub(crate) fn new(settings: Effective) -> Self {
        Self(watch::Sender::new(settings))
    }

    pub(crate) fn replace(&self, settings: Effective) {
        self.0.send_replace(settings);
    }

    /// Returns `true` if a setting is a whole number that is applied while the manager runs.
    fn has_count(&self, flag: &str) -> bool {
        let settings = self.0.borrow();
        let row = settings.rows().iter().find(|row| row.name == flag);
        row.is_some_and(|row| row.is_reloaded) && settings.get::<i32>(flag).is_ok()
    }

    fn count(&self, flag: &str) -> usize {
        let number = self.0.borrow().get::<i32>(flag).ok();
        // A loop without workers would do nothing and say nothing.
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(1).max(1)
    }
}

/// The number of workers of a loop.
#[derive(Debug, Clone)]
pub(crate) enum WorkerCount {
    /// A number that never changes.
    Fixed(usize),
    /// The value of a setting, which may change.
    Setting {
        /// The flag, without dashes.
        flag: &'static str,
        /// The settings that have its value.
        settings: LiveSettings,
    },
}

impl WorkerCount {
    /// Returns the flag, unless it names a whole number that is applied while the manager runs.
    pub(crate) fn unusable_flag(&self) -> Option<&'static str> {
        match self {
            Self::Setting { flag, settings } if !settings.has_count(flag) => Some(flag),
            Self::Setting { .. } | Self::Fixed(_) => None,
        }
    }

    /// The number at present.
    pub(crate) fn get(&self) -> usize {
        match self {
            Self::Fixed(number) => *number,
            Self::Setting { flag, settings } => settings.count(flag),
        }
    }

    /// Waits until the number is another one than `known`, and returns it.
    pub(crate) async fn other_than(&self, known: usize) -> usize {
        let Self::Setting { flag, settings } = self else { return std::future::pending().await };
        let mut changes = settings.0.subscribe();
        loop {
            let number = settings.count(flag);
            if number != known {
                return number;
            }
            changes.changed().await.expect("the sender must live as long as its reference");
        }
    }
}
