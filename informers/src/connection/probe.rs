//! The probe of the API server, and what its response means.

use std::time::Duration;

use http::header::ACCEPT;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Collected, Limited};
use kube::Client;
use kube::client::Body;

use super::probe_path::ProbePath;
use crate::error_chain::chain;

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Probed {
    /// The API server serves.
    Serves,
    /// The API server forbids the probe: it starts and has not read its roles yet, or the user may not probe.
    Forbidden,
    /// The API server cannot be reached or cannot serve, and why.
    Fails(String),
}

/// Timeout of a probe: as long as the API server waits for etcd in its check.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The readiness of the API server, which every user may read (`system:public-info-viewer`), and which includes etcd.
const PATH: &str = "/readyz";

/// How much of the body is read.
const BODY_LIMIT: usize = 64 << 10;

/// The checks without which the API server cannot serve: its storage, and the informers of its authorizer, without
/// which it forbids everything to everybody.
///
/// Other checks, such as of a key management service or of a shutdown that has begun, do not concern every request.
const NEEDED: [&str; 3] = ["etcd", "etcd-readiness", "informer-sync"];

/// Reads that informers and keys need, if a gateway answers the readiness check itself: a read from storage, and one from
/// the cache of the API server.
const NEEDED_READS: [&str; 2] = ["/api/v1/namespaces?limit=1", "/api/v1/namespaces?limit=1&resourceVersion=0"];

/// A probe and its result.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) result: Probed,
    /// The response of a gateway in the place of the readiness of an API server that serves.
    pub(super) gateway: Option<String>,
}

/// Probes the API server once, over the connections of `path`.
pub(super) async fn probe(client: &Client, path: &ProbePath) -> Probe {
    let of = |result| Probe { result, gateway: None };
    let response = match meaning_of_readiness(client, path).await {
        Ok(result) => return of(result),
        Err(response) => response,
    };
    for read in NEEDED_READS {
        match get(client, path, read).await {
            Ok((code, _)) => match meaning_of_read(code, &response) {
                Probed::Serves => {}
                failure @ (Probed::Forbidden | Probed::Fails(_)) => return of(failure),
            },
            Err(_) => return of(Probed::Fails(response)),
        }
    }
    Probe { result: Probed::Serves, gateway: Some(response) }
}

/// Returns the meaning of the readiness, or the response if a gateway may have sent it.
async fn meaning_of_readiness(client: &Client, path: &ProbePath) -> Result<Probed, String> {
    match get(client, path, PATH).await {
        Ok((code, body)) => meaning(code, &String::from_utf8_lossy(&body)),
        Err(failure) => Ok(Probed::Fails(failure)),
    }
}

/// Sends a request and returns its status code and its body.
async fn get(client: &Client, path: &ProbePath, uri: &str) -> Result<(StatusCode, Vec<u8>), String> {
    match tokio::time::timeout(PROBE_TIMEOUT, send(client, path, uri)).await {
        Ok(sent) => sent.map_err(|error| chain(&error)),
        Err(_) => Err(format!("no response to {uri} within {} s", PROBE_TIMEOUT.as_secs())),
    }
}

