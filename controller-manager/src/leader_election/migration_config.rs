//! The configuration of leader migration: the controllers that migrate.
//!
//! # Upstream
//! `LeaderMigrationConfiguration` in `k8s.io/controller-manager/config`, its defaults, and how its entries divide the
//! controllers.

use std::collections::BTreeMap;
use std::path::Path;

use kcm_config::{ConfigErrors, Effective, FileKind, Initial, Origin, Row, Table, Value};

/// The name of this component in entries.
const COMPONENT: &str = "kube-controller-manager";

/// The component of an entry that stands for all.
const ANY_COMPONENT: &str = "*";

/// The default of `leaderName`.
const LEADER_NAME: &str = "cloud-provider-extraction-migration";

/// The controllers that migrate by default; any component may run them.
const LEADERS: [&str; 3] = ["route-controller", "service-controller", "cloud-node-lifecycle-controller"];

const SECTION: &str = "Leader-migration";

/// The names of the same rows in the configuration file.
const IN_CONFIGURATION: &str = "Generic.LeaderMigration.";

const FILE: FileKind = FileKind {
    api_versions: &[
        "controllermanager.config.k8s.io/v1alpha1",
        "controllermanager.config.k8s.io/v1beta1",
        "controllermanager.config.k8s.io/v1",
    ],
    kind: "LeaderMigrationConfiguration",
};

const ROWS: [Row; 3] = [
    // The lock of v1, which has no such field.
    Row::in_file("resourceLock", SECTION, Initial::String("leases")).help("Kind of the lock object."),
    Row::in_file("leaderName", SECTION, Initial::String("")).help("Name of the migration lease."),
    Row::in_file("controllerLeaders", SECTION, Initial::Objects { fields: &["name", "component"], items: &[] })
        .help("Controllers that are moved, each with the component that runs it."),
];

/// The configuration of leader migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MigrationConfig {
    leader_name: String,
    resource_lock: String,
    controller_leaders: Vec<ControllerLeader>,
}

/// A controller that migrates.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ControllerLeader {
    name: String,
    component: String,
}

/// Under which lease a controller runs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The lease of the manager.
    Main,
    /// The lease of leader migration.
    Migration,
    /// Another component runs it.
    Other,
}

impl Default for MigrationConfig {
    fn default() -> Self {
        let leader = |name: &str| ControllerLeader { name: name.to_owned(), component: ANY_COMPONENT.to_owned() };
        Self {
            leader_name: LEADER_NAME.to_owned(),
            resource_lock: "leases".to_owned(),
            controller_leaders: LEADERS.map(leader).into(),
        }
    }
}

impl MigrationConfig {
    /// Returns the configuration that `--leader-migration-config` names, else the section `Generic.LeaderMigration`,
    /// else the default. Returns `None` if leader migration is not enabled.
    ///
    /// # Errors
    /// Every reason why it cannot be used.
    pub(crate) fn of(settings: &Effective) -> Result<Option<Self>, Vec<String>> {
        let is_on = |flag: &str| settings.get(flag).unwrap_or(false);
        if !is_on("leader-elect") || !is_on("enable-leader-migration") {
            return Ok(None);
        }
        let (config, place) = if let Some((path, named_by)) = file(settings) {
            let config = Self::read(Path::new(&path), named_by)
                .map_err(|errors| errors.0.iter().map(ToString::to_string).collect::<Vec<_>>())?;
            (config, path)
        } else if let Some(origin) = section_origin(settings) {
            (Self::from_rows(settings, IN_CONFIGURATION), origin.to_string())
        } else {
            return Ok(Some(Self::default()));
        };
        let reasons: Vec<_> = config.violations().iter().map(|reason| format!("{place}: {reason}")).collect();
        if reasons.is_empty() { Ok(Some(config)) } else { Err(reasons) }
    }

    /// The configuration in a file.
    fn read(path: &Path, named_by: &Origin) -> Result<Self, ConfigErrors> {
        let table = Table::with_gates(ROWS, []).expect("the rows make a table");
        Ok(Self::from_rows(&table.load_file(FILE, path, named_by)?, ""))
    }

