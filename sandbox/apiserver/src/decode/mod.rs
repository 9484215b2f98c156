//! Bodies of requests: JSON or YAML that becomes an object, or an error in the API's own words. Pure.
//!
//! ```text
//! bytes ──▶ json, yaml ──▶ Json ──▶ expected: which type? ──▶ typed ──▶ object, findings
//!           (all that is written)    (kind, apiVersion)       (schema)
//! ```
//!
//! Built-in kinds are typed: fields of a wrong type are refused, unknown ones are dropped, and what is dropped is an
//! error, a warning or nothing, as the request's `fieldValidation` says. Of custom kinds only the metadata is typed.
//!
//! # Upstream
//! `apimachinery/pkg/runtime/serializer`, `apiserver/pkg/endpoints/handlers`, and `sigs.k8s.io/json`

mod expected;
mod go;
mod go_value;
mod json;
mod protobuf;
mod scalar;
mod time;
mod typed;
mod yaml;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

pub(crate) use expected::Expected;
pub(crate) use go::quote;
use json::Json;
use typed::Way;

use crate::media_type::{JSON, JSON_PATCH, PROTOBUF, STRATEGIC_MERGE_PATCH, YAML};
use crate::request::{Query, Verb};
use crate::status::{FieldError, Status};

const MEDIA_TYPES: [&str; 3] = [JSON, YAML, PROTOBUF];
const UNRECOGNIZED: &str = "couldn't get version/kind; json parse error: ";

/// What becomes of unknown and repeated fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped without a word.
    Ignore,
    /// They are dropped with a warning.
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    /// Reads the parameter of a write.
    ///
    /// # Errors
    ///
    /// 422 for a value that is none of the three.
    pub(crate) fn parse(query: &Query, verb: Verb) -> Result<Self, Status> {
        let options = match verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch => "PatchOptions",
            // They have no such parameter.
            Verb::Get | Verb::List | Verb::Watch | Verb::Delete | Verb::DeleteCollection => return Ok(Self::Ignore),
        };
        match query.get("fieldValidation") {
            Some("Ignore") => Ok(Self::Ignore),
            None | Some("Warn") => Ok(Self::Warn),
            Some("Strict") => Ok(Self::Strict),
            Some(other) => {
                let known = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported("fieldValidation", other, &known);
                Err(Status::invalid("meta.k8s.io", options, "", &[error]))
            }
        }
    }
}

/// Reads a text that is JSON and nothing else; an error is what Go's decoder says of it.
pub(crate) fn parse_json(text: &[u8]) -> Result<Value, String> {
    Json::parse(text).map(Json::into_value)
}

/// Reads the documents of a file, those without content included; an error is about one of them.
pub(crate) fn documents(text: &str) -> impl Iterator<Item = Result<Value, String>> + '_ {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && (line.trim_end() == "---" || line.starts_with("--- ")) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| {
        let document = yaml::parse(&text.as_bytes()[start..end])?;
        match document.repetitions.first() {
            None => Ok(document.json.into_value()),
            Some(repetition) => Err(format!("yaml: {repetition}")),
        }
    })
}

/// Reads the bodies of one request.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    pub(crate) expected: Expected<'a>,
    pub(crate) validation: FieldValidation,
    /// Unknown fields are kept, and nothing is said of them.
    pub(crate) keep_unknown: bool,
    /// For the answer's headers.
    pub(crate) warnings: &'a mut Vec<String>,
}

