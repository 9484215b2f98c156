//! The requests.

use kcm_framework::api::ObjectKey;
use kcm_framework::client::{ApiError, Payload};
use kcm_framework::{Delete, Session, error_chain};

use super::plan::{Plan, Publication, TrustBundle};

/// Publishes the bundle, and deletes the outdated ones afterwards. A bundle that cannot be deleted stops no other; the last
/// error is returned.
pub(super) async fn apply(session: &Session, key: &ObjectKey, plan: Plan) -> Result<(), ApiError> {
    match plan.publication {
        Publication::None => {}
        Publication::Create(bundle) => {
            session.create::<TrustBundle>(key, Payload::json(&bundle)).await?;
        }
        Publication::Update(bundle) => drop(session.update(&*bundle, &bundle.document).await?),
    }
    let mut last = Ok(());
    for bundle in plan.outdated {
        let as_judged = Delete::default().at_version(&bundle.metadata.resource_version);
        if let Err(error) = session.delete(&*bundle, as_judged).await {
            let reason = error_chain(&error);
            tracing::warn!(error = reason, bundle = %bundle.metadata.key, "Cannot delete an outdated trust bundle");
            last = Err(error);
        }
    }
    last
}
