//! Odd values, words and strings.

use serde_json::{Value, json};

use crate::fuzz::choices::Choices;

pub(crate) const STRINGS: &[&str] = &[
    "",
    "a",
    " ",
    "-",
    ".",
    "..",
    "/",
    "a/b",
    "a/b/c",
    "/a",
    "a/",
    "A",
    "web",
    "default",
    "row",
    "kube-system",
    "*",
    "$",
    "~",
    "~0~1~2",
    "\u{0}",
    "\n",
    "ü",
    "日本語",
    "\u{10ffff}",
    "\u{feff}",
    "\u{202e}",
    "e\u{301}",
    "İ",
    "\"",
    "\\",
    "{}",
    "[]",
    "null",
    "true",
    "0",
    "-0",
    "1",
    "-1",
    "01",
    "1.5",
    "1e9",
    "1e400",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "100%",
    "-1%",
    "101%",
    "1000000000000%",
    "%",
    "50%",
    "1Gi",
    "9E",
    "9Ei",
    "1e38",
    "1e-38",
    "1n",
    "-9E",
    "0.0000000001",
    "170141183460469231731687303715884105727",
    "170141183460469231731687303715884105727n",
    "1e2147483647",
    "1e-2147483648",
    "1e99999999999",
    "12345678901234567890123456789012345678e-40",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.123456Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "-9999-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "2026-02-30T25:61:61Z",
    "2026-01-01T00:00:00+99:99",
    "9999-12-31T23:59:59-23:59",
    "*/5 * * * *",
    "0 0 31 2 *",
    "*/0 * * * *",
    "99 99 99 99 99",
    "@every 1s",
    "CRON_TZ=Mars * * * * *",
    "10.0.0.1",
    "::1",
    "fe80::1%eth0",
    "256.256.256.256",
    "10.0.0.0/33",
    "::/129",
    "None",
    "web:crash",
    "web@sha256:00",
    ":",
    "@",
    "a:b:c",
    "host:port/a",
    "app=web",
    "app in (a,b",
    "!",
    "a,,b",
    "metadata.name=web",
    "spec.nodeName!=",
    "a==b",
    "x in ()",
    "x>1",
    "x>a",
    "Always",
    "Never",
    "OnFailure",
    "RollingUpdate",
    "Recreate",
    "ClusterIP",
    "ExternalName",
    "Terminating",
    "All",
    "Foreground",
    "Orphan",
    "io.k8s.api",
    "kubernetes.io/metadata.name",
    "f:a",
    "k:{}",
    "v:1",
    "i:0",
    "$patch",
    "<<",
    "${{",
    "(?:a{1000}){1000}",
    "[a-",
    "x509",
    "data:;base64,AA==",
    "AA=",
    "===",
    "spec.replicas",
    ".spec..replicas",
    ".spec.replicas[0]",
    "{.spec.replicas}",
    "true && false",
    "self.x",
    "now()",
    "\u{1b}[31m",
];

pub(crate) const KEYS: &[&str] = &[
    "",
    "a",
    "name",
    "kind",
    "apiVersion",
    "metadata",
    "spec",
    "status",
    "labels",
    "annotations",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "generateName",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "replicas",
    "selector",
    "matchLabels",
    "matchExpressions",
    "template",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "ports",
    "volumes",
    "env",
    "resources",
    "limits",
    "requests",
    "cpu",
    "items",
    "data",
    "stringData",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "<<",
    "f:a",
    ".",
    "ü",
    "a/b",
    "a.b",
    "a b",
];

/// A value of any type.
pub(crate) fn value(choices: &mut Choices) -> Value {
    match choices.below(12) {
        0 => Value::Null,
        1 => json!(choices.once_in(2)),
        2 | 3 => number(choices),
        4..=7 => json!(choices.one(STRINGS)),
        8 => json!(choices.one(&["x", "ü", "a.", "A-"]).repeat(choices.one(&[63, 64, 253, 254, 300, 5000]))),
        9 => (0..choices.below(4)).map(|_| value(choices)).collect(),
        10 => {
            let entries = (0..choices.below(4)).map(|_| (choices.one(KEYS).to_owned(), value(choices)));
            Value::Object(entries.collect())
        }
        _ => deep(choices.below(2) == 0, choices.one(&[2, 10, 60, 120])),
    }
}

fn number(choices: &mut Choices) -> Value {
    let numbers = [
        json!(0),
        json!(-1),
        json!(1),
        json!(2),
        json!(i32::MAX),
        json!(i32::MIN),
        json!(i64::from(i32::MAX) + 1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5),
        json!(-0.0),
        json!(1e300),
        json!(1e-300),
        json!(9_007_199_254_740_993_i64),
        json!(86_400),
        json!(65_536),
        json!(1_000_000),
    ];
    choices.one(&numbers)
}

fn deep(lists: bool, depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| if lists { json!([inner]) } else { json!({ "a": inner }) })
}

/// The pointers to everything in a value, itself first.
pub(crate) fn pointers(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut next = 0;
    while let Some(at) = found.get(next).cloned() {
        match value.pointer(&at) {
            Some(Value::Object(map)) => {
                found.extend(map.keys().map(|key| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))));
            }
            Some(Value::Array(items)) => found.extend((0..items.len()).map(|index| format!("{at}/{index}"))),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
        next += 1;
    }
    found
}

/// Changes a value somewhere.
pub(crate) fn disturb(choices: &mut Choices, whole: &mut Value) {
    let all = pointers(whole);
    let at = choices.one(&all);
    let Some(place) = whole.pointer_mut(&at) else { return };
    match (choices.below(8), &mut *place) {
        (0, Value::Object(map)) => drop(map.insert(choices.one(KEYS).to_owned(), value(choices))),
        (0, Value::Array(items)) => items.push(value(choices)),
        (1, Value::Object(map)) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            if !keys.is_empty() {
                map.remove(&choices.one(&keys));
            }
        }
        (1, Value::Array(items)) => drop(items.pop()),
        (2, Value::Array(items)) => items.extend(items.first().cloned()),
        (3, Value::Object(map)) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            if let Some(moved) = keys.first().and_then(|key| map.remove(key)) {
                map.insert(choices.one(KEYS).to_owned(), moved);
            }
        }
        (4, _) => *place = json!([place.take()]),
        (5, _) => *place = json!({ (choices.one(KEYS)): place.take() }),
        (6, _) => *place = Value::Null,
        (_, _) => *place = value(choices),
    }
}
