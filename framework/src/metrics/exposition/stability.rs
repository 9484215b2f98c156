//! The stability of metrics, which their help begins with, as upstream's does: `[ALPHA]`, `[BETA]` or `[STABLE]`.

use super::family::Family;

/// The metrics that upstream has deprecated, with the minor version of Kubernetes since which they are.
const DEPRECATED: &[(&str, u32)] = &[("volume_operation_total_errors", 36)];

/// The minor version of Kubernetes that this program behaves as.
const MINOR: u32 = 36;

/// The stability of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stability {
    Alpha,
    Beta,
    Stable,
}

impl Stability {
    /// The stability that the help of a family states.
    pub(super) fn of(family: &Family) -> Option<Self> {
        let levels = [Self::Alpha, Self::Beta, Self::Stable];
        let (level, _) = family.help.strip_prefix('[')?.split_once("] ")?;
        levels.into_iter().find(|stability| stability.as_str() == level)
    }

    /// The value of the label `stability_level`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Stable => "STABLE",
        }
    }

    /// Returns `true` if a metric is hidden: it was deprecated in an earlier minor version.
    pub(super) fn is_hidden(name: &str) -> bool {
        DEPRECATED.iter().any(|(deprecated, since)| *deprecated == name && is_hidden_since(*since))
    }

    /// Returns the version in which a metric was deprecated, or an empty string.
    pub(super) fn deprecated_version(name: &str) -> String {
        let deprecated = DEPRECATED.iter().find(|(deprecated, _)| *deprecated == name);
        deprecated.map_or_else(String::new, |(_, minor)| format!("1.{minor}.0"))
    }
}

const fn is_hidden_since(deprecated: u32) -> bool {
    deprecated < MINOR
}

#[cfg(test)]
mod tests {
    use super::super::family::Family;
    use super::*;

    #[test]
    fn the_stability_is_what_the_help_begins_with() {
        for (help, stability) in [
            ("[BETA] Current depth of workqueue", Some(Stability::Beta)),
            ("[ALPHA] a", Some(Stability::Alpha)),
            ("[STABLE] a", Some(Stability::Stable)),
            ("[GAMMA] a", None),
            ("a [BETA] ", None),
        ] {
            let families = Family::read(&format!("# HELP a {help}.\n# TYPE a gauge\na 1\n"));
            assert_eq!(Stability::of(&families[0]), stability, "{help}");
        }
    }

    #[test]
    fn a_metric_is_hidden_one_minor_version_after_its_deprecation() {
        assert!(is_hidden_since(MINOR - 1) && !is_hidden_since(MINOR));
        assert!(!Stability::is_hidden("volume_operation_total_errors"));
        assert_eq!(Stability::deprecated_version("volume_operation_total_errors"), "1.36.0");
    }
}
