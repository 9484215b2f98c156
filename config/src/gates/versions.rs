//! The versions of Kubernetes that `--emulated-version` and `--min-compatibility-version` name.

use crate::error::excerpt;

/// The minor version of Kubernetes 1 that is emulated by default.
pub(super) const CURRENT: u16 = 37;

/// The oldest that can be emulated, and the oldest minimum compatibility version: three before the current one.
const OLDEST: u16 = CURRENT - 3;

/// The Kubernetes versions that a program emulates, and stays compatible with, as minor versions of Kubernetes 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    emulated: u16,
    compatible: u16,
}

impl Default for Versions {
    fn default() -> Self {
        Self::emulating(CURRENT)
    }
}

impl Versions {
    /// Emulates a version, and stays compatible with the version before it, if that one is supported.
    pub(super) const fn emulating(emulated: u16) -> Self {
        let compatible = if emulated > OLDEST { emulated - 1 } else { OLDEST };
        Self { emulated, compatible }
    }

    /// Emulates a version and stays compatible with another. Returns `None` if one of them is not supported.
    #[cfg(test)]
    pub(super) fn new(emulated: u16, compatible: u16) -> Option<Self> {
        let is_legal = (OLDEST..=CURRENT).contains(&emulated) && (OLDEST..=emulated).contains(&compatible);
        is_legal.then_some(Self { emulated, compatible })
    }

    /// Reads the values of the two flags.
    ///
    /// # Errors
    /// The end of the sentence "the value …", for each of the two.
    ///
    /// # Upstream
    /// `k8s.io/component-base/compatibility`.
    pub(crate) fn read(emulated: &[String], compatible: &[String]) -> Result<Self, [Option<String>; 2]> {
        let emulated = read(emulated).and_then(|minor| within(minor.unwrap_or(CURRENT), CURRENT));
        let most = *emulated.as_ref().unwrap_or(&CURRENT);
        let by_default = Self::emulating(most).compatible;
        let compatible = read(compatible).and_then(|minor| within(minor.unwrap_or(by_default), most));
        match (emulated, compatible) {
            (Ok(emulated), Ok(compatible)) => Ok(Self { emulated, compatible }),
            (emulated, compatible) => Err([emulated.err(), compatible.err()]),
        }
    }

    /// The minor version of Kubernetes 1 that is emulated.
    #[must_use]
    pub const fn emulated(self) -> u16 {
        self.emulated
    }

    /// The oldest minor version of Kubernetes 1 with which the program stays compatible.
    #[must_use]
    pub const fn compatible(self) -> u16 {
        self.compatible
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
    let wrong = || "must be a version as MAJOR.MINOR, such as 1.36".to_owned();
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

    fn read(emulated: &[&str], compatible: &[&str]) -> Result<(u16, u16), [Option<String>; 2]> {
        let owned = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
        let versions = Versions::read(&owned(emulated), &owned(compatible))?;
        Ok((versions.emulated(), versions.compatible()))
    }

    #[test]
    fn versions_are_read_as_upstream_reads_them() {
        assert_eq!(read(&[], &[]), Ok((37, 36)));
        for item in ["1.35", "kube=1.35", "v1.35", "1.35.0", "kube = 1.35"] {
            assert_eq!(read(&[item], &[]), Ok((35, 34)), "{item}");
        }
        assert_eq!(read(&["1.34"], &[]), Ok((34, 34)), "no older one is supported");
        assert_eq!(read(&["1.35"], &["1.35"]), Ok((35, 35)));
        let wrong = "must be a version as MAJOR.MINOR, such as 1.36";
        let cases = [
            (&["1.33"][..], &[][..], [Some("must be between 1.34 and 1.37"), None]),
            (&["1.38"], &[], [Some("must be between 1.34 and 1.37"), None]),
            (&["2.0"], &[], [Some("must be between 1.34 and 1.37"), None]),
            (&["1.35"], &["1.36"], [None, Some("must be between 1.34 and 1.35")]),
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
