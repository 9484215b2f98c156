//! Views of kinds that this crate does not have, declared as later controllers will do it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use super::schema::Schema;
use super::{Declared, check, check_part};
use crate::protobuf::tests::encode::{field, number};
use crate::protobuf::{Field, Kind};
use crate::{Condition, IntOrPercent, InternedStr, LabelSelector, Labels, Need, Needs, Resource, View};

crate::view! {
    /// View of a Service, to test the declaration.
    pub(super) struct Service {
        resource: Resource::namespaced("", "v1", "services", "Service");

        "spec" @ 2 {
            pub(super) type_: InternedStr = "type" @ 4;
            pub(super) cluster_ips: Vec<InternedStr> = "clusterIPs" @ 18;
            pub(super) selector: Labels = "selector" @ 2;
            pub(super) ports: Box<[ServicePort]> = "ports" @ 1;
            pub(super) publishes_unready: bool = "publishNotReadyAddresses" @ 13;
            pub(super) traffic_distribution: Option<Box<str>> = "trafficDistribution" @ 23;
        }
    }
}

crate::message! {
    /// A port of a service.
    pub(super) struct ServicePort {
        pub(super) name: InternedStr = "name" @ 1;
        pub(super) protocol: InternedStr = "protocol" @ 2;
        pub(super) port: i32 = "port" @ 3;
        pub(super) target_port: IntOrPercent = "targetPort" @ 4;
    }
}

crate::view! {
    /// View of a Job, to test the declaration.
    pub(super) struct Job {
        resource: Resource::namespaced("batch", "v1", "jobs", "Job");
        parts: JobPart [JobDeadlines];

        "spec" @ 2 {
            pub(super) parallelism: Option<i32> = "parallelism" @ 1;
            pub(super) completions: Option<i32> = "completions" @ 2;
            pub(super) suspend: bool = "suspend" @ 10;
            pub(super) selector: Option<LabelSelector> = "selector" @ 4;
        }
        "status" @ 3 {
            pub(super) start_time: Option<Timestamp> = "startTime" @ 2;
            pub(super) failed: i32 = "failed" @ 6;
            pub(super) conditions: Box<[Condition]> = "conditions" @ 1 as Kind::List(&CONDITION);
        }
    }
}

crate::message! {
    /// When a job ends at the latest.
    pub(super) struct JobDeadlines {
        "spec" @ 2 {
            pub(super) active_deadline_seconds: Option<i64> = "activeDeadlineSeconds" @ 3;
            pub(super) ttl_seconds_after_finished: Option<i32> = "ttlSecondsAfterFinished" @ 8;
        }
    }
}

const CONDITION: Kind = Kind::One(&[
    Field::text(1, "type"),
    Field::text(2, "status"),
    Field::time(4, "lastTransitionTime"),
    Field::text(5, "reason"),
    Field::text(6, "message"),
]);

crate::view! {
    /// A persistent volume; its source is a message of its own in protobuf alone.
    pub(super) struct PersistentVolume {
        resource: Resource::cluster_scoped("", "v1", "persistentvolumes", "PersistentVolume");
        annotations: ["pv.kubernetes.io/provisioned-by"];

        "spec" @ 2 {
            pub(super) capacity: BTreeMap<InternedStr, Quantity> = "capacity" @ 1;
            pub(super) class: InternedStr = "storageClassName" @ 6;
            "" @ 2 {
                "csi" @ 22 {
                    pub(super) driver: InternedStr = "driver" @ 1;
                }
            }
        }
        "status" @ 3 {
            pub(super) phase: InternedStr = "phase" @ 1;
        }
    }
}

/// A quantity as it was served.
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
pub(super) struct Quantity(Box<str>);

impl crate::protobuf::ProtobufType for Quantity {
    const KIND: Kind = Kind::Quantity;
}

pub(super) fn check_all(schema: &Schema) -> usize {
    let views = check::<Service>(schema).min(check::<Job>(schema)).min(check::<PersistentVolume>(schema));
    views.min(check_part::<JobDeadlines>(schema))
}

