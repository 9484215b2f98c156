//! Look-ups by key that take an object that cannot be decoded for an absent one.
//!
//! `Informer::get` returns `None` for such an object. A controller that decides by the absence of an object calls
//! `Informer::lookup`, which tells the two apart. The places here decide nothing by absence.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// File below `controllers`, name of the receiver of `get`, and the reason why `get` is right there.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "api_machinery/src/garbage_collector/undecodable.rs",
        "informer",
        "the undecodable objects are looked up before it, and an absent object is read live",
    ),
    (
        "apps/src/daemonset/node_updates.rs",
        "nodes",
        "it enqueues DaemonSets, whose reconcile holds while the node cannot be decoded",
    ),
    (
        "apps/src/deployment/observe.rs",
        "replica_sets",
        "an event mapping: the Deployment waits for its ReplicaSets that cannot be decoded",
    ),
    ("apps/src/disruption/controllers.rs", "objects", "an object that is not found is read live"),
    ("apps/src/job/orphans.rs", "pods", "the object of the key, without which nothing is done"),
    (
        "auth/src/serviceaccount_token/reconcile.rs",
        "secrets",
        "the object of the key; the account forgets a secret only after a live read",
    ),
    ("node/src/node_lifecycle/mod.rs", "nodes", "an event mapping: a change of the node enqueues its pods"),
    ("node/src/node_lifecycle/pass.rs", "leases", "a lease that seems silent is read live before its node is marked"),
    ("node/src/taint_eviction/mod.rs", "nodes", "an event mapping: a change of the node enqueues its pods"),
    (
        "storage/src/persistentvolume_attach_detach/event_mapping.rs",
        "volumes",
        "an event mapping: without the volume, the attachment is found by its name",
    ),
    (
        "storage/src/persistentvolume_attach_detach/pods.rs",
        "pods",
        "the object of the key, which is not reconciled while it cannot be decoded",
    ),
    (
        "storage/src/persistentvolume_attach_detach/volumes.rs",
        "pods",
        "no event is recorded on a pod that cannot be decoded",
    ),
    (
        "storage/src/persistentvolume_attach_detach/world.rs",
        "claims",
        "the pod waits while its claim cannot be decoded, and a volume that it has is not detached",
    ),
    (
        "storage/src/persistentvolume_attach_detach/world.rs",
        "drivers",
        "a driver that cannot be decoded needs attachments, as without the object of the driver",
    ),
    (
        "storage/src/persistentvolume_attach_detach/world.rs",
        "volumes",
        "the pod waits while its volume cannot be decoded, and a volume that it has is not detached",
    ),
    (
        "storage/src/persistentvolume_binder/provision.rs",
        "nodes",
        "a volume is provisioned on no node that cannot be decoded: the claim is retried",
    ),
    (
        "storage/src/persistentvolume_binder/reclaim.rs",
        "claims",
        "it decides the text of an event; the volume is read live",
    ),
    (
        "storage/src/persistentvolume_binder/reclaim.rs",
        "pods",
        "a pod of that name is found by its creation, which fails, and deletes nothing",
    ),
    ("storage/src/persistentvolume_binder/world.rs", "classes", "the claim waits while its class cannot be decoded"),
    ("storage/src/persistentvolume_binder/world.rs", "volumes", "the claim waits while its volume cannot be decoded"),
    ("storage/src/selinux_warning/reconcile.rs", "pods", "no event is recorded on a pod that cannot be decoded"),
    // Maps with the name of an informer.
    ("storage/src/persistentvolume_attach_detach/actual.rs", "attachments", "a map"),
    ("storage/src/persistentvolume_attach_detach/observe.rs", "attachments", "a map"),
    ("storage/src/persistentvolume_attach_detach/observe.rs", "nodes", "a map"),
    ("storage/src/persistentvolume_attach_detach/state.rs", "volumes", "a map"),
    ("storage/src/persistentvolume_attach_detach/volumes.rs", "attachments", "a map"),
    ("storage/src/persistentvolume_attach_detach/volumes.rs", "nodes", "a map"),
    ("storage/src/persistentvolume_binder/waiting.rs", "claims", "a map"),
    ("storage/src/selinux_warning/uses.rs", "pods", "a map"),
    ("apps/src/pod_garbage_collector/plan.rs", "nodes", "a map"),
    ("network/src/endpointslice/hinted_services.rs", "services", "a map"),
    ("network/src/endpointslice/zones.rs", "nodes", "a map"),
    ("network/src/shared/trigger_time.rs", "pods", "a slice of hashes"),
    ("node/src/node_ipam/allocator.rs", "nodes", "a map"),
    ("node/src/node_lifecycle/monitor.rs", "nodes", "a map"),
];

