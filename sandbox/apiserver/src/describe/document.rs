//! Requests for documents that describe the API, and the responses to them.

use http::{HeaderValue, Method, header};
use serde_json::Value;

use crate::request::Query;

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

#[derive(Debug, Clone, Copy)]
pub(crate) struct DiscoveryRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a [&'a str],
    pub(crate) query: &'a Query,
    /// The headers of these names, or empty.
    pub(crate) accept: &'a str,
    pub(crate) if_none_match: &'a str,
    pub(crate) host: &'a str,
}

/// A response that is no API object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiscoveryDocument {
    pub(crate) code: u16,
    pub(crate) content_type: &'static str,
    pub(crate) headers: Vec<(header::HeaderName, HeaderValue)>,
    pub(crate) body: Vec<u8>,
}

impl DiscoveryDocument {
    pub(super) fn new(code: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { code, content_type, headers: Vec::new(), body: body.into() }
    }

    pub(super) fn json(value: &Value) -> Self {
        Self::new(200, JSON, value.to_string())
    }

    pub(super) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::new(200, TEXT, text)
    }

    pub(super) fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }

    /// Returns the response with an `ETag`, or 304 if the client has it.
    pub(super) fn tagged(self, tag: &str, request: &DiscoveryRequest<'_>) -> Self {
        let tag = format!("\"{tag}\"");
        let is_known = request.if_none_match.split(',').any(|known| known.trim() == tag);
        let answer = if is_known { Self { code: 304, body: Vec::new(), ..self } } else { self };
        answer.header(header::ETAG, &tag).header(header::VARY, "Accept")
    }
}
