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
use axum::middleware::{Next, from_fn};
use axum::routing::any;
use http::header::{CONTENT_DISPOSITION, HOST, HeaderName, HeaderValue, ORIGIN};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use kcm_framework::async_trait;

use super::responses::{text, typed};
use crate::profiler::{ProfileError, Profiler};
use crate::state::ServingState;

/// Seconds for which CPU time is sampled unless the request says otherwise, as in Go.
const DEFAULT: u64 = 30;

/// Longest time of sampling, in seconds.
const MOST: u64 = 300;

/// Tells which site has made a browser send a request.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

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
    let profiler = state.profiler.clone().unwrap_or_else(|| Arc::new(NoProfiler));
    let of_heap = Arc::clone(&profiler);
    let index = async || text(StatusCode::OK, INDEX);
    let cpu = async move |RawQuery(query): RawQuery| match seconds(query.as_deref()) {
        Ok(seconds) => answer("attachment; filename=\"profile\"", profiler.cpu(Duration::from_secs(seconds)).await),
        Err(reason) => text(StatusCode::BAD_REQUEST, reason),
    };
    let heap = async move || answer("attachment; filename=\"heap\"", of_heap.heap().await);
    Router::new()
        .route("/debug/pprof", any(index))
        .route("/debug/pprof/", any(index))
        .route("/debug/pprof/cmdline", any(cmdline))
        .route("/debug/pprof/profile", any(cpu))
        .route("/debug/pprof/heap", any(heap))
        .route_layer(from_fn(of_same_site))
}

/// Refuses requests that another site has made a browser send: a page could start profiles with the certificate of its
/// visitor. `go tool pprof` and an address that a user types have no such headers.
async fn of_same_site(request: Request<Body>, next: Next) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if is_of_other_site(&parts) {
        return text(StatusCode::FORBIDDEN, "profiles are not made for requests of other sites\n");
    }
    next.run(Request::from_parts(parts, body)).await
}

fn is_of_other_site(request: &Parts) -> bool {
    let texts = |name| request.headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let host = request.uri.authority().map(|authority| authority.as_str().as_bytes()).or_else(|| texts(HOST).next());
    let is_own = |origin: &[u8]| origin.strip_prefix(b"https://").is_some_and(|origin| Some(origin) == host);
    texts(SITE).any(|site| ![&b"same-origin"[..], b"none"].contains(&site))
        || texts(ORIGIN).any(|origin| !is_own(origin))
}

/// The profiler of a program that was built without one.
struct NoProfiler;

impl NoProfiler {
    fn refusal() -> ProfileError {
        ProfileError::NotSupported(
            "this program was built without the cargo feature pprof, and makes no profiles".to_owned(),
        )
    }
}

#[async_trait]
impl Profiler for NoProfiler {
    async fn cpu(&self, _duration: Duration) -> Result<Vec<u8>, ProfileError> {
        Err(Self::refusal())
    }

    async fn heap(&self) -> Result<Vec<u8>, ProfileError> {
        Err(Self::refusal())
    }
}

/// The words of the command line, as Go writes them.
async fn cmdline() -> Response<Body> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    text(StatusCode::OK, words.join("\0"))
}

/// Reads the parameter `seconds`. A value that is not a positive number means the default, as in Go.
fn seconds(query: Option<&str>) -> Result<u64, String> {
    let mut parameters = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let seconds = parameters.find(|(name, _)| name == "seconds").and_then(|(_, value)| value.parse().ok());
    let seconds = seconds.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT);
    if seconds > MOST { Err(format!("seconds must be {MOST} at most\n")) } else { Ok(seconds) }
}

