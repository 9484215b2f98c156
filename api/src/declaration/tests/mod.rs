//! Rules that hold for every declared view, tested from its declaration alone.

mod other_kinds;
mod sample;
mod schema;

use std::fmt::Debug;
use std::fs;
use std::panic::{RefUnwindSafe, catch_unwind};

use serde_json::Value;

use super::Declared;
use crate::protobuf::Message;
use crate::views::{
    AutoscaledPod, ChargedPod, ClaimDevices, ControllerRevisionView, CronJobView, DaemonSetView, DeploymentView,
    DeviceClass, EndpointSliceView, EndpointsView, HorizontalPodAutoscalerView, JobView, Lease, Namespace, Node,
    NodeHealth, NodePodCidrs, PersistentVolumeClaimView, PersistentVolumeView, Pod, PodAddresses, PodClaims,
    PodDeletion, PodDisruption, PodDisruptionBudgetView, PodGroup, PodGroupMembership, PodSelinux, PodTargetNode,
    PodTermination, PodTolerations, PodVolumes, ReplicaSetView, ReplicationControllerView, ResourceClaim,
    ResourceQuotaView, Service, ServiceCidr, StatefulSetView,
};
use crate::{KnownView, Meta, Part, Resource};
use sample::{Random, Sampler};
use schema::Schema;

const SAMPLES: u64 = 300;

/// Checks a view of a kind that API servers serve as protobuf; returns the number of samples that decoded differently
/// from the first one.
fn check<V: KnownView + Declared + Debug + PartialEq>(schema: &Schema) -> usize {
    let of = kind_of(&V::RESOURCE);
    schema.assert_has(V::MESSAGE, &of);
    assert!(V::READS_PROTOBUF, "{of} has numbers");

    check_samples::<V>(schema, &of, V::MESSAGE)
}

/// Checks a part of a view, with samples that have its fields.
fn check_part<P: Part<View: KnownView + Debug + PartialEq> + Declared>(schema: &Schema) -> usize {
    let of = kind_of(&<P::View as KnownView>::RESOURCE);
    schema.assert_has(P::MESSAGE, &of);
    check_samples::<P::View>(schema, &of, P::MESSAGE)
}

fn check_samples<V: KnownView + Debug + PartialEq>(schema: &Schema, of: &str, declared: &Message) -> usize {
    let mut decoded = Vec::new();
    for seed in 0..SAMPLES {
        let (json, message) = sample::<V>(schema, of, declared, seed);
        let of_json = V::decode(&json).unwrap_or_else(|error| panic!("{error:?}: {json}"));
        let of_message = V::decode_protobuf(&message).unwrap_or_else(|error| panic!("{error:?}: {json}"));
        assert_eq!(of_json, of_message, "{json}");
        decoded.push(of_json);
        if seed % 20 == 0 {
            damage::<V>(&json, &message, &mut Random(seed));
        }
    }
    decoded.iter().filter(|view| **view != decoded[0]).count()
}

/// Upstream's name of the kind of a resource.
fn kind_of(resource: &Resource) -> String {
    format!("{}/{}/{}", resource.group, resource.version, resource.kind)
}

fn sample<V: KnownView>(schema: &Schema, of: &str, declared: &Message, seed: u64) -> (String, Vec<u8>) {
    let mut sampler = Sampler { schema, random: Random(seed), annotations: V::ANNOTATIONS };
    let (mut json, mut message) = sampler.object(declared, of);
    if json.get("metadata").is_none_or(Value::is_null) {
        json.insert("metadata".to_owned(), Value::Object(serde_json::Map::new()));
        message.extend(crate::protobuf::tests::encode::field(1, b""));
    }
    (Value::from(json).to_string(), message)
}

