//! Checks of `managedFields` against their object.

use serde_json::{Map, Value};

/// Returns the problem of an object's managed fields: they do not parse, or name fields that do not exist.
pub(crate) fn problem(object: &Value) -> Option<String> {
    let managers = object["metadata"].get("managedFields")?;
    let Some(managers) = managers.as_array() else { return Some(format!("managedFields is no list: {managers}")) };
    // Upstream declares no reset fields for these, so the sender owns them.
    let resets = |manager: &&Value| matches!(manager["subresource"].as_str(), None | Some("status"));
    // The fields of another version have other names.
    let resets = |manager: &&Value| resets(manager) && manager["apiVersion"] == object["apiVersion"];
    managers.iter().filter(resets).find_map(|manager| {
        let Some(fields) = manager["fieldsV1"].as_object() else { return Some(format!("no fields in {manager}")) };
        // What was applied and means nothing, such as a map without keys, is owned and not stored.
        let applied = manager["operation"] == "Apply";
        let missing = missing(fields, object, applied)?;
        Some(format!("{} of {}: {missing}", manager["manager"], manager["operation"]))
    })
}

fn missing(fields: &Map<String, Value>, within: &Value, applied: bool) -> Option<String> {
    fields.iter().filter(|(element, _)| *element != ".").find_map(|(element, below)| {
        let Some(below) = below.as_object() else { return Some(format!("{element} is no map")) };
        let found = match element.split_once(':') {
            Some(("f", name)) => within.get(name),
            Some(("k", key)) => {
                let Ok(Value::Object(key)) = serde_json::from_str(key) else { return Some(element.clone()) };
                let fits = |item: &&Value| key.iter().all(|(name, value)| item.get(name) == Some(value));
                within.as_array().and_then(|items| items.iter().find(fits))
            }
            Some(("v", value)) => {
                let Ok(value) = serde_json::from_str::<Value>(value) else { return Some(element.clone()) };
                within.as_array().and_then(|items| items.iter().find(|item| **item == value))
            }
            Some(("i", at)) => at.parse().ok().and_then(|at: usize| within.get(at)),
            Some(_) | None => return Some(format!("{element} is no element")),
        };
        match found {
            None if applied && below.is_empty() => None,
            None => Some(element.clone()),
            Some(found) => missing(below, found, applied).map(|inner| format!("{element} {inner}")),
        }
    })
}
