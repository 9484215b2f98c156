//! Content negotiation: the form in which objects are returned.

use std::collections::BTreeMap;

use http::{HeaderMap, header};

use super::query::Query;
use super::target::{Target, Verb};
use crate::status::Status;
use crate::table::IncludeObject;

/// The requested form of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    MetadataOnly,
    /// A server-side printed table.
    Table {
        include: IncludeObject,
    },
}

/// Returns the supported form with the highest preference in the `Accept` header.
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
            (Some("Table"), true) => {
                if let Some(include) = IncludeObject::parse(query.get("includeObject"))? {
                    return Ok(Form::Table { include });
                }
            }
            // An unsupported kind or version: a later media range may be supported.
            (Some(_), _) | (None, true) => {}
        }
    }
    Err(Status::not_acceptable())
}

/// Metadata only; objects and lists use different kinds.
fn metadata_form(form: &str, target: &Target) -> Result<Form, Status> {
    let listed = matches!(target.verb, Verb::List | Verb::DeleteCollection);
    if form.ends_with("List") == listed {
        return Ok(Form::MetadataOnly);
    }
    // Upstream's package of this type is named after the group.
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
    /// The requested kind (`as=`).
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