/// Decodes damaged forms of an object. Only a panic fails.
fn damage<V: KnownView>(json: &str, message: &[u8], random: &mut Random) {
    for end in 0..message.len() {
        let mut broken = message.to_vec();
        broken[end] ^= u8::try_from(random.below(255) + 1).expect("a byte");
        drop(V::decode_protobuf(&broken));
        drop(V::decode_protobuf(&message[..end]));
    }
    for (end, _) in json.char_indices() {
        drop(V::decode(&json[..end]));
        let other = ["\"", "0", "null", "{", "]", ",", "x"][usize::try_from(random.below(7)).expect("an index")];
        drop(V::decode(&format!("{}{other}{}", &json[..end], &json[end..])));
    }
}

#[test]
fn every_view_reads_the_same_from_json_and_protobuf_with_upstreams_names_and_numbers() {
    let schema = &Schema::read();
    let different = [
        check::<Pod>(schema),
        check::<ReplicaSetView>(schema),
        check::<DaemonSetView>(schema),
        check::<DeploymentView>(schema),
        check::<Namespace>(schema),
        check::<Node>(schema),
        check::<JobView>(schema),
        check::<CronJobView>(schema),
        check::<ReplicationControllerView>(schema),
        check::<ControllerRevisionView>(schema),
        check::<StatefulSetView>(schema),
        other_kinds::check_all(schema),
        check_part::<PodVolumes>(schema),
        check_part::<PodAddresses>(schema),
        check_part::<PodDisruption>(schema),
        check_part::<PodTargetNode>(schema),
        check::<ResourceQuotaView>(schema),
        check::<Service>(schema),
        check::<EndpointSliceView>(schema),
        check::<EndpointsView>(schema),
        check::<PersistentVolumeClaimView>(schema),
        check::<PersistentVolumeView>(schema),
        check::<ResourceClaim>(schema),
        check::<DeviceClass>(schema),
        check_part::<ChargedPod>(schema),
        check::<PodDisruptionBudgetView>(schema),
        check::<ServiceCidr>(schema),
        check_part::<PodTermination>(schema),
        check_part::<PodDeletion>(schema),
        check_part::<AutoscaledPod>(schema),
        check::<HorizontalPodAutoscalerView>(schema),
        check::<Lease>(schema),
        check_part::<NodeHealth>(schema),
        check_part::<NodePodCidrs>(schema),
        check_part::<PodTolerations>(schema),
        check_part::<PodGroupMembership>(schema),
        check_part::<PodClaims>(schema),
        check_part::<PodSelinux>(schema),
        check_part::<ClaimDevices>(schema),
        check::<PodGroup>(schema),
    ];
    assert!(different.iter().all(|count| *count > 90), "samples must differ: {different:?}");

    // Fails if a view or a part is missing above.
    let views = concat!(env!("CARGO_MANIFEST_DIR"), "/src/views");
    let files = fs::read_dir(views).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let parts = |file: &str| {
        file.lines().find(|line| line.trim_start().starts_with("parts: ")).map_or(0, |line| line.split(", ").count())
    };
    let declared: usize = files.map(|file| file.matches("view! {").count() + parts(&file)).sum();
    assert_eq!(declared, different.len() - 1);
}

#[test]
fn metadata_has_upstreams_names_and_numbers() {
    Schema::read().assert_has(Meta::MESSAGE, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

#[test]
fn a_field_with_another_number_or_name_is_found() {
    use crate::protobuf::Field;
    const STATUS: &str = "io.k8s.api.core.v1.NamespaceStatus";
    fn is_found(message: &(impl AsRef<Message> + RefUnwindSafe + ?Sized)) -> bool {
        let schema = Schema::read();
        catch_unwind(std::panic::AssertUnwindSafe(|| schema.assert_has(message.as_ref(), STATUS))).is_err()
    }
    assert!(!is_found(&[Field::text(1, "phase")]));
    assert!(is_found(&[Field::text(2, "phase")]));
    assert!(is_found(&[Field::integer(1, "phase")]));
    assert!(is_found(&[Field::text(1, "stage")]));
}