impl Decoder<'_> {
    /// Reads an object that is created or put.
    ///
    /// # Errors
    ///
    /// 400 for what is no such object; 415 for a format that is not read.
    pub(crate) fn body(&mut self, content_type: &str, body: &[u8]) -> Result<Value, Status> {
        let (json, strict) = match media_type(content_type).as_str() {
            "" | JSON => {
                let json = Json::parse(body).map_err(|why| self.unrecognized(&format!("{UNRECOGNIZED}{why}"), body))?;
                (json, Vec::new())
            }
            YAML => {
                let document = yaml::parse(body).map_err(|why| self.unrecognized(&why, body))?;
                (document.json, document.repetitions)
            }
            // Custom objects have no numbers for their fields.
            PROTOBUF if !self.expected.is_custom => {
                let json = self.expected.read_protobuf(body).map_err(|why| self.unrecognized(&why, body))?;
                (json, Vec::new())
            }
            _ => return Err(Status::unsupported_media_type(&MEDIA_TYPES)),
        };
        self.object(json, strict, body)
    }

    /// Reads an object that did not come as a body, and need not say its kind.
    ///
    /// # Errors
    ///
    /// As [`Decoder::body`].
    pub(crate) fn value(&mut self, mut object: Value) -> Result<Value, Status> {
        if let Some(map) = object.as_object_mut() {
            map.entry("kind").or_insert_with(|| self.expected.kind.into());
            map.entry("apiVersion").or_insert_with(|| self.expected.api_version().into());
        }
        self.object(Json::from(object), Vec::new(), &[])
    }

    /// Finds out what a body is and reads it as that; `strict` are the keys that repeat in it as YAML.
    fn object(&mut self, json: Json, mut strict: Vec<String>, body: &[u8]) -> Result<Value, Status> {
        // Upstream takes null, and YAML without content, for an object without fields.
        let json = if json == Json::Null { Json::Map(Vec::new()) } else { json };
        let identity = expected::identity(&json).map_err(|why| self.unrecognized(&why, body))?;
        if self.expected.is_custom && identity.kind.is_empty() {
            let text = String::from_utf8_lossy(body);
            return Err(self.unrecognized(&format!("Object 'Kind' is missing in '{text}'"), body));
        }
        let identity = self.expected.complete(identity);
        let refuse = |why: String| {
            let (kind, version, expected) = (&identity.kind, quote(&identity.version), self.expected.kind);
            Status::bad_request(format!("{kind} in version {version} cannot be handled as a {expected}: {why}"))
        };
        let of = self.expected.type_of(&identity).map_err(refuse)?;
        let repeats_in_yaml = strict.len();
        let (object, findings) = of.read(Way::Text, self.keep_unknown, json).map_err(refuse)?;
        strict.extend(findings.strict().map_err(refuse)?);
        if !strict.is_empty() && self.validation == FieldValidation::Strict {
            // Upstream's reader of YAML tells all repetitions in one error of its own.
            if repeats_in_yaml > 0 {
                let repetitions = strict.drain(..repeats_in_yaml).collect::<Vec<_>>().join("\n  ");
                strict.insert(0, format!("yaml: unmarshal errors:\n  {repetitions}"));
            }
            return Err(refuse(format!("strict decoding error: {}", strict.join(", "))));
        }
        self.warn(strict);
        self.expected.accept(&identity)?;
        Ok(object)
    }

    /// Patches an object: reads the patch, lets `apply` patch, and checks what comes out.
    ///
    /// # Errors
    ///
    /// 400 for a patch that is no patch, 422 for one that makes something else of the object, and those of `apply`.
    pub(crate) fn patched(
        &mut self,
        content_type: &str,
        body: &[u8],
        apply: impl Fn() -> Result<Value, Status>,
    ) -> Result<Value, Status> {
        let media_type = media_type(content_type);
        let is_strategic = media_type == STRATEGIC_MERGE_PATCH;
        let (patch, mut strict) = read_patch(&media_type, body)?;
        let patched = apply()?;
        let way = if is_strategic { Way::Tree } else { Way::Text };
        let refuse = |why: String| {
            // Large, and rarely wanted: it is made once more.
            let shown =
                if is_strategic { Ok(go_value::print(&patch)) } else { apply().map(|patched| patched.to_string()) };
            let error = FieldError::invalid("patch", shown.unwrap_or_default(), why);
            Status::invalid("", "", "", &[error])
        };
        let json = Json::from(patched);
        let of = if is_strategic {
            // A strategic merge patch knows the type beforehand; what it says of the kind is lost.
            self.expected.own_type()
        } else {
            let identity = expected::identity(&json).map_err(refuse)?;
            let identity = self.expected.complete(identity);
            self.expected.type_of(&identity).map_err(refuse)?
        };
        let (object, findings) = of.read(way, self.keep_unknown, json).map_err(refuse)?;
        strict.extend(findings.strict().map_err(refuse)?);
        if !strict.is_empty() && self.validation == FieldValidation::Strict {
            return Err(refuse(format!("strict decoding error: {}", strict.join(", "))));
        }
        self.warn(strict);
        Ok(object)
    }

    /// Reads an object that is to be applied; its fields are not looked at.
    ///
    /// # Errors
    ///
    /// 400 for what is no map.
    pub(crate) fn applied(&mut self, body: &[u8]) -> Result<Value, Status> {
        let refuse = |why: String| Status::bad_request(format!("error decoding YAML: {why}"));
        let document = yaml::parse(body).map_err(|why| refuse(format!("error converting YAML to JSON: {why}")))?;
        let applied = match document.json {
            Json::Null => Json::Map(Vec::new()),
            map @ Json::Map(_) => map,
            other @ (Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::List(_)) => {
                let found = other.word();
                let why = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
                return Err(refuse(format!("error unmarshaling JSON: while decoding JSON: {why}")));
            }
        };
        if !document.repetitions.is_empty() {
            let repetitions = document.repetitions.join("\n  ");
            let why = format!("error converting YAML to JSON: yaml: unmarshal errors:\n  {repetitions}");
            if self.validation == FieldValidation::Strict {
                return Err(Status::bad_request(format!("error strict decoding YAML: {why}")));
            }
            self.warn(vec![why]);
        }
        Ok(applied.into_value())
    }

    /// Reads an object that something was applied to, as its type.
    ///
    /// # Errors
    ///
    /// What does not fit, in upstream's words.
    pub(crate) fn merged(&self, object: Value) -> Result<Value, String> {
        let (object, findings) = self.expected.own_type().read(Way::Tree, self.keep_unknown, Json::from(object))?;
        findings.strict().map(|_| object)
    }

    fn warn(&mut self, strict: Vec<String>) {
        if self.validation == FieldValidation::Warn {
            self.warnings.extend(strict);
        }
    }

    fn unrecognized(&self, why: &str, body: &[u8]) -> Status {
        let (kind, body) = (self.expected.kind, summary(body));
        Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({body})"))
    }
}

