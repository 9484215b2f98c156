//! Patches of every form, of objects of every kind.

use kcm_sandbox_apiserver::SandboxOptions;
use serde_json::{Map, Value, json};

use crate::fuzz::broken::create_some;
use crate::fuzz::choices::{Choices, hold};
use crate::fuzz::corpus::RawRequest;
use crate::fuzz::odd;
use crate::fuzz::probe::Probe;

#[test]
fn an_odd_patch_gets_a_response_and_the_store_stays_consistent() {
    hold(150, 300, |mut choices| async move {
        let mut probe = Probe::new(SandboxOptions::default()).await;
        let paths = create_some(&mut choices, &mut probe).await;
        if paths.is_empty() {
            return;
        }
        for _ in 0..8 {
            let path = choices.one(&paths);
            let part = choices.one(&["", "", "", "/status", "/scale", "/finalize", "/ephemeralcontainers", "/resize"]);
            let read = probe.ask(&RawRequest::new("GET", &format!("{path}{part}"))).await;
            let Some(read) = read.filter(|read| read.code == 200) else { continue };
            let ask = patch(&mut choices, &format!("{path}{part}"), &read.json);
            probe.ask(&ask).await;
        }
        probe.still_serves().await;
    });
}

/// A patch of an object that is stored so.
pub(crate) fn patch(choices: &mut Choices, path: &str, object: &Value) -> RawRequest {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    let force = ["?force=true&fieldManager=a", "?force=true&fieldManager=b", "?fieldManager=a", "", "?fieldManager="];
    match choices.below(6) {
        0 => {
            let operations: Vec<Value> = (0..=choices.below(5)).map(|_| operation(choices, &object)).collect();
            RawRequest::new("PATCH", path).with_body("application/json-patch+json", json!(operations).to_string())
        }
        1 => {
            let body = part_of(choices, &object, false).to_string();
            RawRequest::new("PATCH", path).with_body("application/merge-patch+json", body)
        }
        2 | 3 => {
            let body = part_of(choices, &object, true).to_string();
            RawRequest::new("PATCH", path).with_body("application/strategic-merge-patch+json", body)
        }
        4 => {
            let mut body = part_of(choices, &object, false);
            for field in ["apiVersion", "kind"] {
                set(&mut body, field, &object[field]);
            }
            if let Some(metadata) = body.get_mut("metadata") {
                set(metadata, "name", &object["metadata"]["name"]);
            }
            let path = format!("{path}{}", choices.one(&force));
            RawRequest::new("PATCH", &path).with_body("application/apply-patch+yaml", body.to_string())
        }
        _ => {
            let mut body = object.clone();
            odd::disturb(choices, &mut body);
            RawRequest::new("PUT", path).with_body("application/json", body.to_string())
        }
    }
}

fn set(of: &mut Value, field: &str, value: &Value) {
    if let Value::Object(map) = of {
        map.insert(field.to_owned(), value.clone());
    }
}

fn operation(choices: &mut Choices, object: &Value) -> Value {
    let all = odd::pointers(object);
    let mut pointer = || {
        let mut pointer = choices.one(&all);
        match choices.below(8) {
            0 => pointer
                .push_str(choices.one(&["/-", "/-1", "/0", "/1000000", "/a", "/", "//", "/~2", "/~", "/~0", "/ü"])),
            1 => choices.one(odd::STRINGS).clone_into(&mut pointer),
            _ => {}
        }
        pointer
    };
    let (path, from) = (pointer(), pointer());
    let op = choices.one(&["add", "remove", "replace", "move", "copy", "test", "Add", ""]);
    let mut operation = json!({ "op": op, "path": path, "from": from, "value": odd::value(choices) });
    if choices.once_in(10) {
        odd::disturb(choices, &mut operation);
    }
    operation
}

/// Returns a randomly changed part of an object, with directives at valid and invalid places.
fn part_of(choices: &mut Choices, value: &Value, directives: bool) -> Value {
    match value {
        _ if choices.once_in(12) => odd::value(choices),
        Value::Object(map) => {
            let mut part = Map::new();
            for (key, inner) in map {
                let is_key = matches!(key.as_str(), "name" | "type" | "uid" | "containerPort" | "port" | "key" | "ip");
                if is_key || !choices.once_in(3) {
                    part.insert(key.clone(), part_of(choices, inner, directives));
                }
                if directives && inner.is_array() && choices.once_in(4) {
                    direct_list(choices, &mut part, key, inner);
                }
            }
            if directives && choices.once_in(8) {
                direct_map(choices, &mut part);
            }
            Value::Object(part)
        }
        Value::Array(items) => {
            let mut part: Vec<Value> = items.iter().map(|item| part_of(choices, item, directives)).collect();
            if choices.once_in(4) {
                part.extend(items.first().map(|item| part_of(choices, item, directives)));
            }
            if directives && choices.once_in(4) {
                let directive = choices.one(&["replace", "delete", "merge", "", "odd"]);
                let at = choices.below(part.len() + 1);
                part.insert(at, json!({ "$patch": directive }));
            }
            Value::Array(part)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn direct_list(choices: &mut Choices, part: &mut Map<String, Value>, key: &str, list: &Value) {
    let directive = choices.one(&["$setElementOrder", "$deleteFromPrimitiveList"]);
    let mut items = list.as_array().cloned().unwrap_or_default();
    match choices.below(4) {
        0 => items.reverse(),
        1 => items.push(odd::value(choices)),
        2 => {
            part.insert(format!("{directive}/{key}"), odd::value(choices));
            return;
        }
        _ => {}
    }
    // Of maps the keys alone are listed.
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.retain(|key, _| matches!(key.as_str(), "name" | "type" | "uid" | "containerPort" | "port" | "key" | "ip"));
    }
    part.insert(format!("{directive}/{key}"), Value::Array(items));
}

fn direct_map(choices: &mut Choices, part: &mut Map<String, Value>) {
    match choices.below(3) {
        0 => {
            let directive = json!(choices.one(&["replace", "delete", "merge", "odd"]));
            let directive = if choices.once_in(5) { odd::value(choices) } else { directive };
            part.insert("$patch".to_owned(), directive);
        }
        1 => {
            let keys: Vec<Value> = part.keys().map(|key| json!(key)).collect();
            let keys = if choices.once_in(4) { odd::value(choices) } else { json!(keys) };
            part.insert("$retainKeys".to_owned(), keys);
        }
        _ => drop(part.insert(choices.one(odd::KEYS).to_owned(), odd::value(choices))),
    }
}
