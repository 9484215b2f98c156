//! The settings that one controller reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use kcm_client::BoxError;
use kcm_config::{Effective, Gate, Row, Setting};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::live_settings::LiveSettings;

/// The settings that one controller reads: its own as of the reload that enabled it, all others as of the start of the
/// manager.
///
/// A controller that a reload enables must not act on values that the new file does not have. So its own settings come
/// from that file. Settings of others, and feature gates, keep the values of the start. If the file has another value,
/// reading it is an error, and the controller is not started.
#[derive(Clone)]
pub(crate) struct SettingsInUse {
    own: &'static [Row],
    enabled_with: Effective,
    settings: LiveSettings,
    /// The settings and feature gates that were read and have other values in the file, by their names for operators.
    outdated: Arc<Mutex<BTreeSet<String>>>,
}

/// The setting belongs to another controller or to the manager, and its new value is not in use.
#[derive(Debug, thiserror::Error)]
#[error("{setting} has changed since the start of the manager: restart the manager")]
struct Outdated {
    setting: String,
}

impl SettingsInUse {
    /// The settings of the controller of that name, whose descriptor has the rows `own`.
    pub(crate) fn new(controller: &str, own: &'static [Row], settings: &LiveSettings) -> Self {
        let enabled_with = settings.enabled_with(controller);
        Self { own, enabled_with, settings: settings.clone(), outdated: Arc::default() }
    }

    /// # Errors
    /// No row has the name of the setting, its value does not fit `T`, or the setting is another's and has changed.
    pub(crate) fn read<T: DeserializeOwned>(&self, setting: &Setting<T>) -> Result<T, BoxError> {
        let name = setting.name();
        if self.own.iter().any(|row| row.name == name) {
            return Ok(self.enabled_with.read(setting)?);
        }
        self.settings.read_elsewhere(name);
        let start = self.settings.start();
        if start.value(name) == self.enabled_with.value(name) {
            return Ok(start.read(setting)?);
        }
        let setting = setting.row().label();
        self.outdated.lock().insert(setting.clone());
        Err(Outdated { setting }.into())
    }

    /// Returns `true` if a feature gate is on.
    pub(crate) fn gate(&self, gate: &Gate) -> bool {
        if self.has_changed(gate) {
            self.outdated.lock().insert(gate_label(gate));
        }
        self.settings.start().enabled(gate)
    }

    fn has_changed(&self, gate: &Gate) -> bool {
        self.settings.start().enabled(gate) != self.enabled_with.enabled(gate)
    }

    /// The settings and feature gates because of which the controller must not start: those that it has read, and the
    /// gates that it requires.
    pub(crate) fn outdated(&self, required: &[Gate]) -> BTreeSet<String> {
        let required = required.iter().filter(|gate| self.has_changed(gate)).map(gate_label);
        self.outdated.lock().iter().cloned().chain(required).collect()
    }
}

fn gate_label(gate: &Gate) -> String {
    format!("the feature gate {}", gate.name)
}
