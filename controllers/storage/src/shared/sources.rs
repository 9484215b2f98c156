//! The sources of volumes that can be attached or mounted with a label, and the unique names of their volumes.

use serde::Deserialize;

/// The sources of a volume that no translation covers.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Sources {
    pub(crate) csi: Option<Csi>,
    fc: Option<FibreChannel>,
    iscsi: Option<Iscsi>,
}

/// A volume of a CSI driver, by the name of the driver.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Csi {
    pub(crate) driver: String,
    pub(crate) volume_handle: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct FibreChannel {
    #[serde(rename = "targetWWNs")]
    target_wwns: Vec<String>,
    lun: Option<i32>,
    wwids: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Iscsi {
    target_portal: String,
    iqn: String,
    lun: i32,
}

impl Sources {
    /// Returns the unique name of a Fibre Channel or iSCSI volume. Returns `None` if the source identifies no volume.
    pub(crate) fn without_driver(&self) -> Option<String> {
        let fc = self.fc.as_ref().and_then(|fc| fibre_channel_name(&fc.target_wwns, fc.lun, &fc.wwids));
        fc.or_else(|| self.iscsi.as_ref().map(|iscsi| iscsi_name(&iscsi.target_portal, &iscsi.iqn, iscsi.lun)))
    }
}

/// Returns the unique name of a CSI volume.
pub(crate) fn csi_name(driver: &str, handle: &str) -> String {
    format!("kubernetes.io/csi/{driver}^{handle}")
}

/// # Upstream
/// Go prints the lists: brackets around them, blanks between their items.
fn fibre_channel_name(target_wwns: &[String], lun: Option<i32>, wwids: &[String]) -> Option<String> {
    match lun {
        Some(lun) if !target_wwns.is_empty() => Some(format!("kubernetes.io/fc/[{}]:{lun}", target_wwns.join(" "))),
        Some(_) | None if !wwids.is_empty() => Some(format!("kubernetes.io/fc/[{}]", wwids.join(" "))),
        Some(_) | None => None,
    }
}

fn iscsi_name(target_portal: &str, iqn: &str, lun: i32) -> String {
    format!("kubernetes.io/iscsi/{target_portal}:{iqn}:{lun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn pl_7_volumes_without_driver_have_upstreams_names() {
        for (name, wwns, lun, wwids, expected) in [
            ("WWNs and LUN", &["a", "b"][..], Some(0), &[][..], Some("kubernetes.io/fc/[a b]:0")),
            ("WWNs win", &["a"], Some(2), &["w"], Some("kubernetes.io/fc/[a]:2")),
            ("WWNs without LUN", &["a"], None, &["w", "x"], Some("kubernetes.io/fc/[w x]")),
            ("WWIDs with LUN", &[], Some(1), &["w"], Some("kubernetes.io/fc/[w]")),
            ("neither", &["a"], None, &[], None),
            ("nothing", &[], Some(1), &[], None),
        ] {
            assert_eq!(fibre_channel_name(&strings(wwns), lun, &strings(wwids)).as_deref(), expected, "{name}");
        }
        assert_eq!(iscsi_name("10.0.0.1:3260", "iqn.x", 0), "kubernetes.io/iscsi/10.0.0.1:3260:iqn.x:0");
    }
}
