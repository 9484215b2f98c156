use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kcm_sandbox_apiserver::{ObjectKey, PODS, Resource, Verb};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::history::Objects;

const SETS: Resource = Resource::namespaced("apps", "v1", "replicasets", "ReplicaSet");

/// A uid that is made of a number.
fn uid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

fn name_of(number: usize, salt: usize) -> String {
    let letters = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rest = number + 31 * salt + 7;
    let suffix: String = (0..5)
        .map(|_| {
            let letter = letters[rest % letters.len()];
            rest = rest / letters.len() + 3 * rest;
            char::from(letter)
        })
        .collect();
    format!("web-{suffix}")
}

fn insert(objects: &mut Objects, resource: &Resource, object: Value) {
    let metadata = &object["metadata"];
    let key = ObjectKey::namespaced(metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
    objects.entry(resource.clone()).or_default().insert(key, Arc::new(object));
}

fn set(name: &str, number: u64) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "a", "uid": uid(number), "resourceVersion": number.to_string(), "generation": 2,
            "creationTimestamp": format!("2026-01-02T03:04:{:02}Z", number % 60),
        },
        "spec": { "replicas": 2 },
        "status": { "observedGeneration": 2, "replicas": 2 },
    })
}

fn pod(name: &str, number: u64, owner: u64) -> Value {
    json!({
        "metadata": {
            "name": name, "generateName": "web-", "namespace": "a", "uid": uid(number),
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": uid(owner), "controller": true}],
        },
        "spec": { "nodeName": "node-1" },
        "status": { "phase": "Running", "podIP": format!("10.0.0.{}", number % 250) },
    })
}

/// A set with pods; `salt` chooses names, uids, times and addresses, and `turn` the order in which the pods were created.
fn cluster(pods: &[&str], salt: usize, turn: usize) -> Objects {
    let (mut objects, from) = (Objects::new(), 1000 * salt as u64);
    insert(&mut objects, &SETS, set("web", from + 1));
    for (at, phase) in pods.iter().enumerate() {
        let at = (at + turn) % pods.len().max(1);
        let mut pod = pod(&name_of(at, salt), from + 10 + at as u64, from + 1);
        pod["status"]["phase"] = (*phase).into();
        insert(&mut objects, &PODS, pod);
    }
    objects
}

fn digest_of(objects: &Objects) -> Digest {
    digest(objects, &Surroundings::default())
}

#[test]
fn what_differs_between_equal_runs_is_masked() {
    let objects = cluster(&["Running"], 1, 0);
    let [pod, set] = &masked(&objects)[..] else { panic!("two objects") };
    assert_eq!((pod.label.as_str(), set.label.as_str()), ("pods a/web-*", "replicasets.apps a/web"));
    assert_eq!(
        pod.content,
        json!({
            "metadata": {
                "namespace": "a",
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "@1", "controller": true}],
            },
            "spec": { "nodeName": "node-1" },
            "status": { "phase": "Running", "podIP": "<address>" },
        })
    );
    assert_eq!(
        set.content,
        json!({
            "metadata": { "namespace": "a" },
            "spec": { "replicas": 2 },
            "status": { "observedGeneration": true, "replicas": 2 },
        })
    );
    assert_eq!((&pod.refers_to[..], &set.refers_to[..]), (&[1][..], &[][..]));
}

/// A change of a cluster with a running and a pending pod.
type Edit = fn(&mut Objects);

fn edit(objects: &mut Objects, resource: &Resource, change: impl Fn(&mut Value)) {
    for object in objects.get_mut(resource).unwrap().values_mut() {
        change(Arc::make_mut(object));
    }
}

