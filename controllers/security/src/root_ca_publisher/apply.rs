//! The requests.

use kcm_api::{KnownView as _, ObjectKey};
use kcm_framework::Session;
use kcm_framework::client::{ApiError, Payload, Subresource};

use super::plan::{Action, ConfigMapView};

/// Writes what a plan asks for.
///
/// A namespace that is terminating or gone is no failure: its content goes with it.
pub(super) async fn apply(session: &Session, key: &ObjectKey, action: Action) -> Result<(), ApiError> {
    let resource = const { &ConfigMapView::RESOURCE };
    match action {
        Action::None => Ok(()),
        Action::Create(config_map) => match session.raw_create(resource, key, Payload::json(&config_map)).await {
            Err(error) if error.is_not_found() || error.is_namespace_terminating() => Ok(()),
            created => created.map(drop),
        },
        Action::Update(config_map) => {
            session.put_document(resource, key, Subresource::None, &config_map.document).await.map(drop)
        }
    }
}
