//! Settings that are applied while the manager runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kcm_config::Effective;
use parking_lot::Mutex;
use tokio::sync::watch;

/// The settings of a manager, as of its start and as they were last reloaded. All clones are one.
#[derive(Debug, Clone)]
pub(crate) struct LiveSettings {
    start: Effective,
    reloaded: watch::Sender<Effective>,
    of_controllers: Arc<Mutex<OfControllers>>,
}

#[derive(Debug, Default)]
struct OfControllers {
    /// The settings with which a reload has enabled each controller.
    enabled_with: BTreeMap<&'static str, Effective>,
    /// The settings that a controller reads although they belong to another.
    read_elsewhere: BTreeSet<&'static str>,
}

impl LiveSettings {
    pub(crate) fn new(settings: Effective) -> Self {
        Self { start: settings.clone(), reloaded: watch::Sender::new(settings), of_controllers: Arc::default() }
    }

    /// The settings of the start.
    pub(crate) const fn start(&self) -> &Effective {
        &self.start
    }

    pub(crate) fn replace(&self, settings: Effective) {
        self.reloaded.send_replace(settings);
    }

    /// A receiver that is notified of each reload from now on.
    pub(crate) fn reloads(&self) -> watch::Receiver<Effective> {
        self.reloaded.subscribe()
    }

    /// Enables a controller with the settings of the last reload.
    pub(crate) fn enable(&self, controller: &'static str) {
        let settings = self.reloaded.borrow().clone();
        self.of_controllers.lock().enabled_with.insert(controller, settings);
    }

    pub(crate) fn disable(&self, controller: &str) {
        self.of_controllers.lock().enabled_with.remove(controller);
    }

    /// The settings with which a controller was enabled: by a reload, or at the start.
    pub(crate) fn enabled_with(&self, controller: &str) -> Effective {
        self.of_controllers.lock().enabled_with.get(controller).unwrap_or(&self.start).clone()
    }

    /// Records that a controller reads a setting that belongs to another.
    pub(crate) fn read_elsewhere(&self, setting: &'static str) {
        self.of_controllers.lock().read_elsewhere.insert(setting);
    }

    /// Returns `true` if one of its `owners`, the enabled controllers with this setting, or the manager, uses another value of a setting than `new`
    /// has, and does so until the next start.
    pub(crate) fn needs_restart<'a>(
        &self,
        setting: &str,
        new: &Effective,
        owners: impl Iterator<Item = &'a str>,
    ) -> bool {
        let mut in_use: Vec<Effective> = owners.map(|owner| self.enabled_with(owner)).collect();
        if in_use.is_empty() || self.of_controllers.lock().read_elsewhere.contains(setting) {
            in_use.push(self.start.clone());
        }
        in_use.iter().any(|settings| settings.value(setting) != new.value(setting))
    }

    /// Returns `true` if a setting is a whole number that is applied while the manager runs.
    fn has_count(&self, flag: &str) -> bool {
        let settings = self.reloaded.borrow();
        let row = settings.rows().iter().find(|row| row.name == flag);
        row.is_some_and(|row| row.is_reloaded) && settings.get::<i32>(flag).is_ok()
    }

    fn count(&self, flag: &str) -> usize {
        let number = self.reloaded.borrow().get::<i32>(flag).ok();
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
        let mut changes = settings.reloaded.subscribe();
        loop {
            let number = settings.count(flag);
            if number != known {
                return number;
            }
            changes.changed().await.expect("the sender must live as long as its reference");
        }
    }
}
