//! Turns valid requests into invalid ones.

use serde_json::Value;

use crate::fuzz::choices::Choices;
use crate::fuzz::corpus::RawRequest;
use crate::fuzz::{odd, protobuf};

/// Changes a request in up to three places.
pub(crate) fn request(choices: &mut Choices, ask: &mut RawRequest) {
    for _ in 0..=choices.below(3) {
        match choices.below(8) {
            0..=3 => body(choices, &mut ask.body),
            4 => path(choices, &mut ask.path),
            5 => query(choices, &mut ask.query),
            6 => headers(choices, ask),
            _ => other(choices, ask),
        }
    }
}

fn other(choices: &mut Choices, ask: &mut RawRequest) {
    match choices.below(4) {
        0 => {
            let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"];
            choices.one(&methods).clone_into(&mut ask.method);
        }
        1 => ask.body = (choices.one(WHOLE)).to_vec(),
        2 => {
            let content = choices.bytes(60);
            ask.body = [b"k8s\0".as_slice(), &content].concat();
            ask.set_header("content-type", "application/vnd.kubernetes.protobuf");
        }
        _ => {
            ask.body = protobuf::envelope(choices, "v1", "Pod");
            ask.set_header("content-type", "application/vnd.kubernetes.protobuf");
        }
    }
}

/// Bodies that are no objects.
const WHOLE: &[&[u8]] = &[
    b"",
    b" ",
    b"null",
    b"[]",
    b"{}",
    b"0",
    b"\"\"",
    b"true",
    b"{",
    b"[",
    b"}",
    b"{\"",
    b"{\"a\"",
    b"{\"a\":",
    b"{\"a\":1",
    b"{\"a\":1,",
    b"{,}",
    b"nul",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"{}{}",
    b"{} x",
    b"---",
    b"--- a\n--- b",
    b"*a",
    b"&a [*a]",
    b"<<: *x",
    b"a: &a\n  b: *a",
    b"!!binary x",
    b"%YAML 9.9\n---",
    b"? ",
    b"- - - -",
    b"\t",
    b"{\"\\ud800\":1}",
    b"\"\\u12\"",
    b"[1,]",
    b"01",
    b"1e",
    b"-",
    b"1e999999999",
    b"k8s\0",
    b"[{}]",
    b"[null]",
    b"[{\"op\":1}]",
];

fn body(choices: &mut Choices, body: &mut Vec<u8>) {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    match (choices.below(8), parsed) {
        (0..=4, Some(mut value)) => {
            for _ in 0..=choices.below(3) {
                odd::disturb(choices, &mut value);
            }
            *body = value.to_string().into_bytes();
        }
        (5, _) => splice(choices, body),
        (6, _) => body.truncate(choices.below(body.len() + 1)),
        (_, _) => {
            for _ in 0..=choices.below(4) {
                let at = choices.below(body.len());
                if let Some(byte) = body.get_mut(at) {
                    *byte ^= 1 << choices.below(8);
                }
            }
        }
    }
}

/// Puts a text somewhere behind a bracket, a comma or a colon.
fn splice(choices: &mut Choices, body: &mut Vec<u8>) {
    let places: Vec<usize> = (0..body.len()).filter(|at| b"{[,:".contains(&body[*at])).map(|at| at + 1).collect();
    if places.is_empty() {
        return;
    }
    let at = choices.one(&places);
    let text = match choices.below(4) {
        0 => format!("\"{}\":{},", choices.one(odd::KEYS), odd::value(choices)),
        1 => {
            let depth = choices.one(&[3, 240, 249, 250, 251, 252, 9_999, 20_000]);
            let (open, close) = choices.one(&[("[", "]"), ("{\"a\":", "}")]);
            format!("\"deep\":{}1{},", open.repeat(depth), close.repeat(depth))
        }
        2 => {
            format!("{},", choices.one(&["1e400", "-1e400", "00", "NaN", "1.0", "1E5", "-", "9".repeat(400).as_str()]))
        }
        _ => format!("{},", odd::value(choices)),
    };
    body.splice(at..at, text.into_bytes());
}

const SEGMENTS: &[&str] = &[
    "",
    "api",
    "apis",
    "v1",
    "apps",
    "batch",
    "namespaces",
    "row",
    "default",
    "pods",
    "deployments",
    "configmaps",
    "nodes",
    "status",
    "scale",
    "eviction",
    "binding",
    "log",
    "exec",
    "proxy",
    "token",
    "finalize",
    "watch",
    "web",
    "..",
    ".",
    "%2e%2e",
    "%2F",
    "%00",
    "%ff",
    "%zz",
    "%",
    "%20",
    "a%2Fb",
    "ü",
    "%C3%BC",
    "*",
    "~",
    ";",
    ":",
    "POD",
    "openapi",
    "v2",
    "v3",
    "healthz",
    "readyz",
    "livez",
    "metrics",
    "version",
    "v1beta1",
    "customresourcedefinitions",
    "events",
    "secrets",
    "ephemeralcontainers",
    "resize",
    "approval",
    "selfsubjectaccessreviews",
    "tokenreviews",
    "apiextensions.k8s.io",
];