    /// The configuration of rows whose names begin with `prefix`.
    fn from_rows(settings: &Effective, prefix: &str) -> Self {
        let value = |key: &str| settings.value(&format!("{prefix}{key}"));
        let text = |key: &str| match value(key) {
            Some(Value::String(text)) => text.clone(),
            Some(_) | None => String::new(),
        };
        let leaders = match value("controllerLeaders") {
            Some(Value::Objects(items)) => items.as_slice(),
            Some(_) | None => &[],
        };
        let field = |item: &BTreeMap<String, String>, field: &str| item.get(field).cloned().unwrap_or_default();
        let leader = |item| ControllerLeader { name: field(item, "name"), component: field(item, "component") };
        Self {
            leader_name: text("leaderName"),
            resource_lock: text("resourceLock"),
            controller_leaders: leaders.iter().map(leader).collect(),
        }
    }

    /// Every reason why it cannot be used.
    fn violations(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.leader_name.is_empty() {
            reasons.push("leaderName must be set: it names the lease of the migrated controllers".to_owned());
        }
        if self.resource_lock != "leases" {
            reasons.push(format!("resourceLock is {:?}, and must be leases", self.resource_lock));
        }
        for (at, leader) in self.controller_leaders.iter().enumerate() {
            for (field, value) in [("name", &leader.name), ("component", &leader.component)] {
                if value.is_empty() {
                    reasons.push(format!("controllerLeaders[{at}].{field} must be set"));
                }
            }
        }
        reasons
    }

    /// The name of the lease.
    pub(crate) fn lease(&self) -> &str {
        &self.leader_name
    }

    /// The names of the controllers that migrate.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.controller_leaders.iter().map(|leader| leader.name.as_str())
    }

    /// Under which lease the controller of that canonical name runs here. The last entry of a name decides.
    pub(crate) fn owner(&self, controller: &str) -> Owner {
        let leader = self.controller_leaders.iter().rev().find(|leader| leader.name == controller);
        match leader.map(|leader| leader.component.as_str()) {
            None => Owner::Main,
            Some(COMPONENT | ANY_COMPONENT) => Owner::Migration,
            Some(_) => Owner::Other,
        }
    }
}

/// The file that `--leader-migration-config` names, and the origin of that flag.
fn file(settings: &Effective) -> Option<(String, &Origin)> {
    const FLAG: &str = "leader-migration-config";
    let path: String = settings.get(FLAG).unwrap_or_default();
    (!path.is_empty()).then_some((path, settings.origin(FLAG)?))
}

/// Returns the place of the section in the configuration file, or `None` if it is not given.
fn section_origin(settings: &Effective) -> Option<&Origin> {
    let origins = ROWS.iter().filter_map(|row| settings.origin(&format!("{IN_CONFIGURATION}{}", row.name)));
    origins.into_iter().find(|origin| **origin != Origin::Default)
}

#[cfg(test)]
mod tests {
    use kcm_config::{Loaded, Sources, generic};

    use super::*;

    const HEAD: &str = "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n";

