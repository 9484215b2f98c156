//! SE-6, SE-7, SE-11 and SE-12: uses of volumes and their conflicts.

use kcm_framework::api::{ObjectKey, Uid};

use crate::selinux_warning::uses::{Use, UsedVolume, Uses};

fn pod(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name.to_owned())
}

fn used(volume: &str, usage: Use) -> UsedVolume {
    UsedVolume { name: volume.to_owned(), driver: Some("csi.example.com".to_owned()), usage }
}

fn labelled(label: &str) -> Use {
    Use::new(label, None, true)
}

/// Adds the use of the volume `v` and returns its conflicts as `POD PROPERTY VALUE OTHER VALUE`.
fn add(uses: &mut Uses, name: &str, usage: Use) -> Vec<String> {
    let conflicts = uses.add(&pod(name), &Uid::from("1"), used("v", usage));
    conflicts
        .iter()
        .map(|it| {
            let (pod, other) = (it.pod.name(), it.other.name());
            format!("{pod} {} {:?} {other} {:?}", it.property.name(), it.value, it.other_value)
        })
        .collect()
}

const NONE: [&str; 0] = [];

#[test]
fn se_6_a_use_without_a_mounted_label_is_recursive() {
    for (name, usage, expected) in [
        ("mounted with a label", Use::new(":::s0", None, true), Use::new(":::s0", Some("MountOption"), true)),
        ("the policy says no", Use::new(":::s0", Some("Recursive"), true), Use::new("", Some("Recursive"), true)),
        ("no label", Use::new("", Some("MountOption"), true), Use::new("", Some("Recursive"), true)),
        ("the plugin says no", Use::new(":::s0", Some("MountOption"), false), Use::new("", Some("Recursive"), false)),
    ] {
        assert_eq!(usage, expected, "{name}");
    }
    assert_ne!(labelled(":::s0"), Use::new("", None, true));
}

#[test]
fn se_7_the_first_use_of_a_volume_and_an_equal_one_conflict_with_nothing() {
    let uses = &mut Uses::default();
    assert_eq!(add(uses, "a", labelled(":::s0:c1")), NONE);
    assert_eq!(add(uses, "b", labelled(":::s0:c1")), NONE);
    assert_eq!(add(uses, "c", labelled("::web_t:s0:c1")), NONE);
    assert!(uses.conflicts().is_empty());
}

#[test]
fn se_7_labels_that_differ_are_reported_to_both_pods_once() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    let expected = [r#"b SELinuxLabel ":::s0:c2" a ":::s0:c1""#, r#"a SELinuxLabel ":::s0:c1" b ":::s0:c2""#];
    assert_eq!(add(uses, "b", labelled(":::s0:c2")), expected);
    assert_eq!(add(uses, "b", labelled(":::s0:c2")), NONE, "nothing has changed");
    assert_eq!(uses.conflicts().len(), 2);
}

#[test]
fn se_7_a_policy_that_differs_conflicts_with_the_label_too() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    let expected = [
        r#"b SELinuxChangePolicy "Recursive" a "MountOption""#,
        r#"a SELinuxChangePolicy "MountOption" b "Recursive""#,
        r#"b SELinuxLabel "" a ":::s0:c1""#,
        r#"a SELinuxLabel ":::s0:c1" b """#,
    ];
    assert_eq!(add(uses, "b", Use::new(":::s0:c1", Some("Recursive"), true)), expected);
}

#[test]
fn se_7_a_policy_can_differ_alone() {
    let uses = &mut Uses::default();
    add(uses, "a", Use::new("system_u:::", None, true));
    let found = add(uses, "b", Use::new("", None, true));
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|conflict| conflict.contains("SELinuxChangePolicy")), "{found:?}");
}

#[test]
fn se_7_a_third_pod_conflicts_with_each_that_differs() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    add(uses, "b", labelled(":::s0:c2"));
    let found = add(uses, "c", labelled(":::s0:c1"));
    assert_eq!(found, [r#"c SELinuxLabel ":::s0:c1" b ":::s0:c2""#, r#"b SELinuxLabel ":::s0:c2" c ":::s0:c1""#,]);
    assert_eq!(uses.conflicts().len(), 4);
}

#[test]
fn se_7_other_volumes_are_not_compared() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    assert_eq!(uses.add(&pod("b"), &Uid::from("1"), used("w", labelled(":::s0:c2"))), []);
}

