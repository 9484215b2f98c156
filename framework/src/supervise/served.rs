//! Detects that a resource has disappeared.

use kcm_api::Resource;

use crate::discovery::Discovery;

/// Waits until one of these resources, having been served, is not served any more.
///
/// A resource that has not been served yet cannot disappear; its informer waits for it.
pub(super) async fn disappeared(discovery: &Discovery, resources: Vec<Resource>) -> Resource {
    let mut changes = discovery.changes();
    let is_served = |resource: &Resource| discovery.is_available(resource);
    let (mut served, mut awaited): (Vec<_>, Vec<_>) = resources.into_iter().partition(is_served);
    loop {
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
        if let Some(gone) = served.iter().position(|resource| !is_served(resource)) {
            return served.swap_remove(gone);
        }
        served.extend(awaited.extract_if(.., |resource| is_served(resource)));
    }
}