#[test]
fn a_service_is_read_from_both_forms() {
    let json = json!({"metadata": {"name": "web"}, "spec": {
        "type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "selector": {"app": "web"}, "publishNotReadyAddresses": true,
        "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8081}],
    }});
    let port = |name: &[u8], protocol: &[u8], port, target: &[u8]| {
        field(1, &[field(1, name), field(2, protocol), number(3, port), field(4, target)].concat())
    };
    let message = [
        field(1, &field(1, b"web")),
        field(
            2,
            &[
                port(b"http", b"TCP", 80, &[number(1, 1), number(2, 0), field(3, b"http")].concat()),
                port(b"", b"", 81, &[number(1, 0), number(2, 8081), field(3, b"")].concat()),
                field(2, &[field(1, b"app"), field(2, b"web")].concat()),
                field(3, b"10.0.0.1"),
                field(4, b"ClusterIP"),
                number(13, 1),
                field(18, b"10.0.0.1"),
            ]
            .concat(),
        ),
    ]
    .concat();
    let service = Service::decode(&json.to_string()).unwrap();
    assert_eq!(Service::decode_protobuf(&message).unwrap(), service);
    assert_eq!(service.metadata.key.name(), "web");
    assert_eq!((&*service.type_, &*service.cluster_ips[0]), ("ClusterIP", "10.0.0.1"));
    assert_eq!(service.selector.get("app"), Some("web"));
    assert_eq!((service.publishes_unready, service.traffic_distribution), (true, None));
    let [http, other] = &*service.ports else { panic!("{:?}", service.ports) };
    assert_eq!((&*http.name, http.port, &http.target_port), ("http", 80, &IntOrPercent::from("http")));
    assert_eq!((&*other.name, other.port, &other.target_port), ("", 81, &IntOrPercent::Int(8081)));
}

crate::view! {
    /// A kind of a custom resource, which has no protobuf.
    struct Website {
        resource: Resource::namespaced("example.com", "v1", "websites", "Website");
        annotations: ["example.com/paused"];
        parts: WebsitePart [WebsiteCertificate];

        "spec" {
            image: String = "image";
            let replicas: Option<i32> = "replicas";
            replicas: i32 = replicas.unwrap_or(1);
            env: BTreeMap<String, serde_json::Value> = "env";
        }
    }
}

crate::message! {
    struct WebsiteCertificate {
        "spec" { issuer: String = "issuer"; }
    }
}

#[test]
fn a_part_of_a_custom_resource_is_read_from_json() {
    let needs: Needs = [Need::part::<WebsiteCertificate>()].into_iter().collect();
    let website = Website::decode(r#"{"metadata":{},"spec":{"issuer":"ca"}}"#).unwrap();
    assert_eq!(needs.reader::<WebsiteCertificate>().unwrap().of(&website).issuer, "ca");
}

#[test]
fn a_view_without_numbers_reads_json_alone() {
    const { assert!(!Website::READS_PROTOBUF) };
    assert_eq!(Website::MESSAGE.len(), 2);
    let json = r#"{"metadata":{"name":"a","annotations":{"example.com/paused":"1","b":"2"}},"spec":{"image":"i","env":{"a":[1]}}}"#;
    let website = Website::decode(json).unwrap();
    assert_eq!((&*website.image, website.replicas, website.env["a"][0].as_i64()), ("i", 1, Some(1)));
    assert_eq!(website.metadata.annotations.iter().collect::<Vec<_>>(), [("example.com/paused", "1")]);
    assert!(Website::decode_protobuf(b"").is_err(), "no metadata");
}

#[test]
fn a_view_without_metadata_and_a_field_that_comes_twice_are_refused() {
    for (json, flaw) in [
        (r"{}", "missing field `metadata`"),
        (r#"{"metadata":null}"#, "missing field `metadata`"),
        (r#"{"metadata":{},"spec":{"image":"a","image":"b"}}"#, "duplicate field `image`"),
        (r#"{"metadata":{},"spec":[]}"#, "expected an object"),
        (r#"{"metadata":{},"spec":{"image":1}}"#, "expected a string"),
    ] {
        let error = Website::decode(json).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(flaw), "{source} for {json}");
    }
}