#[test]
fn se_11_a_use_that_changes_replaces_its_conflicts() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    add(uses, "b", labelled(":::s0:c2"));
    add(uses, "c", labelled(":::s0:c3"));
    assert_eq!(uses.conflicts().len(), 6);
    assert_eq!(add(uses, "b", labelled(":::s0:c1")).len(), 2, "with c");
    assert_eq!(uses.conflicts().len(), 4);
}

#[test]
fn se_11_a_pod_takes_its_conflicts_along() {
    let uses = &mut Uses::default();
    for (name, label) in [("a", ":::s0:c1"), ("b", ":::s0:c2"), ("c", ":::s0:c3")] {
        add(uses, name, labelled(label));
    }
    uses.remove(&pod("a"));
    uses.remove(&pod("unknown"));
    assert!(uses.conflicts().iter().all(|conflict| !conflict.concerns(&pod("a"))));
    assert_eq!(uses.conflicts().len(), 2);
    uses.remove(&pod("b"));
    assert!(uses.conflicts().is_empty());
    uses.remove(&pod("c"));
    assert!(uses.pods_of_driver("csi.example.com").is_empty(), "nothing is left");
}

#[test]
fn se_11_pods_that_conflict_about_two_volumes_have_one_series() {
    let uses = &mut Uses::default();
    for volume in ["v", "w"] {
        uses.add(&pod("a"), &Uid::from("1"), used(volume, labelled(":::s0:c1")));
        uses.add(&pod("b"), &Uid::from("1"), used(volume, labelled(":::s0:c2")));
    }
    assert_eq!(uses.conflicts().len(), 2);
}

#[test]
fn se_12_a_pod_that_was_recreated_loses_the_volumes_of_its_predecessor() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    add(uses, "b", labelled(":::s0:c2"));
    uses.add(&pod("b"), &Uid::from("2"), used("w", labelled(":::s0:c2")));
    assert!(uses.conflicts().is_empty());
}

#[test]
fn uses_before_and_after_a_change_of_the_driver_are_not_compared() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    add(uses, "b", labelled(":::s0:c1"));
    let unmounted = || Use::new(":::s0:c1", None, false);
    assert_eq!(add(uses, "a", unmounted()), NONE);
    assert_eq!(add(uses, "b", unmounted()), NONE);
}

#[test]
fn se_1_the_pods_of_a_driver_are_found() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    add(uses, "b", labelled(":::s0:c1"));
    let fc = UsedVolume { name: "fc".to_owned(), driver: None, usage: labelled("") };
    uses.add(&pod("c"), &Uid::from("1"), fc);
    assert_eq!(uses.pods_of_driver("csi.example.com"), [pod("a"), pod("b")]);
    assert_eq!(uses.pods_of_driver("other.example.com"), []);
}

#[test]
fn conflicts_of_many_pods_are_bounded() {
    let uses = &mut Uses::default();
    let mut reported = 0;
    for number in 0..100 {
        reported += add(uses, &number.to_string(), labelled(&format!(":::s0:c{}", number % 2))).len();
    }
    assert_eq!((reported, uses.conflicts().len()), (1000, 1000));
    for number in 0..98 {
        uses.remove(&pod(&number.to_string()));
    }
    assert!(uses.conflicts().is_empty());
    assert_eq!(add(uses, "new", labelled(":::s0:c2")).len(), 4, "there is room again");
}

#[test]
fn a_volume_of_a_pod_can_be_removed_alone() {
    let uses = &mut Uses::default();
    add(uses, "a", labelled(":::s0:c1"));
    add(uses, "b", labelled(":::s0:c2"));
    uses.add(&pod("a"), &Uid::from("1"), used("w", labelled(":::s0:c1")));
    uses.remove_volume(&pod("a"), "v");
    assert!(uses.conflicts().is_empty());
    assert_eq!(add(uses, "c", labelled(":::s0:c1")).len(), 2, "b alone is left");
    assert_eq!(uses.add(&pod("b"), &Uid::from("1"), used("w", labelled(":::s0:c2"))).len(), 2, "a uses w still");
}
