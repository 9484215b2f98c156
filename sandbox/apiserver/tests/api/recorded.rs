//! Writes that the API stores or refuses, recorded from kube-apiserver 1.37.2: a line has a request and its response.
//!
//! `given` is created before; `how` and `sub` say what `body` is then: a patch, or an object to put. In responses
//! `<some>` stands for what the server chooses, and messages end where upstream continues with a difference of its
//! internal types.

use kcm_sandbox_apiserver::Sandbox;
use serde_json::{Map, Value, json};

use crate::support::{Answer, TestRequest, call, done, get, merge, patch, post, put, strategic, with};

const DEFAULTS: &str = include_str!("../recorded/defaults.jsonl");
const WORKLOADS: &str = include_str!("../recorded/workloads.jsonl");
const PODS: &str = include_str!("../recorded/pods.jsonl");
const OTHERS: &str = include_str!("../recorded/others.jsonl");

#[tokio::test(start_paused = true)]
async fn stores_what_the_real_server_stores() {
    check_all(DEFAULTS).await;
}

#[tokio::test(start_paused = true)]
async fn refuses_workloads_as_the_real_server_does() {
    check_all(WORKLOADS).await;
}

#[tokio::test(start_paused = true)]
async fn refuses_pods_as_the_real_server_does() {
    check_all(PODS).await;
}

#[tokio::test(start_paused = true)]
async fn refuses_everything_else_as_the_real_server_does() {
    check_all(OTHERS).await;
}

async fn check_all(rows: &str) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in rows.lines() {
        let row: Value = expand(serde_json::from_str(line).expect("a row is JSON"));
        count += 1;
        if let Err(problem) = check(&row).await {
            wrong.push(format!("{}: {problem}", row["name"].as_str().unwrap_or_default()));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

async fn check(row: &Value) -> Result<(), String> {
    let sandbox = Sandbox::default();
    done(&sandbox, &post("/api/v1/namespaces", &json!({ "metadata": { "name": "cases" } }))).await;
    let answer = call(&sandbox, &ask(&sandbox, row).await?).await.expect("no fault is at work");
    let expected = &row["answer"];
    let code = row["code"].as_u64().unwrap_or_default();
    if u64::from(answer.code) != code {
        return Err(format!("code {} instead of {code}: {} {expected}", answer.code, answer.text));
    }
    let found = trim(&answer);
    if code < 300 {
        return difference("", expected, &found).map_or(Ok(()), Err);
    }
    for field in ["reason", "message", "causes"] {
        let Some(expected) = expected.get(field) else { continue };
        let expected = if field == "causes" { without_repetitions(expected) } else { expected.clone() };
        if difference("", &expected, &found[field]).is_some() {
            return Err(format!("{field}\n  is     {}\n  not    {expected}", found[field]));
        }
    }
    Ok(())
}

/// The request of a row, after what it needs has been made.
async fn ask(sandbox: &Sandbox, row: &Value) -> Result<TestRequest, String> {
    let path = row["path"].as_str().unwrap_or_default();
    let Some(given) = row.get("given") else { return Ok(post(path, &row["body"])) };
    let answer = call(sandbox, &post(path, given)).await.expect("no fault is at work");
    if answer.code >= 300 {
        return Err(format!("what is given is refused: {}", answer.text));
    }
    let name = answer.text_at("/metadata/name");
    let path = format!("{path}/{name}{}", row["sub"].as_str().unwrap_or_default());
    Ok(match row["how"].as_str() {
        Some("put") => {
            let stored = done(sandbox, &get(&path)).await.json;
            put(&path, &with(stored, &row["body"]))
        }
        Some("strategic") => strategic(&path, &row["body"]),
        Some("json") => patch("application/json-patch+json", &path, &row["body"]),
        _ => merge(&path, &row["body"]),
    })
}

/// `<x*1000>` for a thousand times `x`.
fn expand(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let repeated = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')?.split_once('*'));
            let repeated = repeated.and_then(|(text, count)| Some(text.repeat(count.parse().ok()?)));
            Value::String(repeated.unwrap_or(text))
        }
        Value::Array(items) => items.into_iter().map(expand).collect(),
        Value::Object(map) => Value::Object(map.into_iter().map(|(key, value)| (key, expand(value))).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Returns the response without the values that always differ.
fn trim(answer: &Answer) -> Value {
    let mut found = answer.json.clone();
    if found["kind"] == "Status" {
        let causes = without_repetitions(&found["details"]["causes"]);
        let status = json!({ "reason": found["reason"], "message": found["message"], "causes": causes });
        return serde_json::from_str(&without_chosen(&status.to_string())).expect("still JSON");
    }
    let uid = answer.text_at("/metadata/uid").to_owned();
    found = serde_json::from_str(&answer.text.replace(&uid, "<uid>")).expect("still JSON");
    if let Some(metadata) = found["metadata"].as_object_mut() {
        for field in ["managedFields", "uid", "resourceVersion", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    found
}

/// Causes once each: upstream validates some parts twice.
fn without_repetitions(causes: &Value) -> Value {
    let mut kept: Vec<&Value> = Vec::new();
    for cause in causes.as_array().into_iter().flatten() {
        if !kept.contains(&cause) {
            kept.push(cause);
        }
    }
    json!(kept)
}

/// Strings with uids and generated names replaced.
fn without_chosen(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(at) = text.find("-4").and_then(|_| find_uid(&text)) {
        text.replace_range(at..at + 36, "<uid>");
    }
    while let Some(at) = text
        .match_indices("Not_Good")
        .map(|(at, _)| at)
        .find(|at| text.get(at + 8..at + 13).is_some_and(|end| end.bytes().all(|byte| byte.is_ascii_alphanumeric())))
    {
        text.replace_range(at..at + 13, "<name>");
    }
    text
}

fn find_uid(text: &str) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).find(|at| {
        text.get(*at..at + 36).is_some_and(|part| {
            part.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
        })
    })
}

fn difference(path: &str, expected: &Value, found: &Value) -> Option<String> {
    if expected == "<some>" {
        return found.is_null().then(|| format!("{path} is missing"));
    }
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let null = Value::Null;
            let entry = |map: &Map<String, Value>, key: &str| map.get(key).cloned();
            expected.keys().chain(found.keys()).find_map(|key| match (entry(expected, key), entry(found, key)) {
                (Some(expected), Some(found)) => difference(&format!("{path}/{key}"), &expected, &found),
                (Some(expected), None) => Some(format!("{path}/{key} is missing: {expected}")),
                (None, found) => Some(format!("{path}/{key} is too much: {}", found.unwrap_or(null.clone()))),
            })
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => expected
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(at, (expected, found))| difference(&format!("{path}/{at}"), expected, found)),
        _ => (expected != found).then(|| format!("{path} is {found}, not {expected}")),
    }
}
