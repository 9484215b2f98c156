//! A feature gate and its stages.

/// One feature gate as a row of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// Name of the gate, as upstream.
    pub name: &'static str,
    /// Whether it is on by default.
    pub default: bool,
    /// Maturity of the feature: alpha to generally available.
    pub stage: GateStage,
    /// Whether it is locked to its default (upstream's `LockToDefault`).
    pub locked: bool,
}

/// The stage of a gate (upstream's `PreRelease`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateStage {
    /// Off by default; `AllAlpha=true` turns it on.
    Alpha,
    /// On by default, mostly; `AllBeta=false` turns it off.
    Beta,
    /// Generally available; the gate will be removed.
    Ga,
    /// Deprecated; the gate will be removed.
    Deprecated,
}

impl GateStage {
    /// Returns the stage as upstream's metrics name it. It is empty for a gate that is generally available.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
            Self::Ga => "",
            Self::Deprecated => "DEPRECATED",
        }
    }
}