fn path(choices: &mut Choices, path: &mut String) {
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    let at = choices.below(parts.len());
    let segment = choices.one(SEGMENTS).to_owned();
    match choices.below(5) {
        0 => parts[at] = segment,
        1 => parts.insert(at, segment),
        2 => drop(parts.remove(at)),
        3 => parts.push(segment),
        _ => parts[at] = "a".repeat(choices.one(&[64, 254, 3000])),
    }
    *path = parts.join("/");
}

/// Parameters and their meaningful values.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("limit", NUMBERS),
    ("continue", TOKENS),
    ("resourceVersion", NUMBERS),
    ("resourceVersionMatch", &["Exact", "NotOlderThan"]),
    ("fieldSelector", SELECTORS),
    ("labelSelector", SELECTORS),
    ("timeoutSeconds", NUMBERS),
    ("watch", FLAGS),
    ("allowWatchBookmarks", FLAGS),
    ("sendInitialEvents", FLAGS),
    ("includeObject", &["None", "Metadata", "Object"]),
    ("pretty", FLAGS),
    ("timeout", &["10s", "0s", "1h", "-1s", "99999999999h"]),
    ("fieldValidation", &["Strict", "Warn", "Ignore"]),
    ("dryRun", &["All", "None"]),
    ("propagationPolicy", &["Orphan", "Foreground", "Background"]),
    ("gracePeriodSeconds", NUMBERS),
    ("orphanDependents", FLAGS),
    ("force", FLAGS),
    ("fieldManager", &["a", "a/b"]),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", FLAGS),
    ("shardSelector", SELECTORS),
    ("", VALUES),
    ("ü", VALUES),
];
const FLAGS: &[&str] = &["true", "false", "1", "0", "yes"];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "5",
    "-1",
    "1000",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "4294967296",
    "-9223372036854775808",
    "99999999999999999999",
    "1.5",
    "1e9",
];
const SELECTORS: &[&str] = &[
    "app%3Dweb",
    "app",
    "!app",
    "app+in+(a,b)",
    "app+notin+()",
    "app>1",
    "metadata.name%3Dweb",
    "metadata.namespace%3Drow",
    "spec.nodeName%3D",
    "status.phase!%3DRunning",
    "a%3D%3Db%3Dc",
    "%5C%2C%3D",
    "%5C",
    ",",
    "(",
    "in+in+(in)",
    "%00",
];
const TOKENS: &[&str] = &[
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "bnVsbA",
    "====",
    "%00",
    "e30",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTIyMzM3MjAzNjg1NDc3NTgwNywic3RhcnQiOiJyb3cvd2ViXHUwMDAwIn0",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLy8vXHUwMDAwIn0",
];

/// Values without a meaning in most places.
const VALUES: &[&str] = &["", "a", "-", "true", "%00", "%ff", "%zz", "%", "+", "a%0Ab", "Sometimes", "1"];

pub(crate) fn query(choices: &mut Choices, query: &mut String) {
    for _ in 0..=choices.below(3) {
        if !query.is_empty() {
            query.push('&');
        }
        let (name, values) = choices.one(PARAMETERS);
        query.push_str(name);
        if !choices.once_in(10) {
            query.push('=');
            let values = if choices.once_in(6) { VALUES } else { values };
            query.push_str(choices.one(values));
        }
    }
}

const CONTENT_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "application/cbor",
    "text/plain",
    "",
    ";",
    "application/json; charset=utf-8",
    "APPLICATION/JSON",
    " application/yaml ",
    "application/json;;;",
    "application/merge-patch+json;x=y",
    "ü",
    "*/*",
];

const ACCEPTS: &[&str] = &[
    "",
    "*/*",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/html",
    ",",
    ";",
    ";q=",
    "application/json;q=nan",
    "application/json;q=-1,*/*;q=inf",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v2;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=;v=;g=",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/json;as=Nothing;v=v1;g=meta.k8s.io",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/json;stream=watch",
];

fn headers(choices: &mut Choices, ask: &mut RawRequest) {
    match choices.below(6) {
        0 | 1 => ask.set_header("content-type", choices.one(CONTENT_TYPES)),
        2 | 3 => ask.set_header("accept", choices.one(ACCEPTS)),
        4 => {
            let agents: &[&[u8]] =
                &[b"", b"a/b", b"/", b"\xff\xff", b"ue\xcc\x88/1", &[b'x'; 4000], b"kubectl/v1 (a) b/c"];
            ask.set_header("user-agent", choices.one(agents));
        }
        _ => {
            let name =
                choices.one(&["if-none-match", "host", "accept-encoding", "x-forwarded-for", "impersonate-user"]);
            ask.set_header(name, choices.one(odd::STRINGS).as_bytes());
        }
    }
}
