//! The settings of leader migration.

use crate::row::{Initial, Row};

const SECTION: &str = "Leader-migration";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("enable-leader-migration", SECTION, Initial::Bool(false)).path("Generic.LeaderMigrationEnabled").help("Use a second lease for the controllers that are being moved to another controller manager."),
    Row::new("leader-migration-config", SECTION, Initial::String("")).help("File of kind LeaderMigrationConfiguration (controllermanager.config.k8s.io/v1alpha1) that names the controllers to move. Empty: the defaults."),
    Row::in_file("Generic.LeaderMigration.leaderName", SECTION, Initial::String("")).help("Name of the migration lease."),
    Row::in_file("Generic.LeaderMigration.resourceLock", SECTION, Initial::String("")).help("Kind of the lock object of the migration lease."),
    Row::in_file("Generic.LeaderMigration.controllerLeaders", SECTION, Initial::Objects { fields: &["name", "component"], items: &[] }).help("Controllers that are moved, each with the component that runs it."),
];
