//! Upstream's table of single decisions, as states in which the controller comes to rest.
//!
//! # Upstream
//! `binder_test.go` of `pkg/controller/volume/persistentvolume`; the names are its numbers

use std::collections::BTreeSet;
use std::time::Duration;

use super::fixtures::{
    COMPONENT, create_claim, create_class, create_volume, environment, start, state_of_claim, state_of_volume,
};

pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) volumes: &'static [&'static str],
    pub(super) claims: &'static [&'static str],
    /// States of the volumes, then of the claims.
    pub(super) ends: &'static [&'static str],
    /// Reasons of the events, with a blank between them. Empty for none.
    pub(super) event: &'static str,
}

const MATCHED: &[Row] = &[
    Row {
        name: "1-1 a volume of the size",
        volumes: &["v 1Gi"],
        claims: &["c 1Gi"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-2 a volume that is too small",
        volumes: &["v 1Gi"],
        claims: &["c 10Gi"],
        ends: &["v phase=Available", "c phase=Pending"],
        event: "FailedBinding",
    },
    Row {
        name: "1-3 a claim whose phase is wrong",
        volumes: &["v 1Gi"],
        claims: &["c 10Gi phase=Bound"],
        ends: &["v phase=Available", "c phase=Pending"],
        event: "FailedBinding",
    },
    Row {
        name: "1-4 the smallest of two",
        volumes: &["v1 10Gi", "v2 1Gi"],
        claims: &["c 1Gi"],
        ends: &["v1 phase=Available", "v2 claim=c uid phase=Bound bbc", "c volume=v2 phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-5 a volume that is reserved by name",
        volumes: &["v1 10Gi claim=c", "v2 1Gi"],
        claims: &["c 1Gi"],
        ends: &["v1 claim=c uid phase=Bound", "v2 phase=Available", "c volume=v1 phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-6 a volume that is reserved by uid",
        volumes: &["v1 10Gi claim=c uid", "v2 1Gi"],
        claims: &["c 1Gi"],
        ends: &["v1 claim=c uid phase=Bound", "v2 phase=Available", "c volume=v1 phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-7 a volume of an earlier claim of the name",
        volumes: &["v 10Gi claim=c other"],
        claims: &["c 1Gi"],
        ends: &["v claim=c other phase=Released", "c phase=Pending"],
        event: "FailedBinding",
    },
    Row {
        name: "1-8 killed after the first write",
        volumes: &["v 1Gi claim=c uid bbc"],
        claims: &["c 1Gi"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-9 killed after the second write",
        volumes: &["v 1Gi claim=c uid bbc phase=Bound"],
        claims: &["c 1Gi"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-10 killed after the third write",
        volumes: &["v 1Gi claim=c uid bbc phase=Bound"],
        claims: &["c 1Gi volume=v bbc bc"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-11 a selector that matches",
        volumes: &["v 1Gi label=a"],
        claims: &["c 1Gi selector=a"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-12 a selector that does not match",
        volumes: &["v 1Gi"],
        claims: &["c 1Gi selector=a"],
        ends: &["v phase=Available", "c phase=Pending"],
        event: "FailedBinding",
    },
    Row {
        name: "1-13 a class that binds late",
        volumes: &["v 1Gi class=wait"],
        claims: &["c 1Gi class=wait"],
        ends: &["v phase=Available", "c phase=Pending"],
        event: "WaitForFirstConsumer",
    },
    Row {
        name: "1-14 a reserved volume of a class that binds late",
        volumes: &["v 1Gi class=wait claim=c"],
        claims: &["c 1Gi class=wait"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "1-15 a claim that names a larger volume",
        volumes: &["v1 10Gi", "v2 1Gi"],
        claims: &["c 1Gi volume=v1"],
        ends: &["v1 claim=c uid phase=Bound bbc", "v2 phase=Available", "c volume=v1 phase=Bound capacity=10Gi bc"],
        event: "",
    },
    Row {
        name: "1-16 a claim that names a volume without its access mode",
        volumes: &["v 1Gi"],
        claims: &["c 1Gi volume=v modes=RWX"],
        ends: &["v phase=Available", "c volume=v phase=Pending"],
        event: "VolumeMismatch",
    },
    Row {
        name: "1-18 a volume that was provisioned for the claim",
        volumes: &["v 1Gi class=wait claim=c uid"],
        claims: &["c 1Gi class=wait node=n1"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
];

const NAMED: &[Row] = &[
    Row {
        name: "2-1 the volume does not exist",
        volumes: &[],
        claims: &["c 10Gi volume=v"],
        ends: &["c volume=v phase=Pending"],
        event: "",
    },
    Row {
        name: "2-2 the volume does not exist and the phase is wrong",
        volumes: &[],
        claims: &["c 10Gi volume=v phase=Bound"],
        ends: &["c volume=v phase=Pending"],
        event: "",
    },
    Row {
        name: "2-3 the volume is free",
        volumes: &["v 10Gi"],
        claims: &["c 10Gi volume=v"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=10Gi bc"],
        event: "",
    },
    Row {
        name: "2-4 the volume is reserved by name",
        volumes: &["v 10Gi claim=c"],
        claims: &["c 10Gi volume=v"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound capacity=10Gi bc"],
        event: "",
    },
    Row {
        name: "2-5 the volume is reserved by uid",
        volumes: &["v 10Gi claim=c uid"],
        claims: &["c 10Gi volume=v"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound capacity=10Gi bc"],
        event: "",
    },
    Row {
        name: "2-6 the volume is bound to another claim",
        volumes: &["v 10Gi claim=d uid phase=Bound"],
        claims: &["c 10Gi volume=v phase=Bound", "d 10Gi volume=v phase=Bound bc"],
        ends: &["v claim=d uid phase=Bound", "c volume=v phase=Pending", "d volume=v phase=Bound bc"],
        event: "FailedBinding",
    },
    Row {
        name: "2-7 the volume is bound to another claim, and a controller bound this one",
        volumes: &["v 10Gi claim=d uid phase=Bound"],
        claims: &["c 10Gi volume=v phase=Bound bbc", "d 10Gi volume=v phase=Bound bc"],
        ends: &["v claim=d uid phase=Bound", "c volume=v phase=Bound bbc", "d volume=v phase=Bound bc"],
        event: "FailedBinding",
    },
    Row {
        name: "2-8 labels do not matter",
        volumes: &["v 1Gi"],
        claims: &["c 1Gi volume=v selector=a"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bc"],
        event: "",
    },
    Row {
        name: "2-9 the volume is too small",
        volumes: &["v 1Gi"],
        claims: &["c 2Gi volume=v phase=Bound"],
        ends: &["v phase=Available", "c volume=v phase=Pending"],
        event: "VolumeMismatch",
    },
    Row {
        name: "2-10 the class differs",
        volumes: &["v 1Gi class=gold"],
        claims: &["c 1Gi volume=v phase=Bound"],
        ends: &["v phase=Available", "c volume=v phase=Pending"],
        event: "VolumeMismatch",
    },
    Row {
        name: "2-11 the attributes class differs",
        volumes: &["v 1Gi vac=gold"],
        claims: &["c 1Gi volume=v phase=Bound"],
        ends: &["v phase=Available", "c volume=v phase=Pending"],
        event: "VolumeMismatch",
    },
    Row {
        name: "2-12 the attributes class is the same",
        volumes: &["v 1Gi vac=gold"],
        claims: &["c 1Gi volume=v vac=gold"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bc"],
        event: "",
    },
    Row {
        name: "t_2 a volume that is reserved for the claim is not checked",
        volumes: &["v 1Gi claim=c class=gold mode=Block"],
        claims: &["c 10Gi volume=v mode=Block"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound capacity=1Gi bc"],
        event: "",
    },
];

const BOUND: &[Row] = &[
    Row {
        name: "3-1 the claim names no volume",
        volumes: &[],
        claims: &["c 10Gi phase=Bound bbc bc"],
        ends: &["c phase=Lost bbc bc"],
        event: "ClaimLost",
    },
    Row {
        name: "3-2 the volume does not exist",
        volumes: &[],
        claims: &["c 10Gi volume=v phase=Bound bbc bc"],
        ends: &["c volume=v phase=Lost bbc bc"],
        event: "ClaimLost",
    },
    Row {
        name: "3-3 the volume is free",
        volumes: &["v 10Gi"],
        claims: &["c 10Gi volume=v bbc bc"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
    Row {
        name: "3-4 the volume has another claim of the name",
        volumes: &["v 10Gi claim=c other"],
        claims: &["c 10Gi volume=v bbc bc"],
        ends: &["v claim=c other phase=Released", "c volume=v phase=Lost bbc bc"],
        event: "ClaimMisbound",
    },
    Row {
        name: "3-5 the volume is bound",
        volumes: &["v 10Gi claim=c uid"],
        claims: &["c 10Gi volume=v bc"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound capacity=10Gi bc"],
        event: "",
    },
    Row {
        name: "3-6 the volume has another claim",
        volumes: &["v 10Gi claim=x other"],
        claims: &["c 10Gi volume=v bc"],
        ends: &["v claim=x other phase=Released", "c volume=v phase=Lost bc"],
        event: "ClaimMisbound",
    },
    Row {
        name: "3-7 labels do not matter",
        volumes: &["v 10Gi"],
        claims: &["c 10Gi volume=v bbc bc selector=a"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
];

const OF_VOLUMES: &[Row] = &[
    Row { name: "4-1 free", volumes: &["v 10Gi phase=Pending"], claims: &[], ends: &["v phase=Available"], event: "" },
    Row {
        name: "4-2 reserved",
        volumes: &["v 10Gi claim=c phase=Pending"],
        claims: &[],
        ends: &["v claim=c phase=Available"],
        event: "",
    },
    Row {
        name: "4-3 the claim is deleted",
        volumes: &["v 10Gi claim=c other phase=Bound"],
        claims: &[],
        ends: &["v claim=c other phase=Released"],
        event: "",
    },
    Row {
        name: "4-4 a new claim of the name is bound to it",
        volumes: &["v 10Gi claim=c other phase=Bound"],
        claims: &["c 10Gi volume=v phase=Bound bc"],
        ends: &["v claim=c other phase=Released", "c volume=v phase=Lost bc"],
        event: "ClaimMisbound",
    },
    Row {
        name: "4-5 bound by a controller, and its claim is not",
        volumes: &["v 10Gi claim=c uid phase=Bound bbc"],
        claims: &["c 10Gi"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
    Row {
        name: "4-5 bound by a user, and its claim is not",
        volumes: &["v 10Gi claim=c uid phase=Bound"],
        claims: &["c 10Gi"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
    Row {
        name: "4-6 the claim names it",
        volumes: &["v 10Gi claim=c uid"],
        claims: &["c 10Gi volume=v phase=Bound bc"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound bc"],
        event: "",
    },
    Row {
        name: "4-7 the claim is bound elsewhere, by a controller",
        volumes: &["v 10Gi claim=c uid phase=Bound bbc", "w 10Gi claim=c uid phase=Bound"],
        claims: &["c 10Gi volume=w phase=Bound bc"],
        ends: &["v phase=Available", "w claim=c uid phase=Bound", "c volume=w phase=Bound bc"],
        event: "",
    },
    Row {
        name: "4-8 the claim is bound elsewhere, by a user",
        volumes: &["v 10Gi claim=c uid phase=Bound", "w 10Gi claim=c uid phase=Bound"],
        claims: &["c 10Gi volume=w phase=Bound bc"],
        ends: &["v claim=c phase=Available", "w claim=c uid phase=Bound", "c volume=w phase=Bound bc"],
        event: "",
    },
    Row {
        name: "4-9 the claim names it, and its policy is Delete",
        volumes: &["v 10Gi claim=c uid policy=Delete"],
        claims: &["c 10Gi volume=v phase=Bound bc"],
        ends: &["v claim=c uid phase=Bound", "c volume=v phase=Bound bc"],
        event: "",
    },
    Row {
        name: "4-10 no plugin deletes it",
        volumes: &["v 10Gi claim=c other policy=Delete"],
        claims: &[],
        ends: &["v claim=c other phase=Failed"],
        event: "VolumeFailedDelete",
    },
];

const CLASSES: &[Row] = &[
    Row {
        name: "13-1 the class is the same",
        volumes: &["v 1Gi", "w 10Gi class=gold"],
        claims: &["c 1Gi class=gold"],
        ends: &["v phase=Available", "w claim=c uid phase=Bound bbc", "c volume=w phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
    Row {
        name: "13-2 no class",
        volumes: &["v 1Gi class=gold", "w 10Gi"],
        claims: &["c 1Gi"],
        ends: &["v phase=Available", "w claim=c uid phase=Bound bbc", "c volume=w phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
    Row {
        name: "13-3 the other class is smaller",
        volumes: &["v 1Gi class=silver", "w 10Gi class=gold"],
        claims: &["c 1Gi class=gold"],
        ends: &["v phase=Available", "w claim=c uid phase=Bound bbc", "c volume=w phase=Bound capacity=10Gi bbc bc"],
        event: "",
    },
    Row {
        name: "13-4 t_4 the empty class is no class for matching",
        volumes: &["v 1Gi"],
        claims: &["c 1Gi class="],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "13-5 no class takes a volume of the empty class",
        volumes: &["v 1Gi class="],
        claims: &["c 1Gi"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "",
    },
    Row {
        name: "10-1 a volume that is not available yet",
        volumes: &["v 1Gi phase=Pending"],
        claims: &["c 1Gi"],
        ends: &["v claim=c uid phase=Bound bbc", "c volume=v phase=Bound capacity=1Gi bbc bc"],
        event: "FailedBinding",
    },
    Row {
        name: "10-2 two volumes for one claim",
        volumes: &["v 1Gi claim=c uid phase=Bound bbc", "w 1Gi claim=c uid phase=Bound bbc"],
        claims: &["c 1Gi volume=v phase=Bound bbc bc"],
        ends: &["v claim=c uid phase=Bound bbc", "w phase=Available", "c volume=v phase=Bound bbc bc"],
        event: "",
    },
];

pub(super) async fn check(rows: &[Row]) {
    for row in rows {
        let (volumes, claims) = (row.volumes, row.claims);
        let environment = environment().prepare(move |sandbox| {
            create_class(sandbox, "wait", "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
            for claim in claims {
                create_claim(sandbox, claim);
            }
            for volume in volumes {
                create_volume(sandbox, volume);
            }
        });
        let cluster = start(environment).await;
        cluster.advance(Duration::from_mins(1)).await;
        let name = |text: &&'static str| text.split(' ').next().unwrap();
        let sandbox = cluster.sandbox();
        let ends: Vec<String> = volumes
            .iter()
            .map(|volume| state_of_volume(sandbox, name(volume)))
            .chain(claims.iter().map(|claim| state_of_claim(sandbox, name(claim))))
            .collect();
        assert_eq!(ends, row.ends, "{}", row.name);
        let events = cluster.events_of(COMPONENT);
        let reasons: BTreeSet<&str> = events.iter().filter_map(|event| event.split(' ').nth(1)).collect();
        assert_eq!(reasons, row.event.split_whitespace().collect(), "{}: {events:?}", row.name);
    }
}

#[tokio::test(start_paused = true)]
async fn pvb_10_to_26_a_claim_takes_the_best_match() {
    check(MATCHED).await;
}

#[tokio::test(start_paused = true)]
async fn pvb_13_to_16_a_claim_takes_the_volume_that_it_names() {
    check(NAMED).await;
}

#[tokio::test(start_paused = true)]
async fn pvb_17_a_bound_claim_stays_bound_or_is_lost() {
    check(BOUND).await;
}

#[tokio::test(start_paused = true)]
async fn pvb_27_to_31_a_volume_follows_its_claim() {
    check(OF_VOLUMES).await;
}

#[tokio::test(start_paused = true)]
async fn pvb_24_the_class_must_be_the_same() {
    check(CLASSES).await;
}
