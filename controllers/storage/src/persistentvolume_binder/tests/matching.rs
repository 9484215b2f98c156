//! The choice of a volume, as a table.

use std::sync::Arc;

use kcm_framework::api::View as _;
use kcm_framework::api::views::{AccessModes, PersistentVolume, PersistentVolumeClaim};

use super::fixtures::{claim, own_uid, volume};
use crate::persistentvolume_binder::available::AvailableVolumes;
use crate::persistentvolume_binder::matching::{Mismatch, Volumes, best_match, check_named};

struct Fixed {
    volumes: Vec<Arc<PersistentVolume>>,
    available: AvailableVolumes,
}

impl Fixed {
    fn of(texts: &[&str]) -> Self {
        let volumes: Vec<_> = texts.iter().map(|text| Arc::new(decoded(text))).collect();
        let mut available = AvailableVolumes::default();
        for volume in &volumes {
            available.put(volume);
        }
        Self { volumes, available }
    }
}

impl Volumes for Fixed {
    fn referencing(&self, _claim: &PersistentVolumeClaim) -> Vec<Arc<PersistentVolume>> {
        self.volumes.clone()
    }

    fn available(
        &self,
        modes: AccessModes,
        claim: &PersistentVolumeClaim,
        fits: &dyn Fn(&PersistentVolume) -> bool,
    ) -> Option<Arc<PersistentVolume>> {
        self.available.candidates(modes, claim).find_map(|name| {
            self.volumes.iter().find(|volume| volume.metadata.key.name() == name && fits(volume)).cloned()
        })
    }
}

pub(super) fn decoded(text: &str) -> PersistentVolume {
    PersistentVolume::decode(&volume(text, own_uid).to_string()).unwrap()
}

pub(super) fn decoded_claim(text: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim::decode(&claim(text).to_string()).unwrap()
}

#[test]
fn pvb_23_to_26_the_first_group_with_a_volume_wins_and_in_it_a_reserved_one_and_then_the_smallest() {
    type Row<'a> = (&'a str, &'a str, &'a [&'a str], bool, Option<&'a str>);
    let rows: [Row<'_>; 17] = [
        ("no volume", "c 1Gi", &[], false, None),
        ("the smallest that is large enough", "c 5Gi", &["a 1Gi", "b 10Gi", "d 6Gi", "e 8Gi"], false, Some("d")),
        ("sizes are compared by value", "c 1Gi", &["a 1000Mi", "b 1024Mi"], false, Some("b")),
        ("b_3 the first by name of equal ones", "c 1Gi", &["b 1Gi", "a 1Gi"], false, Some("a")),
        ("the fewest access modes", "c 1Gi", &["a 1Gi modes=RWO,ROX,RWX", "b 9Gi modes=RWO,ROX"], false, Some("b")),
        ("b_3 the order of the modes", "c 1Gi", &["a 1Gi modes=RWO,RWX", "b 9Gi modes=RWO,ROX"], false, Some("b")),
        ("order and duplicates of modes", "c 1Gi modes=ROX,RWO", &["a 1Gi modes=RWO,ROX,ROX"], false, Some("a")),
        ("a mode is missing", "c 1Gi modes=RWX", &["a 1Gi"], false, None),
        ("a reserved volume before a smaller one", "c 1Gi", &["a 1Gi", "b 9Gi claim=c"], false, Some("b")),
        (
            "t_3 a free volume of fewer modes before a reserved one",
            "c 1Gi",
            &["a 9Gi modes=RWO", "b 1Gi claim=c"],
            false,
            Some("a"),
        ),
        ("a reserved volume that is too small", "c 5Gi", &["a 1Gi claim=c"], false, None),
        ("t_2 a reserved volume of another class", "c 1Gi", &["a 1Gi claim=c class=gold label=x"], false, Some("a")),
        ("a volume of another claim", "c 1Gi", &["a 1Gi claim=d", "b 1Gi claim=c other"], false, None),
        ("late binding takes no free volume", "c 1Gi", &["a 1Gi"], true, None),
        ("late binding takes a reserved volume", "c 1Gi", &["a 1Gi claim=c"], true, Some("a")),
        ("1-17 phases", "c 1Gi", &["a 1Gi phase=Pending", "b 1Gi phase=Failed", "d 1Gi phase=Released"], false, None),
        ("the attributes class differs", "c 1Gi vac=gold", &["a 1Gi", "b 1Gi vac=silver"], false, None),
    ];
    for (name, claim, volumes, is_delayed, expected) in rows {
        let found = best_match(&decoded_claim(claim), is_delayed, &Fixed::of(volumes)).unwrap();
        assert_eq!(found.as_ref().map(|volume| volume.metadata.key.name()), expected, "{name}");
    }
}

#[test]
fn pvb_24_a_terminating_volume_is_never_taken() {
    let mut json = volume("a 1Gi claim=c", own_uid);
    json["metadata"]["deletionTimestamp"] = serde_json::json!("2026-01-01T00:00:00Z");
    let volume = PersistentVolume::decode(&json.to_string()).unwrap();
    let claim = decoded_claim("c 1Gi");
    assert_eq!(check_named(&volume, &claim), Err(Mismatch::Terminating("a".to_owned())));
    let volumes = Fixed { volumes: vec![Arc::new(volume)], available: AvailableVolumes::default() };
    assert_eq!(best_match(&claim, false, &volumes), Ok(None));
}

#[test]
fn pvb_25_a_selector_that_is_invalid_is_an_error() {
    let mut json = claim("c 1Gi");
    json["spec"]["selector"] = serde_json::json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
    let claim = PersistentVolumeClaim::decode(&json.to_string()).unwrap();
    assert!(best_match(&claim, false, &Fixed::of(&["a 1Gi"])).is_err());
}

#[test]
fn pvb_14_a_named_volume_is_checked_in_order() {
    let rows: [(&str, &str, Result<(), Mismatch>); 7] = [
        ("a 1Gi", "c 1Gi", Ok(())),
        ("a 1Gi phase=Failed label=x", "c 1Gi selector=y", Ok(())),
        ("a 1Gi class=gold mode=Block", "c 2Gi", Err(Mismatch::TooSmall)),
        ("a 1Gi class=gold mode=Block", "c 1Gi", Err(Mismatch::Class)),
        ("a 1Gi vac=gold mode=Block", "c 1Gi", Err(Mismatch::AttributesClass)),
        ("a 1Gi mode=Block modes=ROX", "c 1Gi", Err(Mismatch::VolumeMode)),
        ("a 1Gi modes=ROX", "c 1Gi", Err(Mismatch::AccessModes)),
    ];
    for (volume, claim, expected) in rows {
        assert_eq!(check_named(&decoded(volume), &decoded_claim(claim)), expected, "{volume}, {claim}");
    }
}

#[test]
fn b_4_a_volume_that_is_no_longer_available_is_no_candidate() {
    let mut volumes = Fixed::of(&["a 1Gi"]);
    let claim = decoded_claim("c 1Gi");
    volumes.available.put(&decoded("a 1Gi claim=d"));
    assert_eq!(best_match(&claim, false, &volumes), Ok(None));
    volumes.available.put(&decoded("a 1Gi"));
    assert!(best_match(&claim, false, &volumes).unwrap().is_some());
}
