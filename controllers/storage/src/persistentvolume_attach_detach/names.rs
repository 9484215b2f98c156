//! Names of volumes in the status of nodes, and names of attachments.

use aws_lc_rs::digest::{SHA256, digest};

/// Returns the name of the attachment of a CSI volume to a node.
pub(super) fn attachment(driver: &str, handle: &str, node: &str) -> String {
    let hash = digest(&SHA256, format!("{handle}{driver}{node}").as_bytes());
    let digits = hash.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    "csi-".chars().chain(digits.filter_map(|digit| char::from_digit(digit.into(), 16))).collect()
}

/// The plugin that a unique name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plugin<'a> {
    /// A CSI driver, and the handle of the volume.
    Csi { driver: &'a str, handle: &'a str },
    /// Fibre Channel or iSCSI: nothing to do but to report the volume.
    ReportOnly,
    /// A plugin that this controller cannot detach volumes of.
    Unknown,
}

impl<'a> Plugin<'a> {
    /// Returns the plugin of a unique name. A driver has no `^` in its name, so the first one ends it.
    pub(super) fn of(unique_name: &'a str) -> Self {
        let Some(rest) = unique_name.strip_prefix("kubernetes.io/") else { return Self::Unknown };
        if rest.starts_with("fc/") || rest.starts_with("iscsi/") {
            return Self::ReportOnly;
        }
        match rest.strip_prefix("csi/").and_then(|name| name.split_once('^')) {
            Some((driver, handle)) => Self::Csi { driver, handle },
            None => Self::Unknown,
        }
    }
}

/// Returns the name of the plugin of a volume, as metrics have it. `None` for an unknown plugin.
pub(super) fn plugin_name(unique_name: &str) -> Option<String> {
    match Plugin::of(unique_name) {
        Plugin::Csi { driver, .. } => Some(csi_plugin(driver)),
        Plugin::ReportOnly => {
            let is_iscsi = unique_name.starts_with("kubernetes.io/iscsi/");
            Some(if is_iscsi { "kubernetes.io/iscsi" } else { "kubernetes.io/fc" }.to_owned())
        }
        Plugin::Unknown => None,
    }
}

/// Returns the name of the CSI plugin with its driver.
pub(super) fn csi_plugin(driver: &str) -> String {
    format!("kubernetes.io/csi:{driver}")
}
