//! Decodes bodies of requests: JSON, YAML or protobuf becomes an object, or a `Status`. Pure.
//!
//! ```text
//! bytes ──▶ json, yaml, protobuf ──▶ Value ──▶ expected: which type? ──▶ typed ──▶ object
//!           (repeated fields)                  (kind, apiVersion)       (unknown fields)
//! ```
//!
//! Built-in kinds are typed: fields of a wrong type are refused, unknown ones are dropped, and what is dropped is an
//! error, a warning or nothing, as the request's `fieldValidation` says. Of custom kinds only the metadata is typed.
//!
//! Codes, reasons, causes and paths of fields are kube-apiserver's. The messages about invalid texts and values differ:
//! they come from serde, from the YAML parser, or from the typed walk.
//!
//! # Upstream
//! `apimachinery/pkg/runtime/serializer`, `apiserver/pkg/endpoints/handlers`, and `sigs.k8s.io/json`

mod expected;
mod field_path;
mod json;
mod protobuf;
mod time;
mod typed;
mod yaml;

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

pub(crate) use expected::Expected;
use json::Document;

use crate::media_type::{JSON, JSON_PATCH, MERGE_PATCH, PROTOBUF, STRATEGIC_MERGE_PATCH, YAML};
use crate::request::{Query, Verb};
use crate::status::{FieldError, Status};

const MEDIA_TYPES: [&str; 3] = [JSON, YAML, PROTOBUF];
const UNRECOGNIZED: &str = "couldn't get version/kind; json parse error: ";

/// The handling of unknown and repeated fields.
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

/// Reads a text that is JSON and nothing else; an error is the parser's.
pub(crate) fn parse_json(text: &[u8]) -> Result<Value, String> {
    json::parse(text).map(|document| document.value)
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
        match document.repeated.first() {
            None => Ok(document.value),
            Some(repeated) => Err(format!("yaml: {repeated}")),
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
    /// For the response's headers.
    pub(crate) warnings: &'a mut Vec<String>,
}

impl Decoder<'_> {
    /// Reads an object that is created or put.
    ///
    /// # Errors
    ///
    /// 400 for what is no such object; 415 for a format that is not read.
    pub(crate) fn body(&mut self, content_type: &str, body: &[u8]) -> Result<Value, Status> {
        let document = match media_type(content_type).as_str() {
            "" | JSON => json::parse(body).map_err(|why| format!("{UNRECOGNIZED}{why}")),
            YAML => yaml::parse(body),
            // Custom objects have no numbers for their fields.
            PROTOBUF if !self.expected.is_custom => self.expected.read_protobuf(body).map(Document::from),
            _ => return Err(Status::unsupported_media_type(&MEDIA_TYPES)),
        };
        self.object(document.map_err(|why| self.unrecognized(&why, body))?, body)
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
        self.object(Document::from(object), &[])
    }

    /// Finds out what a body is and reads it as that.
    fn object(&mut self, document: Document, body: &[u8]) -> Result<Value, Status> {
        let Document { value, repeated } = document;
        // Upstream takes null, and YAML without content, for an object without fields.
        let value = if value.is_null() { Value::Object(Map::new()) } else { value };
        let identity = expected::identity(&value).map_err(|why| self.unrecognized(&why, body))?;
        if self.expected.is_custom && identity.kind.is_empty() {
            let text = String::from_utf8_lossy(body);
            return Err(self.unrecognized(&format!("Object 'Kind' is missing in '{text}'"), body));
        }
        let identity = self.expected.complete(identity);
        let refuse = |why: String| {
            let (kind, version, expected) = (&identity.kind, &identity.version, self.expected.kind);
            Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {expected}: {why}"))
        };
        let of = self.expected.type_of(&identity).map_err(refuse)?;
        let (object, unknown) = of.read(self.keep_unknown, value).map_err(refuse)?;
        let warnings = strict(self.validation, repeated, unknown).map_err(refuse)?;
        self.warnings.extend(warnings);
        self.expected.accept(&identity)?;
        Ok(object)
    }

    /// Patches an object: reads the patch, lets `apply` patch, and checks what comes out.
    ///
    /// # Errors
    ///
    /// 400 for an invalid patch, 422 for a patch that changes the type of the object, and the errors of `apply`.
    pub(crate) fn patched(
        &mut self,
        content_type: &str,
        body: &[u8],
        apply: impl Fn() -> Result<Value, Status>,
    ) -> Result<Value, Status> {
        let media_type = media_type(content_type);
        let is_strategic = media_type == STRATEGIC_MERGE_PATCH;
        let patch = read_patch(&media_type, body)?;
        let patched = apply()?;
        let refuse = |why: String| {
            // Large, and rarely wanted: it is made once more.
            let shown = if is_strategic { Ok(patch.value.clone()) } else { apply() };
            let shown = shown.map(|shown| shown.to_string()).unwrap_or_default();
            Status::invalid("", "", "", &[FieldError::invalid("patch", shown, why)])
        };
        let of = if is_strategic {
            // A strategic merge patch knows the type beforehand; what it says of the kind is lost.
            self.expected.own_type()
        } else {
            let identity = expected::identity(&patched).map_err(refuse)?;
            let identity = self.expected.complete(identity);
            self.expected.type_of(&identity).map_err(refuse)?
        };
        let (object, unknown) = of.read(self.keep_unknown, patched).map_err(refuse)?;
        let warnings = strict(self.validation, patch.repeated.clone(), unknown).map_err(refuse)?;
        self.warnings.extend(warnings);
        Ok(object)
    }

    /// Reads an object that is to be applied; its fields are not looked at.
    ///
    /// # Errors
    ///
    /// 400 for what is no map.
    pub(crate) fn applied(&mut self, body: &[u8]) -> Result<Value, Status> {
        let refuse = |why: &str| Status::bad_request(format!("error decoding patch: {why}"));
        let converting = "error converting YAML to JSON: ";
        let document = yaml::parse(body).map_err(|why| Status::bad_request(format!("error encoding patch: {why}")))?;
        let applied = match document.value {
            Value::Null => Value::Object(Map::new()),
            map @ Value::Object(_) => map,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(refuse("expected an object"));
            }
        };
        if !document.repeated.is_empty() {
            let why = format!("{converting}yaml: {}", document.repeated.join(", "));
            match self.validation {
                FieldValidation::Strict => {
                    return Err(Status::bad_request(format!("error strict decoding patch: {why}")));
                }
                FieldValidation::Warn => self.warnings.push(why),
                FieldValidation::Ignore => {}
            }
        }
        Ok(applied)
    }

    /// Reads an object that something was applied to, as its type.
    ///
    /// # Errors
    ///
    /// The first value of a wrong type, with its path.
    pub(crate) fn merged(&self, object: Value) -> Result<Value, String> {
        self.expected.own_type().read(self.keep_unknown, object).map(|(object, _)| object)
    }

    fn unrecognized(&self, why: &str, body: &[u8]) -> Status {
        let (kind, body) = (self.expected.kind, summary(body));
        Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({body})"))
    }
}

