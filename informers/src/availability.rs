//! Availability of a resource, by responses of the API server and by discovery.

use tokio::sync::watch;

/// Availability of the resource of an informer.
///
/// It disappears if both lists and discovery lack it: a 404 alone may come from an aggregated server that starts, and
/// discovery alone may be older than the last response.
pub(crate) struct Availability(watch::Sender<Seen>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    is_discovered: bool,
    is_not_found: bool,
}

impl Availability {
    /// A resource that counts as served.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Seen { is_discovered: true, is_not_found: false }))
    }

    /// Sets whether discovery has the resource.
    pub(crate) fn set_discovered(&self, is_discovered: bool) {
        self.0.send_if_modified(|seen| std::mem::replace(&mut seen.is_discovered, is_discovered) != is_discovered);
    }

    /// Records whether the response to the last list or watch was 404.
    pub(crate) fn set_not_found(&self, is_not_found: bool) {
        self.0.send_if_modified(|seen| std::mem::replace(&mut seen.is_not_found, is_not_found) != is_not_found);
    }

    /// Returns `true` unless discovery lacks the resource.
    pub(crate) fn is_discovered(&self) -> bool {
        self.0.borrow().is_discovered
    }

    /// Returns `true` if the response to the last list or watch was 404.
    pub(crate) fn is_not_found(&self) -> bool {
        self.0.borrow().is_not_found
    }

    /// Resolves when the resource has disappeared.
    pub(crate) async fn disappeared(&self) {
        self.wait_for(|seen| seen.is_not_found && !seen.is_discovered).await;
    }

    /// Resolves when discovery has the resource.
    pub(crate) async fn appeared(&self) {
        self.wait_for(|seen| seen.is_discovered).await;
    }

    async fn wait_for(&self, holds: impl FnMut(&Seen) -> bool) {
        let outcome = self.0.subscribe().wait_for(holds).await.map(drop);
        outcome.expect("the sender must live as long as its borrower");
    }
}
