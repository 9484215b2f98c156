//! Parameters of lists and watches, and their validation. Pure.
//!
//! # Upstream
//! `apimachinery/pkg/apis/meta/internalversion/validation`

use std::time::Duration;

use super::query::Query;
use crate::status::{FieldError, Status};

/// Maximum timeout: one year; longer ones are equivalent.
const LONGEST_TIMEOUT: u64 = 366 * 24 * 3600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// Parameters of lists and watches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) version: Option<u64>,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: Option<String>,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout: Option<Duration>,
}

impl ListOptions {
    /// # Upstream
    /// `apimachinery/pkg/apis/meta/internalversion/validation`
    pub(crate) fn parse(query: &Query, watch: bool) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let initial_events = query.flag("sendInitialEvents");
        check_initial_events(query, watch, initial_events, &mut errors);
        let version_match = match query.get("resourceVersionMatch") {
            None => None,
            Some("Exact") if !watch => Some(VersionMatch::Exact),
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            Some(other) => {
                let known: &[&str] = if watch { &["NotOlderThan"] } else { &["Exact", "NotOlderThan", ""] };
                errors.push(FieldError::not_supported("resourceVersionMatch", other, known));
                None
            }
        };
        check_match(query, watch, version_match, initial_events, &mut errors);
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
        }
        let version = query.version().map_err(|why| {
            // Upstream returns this error of a watch without a specific code.
            if watch {
                Status::new(500, "", why)
            } else {
                Status::bad_request(format!("invalid resource version: {why}"))
            }
        })?;
        let timeout: Option<u64> = query.number("timeoutSeconds")?;
        Ok(Self {
            labels: query.get("labelSelector").map(str::to_owned),
            fields: query.get("fieldSelector").map(str::to_owned),
            version,
            version_match,
            limit: query
                .number::<i64>("limit")?
                .and_then(|limit| usize::try_from(limit).ok())
                .filter(|limit| *limit > 0),
            continue_token: query.get("continue").map(str::to_owned),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events,
            timeout: timeout
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds.min(LONGEST_TIMEOUT))),
        })
    }
}

fn check_initial_events(query: &Query, watch: bool, initial_events: Option<bool>, errors: &mut Vec<FieldError>) {
    if watch && initial_events.is_some() && query.get("resourceVersionMatch") != Some("NotOlderThan") {
        let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden("resourceVersionMatch", detail));
    }
}

fn check_match(
    query: &Query,
    watch: bool,
    version_match: Option<VersionMatch>,
    initial_events: Option<bool>,
    errors: &mut Vec<FieldError>,
) {
    let field = "resourceVersionMatch";
    let given = query.get(field).is_some();
    if watch {
        if given && initial_events.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(field, detail));
        }
        return;
    }
    if given && query.get("resourceVersion").is_none() {
        let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        errors.push(FieldError::forbidden(field, detail));
    }
    if given && query.get("continue").is_some() {
        errors.push(FieldError::forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
    }
    if version_match == Some(VersionMatch::Exact) && query.get("resourceVersion") == Some("0") {
        let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        errors.push(FieldError::forbidden(field, detail));
    }
    if initial_events.is_some() {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
}
