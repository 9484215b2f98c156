use super::super::events::{self, PodName};
use super::super::names::{self, Plugin};
use crate::shared::sources::csi_name;

#[test]
fn ad_21_attachment_names_are_upstreams_bytes() {
    assert_eq!(
        names::attachment("ebs.csi.aws.com", "vol-1", "node-1"),
        "csi-58932ddfc9a6504f794af09a26429db947138ba3d683dee3d975aa932cb39f48"
    );
}

#[test]
fn t_13_handles_may_contain_a_caret() {
    let name = csi_name("d.example.com", "a^b");
    assert_eq!(Plugin::of(&name), Plugin::Csi { driver: "d.example.com", handle: "a^b" });
    let slashes = csi_name("d", "projects/x/disks/y");
    assert_eq!(Plugin::of(&slashes), Plugin::Csi { driver: "d", handle: "projects/x/disks/y" });
    for unknown in ["vendor/driver/pv", "kubernetes.io/rbd/pool:image", "kubernetes.io/csi/no-handle", ""] {
        assert_eq!(Plugin::of(unknown), Plugin::Unknown, "{unknown}");
    }
    for name in ["kubernetes.io/fc/[a]:0", "kubernetes.io/iscsi/p:i:0"] {
        assert_eq!(Plugin::of(name), Plugin::ReportOnly, "{name}");
    }
}

#[test]
fn t_23_ad_22_messages_keep_their_blanks() {
    assert_eq!(events::ATTACHED, "SuccessfulAttachVolume");
    assert_eq!(events::FAILED, "FailedAttachVolume");
    assert_eq!(events::attached("pv"), "AttachVolume.Attach succeeded for volume \"pv\" ");
    assert_eq!(events::failed("pv", "boom"), "AttachVolume.Attach failed for volume \"pv\" : boom");
}

#[test]
fn ad_31_messages_hide_pods_of_other_namespaces() {
    let pod = |namespace: &str, name: &str| PodName { namespace: namespace.to_owned(), name: name.to_owned() };
    for (name, users, expected) in [
        (
            "no pod",
            vec![],
            "Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node",
        ),
        ("own", vec![pod("ns", "a"), pod("ns", "b")], "Volume is already used by pod(s) a, b"),
        (
            "both",
            vec![pod("ns", "a"), pod("x", "secret")],
            "Volume is already used by pod(s) a and 1 pod(s) in different namespaces",
        ),
        (
            "others",
            vec![pod("x", "secret"), pod("y", "s")],
            "Volume is already used by 2 pod(s) in different namespaces",
        ),
    ] {
        let expected = format!("Waiting for detach for volume \"pv\" {expected}");
        assert_eq!(events::waiting("pv", "ns", &users), expected, "{name}");
    }
}
