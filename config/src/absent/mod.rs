//! The settings of controllers that upstream has and this project does not have yet, a file for each area.
//!
//! They are read, checked and shown like all others, so that the command line of any manifest is accepted. Each row
//! says that it has no effect. When a controller is built, its rows move into its folder and take effect.

/// The help of a worker count, for the objects that the workers reconcile.
macro_rules! workers {
    ($objects:literal) => {
        concat!(
            "Number of ",
            $objects,
            " that are reconciled at the same time. A higher number reacts faster to many changes and sends more API \
             requests."
        )
    };
}

mod cluster;

use crate::row::Row;

/// The settings of a controller that is not built yet.
#[derive(Debug, Clone, Copy)]
pub struct AbsentSettings {
    /// The controller's canonical name.
    pub controller: &'static str,
    /// The rows of its settings.
    pub rows: &'static [Row],
}

const AREAS: &[&[AbsentSettings]] = &[cluster::CONTROLLERS];

/// The settings of every controller that is not built yet.
pub fn controllers() -> impl Iterator<Item = &'static AbsentSettings> {
    AREAS.iter().copied().flatten()
}
