//! Types, reasons and messages of events.

use kcm_framework::events::{Event as _, EventText, EventType};

use crate::statefulset::events::{StatefulSetEvent, Verb};

#[test]
fn events_are_those_of_upstream() {
    let pod = |verb, error: Option<&str>| StatefulSetEvent::Pod {
        verb,
        pod: "web-0".to_owned(),
        set: "web".to_owned(),
        error: error.map(str::to_owned),
    };
    let claim = |error: Option<&str>| StatefulSetEvent::ClaimCreated {
        claim: "data-web-0".to_owned(),
        pod: "web-0".to_owned(),
        set: "web".to_owned(),
        error: error.map(str::to_owned),
    };
    for (event, type_, reason, message) in [
        (
            pod(Verb::Create, None),
            EventType::Normal,
            "SuccessfulCreate",
            "Create Pod web-0 in StatefulSet web successful",
        ),
        (
            pod(Verb::Create, Some("no")),
            EventType::Warning,
            "FailedCreate",
            "Create Pod web-0 in StatefulSet web failed error: no",
        ),
        (
            pod(Verb::Update, None),
            EventType::Normal,
            "SuccessfulUpdate",
            "Update Pod web-0 in StatefulSet web successful",
        ),
        (
            pod(Verb::Update, Some("no")),
            EventType::Warning,
            "FailedUpdate",
            "Update Pod web-0 in StatefulSet web failed error: no",
        ),
        (
            pod(Verb::Delete, None),
            EventType::Normal,
            "SuccessfulDelete",
            "Delete Pod web-0 in StatefulSet web successful",
        ),
        (
            pod(Verb::Delete, Some("no")),
            EventType::Warning,
            "FailedDelete",
            "Delete Pod web-0 in StatefulSet web failed error: no",
        ),
        (
            claim(None),
            EventType::Normal,
            "SuccessfulCreate",
            "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        ),
        (
            claim(Some("no")),
            EventType::Warning,
            "FailedCreate",
            "Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: no",
        ),
        (
            StatefulSetEvent::ConflictingController { claim: "data-web-0".to_owned() },
            EventType::Warning,
            "ConflictingController",
            "PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim",
        ),
    ] {
        assert_eq!(event.text(), EventText { type_, reason: reason.into(), message: message.into() });
    }
}
