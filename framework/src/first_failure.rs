//! The failure of a controller that ends the manager, if failures end it.

use std::sync::Arc;

use tokio::sync::watch;

/// A failure of a controller: of its initialization, of a loop, or of a reconcile that panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControllerFailure {
    /// The canonical name of the controller.
    pub(crate) controller: &'static str,
    /// The part of it that failed.
    pub(crate) what: String,
    /// The error, or the message of the panic.
    pub(crate) reason: String,
}

/// The first failure of a controller of one manager. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub(crate) struct FirstFailure {
    ends_manager: bool,
    first: Arc<watch::Sender<Option<ControllerFailure>>>,
}

impl FirstFailure {
    /// No failure yet. `ends_manager` says whether one ends the manager; otherwise failures are not noted.
    pub(crate) fn new(ends_manager: bool) -> Self {
        Self { ends_manager, first: Arc::default() }
    }

    /// Notes a failure; returns whether it ends the manager.
    pub(crate) fn note(&self, controller: &'static str, what: &str, reason: impl Into<String>) -> bool {
        if self.ends_manager {
            let (what, reason) = (what.to_owned(), reason.into());
            let failure = ControllerFailure { controller, what, reason };
            self.first.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert(failure);
                is_first
            });
        }
        self.ends_manager
    }

    /// Waits for the failure that ends the manager.
    pub(crate) async fn first(&self) -> ControllerFailure {
        let mut receiver = self.first.subscribe();
        let first = receiver.wait_for(Option::is_some).await.map(|first| first.clone());
        match first {
            Ok(Some(failure)) => failure,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