fn is_ident(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the identifier that a text ends with.
fn last_ident(text: &str) -> &str {
    text.rsplit(|character| !is_ident(character)).next().unwrap_or_default()
}

/// Returns the names that a file gives informers: fields, arguments, and variables on the line that creates one.
fn informers_in(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        for (at, _) in line.match_indices("Informer") {
            let before = line[..at].trim_end_matches("Metadata");
            let before = before.trim_end_matches("Option<").trim_end_matches("Arc<").trim_end_matches('&').trim_end();
            names.extend(before.strip_suffix(':').map(last_ident));
        }
        let creates =
            [".primary::<", ".primary_with(", ".watches::<", ".reads::<", ".informer::<", ".metadata_informer("];
        if let Some(variable) = line.trim_start().strip_prefix("let ")
            && creates.iter().any(|call| line.contains(call))
        {
            let variable = variable.trim_start_matches("mut ");
            names.insert(&variable[..variable.find(|character| !is_ident(character)).unwrap_or(variable.len())]);
        }
    }
    names.remove("");
    names
}

/// Returns the receivers of `get` in a file.
fn receivers_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(".get(").map(|(at, _)| last_ident(text[..at].trim_end()))
}

/// Reads the product files below a folder.
fn read_sources(folder: &Path, sources: &mut Vec<(PathBuf, String)>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("the entry can be read").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are UTF-8");
        if path.is_dir() {
            if !["tests", "target", "benches"].contains(&name) {
                read_sources(&path, sources);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !["tests.rs", "bench.rs"].contains(&name)
        {
            let text = fs::read_to_string(&path).expect("the file can be read");
            sources.push((path, text));
        }
    }
}

/// Returns area, `src` and controller of a path.
fn controller_of(path: &str) -> String {
    path.split('/').take(3).collect::<Vec<_>>().join("/")
}

#[test]
fn no_controller_takes_an_object_that_cannot_be_decoded_for_an_absent_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    read_sources(root, &mut files);
    let sources: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.strip_prefix(root).unwrap().to_str().unwrap(), text.as_str()))
        .filter(|(path, _)| path.split('/').nth(1) == Some("src"))
        .collect();
    let mut informers: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in &sources {
        informers.entry(controller_of(path)).or_default().extend(informers_in(text));
    }
    assert!(informers.values().map(BTreeSet::len).sum::<usize>() > 40, "informers are found: {informers:?}");

    let mut found = BTreeSet::new();
    for (path, text) in &sources {
        let informers = &informers[&controller_of(path)];
        found.extend(
            receivers_in(text)
                .filter(|receiver| !receiver.is_empty() && informers.contains(receiver))
                .map(|name| (*path, name)),
        );
    }
    let allowed: BTreeSet<_> = ALLOWED.iter().map(|(path, receiver, _)| (*path, *receiver)).collect();
    let unknown: Vec<_> = found.difference(&allowed).collect();
    assert!(
        unknown.is_empty(),
        "use `lookup`, or list the place with the reason why absence decides nothing: {unknown:?}"
    );
    let stale: Vec<_> = allowed.difference(&found).collect();
    assert!(stale.is_empty(), "these places do not exist any more: {stale:?}");
}

#[test]
fn informers_and_their_receivers_are_recognised() {
    let text = "struct Caches {\n    pods: Informer<Pod>,\n    all: &MetadataInformer,\n}\n\
                let mut nodes = control_loop.reads::<Node>();\nself.caches\n    .pods\n    .get(key); nodes.get(a)";
    assert_eq!(informers_in(text).into_iter().collect::<Vec<_>>(), ["all", "nodes", "pods"]);
    assert_eq!(receivers_in(text).collect::<Vec<_>>(), ["pods", "nodes"]);
}
