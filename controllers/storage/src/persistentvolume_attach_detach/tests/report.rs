use serde_json::{Value, json};

use super::super::report::{ReportedVolume, patch};

fn check(name: &str, current: &[&str], attached: &[&str], detached: &[&str], expected: Option<Value>) {
    let entry = |name: &&str| ReportedVolume { name: (*name).to_owned(), device_path: format!("/dev/{name}") };
    let current: Vec<_> = current.iter().map(entry).collect();
    let (attached, detached) = (attached.iter().copied().collect(), detached.iter().copied().collect());
    let expected = expected.map(|list| json!({ "metadata": { "uid": "u" }, "status": { "volumesAttached": list } }));
    assert_eq!(patch("u", &current, &attached, &detached), expected, "{name}");
}

#[test]
fn ad_24_b_11_patches_of_reports() {
    let old = |name: &str| json!({ "name": name, "devicePath": format!("/dev/{name}") });
    let new = |name: &str| json!({ "name": name, "devicePath": "" });
    check("first", &[], &["b", "a"], &[], Some(json!([new("a"), new("b")])));
    check(
        "T-22: known entries keep order and path",
        &["z", "a"],
        &["b"],
        &[],
        Some(json!([old("z"), old("a"), new("b")])),
    );
    check("the last one goes", &["a"], &[], &["a"], Some(Value::Null));
    check("equal sets are not written", &["z", "a"], &["a"], &["b"], None);
    check("nothing", &[], &[], &[], None);
    check("a detach wins", &["a", "b"], &["a"], &["a"], Some(json!([old("b")])));
    check("PL-11: unknown entries stay", &["vendor/x/y", "a"], &[], &["a"], Some(json!([old("vendor/x/y")])));
}
