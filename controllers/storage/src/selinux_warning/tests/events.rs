//! SE-10: texts of events.

use kcm_framework::api::ObjectKey;
use kcm_framework::events::{Event as _, EventText};

use crate::selinux_warning::conflict::{Conflict, Property, SeveralLabels};

fn conflict(property: Property, namespace: &'static str) -> Conflict {
    Conflict {
        property,
        pod: ObjectKey::namespaced("shop", "a".to_owned()),
        value: ":::s0:c1".into(),
        other: ObjectKey::namespaced(namespace, "b".to_owned()),
        other_value: ":::s0:c2".into(),
    }
}

#[test]
fn se_10_a_pod_of_the_namespace_is_named() {
    let expected = "SELinuxLabel \":::s0:c1\" conflicts with pod b that uses the same volume as this pod with SELinuxLabel \
                    \":::s0:c2\". If both pods land on the same node, only one of them may access the volume.";
    assert_eq!(conflict(Property::Label, "shop").text(), EventText::normal("SELinuxLabelConflict", expected));
}

#[test]
fn se_10_a_pod_of_another_namespace_is_not() {
    let expected = "SELinuxChangePolicy\":::s0:c1\" conflicts with another pod that uses the same volume as this pod with a \
                    different SELinuxChangePolicy. If both pods land on the same node, only one of them may access the \
                    volume.";
    let conflict = conflict(Property::ChangePolicy, "bank");
    assert_eq!(conflict.text(), EventText::normal("SELinuxChangePolicyConflict", expected));
    assert_eq!(conflict.reversed().reversed(), conflict);
}

#[test]
fn se_4_several_labels_are_a_warning() {
    let expected = "Volume \"data\" is mounted twice with different SELinux labels inside this pod";
    let event = SeveralLabels { volume: "data" };
    assert_eq!(event.text(), EventText::warning("MultipleSELinuxLabels", expected));
}
