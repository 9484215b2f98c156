//! The linked and the known controllers, compared with upstream's.

#![cfg(feature = "builtin")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kcm_config::Kind;
use kcm_controller_manager::{UPSTREAM, UpstreamStart};
use kcm_controllers as _;
use kcm_framework::client::ClientLimits;
use kcm_framework::{Registry, Selection, StartGroup};

/// A row of `data/controllers.tsv`.
struct Upstream<'a> {
    name: &'a str,
    aliases: Vec<&'a str>,
    on_by_default: bool,
    gates: Vec<&'a str>,
    group: StartGroup,
    service_account: &'a str,
}

fn table() -> Vec<Upstream<'static>> {
    let rows = include_str!("../data/controllers.tsv").lines().skip(1);
    rows.map(|line| {
        let [name, aliases, default, gates, special, service_account] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("every row has six columns");
        let list = |text: &'static str| text.split(',').filter(|item| !item.is_empty()).collect();
        Upstream {
            name,
            aliases: list(aliases),
            on_by_default: default == "on",
            gates: list(gates),
            group: if special == "first" { StartGroup::First } else { StartGroup::Rest },
            service_account,
        }
    })
    .collect()
}

#[test]
fn every_controller_of_upstream_is_known_with_its_aliases() {
    let table = table();
    assert_eq!(table.len(), 49);
    let known: Vec<_> = UPSTREAM.iter().map(|known| (known.name, known.aliases.to_vec())).collect();
    assert_eq!(known, table.iter().map(|row| (row.name, row.aliases.clone())).collect::<Vec<_>>());
    for (known, row) in UPSTREAM.iter().zip(table) {
        let expected = match known.start {
            UpstreamStart::ByDefault { gates } => (true, gates),
            UpstreamStart::Named { gates } => (false, gates),
        };
        assert_eq!((row.on_by_default, &row.gates[..]), expected, "{}", row.name);
    }
}

/// Linkers drop unreferenced code: naming the facade must link the controllers of every area.
#[test]
fn the_controllers_of_every_area_are_linked() {
    let linked = Registry::linked().expect("the built-in controllers are linked");
    for (area, name) in [
        ("autoscaling", "horizontal-pod-autoscaler-controller"),
        ("cluster", "garbage-collector-controller"),
        ("cluster", "namespace-controller"),
        ("cluster", "resourcequota-controller"),
        ("network", "endpoints-controller"),
        ("network", "endpointslice-controller"),
        ("network", "endpointslice-mirroring-controller"),
        ("network", "service-cidr-controller"),
        ("node", "ttl-controller"),
        ("security", "serviceaccount-token-controller"),
        ("resource", "resourceclaim-controller"),
        ("storage", "persistentvolume-attach-detach-controller"),
        ("storage", "persistentvolume-binder-controller"),
        ("storage", "persistentvolume-protection-controller"),
        ("workloads", "deployment-controller"),
        ("workloads", "disruption-controller"),
        ("workloads", "replicaset-controller"),
    ] {
        assert!(linked.find(name).is_some(), "{name} of {area} is not linked");
    }
}

#[test]
fn every_linked_controller_is_upstreams_in_all_that_operators_see() {
    let linked = Registry::linked().expect("the built-in controllers are linked");
    let star = Selection::parse(["*"], &linked, &[]).expect("the star is known");
    let table = table();
    assert!(linked.iter().len() > 0);
    for controller in linked.iter() {
        let name = controller.name;
        let row = table.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("upstream has no {name}"));
        let gates: BTreeSet<&str> = controller.required_gates.iter().map(|gate| gate.name).collect();
        assert_eq!(controller.aliases, row.aliases, "{name}");
        assert_eq!(gates, row.gates.iter().copied().collect(), "{name}");
        assert_eq!(controller.start_group, row.group, "{name}");
        assert_eq!(controller.account().unwrap_or("(the manager itself)"), row.service_account, "{name}");
        assert_eq!(star.enables(controller), row.on_by_default || row.group == StartGroup::First, "{name}");
    }
}

/// The roles of a table by name, each as groups, resources and verbs. A role of a namespace counts as a cluster role.
fn roles(table: &str) -> BTreeMap<String, BTreeSet<[String; 3]>> {
    let table: serde_json::Value = serde_json::from_str(table).expect("the table is JSON");
    let words = |rule: &serde_json::Value, field: &str| -> Vec<String> {
        let words = rule[field].as_array().into_iter().flatten();
        words.map(|word| word.as_str().expect("rules have words").to_owned()).collect()
    };
    let granted = |rule: &serde_json::Value| {
        let [groups, resources, verbs] = ["apiGroups", "resources", "verbs"].map(|field| words(rule, field));
        let pairs = groups
            .into_iter()
            .flat_map(move |group| resources.clone().into_iter().map(move |resource| (group.clone(), resource)));
        pairs.flat_map(move |(group, resource)| {
            verbs.clone().into_iter().map(move |verb| [group.clone(), resource.clone(), verb])
        })
    };
    let mut roles = BTreeMap::<_, BTreeSet<_>>::new();
    let all = ["clusterRoles", "roles"].into_iter().flat_map(|scope| table[scope].as_object().into_iter().flatten());
    for (name, rules) in all {
        let name = name.rsplit('/').next().unwrap_or(name);
        roles.entry(name.to_owned()).or_default().extend(rules.as_array().into_iter().flatten().flat_map(granted));
    }
    roles
}

