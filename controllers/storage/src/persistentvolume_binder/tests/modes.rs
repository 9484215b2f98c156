//! Upstream's table of volume modes, as states in which the controller comes to rest.
//!
//! # Upstream
//! `TestSyncBlockVolume` of `binder_test.go`; the names are its numbers

use super::rows::{Row, check};

const MATCHED: &[&str] = &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=10Gi bbc bc"];
const NAMED: &[&str] = &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=10Gi bc"];
const RESERVED: &[&str] = &["v claim=c uid phase=Bound", "c volume=v phase=Bound capacity=10Gi bbc bc"];

const MODES: &[Row] = &[
    Row {
        name: "14-1 block devices",
        volumes: &["v 10Gi mode=Block"],
        claims: &["c 10Gi mode=Block"],
        ends: MATCHED,
        event: "",
    },
    Row {
        name: "14-2 file systems",
        volumes: &["v 10Gi mode=Filesystem"],
        claims: &["c 10Gi mode=Filesystem"],
        ends: MATCHED,
        event: "",
    },
    Row {
        name: "14-3 a file system is not a block device",
        volumes: &["v 10Gi"],
        claims: &["c 10Gi mode=Block"],
        ends: &["v phase=Available", "c phase=Pending"],
        event: "FailedBinding",
    },
    Row {
        name: "14-4 a block device is not a file system",
        volumes: &["v 10Gi mode=Block"],
        claims: &["c 10Gi"],
        ends: &["v phase=Available", "c phase=Pending"],
        event: "FailedBinding",
    },
    Row {
        name: "14-5 the modes differ and the class does not exist",
        volumes: &["v 10Gi class=gold"],
        claims: &["c 10Gi class=gold mode=Block"],
        ends: &["v phase=Available", "c phase=Pending"],
        event: "ProvisioningFailed",
    },
    Row {
        name: "14-5-1 the modes are the same and the classes differ",
        volumes: &["v 10Gi class=gold"],
        claims: &["c 10Gi class=silver"],
        ends: &["v phase=Available", "c phase=Pending"],
        event: "ProvisioningFailed",
    },
    Row {
        name: "14-5-2 a named volume of the mode and of another class",
        volumes: &["v 10Gi class=gold"],
        claims: &["c 10Gi class=silver volume=v"],
        ends: &["v phase=Available", "c volume=v phase=Pending"],
        event: "VolumeMismatch",
    },
    Row {
        name: "14-7 a reserved block device",
        volumes: &["v 10Gi claim=c mode=Block"],
        claims: &["c 10Gi mode=Block"],
        ends: RESERVED,
        event: "",
    },
    Row {
        name: "14-8 a named volume of another mode",
        volumes: &["v 10Gi mode=Block"],
        claims: &["c 10Gi volume=v"],
        ends: &["v phase=Available", "c volume=v phase=Pending"],
        event: "VolumeMismatch",
    },
    Row {
        name: "14-8-1 a reserved block device is not a file system",
        volumes: &["v 10Gi claim=c mode=Block"],
        claims: &["c 10Gi"],
        ends: &["v claim=c phase=Available", "c phase=Pending"],
        event: "FailedBinding",
    },
    Row {
        name: "14-8-1 a reserved file system is not a block device",
        volumes: &["v 10Gi claim=c"],
        claims: &["c 10Gi mode=Block"],
        ends: &["v claim=c phase=Available", "c phase=Pending"],
        event: "FailedBinding",
    },
    Row {
        name: "14-9 a named block device",
        volumes: &["v 10Gi mode=Block"],
        claims: &["c 10Gi volume=v mode=Block"],
        ends: NAMED,
        event: "",
    },
    Row {
        name: "14-11 a named file system",
        volumes: &["v 10Gi mode=Filesystem"],
        claims: &["c 10Gi volume=v mode=Filesystem"],
        ends: NAMED,
        event: "",
    },
    Row {
        name: "14-12 a reserved file system",
        volumes: &["v 10Gi claim=c mode=Filesystem"],
        claims: &["c 10Gi mode=Filesystem"],
        ends: RESERVED,
        event: "",
    },
    Row {
        name: "14-13 a file system that a controller has bound to a claim of a block device",
        volumes: &["v 10Gi claim=c uid bbc"],
        claims: &["c 10Gi mode=Block"],
        ends: &["v claim=c uid phase=Available bbc", "c phase=Pending"],
        event: "FailedBinding VolumeMismatch",
    },
    Row {
        name: "14-13-1 a block device that a controller has bound to a claim of a file system",
        volumes: &["v 10Gi claim=c uid bbc mode=Block"],
        claims: &["c 10Gi"],
        ends: &["v claim=c uid phase=Available bbc", "c phase=Pending"],
        event: "FailedBinding VolumeMismatch",
    },
    Row {
        name: "14-14 a block device that a controller has bound to the claim",
        volumes: &["v 10Gi claim=c uid bbc mode=Block"],
        claims: &["c 10Gi mode=Block"],
        ends: MATCHED,
        event: "",
    },
    Row {
        name: "14-14-1 a file system that a controller has bound to the claim",
        volumes: &["v 10Gi claim=c uid bbc"],
        claims: &["c 10Gi"],
        ends: MATCHED,
        event: "",
    },
];

#[tokio::test(start_paused = true)]
async fn pvb_24_the_volume_mode_must_be_the_same() {
    check(MODES).await;
}
