//! Horizontal autoscalers.

use serde_json::{Value, json};

use crate::json::{at, list, set, set_default};

pub(super) fn autoscaler(autoscaler: &mut Value) {
    let Some(spec) = autoscaler.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    set_default(spec, &["minReplicas"], 1);
    if list(spec, &["metrics"]).is_empty() {
        let usual = json!([{
            "type": "Resource",
            "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } },
        }]);
        set(spec, &["metrics"], Some(usual));
    }
    if at(spec, &["behavior"]).is_none() {
        return;
    }
    let up = json!([
        { "type": "Pods", "value": 4, "periodSeconds": 15 },
        { "type": "Percent", "value": 100, "periodSeconds": 15 },
    ]);
    let down = json!([{ "type": "Percent", "value": 100, "periodSeconds": 15 }]);
    for (direction, policies) in [("scaleUp", up), ("scaleDown", down)] {
        set_default(spec, &["behavior", direction, "selectPolicy"], "Max");
        set_default(spec, &["behavior", direction, "policies"], policies);
    }
    // Scaling down looks back as long as the controller is told to.
    set_default(spec, &["behavior", "scaleUp", "stabilizationWindowSeconds"], 0);
}