#[test]
fn what_is_the_same_state_and_what_is_another() {
    let same: &[(&str, Edit)] = &[
        ("a version", |objects| edit(objects, &PODS, |pod| pod["metadata"]["resourceVersion"] = "7".into())),
        ("a generation that is observed", |objects| {
            edit(objects, &SETS, |set| {
                set["metadata"]["generation"] = 9.into();
                set["status"]["observedGeneration"] = 9.into();
            });
        }),
        ("an address", |objects| edit(objects, &PODS, |pod| pod["status"]["podIP"] = "10.9.8.7".into())),
        ("managed fields", |objects| edit(objects, &PODS, |pod| pod["metadata"]["managedFields"] = json!([{}]))),
    ];
    let other: &[(&str, Edit)] = &[
        ("a label", |objects| edit(objects, &PODS, |pod| pod["metadata"]["labels"] = json!({"a": "b"}))),
        ("a finalizer", |objects| edit(objects, &PODS, |pod| pod["metadata"]["finalizers"] = json!(["a"]))),
        ("a deletion time", |objects| {
            edit(objects, &PODS, |pod| pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into());
        }),
        ("a generation that is not observed", |objects| {
            edit(objects, &SETS, |set| set["metadata"]["generation"] = 3.into());
        }),
        ("an owner that is no more", |objects| {
            edit(objects, &PODS, |pod| pod["metadata"]["ownerReferences"][0]["uid"] = uid(77).into());
        }),
        ("a number", |objects| edit(objects, &SETS, |set| set["spec"]["replicas"] = 3.into())),
        ("one pod fewer", |objects| drop(objects.get_mut(&PODS).unwrap().pop_last())),
    ];
    let reference = || cluster(&["Running", "Pending"], 1, 0);
    for (expected, edits) in [(true, same), (false, other)] {
        for (name, edit) in edits {
            let mut changed = reference();
            edit(&mut changed);
            assert_eq!(digest_of(&changed) == digest_of(&reference()), expected, "{name}");
        }
    }
}

/// Two owners with generated names: three pods of one, or two of one and one of the other.
#[test]
fn owners_with_generated_names_are_told_apart_by_their_pods() {
    let with = |owners: [u64; 3]| {
        let mut objects = Objects::new();
        for number in [1, 2] {
            let mut set = set(&name_of(number, 9), number as u64);
            set["metadata"]["generateName"] = "web-".into();
            insert(&mut objects, &SETS, set);
        }
        for (at, owner) in owners.into_iter().enumerate() {
            let mut pod = pod(&name_of(at, 3), 10 + at as u64, owner);
            pod["metadata"]["ownerReferences"][0]["name"] = name_of(usize::try_from(owner).unwrap(), 9).into();
            insert(&mut objects, &PODS, pod);
        }
        digest_of(&objects)
    };
    assert_eq!(with([1, 1, 2]), with([2, 1, 2]), "the owners are alike");
    assert_ne!(with([1, 1, 2]), with([1, 1, 1]));
}

#[test]
fn names_in_keys_and_lists_are_references() {
    let with = |salt: usize, of: usize| {
        let mut objects = cluster(&["Running", "Pending"], salt, 0);
        let names: Vec<String> = objects[&PODS].keys().map(|key| key.name().to_owned()).collect();
        let running =
            |name: &String| objects[&PODS][&ObjectKey::namespaced("a", name.as_str())]["status"]["phase"] == "Running";
        let chosen = names.iter().find(|name| running(name) == (of == 0)).unwrap().clone();
        let mut listed = names.clone();
        listed.sort();
        let mut set = set("web", 1000 * salt as u64 + 1);
        set["status"]["disruptedPods"] = json!({ chosen: "2026-01-02T03:04:05Z" });
        set["status"]["names"] = json!(listed);
        insert(&mut objects, &SETS, set);
        objects
    };
    assert_eq!(digest_of(&with(1, 0)), digest_of(&with(2, 0)));
    assert_ne!(digest_of(&with(1, 0)), digest_of(&with(1, 1)));
    let lines = normal_form(&with(1, 0));
    assert_eq!(lines, normal_form(&with(2, 0)));
    assert!(lines.iter().any(|line| line.contains("<pods a/web-*>: ")), "{lines:#?}");
}

