//! The requests.

use kcm_framework::Session;
use kcm_framework::api::ObjectKey;
use kcm_framework::client::{ApiError, Payload, ResponseExt as _};

use super::plan::{Action, ConfigMap};

/// Creates or updates the config map. It is no error if its namespace is terminating or deleted.
pub(super) async fn apply(session: &Session, key: &ObjectKey, action: Action) -> Result<(), ApiError> {
    match action {
        Action::None => {}
        Action::Create(config_map) => {
            let created = session.create::<ConfigMap>(key, Payload::json(&config_map)).await;
            created.ignore(|error| error.is_not_found() || error.is_namespace_terminating())?;
        }
        Action::Update(config_map) => drop(session.update(&*config_map, &config_map.document).await?),
    }
    Ok(())
}
