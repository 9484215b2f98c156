//! The settings of leader migration.

use crate::row::{Initial, Row};

const SECTION: &str = "Leader-migration";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("enable-leader-migration", SECTION, Initial::Bool(false)).path("Generic.LeaderMigrationEnabled").help("Hold a lease of its own for the controllers that migrate to another controller manager."),
    Row::new("leader-migration-config", SECTION, Initial::String("")).help("A file of kind LeaderMigrationConfiguration (controllermanager.config.k8s.io/v1alpha1) that says which controllers migrate; empty for the defaults."),
    Row::in_file("Generic.LeaderMigration.leaderName", SECTION, Initial::String("")).help("The name of the lease of the controllers that migrate."),
    Row::in_file("Generic.LeaderMigration.resourceLock", SECTION, Initial::String("")).help("The kind of the lock of the controllers that migrate."),
    Row::in_file("Generic.LeaderMigration.controllerLeaders", SECTION, Initial::Objects { fields: &["name", "component"], items: &[] }).help("The controllers that migrate, each with the component that runs it."),
];
