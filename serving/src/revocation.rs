//! Ends a response that goes on, such as a stream of events, when its user loses the right to it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::StreamExt as _;
use http::request::Parts;
use tokio::time::sleep;

use super::access::{Access, Decision};
use super::peer::Peer;
use super::percent::percent_decoded;

/// Interval at which the right is checked.
const CHECK: Duration = Duration::from_mins(1);

/// A request that was allowed.
pub(super) struct AllowedRequest {
    pub(super) access: Arc<Access>,
    pub(super) parts: Parts,
    pub(super) peer: Arc<Peer>,
}

impl AllowedRequest {
    /// Ends `body` when the request would be refused: the right was revoked, or the certificate or the token has expired.
    pub(super) fn limit(self, body: Body) -> Body {
        Body::from_stream(body.into_data_stream().take_until(Box::pin(self.refused())))
    }

    /// Returns when the request would be refused.
    async fn refused(self) {
        let Self { access, parts, peer } = self;
        let Some(path) = percent_decoded(parts.uri.path()) else { return };
        loop {
            sleep(CHECK).await;
            match access.decide(&parts, &path, &peer.certificates).await {
                // The status page is needed most while the API server cannot decide.
                Decision::Allowed(_) | Decision::Failed { .. } => {}
                Decision::Unauthorized | Decision::Forbidden { .. } => return,
            }
        }
    }
}
