//! Services and network policies.

use serde_json::{Value, json};

use super::items;
use crate::json::{at, list, set, set_default, text};

pub(super) fn service(service: &mut Value) {
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if matches!(text(spec, &["sessionAffinity"]), None | Some("" | "None")) {
        set(spec, &["sessionAffinityConfig"], None);
    }
    for port in items(spec, &["ports"]) {
        if at(port, &["targetPort"]).is_none_or(|target| *target == 0 || *target == "") {
            let number = at(port, &["port"]).cloned().unwrap_or_else(|| 0.into());
            set(port, &["targetPort"], Some(number));
        }
    }
}

/// Sets the IP families of a service; no field manager owns them.
///
/// # Upstream
/// `initIPFamilyFields` of `pkg/registry/core/service/storage`
pub(super) fn families(service: &mut Value) {
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if text(spec, &["type"]) == Some("ExternalName") {
        return;
    }
    // `clusterIPs` defaults to `clusterIP`.
    if at(spec, &["clusterIPs"]).is_none()
        && let Some(address) = text(spec, &["clusterIP"]).filter(|address| !address.is_empty()).map(str::to_owned)
    {
        set(spec, &["clusterIPs"], Some(json!([address])));
    }
    let is_headless = text(spec, &["clusterIP"]) == Some("None");
    let has_selector = at(spec, &["selector"]).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if at(spec, &["ipFamilyPolicy"]).is_none() && at(spec, &["ipFamilies"]).is_none() && is_headless && !has_selector {
        set(spec, &["ipFamilyPolicy"], Some("RequireDualStack".into()));
        set(spec, &["ipFamilies"], Some(json!(["IPv4", "IPv6"])));
    }
    set_default(spec, &["ipFamilyPolicy"], "SingleStack");
    if list(spec, &["ipFamilies"]).is_empty() {
        set(spec, &["ipFamilies"], Some(json!(["IPv4"])));
    }
}

pub(super) fn policy(policy: &mut Value) {
    let has_egress = !list(policy, &["spec", "egress"]).is_empty();
    if has_egress && list(policy, &["spec", "policyTypes"]).is_empty() {
        set(policy, &["spec", "policyTypes"], Some(json!(["Ingress", "Egress"])));
    }
}
