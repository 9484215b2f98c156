//! `/debug/pprof/`: profiles of this process, for `go tool pprof`.
//!
//! # Upstream
//! Go's `net/http/pprof`: paths, parameters and types of samples are the same. Goroutines, traces and the like do not exist
//! here, nor do their paths.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::RawQuery;
use axum::routing::any;
use http::header::{CONTENT_DISPOSITION, HeaderValue};
use http::{Response, StatusCode};

use super::responses::{text, typed};
use crate::pprof::{Helper, HelperError};
use crate::serving::state::ServingState;

/// How long CPU time is sampled where no one says otherwise, as in Go.
const DEFAULT: u64 = 30;

/// How long it is sampled at most.
const MOST: u64 = 300;

const INDEX: &str = "\
/debug/pprof/profile?seconds=30  CPU time of the next seconds
/debug/pprof/heap                memory in use
/debug/pprof/cmdline             the command line

go tool pprof -top FILE reads a profile that was saved to a file.
";

pub(super) fn routes(state: &Arc<ServingState>) -> Router {
    if !state.settings.get("profiling").unwrap_or(false) {
        return Router::new();
    }
    let helper = Arc::new(Helper::new());
    let of_heap = Arc::clone(&helper);
    let index = async || text(StatusCode::OK, INDEX);
    let cpu = async move |RawQuery(query): RawQuery| match seconds(query.as_deref()) {
        Ok(seconds) => answer("attachment; filename=\"profile\"", helper.cpu(Duration::from_secs(seconds)).await),
        Err(reason) => text(StatusCode::BAD_REQUEST, reason),
    };
    let heap = async move || answer("attachment; filename=\"heap\"", of_heap.heap().await);
    Router::new()
        .route("/debug/pprof", any(index))
        .route("/debug/pprof/", any(index))
        .route("/debug/pprof/cmdline", any(cmdline))
        .route("/debug/pprof/profile", any(cpu))
        .route("/debug/pprof/heap", any(heap))
}

/// The words of the command line, as Go writes them.
async fn cmdline() -> Response<Body> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    text(StatusCode::OK, words.join("\0"))
}

/// The parameter `seconds`. What is no positive number is the default, as in Go.
fn seconds(query: Option<&str>) -> Result<u64, String> {
    let mut parameters = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let seconds = parameters.find(|(name, _)| name == "seconds").and_then(|(_, value)| value.parse().ok());
    let seconds = seconds.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT);
    if seconds > MOST { Err(format!("seconds must be {MOST} at most\n")) } else { Ok(seconds) }
}

/// A profile, as a file of that name.
fn answer(disposition: &'static str, profile: Result<Vec<u8>, HelperError>) -> Response<Body> {
    let profile = match profile {
        Ok(profile) => profile,
        Err(error) => {
            let code = match &error {
                HelperError::NotSupported(_) => StatusCode::NOT_IMPLEMENTED,
                HelperError::InUse | HelperError::Start(_) | HelperError::Failed(_) => {
                    StatusCode::INTERNAL_SERVER_ERROR
                }
            };
            return text(code, format!("{error}\n"));
        }
    };
    let mut response = typed(StatusCode::OK, "application/octet-stream", profile);
    response.headers_mut().insert(CONTENT_DISPOSITION, HeaderValue::from_static(disposition));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_as_go_reads_them() {
        for (query, expected) in [
            (None, Ok(30)),
            (Some("seconds=5"), Ok(5)),
            (Some("a=b&seconds=300"), Ok(300)),
            (Some("seconds=0"), Ok(30)),
            (Some("seconds=-1"), Ok(30)),
            (Some("seconds=many"), Ok(30)),
            (Some("seconds=301"), Err("seconds must be 300 at most\n".to_owned())),
        ] {
            assert_eq!(seconds(query), expected, "{query:?}");
        }
    }
}
