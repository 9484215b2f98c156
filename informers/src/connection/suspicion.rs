//! Error responses that may come from a server that runs but cannot serve.

use kcm_api::Status;

/// Returns `true` if an error response may come from an outage: of etcd behind the API server, of the API server behind
/// a load balancer, or of an API server that starts and has not read its roles yet.
///
/// Only a probe can decide: the same response may be about one resource, for example if an aggregated server is down.
/// The failure of an admission webhook is never an outage, though its message may read like one.
#[must_use]
pub fn may_be_outage(status: &Status) -> bool {
    // A gateway, or a request that the API server gave up.
    let is_of_gateway = matches!(status.code, 502..=504) && !is_of_webhook(status);
    let is_of_server = is_of_gateway || is_storage_failure(status) || is_refused_by_authorizer(status);
    is_of_server && !status.has_cause("ResourceVersionTooLarge")
}

/// Returns `true` if the authorizer refused a request. Only its message names the user; the messages of admission
/// (quota, policies) do not.
#[must_use]
pub fn is_refused_by_authorizer(status: &Status) -> bool {
    status.code == 403 && status.message.contains("is forbidden: User ")
}

/// Returns `true` if an error response passes on an error of etcd's client: storage did not respond to the API server.
#[must_use]
pub fn is_storage_failure(status: &Status) -> bool {
    const REPORTED: [&str; 4] = ["etcdserver: ", "rpc error: code = ", "context deadline exceeded", "context canceled"];
    status.code >= 500 && !is_of_webhook(status) && REPORTED.iter().any(|part| status.message.contains(part))
}

fn is_of_webhook(status: &Status) -> bool {
    status.message.contains("webhook")
}

#[cfg(test)]
mod tests {
    use kcm_api::{StatusCause, StatusDetails};

    use super::*;

    #[test]
    fn storage_and_gateways_may_be_out_and_single_resources_and_webhooks_are_not() {
        let too_large = StatusDetails {
            causes: vec![StatusCause { reason: "ResourceVersionTooLarge".to_owned(), ..StatusCause::default() }],
            ..StatusDetails::default()
        };
        let status = |code, message: &str| Status { code, message: message.to_owned(), ..Status::default() };
        for (status, expected) in [
            (status(500, "etcdserver: request timed out"), true),
            (status(500, "etcdserver: leader changed"), true),
            (status(500, "rpc error: code = Unavailable desc = error reading from server: EOF"), true),
            (status(500, "context deadline exceeded"), true),
            (status(500, "context canceled"), true),
            (status(504, "Timeout: request did not complete within requested timeout"), true),
            (status(503, "service unavailable"), true),
            (status(502, "Bad Gateway"), true),
            (status(500, "failed calling webhook \"a.b\": context deadline exceeded"), false),
            (status(500, "unable to convert"), false),
            (status(501, "not implemented"), false),
            (status(429, "etcdserver: too many requests"), false),
            (status(403, "forbidden"), false),
            (status(403, "pods \"x\" is forbidden: exceeded quota: q"), false),
            (status(403, "pods is forbidden: User \"u\" cannot list resource \"pods\""), true),
            (Status { details: too_large, ..status(504, "Too large resource version") }, false),
        ] {
            assert_eq!(may_be_outage(&status), expected, "{status:?}");
        }
    }
}
