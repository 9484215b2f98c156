//! Access modes and volume modes, which volumes and claims share.

use std::fmt;

use serde::Deserialize;

use crate::protobuf::{Kind, ProtobufType};

/// A set of access modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AccessModes(u8);

/// The access modes, from the highest bit of a set to the lowest.
const MODES: [(&str, u8); 4] =
    [("ReadWriteOnce", 8), ("ReadOnlyMany", 4), ("ReadWriteMany", 2), ("ReadWriteOncePod", 1)];

impl AccessModes {
    /// Returns the set of the access modes with these names. Unknown names are left out.
    #[must_use]
    pub fn of<T: AsRef<str>>(names: &[T]) -> Self {
        let known = |name: &T| MODES.iter().find(|(mode, _)| *mode == name.as_ref()).map_or(0, |(_, bit)| *bit);
        Self(names.iter().map(known).fold(0, |set, bit| set | bit))
    }

    /// Returns `true` if the set has all modes of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns all sets that contain `self`: those with fewer modes first, and among equal numbers those with
    /// `ReadWriteOnce`, then `ReadOnlyMany`, then `ReadWriteMany` first.
    #[must_use]
    pub fn supersets(self) -> Vec<Self> {
        let mut sets: Vec<Self> = (0..16).rev().map(Self).filter(|set| set.contains(self)).collect();
        sets.sort_by_key(|set| set.0.count_ones());
        sets
    }
}

impl fmt::Display for AccessModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = MODES.iter().filter(|(_, bit)| self.0 & bit != 0).map(|(name, _)| *name);
        f.write_str(&names.collect::<Vec<_>>().join(", "))
    }
}

/// Volume mode of a volume or a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
pub enum VolumeMode {
    /// Raw block device, without a file system.
    Block,
    /// A file system, which is the default.
    #[default]
    #[serde(other)]
    Filesystem,
}

impl ProtobufType for VolumeMode {
    const KIND: Kind = Kind::Text;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supersets_have_the_fewest_modes_first_and_then_follow_the_order_of_the_modes() {
        let of = |names: &[&str]| AccessModes::of(names);
        let supersets = of(&["ReadWriteOnce"]).supersets();
        assert_eq!(supersets[0], of(&["ReadWriteOnce"]));
        assert_eq!(supersets[1], of(&["ReadWriteOnce", "ReadOnlyMany"]));
        assert_eq!(supersets[2], of(&["ReadWriteMany", "ReadWriteOnce"]));
        assert_eq!(supersets[3], of(&["ReadWriteOnce", "ReadWriteOncePod"]));
        assert_eq!(supersets.len(), 8);
        assert_eq!(AccessModes::default().supersets().len(), 16);
        assert_eq!(of(&["ReadWriteOnce", "ReadOnlyMany"]).to_string(), "ReadWriteOnce, ReadOnlyMany");
        assert_eq!(of(&["Sideways"]), AccessModes::default());
    }
}
