//! Keys of the configuration file that have moved.

use crate::keys::lower_camel;

/// Returns the present path of a setting whose key was `key` in the section `section`, in either spelling.
pub(crate) fn present_path(section: &str, key: &str) -> Option<&'static str> {
    let is_it = |(in_section, name, _): &&(&str, &str, &str)| {
        *in_section == section && (*name == key || lower_camel(name) == key)
    };
    MOVED.iter().find(is_it).map(|(_, _, path)| *path)
}

/// Section and name of each former key, and its present path.
const MOVED: &[(&str, &str, &str)] =
    &[("KubeCloudShared", "NodeMonitorPeriod", "NodeLifecycleController.NodeMonitorPeriod")];
