//! Pod certificate request cleaner: deletes `PodCertificateRequests` that are 15 minutes old.
//!
//! Reads and deletes `PodCertificateRequests` of all Namespaces.
//!
//! ```text
//! every 5 min: requests ──▶ old? ──▶ delete
//!              (cache)     (pure)
//! ```
//!
//! # Guarantees
//! - A request is deleted once it is 15 minutes old, whether it is pending, issued, denied or failed.
//! - The deletion carries the uid and the resource version of the request that was judged. A request that was recreated or
//!   updated meanwhile stays and is judged again.
//! - A round begins 5 minutes after the last one has ended, and not before the cache shows the writes of the last round.
//! - A request that cannot be deleted stops no other, and is tried again after half a minute.
//!
//! # What it does not do
//! It records no events, for which its account has no rights.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/certificates/cleaner/pcrcleaner.go` of Kubernetes 1.37.2. `docs/differences.md` has the
//! differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The first round waits for the cache. | The first round may see an empty cache. | No request waits for 5 minutes more. |
//! | A deletion that fails is tried again after half a minute. | It is tried again in the next round. | An outage does not cost a round. |
//! | The deletion carries the resource version. | It carries the uid. | A request that changes at the same moment is judged again. |
//! | Only metadata is kept. | Whole requests are cached. | Memory. |

mod apply;
mod plan;

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::FutureExt as _;
use kcm_framework::config::gates::POD_CERTIFICATE_REQUEST;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use apply::round;
use plan::PodCertificateRequest;

/// Time from the end of a round to the next one, as upstream.
const PERIOD: Duration = Duration::from_mins(5);

/// Time from a round in which a deletion failed to the next one.
const RETRY: Duration = Duration::from_secs(30);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("podcertificaterequest-cleaner-controller", init)
        .service_account("podcertificaterequestcleaner")
        .required_gates(&[POD_CERTIFICATE_REQUEST]);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop("podcertificaterequest_cleaner");
    let requests = control_loop.reads::<PodCertificateRequest>();
    let rounds = control_loop.periodic(PERIOD, move |session| {
        let requests = requests.clone();
        async move {
            let Err(error) = round(&session, &requests).await else { return Ok(()) };
            session.requeue_after(RETRY);
            if error.is_conflict() { Ok(()) } else { Err(error.into()) }
        }
        .boxed()
    });
    Ok(rounds.into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
