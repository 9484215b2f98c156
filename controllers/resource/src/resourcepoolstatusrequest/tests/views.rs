//! Partitions and shareable devices.

use serde_json::{Value, json};

use super::{slice, slices};
use crate::resourcepoolstatusrequest::partitions::partitions;
use crate::resourcepoolstatusrequest::pool::{InUse, pools};
use crate::resourcepoolstatusrequest::shareable::shareable;

fn partition(name: &str, type_: &str, cost: &str) -> Value {
    json!({
        "name": name,
        "attributes": { "gpu.example.com/type": { "string": type_ } },
        "consumesCounters": [{ "counterSet": "c", "counters": { "memory": { "value": cost } } }],
    })
}

/// A slice that shares `4Gi` of memory among its devices.
fn partitioned(attribute: Option<&str>, devices: &Value) -> Value {
    let mut slice = slice("s", "a", 1, 1, devices);
    slice["spec"]["sharedCounters"] = json!([{ "name": "c", "counters": { "memory": { "value": "4Gi" } } }]);
    if let Some(attribute) = attribute {
        slice["spec"]["partitionTypeAttribute"] = json!(attribute);
    }
    slice
}

/// The partitions of a pool as text, or the error.
fn summary(published: &[Value], default: Option<&str>, used: &[&str]) -> Result<Vec<String>, String> {
    let slices = slices(published);
    let pools = pools("gpu.example.com", None, &slices);
    let in_use = InUse { devices: used.iter().map(|device| (*device).into()).collect(), ..InUse::default() };
    let found = partitions(&pools[0], default, &in_use).map_err(|error| error.to_string())?;
    let found = serde_json::to_value(&found).unwrap();
    let lines = found.as_array().unwrap().iter().map(|line| {
        format!("{} {} {} {}", line["attribute"], line["type"], line["total"], line["allocatable"]).replace('"', "")
    });
    Ok(lines.collect())
}

const TYPE: &str = "gpu.example.com/type";

#[test]
fn s85_partitions_are_fitted_into_what_is_left() {
    let small =
        |count: usize| (0..count).map(|number| partition(&format!("s{number}"), "small", "1Gi")).collect::<Vec<_>>();
    let mixed = || {
        let mut devices = small(3);
        devices.push(partition("l0", "large", "2Gi"));
        json!(devices)
    };
    let bare = json!([{
        "name": "d0", "attributes": { "type": { "string": "bare" } },
        "consumesCounters": [{ "counterSet": "c", "counters": { "memory": { "value": "1Gi" } } }],
    }]);
    let line = |type_: &str, total: usize, allocatable: usize| format!("{TYPE} {type_} {total} {allocatable}");
    for (name, published, default, used, expected) in [
        ("free", partitioned(Some(TYPE), &mixed()), None, &[][..], vec![line("large", 1, 1), line("small", 3, 3)]),
        (
            "worked example",
            partitioned(Some(TYPE), &mixed()),
            None,
            &["l0"],
            vec![line("large", 1, 0), line("small", 3, 2)],
        ),
        ("more than fit", partitioned(Some(TYPE), &json!(small(6))), None, &[], vec![line("small", 6, 4)]),
        ("default of the request", partitioned(None, &json!(small(1))), Some(TYPE), &[], vec![line("small", 1, 1)]),
        (
            "the slice goes first",
            partitioned(Some(TYPE), &json!(small(1))),
            Some("other"),
            &[],
            vec![line("small", 1, 1)],
        ),
        ("no attribute", partitioned(None, &json!(small(1))), None, &[], vec![]),
        ("without the domain", partitioned(Some(TYPE), &bare), None, &[], vec![line("bare", 1, 1)]),
        ("no counters consumed", partitioned(Some(TYPE), &json!([{ "name": "d0" }])), None, &[], vec![]),
        (
            "t48: equal by value",
            partitioned(Some(TYPE), &json!([partition("d0", "small", "1Gi"), partition("d1", "small", "1024Mi")])),
            None,
            &[],
            vec![line("small", 2, 2)],
        ),
    ] {
        assert_eq!(summary(&[published], default, used), Ok(expected), "{name}");
    }
}

