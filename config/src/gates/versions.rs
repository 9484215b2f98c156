//! The versions of Kubernetes that `--emulated-version` and `--min-compatibility-version` name.

use crate::error::excerpt;

/// The minor version of Kubernetes 1 that is emulated by default.
pub(super) const CURRENT: u16 = 36;

/// The oldest that can be emulated.
const OLDEST: u16 = 33;

/// The Kubernetes versions that a program emulates, and stays compatible with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    emulated: u16,
}

impl Default for Versions {
    fn default() -> Self {
        Self { emulated: CURRENT }
    }
}

impl Versions {
    #[cfg(test)]
    pub(super) const fn emulating(emulated: u16) -> Self {
        Self { emulated }
    }

    /// Reads the values of the two flags.
    ///
    /// # Errors
    /// The end of the sentence "the value …", for each of the two.
    ///
    /// # Upstream
    /// `k8s.io/component-base/compatibility`. No gate of upstream depends on the second flag.
    pub(crate) fn read(emulated: &[String], compatible: &[String]) -> Result<Self, [Option<String>; 2]> {
        let emulated = read(emulated).and_then(|minor| within(minor.unwrap_or(CURRENT), CURRENT));
        let most = *emulated.as_ref().unwrap_or(&CURRENT);
        let compatible = read(compatible).and_then(|minor| within(minor.unwrap_or(OLDEST), most));
        match (emulated, compatible) {
            (Ok(emulated), Ok(_)) => Ok(Self { emulated }),
            (emulated, compatible) => Err([emulated.err(), compatible.err()]),
        }
    }

    /// The minor version of Kubernetes 1 that is emulated.
    pub(crate) const fn emulated(self) -> u16 {
        self.emulated
    }

    /// Returns `true` if another version than the current one is emulated.
    pub(crate) const fn is_emulation(self) -> bool {
        self.emulated != CURRENT
    }
}

/// The minor version that the items name, if there are any.
fn read(items: &[String]) -> Result<Option<u16>, String> {
    match items {
        [] => Ok(None),
        [item] => read_item(item).map(Some),
        _ => Err("must name kube once".to_owned()),
    }
}

fn read_item(item: &str) -> Result<u16, String> {
    let version = match item.split_once('=') {
        Some((component, _)) if component.trim() != "kube" => {
            return Err(format!("must be of the component kube, and not of {}", excerpt(component.trim())));
        }
        Some((_, version)) => version.trim(),
        None => item,
    };
    let wrong = || "must be a version as MAJOR.MINOR, such as 1.35".to_owned();
    let version = version.strip_prefix('v').unwrap_or(version);
    let numbers: Option<Vec<u16>> = version.split('.').map(|number| number.parse().ok()).collect();
    match numbers.ok_or_else(wrong)?.as_slice() {
        [1, minor] | [1, minor, 0] => Ok(*minor),
        [_, _] => Err(format!("must be between 1.{OLDEST} and 1.{CURRENT}")),
        _ => Err(wrong()),
    }
}

fn within(minor: u16, most: u16) -> Result<u16, String> {
    if (OLDEST..=most).contains(&minor) { Ok(minor) } else { Err(format!("must be between 1.{OLDEST} and 1.{most}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(emulated: &[&str], compatible: &[&str]) -> Result<u16, [Option<String>; 2]> {
        let owned = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        Versions::read(&owned(emulated), &owned(compatible)).map(Versions::emulated)
    }

    #[test]
    fn versions_are_read_as_upstream_reads_them() {
        assert_eq!(read(&[], &[]), Ok(36));
        for item in ["1.34", "kube=1.34", "v1.34", "1.34.0", "kube = 1.34"] {
            assert_eq!(read(&[item], &[]), Ok(34), "{item}");
        }
        assert_eq!(read(&["1.35"], &["1.35"]), Ok(35));
        let wrong = "must be a version as MAJOR.MINOR, such as 1.35";
        let cases = [
            (&["1.32"][..], &[][..], [Some("must be between 1.33 and 1.36"), None]),
            (&["1.37"], &[], [Some("must be between 1.33 and 1.36"), None]),
            (&["2.0"], &[], [Some("must be between 1.33 and 1.36"), None]),
            (&["1.34"], &["1.35"], [None, Some("must be between 1.33 and 1.34")]),
            (&["1.34.2"], &["x"], [Some(wrong), Some(wrong)]),
            (&["1.34", "1.35"], &[], [Some("must name kube once"), None]),
            (&["wardle=1.1"], &[], [Some("must be of the component kube, and not of \"wardle\""), None]),
        ];
        for (emulated, compatible, expected) in cases {
            assert_eq!(
                read(emulated, compatible),
                Err(expected.map(|reason| reason.map(str::to_owned))),
                "{emulated:?}"
            );
        }
    }
}
