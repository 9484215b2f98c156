//! Rules that hold for any bytes from the network, the bodies of the fuzz targets in `fuzz/`, which `cargo test` calls
//! with seeded mutations.
//!
//! No input makes a correct program panic.
#![allow(dead_code, unreachable_pub, reason = "each program that includes this uses a part of it")]

use kcm_api::views::{
    CronJob, DaemonSet, Deployment, EndpointSlice, Endpoints, HorizontalPodAutoscaler, Job, Namespace, Node, Pod,
    PodDisruptionBudget, ReplicaSet, ResourceClaim, ResourceQuota, Service, StatefulSet,
};
use kcm_api::{Document, PartialObjectMeta, Selector, View, protobuf};

/// Largest memory of a view for each byte that it was read from.
const LARGEST_FACTOR: usize = 256;

/// An object, in JSON or in protobuf with or without its envelope: each view reads it or refuses it, within memory that its
/// length bounds.
pub fn views(bytes: &[u8]) {
    fn of<V: View>(bytes: &[u8]) {
        let check = |view: V| {
            let largest = LARGEST_FACTOR * (bytes.len() + 64);
            assert!(view.bytes() <= largest, "{} bytes of {}", view.bytes(), bytes.len());
            drop(view.meta().clone());
        };
        if let Ok(view) = std::str::from_utf8(bytes).map_err(drop).and_then(|json| V::decode(json).map_err(drop)) {
            check(view);
        }
        for message in [Some(bytes), protobuf::unwrap(bytes).ok()].into_iter().flatten() {
            if let Ok(view) = V::decode_protobuf(message) {
                check(view);
            }
        }
    }
    of::<PartialObjectMeta>(bytes);
    of::<Pod>(bytes);
    of::<CronJob>(bytes);
    of::<DaemonSet>(bytes);
    of::<Deployment>(bytes);
    of::<EndpointSlice>(bytes);
    of::<Endpoints>(bytes);
    of::<HorizontalPodAutoscaler>(bytes);
    of::<Job>(bytes);
    of::<Namespace>(bytes);
    of::<Node>(bytes);
    of::<PodDisruptionBudget>(bytes);
    of::<ReplicaSet>(bytes);
    of::<ResourceClaim>(bytes);
    of::<ResourceQuota>(bytes);
    of::<Service>(bytes);
    of::<StatefulSet>(bytes);
}

/// A document: reading its text again changes nothing, and an edit changes what it names alone.
pub fn documents(bytes: &[u8]) {
    let Some(document) = std::str::from_utf8(bytes).ok().and_then(|json| Document::parse(json).ok()) else { return };
    let again = Document::parse(document.as_str()).expect("what was written must be read");
    assert_eq!(again.as_str(), document.as_str());
    drop(document.annotations());
    let path = ["metadata", "annotations", "example.com/a"];
    let mut edited = document.clone();
    if edited.set(&path, "x").is_ok() {
        assert_eq!(edited.get(&path), Some("\"x\""));
        assert_eq!(edited.get(&["spec"]), document.get(&["spec"]));
        let again = Document::parse(edited.as_str()).expect("what was edited must be read");
        assert_eq!(again.as_str(), edited.as_str());
        edited.remove(&path).expect("it is there");
        assert_eq!(edited.get(&path), None);
    }
}

/// The text of a label selector: it is refused, or its own text is read as the same selector.
pub fn selectors(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<Selector>() {
        Ok(selector) => assert_eq!(selector.to_string().parse().as_ref(), Ok(&selector), "{text:?}"),
        Err(refused) => assert!(!refused.to_string().contains('\n'), "{refused}"),
    }
}