#[test]
fn s85_the_default_counts_only_if_no_slice_has_an_attribute() {
    let with = partitioned(Some(TYPE), &json!([partition("d0", "small", "1Gi")]));
    let mut without = slice("t", "a", 1, 1, &json!([partition("d1", "large", "1Gi")]));
    without["metadata"]["name"] = json!("t");
    assert_eq!(summary(&[with, without], Some(TYPE), &[]), Ok(vec![format!("{TYPE} small 1 1")]));
}

#[test]
fn s86_errors_drop_the_partitions() {
    let device = |devices: Value| partitioned(Some(TYPE), &devices);
    let untyped = json!([{
        "name": "d0", "attributes": { "gpu.example.com/type": { "int": 1 } },
        "consumesCounters": [{ "counterSet": "c", "counters": {} }],
    }]);
    let many: Vec<Value> =
        (0..33).map(|number| partition(&format!("d{number}"), &format!("t{number}"), "1Mi")).collect();
    let mut no_counters = slice("s", "a", 1, 1, &json!([partition("d0", "small", "1Gi")]));
    no_counters["spec"]["partitionTypeAttribute"] = json!(TYPE);
    for (published, expected) in [
        (
            no_counters,
            "PartitionTypeMissing: pool gpu.example.com/a declares partitionTypeAttribute but publishes no sharedCounters",
        ),
        (
            device(untyped),
            "PartitionTypeMissing: device \"d0\" in pool gpu.example.com/a does not carry partition type attribute \
             \"gpu.example.com/type\"",
        ),
        (
            device(json!([partition("d0", "small", "1Gi"), partition("d1", "small", "2Gi")])),
            "PartitionCostMismatch: devices of partition type \"small\" in pool gpu.example.com/a consume different counters",
        ),
        (
            device(json!(many)),
            "PartitionSummaryOverCap: pool gpu.example.com/a has 33 partition types, exceeding the maximum of 32",
        ),
    ] {
        assert_eq!(summary(&[published], None, &[]), Err(expected.to_owned()));
    }
}

#[test]
fn s87_shareable_devices_sum_their_capacity() {
    let device = |name: &str, memory: &str| json!({ "name": name, "allowMultipleAllocations": true, "capacity": { "memory": { "value": memory } } });
    let of = |devices: Value, used: &[&str], consumed: &str| {
        let slices = slices(&[slice("s", "a", 1, 1, &devices)]);
        let pools = pools("gpu.example.com", None, &slices);
        let in_use = InUse {
            devices: used.iter().map(|device| (*device).into()).collect(),
            consumed: [("memory".into(), consumed.parse().unwrap())].into(),
        };
        shareable(&pools[0], &in_use)
            .map(|found| serde_json::to_value(found).unwrap())
            .map_err(|error| error.to_string())
    };
    let capacity = |total: &str, consumed: &str, available: &str| json!([{ "name": "memory", "total": total, "consumed": consumed, "available": available }]);
    let both = || json!([device("d0", "8Gi"), device("d1", "8Gi"), { "name": "exclusive" }]);
    let expected = |full: u64, partial: u64, capacity: Value| {
        Ok(json!({ "fullyAvailableDevices": full, "partiallyAvailableDevices": partial, "capacity": capacity }))
    };
    assert_eq!(of(both(), &["d0", "exclusive"], "4Gi"), expected(1, 1, capacity("16Gi", "4Gi", "12Gi")));
    assert_eq!(of(both(), &["d0"], "20Gi"), expected(1, 1, capacity("16Gi", "20Gi", "0")));
    assert_eq!(of(json!([{ "name": "exclusive" }]), &[], "0"), Ok(Value::Null));
    let without = json!([{ "name": "d0", "allowMultipleAllocations": true }]);
    assert_eq!(of(without, &[], "0"), Ok(json!({ "fullyAvailableDevices": 1, "partiallyAvailableDevices": 0 })));
    let keys: serde_json::Map<String, Value> =
        (0..33).map(|key| (format!("k{key}"), json!({ "value": "1" }))).collect();
    let many = json!([{ "name": "d0", "allowMultipleAllocations": true, "capacity": keys }]);
    let error =
        "ShareableSummaryOverCap: pool gpu.example.com/a has 33 shareable capacity keys, exceeding the maximum of 32";
    assert_eq!(of(many, &[], "0"), Err(error.to_owned()));
}
