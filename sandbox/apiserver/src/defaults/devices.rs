//! Times of the taints of devices.
//!
//! # Upstream
//! `SetDefaults_DeviceTaint` in `pkg/apis/resource`, and `PrepareForUpdate` in `pkg/registry/resource/devicetaintrule`

use serde_json::Value;

use crate::json::{self, at};
use crate::kinds::Kind;

const TIME: &str = "timeAdded";

/// Sets the time of taints that have none. A rule whose effect changes gets a new time, unless the client sets another one.
pub(crate) fn stamp(kind: &Kind, old: Option<&Value>, new: &mut Value, stamp: &str) {
    if &*kind.resource.group != "resource.k8s.io" {
        return;
    }
    match &*kind.resource.plural {
        "devicetaintrules" => {
            let field = |object: &Value, field: &str| at(object, &["spec", "taint", field]).cloned();
            let has_other_effect = old.is_some_and(|old| {
                field(old, "effect") != field(new, "effect") && field(old, TIME) == field(new, TIME)
            });
            if has_other_effect {
                json::set(new, &["spec", "taint", TIME], None);
            }
            if at(new, &["spec", "taint"]).is_some() {
                json::set_default(new, &["spec", "taint", TIME], stamp);
            }
        }
        "resourceslices" => {
            let devices = new.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
            let taints = devices.into_iter().flatten().filter_map(|device| device.get_mut("taints")?.as_array_mut());
            for taint in taints.flatten() {
                json::set_default(taint, &[TIME], stamp);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn taints_have_the_time_of_their_effect() {
        let kinds = Kinds::built_in(false);
        let kind = |plural: &str| kinds.find("resource.k8s.io", "v1", plural).expect("the kind is served").clone();
        let rule = |effect: &str, time: Value| json!({ "spec": { "taint": { "key": "k", "effect": effect, "timeAdded": time } } });
        let (old, now) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let without = json!({ "spec": { "taint": { "key": "k", "effect": "None" } } });
        for (name, before, mut after, expected) in [
            ("created without a time", None, without.clone(), now),
            ("created with a time", None, rule("None", json!(old)), old),
            ("another effect", Some(rule("None", json!(old))), rule("NoExecute", json!(old)), now),
            (
                "another effect with a time",
                Some(rule("None", json!(old))),
                rule("NoExecute", json!("2026-01-01T12:00:00Z")),
                "2026-01-01T12:00:00Z",
            ),
            ("the same effect", Some(rule("None", json!(old))), rule("None", json!(old)), old),
        ] {
            stamp(&kind("devicetaintrules"), before.as_ref(), &mut after, now);
            assert_eq!(after["spec"]["taint"][TIME], expected, "{name}");
        }
        let taints = json!([{ "key": "a" }, { "key": "b", "timeAdded": old }]);
        let mut slice = json!({ "spec": { "devices": [{ "name": "d0" }, { "name": "d1", "taints": taints }] } });
        stamp(&kind("resourceslices"), None, &mut slice, now);
        let times = slice["spec"]["devices"][1]["taints"].as_array().unwrap();
        assert_eq!([&times[0][TIME], &times[1][TIME]], [now, old]);
    }
}