#[test]
fn what_is_beside_the_store_counts() {
    let objects = cluster(&["Running"], 1, 0);
    let pod = objects[&PODS].values().next().unwrap().clone();
    let around = || {
        let key = KeyInQueue {
            key: ObjectKey::namespaced("a", "web"),
            place: "ready",
            due_in: Some(Duration::from_millis(1400)),
            failures: 0,
            pending_writes: 1,
        };
        Surroundings {
            loops: vec![LoopQueue { process: 1, name: "set".to_owned(), resource: Some(SETS), keys: vec![key] }],
            events: vec![EventOnTheWay {
                process: 1,
                cache: "pods".to_owned(),
                kind: "ADDED",
                resource: PODS,
                object: Arc::clone(&pod),
            }],
            requests: vec![RequestInFlight {
                process: 1,
                loop_name: "set".to_owned(),
                verb: Verb::Create,
                resource: PODS,
                key: ObjectKey::namespaced("a", "web-bcdfg"),
                is_performed: false,
            }],
            processes: vec![ProcessState { is_alive: true, leads: true, fence_is_open: true }],
            phase: 1,
        }
    };
    let of = |around: &Surroundings| digest(&objects, around);
    let changed = |change: fn(&mut Surroundings)| {
        let mut around = around();
        change(&mut around);
        of(&around)
    };
    let reference = of(&around());
    for (name, change) in [
        (
            "less than a second",
            (|it: &mut Surroundings| it.loops[0].keys[0].due_in = Some(Duration::from_millis(1300)))
                as fn(&mut Surroundings),
        ),
        ("another generated name", |it: &mut Surroundings| {
            it.requests[0].key = ObjectKey::namespaced("a", "web-ghjkl");
        }),
    ] {
        assert_eq!(changed(change), reference, "{name}");
    }
    for (name, change) in [
        ("a place", (|it: &mut Surroundings| it.loops[0].keys[0].place = "parked") as fn(&mut Surroundings)),
        ("a due time", |it: &mut Surroundings| it.loops[0].keys[0].due_in = Some(Duration::from_secs(9))),
        ("no due time", |it: &mut Surroundings| it.loops[0].keys[0].due_in = None),
        ("a failure", |it: &mut Surroundings| it.loops[0].keys[0].failures = 1),
        ("no pending write", |it: &mut Surroundings| it.loops[0].keys[0].pending_writes = 0),
        ("another kind of event", |it: &mut Surroundings| it.events[0].kind = "DELETED"),
        ("an older object of an event", |it: &mut Surroundings| {
            Arc::make_mut(&mut it.events[0].object)["status"]["phase"] = "Pending".into();
        }),
        ("no event", |it: &mut Surroundings| it.events.clear()),
        ("a performed request", |it: &mut Surroundings| it.requests[0].is_performed = true),
        ("a dead process", |it: &mut Surroundings| it.processes[0].is_alive = false),
        ("a phase", |it: &mut Surroundings| it.phase = 2),
    ] {
        assert_ne!(changed(change), reference, "{name}");
    }
}

proptest! {
    /// Neither names, uids, times nor the order of creation count.
    #[test]
    fn renamed_states_are_one(
        phases in proptest::collection::vec(prop_oneof![Just("Pending"), Just("Running"), Just("Failed")], 0..6),
        salts in (1usize..40, 1usize..40),
        turn in 0usize..6,
    ) {
        let (one, other) = (cluster(&phases, salts.0, 0), cluster(&phases, salts.1, turn));
        prop_assert_eq!(digest_of(&one), digest_of(&other));
        prop_assert_eq!(normal_form(&one), normal_form(&other));
    }

    /// Two clusters have the same digest if and only if they have as many pods in each phase.
    #[test]
    fn states_with_other_counts_differ(
        one in proptest::collection::vec(prop_oneof![Just("Pending"), Just("Running")], 0..6),
        other in proptest::collection::vec(prop_oneof![Just("Pending"), Just("Running")], 0..6),
    ) {
        let counts = |phases: &[&'static str]| {
            phases.iter().fold(BTreeMap::<&str, u32>::new(), |mut counts, phase| {
                *counts.entry(phase).or_default() += 1;
                counts
            })
        };
        let are_equal = digest_of(&cluster(&one, 1, 0)) == digest_of(&cluster(&other, 2, 0));
        prop_assert_eq!(are_equal, counts(&one) == counts(&other));
    }
}
