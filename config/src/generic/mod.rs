//! The settings that belong to no single controller, a file for each section.

mod authentication;
mod authorization;
mod cloud;
mod debugging;
mod leader_election;
mod leader_migration;
mod logs;
mod manager;
mod metrics;
mod misc;
mod secure_serving;
mod tls;

use crate::row::Row;

/// The flag that names the configuration file. It has no key in the file.
pub const CONFIG: &str = "config";

/// The flag that lets the program start although `--controllers` names controllers that it does not have.
pub const ALLOW_MISSING_CONTROLLERS: &str = "allow-missing-controllers";

pub(crate) const EMULATED_VERSION: &str = "emulated-version";
pub(crate) const MIN_COMPATIBILITY_VERSION: &str = "min-compatibility-version";

const ROWS: &[&[Row]] = &[
    debugging::ROWS,
    leader_migration::ROWS,
    manager::ROWS,
    leader_election::ROWS,
    cloud::ROWS,
    secure_serving::ROWS,
    authentication::ROWS,
    authorization::ROWS,
    metrics::ROWS,
    logs::ROWS,
    misc::ROWS,
];

/// The rows of the generic settings.
pub fn rows() -> impl Iterator<Item = Row> {
    ROWS.iter().copied().flatten().copied()
}
