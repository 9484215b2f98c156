//! The form in which objects are answered.

use std::collections::BTreeMap;

use http::{HeaderMap, header};

use super::query::Query;
use super::target::{Target, Verb};
use crate::status::Status;

/// What a row carries of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    Metadata,
    Object,
}

impl IncludeObject {
    pub(crate) fn parse(query: &Query) -> Result<Self, Status> {
        match query.get("includeObject") {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// The form in which a client wants objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    MetadataOnly,
    /// Printed by the server.
    Table {
        include: IncludeObject,
    },
}

/// The form of the `Accept` header that the client likes best of those that can be answered.
///
/// # Upstream
/// `apiserver/pkg/endpoints/handlers/negotiation`
pub(crate) fn accepted_form(headers: &HeaderMap, query: &Query, target: &Target) -> Result<Form, Status> {
    let Some(accept) = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Form::Whole);
    };
    let mut ranges: Vec<MediaRange<'_>> = accept.split(',').map(MediaRange::parse).collect();
    ranges.sort_by(|one, other| other.quality.total_cmp(&one.quality));
    for range in ranges {
        if !matches!(range.media_type, "application/json" | "application/*" | "*/*" | "") {
            continue;
        }
        match (range.form, range.is_meta_v1) {
            (None, false) => return Ok(Form::Whole),
            (Some(form @ ("PartialObjectMetadata" | "PartialObjectMetadataList")), true) => {
                return metadata_form(form, target);
            }
            (Some("Table"), true) => return Ok(Form::Table { include: IncludeObject::parse(query)? }),
            // Whatever else there is, or in another version; another range may do.
            (Some(_), _) | (None, true) => {}
        }
    }
    Err(Status::not_acceptable())
}

/// Metadata alone, of an object or of a list: each has a form of its own.
fn metadata_form(form: &str, target: &Target) -> Result<Form, Status> {
    let listed = matches!(target.verb, Verb::List | Verb::DeleteCollection);
    if form.ends_with("List") == listed {
        return Ok(Form::MetadataOnly);
    }
    // The package of upstream's own type is called after the group.
    let package = target.resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    let (is, list) = if listed { ("is", "List") } else { ("is not", "") };
    let kind = &target.resource.kind;
    let message = format!("you requested {form}, but the requested object {is} a list (*{package}.{kind}{list})");
    Err(Status::new(406, "NotAcceptable", message))
}

/// One alternative of an `Accept` header.
struct MediaRange<'a> {
    media_type: &'a str,
    quality: f32,
    /// What objects are to be turned into.
    form: Option<&'a str>,
    /// The form is one of `meta.k8s.io/v1`.
    is_meta_v1: bool,
}

impl<'a> MediaRange<'a> {
    fn parse(range: &'a str) -> Self {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('=')).collect();
        let get = |name| parameters.get(name).copied();
        Self {
            media_type,
            quality: get("q").and_then(|quality| quality.parse().ok()).unwrap_or(1.0),
            form: get("as"),
            is_meta_v1: get("g") == Some("meta.k8s.io") && get("v") == Some("v1"),
        }
    }
}