/// Reads the options that come with a deletion, without checking them.
///
/// # Errors
///
/// What is wrong with the bytes; `None` for a format that is not read.
pub(crate) fn delete_options(content_type: &str, body: &[u8]) -> Option<Result<Value, String>> {
    let json = match media_type(content_type).as_str() {
        "" | JSON => Json::parse(body),
        YAML => yaml::parse(body).map(|document| document.json),
        PROTOBUF => expected::read_delete_options(body),
        _ => return None,
    };
    Some(json.map(Json::into_value))
}

/// The format of a body, without parameters.
fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Reads a patch; tells of keys that repeat in it.
fn read_patch(media_type: &str, body: &[u8]) -> Result<(Json, Vec<String>), Status> {
    let is_strategic = media_type == STRATEGIC_MERGE_PATCH;
    let refuse =
        |why: String| Status::bad_request(if is_strategic { why } else { format!("error decoding patch: {why}") });
    let json = Json::parse(body).map_err(refuse)?;
    let strict = if media_type == JSON_PATCH {
        expected::operations(&json).map_err(refuse)?
    } else {
        expected::repetitions(&json).map_err(refuse)?
    };
    Ok((json, strict))
}

/// The beginning of a body, as errors name it.
///
/// # Upstream
/// `summarizeData`
fn summary(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let shown = &body[..body.len().min(LENGTH)];
    let text = if body.first() == Some(&b'{') {
        String::from_utf8_lossy(shown).into_owned()
    } else {
        shown.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
    };
    if body.len() > LENGTH { format!("{text} ...") } else { text }
}

/// Writes warnings into an answer, each once, as far as clients can be expected to read them.
///
/// # Upstream
/// `apiserver/pkg/endpoints/filters/warning.go`
pub(crate) fn write_warnings(headers: &mut HeaderMap, warnings: &[String]) {
    const MOST_BYTES: usize = 4096;
    let name = HeaderName::from_static("warning");
    let mut written: Vec<&String> = Vec::new();
    let mut bytes = 0;
    for warning in warnings {
        bytes += warning.len();
        if written.contains(&warning) || bytes > MOST_BYTES {
            continue;
        }
        written.push(warning);
        let text: String = warning.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            headers.append(&name, value);
        }
    }
}

#[cfg(test)]
mod tests;