/// `rbac.json` has the roles of an API server with default feature gates, `rbac-gated.json` those that gates add or extend.
#[test]
fn every_linked_controller_has_a_role_of_upstream_with_its_gates() {
    let by_default = roles(include_str!("../data/rbac.json"));
    let gated = roles(include_str!("../data/rbac-gated.json"));
    for (name, rights) in &gated {
        let before = by_default.get(name).cloned().unwrap_or_default();
        assert!(rights.is_superset(&before), "a gate takes rights of {name}");
        let account = name.trim_start_matches("system:controller:");
        let row = table().into_iter().find(|row| row.service_account == account);
        let row = row.unwrap_or_else(|| panic!("{name} is the role of no controller"));
        assert!(!row.gates.is_empty(), "{} needs no gate", row.name);
    }
    let linked = Registry::linked().expect("the built-in controllers are linked");
    for controller in linked.iter() {
        let Some(account) = controller.account() else { continue };
        let name = format!("system:controller:{account}");
        let is_of_gate = !controller.required_gates.is_empty() && gated.contains_key(&name);
        assert!(by_default.contains_key(&name) || is_of_gate, "{} has no role", controller.name);
    }
}

#[test]
fn every_controller_has_a_folder_of_its_own_name_and_writes_in_one_file_of_it() {
    let areas = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../controllers"));
    let areas: Vec<PathBuf> = fs::read_dir(areas).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    for controller in Registry::linked().expect("the built-in controllers are linked").iter() {
        let folder = controller.name.trim_end_matches("-controller").replace('-', "_");
        let found: Vec<PathBuf> = areas.iter().map(|area| area.join(&folder)).filter(|path| path.is_dir()).collect();
        let [folder] = &found[..] else {
            panic!("{}: the folder {folder} is in {} areas", controller.name, found.len())
        };
        let writes: Vec<String> = files(folder)
            .into_iter()
            .filter(|file| !file.starts_with(folder.join("tests")))
            .filter(|file| WRITES.iter().any(|verb| fs::read_to_string(file).unwrap().contains(verb)))
            .map(|file| file.strip_prefix(folder).unwrap().display().to_string())
            .collect();
        if let Some((_, files)) = IN_SEVERAL_FILES.iter().find(|(name, _)| *name == controller.name) {
            let writes: BTreeSet<&str> = writes.iter().map(String::as_str).collect();
            assert_eq!(writes, files.iter().copied().collect(), "{}", controller.name);
            continue;
        }
        assert!(writes.len() <= 1, "{} writes in {writes:?}: move the requests to apply.rs", controller.name);
        let known = ["apply.rs", "reconcile.rs"];
        assert!(writes.iter().all(|file| known.contains(&&**file)), "{} writes in {writes:?}", controller.name);
    }
}

/// Controllers whose requests are in several files, because they have several procedures: binding, provisioning and reclaiming
/// volumes; creating claims and releasing them.
const IN_SEVERAL_FILES: [(&str, &[&str]); 2] = [
    ("persistentvolume-binder-controller", &["drafts.rs", "provision.rs", "reclaim.rs"]),
    ("resourceclaim-controller", &["apply.rs", "ensure.rs"]),
];

/// The verbs of a session that write.
const WRITES: [&str; 12] = [
    "session.create",
    "session.update",
    "session.patch",
    "session.merge_patch",
    "session.apply",
    "session.delete",
    "session.add_finalizer",
    "session.remove_finalizer",
    "session.ensure_applied",
    "session\n            .create",
    "session\n            .patch",
    "session.of(",
];

/// The files of a folder and of the folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("it can be read").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn events_name_the_component_that_upstream_names() {
    let rows = include_str!("../data/event-components.tsv").lines().skip(1);
    let components: BTreeMap<&str, &str> = rows
        .map(|line| {
            let [name, component, _source] =
                line.split('\t').collect::<Vec<_>>().try_into().expect("every row has three columns");
            (name, component)
        })
        .collect();
    let known: BTreeSet<&str> = table().into_iter().map(|row| row.name).collect();
    let unknown: Vec<_> = components.keys().filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "upstream has no {unknown:?}");
    for controller in Registry::linked().expect("the built-in controllers are linked").iter() {
        if let Some(component) = components.get(controller.name) {
            assert_eq!(controller.event_component, *component, "{}", controller.name);
        }
    }
}