/// The warnings about fields that are dropped: those that repeat, and unknown ones.
///
/// # Errors
///
/// A strict reader refuses the object for them.
fn strict(validation: FieldValidation, mut messages: Vec<String>, unknown: Vec<String>) -> Result<Vec<String>, String> {
    // What repeats within an unknown field falls away with it.
    let is_within = |message: &String, field: &str| {
        let within = message.strip_prefix("duplicate field ").and_then(|path| path.strip_prefix(field));
        within.is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    for field in &unknown {
        let field = field.trim_start_matches("unknown field ").trim_end_matches('"');
        messages.retain(|message| !is_within(message, field));
    }
    messages.extend(unknown);
    let mut seen = BTreeSet::new();
    messages.retain(|message| seen.insert(message.clone()));
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict if !messages.is_empty() => {
            Err(format!("strict decoding error: {}", messages.join(", ")))
        }
        FieldValidation::Warn | FieldValidation::Strict => Ok(messages),
    }
}

/// Reads the options that come with a deletion, without checking them.
///
/// # Errors
///
/// The problem of the bytes. An unknown format is `None`.
pub(crate) fn delete_options(content_type: &str, body: &[u8]) -> Option<Result<Value, String>> {
    let document = match media_type(content_type).as_str() {
        "" | JSON => json::parse(body),
        YAML => yaml::parse(body),
        PROTOBUF => expected::read_delete_options(body).map(Document::from),
        _ => return None,
    };
    Some(document.map(|document| document.value))
}

/// The format of a body, without parameters.
fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Reads a patch; the messages are about unknown fields of operations, too.
fn read_patch(media_type: &str, body: &[u8]) -> Result<Document, Status> {
    let is_strategic = media_type == STRATEGIC_MERGE_PATCH;
    let refuse =
        |why: String| Status::bad_request(if is_strategic { why } else { format!("error decoding patch: {why}") });
    let is_merge = media_type == MERGE_PATCH;
    let malformed = |why: String| if is_merge { Status::bad_request("invalid JSON patch") } else { refuse(why) };
    let mut patch = json::parse(body).map_err(malformed)?;
    if media_type == JSON_PATCH {
        patch.repeated.extend(expected::operations(&patch.value).map_err(refuse)?);
        patch.repeated.iter_mut().for_each(|message| message.insert_str(0, "json patch "));
    } else if !patch.value.is_object() && !patch.value.is_null() {
        return Err(refuse("expected an object".to_owned()));
    }
    Ok(patch)
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

/// Writes warnings into a response, each once, as many as clients are likely to read.
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
