//! Prefixes of the names of claims, and the labels of claims in metrics.

use serde_json::json;

use super::claim_view;
use crate::resourceclaim::metrics::labels;
use crate::resourceclaim::new_claim::name_prefix;

#[test]
fn s71_long_names_are_cut_in_proportion() {
    let sixty = "p".repeat(60);
    for (name, owner, entry, prefix) in [
        ("short", "web", "gpu", "web-gpu-".to_owned()),
        ("57 letters", &"p".repeat(52), "gpu", format!("{}-gpu-", "p".repeat(52))),
        ("worked example", &sixty, "gpu", format!("{}-gp", "p".repeat(52))),
        ("both long", &sixty, &"e".repeat(60), format!("{}-{}", "p".repeat(28), "e".repeat(28))),
    ] {
        assert_eq!(name_prefix(owner, entry), prefix, "{name}");
    }
}

#[test]
fn t43_no_dot_or_hyphen_is_left_at_the_cut() {
    let owner = format!("{}.{}", "p".repeat(51), "q".repeat(8));
    assert_eq!(name_prefix(&owner, "gpu"), format!("{}-gp", "p".repeat(51)));
    let entry = format!("gp-{}", "e".repeat(60));
    let prefix = name_prefix(&"p".repeat(250), &entry);
    assert!(prefix.len() < 58 && !prefix.contains("--") && !prefix.ends_with('-'), "{prefix}");
}

#[test]
fn t46_claims_are_counted_by_allocation_access_and_source() {
    let template = json!({ "resource.kubernetes.io/pod-claim-name": "gpu" });
    let extended = json!({
        "resource.kubernetes.io/extended-resource-claim": "true", "resource.kubernetes.io/pod-claim-name": "gpu",
    });
    let admin = json!({ "devices": { "requests": [{ "exactly": { "adminAccess": true } }] } });
    for (name, annotations, spec, status, expected) in [
        ("of a user", json!({}), json!({}), json!({}), ["false", "false", ""]),
        ("allocated", json!({}), json!({}), json!({ "allocation": {} }), ["true", "false", ""]),
        ("of a template", template, json!({}), json!({}), ["false", "false", "resource_claim_template"]),
        ("extended", extended, json!({}), json!({}), ["false", "false", "extended_resource"]),
        ("admin", json!({}), admin, json!({}), ["false", "true", ""]),
    ] {
        let metadata = json!({ "name": "c", "annotations": annotations });
        let claim = claim_view(&json!({ "metadata": metadata, "spec": spec, "status": status }));
        assert_eq!(labels(&claim), expected, "{name}");
    }
}
