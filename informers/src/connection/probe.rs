//! The probe of the API server, and what its response means.

use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Collected, Limited};
use kube::Client;
use kube::client::Body;

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

/// Probes the API server once.
pub(super) async fn probe(client: &Client) -> Probed {
    match tokio::time::timeout(PROBE_TIMEOUT, send(client)).await {
        Ok(Ok((code, body))) => meaning(code, &String::from_utf8_lossy(&body)),
        Ok(Err(error)) => Probed::Fails(chain(&error)),
        Err(_) => Probed::Fails(format!("no response to {PATH} within {} s", PROBE_TIMEOUT.as_secs())),
    }
}

async fn send(client: &Client) -> Result<(StatusCode, Vec<u8>), kube::Error> {
    let request = Request::get(PATH).body(Body::empty()).expect("a constant path must be a valid request");
    let (head, body) = client.send(request).await?.into_parts();
    // The code suffices if the body is too long or breaks off.
    let body = Limited::new(body, BODY_LIMIT).collect().await.map(Collected::to_bytes).unwrap_or_default();
    Ok((head.status, body.to_vec()))
}

/// Returns the meaning of a response to the probe.
///
/// Any code below 500 except 403 comes from a running server, even if it does not know the path or the user: requests
/// then fail with an error that says so. A server that responds with 5xx serves only if the response lists its checks;
/// a load balancer without servers behind it has no such list.
fn meaning(code: StatusCode, body: &str) -> Probed {
    if code == StatusCode::FORBIDDEN {
        return Probed::Forbidden;
    }
    if !code.is_server_error() {
        return Probed::Serves;
    }
    let failed: Vec<&str> = body.lines().filter_map(failed_check).collect();
    let needed: Vec<&str> = failed.iter().copied().filter(|check| NEEDED.contains(check)).collect();
    if !needed.is_empty() {
        return Probed::Fails(format!("the API server is not ready: its check of {} fails", needed.join(", ")));
    }
    if failed.is_empty() {
        let line = body.lines().next().unwrap_or_default();
        return Probed::Fails(format!("{PATH} was answered with {code}: {line}"));
    }
    Probed::Serves
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
        let rows = [
            (200, "ok".to_owned(), Probed::Serves),
            (401, "Unauthorized".to_owned(), Probed::Serves),
            (403, "forbidden".to_owned(), Probed::Forbidden),
            (404, "not found".to_owned(), Probed::Serves),
            (429, "too many requests".to_owned(), Probed::Serves),
            (500, checks("[-]etcd failed: reason withheld\n"), unready("etcd")),
            (
                500,
                checks("[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\n"),
                unready("etcd, etcd-readiness"),
            ),
            (500, checks("[-]informer-sync failed: reason withheld\n"), unready("informer-sync")),
            (500, checks("[-]kms-providers failed: reason withheld\n"), Probed::Serves),
            (500, checks("[-]shutdown failed: reason withheld\n"), Probed::Serves),
            (503, String::new(), Probed::Fails("/readyz was answered with 503 Service Unavailable: ".to_owned())),
            (
                502,
                "no server\nis available".to_owned(),
                Probed::Fails("/readyz was answered with 502 Bad Gateway: no server".to_owned()),
            ),
        ];
        for (code, body, expected) in rows {
            assert_eq!(meaning(StatusCode::from_u16(code).unwrap(), &body), expected, "{code} {body}");
        }
    }
}
