//! The flex drivers that are installed beside the manager.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kcm_framework::api::Uid;
use parking_lot::Mutex;

use super::volume::FlexVolume;

/// The directory of the drivers, and the volumes that were reported because of them.
///
/// No driver is executed. A driver may need no attachments, which only its execution shows, so a volume of each installed
/// driver is reported.
#[derive(Debug)]
pub(super) struct Flex {
    directory: PathBuf,
    reported: Mutex<BTreeSet<(Uid, String)>>,
}

/// Pods that are remembered. A pod beyond this number is reported again after each change.
const REMEMBERED: usize = 10_000;

impl Flex {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, reported: Mutex::default() }
    }

    /// Returns `true` if the driver of the volume is installed, the first time for each pod and volume.
    pub(super) fn is_new(&self, pod: &Uid, volume: &FlexVolume) -> bool {
        if !self.is_installed(&volume.driver) {
            return false;
        }
        let mut reported = self.reported.lock();
        if reported.len() >= REMEMBERED {
            reported.clear();
        }
        reported.insert((pod.clone(), volume.name.clone()))
    }

    /// # Upstream
    /// The driver `vendor/name` is in the directory `vendor~name`.
    fn is_installed(&self, driver: &str) -> bool {
        let is_path = |part: &str| part.is_empty() || part.starts_with('.') || part.contains(['/', '\\', '~']);
        let folder = match driver.split_once('/') {
            Some((vendor, name)) if !is_path(vendor) && !is_path(name) => format!("{vendor}~{name}"),
            None if !is_path(driver) => driver.to_owned(),
            Some(_) | None => return false,
        };
        self.directory.join(folder).is_dir()
    }
}