    fn settings(arguments: &[&str], section: &str) -> Effective {
        let table = Table::new(generic::rows()).expect("the rows make a table");
        let configuration = format!(
            "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n{section}"
        );
        let arguments = ["--config=kcm.yaml"].iter().chain(arguments).copied();
        match table.load(&Sources::default().arguments(arguments).file("kcm.yaml", configuration)) {
            Ok(Loaded::Settings(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    }

    fn of_file(text: &str) -> Result<MigrationConfig, Vec<String>> {
        let folder = tempfile::tempdir().expect("there must be room for a folder");
        let path = folder.path().join("migration.yaml");
        std::fs::write(&path, text).expect("there must be room for a file");
        let path = path.display().to_string();
        let flag = format!("--leader-migration-config={path}");
        let config = MigrationConfig::of(&settings(&["--enable-leader-migration", &flag], ""));
        let shortened = |reasons: Vec<String>| reasons.iter().map(|it| it.replace(&path, "FILE")).collect();
        config.map(|config| config.expect("it is enabled")).map_err(shortened)
    }

    #[test]
    fn without_a_file_upstream_s_defaults_hold() {
        let config = MigrationConfig::of(&settings(&["--enable-leader-migration"], "")).unwrap().unwrap();
        assert_eq!(config.lease(), "cloud-provider-extraction-migration");
        assert_eq!(config.names().collect::<Vec<_>>(), LEADERS);
        assert_eq!(config.owner("cloud-node-lifecycle-controller"), Owner::Migration);
        assert_eq!(
            config.owner("node-route-controller"),
            Owner::Main,
            "upstream's default names no controller of today"
        );
    }

    #[test]
    fn there_is_none_unless_it_is_enabled_and_there_is_leader_election() {
        for arguments in [&[][..], &["--enable-leader-migration", "--leader-elect=false"]] {
            assert_eq!(MigrationConfig::of(&settings(arguments, "")), Ok(None), "{arguments:?}");
        }
    }

    #[test]
    fn entries_divide_the_controllers_by_component_and_the_last_of_a_name_decides() {
        let entries = [
            ("a-controller", "kube-controller-manager"),
            ("b-controller", "*"),
            ("c-controller", "cloud-controller-manager"),
            ("d-controller", "cloud-controller-manager"),
            ("d-controller", "*"),
        ];
        let entries =
            entries.map(|(name, component)| format!("- {{name: {name}, component: '{component}'}}\n")).concat();
        let config = of_file(&format!("{HEAD}leaderName: other\ncontrollerLeaders:\n{entries}")).unwrap();
        assert_eq!(config.lease(), "other");
        let owners = ["a", "b", "c", "d", "e"].map(|name| config.owner(&format!("{name}-controller")));
        assert_eq!(owners, [Owner::Migration, Owner::Migration, Owner::Other, Owner::Migration, Owner::Main]);
    }

    #[test]
    fn the_section_of_the_configuration_file_is_an_alternative_to_the_file() {
        let section = "generic:\n  leaderMigration:\n    leaderName: mine\n    resourceLock: leases\n    \
                       controllerLeaders: [{name: a-controller, component: '*'}]\n";
        let config = MigrationConfig::of(&settings(&["--enable-leader-migration"], section)).unwrap().unwrap();
        assert_eq!((config.lease(), config.owner("a-controller")), ("mine", Owner::Migration));
    }

    #[test]
    fn every_mistake_of_a_file_is_reported_with_its_place() {
        for (text, expected) in [
            (
                "kind: LeaderMigrationConfiguration\nleaderNam: x\n",
                &[
                    "FILE:1:1: apiVersion is missing, expected controllermanager.config.k8s.io/v1alpha1",
                    "FILE:2:1: unknown key leaderNam; did you mean leaderName?",
                ][..],
            ),
            (
                &format!("{HEAD}resourceLock: endpoints\ncontrollerLeaders: [{{name: a}}, {{component: '*'}}]\n"),
                &[
                    "FILE: leaderName must be set: it names the lease of the migrated controllers",
                    "FILE: resourceLock is \"endpoints\", and must be leases",
                    "FILE: controllerLeaders[0].component must be set",
                    "FILE: controllerLeaders[1].name must be set",
                ],
            ),
            (&format!("{HEAD}leaderName: a\nleaderName: b\n"), &["FILE:4:1: leaderName is given twice, first at 3:1"]),
        ] {
            assert_eq!(of_file(text), Err(expected.iter().map(ToString::to_string).collect()), "{text}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named_with_the_flag() {
        let missing = settings(&["--enable-leader-migration", "--leader-migration-config=/none.yaml"], "");
        let reasons = MigrationConfig::of(&missing).unwrap_err();
        assert!(reasons[0].contains("/none.yaml") && reasons[0].contains("--leader-migration-config"), "{reasons:?}");
    }
}