/// Upstream changes them in `cmd/kube-controller-manager/app/core.go`.
#[test]
fn only_clients_that_upstream_limits_otherwise_have_other_limits() {
    let others = [
        ("garbage-collector-controller", ClientLimits::Times { qps: 2, burst: 1 }),
        ("namespace-controller", ClientLimits::Times { qps: 20, burst: 100 }),
        ("storage-version-migrator-controller", ClientLimits::Times { qps: 20, burst: 100 }),
    ];
    let linked = Registry::linked().expect("the built-in controllers are linked");
    let found = linked.iter().filter(|controller| controller.client_limits != ClientLimits::OfSettings);
    let found: Vec<_> = found.map(|controller| (controller.name, controller.client_limits)).collect();
    assert_eq!(found, others);
}

#[test]
fn every_flag_of_a_controller_has_upstream_s_section_type_and_default() {
    let flags = include_str!("../../../config/tests/data/flags.tsv").lines().skip(1);
    let flags: BTreeMap<&str, Vec<&str>> =
        flags.map(|line| line.split('\t').collect::<Vec<_>>()).map(|row| (row[1], row)).collect();
    let linked = Registry::linked().expect("the built-in controllers are linked");
    let rows = linked.iter().flat_map(|controller| controller.settings);
    // Some settings have a key in the file alone.
    let rows: Vec<_> = rows.filter(|row| row.flag().is_some_and(|flag| !own_flags().contains(flag))).collect();
    assert!(!rows.is_empty());
    for row in rows {
        let upstream = flags.get(row.name).unwrap_or_else(|| panic!("upstream has no --{}", row.name));
        let short = row.short.map(String::from).unwrap_or_default();
        let default = match (row.kind(), row.initial.value()) {
            (Kind::Strings, value) => format!("[{value}]"),
            (_, value) => value.to_string(),
        };
        assert_eq!(upstream[..5], [row.section, row.name, &short, row.kind().name(), &default], "--{}", row.name);
    }
}

#[test]
fn every_flag_of_upstream_is_a_flag_here() {
    let linked = Registry::linked().expect("the built-in controllers are linked");
    let table = kcm_controller_manager::table(&linked, &[]).expect("the rows make a table");
    let ours: BTreeSet<&str> =
        table.rows().iter().filter_map(kcm_config::Row::flag).chain(["help", "version"]).collect();
    let flags = include_str!("../../../config/tests/data/flags.tsv").lines().skip(1);
    let upstreams: BTreeSet<&str> = flags.filter_map(|line| line.split('\t').nth(1)).collect();
    assert_eq!(upstreams.len(), 150);
    assert_eq!(upstreams.difference(&ours).collect::<Vec<_>>(), [&""; 0]);
    assert_eq!(ours.difference(&upstreams).copied().collect::<BTreeSet<_>>(), own_flags());
}

/// The flags that upstream does not have.
fn own_flags() -> BTreeSet<&'static str> {
    let rows = include_str!("../../../config/tests/data/own-flags.tsv").lines().skip(1);
    rows.filter_map(|line| line.split('\t').nth(1)).collect()
}

#[test]
fn every_key_that_configz_prints_is_a_key_of_the_file() {
    let linked = Registry::linked().expect("the built-in controllers are linked");
    let table = kcm_controller_manager::table(&linked, &[]).expect("the rows make a table");
    let ours: BTreeSet<String> = table.rows().iter().filter_map(|row| Some(row.path?.to_string())).collect();
    let defaults: serde_json::Value =
        serde_json::from_str(include_str!("../../../config/tests/data/config-defaults.json")).expect("it is JSON");
    let mut upstreams = BTreeSet::new();
    paths(&defaults, "", &mut upstreams);
    let headers = ["apiVersion", "kind"].map(str::to_owned);
    let upstreams: BTreeSet<String> = upstreams.into_iter().filter(|path| !headers.contains(path)).collect();
    // Upstream has no keys for logs, and one worker for budgets; a reload can only change settings with keys.
    let own = ["Logging.verbosity", "Logging.vmodule", "DisruptionController.ConcurrentDisruptionSyncs"];
    let expected = upstreams.into_iter().chain(own.map(str::to_owned));
    assert_eq!(ours, expected.collect());
}

/// The paths of all values; a section without keys is a value.
fn paths(value: &serde_json::Value, path: &str, found: &mut BTreeSet<String>) {
    match value.as_object().filter(|section| !section.is_empty()) {
        Some(section) => {
            for (key, inner) in section {
                paths(inner, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, found);
            }
        }
        None => drop(found.insert(path.to_owned())),
    }
}
