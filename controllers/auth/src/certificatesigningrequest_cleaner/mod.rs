//! Cleaner of certificate signing requests: deletes requests that nobody needs any more.
//!
//! Reads and deletes `CertificateSigningRequests`.
//!
//! ```text
//! every hour ──▶ each request of the cache ──▶ reason to delete it? ──▶ delete
//!                                                    (pure)
//! ```
//!
//! # Guarantees
//! - A request is deleted if it was issued, or denied, or has failed, more than an hour ago; if nobody has decided about it
//!   for 24 hours; if its certificate has expired; or if it is approved for 24 hours and not issued. Conditions count
//!   with any status, and a condition without a time is never old.
//! - The deletion carries uid and resource version: a request that was recreated or changed meanwhile is kept until the next
//!   pass.
//! - The first pass waits for the cache.
//!
//! # What it does not do
//! It revokes no certificate.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/certificates/cleaner` of Kubernetes 1.37.2. `docs/differences.md` has the differences that all
//! controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | The first pass waits for the cache. | It may see an empty cache, and the next pass is an hour later. | Old requests must not stay. |
//! | A deletion carries uid and resource version. | It carries the name. | A request that was recreated stays. |
//! | A pass with failed deletions is repeated after ten minutes. | The next pass is an hour later. | An outage must not cost an hour. |

mod apply;
mod plan;
mod round;

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::FutureExt as _;
use kcm_framework::api::ObjectKey;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use crate::shared::signing_request::SigningRequest;
use round::round;

const INTERVAL: Duration = Duration::from_hours(1);

/// Time from a pass with failed deletions to the next one.
const RETRY: Duration = Duration::from_mins(10);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("certificatesigningrequest-cleaner-controller", init)
        .aliases(&["csrcleaner"])
        .service_account("certificate-controller");

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let mut control_loop = context.control_loop::<ObjectKey>("csrcleaner");
    let requests = control_loop.reads::<SigningRequest>();
    let passes = control_loop.periodic(INTERVAL, move |session| {
        let requests = requests.clone();
        async move {
            if let Err(error) = round(&requests, &session).await {
                session.requeue_after(RETRY);
                return Err(error.into());
            }
            Ok(())
        }
        .boxed()
    });
    Ok(passes.into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