/// A profile, as a file of that name.
fn answer(disposition: &'static str, profile: Result<Vec<u8>, ProfileError>) -> Response<Body> {
    let profile = match profile {
        Ok(profile) => profile,
        Err(error) => {
            let code = match &error {
                ProfileError::NotSupported(_) => StatusCode::NOT_IMPLEMENTED,
                ProfileError::InUse | ProfileError::Start(_) | ProfileError::Failed(_) => {
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
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::tests::{settings, state};

    /// A profiler that returns the requested seconds, and is always in use for heap profiles.
    struct Echo;

    #[async_trait]
    impl Profiler for Echo {
        async fn cpu(&self, duration: Duration) -> Result<Vec<u8>, ProfileError> {
            Ok(duration.as_secs().to_string().into_bytes())
        }

        async fn heap(&self) -> Result<Vec<u8>, ProfileError> {
            Err(ProfileError::InUse)
        }
    }

    async fn get(profiler: Option<Arc<dyn Profiler>>, arguments: &[&str], path: &str) -> (u16, String) {
        let state = ServingState { profiler, ..state(&settings(arguments)) };
        let request = Request::get(path).body(Body::empty()).expect("it is a request");
        let answer = routes(&Arc::new(state)).oneshot(request).await.expect("routes never fail");
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("it is memory").to_bytes();
        (code, String::from_utf8(body.to_vec()).expect("it is text"))
    }

    #[tokio::test]
    async fn profiles_are_those_of_the_profiler() {
        let get = async |path| get(Some(Arc::new(Echo)), &[], path).await;
        assert_eq!(get("/debug/pprof/profile?seconds=7").await, (200, "7".to_owned()));
        assert_eq!(get("/debug/pprof/heap").await, (500, "another profile is already running\n".to_owned()));
    }

    #[tokio::test]
    async fn a_program_without_a_profiler_says_so() {
        for path in ["/debug/pprof/profile?seconds=7", "/debug/pprof/heap"] {
            let (code, reason) = get(None, &[], path).await;
            assert!(code == 501 && reason.contains("without the cargo feature pprof"), "{path}: {code} {reason}");
        }
        assert_eq!(get(None, &[], "/debug/pprof/cmdline").await.0, 200);
    }

    #[tokio::test]
    async fn nothing_is_served_unless_the_settings_allow_profiles() {
        for path in ["/debug/pprof/", "/debug/pprof/profile?seconds=7", "/debug/pprof/cmdline"] {
            assert_eq!(get(Some(Arc::new(Echo)), &["--profiling=false"], path).await.0, 404, "{path}");
        }
    }

    #[tokio::test]
    async fn requests_of_other_sites_are_refused() {
        let host = ("host", "kcm:10257");
        for (headers, code) in [
            (&[][..], 200),
            (&[host][..], 200),
            (&[host, ("sec-fetch-site", "none")][..], 200),
            (&[host, ("sec-fetch-site", "same-origin"), ("origin", "https://kcm:10257")][..], 200),
            (&[host, ("sec-fetch-site", "cross-site")][..], 403),
            (&[host, ("sec-fetch-site", "same-site")][..], 403),
            (&[host, ("origin", "https://kcm")][..], 403),
            (&[host, ("origin", "http://kcm:10257")][..], 403),
            (&[host, ("origin", "null")][..], 403),
            (&[("origin", "https://kcm:10257")][..], 403),
        ] {
            for path in ["/debug/pprof/profile?seconds=7", "/debug/pprof/cmdline", "/debug/pprof/"] {
                let state = ServingState { profiler: Some(Arc::new(Echo)), ..state(&settings(&[])) };
                let request =
                    headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
                let request = request.body(Body::empty()).expect("it is a request");
                let answer = routes(&Arc::new(state)).oneshot(request).await.expect("routes never fail");
                assert_eq!(answer.status(), code, "{path} with {headers:?}");
            }
        }
        let http2 = Request::get("https://kcm:10257/debug/pprof/heap").header("origin", "https://kcm:10257");
        let (parts, ()) = http2.body(()).expect("it is a request").into_parts();
        assert!(!is_of_other_site(&parts));
    }

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