async fn send(client: &Client, path: &ProbePath, uri: &str) -> Result<(StatusCode, Vec<u8>), kube::Error> {
    let request =
        Request::get(uri).header(ACCEPT, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,*/*");
    let request = request.extension(path.clone()).body(Body::empty());
    let request = request.expect("a constant path must be a valid request");
    let (head, body) = client.send(request).await?.into_parts();
    // The code suffices if the body is too long or breaks off.
    let body = Limited::new(body, BODY_LIMIT).collect().await.map(Collected::to_bytes).unwrap_or_default();
    Ok((head.status, body.to_vec()))
}

/// Returns the meaning of a response to the probe.
///
/// Any code below 500 except 403 comes from a running server, even if it does not know the path or the user: requests
/// then fail with an error that says so. A server that responds with 5xx serves only if the response lists its checks.
///
/// # Errors
/// The response, if it is a 5xx without such a list: a load balancer without servers behind it has none, nor has a
/// gateway that does not pass the path on.
fn meaning(code: StatusCode, body: &str) -> Result<Probed, String> {
    if code == StatusCode::FORBIDDEN {
        return Ok(Probed::Forbidden);
    }
    if !code.is_server_error() {
        return Ok(Probed::Serves);
    }
    let failed: Vec<&str> = body.lines().filter_map(failed_check).collect();
    let needed: Vec<&str> = failed.iter().copied().filter(|check| NEEDED.contains(check)).collect();
    if !needed.is_empty() {
        return Ok(Probed::Fails(format!("the API server is not ready: its check of {} fails", needed.join(", "))));
    }
    if failed.is_empty() {
        let line = body.lines().next().unwrap_or_default();
        return Err(format!("{PATH} was answered with {code}: {line}"));
    }
    Ok(Probed::Serves)
}

/// Returns the meaning of a response to one of [`NEEDED_READS`], after `readiness` was the response to the readiness check.
///
/// An API server has namespaces, so that a 404 comes from the gateway.
fn meaning_of_read(code: StatusCode, readiness: &str) -> Probed {
    match code {
        StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS => Probed::Serves,
        StatusCode::FORBIDDEN => Probed::Forbidden,
        code if code.is_success() => Probed::Serves,
        _ => Probed::Fails(readiness.to_owned()),
    }
}

/// The name in a line such as `[-]etcd failed: reason withheld`.
fn failed_check(line: &str) -> Option<&str> {
    line.strip_prefix("[-]")?.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_serves_unless_it_says_that_it_cannot() {
        let checks = |failed: &str| format!("[+]ping ok\n{failed}[+]log ok\nreadyz check failed");
        let unready = |checks: &str| Probed::Fails(format!("the API server is not ready: its check of {checks} fails"));
        let unready = |checks| Ok(unready(checks));
        let rows = [
            (200, "ok".to_owned(), Ok(Probed::Serves)),
            (401, "Unauthorized".to_owned(), Ok(Probed::Serves)),
            (403, "forbidden".to_owned(), Ok(Probed::Forbidden)),
            (404, "not found".to_owned(), Ok(Probed::Serves)),
            (429, "too many requests".to_owned(), Ok(Probed::Serves)),
            (500, checks("[-]etcd failed: reason withheld\n"), unready("etcd")),
            (
                500,
                checks("[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\n"),
                unready("etcd, etcd-readiness"),
            ),
            (500, checks("[-]informer-sync failed: reason withheld\n"), unready("informer-sync")),
            (500, checks("[-]kms-providers failed: reason withheld\n"), Ok(Probed::Serves)),
            (500, checks("[-]shutdown failed: reason withheld\n"), Ok(Probed::Serves)),
            (503, String::new(), Err("/readyz was answered with 503 Service Unavailable: ".to_owned())),
            (
                502,
                "no server\nis available".to_owned(),
                Err("/readyz was answered with 502 Bad Gateway: no server".to_owned()),
            ),
        ];
        for (code, body, expected) in rows {
            assert_eq!(meaning(StatusCode::from_u16(code).unwrap(), &body), expected, "{code} {body}");
        }
    }

    #[tokio::test]
    async fn behind_a_gateway_without_readiness_reads_from_storage_and_cache_decide() {
        let fails = || Probed::Fails("/readyz was answered with 502 Bad Gateway: no route".to_owned());
        for (readiness, storage, cache, expected, is_gateway) in [
            (502, 200, 200, Probed::Serves, true),
            (502, 401, 401, Probed::Serves, true),
            (502, 429, 200, Probed::Serves, true),
            (502, 403, 200, Probed::Forbidden, false),
            (502, 502, 200, fails(), false),
            (502, 500, 200, fails(), false),
            (502, 404, 404, fails(), false),
            (502, 200, 504, fails(), false),
            (200, 502, 502, Probed::Serves, false),
        ] {
            let service = tower::service_fn(move |request: Request<Body>| {
                let (code, text) = match request.uri().path_and_query().unwrap().as_str() {
                    "/readyz" => (readiness, "no route"),
                    "/api/v1/namespaces?limit=1" => (storage, "{}"),
                    "/api/v1/namespaces?limit=1&resourceVersion=0" => (cache, "{}"),
                    other => panic!("{other}"),
                };
                let response = http::Response::builder().status(code).body(Body::from(text.as_bytes().to_vec()));
                std::future::ready(response.map_err(kube::Error::HttpError))
            });
            let client = Client::new(service, "default");
            let Probe { result, gateway } = probe(&client, &ProbePath::present()).await;
            assert_eq!((result, gateway.is_some()), (expected, is_gateway), "{readiness} {storage} {cache}");
        }
    }
}
